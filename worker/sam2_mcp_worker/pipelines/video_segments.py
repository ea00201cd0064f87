"""Reads the segments of a video: one is scanned after the other, and their frames are read side by side as they come.

Owns how many frames are under way at once, how much disk their raw pixels take, and what is kept of a segment that is
not finished. Knows no call: what of it is delivered when is inspect_video.py's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines.ports import TextReader
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.jobs import JOB_LIMIT_S, Job
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.tiling import plan_tiles
from sam2_mcp_worker.media.video import VideoFacts
from sam2_mcp_worker.media.video_scan import SCAN_VERSION, Sample, ScanPlan, SegmentEnd, scan_segment
from sam2_mcp_worker.pipelines.frame_looks import FrameLook, Span
from sam2_mcp_worker.pipelines.page_reading import PageReaders
from sam2_mcp_worker.pipelines.read_picture import PictureReader
from sam2_mcp_worker.pipelines.segment_looks import (
    FrameReading,
    SegmentLooks,
    collected,
    read_look,
    same_look,
    segment_from_json,
    segment_to_json,
)
from sam2_mcp_worker.pipelines.sheet_thumbs import SheetThumbs
from sam2_mcp_worker.pipelines.video_coverage import BegunSegment
from sam2_mcp_worker.pipelines.video_range import Segment, segment_of
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.spending import spend_scope
from sam2_mcp_worker.uploads import StoredFile

# Raise it whenever a segment's result has other fields or means something else: it is part of their cache keys.
RESULT_VERSION = 1
# Raw pixels that wait for a reader, beside what the scan writes ahead: 80 frames of 1080p, or 4 of 8K with 40 tiles.
FRAME_ROOM_BYTES = 512 * 2**20
BYTES_PER_PIXEL = 3


@dataclass(frozen=True, slots=True)
class VideoRequest:
    """The part of a video that one job looks at, and who reads it."""

    stored: StoredFile
    facts: VideoFacts
    asked: ScanPlan
    readers: PageReaders

    @property
    def size_px(self) -> tuple[int, int]:
        """Width and height of the upright frames."""
        return self.facts.width_px, self.facts.height_px


def frames_in_flight(request: VideoRequest) -> int:
    """As many as keep every reader busy though each frame have one tile, and no more than the room on disk allows."""
    frame_bytes = request.facts.width_px * request.facts.height_px * BYTES_PER_PIXEL
    return max(1, min(request.readers.text.tiles_in_flight, FRAME_ROOM_BYTES // frame_bytes))


class SegmentReader:
    """What the segments of one job share. `begun` holds those under way, by number."""

    def __init__(self, services: Services, request: VideoRequest, job: Job) -> None:
        self._services = services
        self._request = request
        self._job = job
        self._scanning = asyncio.Lock()
        self.begun: dict[int, SegmentWork] = {}
        self.in_flight = frames_in_flight(request)
        self._slots = asyncio.Semaphore(self.in_flight)
        size = request.size_px
        self._tiles = plan_tiles(*size, request.readers.text.tile_limit)
        self._timeout_s = services.settings.step_timeout_s
        self._thumbs = SheetThumbs(services, job)

    async def segment(self, number: int) -> SegmentLooks:
        """A segment, from the cache when it is complete there.

        One that the provider read whole is served though the local engine stands in for it now.

        Raises:
            WorkerError: the segment could not be scanned.
        """
        cache, readers = self._services.cache, self._request.readers
        segment = segment_of(self._request.asked, number)
        if readers.stand_in:
            paid = await asyncio.to_thread(cache.get, self._key(segment, readers.wanted))
            if paid is not None and _complete(paid):
                return segment_from_json(paid)

        async def compute() -> dict[str, Any]:
            return segment_to_json(await self._read(segment))

        data = await cache.get_or_compute(self._key(segment, readers.identity), compute, fresh=_complete)
        return await asyncio.to_thread(segment_from_json, data)

    def _key(self, segment: Segment, identity: str) -> str:
        asked = self._request.asked
        return cache_key(
            "video_segment",
            RESULT_VERSION,
            SCAN_VERSION,
            self._request.stored.sha256,
            [segment.start_s, segment.end_s, segment.count, asked.interval_s, asked.cuts],
            identity,
        )

    async def _read(self, segment: Segment) -> SegmentLooks:
        """Scan a segment when its turn comes; its frames are read while the next one is scanned."""
        with self._services.work_directory("frames") as folder, self._begin(segment) as work:
            failure: WorkerError | None = None
            async with asyncio.TaskGroup() as readings, self._scanning:
                try:
                    await self._scan(segment, folder, work, readings)
                except WorkerError as error:
                    failure = error  # what was sampled is read all the same: the next try finds it
            if failure is not None:
                raise failure
            return work.result()

    @contextmanager
    def _begin(self, segment: Segment) -> Iterator[SegmentWork]:
        work = self.begun[segment.number] = SegmentWork(segment)
        try:
            yield work
        finally:
            del self.begun[segment.number]

    async def _scan(self, segment: Segment, folder: Path, work: SegmentWork, readings: asyncio.TaskGroup) -> None:
        request = self._request
        found = scan_segment(
            self._services.scanner,
            request.stored.path,
            request.facts,
            request.asked,
            segment.first,
            segment.count,
            folder,
            timeout_s=self._timeout_s,
            job=self._job.key,
        )
        async with aclosing(found):
            async for sample in found:
                if isinstance(sample, SegmentEnd):
                    work.end = sample
                    return
                work.samples.append(sample)
                if sample.pixels is not None:
                    await self._slots.acquire()
                    task = readings.create_task(self._read_sample(sample, sample.pixels, work))
                    task.add_done_callback(lambda _: self._slots.release())

    async def _read_sample(self, sample: Sample, pixels: PixelFile, work: SegmentWork) -> None:
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._thumbs.keep(sample.time_s, pixels))
                work.readings[sample.index] = await self._reading(sample, pixels)
        finally:
            await asyncio.to_thread(pixels.path.unlink, missing_ok=True)

    async def _reading(self, sample: Sample, pixels: PixelFile) -> FrameReading:
        readers, place = self._request.readers, _place(sample)
        reader = self._picture_reader(readers.text, sample.time_s)
        # Frames that look the same are read once, so every reading is worth keeping.
        with spend_scope(self._job.spent, round(sample.time_s * 1000)):
            reading = await reader.read_all(pixels, self._tiles, Deadline.after(JOB_LIMIT_S), keep=True)
        return read_look(place, reading, tile_count=len(self._tiles), labels=bool(readers.labels))

    def _picture_reader(self, reader: TextReader, time_s: float) -> PictureReader:
        return PictureReader(
            reader,
            self._services.cache,
            source_key=("video", self._request.stored.sha256, round(time_s, 6), *self._request.size_px),
            job=self._job.key,
            step_timeout_s=self._timeout_s,
            labels=self._request.readers.labels,
        )


def _complete(data: dict[str, Any]) -> bool:
    return not data["again"]


def _place(sample: Sample) -> FrameLook:
    return FrameLook(sample.time_s, sample.kind, sample.until_s)


@dataclass(slots=True)
class SegmentWork:
    """A segment under way: its samples by now, and the readings of those that were read, by index."""

    segment: Segment
    samples: list[Sample] = field(default_factory=list)
    readings: dict[int, FrameReading] = field(default_factory=dict)
    end: SegmentEnd | None = None

    def _known(self, sample: Sample) -> FrameReading | None:
        """What is known of a sample; None as long as its pixels, or those that it shares, are being read."""
        if sample.same_as is not None:
            earlier = self.readings.get(sample.same_as)
            return None if earlier is None else FrameReading(same_look(_place(sample), earlier.look))
        if sample.pixels is None:
            return FrameReading(replace(_place(sample), failed=sample.lost))
        return self.readings.get(sample.index)

    def so_far(self) -> BegunSegment:
        """What is known without a gap from the beginning on."""
        looks: list[FrameLook] = []
        for sample in self.samples:
            reading = self._known(sample)
            if reading is None:
                break
            looks.append(reading.look)
        if not looks:
            return BegunSegment((), self.segment.start_s)
        return BegunSegment(tuple(looks), looks[-1].until_s or looks[-1].time_s)

    def result(self) -> SegmentLooks:
        """The whole segment; every sample is known."""
        known = [reading for sample in self.samples if (reading := self._known(sample)) is not None]
        assert self.end is not None and len(known) == len(self.samples), "the scan came to its end"
        failed = tuple(Span(start_s, end_s, reason) for start_s, end_s, reason in self.end.failed_s)
        return collected(known, failed, self.end.cuts_left_out)
