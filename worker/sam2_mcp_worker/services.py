"""What the worker consists of: stores, pools, engines and jobs, built from the settings in one place.

Pipelines and tools get this object and know nothing of settings, processes or folders beyond it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from sam2_mcp_worker.artifacts import Artifacts
from sam2_mcp_worker.checks.rule_packs import load_rule_pack
from sam2_mcp_worker.disk import sweep
from sam2_mcp_worker.engines import segmenter as sam
from sam2_mcp_worker.engines.embedding_ports import Embedder
from sam2_mcp_worker.engines.local_ocr import CHILD_MODULE, LocalOcr, child_config, local_ocr_identity
from sam2_mcp_worker.engines.ports import Segmenter, Tracker
from sam2_mcp_worker.engines.request_limiter import RequestLimiter
from sam2_mcp_worker.engines.speech import choose_speech
from sam2_mcp_worker.engines.tracker import SamTracker
from sam2_mcp_worker.engines.vision import choose_vision
from sam2_mcp_worker.execution.pool import ChildPool
from sam2_mcp_worker.fetch import Fetcher
from sam2_mcp_worker.jobs import Jobs
from sam2_mcp_worker.media.decoder import DECODER_MODULE, REDACT_MODULE, SCAN_MODULE
from sam2_mcp_worker.result_cache import ResultCache
from sam2_mcp_worker.segmentation import Choice, choose
from sam2_mcp_worker.settings import Settings
from sam2_mcp_worker.sources import Sources
from sam2_mcp_worker.spending import Unit, Usage
from sam2_mcp_worker.track_store import TrackStore
from sam2_mcp_worker.uploads import Uploads
from sam2_mcp_worker.workdirs import WorkRoot

LOADING_NOTE = "the network is still loading, which takes seconds, the first time with new weights a minute or more"
# It only ever sees our own pixels: another file does not help, less work does.
SAM_MEND = "Call again; if it fails again, mark fewer objects in one call or scale the picture or video down"

# Tiles that are encoded already and wait for a request to end, so that no slot is empty while the next is encoded.
TILES_READY = 4

# Enough to see what a page costs; get_status tells each.
RECENT_COSTS = 5

# Expired files may stay this much longer; a sweep of 10,000 entries takes about 0.2 s in a thread.
SWEEP_INTERVAL_S = 600.0

logger = logging.getLogger(__name__)


class Services:
    """Everything a pipeline may use. `start` before the first call, `close` after the last."""

    def __init__(self, settings: Settings) -> None:
        tessdata_dir = settings.find_tessdata()
        data = settings.data_dir
        self.settings = settings
        self.rule_pack = load_rule_pack(settings.rule_pack)
        self._work = WorkRoot(data / "work")
        self.uploads = Uploads(data / "files", max_bytes=settings.max_upload_bytes, retention_h=settings.retention_h)
        self.artifacts = Artifacts(data / "artifacts", settings.retention_h)
        self.cache = ResultCache(data / "cache")
        self.tracks = TrackStore(data / "tracks")
        self.jobs = Jobs(settings.background_limit_s)
        self.sources = Sources(
            self.uploads, self.artifacts, settings.allowed_roots, Fetcher(settings.allowed_url_hosts)
        )
        self.decoders = ChildPool(
            "decoder",
            DECODER_MODULE,
            size=settings.decoder_processes,
            config={},
            memory_limit_bytes=settings.decoder_memory_bytes,
        )
        # No address space limit: onnxruntime maps far more than it uses, and it only ever sees our own raw pixels.
        # Nor is a child recycled for its size: the arenas of the detector are meant to stay.
        self.ocr_pool = ChildPool(
            "ocr",
            CHILD_MODULE,
            size=settings.ocr_process_count,
            config=child_config(tessdata_dir, settings.ocr_languages),
            memory_limit_bytes=0,
            recycle_growth_bytes=None,
        )
        self.reader = LocalOcr(self.ocr_pool, identity=local_ocr_identity(tessdata_dir, settings.ocr_languages))
        self.vision, self.vision_missing = choose_vision(settings)
        # A tile's time begins with its turn: it is not spent in the queue before the requests.
        self.vision_turns = RequestLimiter(settings.vision_in_flight + TILES_READY)
        # Of the last calls that cost something: tiles, pages, frames or pieces, how many, and their sums.
        self.recent_costs: deque[tuple[Unit, int, Usage]] = deque(maxlen=RECENT_COSTS)
        # One child: a second copy of PyMuPDF costs 140 MB, and redactions are rare beside reading.
        self.redactors = ChildPool(
            "redact", REDACT_MODULE, size=1, config={}, memory_limit_bytes=settings.decoder_memory_bytes
        )
        # One child: it keeps files open between tasks, and its decoder has two threads. Nor is it recycled for its
        # size: the frames of an open video are meant to stay, and its limit bounds them.
        self.scanner = ChildPool(
            "scan",
            SCAN_MODULE,
            size=1,
            config={},
            memory_limit_bytes=settings.decoder_memory_bytes,
            recycle_growth_bytes=None,
        )
        speech = choose_speech(settings)
        # In the order in which they are asked; `speech_missing` says why there are none.
        self.transcribers, self.speech_pool, self.speech_missing = speech.transcribers, speech.pool, speech.missing
        # A piece's time begins with its turn: it is not spent in the queue before the engine. By identity.
        self.hearing_turns = {one.identity: RequestLimiter(one.pieces_in_flight) for one in self.transcribers}
        self.embedder = choose_embedder(settings)
        choice = choose(settings)
        self.sam_pool = build_sam_pool(settings, choice)
        self.segmenter: Segmenter | None = None
        self.tracker: Tracker | None = None
        self.segmenter_missing, self.tracker_missing = choice.no_masks, choice.no_tracking
        if self.sam_pool is not None and choice.engine is not None:
            identity = sam.segmenter_identity(choice.engine, choice.weights)
            self.segmenter = sam.SamSegmenter(self.sam_pool, identity=identity)
            if choice.no_tracking is None:
                self.tracker = SamTracker(self.sam_pool, identity=identity)
        self._sweeper: asyncio.Task[None] | None = None
        self._background: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Make the folders, clear what a killed worker left, and let the children load; does not wait for them."""
        await asyncio.to_thread(self._prepare_folders)
        await self.ocr_pool.start(wait=False)
        await self.decoders.start(wait=False)
        await self.redactors.start(wait=False)
        await self.scanner.start(wait=False)
        if self.sam_pool is not None:
            await self.sam_pool.start(wait=False)
        if self.speech_pool is not None:
            await self.speech_pool.start(wait=False)
        if self.vision is not None:
            await self.vision.start()
        for transcriber in self.transcribers:
            await transcriber.start()
        if self.embedder is not None:
            await self.embedder.start()
        self._sweeper = asyncio.create_task(self._sweep_for_ever(), name="sweeper")

    def in_background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something small to its end, though the call that wants it may leave; `close` waits for it."""
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    async def close(self) -> None:
        """Stop jobs, then the children they use."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        await self.jobs.close()
        await asyncio.gather(*self._background, return_exceptions=True)
        if self.vision is not None:
            await self.vision.close()
        for transcriber in self.transcribers:
            await transcriber.close()
        if self.embedder is not None:
            await self.embedder.close()
        await asyncio.gather(*(pool.close() for pool in self.pools))
        await asyncio.to_thread(self._work.close)

    @property
    def pools(self) -> list[ChildPool]:
        """All pools of child processes, in the order in which they are shown."""
        optional = [pool for pool in (self.sam_pool, self.speech_pool) if pool is not None]
        return [self.ocr_pool, self.decoders, self.redactors, self.scanner, *optional]

    def loading_notes(self) -> list[str]:
        """What to say of work that was not reached because the network of masks and tracking is still being loaded."""
        if self.sam_pool is None or self.sam_pool.stats().ready:
            return []
        return [LOADING_NOTE]

    def trouble(self) -> list[str]:
        """Why the worker is not ready yet; empty when it is. Without masks and redaction the other tools still work."""
        idle_pools = [stats for pool in (self.decoders, self.ocr_pool) if (stats := pool.stats()).ready == 0]
        return [stats.start_error or f"the {stats.name} processes are loading" for stats in idle_pools]

    def work_directory(self, label: str) -> AbstractContextManager[Path]:
        """A fresh work directory for one piece of work."""
        return self._work.directory(label)

    @property
    def work_root(self) -> Path:
        """The folder of this run's work directories."""
        return self._work.path

    def _prepare_folders(self) -> None:
        self.settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._work.open()

    async def _sweep_for_ever(self) -> None:
        while True:
            try:
                await asyncio.to_thread(self._sweep)
            except OSError as error:
                logger.warning("the sweep of old files failed: %s", error.strerror)
            await asyncio.sleep(SWEEP_INTERVAL_S)

    def _sweep(self) -> None:
        max_age_s = self.settings.retention_h * 3600
        for store, max_bytes in (
            (self.uploads, self.settings.files_max_bytes),
            (self.artifacts, self.settings.artifacts_max_bytes),
            (self.cache, self.settings.cache_max_bytes),
            (self.tracks, self.settings.tracks_max_bytes),
        ):
            removed = sweep(store.entries(), max_age_s=max_age_s, max_bytes=max_bytes)
            if removed:
                logger.info("removed %d old entries of %s", removed, type(store).__name__.lower())


def choose_embedder(settings: Settings) -> Embedder | None:
    """The embeddings endpoint, where its key is set; only then its HTTP client is imported."""
    if settings.embeddings_api_key is None:
        return None
    from sam2_mcp_worker.engines.openai_embeddings import build_embeddings

    return build_embeddings(settings)


def build_sam_pool(settings: Settings, choice: Choice) -> ChildPool | None:
    """The one child that holds the network. Its caches are meant to stay, so it is never recycled for its size."""
    if choice.engine is None:
        return None
    config = sam.child_config(
        choice.engine,
        choice.weights,
        threads=settings.sam_threads,
        embedding_cache_bytes=settings.embedding_cache_bytes,
        track_memory_bytes=settings.track_memory_bytes,
    )
    env = sam.child_env(settings.data_dir)
    return ChildPool(
        "sam",
        sam.CHILD_MODULE,
        size=1,
        config=config,
        memory_limit_bytes=0,
        env=env,
        recycle_growth_bytes=None,
        start_timeout_s=sam.START_TIMEOUT_S,
        mend=SAM_MEND,
    )
