"""Reads the tiles of one page: text where the text layer has none, regions on all of it when labels are looked for.

Owns who is asked about which tile. Knows no PDF; what the tiles gave is put together by read_picture.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines.ports import TextReader, TileReading
from sam2_mcp_worker.fanout import Coverage, fan_out
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.pipelines.page_tiles import PageTile
from sam2_mcp_worker.pipelines.read_picture import (
    PictureReader,
    PictureReading,
    in_reading_order,
    merge,
    worth_keeping,
)
from sam2_mcp_worker.result_cache import ResultCache

# A page may take as long as its steps do; each of those has its own limit.
PAGE_LIMIT_S = 3600.0


@dataclass(frozen=True, slots=True)
class PageReaders:
    """Who reads the pages of a call.

    `text` reads what no text layer tells, and looks for `labels` there; `regions` looks for them where the text is
    known, and is None where no labels are looked for. `wanted` is the identity of the readings that the call is after:
    another one than `identity` while the local engine stands in for a provider in trouble.
    """

    text: TextReader
    regions: TextReader | None = None
    labels: tuple[str, ...] = ()
    wanted: str = ""

    @property
    def identity(self) -> str:
        """What decides a page's reading."""
        return joint_identity(self.text, self.regions)

    @property
    def stand_in(self) -> bool:
        """Whether these are not the readers that the call is after."""
        return self.wanted != self.identity

    @property
    def tiles_in_flight(self) -> int:
        """How many tiles of one page may be under way at once."""
        return self.text.tiles_in_flight


def joint_identity(text: TextReader, regions: TextReader | None) -> str:
    """One identity for both readers of a page."""
    return text.identity if regions is None else f"{text.identity} | {regions.identity}"


async def read_page_tiles(
    readers: PageReaders,
    cache: ResultCache,
    pixels: PixelFile,
    tiles: Sequence[PageTile],
    *,
    source_key: tuple[Any, ...],
    job: str,
    step_timeout_s: float,
) -> PictureReading:
    """All tiles, the lines in reading order. What could not be read is named, nothing is raised for it.

    `unread` holds only tiles whose text was wanted; where no region was looked for is in `unlooked`.
    """

    def picture_reader(reader: TextReader) -> PictureReader:
        return PictureReader(
            reader, cache, source_key=source_key, job=job, step_timeout_s=step_timeout_s, labels=readers.labels
        )

    text = picture_reader(readers.text)
    regions = text if readers.regions is None else picture_reader(readers.regions)
    keep = worth_keeping(readers.text, tiles)
    coverage: Coverage[int, TileReading] = Coverage(tuple(range(len(tiles))))

    async def work(index: int) -> TileReading:
        tile = tiles[index]
        return await (text if tile.text else regions).read_tile(pixels, tile.rect_xyxy_px, keep=keep)

    deadline = Deadline.after(PAGE_LIMIT_S)
    await fan_out(coverage, work, deadline=deadline, limit=readers.tiles_in_flight)
    if coverage.unreached:
        deadline.check("reading the rest of the page")
    rects = [tile.rect_xyxy_px for tile in tiles]
    merged = in_reading_order(await asyncio.to_thread(merge, rects, coverage, readers.labels))
    failed = sorted(coverage.failed.items())
    unread = tuple((rects[i], error.reason) for i, error in failed if tiles[i].text)
    # A tile whose text is known is missed by nobody but the regions: without this the page would count as complete.
    unlooked = next((error.reason for i, error in failed if not tiles[i].text), "")
    # Where only regions were wanted, nobody stood in: the local engine looks for none.
    read = {tile.rect_xyxy_px for tile in tiles if tile.text}
    return replace(
        merged,
        unread=unread,
        stood_in=tuple(area for area in merged.stood_in if area[0] in read),
        again=merged.again or unlooked,
    )
