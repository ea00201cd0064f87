"""Local Whisper as the pipelines see it. Owns the way to its child process; imports nothing heavy."""

from __future__ import annotations

import asyncio
import importlib.metadata
import importlib.util
import os
from pathlib import Path
from typing import Any, Literal

from sam2_mcp_worker.checks.hearing import Said
from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines.heard import hearing_of
from sam2_mcp_worker.engines.speech_ports import AudioPiece, Hearing
from sam2_mcp_worker.engines.whisper_weights import MODEL_FILE
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.execution.pool import ChildPool

CHILD_MODULE = "sam2_mcp_worker.engines.whisper_child"
# What the extra [speech] brings.
PACKAGES = ("faster_whisper", "ctranslate2")
DISTRIBUTIONS = ("faster-whisper", "ctranslate2")
# Raise it whenever the same sound may be heard otherwise: it is part of every cache key.
ENGINE_VERSION = 1
HASH_DIGITS = 8
# Half the memory of floats (231 MB, 482 MB) and no more wrong words (9, 11 of 63) on six sentences by espeak-ng.
COMPUTE_TYPE = "int8"
# Loading takes 2 s; joining and hashing 150 MB on a busy machine with a slow disk longer.
START_TIMEOUT_S = 180.0
# One that is being heard and one that waits ready, so that the child never idles.
PIECES_IN_FLIGHT = 2
# Neither models nor counters of use are ever asked for on the network.
CHILD_ENV = {
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "ORT_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
MEND = "Call again; if it fails again, ask the operator to read the worker's log"


class LocalWhisper:
    """A Transcriber over a pool of one child."""

    def __init__(self, pool: ChildPool, *, weights: dict[str, Any]) -> None:
        self._pool = pool
        self._name = f"{Path(weights['folder']).name} (local Whisper)"
        versions = " ".join(f"{name}-{_version(name)}" for name in DISTRIBUTIONS)
        digits = weights["sha256"][MODEL_FILE][:HASH_DIGITS]
        self._identity = f"local-whisper/{ENGINE_VERSION} model={digits} {versions} {COMPUTE_TYPE}"

    @property
    def name(self) -> str:
        """The model's folder."""
        return self._name

    @property
    def identity(self) -> str:
        """Everything that decides what is heard."""
        return self._identity

    @property
    def quality(self) -> Literal["provider", "low"]:
        """A third of the syllables of spontaneous Korean were wrong (reference/vision.md 5)."""
        return "low"

    @property
    def costs_money(self) -> bool:
        """Nothing but time."""
        return False

    @property
    def where(self) -> str:
        """Sound stays here."""
        return ""

    @property
    def pieces_in_flight(self) -> int:
        """More would only wait."""
        return PIECES_IN_FLIGHT

    @property
    def trouble(self) -> WorkerError | None:
        """Why its child cannot start."""
        stats = self._pool.stats()
        if stats.start_error is None or stats.ready:
            return None
        return WorkerError("not_available", f"local Whisper cannot start: {stats.start_error}", next_step=MEND)

    def status(self) -> dict[str, Any]:
        """What get_status and `doctor` tell."""
        trouble = self.trouble
        return {
            "engine": self._name,
            "state": "ready" if self._pool.stats().ready else "loading",
            "quality": self.quality,
            "trouble": None if trouble is None else trouble.public_text,
        }

    async def start(self) -> None:
        """Its pool is started with the others."""

    async def close(self) -> None:
        """And closed with them."""

    async def transcribe(self, piece: AudioPiece, *, language: str | None, job: str, deadline: Deadline) -> Hearing:
        """The words of one piece; see `Transcriber`. A piece that was begun is finished: loading takes longer."""
        params = {"path": str(piece.path), "language": language}
        left_s = deadline.remaining_s()
        try:
            async with asyncio.timeout(left_s):
                answer = await self._pool.run("transcribe", params, timeout_s=left_s, job=job, finish=True)
        except TimeoutError as error:
            raise WorkerError(
                "speech_timeout", "local Whisper was not done in the time there was", next_step="call again"
            ) from error
        said = [Said(**one) for one in answer["said"]]
        return hearing_of(said, piece.duration_s, language=language or answer["language"])


def packages_missing() -> list[str]:
    """Which packages of the extra [speech] are not installed."""
    return [name for name in PACKAGES if importlib.util.find_spec(name) is None]


def build_pool(weights: dict[str, Any], threads: int) -> ChildPool:
    """The one child that holds the model. No limit of address space: it only ever sees sound that we cut.

    Nor is it recycled for its size: the memory that it works in is meant to stay.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return ChildPool(
        "speech",
        CHILD_MODULE,
        size=1,
        config={"weights": weights, "threads": threads or cores},
        memory_limit_bytes=0,
        env=CHILD_ENV,
        recycle_growth_bytes=None,
        start_timeout_s=START_TIMEOUT_S,
        mend=MEND,
    )


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "absent"
