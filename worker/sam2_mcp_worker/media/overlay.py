"""Draws what was found on a page: the page picture, smaller, with a numbered box around every piece of text.

A task for a decoder child, never for the server process. It reads the decoded pixels through a memory map, so that a
page of 1916 x 19983 px costs its mapped file and the small sheet, not a second copy. Text stays visible: boxes run
around it and number tags stand beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.box_styles import STYLES, BoxKind, BoxStyle, Rgb
from sam2_mcp_worker.media.overlay_layout import Piece, Rect, Sheet, TagPlacer, lay_out_sheet, stack
from sam2_mcp_worker.media.pixels import PixelFile

# The longest side that Claude and the common vision models take without scaling it down is 1,568 to 2,000 px.
DEFAULT_MAX_SIDE_PX = 1600
DEFAULT_MAX_BYTES = 1_000_000  # a nine-page report stays under 10 MB, an agent's image block under every host's cap
# JPEG quality and colour sampling, tried in order. Full colour resolution (4:4:4) first: halved (4:2:0), the one-pixel
# frames lose some of the colour that tells their kind. Below 56 the rings around digits make them hard to read.
FULL, HALVED = cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420
ENCODINGS = ((88, FULL), (80, FULL), (72, FULL), (64, HALVED), (56, HALVED))
SHRINK = 0.85  # of the side, when the last encoding is still too large
SMALLEST_SIDE_PX = 200  # nothing is readable below
# More boxes than this are drawn without numbers: nobody can follow them, and placing them takes seconds.
MAX_NUMBERED = 3000
TAG_FONT_PX = (9, 13)  # smallest and largest; between them it follows the text's own height on the sheet
TAG_PADDING_PX = 2
FOOT_PX = 26  # the legend
BRACKET_ARM_PX = 5
DOT_PX = 2
# A step in brightness (of 255) between neighbouring pixels that counts as ink; paper grain and JPEG noise stay below.
INK_STEP = 40
# Below this brightness a frame gets a light halo; on paper a halo would only eat into the neighbouring letters.
DARK = 128
DESK: Rgb = (236, 240, 244)  # around the page, so that margins and cuts are told from paper
HALO: Rgb = (255, 255, 255)
FOOT_INK: Rgb = (40, 48, 56)


@dataclass(frozen=True, slots=True)
class NumberedBox:
    """One finding, in pixels of the whole page."""

    rect: Rect
    kind: BoxKind
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
    rgb = _map_pixels(PixelFile.from_params(params["pixels"]))
    boxes = _clipped(params["boxes"], rgb.shape[1], rgb.shape[0])
    max_bytes = int(params.get("max_bytes") or DEFAULT_MAX_BYTES)
    side_px = int(params.get("max_side_px") or DEFAULT_MAX_SIDE_PX)
    while side_px >= SMALLEST_SIDE_PX:
        picture, left_out = _draw_sheet(rgb, boxes, side_px)
        data = _encode(picture, max_bytes)
        if data is not None:
            _write(Path(params["out_path"]), data)
            return {
                "width_px": picture.width,
                "height_px": picture.height,
                "bytes": len(data),
                "numbers_left_out": left_out,
            }
        side_px = int(min(side_px, max(picture.size)) * SHRINK)
    raise WorkerError(
        "overlay_too_large",
        f"no overlay picture of at least {SMALLEST_SIDE_PX} px fits {max_bytes} bytes",
        next_step=f"raise max_bytes, or max_side_px if it is below {SMALLEST_SIDE_PX}",
    )


def _map_pixels(pixels: PixelFile) -> NDArray[np.uint8]:
    try:
        return pixels.map_rgb()
    except (OSError, ValueError) as error:
        raise WorkerError(
            "pixels_unreadable",
            f"the decoded picture of {pixels.width_px} x {pixels.height_px} px cannot be read",
            next_step="decode the page again",
            private=repr(error),
        ) from error


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
    margin_px = _tag_size("8" * digits, TAG_FONT_PX[1])[0] + 8 if boxes else 0
    foot_px = FOOT_PX if boxes else 0
    size_px = (rgb.shape[1], rgb.shape[0])
    sheet = lay_out_sheet(size_px, [box.rect for box in boxes], side_px, margin_px, foot_px)
    base = _scaled_pieces(rgb, sheet)
    drawn = _on_sheet(boxes, sheet)
    font_px = _font_px(drawn)
    left_out = _place_tags(base, sheet, drawn, font_px)
    picture = Image.fromarray(base)
    draw = ImageDraw.Draw(picture)
    for item in sorted(drawn, key=lambda item: list(STYLES).index(item.box.kind)):
        on_dark = _is_dark(base, _frame(item.rect, 2))
        # Two pixels leave room for the halo; on paper the smallest print stands too close together for them.
        gap_px = 2 if on_dark or font_px > TAG_FONT_PX[0] else 1
        _outline(draw, _frame(item.rect, gap_px), STYLES[item.box.kind], on_dark=on_dark)
    for item in drawn:
        if item.tag is not None:
            item.on_dark = _is_dark(base, item.tag)
            _tag(draw, item, font_px)
    if boxes:
        _legend(draw, sheet, {box.kind for box in boxes})
    return picture, left_out


def _scaled_pieces(rgb: NDArray[np.uint8], sheet: Sheet) -> NDArray[np.uint8]:
    base = np.full((sheet.height_px, sheet.width_px, 3), DESK, dtype=np.uint8)
    for piece in sheet.pieces:
        sx0, sy0, sx1, sy1 = piece.source
        tx0, ty0, tx1, ty1 = piece.target
        # INTER_AREA reads the mapped rows once and averages; a plain resize would drop thin strokes.
        size = (tx1 - tx0, ty1 - ty0)
        base[ty0:ty1, tx0:tx1] = cv2.resize(rgb[sy0:sy1, sx0:sx1], size, interpolation=cv2.INTER_AREA)
    return base


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
    busy = _ink(base)
    for item in drawn:
        x0, y0, x1, y1 = item.rect
        busy[y0:y1, x0:x1] = True
    placer = TagPlacer(busy)
    waiting: dict[tuple[Piece, bool], list[_Drawn]] = {}
    for item in numbered:
        size = _tag_size(str(item.box.number), font_px)
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
    height = _tag_size("8", font_px)[1]
    x0, y0, x1, y1 = piece.target
    wanted = [(item.rect[1] + item.rect[3] - height) // 2 for item in items]
    # One pixel between tags; the last items stay without a tag when the margin is full.
    for item, top in zip(items, stack(wanted, height + 1, y0, y1), strict=False):
        width = _tag_size(str(item.box.number), font_px)[0]
        edge = x0 - sheet.margin_px + 1 if left else x1 + sheet.margin_px - 1 - width
        item.tag = (edge, top, edge + width, top + height)
        item.in_margin = True


def _ink(base: NDArray[np.uint8]) -> NDArray[np.bool_]:
    grey = cv2.cvtColor(base, cv2.COLOR_RGB2GRAY)
    steps = cv2.morphologyEx(grey, cv2.MORPH_GRADIENT, np.ones((3, 3), np.uint8))
    return np.asarray(steps > INK_STEP)


def _frame(rect: Rect, gap_px: int) -> Rect:
    """The frame's own pixels, all of them outside the box; x1 and y1 inclusive, as Pillow wants them."""
    return rect[0] - gap_px, rect[1] - gap_px, rect[2] + gap_px - 1, rect[3] + gap_px - 1


