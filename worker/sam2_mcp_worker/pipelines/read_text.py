"""Reads the text of one image: tiles in parallel, lines delivered from the top, each exactly once over the cursor.

Lines come in reading order within the band that is settled. A band ends at the top of the first tile that is not read
yet: no line above it can change any more, so a cursor that names the band's end never skips or repeats a line.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sam2_mcp_worker.cursors import decode_cursor, encode_cursor
from sam2_mcp_worker.deadline import Deadline, current_deadline
from sam2_mcp_worker.engines.ports import Box, TextLine, TileReading
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.fanout import Coverage, fan_out
from sam2_mcp_worker.jobs import Job
from sam2_mcp_worker.media.image import decode_image
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.reading_order import reading_order
from sam2_mcp_worker.media.tiling import plan_tiles
from sam2_mcp_worker.pipelines.read_picture import TILES_IN_FLIGHT, PictureReader, merge
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.uploads import StoredFile

TOOL = "read_text"
JOB_LIMIT_S = 24 * 3600.0
# JSON around one line: box, height, confidence, keys.
LINE_OVERHEAD_CHARS = 90


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """Size after EXIF rotation, and frames (only the first is read; None when a later one is damaged)."""

    width_px: int
    height_px: int
    frames: int | None


@dataclass(frozen=True, slots=True)
class ImageReading:
    """What one call delivers: lines `first_line`.. of the band, and what the whole picture is known to hold."""

    file: StoredFile
    image: ImageFacts
    coverage: Coverage[int, TileReading]
    lines: list[TextLine]
    undetected_ink: list[Box]
    failed_areas: list[tuple[Box, str]]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the last call stopped: lines end below `after_y_px`; `skip` of those up to `until_y_px` were delivered."""

    after_y_px: int = 0
    until_y_px: int | None = None
    skip: int = 0


async def read_text(services: Services, source: str, cursor: str | None, max_lines: int) -> ImageReading:
    """Read or continue reading an image until the current deadline.

    Raises:
        WorkerError: the source or the cursor is wrong, the image cannot be decoded, or no tile could be read.
    """
    deadline = current_deadline()
    stored = await services.sources.resolve(source)
    key = cache_key(TOOL, stored.sha256, services.reader.identity)
    place = _from_cursor(cursor, key)
    image = await _describe(services, stored, key)
    tiles = plan_tiles(image.width_px, image.height_px)

    async def start(job: Job) -> None:
        await _read_tiles(services, stored, job, tiles, key)

    async with services.jobs.join(key, tuple(range(1, len(tiles) + 1)), start) as job:
        await job.wait(deadline)
        if job.finished and job.task is not None and not job.task.cancelled() and (error := job.task.exception()):
            raise error
        return _deliver(services, stored, image, tiles, job.coverage, place, key, max_lines)


async def _describe(services: Services, stored: StoredFile, key: str) -> ImageFacts:
    """Size and frames; decodes once, so that what cannot be decoded fails here and by name."""

    async def compute() -> list[int | None]:
        with services.work_directory("image") as workdir:
            facts, _ = await _decode(services, stored, workdir, key)
        return [facts.width_px, facts.height_px, facts.frames]

    return ImageFacts(*await services.cache.get_or_compute(cache_key("image", stored.sha256), compute))


async def _decode(services: Services, stored: StoredFile, workdir: Path, job: str) -> tuple[ImageFacts, PixelFile]:
    image = await decode_image(
        services.decoders,
        stored.path,
        workdir / "image.rgb",
        max_pixels=services.settings.max_picture_pixels,
        timeout_s=services.settings.step_timeout_s,
        job=job,
    )
    return ImageFacts(image.pixels.width_px, image.pixels.height_px, image.frames), image.pixels


async def _read_tiles(services: Services, stored: StoredFile, job: Job, tiles: list[Box], key: str) -> None:
    with services.work_directory("image") as workdir:
        _, pixels = await _decode(services, stored, workdir, key)
        reader = PictureReader(
            services.reader,
            services.cache,
            source_key=("image", stored.sha256),
            job=key,
            step_timeout_s=services.settings.step_timeout_s,
        )

        async def work(number: int) -> TileReading:
            return await reader.read_tile(pixels, tiles[number - 1], keep=True)

        await fan_out(job.coverage, work, deadline=Deadline.after(JOB_LIMIT_S), limit=TILES_IN_FLIGHT)


def settled_until_px(tiles: list[Box], unreached: tuple[int, ...], height_px: int) -> int:
    """The y up to which nothing can change any more: the top of the first tile that is not read."""
    return min((tiles[number - 1][1] for number in unreached), default=height_px)


def _deliver(
    services: Services,
    stored: StoredFile,
    image: ImageFacts,
    tiles: list[Box],
    coverage: Coverage[int, TileReading],
    place: _Place,
    key: str,
    max_lines: int,
) -> ImageReading:
    by_index: Coverage[int, TileReading] = Coverage(
        tuple(range(len(tiles))),
        {number - 1: value for number, value in coverage.done.items()},
        {number - 1: error for number, error in coverage.failed.items()},
    )
    merged = merge(tiles, by_index)
    settled = settled_until_px(tiles, coverage.unreached, image.height_px)
    until = place.until_y_px if place.until_y_px is not None else settled
    band = [line for line in merged.lines if place.after_y_px < line.box_xyxy_px[3] <= until]
    ordered = [band[index] for index in reading_order([line.box_xyxy_px for line in band])][place.skip :]
    lines = _fitting(ordered, max_lines, services.settings.result_max_chars)
    if len(lines) < len(ordered):
        next_place: _Place | None = _Place(place.after_y_px, until, place.skip + len(lines))
    elif until < image.height_px or coverage.unreached:
        next_place = _Place(until)
    else:
        next_place = None
    known_until = until if next_place is not None else image.height_px
    return ImageReading(
        stored,
        image,
        coverage,
        lines,
        [box for box in merged.undetected_ink if place.after_y_px < box[3] <= known_until],
        list(merged.unread),
        _to_cursor(next_place, key),
    )


def _fitting(lines: list[TextLine], max_lines: int, max_chars: int) -> list[TextLine]:
    """As many lines as the result holds, at least one, so that every call gets on."""
    left = max_chars
    for count, line in enumerate(lines[:max_lines]):
        left -= len(line.text) + LINE_OVERHEAD_CHARS
        if left < 0 and count > 0:
            return lines[:count]
    return lines[:max_lines]


def _to_cursor(place: _Place | None, key: str) -> str | None:
    if place is None:
        return None
    state: dict[str, Any] = {"y": place.after_y_px, "s": place.skip}
    if place.until_y_px is not None:
        state["u"] = place.until_y_px
    return encode_cursor(TOOL, key, state)


def _from_cursor(cursor: str | None, key: str) -> _Place:
    if cursor is None or not cursor.strip():
        return _Place()
    state = decode_cursor(cursor, TOOL, key)
    try:
        until = int(state["u"]) if "u" in state else None
        return _Place(max(0, int(state["y"])), until, max(0, int(state["s"])))
    except (KeyError, TypeError, ValueError) as error:
        raise WorkerError(
            "cursor_invalid", "the cursor is damaged", next_step="repeat the call without cursor to start again"
        ) from error
