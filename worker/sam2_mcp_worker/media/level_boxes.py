"""The reading order of lines that may run a little aslant: they are put level first.

Owns the slope of a whole page, told from boxes and heights of text alone. A page that is level keeps its boxes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import atan, cos, sin

from sam2_mcp_worker.media.reading_order import Box, reading_order

# Below it a line as wide as an A4 page at 150 dpi drifts by less than half of small print.
LEVEL = 0.006
# Pages are laid down with up to 4 degrees; print that is turned by more is turned on purpose.
STEEPEST = 0.08
# Fewer lines tell no common slope.
LEAST_LINES = 6
# Boxes of tilted lines lie over one another; levelled the right way they do so this much less.
CLEARER = 0.5


def order_of_lines(lines: Sequence[tuple[Box, float]]) -> list[int]:
    """The indices of lines in reading order, from their boxes and the heights of their text across its direction."""
    return reading_order(level_boxes([box for box, _ in lines], [height for _, height in lines]))


def level_boxes(boxes: Sequence[Box], heights: Sequence[float]) -> list[Box]:
    """One box a line, levelled about the origin; those given where no slope is sure."""
    per_height, slope = _height_by_width(boxes, heights)
    if len(boxes) < LEAST_LINES or not LEVEL <= slope <= STEEPEST:
        return list(boxes)
    sides = [_levelled(boxes, [per_height * height for height in heights], atan(side * slope)) for side in (1, -1)]
    best = min(sides, key=_overlap)
    return best if _overlap(best) < CLEARER * _overlap(boxes) else list(boxes)


def _height_by_width(boxes: Sequence[Box], heights: Sequence[float]) -> tuple[float, float]:
    """How much of a box's height comes from each unit of the text's height and of its width (least squares)."""
    sizes = [(height, box[2] - box[0], box[3] - box[1]) for box, height in zip(boxes, heights, strict=True)]
    tt, tw, ww = sum(t * t for t, _, _ in sizes), sum(t * w for t, w, _ in sizes), sum(w * w for _, w, _ in sizes)
    th, wh = sum(t * h for t, _, h in sizes), sum(w * h for _, w, h in sizes)
    determinant = tt * ww - tw * tw
    if determinant <= 0:
        return 1.0, 0.0
    return (th * ww - wh * tw) / determinant, (wh * tt - th * tw) / determinant


def _levelled(boxes: Sequence[Box], heights: Sequence[float], angle: float) -> list[Box]:
    turned: list[Box] = []
    for (x0, y0, x1, y1), height in zip(boxes, heights, strict=True):
        x, y = (x0 + x1) / 2, (y0 + y1) / 2
        x, y = x * cos(angle) + y * sin(angle), y * cos(angle) - x * sin(angle)
        half = max(0.0, x1 - x0 - height * abs(sin(angle))) / cos(angle) / 2
        turned.append((x - half, y - height / 2, x + half, y + height / 2))
    return turned


def _overlap(boxes: Sequence[Box]) -> float:
    """The area that boxes share, pair by pair."""
    total, open_boxes = 0.0, list[Box]()
    for box in sorted(boxes, key=lambda box: box[1]):
        open_boxes = [other for other in open_boxes if other[3] > box[1]]
        for other in open_boxes:
            width = min(box[2], other[2]) - max(box[0], other[0])
            total += max(0.0, width) * (min(box[3], other[3]) - box[1])
        open_boxes.append(box)
    return total
