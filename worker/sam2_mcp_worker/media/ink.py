"""Finds ink of the size and shape of print that no known line covers: text that was seen but not read.

Owns the test of what looks like print. Knows no engine. It prefers a false alarm to silence, since an absence is only
claimed over what was read; rules, frames, flat shapes and single blots are left out as far as their shape tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

Box = tuple[int, int, int, int]
Quad = NDArray[np.float32]
Shapes = NDArray[np.int64]

# Strokes are thinner than this: a quarter of a 100 px headline's size. Larger shapes are pictures or panels.
STROKE_PX = 25
CONTRAST = 40  # of 255 against the surroundings, in any channel; light grey fine print on white has 100 and more
GLYPH_HEIGHT_PX = (5, 120)  # 6 px print is at the end of what anybody reads
GLYPH_FILL = (0.08, 0.95)  # ink over bounding box: below are frames and curves, above are dots, rules and blocks
GLYPH_ASPECT = 8.0  # longer ones are rules
# Of the box around a glyph under known lines. Known lines are drawn a quarter of their height too large, and what
# surrounds known text on a button is a "glyph" of which the text takes half.
COVERED = 0.3
REACH_HEIGHTS = (0.6, 0.12)  # glyphs nearer than twice this, along and across, belong to one line
MOST_SHORT_LABELS = 65_000  # 16 bits, one of them the ground
LINE_GLYPHS = 3  # fewer are an icon or a speck
LINE_ASPECT = 1.2  # width over the height of its glyphs


def residual_ink(
    rgb: NDArray[np.uint8], covered_boxes: Sequence[Box] = (), covered_quads: Sequence[Quad] = ()
) -> list[Box]:
    """Boxes x0, y0, x1, y1 in pixels of `rgb`, each about one line of print that nothing known covers.

    `covered_quads` are for tilted lines, whose boxes would also cover their neighbours.
    """
    return lines_of_print(print_shapes(rgb), rgb.shape[:2], covered_boxes, covered_quads)


@dataclass(frozen=True, slots=True)
class PrintShapes:
    """What looks like glyphs or their parts: (n, 4) x, y, width, height for each colour, each polarity alone."""

    dark_on_light: tuple[Shapes, ...]
    light_on_dark: tuple[Shapes, ...]


def print_shapes(rgb: NDArray[np.uint8]) -> PrintShapes:
    """The shapes of print in a picture, known or not."""
    if min(rgb.shape[:2]) < GLYPH_HEIGHT_PX[0]:
        return PrintShapes((), ())
    kernel = cv2.getStructuringElement(cv2.MORPH_RECT, (STROKE_PX, STROKE_PX))
    # Dark strokes on light, then light on dark: the gaps between dark strokes are light ones, so each alone. And each
    # colour alone: navy on orange is darker in red and lighter in blue, and both together make one blot.
    dark, light = (
        tuple(
            _glyphs(cv2.morphologyEx(np.ascontiguousarray(rgb[:, :, colour]), sight, kernel) > CONTRAST)
            for colour in range(3)
        )
        for sight in (cv2.MORPH_BLACKHAT, cv2.MORPH_TOPHAT)
    )
    return PrintShapes(dark, light)


def lines_of_print(
    shapes: PrintShapes, size: tuple[int, ...], covered_boxes: Sequence[Box] = (), covered_quads: Sequence[Quad] = ()
) -> list[Box]:
    """Boxes about lines of those shapes that nothing known covers, in a picture of `size` (height, width)."""
    cover = cv2.integral(_cover(size, covered_boxes, covered_quads)).astype(np.int64)
    found: list[Box] = []
    for glyphs in (*shapes.dark_on_light, *shapes.light_on_dark):
        wide, tall = glyphs.T[2:]
        found += _lines_of(glyphs[_sums(cover, *glyphs.T) < COVERED * wide * tall], size)
    return _without_contained(found)


def _glyphs(strokes: NDArray[np.bool_]) -> Shapes:
    """Boxes of those connected strokes that have the size and shape of print."""
    # Short labels take half of the time; there are never more than runs of ink along the rows.
    runs = np.count_nonzero(strokes[:, 1:] & ~strokes[:, :-1]) + np.count_nonzero(strokes[:, 0])
    label = cv2.CV_16U if runs < MOST_SHORT_LABELS else cv2.CV_32S
    _, _, stats, _ = cv2.connectedComponentsWithStats(strokes.astype(np.uint8), connectivity=8, ltype=label)
    x, y, wide, tall, area = stats.T.astype(np.int64)
    fill = area / (wide * tall)
    looks = (tall >= GLYPH_HEIGHT_PX[0]) & (tall <= GLYPH_HEIGHT_PX[1])
    looks &= np.maximum(wide, tall) <= GLYPH_ASPECT * np.minimum(wide, tall)
    looks &= (fill >= GLYPH_FILL[0]) & ((fill <= GLYPH_FILL[1]) | (tall >= 2 * wide))  # an upright stroke fills its box
    looks[0] = False  # the ground
    glyphs: Shapes = np.column_stack([x, y, wide, tall])[looks]
    return glyphs


def _sums(whole: NDArray[np.int64], *boxes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Covered pixels in each box x, y, width, height, out of the integral of the cover."""
    x, y, wide, tall = boxes
    sums: NDArray[np.int64] = whole[y + tall, x + wide] - whole[y, x + wide] - whole[y + tall, x] + whole[y, x]
    return sums


