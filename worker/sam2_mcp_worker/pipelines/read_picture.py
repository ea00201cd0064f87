"""Reads all text of one decoded picture, tile by tile, in parallel. Pages and images both come through here."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines.ports import Box, TextLine, TextReader, TileReading
from sam2_mcp_worker.fanout import Coverage, fan_out
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.reading_order import reading_order
from sam2_mcp_worker.media.seams import merge_readings
from sam2_mcp_worker.result_cache import ResultCache, cache_key

# Tiles in flight for one picture; the pool runs as many as it has children, the rest wait ready in its queue.
TILES_IN_FLIGHT = 8
# A picture of this many tiles may outlive a call, so its tiles are kept one by one (a page of 4 is kept whole).
TILES_WORTH_KEEPING = 5


@dataclass(frozen=True, slots=True)
class PictureReading:
    """Lines, ink that no line explains, and the rectangles that could not be read, with reasons."""

    lines: tuple[TextLine, ...]
    undetected_ink: tuple[Box, ...]
    unread: tuple[tuple[Box, str], ...]


class PictureReader:
    """A reader with its cache, for one picture at a time.

    Args:
        source_key: what identifies the pixels (content hash, page, scale); part of the tiles' cache keys.
        job: fair-queue key.
        step_timeout_s: hard limit of one tile.
    """

    def __init__(
        self, reader: TextReader, cache: ResultCache, *, source_key: tuple[Any, ...], job: str, step_timeout_s: float
    ) -> None:
        self._reader = reader
        self._cache = cache
        self._source_key = source_key
        self._job = job
        self._step_timeout_s = step_timeout_s

    async def read_tile(self, pixels: PixelFile, rect: Box, *, keep: bool) -> TileReading:
        """One tile, from the cache when it is worth keeping."""
        if not keep:
            return await self._reader.read_tile(pixels, rect, job=self._job, timeout_s=self._step_timeout_s)
        key = cache_key("tile", *self._source_key, list(rect), self._reader.identity)

        async def compute() -> dict[str, Any]:
            return tile_to_json(
                await self._reader.read_tile(pixels, rect, job=self._job, timeout_s=self._step_timeout_s)
            )

        return tile_from_json(await self._cache.get_or_compute(key, compute))

    async def read_all(
        self, pixels: PixelFile, tiles: list[Box], deadline: Deadline, *, keep: bool | None = None
    ) -> PictureReading:
        """All tiles, the lines in reading order; what failed is named. A deadline that cuts the work short raises.

        With `keep` False nothing is cached: for pictures that are looked at once. None decides by their number.

        Raises:
            WorkerError: `deadline`.
        """
        coverage: Coverage[int, TileReading] = Coverage(tuple(range(len(tiles))))
        keeps = len(tiles) >= TILES_WORTH_KEEPING if keep is None else keep

        async def work(index: int) -> TileReading:
            return await self.read_tile(pixels, tiles[index], keep=keeps)

        await fan_out(coverage, work, deadline=deadline, limit=TILES_IN_FLIGHT)
        if coverage.unreached:
            deadline.check("reading the rest of the picture")
        merged = await asyncio.to_thread(merge, tiles, coverage)
        order = reading_order([line.box_xyxy_px for line in merged.lines])
        return PictureReading(tuple(merged.lines[i] for i in order), merged.undetected_ink, merged.unread)


def merge(tiles: list[Box], coverage: Coverage[int, TileReading]) -> PictureReading:
    """One reading from those tiles that are done, with the failed ones as unread."""
    merged = merge_readings(tiles, [coverage.done.get(i) for i in range(len(tiles))])
    unread = tuple((tiles[i], error.reason) for i, error in sorted(coverage.failed.items()))
    return PictureReading(merged.lines, merged.undetected_ink, unread)


def tile_to_json(reading: TileReading) -> dict[str, Any]:
    """JSON form for the cache."""
    return {
        "lines": [line_to_json(line) for line in reading.lines],
        "ink": [list(box) for box in reading.undetected_ink],
    }


def tile_from_json(data: dict[str, Any]) -> TileReading:
    """The inverse of `tile_to_json`."""
    return TileReading(tuple(line_from_json(line) for line in data["lines"]), tuple(to_box(box) for box in data["ink"]))


def line_to_json(line: TextLine) -> dict[str, Any]:
    """JSON form of a line."""
    return {
        "text": line.text,
        "box": list(line.box_xyxy_px),
        "height_px": line.height_px,
        "confidence": line.confidence,
    }


def line_from_json(data: dict[str, Any]) -> TextLine:
    """The inverse of `line_to_json`."""
    return TextLine(data["text"], to_box(data["box"]), float(data["height_px"]), float(data["confidence"]))


def to_box(values: list[int]) -> Box:
    """Four numbers as a box."""
    x0, y0, x1, y1 = values
    return x0, y0, x1, y1
