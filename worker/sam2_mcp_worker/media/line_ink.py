"""Which ink of a level tile belongs to which line that a model saw, how large the text in it is, and what is left over.

A model's boxes are some px off, and nothing says that it read all. Knows boxes and texts, no files and no tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np
from numpy.typing import NDArray

from sam2_mcp_worker.media.ink import (
    CONTRAST,
    Box,
    PrintShapes,
    Quad,
    Shapes,
    line_numbers,
    lines_of_print,
)
from sam2_mcp_worker.media.line_crop import (
    INK_LEVEL,
    SIDE_MARGIN_HEIGHTS,
    commonest_colour,
    cut_line,
    ink_on_white,
    without_foreign_ink,
)
from sam2_mcp_worker.media.text_height import HANGUL_INK, font_size_px
from sam2_mcp_worker.media.text_widths import symbols_along, width_em

# How far from the model's box a line's ink is looked for: in heights of the box, at least so many px.
REACH_ACROSS, REACH_ALONG = 0.35, 0.7
REACH_PX = 6
BARE_CONTRAST = 16  # of 255 between darkest and lightest: less is paper, however noisy
# Ink this many times as wide as the text holds words that the model left out: whole lines measure 0.86 to 1.06 on
# generated leaflets, half-read ones 1.7 and more. Headlines that are set wide get a false alarm.
TOO_WIDE = 1.5
# Rows of ink that together are as wide as this share of the text explain it all; further rows are other lines'.
ENOUGH = 0.8
COVER = 0.1  # of a row's height: what its ink explains around it
CROP_MARGIN = 0.15  # of the height: what the calibration of font sizes expects around the ink
DARKER, LIGHTER = -1, 1
LEVELS = np.arange(256)[:, None]
END_REACH = 1.0  # of a row's height: a dash and the space after it
END_SLACK_PX = 2
END_ROWS_PX = 3
ROW_GAP = 0.2  # of a row's height; fine print set tight leaves 0.3 between rows


@dataclass(frozen=True, slots=True)
class SettledLine:
    """Where a line stands; `rows` are the boxes of its rows of ink, none when the model's box is all there is.

    `height_px` is the font size, 0 when its ink is not known.
    """

    box: Box
    rows: tuple[Box, ...] = ()
    height_px: float = 0.0


def settled_lines(
    rgb: NDArray[np.uint8], boxes: Sequence[Box], texts: Sequence[str], shapes: PrintShapes
) -> tuple[list[SettledLine | None], list[Box]]:
    """Each line on its ink, None where bare paper is, and the boxes of ink that none of them explains.

    `shapes` are those of `rgb`; all coordinates are its pixels.
    """
    boxes = [_inside(box, rgb.shape) for box in boxes]
    settled: list[SettledLine | None] = []
    cover: list[Box] = []
    unexplained: list[Box] = []
    places = _settled(rgb, boxes, texts, shapes)
    rows = [row for place in places if place is not None for row in place.rows]
    for place, text in zip(places, texts, strict=True):
        if place is None:
            settled.append(None)
            continue
        line = replace(place, height_px=_font_size(rgb, place, text, rows))
        settled.append(line)
        cover += [_grown(row, COVER, COVER) for row in line.rows]
        unexplained += _more_than_the_text(line, text)
    return settled, unexplained + lines_of_print(shapes, rgb.shape[:2], cover)


def _settled(
    rgb: NDArray[np.uint8], boxes: Sequence[Box], texts: Sequence[str], shapes: PrintShapes
) -> list[SettledLine | None]:
    """Each line's place; None where bare paper is."""
    parts: list[list[Shapes]] = [[] for _ in boxes]
    ink = [_ink_of(rgb, box) for box in boxes]
    for colour, both in enumerate(zip(shapes.dark_on_light, shapes.light_on_dark, strict=True)):
        for polarity, glyphs in zip((DARKER, LIGHTER), both, strict=True):
            lines = [number for number, of in enumerate(ink) if of[colour] == polarity]
            if lines and len(glyphs):
                found = _glyphs_of_lines(glyphs, [boxes[number] for number in lines], rgb.shape)
                for number, own in zip(lines, found, strict=True):
                    parts[number].append(own)
    return [_place(rgb, box, text, own) for box, text, own in zip(boxes, texts, parts, strict=True)]


def _place(rgb: NDArray[np.uint8], box: Box, text: str, parts: list[Shapes]) -> SettledLine | None:
    glyphs = np.concatenate(parts) if parts else np.zeros((0, 4), np.int64)
    if not len(glyphs):
        return _without_glyphs(rgb, box)
    rows = [_with_ends(rgb, row, box) for row in _enough_rows(_rows(glyphs), box, text)]
    return SettledLine(_hull(rows), tuple(rows))


