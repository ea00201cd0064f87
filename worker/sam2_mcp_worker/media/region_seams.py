"""Puts the regions of overlapping tiles together: every object once, those cut by a seam in one piece.

Owns the rule by which two tiles' sights are of one object: of what both tiles saw, they say the same. Knows no pixels
and no engine. All boxes are in pixels of the whole picture.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import Field, dataclass, replace
from typing import Any, ClassVar, Protocol, TypeVar

from sam2_mcp_worker.media.boxes import area, overlap
from sam2_mcp_worker.media.tiling import Box


class Region(Protocol):
    """A dataclass with at least these fields; its other fields are kept as they are."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def label(self) -> str: ...
    @property
    def box_xyxy_px(self) -> Box: ...
    @property
    def confidence(self) -> float: ...
    @property
    def text_height_px(self) -> float | None: ...


class TextLine(Protocol):
    """Where a line stands and how high its text is."""

    @property
    def box_xyxy_px(self) -> Box: ...
    @property
    def height_px(self) -> float: ...


R = TypeVar("R", bound=Region)

# A model's box stops short of the edge that cuts the object, or of the object's own edge, by some px of a tile of
# 1,000-1,500 px.
EDGE_PX = 8
AGREE_IOU = 0.5  # of what both tiles saw; equal objects side by side share next to nothing
# Of a piece's own area: a tile that sees the end of an object may take it for less than it is.
PIECE_INSIDE = 0.8


@dataclass(frozen=True, slots=True)
class _Sight:
    """A region as one tile saw it. `open_box` goes on beyond the tile where the tile's edge cuts it."""

    tile: int
    number: int
    label: str
    box: Box
    open_box: Box

    @property
    def cut(self) -> bool:
        return self.box != self.open_box


def merge_regions(tiles: Sequence[Box], regions: Sequence[Sequence[R] | None]) -> list[R]:
    """Every object once: `regions[i]` are those that tile i saw, None for a tile where nobody looked.

    Sights of one object have the same label and come from different tiles: what one tile tells apart stays apart. Its
    box is that of the surest sight where all saw it whole, else the box around the pieces; its confidence the highest,
    its text height the smallest. Sorted from the top down.
    """
    sights = [
        _sight(region, tile, number, tiles)
        for tile, seen in enumerate(regions)
        for number, region in enumerate(seen or ())
    ]
    groups: dict[_Sight, set[_Sight]] = {sight: {sight} for sight in sights}
    # The best agreement first, so that an object meets itself and not its neighbour.
    for _, a, b in sorted(_agreeing(sights, tiles), key=lambda pair: (-pair[0], pair[1].box, pair[2].box)):
        one, other = groups[a], groups[b]
        if {sight.tile for sight in one}.isdisjoint(sight.tile for sight in other):
            one |= other
            for sight in other:
                groups[sight] = one
    once = {id(group): group for group in groups.values()}.values()
    merged = [_merged([(s, (regions[s.tile] or ())[s.number]) for s in group]) for group in once]
    return sorted(merged, key=lambda region: (region.box_xyxy_px[1::-1], region.box_xyxy_px, region.label))


def with_text_heights(regions: Sequence[R], lines: Sequence[TextLine]) -> list[R]:
    """The regions with the height of the smallest line whose centre lies in each; None where there is none.

    Lines of unknown height (0) say nothing.
    """
    return [
        replace(region, text_height_px=min(heights, default=None))
        for region in regions
        for heights in [[line.height_px for line in lines if line.height_px > 0 and _centred_in(line, region)]]
    ]


def _centred_in(line: TextLine, region: Region) -> bool:
    x0, y0, x1, y1 = line.box_xyxy_px
    left, top, right, bottom = region.box_xyxy_px
    return left <= (x0 + x1) / 2 < right and top <= (y0 + y1) / 2 < bottom


def _sight(region: Region, tile: int, number: int, tiles: Sequence[Box]) -> _Sight:
    inner = _inner_edges(tile, tiles)
    edges = []
    for side, (value, edge) in enumerate(zip(region.box_xyxy_px, tiles[tile], strict=True)):
        outwards = -EDGE_PX if side < 2 else EDGE_PX
        cut = inner[side] and (value <= edge + EDGE_PX if side < 2 else value >= edge - EDGE_PX)
        edges.append(edge + outwards if cut else value)
    return _Sight(tile, number, region.label, region.box_xyxy_px, (edges[0], edges[1], edges[2], edges[3]))


def _inner_edges(tile: int, tiles: Sequence[Box]) -> tuple[bool, bool, bool, bool]:
    """Which edges of the tile have other tiles beyond them."""
    x0, y0, x1, y1 = tiles[tile]
    return (
        x0 > min(t[0] for t in tiles),
        y0 > min(t[1] for t in tiles),
        x1 < max(t[2] for t in tiles),
        y1 < max(t[3] for t in tiles),
    )


def _agreeing(sights: Sequence[_Sight], tiles: Sequence[Box]) -> Iterator[tuple[float, _Sight, _Sight]]:
    """Pairs of sights of one object, with how well they agree."""
    by_top = sorted(sights, key=lambda sight: sight.open_box[1])
    tops = [sight.open_box[1] for sight in by_top]
    for i, a in enumerate(by_top):
        for b in by_top[i + 1 : bisect_left(tops, a.open_box[3], i + 1)]:
            if a.label == b.label and a.tile != b.tile:
                agreement = _agreement(a, b, _view(tiles[a.tile], tiles[b.tile]))
                if agreement >= AGREE_IOU:
                    yield agreement, a, b


def _view(a: Box, b: Box) -> Box:
    """What two tiles both saw, a little larger, so that tiles that only touch have something in common too."""
    return (
        max(a[0], b[0]) - EDGE_PX,
        max(a[1], b[1]) - EDGE_PX,
        min(a[2], b[2]) + EDGE_PX,
        min(a[3], b[3]) + EDGE_PX,
    )


def _agreement(a: _Sight, b: _Sight, view: Box) -> float:
    seen_a, seen_b = _clipped(a.open_box, view), _clipped(b.open_box, view)
    common = overlap(seen_a, seen_b)
    if not common:
        return 0.0
    iou = common / (area(seen_a) + area(seen_b) - common)
    inside = any(
        piece.cut and common >= PIECE_INSIDE * area(seen) and area(seen) <= area(other)
        for piece, seen, other in ((a, seen_a, seen_b), (b, seen_b, seen_a))
    )
    return max(iou, AGREE_IOU if inside else 0.0)


def _clipped(box: Box, view: Box) -> Box:
    return max(box[0], view[0]), max(box[1], view[1]), min(box[2], view[2]), min(box[3], view[3])


def _merged(group: Sequence[tuple[_Sight, R]]) -> R:
    best = max((region for _, region in group), key=lambda region: (region.confidence, region.box_xyxy_px))
    heights = [region.text_height_px for _, region in group if region.text_height_px is not None]
    boxes = [sight.box for sight, _ in group]
    whole = not any(sight.cut for sight, _ in group) and all(_iou(best.box_xyxy_px, box) >= AGREE_IOU for box in boxes)
    return replace(
        best,
        box_xyxy_px=best.box_xyxy_px if whole else _hull(boxes),
        text_height_px=min(heights, default=None),
    )


def _iou(a: Box, b: Box) -> float:
    common = overlap(a, b)
    return common / max(1.0, area(a) + area(b) - common)


def _hull(boxes: Sequence[Box]) -> Box:
    x0s, y0s, x1s, y1s = zip(*boxes, strict=True)
    return min(x0s), min(y0s), max(x1s), max(y1s)
