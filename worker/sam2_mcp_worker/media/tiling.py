"""Cuts a picture of any size into tiles that overlap. Owns the plan; what the tiles gave is put together in seams.py.

Numbers in, boxes out. Every box is x0, y0, x1, y1 in pixels of the whole picture, x1 and y1 exclusive.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from sam2_mcp_worker.errors import WorkerError

Box = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class TileLimit:
    """What a tile may measure, and how far neighbours overlap.

    `overlap_y_px` must exceed the height of the tallest line that is to survive a horizontal seam whole;
    `overlap_x_px` must hold a few characters, by which the two halves of a long line are fitted together.
    """

    max_width_px: int
    max_height_px: int
    max_pixels: int
    overlap_x_px: int
    overlap_y_px: int


# The area of 1200 x 1200, but up to 2400 px wide: lines run from left to right, so an upright edge cuts every
# one of them. Measured on four generated A4 pages at 150 dpi, error rate / of fine print / CPU s: these tiles (two of
# 1240 x 941) 0.41 % / 0.14 % / 3.2; at most 1200 px on both sides (four) 0.79 / 0.97 / 4.1; the whole page
# 0.87 / 1.08 / 3.4 and 290 MB more. A 1080 x 3600 page has the same tiles either way: 0.95 / 1.16 / 5.5.
# 128 px hold a headline of 96 px with its margins; 320 px hold 16 characters of body text.
OCR_TILES = TileLimit(2400, 1200, 1200 * 1200, overlap_x_px=320, overlap_y_px=128)


def plan_tiles(width_px: int, height_px: int, limit: TileLimit = OCR_TILES) -> list[Box]:
    """Tiles that cover the whole picture, row by row from the top, all of nearly the same size.

    As many columns as the width limit asks for; then as many rows as height and area ask for. Where an overlap is too
    large for the limit it is halved as often as needed: the limit wins.

    Raises:
        WorkerError: a side is below 1 px, or the limit is.
    """
    if min(width_px, height_px) < 1 or min(limit.max_width_px, limit.max_height_px, limit.max_pixels) < 1:
        raise WorkerError("bad_picture_size", f"cannot cut {width_px} x {height_px} px", rule="sides are 1 px or more")
    columns = _spans(width_px, min(limit.max_width_px, limit.max_pixels), limit.overlap_x_px)
    widest = max(end - start for start, end in columns)
    rows = _spans(height_px, min(limit.max_height_px, limit.max_pixels // widest), limit.overlap_y_px)
    return [(x0, y0, x1, y1) for y0, y1 in rows for x0, x1 in columns]


def _spans(length: int, longest: int, overlap: int) -> list[tuple[int, int]]:
    """Overlapping intervals over 0..length, none longer than `longest`, balanced to within 1 px."""
    if length <= longest:
        return [(0, length)]
    while overlap > longest // 2:
        overlap //= 2
    count = ceil((length - overlap) / (longest - overlap))
    size = ceil((length + (count - 1) * overlap) / count)
    # Starts are spread evenly, so that rounding shrinks no overlap by more than 1 px.
    return [(start, start + size) for start in ((length - size) * i // (count - 1) for i in range(count))]
