"""The order in which a person reads boxes on a page. Pure; any unit, y pointing down.

Recursive cutting: columns of running text are read one after the other, everything else row by row, so that the cells
of a table stay beside their labels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

Box = tuple[float, float, float, float]

# The gutter between columns, in line heights.
_GUTTER_HEIGHTS = 1.0
# Boxes narrower than this many of their heights are labels and cells rather than lines of running text.
_RUNNING_TEXT_HEIGHTS = 8.0
# Two boxes stand in one row when they share more than this part of the lower one's height.
_ROW_OVERLAP = 0.5


def reading_order(boxes: Sequence[Box]) -> list[int]:
    """Indices of the boxes in reading order; every index exactly once."""
    ordered: list[int] = []
    stack = [list(range(len(boxes)))]
    while stack:
        group = stack.pop()
        parts = _columns(boxes, group) or _bands(boxes, group)
        if parts:
            stack.extend(reversed(parts))
        else:
            ordered.extend(_rows(boxes, group))
    return ordered


def _columns(boxes: Sequence[Box], group: list[int]) -> list[list[int]]:
    """The group cut at its widest gutter, if running text stands on both sides of it."""
    if len(group) < 2:
        return []
    height = median(boxes[i][3] - boxes[i][1] for i in group)
    gap, at = _widest_gap(group, lambda i: (boxes[i][0], boxes[i][2]))
    if gap <= _GUTTER_HEIGHTS * height:
        return []
    left, right = [i for i in group if boxes[i][0] < at], [i for i in group if boxes[i][0] >= at]
    return [left, right] if _is_running_text(boxes, left) and _is_running_text(boxes, right) else []


def _bands(boxes: Sequence[Box], group: list[int]) -> list[list[int]]:
    """The group cut at its highest empty band, but only where that may set columns free."""
    if len(group) < 3 or not _any_beside(boxes, group):
        return []
    gap, at = _widest_gap(group, lambda i: (boxes[i][1], boxes[i][3]))
    if gap <= 0:
        return []
    return [[i for i in group if boxes[i][1] < at], [i for i in group if boxes[i][1] >= at]]


def _any_beside(boxes: Sequence[Box], group: list[int]) -> bool:
    by_top = sorted(group, key=lambda i: boxes[i][1])
    bottom = boxes[by_top[0]][3]
    for i in by_top[1:]:
        if boxes[i][1] < bottom:
            return True
        bottom = boxes[i][3]
    return False


def _widest_gap(group: list[int], extent: Callable[[int], tuple[float, float]]) -> tuple[float, float]:
    """Width of the widest empty interval, and where it ends."""
    extents = sorted(map(extent, group))
    widest, at, reached = 0.0, 0.0, extents[0][1]
    for start, end in extents[1:]:
        if start - reached > widest:
            widest, at = start - reached, start
        reached = max(reached, end)
    return widest, at


def _is_running_text(boxes: Sequence[Box], group: list[int]) -> bool:
    return median((b[2] - b[0]) / max(b[3] - b[1], 1e-6) for b in (boxes[i] for i in group)) >= _RUNNING_TEXT_HEIGHTS


def _rows(boxes: Sequence[Box], group: list[int]) -> list[int]:
    """Row by row from the top, each from the left."""
    rows: list[list[int]] = []
    for i in sorted(group, key=lambda i: (boxes[i][1], boxes[i][0])):
        if rows and _shares_row(boxes[rows[-1][0]], boxes[i]):
            rows[-1].append(i)
        else:
            rows.append([i])
    return [i for row in rows for i in sorted(row, key=lambda i: boxes[i][0])]


def _shares_row(one: Box, other: Box) -> bool:
    overlap = min(one[3], other[3]) - max(one[1], other[1])
    return overlap > _ROW_OVERLAP * min(one[3] - one[1], other[3] - other[1])
