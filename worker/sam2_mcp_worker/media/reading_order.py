"""Puts boxes into the order in which a person reads them. Owns the cuts; knows only boxes, never their text.

Recursive XY-cut: a page falls into blocks at its empty bands, a block into columns, and what remains is read row by
row. Columns are read one after the other if they hold running text; side by side they are a table, read in rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

Box = tuple[float, float, float, float]
"""x0, y0, x1, y1 in any unit, y pointing down."""

Group = list[int]

BLOCK_GAP_HEIGHTS = 1.0  # an empty band this high ends a block; lines of one paragraph stand closer
COLUMN_GAP_HEIGHTS = 1.0  # spaces between words are narrower
RUNNING_TEXT_HEIGHTS = 8.0  # a column whose middle line is at least this long holds sentences, not table cells
SPANNING_SHARE = 0.6  # of the block's width: a headline over the columns
SAME_ROW = 0.5  # of the lower box's height
SMALLEST = 1e-6  # stands in for the height of an empty box


def reading_order(boxes: Sequence[Box]) -> list[int]:
    """The indices of `boxes` (x0, y0, x1, y1, origin top left) in reading order; every index once."""
    done: list[int] = []
    pending: list[Group] = [list(range(len(boxes)))]
    while pending:  # a stack, since long pages would exceed Python's recursion
        group = pending.pop()
        pieces = _parted(group, boxes)
        if len(pieces) > 1:
            pending += reversed(pieces)
        else:
            done += _row_by_row(group, boxes)
    return done


def _parted(group: Group, boxes: Sequence[Box]) -> list[Group]:
    if len(group) < 2:
        return [group]
    height = median(boxes[i][3] - boxes[i][1] for i in group)
    for pieces in (
        _cut(group, boxes, axis=1, gap=BLOCK_GAP_HEIGHTS * height),
        _columns(group, boxes, height),
        _under_spanning_lines(group, boxes, height),
        _cut(group, boxes, axis=1, gap=_widest_band(group, boxes) / 2),
    ):
        if len(pieces) > 1:
            return pieces
    return [group]


def _cut(group: Group, boxes: Sequence[Box], *, axis: int, gap: float) -> list[Group]:
    """Cut at every empty band wider than `gap`, across x (axis 0) or y (axis 1)."""
    pieces: list[Group] = []
    end = 0.0
    for i in sorted(group, key=lambda i: boxes[i][axis]):
        if not pieces or boxes[i][axis] - end > gap:
            pieces.append([])
            end = boxes[i][axis + 2]
        pieces[-1].append(i)
        end = max(end, boxes[i][axis + 2])
    return pieces


def _widest_band(group: Group, boxes: Sequence[Box]) -> float:
    """The height of the highest empty band.

    Cut there first: columns may stand above a table, nearer than a line is high, and could no longer be told once every
    row is a piece of its own.
    """
    ordered = sorted(group, key=lambda i: boxes[i][1])
    widest, end = 0.0, boxes[ordered[0]][3]
    for i in ordered:
        widest = max(widest, boxes[i][1] - end)
        end = max(end, boxes[i][3])
    return widest


def _columns(group: Group, boxes: Sequence[Box], height: float) -> list[Group]:
    pieces = _cut(group, boxes, axis=0, gap=COLUMN_GAP_HEIGHTS * height)
    return pieces if all(_is_running_text(piece, boxes) for piece in pieces) else [group]


def _is_running_text(group: Group, boxes: Sequence[Box]) -> bool:
    lengths = [(boxes[i][2] - boxes[i][0]) / max(SMALLEST, boxes[i][3] - boxes[i][1]) for i in group]
    return len(group) > 1 and median(lengths) >= RUNNING_TEXT_HEIGHTS


def _under_spanning_lines(group: Group, boxes: Sequence[Box], height: float) -> list[Group]:
    """Lines that run over several columns, and the groups above, between and below them."""
    width = max(boxes[i][2] for i in group) - min(boxes[i][0] for i in group)
    spanning = {i for i in group if boxes[i][2] - boxes[i][0] > SPANNING_SHARE * width}
    rest = [i for i in group if i not in spanning]
    if not spanning or len(_columns(rest, boxes, height)) < 2:
        return [group]
    pieces: list[Group] = []
    for i in sorted(group, key=lambda i: boxes[i][1] + boxes[i][3]):
        if i in spanning or not pieces or pieces[-1][-1] in spanning:
            pieces.append([])
        pieces[-1].append(i)
    return pieces


def _row_by_row(group: Group, boxes: Sequence[Box]) -> list[int]:
    rows: list[Group] = []
    for i in sorted(group, key=lambda i: (boxes[i][1] + boxes[i][3], boxes[i][0])):
        first = boxes[rows[-1][0]] if rows else None
        if first is not None and _shared_height(first, boxes[i]) >= SAME_ROW:
            rows[-1].append(i)
        else:
            rows.append([i])
    return [i for row in rows for i in sorted(row, key=lambda i: boxes[i][0])]


def _shared_height(a: Box, b: Box) -> float:
    shared = min(a[3], b[3]) - max(a[1], b[1])
    return shared / max(SMALLEST, min(a[3] - a[1], b[3] - b[1]))