def _enough_rows(rows: list[Box], box: Box, text: str) -> list[Box]:
    """The rows nearest to the box that hold the text: a box that is too tall, or off, reaches into other lines."""
    middle = (box[1] + box[3]) / 2
    chosen: list[Box] = []
    for row in sorted(rows, key=lambda row: abs((row[1] + row[3]) / 2 - middle)):
        em_px = float(np.median([one[3] - one[1] for one in rows])) / HANGUL_INK[0]
        if chosen and sum(one[2] - one[0] for one in chosen) >= ENOUGH * width_em(text) * em_px:
            break
        chosen.append(row)
    return sorted(chosen, key=lambda row: row[1])


def _with_ends(rgb: NDArray[np.uint8], row: Box, box: Box) -> Box:
    """The row with what at its ends is too small or thin to look like print, as far as the box goes."""
    x0, y0, x1, y1 = row
    reach = round(END_REACH * (y1 - y0))
    left = max(0, x0 - reach, min(x0, box[0] - END_SLACK_PX))
    right = min(rgb.shape[1], x1 + reach, max(x1, box[2] + END_SLACK_PX))
    top, bottom = max(0, y0 - END_ROWS_PX), min(rgb.shape[0], y1 + END_ROWS_PX)
    band = rgb[top:bottom, left:right]
    away = cv2.LUT(band, _strong_of(commonest_colour(band)).astype(np.uint8)[None]).any(axis=2)
    goes_on = (away[0] & (top < y0)) | (away[-1] & (bottom > y1))  # a rule, the edge of a panel, the next line
    columns = left + np.flatnonzero(away[y0 - top : y1 - top].any(axis=0) & ~goes_on)
    before, after = columns[columns < x0], columns[columns >= x1]
    return int(before.min(initial=x0)), y0, int(after.max(initial=x1 - 1)) + 1, y1


def _ink_of(rgb: NDArray[np.uint8], box: Box) -> list[int]:
    """Whether the ink around a box is darker or lighter than its ground, in red, green and blue; 0: neither.

    The gaps within and between letters, and what surrounds them on a button, look like letters of the other polarity.
    """
    left, top, right, bottom = _inside(_grown(box, REACH_ALONG, REACH_ACROSS, REACH_PX), rgb.shape)
    window = rgb[top:bottom, left:right]
    if not window.size:
        return [0, 0, 0]
    ground = commonest_colour(window)
    away = np.where(_strong_of(ground), LEVELS - ground, 0)
    counts = np.stack([np.bincount(window[:, :, colour].ravel(), minlength=256) for colour in range(3)], axis=1)
    return [int(sign) for sign in np.sign((counts * away).sum(axis=0))]


def _strong_of(ground: NDArray[np.float32]) -> NDArray[np.bool_]:
    """For each level of each colour whether it is ink on this ground; (256, 3)."""
    strong: NDArray[np.bool_] = np.abs(LEVELS - ground) > CONTRAST
    return strong


def _glyphs_of_lines(glyphs: Shapes, boxes: Sequence[Box], size: tuple[int, ...]) -> list[Shapes]:
    """For each line the glyphs of one colour that belong to it."""
    centre_x, centre_y = glyphs[:, 0] + glyphs[:, 2] / 2, glyphs[:, 1] + glyphs[:, 3] / 2
    line_of = np.full(len(glyphs), -1)
    nearest = np.full(len(glyphs), np.inf)
    for number, box in enumerate(boxes):
        left, top, right, bottom = _grown(box, REACH_ALONG, REACH_ACROSS, REACH_PX)
        distance = np.abs(centre_y - (box[1] + box[3]) / 2) / max(1, box[3] - box[1])
        inside = (centre_x > left) & (centre_x < right) & (centre_y > top) & (centre_y < bottom)
        inside &= glyphs[:, 3] <= bottom - top  # taller ones surround the line, or are pictures
        better = inside & (distance < nearest)
        line_of[better], nearest[better] = number, distance[better]
    return _whole_rows(glyphs, line_of, line_numbers(glyphs, size), boxes)


def _whole_rows(
    glyphs: Shapes, line_of: NDArray[np.int64], row_of: NDArray[np.int32], boxes: Sequence[Box]
) -> list[Shapes]:
    """A row that a box only touched half of goes to the line which has most of it."""
    x, y, wide, tall = glyphs.T
    weight, centre_x, centre_y = wide * tall, x + wide / 2, y + tall / 2
    asked = line_of.copy()
    for row in np.unique(row_of):
        members = row_of == row
        for voter in np.unique(asked[members & (asked >= 0)]):
            left, _, right, _ = _grown(boxes[voter], REACH_ALONG, 0, REACH_PX)
            here = members & (centre_x > left) & (centre_x < right)
            own = here & (asked == voter)
            # Between the top and the bottom of what it has: lines set close above each other make one row of shapes.
            here &= (centre_y > y[own].min()) & (centre_y < (y + tall)[own].max())
            if weight[own].sum() > weight[here].sum() / 2:
                left, _, right, _ = _grown(boxes[voter], 0, 0, REACH_PX)
                within = (centre_x > left) & (centre_x < right)
                line_of[here & (within | (asked == -1))] = voter
    return [glyphs[line_of == number] for number in range(len(boxes))]


