"""One image read tile by tile under one job, for every tool that reads images: which reader, which tiles, what so far.

Owns the way from a source to a reading that grows. What of it goes into which call's result is the tools' own matter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sam2_mcp_worker.cursors import belongs
from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines.ports import Box, TextReader, TileReading, Wanted
from sam2_mcp_worker.engines.vision_errors import VisionError
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.fanout import Coverage, fan_out
from sam2_mcp_worker.jobs import JOB_LIMIT_S, Job, JobVisit
from sam2_mcp_worker.media.image import decode_image
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.tiling import plan_tiles
from sam2_mcp_worker.pipelines.image_facts import ImageFacts, describe_image
from sam2_mcp_worker.pipelines.read_picture import PictureReader, PictureReading, merge
from sam2_mcp_worker.pipelines.reading_choice import Mode, ReadingChoice, choose_reading, vision_tiles
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.spending import spend_scope
from sam2_mcp_worker.uploads import StoredFile

Beside = Callable[[Job, PixelFile, Path], Coroutine[Any, Any, None]]
"""What a tool does with the decoded picture, in a work directory, while the job's tiles are read and after that."""


@dataclass(frozen=True, slots=True)
class PictureJob:
    """One request for one image. `key` identifies it in cursors; tiles are numbered from 1 in coverages."""

    services: Services
    stored: StoredFile
    image: ImageFacts
    choice: ReadingChoice
    tiles: list[Box]
    key: str

    def join(self, *, retry: bool, beside: Beside | None = None) -> JobVisit:
        """Take part in the reading. With `retry` what failed, or may be read better now, is read again."""
        items = tuple(range(1, len(self.tiles) + 1))
        return self.services.jobs.join(self.key, items, lambda job: self._run(job, beside), retry=retry)

    async def reading(self, job: Job, failed: frozenset[int]) -> tuple[Coverage[int, Any], PictureReading]:
        """What is read by now. `failed` are tiles that an earlier call of the request delivered as failed.

        Raises:
            WorkerError: nothing of the picture could be read.
        """
        _raise_for(job)
        coverage = _with_failed(job.coverage, failed)
        merged = await self.merged(coverage)
        job.again = bool(merged.again)
        return coverage, merged

    async def merged(self, coverage: Coverage[int, Any]) -> PictureReading:
        """One reading of the picture from what is settled."""
        by_index: Coverage[int, TileReading] = Coverage(
            tuple(range(len(self.tiles))),
            {number - 1: value for number, value in coverage.done.items()},
            {number - 1: error for number, error in coverage.failed.items()},
        )
        return await asyncio.to_thread(merge, self.tiles, by_index, self.choice.labels)

    def notes(self, merged: PictureReading) -> list[str]:
        """What to say of how it was read."""
        return [*self.choice.notes, *merged.notes(len(self.tiles))]

    async def _run(self, job: Job, beside: Beside | None) -> None:
        services, settings = self.services, self.services.settings
        with services.work_directory("image") as workdir:
            image = await decode_image(
                services.decoders,
                self.stored.path,
                workdir / "image.rgb",
                max_pixels=settings.max_picture_pixels,
                timeout_s=settings.step_timeout_s,
                job=self.key,
            )
            if beside is None:
                await self._read_tiles(job, image.pixels)
                return
            async with asyncio.TaskGroup() as tasks:
                task = tasks.create_task(beside(job, image.pixels, workdir))
                await self._read_tiles(job, image.pixels)
                if not job.coverage.complete:
                    task.cancel()  # it waits for tiles that nobody reads any more

    async def _read_tiles(self, job: Job, pixels: PixelFile) -> None:
        reader = PictureReader(
            self.choice.reader,
            self.services.cache,
            source_key=("image", self.stored.sha256),
            job=self.key,
            step_timeout_s=self.services.settings.step_timeout_s,
            labels=self.choice.labels,
        )

        async def work(number: int) -> TileReading:
            with spend_scope(job.spent, number):
                return await reader.read_tile(pixels, self.tiles[number - 1], keep=True)

        limit = self.choice.reader.tiles_in_flight
        await fan_out(job.coverage, work, deadline=Deadline.after(JOB_LIMIT_S), limit=limit)


async def open_picture(
    services: Services, tool: str, source: str, *, cursor: str, mode: Mode, wanted: Wanted, version: object = None
) -> PictureJob:
    """Find the image, choose its reader and plan its tiles. A request goes on with the reader that it began with.

    Args:
        version: whatever else decides what the tool's cursors mean; part of the key.

    Raises:
        WorkerError: the source is wrong or no picture that can be decoded.
    """
    stored = await services.sources.resolve(source)

    def fits(key: str) -> bool:
        return belongs(cursor, tool, key)

    return await picture_of(services, tool, stored, mode=mode, wanted=wanted, fits=fits, version=version)


async def picture_of(
    services: Services,
    tool: str,
    stored: StoredFile,
    *,
    mode: Mode,
    wanted: Wanted,
    fits: Callable[[str], bool],
    version: object = None,
) -> PictureJob:
    """As `open_picture`, for a stored file.

    Args:
        fits: whether the request began under this key, and so with the reader that it stands for.

    Raises:
        WorkerError: no picture that can be decoded.
    """
    image = await describe_image(services, stored)

    def key_of(reader: TextReader) -> str:
        return cache_key(tool, stored.sha256, reader.identity, *([] if version is None else [version]))

    choice = choose_reading(
        services,
        mode,
        len(plan_tiles(image.width_px, image.height_px, vision_tiles(services.settings))),
        wanted,
        cursor_fits=lambda reader: fits(key_of(reader)),
    )
    tiles = plan_tiles(image.width_px, image.height_px, choice.reader.tile_limit)
    return PictureJob(services, stored, image, choice, tiles, key_of(choice.reader))


def _raise_for(job: Job) -> None:
    """Why nothing of the picture could be read, if so.

    A provider that is busy is no error of the call: its tiles are told as failed, with what they cost.
    """
    job.raise_error()
    coverage = job.coverage
    errors = list(coverage.failed.values())
    if errors and not coverage.done and not coverage.unreached and not isinstance(errors[0], VisionError):
        raise errors[0]


def _with_failed(coverage: Coverage[int, Any], failed: frozenset[int]) -> Coverage[int, Any]:
    """The coverage with those tiles as failed that an earlier call of the request delivered so."""
    done = {number: value for number, value in coverage.done.items() if number not in failed}
    before = {number: WorkerError("failed_before", "see the earlier result") for number in failed}
    return Coverage(coverage.items, done, before | coverage.failed)
