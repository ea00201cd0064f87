"""Reads the text of one image: tiles in parallel under one job; bands.py says which lines go into which call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sam2_mcp_worker.deadline import Deadline, current_deadline
from sam2_mcp_worker.engines.ports import Box, TextLine, TileReading
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.fanout import Coverage, fan_out
from sam2_mcp_worker.jobs import JOB_LIMIT_S, Job
from sam2_mcp_worker.media.image import decode_image
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.tiling import plan_tiles
from sam2_mcp_worker.pipelines.bands import deliver, from_cursor, settled_until_px, to_cursor
from sam2_mcp_worker.pipelines.image_facts import ImageFacts, describe_image
from sam2_mcp_worker.pipelines.read_picture import TILES_IN_FLIGHT, PictureReader, line_to_json, merge
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.uploads import StoredFile

TOOL = "read_text"
# A picture may hold hundreds of areas that nobody can read; their number is always told, their boxes up to this.
MAX_INK_BOXES = 100


@dataclass(frozen=True, slots=True)
class ImageReading:
    """What one call delivers. Ink that nobody could read comes with the first call of its band, boxes up to 100."""

    file: StoredFile
    image: ImageFacts
    coverage: Coverage[int, TileReading]
    lines: tuple[TextLine, ...]
    undetected_ink: int
    undetected_ink_boxes: list[Box]
    failed_areas: list[tuple[Box, str]]
    cursor: str | None


async def read_text(services: Services, source: str, cursor: str, max_lines: int) -> ImageReading:
    """Read or continue reading an image until the current deadline.

    Raises:
        WorkerError: the source or the cursor is wrong, the image cannot be decoded, or no tile could be read.
    """
    deadline = current_deadline()
    stored = await services.sources.resolve(source)
    key = cache_key(TOOL, stored.sha256, services.reader.identity)
    image = await describe_image(services, stored)
    tiles = plan_tiles(image.width_px, image.height_px)
    place = from_cursor(TOOL, key, cursor, len(tiles))

    async def start(job: Job) -> None:
        await _read_tiles(services, stored, job, tiles, key)

    async with services.jobs.join(key, tuple(range(1, len(tiles) + 1)), start) as job:
        await job.wait(deadline)
        _raise_for(job)
        coverage = _with_failed(job.coverage, place.failed)
        by_index: Coverage[int, TileReading] = Coverage(
            tuple(range(len(tiles))),
            {number - 1: value for number, value in coverage.done.items()},
            {number - 1: error for number, error in coverage.failed.items()},
        )
        merged = await asyncio.to_thread(merge, tiles, by_index)
    delivery = deliver(
        merged.lines,
        place,
        settled_px=settled_until_px(tiles, coverage.unreached, image.height_px),
        height_px=image.height_px,
        failed=frozenset(coverage.failed),
        fit=lambda lines: _fitting(lines, max_lines, services.settings.result_max_chars),
    )
    first_of_band = place.skip == 0
    # Areas of ink are united over tiles, so one may shrink when the next tile is read: whatever touches the band is
    # told, at the price of telling some twice.
    ink = [box for box in merged.undetected_ink if box[1] < delivery.until_y_px and box[3] > place.after_y_px]
    return ImageReading(
        stored,
        image,
        coverage,
        delivery.lines,
        len(ink) if first_of_band else 0,
        ink[:MAX_INK_BOXES] if first_of_band else [],
        list(merged.unread),
        to_cursor(TOOL, key, delivery.next_place),
    )


def _raise_for(job: Job) -> None:
    """Why nothing of the picture could be read, if so."""
    job.raise_error()
    coverage = job.coverage
    if coverage.failed and not coverage.done and not coverage.unreached:
        raise next(iter(coverage.failed.values()))


def _with_failed(coverage: Coverage[int, Any], failed: frozenset[int]) -> Coverage[int, Any]:
    """The coverage with those tiles as failed that an earlier call of the request delivered so."""
    done = {number: value for number, value in coverage.done.items() if number not in failed}
    before = {number: WorkerError("failed_before", "see the earlier result") for number in failed}
    return Coverage(coverage.items, done, before | coverage.failed)


async def _read_tiles(services: Services, stored: StoredFile, job: Job, tiles: list[Box], key: str) -> None:
    with services.work_directory("image") as workdir:
        image = await decode_image(
            services.decoders,
            stored.path,
            workdir / "image.rgb",
            max_pixels=services.settings.max_picture_pixels,
            timeout_s=services.settings.step_timeout_s,
            job=key,
        )
        reader = PictureReader(
            services.reader,
            services.cache,
            source_key=("image", stored.sha256),
            job=key,
            step_timeout_s=services.settings.step_timeout_s,
        )
        pixels: PixelFile = image.pixels

        async def work(number: int) -> TileReading:
            return await reader.read_tile(pixels, tiles[number - 1], keep=True)

        await fan_out(job.coverage, work, deadline=Deadline.after(JOB_LIMIT_S), limit=TILES_IN_FLIGHT)


def _fitting(lines: Sequence[TextLine], max_lines: int, max_chars: int) -> int:
    """How many lines the result holds, at least one, so that every call gets on."""
    left = max_chars
    for count, line in enumerate(lines[:max_lines]):
        left -= len(json.dumps(line_to_json(line), ensure_ascii=False))
        if left < 0 and count > 0:
            return count
    return min(len(lines), max_lines)
