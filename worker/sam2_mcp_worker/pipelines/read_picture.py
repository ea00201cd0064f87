"""Reads one decoded picture, tile by tile, in parallel. Pages and images both come through here.

Owns what becomes of the tiles: kept, put together, and said where something is missing. Knows no engine.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines.ports import Box, Region, TextLine, TextReader, TileReading
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.fanout import Coverage, fan_out
from sam2_mcp_worker.media.level_boxes import order_of_lines
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.region_seams import merge_regions, with_text_heights
from sam2_mcp_worker.media.seams import merge_readings
from sam2_mcp_worker.result_cache import ResultCache, cache_key

# A picture of this many tiles may outlive a call, so its tiles are kept one by one (a page of 4 is kept whole).
TILES_WORTH_KEEPING = 5
CUT = "the answer was cut, there may be more"
NOT_LOOKED = "nobody looked for regions here"

Area = tuple[Box, str]
"""A rectangle of the picture and the reason why something of it is missing."""


@dataclass(frozen=True, slots=True)
class PictureReading:
    """What was read, and every rectangle where something may be missing, with the reason.

    `unread` could not be read at all. `unlooked` are those in which regions may have been missed; it and `regions` are
    empty when no labels were asked for. `truncated` are tiles whose answer was cut, `stood_in` those that the local
    engine read instead of the provider. `dropped` counts items of answers that made no sense, `invented` lines that
    were left out since they stand on bare paper. `again` says why another attempt may give more, empty when it cannot.
    """

    lines: tuple[TextLine, ...]
    undetected_ink: tuple[Box, ...]
    unread: tuple[Area, ...]
    regions: tuple[Region, ...] = ()
    unlooked: tuple[Area, ...] = ()
    truncated: tuple[Box, ...] = ()
    dropped: int = 0
    invented: int = 0
    stood_in: tuple[Area, ...] = ()
    again: str = ""

    def notes(self, tile_count: int) -> list[str]:
        """What an agent should know of how it was read, one sentence a reason."""
        notes = [
            f"{count} of {tile_count} tiles were read by the local engine instead of the vision provider: {reason}"
            for reason, count in Counter(reason for _, reason in self.stood_in).items()
        ]
        if self.truncated:
            notes.append(
                f"the answer for {len(self.truncated)} of {tile_count} tiles was cut: "
                "print that it did not come to is among undetected_ink"
            )
        if self.dropped:
            notes.append(f"{self.dropped} items of the vision provider's answers made no sense and were left out")
        if self.invented:
            notes.append(f"{self.invented} lines were left out: there is bare paper where they were said to stand")
        if self.again:
            told = any(self.again == reason for _, reason in self.stood_in)
            notes.append("calling again later may give more" + ("" if told else f": {self.again}"))
        return notes


class PictureReader:
    """A reader with its cache, for one picture at a time.

    Args:
        source_key: what identifies the pixels (content hash, page, scale); part of the tiles' cache keys.
        job: fair-queue key.
        step_timeout_s: hard limit of one native step.
        labels: what regions the reader was asked for.
    """

    def __init__(
        self,
        reader: TextReader,
        cache: ResultCache,
        *,
        source_key: tuple[Any, ...],
        job: str,
        step_timeout_s: float,
        labels: Sequence[str] = (),
    ) -> None:
        self._reader = reader
        self._cache = cache
        self._source_key = source_key
        self._job = job
        self._step_timeout_s = step_timeout_s
        self._labels = labels

    async def read_tile(self, pixels: PixelFile, rect: Box, *, keep: bool) -> TileReading:
        """One tile, from the cache when it is worth keeping.

        One that may be read better is read again; where that fails, the provider's part of before is better than none.
        """
        if not keep:
            return await self._read(pixels, rect)
        key = cache_key("tile", *self._source_key, list(rect), self._reader.identity)

        async def compute() -> dict[str, Any]:
            before: dict[str, Any] | None = await asyncio.to_thread(self._cache.get, key)
            paid = None if before is None or before.get("stood_in") else before
            try:
                reading = await self._read(pixels, rect)
            except WorkerError:
                if paid is None:
                    raise
                return paid
            return paid if paid is not None and reading.stood_in else tile_to_json(reading)

        return tile_from_json(await self._cache.get_or_compute(key, compute, fresh=lambda tile: not tile.get("again")))

    async def _read(self, pixels: PixelFile, rect: Box) -> TileReading:
        return await self._reader.read_tile(pixels, rect, job=self._job, timeout_s=self._step_timeout_s)

    async def read_all(
        self, pixels: PixelFile, tiles: list[Box], deadline: Deadline, *, keep: bool | None = None
    ) -> PictureReading:
        """All tiles, the lines in reading order; what failed is named. A deadline that cuts the work short raises.

        With `keep` False nothing is cached: for pictures that are looked at once. None decides by their number, and by
        whether reading costs money.

        Raises:
            WorkerError: `deadline`.
        """
        coverage: Coverage[int, TileReading] = Coverage(tuple(range(len(tiles))))
        keeps = worth_keeping(self._reader, tiles) if keep is None else keep

        async def work(index: int) -> TileReading:
            return await self.read_tile(pixels, tiles[index], keep=keeps)

        await fan_out(coverage, work, deadline=deadline, limit=self._reader.tiles_in_flight)
        if coverage.unreached:
            deadline.check("reading the rest of the picture")
        return in_reading_order(await asyncio.to_thread(merge, tiles, coverage, self._labels))


def worth_keeping(reader: TextReader, tiles: Sequence[Any]) -> bool:
    """Whether a picture's tiles are kept one by one: where reading costs money, or takes long."""
    return reader.costs_money or len(tiles) >= TILES_WORTH_KEEPING


