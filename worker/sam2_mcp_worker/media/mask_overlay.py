"""Draws masks on their picture: every object a coloured region with its number; where nothing was found, the prompt.

A task for a decoder child. Masks come as run lengths (rle.py), so that objects of earlier calls need no file. A region
is told from its neighbours by its number and outline; colours repeat. Objects in groups (what bears one label) have
the colour of their group, a frame where they have no mask, and a line of the legend for each group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from sam2_mcp_worker.media.box_styles import Rgb
from sam2_mcp_worker.media.masks import Mask
from sam2_mcp_worker.media.overlay_layout import Piece, Rect, Sheet, TagPlacer, lay_out_sheet
from sam2_mcp_worker.media.overlay_legend import LegendEntry, Swatch, draw_legend, drawable, legend_height
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.rle import decode_runs, expand_runs
from sam2_mcp_worker.media.sheet_picture import (
    FOOT_PX,
    HALO,
    ink,
    scaled_pieces,
    tag_font,
    tag_size,
    write_picture,
)

# Colours of the Okabe-Ito palette, darkened where white digits stand on them (contrast at least 4.5 : 1).
COLOURS: tuple[tuple[Rgb, Rgb], ...] = (
    ((0, 96, 168), (255, 255, 255)),
    ((230, 159, 0), (0, 0, 0)),
    ((0, 120, 88), (255, 255, 255)),
    ((186, 74, 0), (255, 255, 255)),
    ((240, 228, 66), (0, 0, 0)),
    ((168, 80, 130), (255, 255, 255)),
    ((86, 180, 233), (0, 0, 0)),
)
# How much of the colour lies over the picture: its texture stays to be seen.
TINT = 0.4
OUTLINE_PX = 2
# Digits of a region: larger than those beside lines of text, since they stand on a picture.
FONT_PX = 15
SIDE_MARGIN_PX = 8
DOT_PX = 3
CROSS_PX = 4
FRAME_PX = 3
MISSING: Rgb = (90, 90, 90)
POSITIVE: Rgb = (0, 130, 60)
NEGATIVE: Rgb = (200, 0, 40)


@dataclass(frozen=True, slots=True)
class _Object:
    """One object as it was asked for and found; `mask` is blank when nothing was. Groups count from 1, 0 is none."""

    number: int
    mask: Mask
    box: Rect | None
    points: tuple[tuple[int, int, bool], ...]
    group: int = 0

    @property
    def colours(self) -> tuple[Rgb, Rgb]:
        """Of the region and of the digits on it."""
        return COLOURS[((self.group or self.number) - 1) % len(COLOURS)]

    @property
    def tag_colours(self) -> tuple[Rgb, Rgb]:
        """Of the tag and its digits: grey where nothing was found."""
        return self.colours if self.group or self.mask.box_xyxy_px else (MISSING, (255, 255, 255))


@dataclass(frozen=True, slots=True)
class _Region:
    """The part of a mask that stands on one piece of the sheet: `inside` is bool of exactly `rect`."""

    rect: Rect
    inside: NDArray[np.bool_]
    piece: Piece


def draw_mask_overlay(params: dict[str, Any]) -> dict[str, Any]:
    """Write the picture with its objects as a JPEG.

    Args:
        params: `pixels` (a `PixelFile` as JSON), `objects` (a list of `{"number", "counts"` (run lengths of the whole
            picture as COCO compresses them, None when nothing was found)`, "box"` (the prompt or None)`, "points"`, and
            optional `"group"}`), optional `legend` (the words for each group, in order), and those of `write_picture`.

    Returns:
        As `write_picture`.

    Raises:
        WorkerError: `pixels_unreadable`, `overlay_too_large`, `rle_invalid`.
    """
    pixels = PixelFile.from_params(params["pixels"])
    rgb = pixels.map_rgb()
    size_px = (pixels.width_px, pixels.height_px)
    objects = [_object(fields, size_px) for fields in params["objects"]]
    legend = [str(words) for words in params.get("legend") or ()]
    return write_picture(params, lambda side_px: (_draw(rgb, objects, legend, side_px), 0))


def _object(fields: dict[str, Any], size_px: tuple[int, int]) -> _Object:
    runs = expand_runs(fields["counts"]) if fields["counts"] is not None else [size_px[0] * size_px[1]]
    box = fields["box"]
    return _Object(
        number=int(fields["number"]),
        mask=decode_runs(runs, size_px),
        box=(box[0], box[1], box[2], box[3]) if box else None,
        points=tuple((int(x), int(y), bool(positive)) for x, y, positive in fields["points"]),
        group=int(fields.get("group", 0)),
    )


def _draw(rgb: NDArray[np.uint8], objects: Sequence[_Object], legend: Sequence[str], side_px: int) -> Image.Image:
    boxes = [rect for item in objects if (rect := item.mask.box_xyxy_px or item.box) is not None]
    entries = _entries(objects, legend)
    sheet = lay_out_sheet((rgb.shape[1], rgb.shape[0]), boxes, side_px, SIDE_MARGIN_PX, FOOT_PX)
    if legend:  # how many rows it needs depends on the sheet's width
        foot_px = legend_height(entries, sheet, side_px)
        sheet = lay_out_sheet((rgb.shape[1], rgb.shape[0]), boxes, side_px, SIDE_MARGIN_PX, foot_px)
    base = scaled_pieces(rgb, sheet)
    busy = ink(base)
    regions = {item.number: _regions(item.mask, sheet) for item in objects}
    for item in sorted(objects, key=lambda item: -item.mask.area_px):  # small ones on top
        for region in regions[item.number]:
            _paint(base, region, item.colours[0])
            busy[_slices(region.rect)] |= region.inside
    picture = Image.fromarray(base)
    pen = ImageDraw.Draw(picture)
    for item in objects:
        _draw_prompt(pen, sheet, item)
    placer = TagPlacer(busy)
    for item in objects:
        _draw_number(pen, sheet, item, regions[item.number], placer)
    draw_legend(pen, sheet, entries)
    return picture


def _regions(mask: Mask, sheet: Sheet) -> list[_Region]:
    regions = []
    for piece in sheet.pieces:
        rect = piece.place(mask.box_xyxy_px) if mask.box_xyxy_px else None
        if rect is not None and mask.box_xyxy_px is not None:
            x0, y0, x1, y1 = mask.box_xyxy_px
            left, top = max(x0, piece.source[0]), max(y0, piece.source[1])
            right, bottom = min(x1, piece.source[2]), min(y1, piece.source[3])
            part = mask.inside[top - y0 : bottom - y0, left - x0 : right - x0]
            # A box is rounded out, by a pixel beyond the piece where the division is not exact.
            on_piece = (rect[0], rect[1], min(rect[2], piece.target[2]), min(rect[3], piece.target[3]))
            regions.append(_Region(on_piece, _shrunk(part, on_piece), piece))
    return regions


def _shrunk(part: NDArray[np.bool_], rect: Rect) -> NDArray[np.bool_]:
    """The part at the sheet's size; what is thinner than a pixel of the sheet stays visible."""
    size = (rect[2] - rect[0], rect[3] - rect[1])
    cover = cv2.resize(part.astype(np.uint8) * 255, size, interpolation=cv2.INTER_AREA)
    return np.asarray(cover >= min(128, max(1, int(cover.max(initial=0)))))


