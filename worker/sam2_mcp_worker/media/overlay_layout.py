"""Where things go on an overlay sheet: pieces of the page, then number tags. Pure arithmetic on boxes and masks.

A page much taller than wide is cut into columns that stand side by side, read from left to right (a wide banner: into
rows, read from the top), because one 1916 x 19983 px page scaled to a 1,600 px side would be 153 px wide. A number
tag goes where it covers neither text nor another tag: beside its box, else into the margin with a line to its box.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Rect = tuple[int, int, int, int]
"""x0, y0, x1, y1 in pixels, x1 and y1 exclusive."""

# Two pieces must be this much larger than one before the page is cut: a cut costs the eye more than a few per cent.
CUT_GAIN = 1.3
MAX_PIECES = 12
# How far a cut may move to miss the boxes, as a share of a piece's length.
CUT_WINDOW_SHARE = 0.08
TAG_GAP_PX = 3


@dataclass(frozen=True, slots=True)
class Piece:
    """A rectangle of the page and where it stands on the sheet."""

    source: Rect
    target: Rect

    def place(self, box: Rect) -> Rect | None:
        """The box on the sheet, clipped to this piece; None if it lies outside."""
        sx0, sy0, sx1, sy1 = self.source
        tx0, ty0, tx1, ty1 = self.target
        x0, y0, x1, y1 = max(box[0], sx0), max(box[1], sy0), min(box[2], sx1), min(box[3], sy1)
        if x1 <= x0 or y1 <= y0:
            return None
        kx, ky = (tx1 - tx0) / (sx1 - sx0), (ty1 - ty0) / (sy1 - sy0)
        return (
            math.floor(tx0 + (x0 - sx0) * kx),
            math.floor(ty0 + (y0 - sy0) * ky),
            math.ceil(tx0 + (x1 - sx0) * kx),
            math.ceil(ty0 + (y1 - sy0) * ky),
        )


@dataclass(frozen=True, slots=True)
class Sheet:
    """The whole picture: its size, and its pieces with a margin of `margin_px` left and right of each."""

    width_px: int
    height_px: int
    margin_px: int
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class _Room:
    """What a sheet offers to pieces: along their length, across all of them, and what stays free beside each."""

    along_px: int
    across_px: int
    beside_px: int
    page_across_px: int

    def scale(self, count: int, longest: float) -> float:
        """The factor at which `count` pieces fit, the longest of them `longest` px long; 1 at most."""
        across = self.across_px - count * self.beside_px
        return min(1.0, self.along_px / longest, across / (count * self.page_across_px))

    def best_count(self, page_along_px: int) -> int:
        """How many pieces make the picture largest."""
        best = max(range(1, MAX_PIECES + 1), key=lambda count: self.scale(count, page_along_px / count))
        gain = self.scale(best, page_along_px / best) / self.scale(1, page_along_px)
        return best if gain >= CUT_GAIN else 1


def lay_out_sheet(size_px: tuple[int, int], boxes: list[Rect], max_side_px: int, margin_px: int, foot_px: int) -> Sheet:
    """Cut and scale a page so that the sheet is at most `max_side_px` wide and high. Pages are never enlarged.

    A page so thin that it would vanish keeps 1 px, and may pass the limit by as much. The margins and the foot must
    leave room, so `max_side_px` is at least 200 here.
    """
    width, height = size_px
    tall = height >= width
    if tall:
        along, room = height, _Room(max_side_px - foot_px, max_side_px, 2 * margin_px, width)
    else:
        along, room = width, _Room(max_side_px - 2 * margin_px, max_side_px - foot_px, 0, height)
    sources = _sources(room.best_count(along), along, boxes, tall)
    factor = room.scale(len(sources), max(end - start for start, end in sources))
    step = max(1, math.floor(room.page_across_px * factor))
    pieces = []
    for index, (start, end) in enumerate(sources):
        span = max(1, math.floor((end - start) * factor))
        if tall:
            x = margin_px + index * (step + 2 * margin_px)
            pieces.append(Piece((0, start, width, end), (x, 0, x + step, span)))
        else:
            y = index * step
            pieces.append(Piece((start, 0, end, height), (margin_px, y, margin_px + span, y + step)))
    right, bottom = (max(piece.target[edge] for piece in pieces) for edge in (2, 3))
    return Sheet(right + margin_px, bottom + foot_px, margin_px, tuple(pieces))


def _sources(count: int, along: int, boxes: list[Rect], tall: bool) -> list[tuple[int, int]]:
    covered = np.zeros(along + 1, dtype=np.bool_)
    for box in boxes:
        start, end = (box[1], box[3]) if tall else (box[0], box[2])
        covered[max(0, start + 1) : max(0, end)] = True
    window = int(along / count * CUT_WINDOW_SHARE)
    cuts = [0, *(_free_cut(covered, along * index // count, window) for index in range(1, count)), along]
    return [(start, end) for start, end in pairwise(cuts) if end > start]


def _free_cut(covered: NDArray[np.bool_], wanted: int, window: int) -> int:
    """The free position next to `wanted`, or `wanted` itself if every position in the window would cut a box."""
    start = max(0, wanted - window)
    free = np.flatnonzero(~covered[start : wanted + window + 1])
    if not free.size:
        return wanted
    return int(start + free[np.argmin(np.abs(free + start - wanted))])


class TagPlacer:
    """Gives number tags places that hide nothing. `busy` is True where there is ink or a box; placed tags are added."""

    def __init__(self, busy: NDArray[np.bool_]) -> None:
        self._busy = busy

    def beside(self, box: Rect, size: tuple[int, int], within: Rect) -> Rect | None:
        """A free place that touches the box, inside the rectangle `within`; None if there is none."""
        x0, y0, x1, y1 = box
        width, height = size
        middle = (y0 + y1 - height) // 2
        left, right = x0 - width - TAG_GAP_PX, x1 + TAG_GAP_PX
        above, below = y0 - height - TAG_GAP_PX, y1 + TAG_GAP_PX
        for x, y in (
            (left, middle),
            (right, middle),
            (x0, above),
            (x0, below),
            (x1 - width, above),
            (x1 - width, below),
        ):
            rect = (x, y, x + width, y + height)
            if _inside(rect, within) and not self._busy[y : y + height, x : x + width].any():
                self.take(rect)
                return rect
        return None

    def take(self, rect: Rect) -> None:
        """Mark a rectangle as used."""
        x0, y0, x1, y1 = rect
        self._busy[max(0, y0) : y1, max(0, x0) : x1] = True


def _inside(rect: Rect, outer: Rect) -> bool:
    return rect[0] >= outer[0] and rect[1] >= outer[1] and rect[2] <= outer[2] and rect[3] <= outer[3]


def stack(wanted: list[int], height: int, start: int, end: int) -> list[int]:
    """Tops of tags of one height in a margin: near where they are wanted, in order, none over another.

    Args:
        wanted: ascending tops.

    Returns:
        Tops for the first tags that fit between `start` and `end`; the list is shorter if not all fit.
    """
    tops: list[int] = []
    for top in wanted[: max(0, (end - start) // height)]:
        tops.append(max(top, tops[-1] + height if tops else start))
    limit = end - height
    for index in range(len(tops) - 1, -1, -1):
        tops[index] = min(tops[index], limit)
        limit = tops[index] - height
    return tops
