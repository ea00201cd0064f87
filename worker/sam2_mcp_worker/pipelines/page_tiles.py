"""Which rectangles of a page are looked at, and for what. Pure: boxes in, boxes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sam2_mcp_worker.engines.ports import Box

# Models read pictures with a side below 200 px worse (reference/mcp.md 8): a line's rectangle is given surroundings.
MIN_SIDE_PX = 256


@dataclass(frozen=True, slots=True)
class PageTile:
    """A rectangle of the page. `text`: its text is wanted, because the text layer does not have it (all of it)."""

    rect_xyxy_px: Box
    text: bool = True


def tiles_of_areas(plan: Sequence[Box], areas: Sequence[Box], *, one_each: bool) -> list[PageTile]:
    """Tiles for a page of which only `areas`, each inside some tile of `plan`, are to be read.

    Each area is a tile by itself, unless `one_each`: then every tile of the plan that holds areas gives one rectangle
    around them, because each rectangle is a request that is paid for.
    """
    if not one_each:
        return [PageTile(area) for area in areas]
    rects = [_around(own, tile) for tile, own in zip(plan, _by_tile(plan, areas), strict=True) if own]
    return [PageTile(rect) for rect in rects]


def tiles_of_whole_page(plan: Sequence[Box], areas: Sequence[Box]) -> list[PageTile]:
    """The whole plan, for a page that is looked at for regions; the text of those tiles is wanted that hold areas."""
    return [PageTile(tile, bool(own)) for tile, own in zip(plan, _by_tile(plan, areas), strict=True)]


def _by_tile(plan: Sequence[Box], areas: Sequence[Box]) -> list[list[Box]]:
    """The areas of each tile; one that lies in several belongs to the first."""
    owned: list[list[Box]] = [[] for _ in plan]
    for area in areas:
        owned[next(index for index, tile in enumerate(plan) if _holds(tile, area))].append(area)
    return owned


def _holds(tile: Box, area: Box) -> bool:
    return tile[0] <= area[0] and tile[1] <= area[1] and tile[2] >= area[2] and tile[3] >= area[3]


def _around(areas: Sequence[Box], tile: Box) -> Box:
    """The box around all areas, grown to `MIN_SIDE_PX` as far as the tile goes."""
    x0, x1 = _grown(min(area[0] for area in areas), max(area[2] for area in areas), tile[0], tile[2])
    y0, y1 = _grown(min(area[1] for area in areas), max(area[3] for area in areas), tile[1], tile[3])
    return x0, y0, x1, y1


def _grown(start: int, end: int, lowest: int, highest: int) -> tuple[int, int]:
    missing = max(0, MIN_SIDE_PX - (end - start))
    start = max(lowest, start - missing // 2)
    end = min(highest, max(end, start + MIN_SIDE_PX))
    return max(lowest, min(start, end - MIN_SIDE_PX)), end