def _slices(rect: Rect) -> tuple[slice, slice]:
    return slice(rect[1], rect[3]), slice(rect[0], rect[2])


def _paint(base: NDArray[np.uint8], region: _Region, colour: Rgb) -> None:
    """Tint the region; around it, holes included, its outline with a light halo. Nothing leaves the piece."""
    tx0, ty0, tx1, ty1 = region.piece.target
    x0, y0, x1, y1 = region.rect
    pad = OUTLINE_PX + 1
    rect = (max(tx0, x0 - pad), max(ty0, y0 - pad), min(tx1, x1 + pad), min(ty1, y1 + pad))
    inside = np.zeros((rect[3] - rect[1], rect[2] - rect[0]), np.uint8)
    inside[y0 - rect[1] : y1 - rect[1], x0 - rect[0] : x1 - rect[0]] = region.inside
    view = base[_slices(rect)]
    body = inside.astype(np.bool_)
    tinted = view[body].astype(np.float32) * (1 - TINT) + np.array(colour, np.float32) * TINT
    view[body] = tinted.astype(np.uint8)
    edge = cv2.dilate(inside, np.ones((3, 3), np.uint8), iterations=OUTLINE_PX).astype(np.bool_)
    halo = cv2.dilate(inside, np.ones((3, 3), np.uint8), iterations=pad).astype(np.bool_)
    view[halo & ~edge] = HALO
    view[edge & ~body] = colour