def _cover(shape: tuple[int, ...], boxes: Sequence[Box], quads: Sequence[Quad]) -> NDArray[np.uint8]:
    cover = np.zeros(shape[:2], np.uint8)
    for x0, y0, x1, y1 in boxes:
        cover[max(0, y0) : max(0, y1), max(0, x0) : max(0, x1)] = 1
    for quad in quads:
        cv2.fillPoly(cover, [np.round(quad).astype(np.int32)], 1)
    return cover


def _lines_of(glyphs: Shapes, size: tuple[int, ...]) -> list[Box]:
    """Neighbouring glyphs as lines; what is too little to be one is left out."""
    lines: list[Box] = []
    of = line_numbers(glyphs, size)
    for line in np.unique(of):
        x, y, wide, tall = glyphs[of == line].T
        x0, y0, x1, y1 = int(x.min()), int(y.min()), int((x + wide).max()), int((y + tall).max())
        if len(x) >= LINE_GLYPHS and x1 - x0 >= LINE_ASPECT * np.median(tall):
            lines.append((x0, y0, x1, y1))
    return lines


def line_numbers(glyphs: Shapes, size: tuple[int, ...]) -> NDArray[np.int32]:
    """For each glyph the number of its line: glyphs near each other along and across it share one."""
    reach = np.zeros(size[:2], np.uint8)
    for x, y, wide, tall in glyphs.tolist():
        along, across = max(2, round(REACH_HEIGHTS[0] * tall)), max(1, round(REACH_HEIGHTS[1] * tall))
        reach[max(0, y - across) : y + tall + across, max(0, x - along) : x + wide + along] = 1
    _, labels = cv2.connectedComponents(reach)
    of: NDArray[np.int32] = labels[glyphs[:, 1] + glyphs[:, 3] // 2, glyphs[:, 0] + glyphs[:, 2] // 2]
    return of


def _without_contained(boxes: list[Box]) -> list[Box]:
    """Without boxes that lie in a larger one: holes of the glyphs, seen in the other polarity."""
    kept: list[Box] = []
    for box in sorted(boxes, key=lambda b: (b[0] - b[2]) * (b[3] - b[1])):
        if not any(k[0] <= box[0] and k[1] <= box[1] and k[2] >= box[2] and k[3] >= box[3] for k in kept):
            kept.append(box)
    return kept
