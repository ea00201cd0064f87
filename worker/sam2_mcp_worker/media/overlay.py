"""Draws what was found on a page: the page picture, smaller, with a numbered box around every piece of text.

A task for a decoder child, never for the server process. It reads the decoded pixels through a memory map, so that a
page of 1916 x 19983 px costs its mapped file and the small sheet, not a second copy. Text stays visible: boxes run
around it and number tags stand beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from sam2_mcp_worker.media.box_styles import ALL_STYLES, BoxKind, BoxStyle, FindingKind
from sam2_mcp_worker.media.overlay_layout import Piece, Rect, Sheet, TagPlacer, lay_out_sheet, stack
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.sheet_picture import (
    FOOT_INK,
    FOOT_PX,
    HALO,
    TAG_FONT_PX,
    ink,
    is_dark,
    scaled_pieces,
    tag_font,
    tag_size,
    write_picture,
)

# More boxes than this are drawn without numbers: nobody can follow them, and placing them takes seconds.
MAX_NUMBERED = 3000
BRACKET_ARM_PX = 5
DOT_PX = 2
DOUBLE_GAP_PX = 3  # between the two frames around a region, on the side away from it


@dataclass(frozen=True, slots=True)
class NumberedBox:
    """One finding, in pixels of the whole page."""

    rect: Rect
    kind: BoxKind | FindingKind
    number: int


@dataclass(slots=True)
class _Drawn:
    """A box as it stands on the sheet, and the piece that it stands in."""

    rect: Rect
    piece: Piece
    box: NumberedBox
    tag: Rect | None = None
    in_margin: bool = False
    on_dark: bool = False


def draw_overlay(params: dict[str, Any]) -> dict[str, Any]:
    """Write the overlay picture of one page as a JPEG.

    Args:
        params: `pixels` (a `PixelFile` as JSON), `boxes` (a list of `{"box": [x0, y0, x1, y1], "kind", "number"}` in
            pixels of that file; what lies outside the picture is cut off), `out_path`, and, optional, `max_side_px`
            and `max_bytes`.

    Returns:
        `width_px`, `height_px` and `bytes` of the file, and `numbers_left_out`: boxes that are drawn without a number.

    Raises:
        WorkerError: `pixels_unreadable`; `overlay_too_large` when no legible picture fits `max_bytes`.
    """
    rgb = PixelFile.from_params(params["pixels"]).map_rgb()
    boxes = _clipped(params["boxes"], rgb.shape[1], rgb.shape[0])
    return write_picture(params, lambda side_px: _draw_sheet(rgb, boxes, side_px))


def _clipped(boxes: list[dict[str, Any]], width: int, height: int) -> list[NumberedBox]:
    clipped = []
    for item in boxes:
        x0, y0, x1, y1 = (int(edge) for edge in item["box"])
        rect = (max(0, x0), max(0, y0), min(width, x1), min(height, y1))
        if rect[2] > rect[0] and rect[3] > rect[1]:
            clipped.append(NumberedBox(rect, item["kind"], int(item["number"])))
    return clipped


def _draw_sheet(rgb: NDArray[np.uint8], boxes: list[NumberedBox], side_px: int) -> tuple[Image.Image, int]:
    digits = max((len(str(box.number)) for box in boxes), default=1)
    margin_px = tag_size("8" * digits, TAG_FONT_PX[1])[0] + 8 if boxes else 0
    foot_px = FOOT_PX if boxes else 0
    size_px = (rgb.shape[1], rgb.shape[0])
    sheet = lay_out_sheet(size_px, [box.rect for box in boxes], side_px, margin_px, foot_px)
    base = scaled_pieces(rgb, sheet)
    drawn = _on_sheet(boxes, sheet)
    font_px = _font_px(drawn)
    left_out = _place_tags(base, sheet, drawn, font_px)
    picture = Image.fromarray(base)
    draw = ImageDraw.Draw(picture)
    for item in sorted(drawn, key=lambda item: list(ALL_STYLES).index(item.box.kind)):
        on_dark = is_dark(base, _frame(item.rect, 2))
        # Two pixels leave room for the halo; on paper the smallest print stands too close together for them.
        gap_px = 2 if on_dark or font_px > TAG_FONT_PX[0] else 1
        _outline(draw, _frame(item.rect, gap_px), ALL_STYLES[item.box.kind], on_dark=on_dark)
    for item in drawn:
        if item.tag is not None:
            item.on_dark = is_dark(base, item.tag)
            _tag(draw, item, font_px)
    if boxes:
        _legend(draw, sheet, {box.kind for box in boxes})
    return picture, left_out


def _on_sheet(boxes: list[NumberedBox], sheet: Sheet) -> list[_Drawn]:
    drawn = []
    for box in boxes:
        for piece in sheet.pieces:
            rect = piece.place(box.rect)
            if rect is not None:
                drawn.append(_Drawn(rect, piece, box))
    return drawn


def _font_px(drawn: list[_Drawn]) -> int:
    heights = [item.rect[3] - item.rect[1] for item in drawn]
    typical = round(float(np.median(heights)) * 0.8) if heights else TAG_FONT_PX[1]
    return min(max(typical, TAG_FONT_PX[0]), TAG_FONT_PX[1])


def _place_tags(base: NDArray[np.uint8], sheet: Sheet, drawn: list[_Drawn], font_px: int) -> int:
    """Give each box's first part a tag; return how many boxes stay without."""
    firsts = list({item.box: item for item in reversed(drawn)}.values())[::-1]
    numbered = firsts[:MAX_NUMBERED]
    busy = ink(base)
    for item in drawn:
        x0, y0, x1, y1 = item.rect
        busy[y0:y1, x0:x1] = True
    placer = TagPlacer(busy)
    waiting: dict[tuple[Piece, bool], list[_Drawn]] = {}
    for item in numbered:
        size = tag_size(str(item.box.number), font_px)
        item.tag = placer.beside(item.rect, size, item.piece.target)
        if item.tag is None:
            x0, _, x1, _ = item.piece.target
            left = item.rect[0] - x0 <= x1 - item.rect[2]
            waiting.setdefault((item.piece, left), []).append(item)
    for (piece, left), items in waiting.items():
        _fill_margin(sheet, piece, left, items, font_px)
    return sum(item.tag is None for item in firsts)


