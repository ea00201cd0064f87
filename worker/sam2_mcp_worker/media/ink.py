"""Finds ink of the size and shape of print that no known line covers: text that was seen but not read.

Owns the test of what looks like print. Knows no engine. It prefers a false alarm to silence, since an absence is only
claimed over what was read; rules, frames, flat shapes and single blots are left out as far as their shape tells.
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

Box = tuple[int, int, int, int]
Quad = NDArray[np.float32]

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
LINE_GLYPHS = 3  # fewer are an icon or a speck
LINE_ASPECT = 1.2  # width over the height of its glyphs


def residual_ink(
    rgb: NDArray[np.uint8], covered_boxes: Sequence[Box] = (), covered_quads: Sequence[Quad] = ()
) -> list[Box]:
    """Boxes x0, y0, x1, y1 in pixels of `rgb`, each about one line of print that nothing known covers.

    `covered_quads` are for tilted lines, whose boxes would also cover their neighbours.
    """
    if min(rgb.shape[:2]) < GLYPH_HEIGHT_PX[0]:
        return []
    cover = _cover(rgb.shape[:2], covered_boxes, covered_quads)
    kernel = cv2.getStructuringElement(cv2.MORPH_RECT, (STROKE_PX, STROKE_PX))
    found: list[Box] = []
    # Dark strokes on light, then light on dark: the gaps between dark strokes are light ones, so each alone. And each
    # colour alone: navy on orange is darker in red and lighter in blue, and both together make one blot.
    for sight in (cv2.MORPH_BLACKHAT, cv2.MORPH_TOPHAT):
        for colour in range(3):
            strokes = cv2.morphologyEx(np.ascontiguousarray(rgb[:, :, colour]), sight, kernel) > CONTRAST
            found += _lines_of(_glyphs(strokes.astype(np.uint8), cover), rgb.shape[:2])
    return _without_contained(found)


def _glyphs(strokes: NDArray[np.uint8], cover: NDArray[np.uint8]) -> NDArray[np.int64]:
    """(n, 4) x, y, width, height of what looks like glyphs or their parts, and is not covered."""
    _, _, stats, _ = cv2.connectedComponentsWithStats(strokes, connectivity=8)
    x, y, wide, tall, area = stats.T.astype(np.int64)
    fill = area / (wide * tall)
    looks = (tall >= GLYPH_HEIGHT_PX[0]) & (tall <= GLYPH_HEIGHT_PX[1])
    looks &= np.maximum(wide, tall) <= GLYPH_ASPECT * np.minimum(wide, tall)
    looks &= (fill >= GLYPH_FILL[0]) & ((fill <= GLYPH_FILL[1]) | (tall >= 2 * wide))  # an upright stroke fills its box
    looks &= _sums(cover, x, y, wide, tall) < COVERED * wide * tall
    looks[0] = False  # the ground
    glyphs: NDArray[np.int64] = np.column_stack([x, y, wide, tall])[looks]
    return glyphs


def _sums(cover: NDArray[np.uint8], *boxes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Covered pixels in each box x, y, width, height."""
    x, y, wide, tall = boxes
    whole = cv2.integral(cover).astype(np.int64)
    sums: NDArray[np.int64] = whole[y + tall, x + wide] - whole[y, x + wide] - whole[y + tall, x] + whole[y, x]
    return sums


def _cover(shape: tuple[int, ...], boxes: Sequence[Box], quads: Sequence[Quad]) -> NDArray[np.uint8]:
    cover = np.zeros(shape[:2], np.uint8)
    for x0, y0, x1, y1 in boxes:
        cover[max(0, y0) : max(0, y1), max(0, x0) : max(0, x1)] = 1
    for quad in quads:
        cv2.fillPoly(cover, [np.round(quad).astype(np.int32)], 1)
    return cover


def _lines_of(glyphs: NDArray[np.int64], shape: tuple[int, ...]) -> list[Box]:
    """Neighbouring glyphs as lines; what is too little to be one is left out."""
    reach = np.zeros(shape[:2], np.uint8)
    for x, y, wide, tall in glyphs:
        along, across = max(2, round(REACH_HEIGHTS[0] * tall)), max(1, round(REACH_HEIGHTS[1] * tall))
        reach[max(0, y - across) : y + tall + across, max(0, x - along) : x + wide + along] = 1
    count, labels = cv2.connectedComponents(reach)
    of = labels[glyphs[:, 1] + glyphs[:, 3] // 2, glyphs[:, 0] + glyphs[:, 2] // 2]
    lines: list[Box] = []
    for line in range(1, count):
        x, y, wide, tall = glyphs[of == line].T
        x0, y0, x1, y1 = int(x.min()), int(y.min()), int((x + wide).max()), int((y + tall).max())
        if len(x) >= LINE_GLYPHS and x1 - x0 >= LINE_ASPECT * np.median(tall):
            lines.append((x0, y0, x1, y1))
    return lines


def _without_contained(boxes: list[Box]) -> list[Box]:
    """Without boxes that lie in a larger one: holes of the glyphs, seen in the other polarity."""
    kept: list[Box] = []
    for box in sorted(boxes, key=lambda b: (b[0] - b[2]) * (b[3] - b[1])):
        if not any(k[0] <= box[0] and k[1] <= box[1] and k[2] >= box[2] and k[3] >= box[3] for k in kept):
            kept.append(box)
    return kept