def _draw_prompt(pen: ImageDraw.ImageDraw, sheet: Sheet, item: _Object) -> None:
    for piece in sheet.pieces:
        if item.mask.box_xyxy_px is None and item.box is not None and (rect := piece.place(item.box)) is not None:
            if item.group:
                _framed(pen, rect, item.colours[0])
            else:
                _dotted(pen, rect)
        for x, y, positive in item.points:
            if (at := piece.place((x, y, x + 1, y + 1))) is not None:
                _draw_point(pen, ((at[0] + at[2]) // 2, (at[1] + at[3]) // 2), positive)


def _framed(pen: ImageDraw.ImageDraw, rect: Rect, colour: Rgb) -> None:
    """Around the box, so that it hides no letter at its edges."""
    for pad, width, shade in ((FRAME_PX + 2, 1, HALO), (FRAME_PX + 1, FRAME_PX, colour)):
        frame = (rect[0] - pad, rect[1] - pad, rect[2] - 1 + pad, rect[3] - 1 + pad)
        pen.rectangle(frame, outline=shade, width=width)


def _dotted(pen: ImageDraw.ImageDraw, rect: Rect) -> None:
    x0, y0, x1, y1 = rect[0], rect[1], rect[2] - 1, rect[3] - 1
    pen.rectangle((x0, y0, x1, y1), outline=HALO)
    for x in range(x0, x1 + 1, 2 * DOT_PX):
        for y in (y0, y1):
            pen.line((x, y, min(x + DOT_PX - 1, x1), y), fill=MISSING)
    for y in range(y0, y1 + 1, 2 * DOT_PX):
        for x in (x0, x1):
            pen.line((x, y, x, min(y + DOT_PX - 1, y1)), fill=MISSING)


def _draw_point(pen: ImageDraw.ImageDraw, at: tuple[int, int], positive: bool) -> None:
    x, y = at
    arms = [(x - CROSS_PX, y, x + CROSS_PX, y), (x, y - CROSS_PX, x, y + CROSS_PX)]
    if not positive:
        arms = [(x - CROSS_PX, y - CROSS_PX, x + CROSS_PX, y + CROSS_PX)]
        arms.append((x - CROSS_PX, y + CROSS_PX, x + CROSS_PX, y - CROSS_PX))
    for width, colour in ((4, HALO), (2, POSITIVE if positive else NEGATIVE)):
        for arm in arms:
            pen.line(arm, fill=colour, width=width)


def _draw_number(
    pen: ImageDraw.ImageDraw, sheet: Sheet, item: _Object, regions: Sequence[_Region], placer: TagPlacer
) -> None:
    """The number in the middle of the largest region, beside one that is too small for it, by the prompt if blank."""
    size = tag_size(str(item.number), FONT_PX)
    rect = _room_inside(max(regions, key=lambda region: int(region.inside.sum())), size) if regions else None
    anchor = _anchor(item, sheet, regions)
    if rect is None and anchor is not None:
        piece, box = anchor
        rect = placer.beside(box, size, piece.target) or (box[0], box[1], box[0] + size[0], box[1] + size[1])
    if rect is None:
        return
    colour, digits = item.tag_colours
    pen.rounded_rectangle((rect[0], rect[1], rect[2] - 1, rect[3] - 1), 3, fill=colour, outline=HALO)
    middle = ((rect[0] + rect[2]) / 2, (rect[1] + rect[3]) / 2)
    pen.text(middle, str(item.number), fill=digits, font=tag_font(FONT_PX), anchor="mm")


def _room_inside(region: _Region, size: tuple[int, int]) -> Rect | None:
    """The tag's place at the point that is farthest from the region's edge, if it fits there."""
    inside = np.pad(region.inside.astype(np.uint8), 1)
    distance = cv2.distanceTransform(inside, cv2.DIST_L2, 3)
    row, column = np.unravel_index(int(np.argmax(distance)), distance.shape)
    if 2 * float(distance[row, column]) < np.hypot(*size):
        return None
    x, y = region.rect[0] + int(column) - 1 - size[0] // 2, region.rect[1] + int(row) - 1 - size[1] // 2
    return x, y, x + size[0], y + size[1]


def _anchor(item: _Object, sheet: Sheet, regions: Sequence[_Region]) -> tuple[Piece, Rect] | None:
    """Where the object stands on the sheet: its region, or its prompt when nothing was found."""
    if regions:
        return regions[0].piece, regions[0].rect
    asked = item.box or next(((x, y, x + 1, y + 1) for x, y, positive in item.points if positive), None)
    for piece in sheet.pieces:
        if asked is not None and (rect := piece.place(asked)) is not None:
            return piece, rect
    return None


def _entries(objects: Sequence[_Object], legend: Sequence[str]) -> list[LegendEntry]:
    """What the legend explains."""
    if legend:
        groups = sorted({item.group for item in objects if 0 < item.group <= len(legend)})
        return [
            LegendEntry(_filled(COLOURS[(n - 1) % len(COLOURS)][0]), 20, drawable(legend[n - 1], f"label {n}"))
            for n in groups
        ]
    entries: list[LegendEntry] = []
    if any(item.mask.box_xyxy_px for item in objects):
        entries.append(LegendEntry(_filled(objects[0].colours[0]), 20, "object"))
    if any(item.mask.box_xyxy_px is None for item in objects):
        entries.append(LegendEntry(lambda pen, x, y: _dotted(pen, (x, y - 6, x + 21, y + 7)), 20, "not found"))
    if any(point[2] for item in objects for point in item.points):
        entries.append(LegendEntry(lambda pen, x, y: _draw_point(pen, (x + 5, y), True), 10, "point on it"))
    if any(not point[2] for item in objects for point in item.points):
        entries.append(LegendEntry(lambda pen, x, y: _draw_point(pen, (x + 5, y), False), 10, "point beside it"))
    return entries


def _filled(colour: Rgb) -> Swatch:
    return lambda pen, x, y: pen.rectangle((x, y - 6, x + 20, y + 6), fill=colour)


TASKS = {"draw_mask_overlay": draw_mask_overlay}
