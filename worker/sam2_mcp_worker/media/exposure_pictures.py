"""Draws what a video's inspection found: a time line of exposures, and a contact sheet with numbered boxes.

Tasks for a decoder child; exposure_sheets.py has their types. A number is the same thing in both pictures. What is
sure, possible and unknown is told apart by height and line as well as by colour, so that a black-and-white printer is
enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from PIL import Image, ImageDraw

from sam2_mcp_worker.media.box_styles import STYLES
from sam2_mcp_worker.media.box_styles import Rgb as Colour
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.sheet_grid import draw_cells
from sam2_mcp_worker.media.sheet_picture import FOOT_INK, HALO, tag_font, tag_size, write_picture
from sam2_mcp_worker.media.sheet_words import fitting_words
from sam2_mcp_worker.media.time_axis import AXIS_PX, TimeAxis
from sam2_mcp_worker.media.video_child import thumbnail
from sam2_mcp_worker.media.video_painter import blit, tag
from sam2_mcp_worker.media.video_pixels import Rgb

ROW_PX = 26
BAR_PX = 14
GROUP_PX = 22  # the heading of a kind of rows
HEAD_PX = 30
LEGEND_PX = 30
CUTS_PX = 12  # the strip of cut marks
FONT_PX = 13
MARGIN_PX = 16
TAG_PX = 34  # a number of three digits
NAME_SHARE = 0.24  # of the width
NOTE_PX = 190
LEAST_BAR_PX = 2  # half a second of an hour is a fifth of a pixel
DASH_PX = 4
# A box on a cell is as thin as it can be: the cell is small.
CELL_TAG_PX = 13
# Drawn once more, smaller: what this loses is not seen. 640 x 360 px take 40-90 KB.
THUMB_QUALITY = 92

WHITE: Colour = (255, 255, 255)
PAPER: Colour = (246, 248, 250)
UNREACHED: Colour = (216, 220, 224)
FAILED: Colour = (200, 0, 40)
RULE: Colour = (226, 230, 234)
CUT: Colour = (60, 60, 60)
# Dark colours of the Okabe-Ito palette: white digits stand on them (contrast at least 4.5 : 1).
COLOURS: dict[str, Colour] = {
    "label": STYLES["region"].line,
    "phrase": STYLES["text_layer"].line,
    "text": STYLES["ocr"].line,
}
HEADINGS = {"label": "Labels", "phrase": "Phrases", "text": "Lines of text"}


def draw_exposures(params: dict[str, Any]) -> dict[str, Any]:
    """Write the time line.

    Args:
        params: `line` (an `exposure_sheets.TimeLine` as JSON) and those of `write_picture`; `max_side_px` is the width.

    Returns:
        As `write_picture`.
    """
    line = params["line"]
    return write_picture(params, lambda width_px: (_TimeLine(line, width_px).draw(), 0))


class _TimeLine:
    """One drawing of the time line."""

    def __init__(self, line: dict[str, Any], width_px: int) -> None:
        self._line = line
        self._name_px = round(width_px * NAME_SHARE)
        left = MARGIN_PX + TAG_PX + self._name_px
        self._axis = TimeAxis(line["start_s"], line["end_s"], left, max(left + 1, width_px - NOTE_PX - MARGIN_PX))
        self._note_x = width_px - NOTE_PX
        rows = line["rows"]
        groups = len({row["kind"] for row in rows})
        self._bottom = HEAD_PX + CUTS_PX + groups * GROUP_PX + len(rows) * ROW_PX
        self._picture = Image.new("RGB", (width_px, self._bottom + AXIS_PX + LEGEND_PX), WHITE)
        self._pen = ImageDraw.Draw(self._picture)

    def draw(self) -> Image.Image:
        """The whole picture."""
        left, right = self._axis.x(self._axis.start_s), self._axis.x(self._axis.end_s)
        self._pen.rectangle((left, HEAD_PX, right, self._bottom), fill=PAPER)
        self._fill_unknown()
        self._text(MARGIN_PX, HEAD_PX // 2, self._line["headline"])
        self._mark_cuts()
        y, kind = HEAD_PX + CUTS_PX, ""
        for row in self._line["rows"]:
            if row["kind"] != kind:
                kind = row["kind"]
                self._heading(kind, y)
                y += GROUP_PX
            self._row(row, y + ROW_PX // 2)
            y += ROW_PX
        self._axis.draw(self._pen, self._bottom)
        self._legend(self._bottom + AXIS_PX + LEGEND_PX // 2)
        return self._picture

    def _fill_unknown(self) -> None:
        """What nobody read lies behind all rows."""
        for start_s, end_s in self._line["unreached"]:
            self._pen.rectangle(self._band(start_s, end_s, HEAD_PX, self._bottom), fill=UNREACHED)
        for start_s, end_s in self._line["failed"]:
            x0, y0, x1, y1 = self._band(start_s, end_s, HEAD_PX, self._bottom)
            self._pen.rectangle((x0, y0, x1, y1), outline=FAILED)
            for x in range(x0, x1, 2 * DASH_PX):
                self._pen.line((x, y0, x, y1), fill=FAILED)

    def _mark_cuts(self) -> None:
        for time_s in self._line["cuts_s"]:
            x = self._axis.x(time_s)
            self._pen.line((x, HEAD_PX, x, HEAD_PX + CUTS_PX - 4), fill=CUT)

    def _heading(self, kind: str, y: int) -> None:
        self._text(MARGIN_PX, y + GROUP_PX // 2, HEADINGS[kind], COLOURS[kind])
        self._pen.line((MARGIN_PX, y, self._picture.width - MARGIN_PX, y), fill=RULE)

    def _row(self, row: dict[str, Any], y: int) -> None:
        colour = COLOURS[row["kind"]]
        digits = str(row["number"])
        width, height = tag_size(digits, FONT_PX)
        box = (MARGIN_PX, y - height // 2, MARGIN_PX + width, y - height // 2 + height)
        self._pen.rounded_rectangle(box, 3, fill=colour)
        self._pen.text((MARGIN_PX + width / 2, y), digits, fill=HALO, font=tag_font(FONT_PX), anchor="mm")
        words, font = fitting_words(row["name"], f"{row['kind']} {digits}", self._name_px - 8, FONT_PX)
        self._pen.text((MARGIN_PX + TAG_PX, y), words, fill=FOOT_INK, font=font, anchor="lm")
        for start_s, end_s in row["unknown"]:
            self._dashes(*self._band(start_s, end_s, y, y), colour)
        for start_s, end_s in row["possible"]:
            pale = tuple(round(255 - (255 - part) * 0.3) for part in colour)
            self._pen.rectangle(self._band(start_s, end_s, y - 3, y + 3), fill=pale, outline=colour)
        for start_s, end_s in row["sure"]:
            self._pen.rectangle(self._band(start_s, end_s, y - BAR_PX // 2, y + BAR_PX // 2), fill=colour)
        note, font = fitting_words(row["note"], "", NOTE_PX - 12, 12)
        self._pen.text((self._note_x, y), note, fill=FOOT_INK, font=font, anchor="lm")

    def _band(self, start_s: float, end_s: float, top: int, bottom: int) -> tuple[int, int, int, int]:
        """A stretch of time as a rectangle that can be seen, however short it is."""
        x0, x1 = self._axis.x(start_s), self._axis.x(end_s)
        return x0, top, max(x1, x0 + LEAST_BAR_PX - 1), bottom

    def _dashes(self, x0: int, y: int, x1: int, _: int, colour: Colour) -> None:
        for x in range(x0, x1 + 1, 2 * DASH_PX):
            self._pen.line((x, y, min(x + DASH_PX - 1, x1), y), fill=colour)

    def _legend(self, y: int) -> None:
        x, ink = MARGIN_PX, COLOURS["phrase"]
        pale = tuple(round(255 - (255 - part) * 0.3) for part in ink)
        self._pen.rectangle((x, y - 6, x + 28, y + 6), fill=ink)
        x = self._text(x + 36, y, "seen in every frame that was read")
        self._pen.rectangle((x, y - 3, x + 28, y + 3), fill=pale, outline=ink)
        x = self._text(x + 36, y, "possible: up to the next frame that was read")
        self._dashes(x, y, x + 28, y, ink)
        x = self._text(x + 36, y, "not known")
        self._pen.rectangle((x, y - 6, x + 28, y + 6), fill=UNREACHED)
        x = self._text(x + 36, y, "not read yet")
        self._pen.rectangle((x, y - 6, x + 28, y + 6), outline=FAILED)
        for bar in range(x, x + 28, 2 * DASH_PX):
            self._pen.line((bar, y - 6, bar, y + 6), fill=FAILED)
        x = self._text(x + 36, y, "cannot be read")
        self._pen.line((x + 4, y - 6, x + 4, y + 6), fill=CUT)
        x = self._text(x + 14, y, "cut")
        if self._line["rows_left_out"]:
            self._text(x, y, f"{self._line['rows_left_out']} more rows: see the report")

    def _text(self, x: int, y: int, words: str, colour: Colour = FOOT_INK) -> int:
        """Write it; returns where the next may begin."""
        self._pen.text((x, y), words, fill=colour, font=tag_font(FONT_PX), anchor="lm")
        return x + round(tag_font(FONT_PX).getlength(words)) + 20


@dataclass(frozen=True, slots=True)
class _Cell:
    caption: str
    picture: Rgb
    boxes: list[dict[str, Any]]


def draw_scenes(params: dict[str, Any]) -> dict[str, Any]:
    """Write the contact sheet.

    Args:
        params: `cells` (a list of `exposure_sheets.SheetCell` as JSON), `frame_width_px`, those of `write_picture`.

    Returns:
        As `write_picture`.
    """
    cells = [_Cell(f"{cell['time_s']:.2f} s", _picture(cell), cell["boxes"]) for cell in params["cells"]]
    width_px = int(params["frame_width_px"])
    return write_picture(params, lambda side_px: (_scenes(cells, width_px, side_px), 0))


def _picture(cell: dict[str, Any]) -> Rgb:
    """The small picture of a cell; all of them are brought to one size when they are laid out."""
    if "pixels" in cell:
        return PixelFile.from_params(cell["pixels"]).map_rgb()
    data = np.fromfile(cell["jpeg"], np.uint8)
    return np.asarray(cv2.cvtColor(cv2.imdecode(data, cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB))


def write_thumb(params: dict[str, Any]) -> dict[str, Any]:
    """`{pixels, side_px, out_path}` -> `{bytes}`: a small JPEG, its longer side at most `side_px`."""
    small = thumbnail(PixelFile.from_params(params["pixels"]).map_rgb(), params["side_px"])
    _, data = cv2.imencode(".jpg", cv2.cvtColor(small, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, THUMB_QUALITY])
    Path(params["out_path"]).write_bytes(data.tobytes())
    return {"bytes": data.size}


def _scenes(cells: Sequence[_Cell], frame_width_px: int, side_px: int) -> Image.Image:
    def paint(number: int, small: Rgb, scale: float) -> None:
        _draw_boxes(small, cells[number].boxes, scale)

    return draw_cells(
        [cell.picture for cell in cells], [cell.caption for cell in cells], side_px, frame_width_px, paint
    )


def _draw_boxes(small: Rgb, boxes: Sequence[dict[str, Any]], scale: float) -> None:
    """Frames first, then numbers, so that no frame crosses a number; a smaller box lies on top."""
    placed = sorted(((_rect(box["box_xyxy_px"], scale, small), box) for box in boxes), key=lambda item: -_area(item[0]))
    picture = Image.fromarray(small)
    pen = ImageDraw.Draw(picture)
    for (x0, y0, x1, y1), box in placed:
        pen.rectangle((x0 - 2, y0 - 2, x1 + 2, y1 + 2), outline=HALO)
        pen.rectangle((x0 - 1, y0 - 1, x1 + 1, y1 + 1), outline=COLOURS[box["kind"]])
    small[:] = np.asarray(picture)
    taken: list[tuple[int, int, int]] = []
    for (x0, y0, _, _), box in placed:
        label = tag(str(box["number"]), COLOURS[box["kind"]], HALO, CELL_TAG_PX)
        top = max(0, y0 - CELL_TAG_PX - 2)
        left = _beside(taken, max(0, x0 - 2), top, label.shape[1])
        taken.append((left, top, left + label.shape[1]))
        blit(small, label, left, top)


def _beside(taken: Sequence[tuple[int, int, int]], left: int, top: int, width: int) -> int:
    """The column at or right of `left` where a tag covers no earlier one."""
    row = sorted((start, end) for start, y, end in taken if abs(y - top) < CELL_TAG_PX)
    for start, end in row:
        if start < left + width and left < end:
            left = end + 1
    return left


def _rect(box: Sequence[int], scale: float, small: Rgb) -> tuple[int, int, int, int]:
    """The box on the cell, inside of it."""
    height, width = small.shape[:2]
    x0, y0, x1, y1 = (round(edge * scale) for edge in box)
    x0, y0 = min(max(0, x0), width - 1), min(max(0, y0), height - 1)
    return x0, y0, min(max(x0, x1 - 1), width - 1), min(max(y0, y1 - 1), height - 1)


def _area(rect: tuple[int, int, int, int]) -> int:
    return (rect[2] - rect[0] + 1) * (rect[3] - rect[1] + 1)


TASKS = {"draw_exposures": draw_exposures, "draw_scenes": draw_scenes, "write_thumb": write_thumb}