def _is_dark(base: NDArray[np.uint8], frame: Rect) -> bool:
    x0, y0, x1, y1 = (max(0, edge) for edge in frame)
    edges = np.concatenate((base[y0 : y0 + 1, x0 : x1 + 1], base[y1 : y1 + 1, x0 : x1 + 1]), axis=1)
    return bool(edges.size) and float(np.median(edges)) < DARK


def _outline(draw: ImageDraw.ImageDraw, frame: Rect, style: BoxStyle, *, on_dark: bool) -> None:
    strokes = _strokes(frame, style)
    for x0, y0, x1, y1 in strokes if on_dark else ():
        draw.rectangle((x0 - 1, y0 - 1, x1 + 1, y1 + 1), fill=HALO)
    if style.shape == "dots":
        draw.rectangle(frame, outline=style.tag)
    for stroke in strokes:
        draw.line(stroke, fill=style.line)


def _strokes(frame: Rect, style: BoxStyle) -> list[Rect]:
    """The straight lines, as x0, y0, x1, y1 (inclusive), that make up the shape of a style."""
    x0, y0, x1, y1 = frame
    sides = [(x0, y0, x0, y1), (x1, y0, x1, y1)]
    if style.shape == "frame":
        return [*sides, (x0, y0, x1, y0), (x0, y1, x1, y1)]
    if style.shape == "brackets":
        arm = min(BRACKET_ARM_PX, (x1 - x0) // 4, (y1 - y0) // 4)
        ends = [(start, y, start + arm, y) for start in (x0, x1 - arm) for y in (y0, y1)]
        return [*sides, *ends]
    across = [(x, y, min(x + DOT_PX - 1, x1), y) for x in range(x0, x1 + 1, 2 * DOT_PX) for y in (y0, y1)]
    down = [(x, y, x, min(y + DOT_PX - 1, y1)) for y in range(y0, y1 + 1, 2 * DOT_PX) for x in (x0, x1)]
    return across + down


def _tag(draw: ImageDraw.ImageDraw, item: _Drawn, font_px: int) -> None:
    assert item.tag is not None
    style = STYLES[item.box.kind]
    x0, y0, x1, y1 = item.tag
    if item.in_margin:
        box_x = item.rect[0] - 2 if x0 < item.rect[0] else item.rect[2] + 1
        tag_x = x1 if x0 < item.rect[0] else x0 - 1
        draw.line((tag_x, (y0 + y1) // 2, box_x, (item.rect[1] + item.rect[3]) // 2), fill=style.line)
    draw.rounded_rectangle((x0, y0, x1 - 1, y1 - 1), 3, fill=style.tag, outline=HALO if item.on_dark else None)
    middle = ((x0 + x1) / 2, (y0 + y1) / 2)
    draw.text(middle, str(item.box.number), fill=style.digits, font=_font(font_px), anchor="mm")


def _legend(draw: ImageDraw.ImageDraw, sheet: Sheet, kinds: set[BoxKind]) -> None:
    y = sheet.height_px - FOOT_PX // 2
    font = _font(13)
    x = sheet.margin_px
    for kind, style in STYLES.items():
        if kind in kinds:
            _outline(draw, (x, y - 5, x + 28, y + 5), style, on_dark=False)
            draw.text((x + 36, y), style.words, fill=FOOT_INK, font=font, anchor="lm")
            x += 36 + round(font.getlength(style.words)) + 26
    if len(sheet.pieces) > 1:
        side_by_side = sheet.pieces[0].target[1] == sheet.pieces[1].target[1]
        order = "columns: left to right" if side_by_side else "rows: top to bottom"
        draw.text((x, y), order, fill=FOOT_INK, font=font, anchor="lm")


def _tag_size(digits: str, font_px: int) -> tuple[int, int]:
    width = round(_font(font_px).getlength(digits))
    return width + 2 * TAG_PADDING_PX + 2, font_px + TAG_PADDING_PX


def _font(size_px: int) -> ImageFont.FreeTypeFont:
    """The font inside Pillow: digits and Latin letters are all that an overlay needs."""
    font = ImageFont.load_default(size_px)
    assert isinstance(font, ImageFont.FreeTypeFont)
    return font


def _encode(picture: Image.Image, max_bytes: int) -> bytes | None:
    bgr = cv2.cvtColor(np.asarray(picture), cv2.COLOR_RGB2BGR)
    for quality, sampling in ENCODINGS:
        # Progressive saves 14 % of the bytes on the demo leaflet's pages, for 20 ms. OpenCV, because Pillow gives up
        # on progressive pictures that are larger than its buffer ("broken data stream"), as photographs can be.
        options = [
            *(cv2.IMWRITE_JPEG_QUALITY, quality),
            *(cv2.IMWRITE_JPEG_SAMPLING_FACTOR, sampling),
            *(cv2.IMWRITE_JPEG_PROGRESSIVE, 1),
        ]
        written, data = cv2.imencode(".jpg", bgr, options)
        if written and data.size <= max_bytes:
            return bytes(data)
    return None


def _write(path: Path, data: bytes) -> None:
    """All or nothing: a child may be killed at any time, and half a picture must never look like a whole one."""
    half = path.with_name(path.name + ".part")
    half.write_bytes(data)
    half.replace(path)


TASKS = {"draw_overlay": draw_overlay}