def _fill_margin(sheet: Sheet, piece: Piece, left: bool, items: list[_Drawn], font_px: int) -> None:
    items.sort(key=lambda item: item.rect[1] + item.rect[3])
    height = tag_size("8", font_px)[1]
    x0, y0, x1, y1 = piece.target
    wanted = [(item.rect[1] + item.rect[3] - height) // 2 for item in items]
    # One pixel between tags; the last items stay without a tag when the margin is full.
    for item, top in zip(items, stack(wanted, height + 1, y0, y1), strict=False):
        width = tag_size(str(item.box.number), font_px)[0]
        edge = x0 - sheet.margin_px + 1 if left else x1 + sheet.margin_px - 1 - width
        item.tag = (edge, top, edge + width, top + height)
        item.in_margin = True


def _frame(rect: Rect, gap_px: int) -> Rect:
    """The frame's own pixels, all of them outside the box; x1 and y1 inclusive, as Pillow wants them."""
    return rect[0] - gap_px, rect[1] - gap_px, rect[2] + gap_px - 1, rect[3] + gap_px - 1


def _outline(draw: ImageDraw.ImageDraw, frame: Rect, style: BoxStyle, *, on_dark: bool) -> None:
    strokes = _strokes(frame, style)
    for x0, y0, x1, y1 in strokes if on_dark else ():
        draw.rectangle((x0 - 1, y0 - 1, x1 + 1, y1 + 1), fill=HALO)
    if style.shape == "dots":
        draw.rectangle(frame, outline=style.tag)
    for stroke in strokes:
        draw.line(stroke, fill=style.line)


def _sides(frame: Rect) -> list[Rect]:
    x0, y0, x1, y1 = frame
    return [(x0, y0, x0, y1), (x1, y0, x1, y1), (x0, y0, x1, y0), (x0, y1, x1, y1)]


def _strokes(frame: Rect, style: BoxStyle) -> list[Rect]:
    """The straight lines, as x0, y0, x1, y1 (inclusive), that make up the shape of a style."""
    x0, y0, x1, y1 = frame
    sides = [(x0, y0, x0, y1), (x1, y0, x1, y1)]
    if style.shape in ("frame", "double"):
        gaps = (0,) if style.shape == "frame" else (0, DOUBLE_GAP_PX)
        return [side for gap in gaps for side in _sides((x0 - gap, y0 - gap, x1 + gap, y1 + gap))]
    if style.shape == "brackets":
        arm = min(BRACKET_ARM_PX, (x1 - x0) // 4, (y1 - y0) // 4)
        ends = [(start, y, start + arm, y) for start in (x0, x1 - arm) for y in (y0, y1)]
        return [*sides, *ends]
    across = [(x, y, min(x + DOT_PX - 1, x1), y) for x in range(x0, x1 + 1, 2 * DOT_PX) for y in (y0, y1)]
    down = [(x, y, x, min(y + DOT_PX - 1, y1)) for y in range(y0, y1 + 1, 2 * DOT_PX) for x in (x0, x1)]
    return across + down


def _tag(draw: ImageDraw.ImageDraw, item: _Drawn, font_px: int) -> None:
    assert item.tag is not None
    style = ALL_STYLES[item.box.kind]
    x0, y0, x1, y1 = item.tag
    if item.in_margin:
        box_x = item.rect[0] - 2 if x0 < item.rect[0] else item.rect[2] + 1
        tag_x = x1 if x0 < item.rect[0] else x0 - 1
        draw.line((tag_x, (y0 + y1) // 2, box_x, (item.rect[1] + item.rect[3]) // 2), fill=style.line)
    draw.rounded_rectangle((x0, y0, x1 - 1, y1 - 1), 3, fill=style.tag, outline=HALO if item.on_dark else None)
    middle = ((x0 + x1) / 2, (y0 + y1) / 2)
    draw.text(middle, str(item.box.number), fill=style.digits, font=tag_font(font_px), anchor="mm")


def _legend(draw: ImageDraw.ImageDraw, sheet: Sheet, kinds: set[BoxKind | FindingKind]) -> None:
    y = sheet.height_px - FOOT_PX // 2
    font = tag_font(13)
    x = sheet.margin_px
    for kind, style in ALL_STYLES.items():
        if kind in kinds:
            _outline(draw, (x, y - 5, x + 28, y + 5), style, on_dark=False)
            draw.text((x + 36, y), style.words, fill=FOOT_INK, font=font, anchor="lm")
            x += 36 + round(font.getlength(style.words)) + 26
    if len(sheet.pieces) > 1:
        side_by_side = sheet.pieces[0].target[1] == sheet.pieces[1].target[1]
        order = "columns: left to right" if side_by_side else "rows: top to bottom"
        draw.text((x, y), order, fill=FOOT_INK, font=font, anchor="lm")


TASKS = {"draw_overlay": draw_overlay}