def in_reading_order(reading: PictureReading) -> PictureReading:
    """The same with its lines in the order in which people read them."""
    order = order_of_lines([(line.box_xyxy_px, line.height_px) for line in reading.lines])
    return replace(reading, lines=tuple(reading.lines[i] for i in order))


def merge(tiles: Sequence[Box], coverage: Coverage[int, TileReading], labels: Sequence[str] = ()) -> PictureReading:
    """One reading from those tiles that are done, with the failed ones as unread; lines from the top down.

    Tiles are numbered from 0. Those not settled yet are in no list: the coverage tells them.
    """
    readings = [coverage.done.get(i) for i in range(len(tiles))]
    merged = merge_readings(tiles, readings)
    done = [(tile, reading) for tile, reading in zip(tiles, readings, strict=True) if reading is not None]
    unread = tuple((tiles[i], error.reason) for i, error in sorted(coverage.failed.items()))
    regions = merge_regions(tiles, [reading.regions if reading else None for reading in readings])
    return PictureReading(
        merged.lines,
        merged.undetected_ink,
        unread,
        regions=tuple(with_text_heights(regions, merged.lines)),
        unlooked=(*_unlooked(done), *unread) if labels else (),
        truncated=tuple(tile for tile, reading in done if reading.truncated),
        dropped=sum(reading.dropped for _, reading in done),
        invented=sum(reading.invented for _, reading in done),
        stood_in=tuple((tile, reading.stood_in) for tile, reading in done if reading.stood_in),
        again=next((reading.again for _, reading in done if reading.again), ""),
    )


def _unlooked(done: Sequence[tuple[Box, TileReading]]) -> list[Area]:
    missing = [(tile, r.stood_in or r.again or NOT_LOOKED) for tile, r in done if r.regions is None]
    seen = [(tile, r) for tile, r in done if r.regions is not None]
    cut = [(tile, CUT) for tile, r in seen if r.truncated]
    senseless = [(tile, f"{r.dropped} items of the answer made no sense") for tile, r in seen if r.dropped]
    return [*missing, *cut, *senseless]


def tile_to_json(reading: TileReading) -> dict[str, Any]:
    """JSON form for the cache."""
    return {
        "lines": [line_to_json(line) for line in reading.lines],
        "ink": [list(box) for box in reading.undetected_ink],
        "regions": None if reading.regions is None else [region_to_json(region) for region in reading.regions],
        "truncated": reading.truncated,
        "again": reading.again,
        "stood_in": reading.stood_in,
        "dropped": reading.dropped,
        "invented": reading.invented,
    }


def tile_from_json(data: dict[str, Any]) -> TileReading:
    """The inverse of `tile_to_json`; readings of before there were regions are read too."""
    regions = data.get("regions")
    return TileReading(
        tuple(line_from_json(line) for line in data["lines"]),
        tuple(to_box(box) for box in data["ink"]),
        None if regions is None else tuple(region_from_json(region) for region in regions),
        truncated=data.get("truncated", False),
        again=data.get("again", ""),
        stood_in=data.get("stood_in", ""),
        dropped=data.get("dropped", 0),
        invented=data.get("invented", 0),
    )


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


def region_to_json(region: Region) -> dict[str, Any]:
    """JSON form of a region."""
    return {
        "label": region.label,
        "box": list(region.box_xyxy_px),
        "confidence": region.confidence,
        "text_height_px": region.text_height_px,
    }


def region_from_json(data: dict[str, Any]) -> Region:
    """The inverse of `region_to_json`."""
    return Region(data["label"], to_box(data["box"]), float(data["confidence"]), data["text_height_px"])


def to_box(values: list[int]) -> Box:
    """Four numbers as a box."""
    x0, y0, x1, y1 = values
    return x0, y0, x1, y1
