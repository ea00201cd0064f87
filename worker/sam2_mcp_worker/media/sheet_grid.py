"""Pictures side by side on one sheet: how many of them, in which grid, each with a caption below it.

Knows nothing of what the pictures show. For decoder children, never for the server process.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from PIL import Image, ImageDraw

from sam2_mcp_worker.media.sheet_picture import DESK, FOOT_INK, tag_font
from sam2_mcp_worker.media.video_pixels import Rgb

GAP_PX = 6
CAPTION_PX = 18
CAPTION_FONT_PX = 13

PaintCell = Callable[[int, Rgb, float], None]
"""Draws on a cell in place: its number from 0, the picture as it stands on the sheet, and its size over the whole's."""


def evenly(items: Sequence[Any], most: int) -> list[Any]:
    """At most so many of the items, evenly spread, the first and the last among them."""
    if len(items) <= most:
        return list(items)
    return [items[round(i * (len(items) - 1) / (most - 1))] for i in range(most)]


@dataclass(frozen=True, slots=True)
class Grid:
    """Columns, and the size of one picture."""

    columns: int
    width_px: int
    height_px: int


def lay_out_grid(count: int, size_px: tuple[int, int], side_px: int) -> Grid:
    """The grid whose pictures are largest within a square; pictures are never enlarged."""

    def scale(columns: int) -> float:
        rows = -(-count // columns)
        across = (side_px - (columns + 1) * GAP_PX) / columns / size_px[0]
        along = (side_px - (rows + 1) * GAP_PX - rows * CAPTION_PX) / rows / size_px[1]
        return min(1.0, across, along)

    def longer_side(columns: int) -> float:
        return max(columns * size_px[0], -(-count // columns) * size_px[1])

    columns = max(range(1, count + 1), key=lambda columns: (scale(columns), -longer_side(columns)))
    factor = max(0.0, scale(columns))
    return Grid(columns, max(1, math.floor(size_px[0] * factor)), max(1, math.floor(size_px[1] * factor)))


def draw_cells(
    pictures: Sequence[Rgb], captions: Sequence[str], side_px: int, whole_width_px: int, paint: PaintCell
) -> Image.Image:
    """The sheet, at most `side_px` a side.

    Args:
        pictures: at least one, all of one shape; smaller ones are enlarged to the largest.
        captions: one for each picture, in Latin letters.
        whole_width_px: the width of the picture that `paint` has its coordinates of.
    """
    height, width = max((picture.shape[:2] for picture in pictures), key=lambda shape: shape[1])
    grid = lay_out_grid(len(pictures), (width, height), side_px)
    rows = -(-len(pictures) // grid.columns)
    step_x, step_y = grid.width_px + GAP_PX, grid.height_px + CAPTION_PX + GAP_PX
    base = np.full((rows * step_y + GAP_PX, grid.columns * step_x + GAP_PX, 3), DESK, np.uint8)
    corners = []
    for number, picture in enumerate(pictures):
        row, column = divmod(number, grid.columns)
        x, y = GAP_PX + column * step_x, GAP_PX + row * step_y
        small = cv2.resize(picture, (grid.width_px, grid.height_px), interpolation=cv2.INTER_AREA)
        paint(number, small, grid.width_px / whole_width_px)
        base[y : y + grid.height_px, x : x + grid.width_px] = small
        corners.append((x, y))
    sheet = Image.fromarray(base)
    pen, font = ImageDraw.Draw(sheet), tag_font(CAPTION_FONT_PX)
    for (x, y), text in zip(corners, captions, strict=True):
        middle = (x + grid.width_px / 2, y + grid.height_px + CAPTION_PX / 2)
        pen.text(middle, text, fill=FOOT_INK, font=font, anchor="mm")
    return sheet