def _rows(glyphs: Shapes) -> list[Box]:
    """The boxes of the rows that glyphs stand in, from the top down: bands of px with ink, by glyph boxes."""
    order = np.argsort(glyphs[:, 1], kind="stable")
    tops = glyphs[order, 1]
    deepest = np.maximum.accumulate(tops + glyphs[order, 3])
    first = np.flatnonzero(np.append(True, tops[1:] >= deepest[:-1]))
    bands = zip(tops[first], deepest[np.append(first[1:], len(tops)) - 1], strict=True)
    rows = []
    for top, bottom in bands:
        x, y, wide, tall = glyphs[(glyphs[:, 1] >= top) & (glyphs[:, 1] < bottom)].T
        rows.append((int(x.min()), int(y.min()), int((x + wide).max()), int((y + tall).max())))
    return _without_gaps(rows)


def _without_gaps(rows: list[Box]) -> list[Box]:
    """Bands close together are parts of one row: dots, accents, letters that stand in two storeys."""
    highest = max(row[3] - row[1] for row in rows)
    joined: list[Box] = []
    for row in rows:
        if joined and row[1] - joined[-1][3] < ROW_GAP * highest:
            joined[-1] = _hull([joined[-1], row])
        else:
            joined.append(row)
    return joined


def _without_glyphs(rgb: NDArray[np.uint8], box: Box) -> SettledLine | None:
    """A line too faint or too large for the test of print, or no line at all."""
    left, top, right, bottom = _inside(_grown(box, REACH_ALONG, REACH_ACROSS, REACH_PX), rgb.shape)
    window = rgb[top:bottom, left:right]
    if not window.size or int((window.max(axis=(0, 1)).astype(int) - window.min(axis=(0, 1))).max()) < BARE_CONTRAST:
        return None
    ink = without_foreign_ink(ink_on_white(window)) < INK_LEVEL
    rows, columns = np.flatnonzero(ink.any(axis=1)), np.flatnonzero(ink.any(axis=0))
    if not len(rows):
        return SettledLine(box)
    found = (left + int(columns[0]), top + int(rows[0]), left + int(columns[-1]) + 1, top + int(rows[-1]) + 1)
    return SettledLine(found, (found,))


def _font_size(rgb: NDArray[np.uint8], place: SettledLine, text: str, rows: Sequence[Box]) -> float:
    """By the middle one of its rows; 0 when its ink is not known. `rows` are those of all lines."""
    if not place.rows:
        return 0.0
    row = place.rows[len(place.rows) // 2]
    crop = cut_line(rgb, _quad(row, rows))
    symbols = symbols_along(text, crop.gray.shape[1]) if len(place.rows) == 1 else ()
    return round(font_size_px(crop, symbols, text), 1)


def _more_than_the_text(place: SettledLine, text: str) -> list[Box]:
    """The line's own ink where that is far wider than the text: words were left out, and nobody knows which."""
    wide = sum(row[2] - row[0] for row in place.rows)
    most = TOO_WIDE * max(1.0, width_em(text)) * place.height_px
    return list(place.rows) if place.height_px > 0 and wide > most else []


def _quad(row: Box, rows: Sequence[Box]) -> Quad:
    """The row with paper around it, above and below as much as other rows leave."""
    x0, y0, x1, y1 = row
    m = CROP_MARGIN * (y1 - y0)
    gaps = [max(y0 - other[3], other[1] - y1) for other in rows if other[0] < x1 and x0 < other[2]]
    clear = min((gap for gap in gaps if gap >= 0), default=m) - 1 - SIDE_MARGIN_HEIGHTS * (y1 - y0)
    v = max(0.0, min(m, clear))
    return np.array([[x0 - m, y0 - v], [x1 + m, y0 - v], [x1 + m, y1 + v], [x0 - m, y1 + v]], np.float32)


def _grown(box: Box, along: float, across: float, least_px: int = 0) -> Box:
    x0, y0, x1, y1 = box
    dx, dy = (max(least_px, round(share * (y1 - y0))) for share in (along, across))
    return x0 - dx, y0 - dy, x1 + dx, y1 + dy


def _inside(box: Box, shape: tuple[int, ...]) -> Box:
    x0, y0, x1, y1 = box
    height, width = shape[:2]
    return min(max(0, x0), width), min(max(0, y0), height), min(max(0, x1), width), min(max(0, y1), height)


def _hull(boxes: Sequence[Box]) -> Box:
    x0s, y0s, x1s, y1s = zip(*boxes, strict=True)
    return min(x0s), min(y0s), max(x1s), max(y1s)
