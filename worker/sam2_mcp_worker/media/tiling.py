"""Cuts a picture of any size into tiles that overlap. Owns the plan; what the tiles gave is put together in seams.py.

Numbers in, boxes out. Every box is x0, y0, x1, y1 in pixels of the whole picture, x1 and y1 exclusive.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, isqrt

from sam2_mcp_worker.errors import WorkerError

Box = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class TileLimit:
    """What a tile may measure, and how far neighbours overlap.

    `overlap_y_px` must exceed the height of the tallest line that is to survive a horizontal seam whole;
    `overlap_x_px` must hold a few characters, by which the two halves of a long line are fitted together.

    `max_patches` counts squares of `patch_px` that a tile is laid out in, begun ones included, which is how vision
    providers count tokens; None where the engine knows none.
    """

    max_width_px: int
    max_height_px: int
    max_pixels: int
    overlap_x_px: int
    overlap_y_px: int
    patch_px: int = 1
    max_patches: int | None = None

    def holds(self, width_px: int, height_px: int) -> bool:
        """Whether a tile of this size is within every limit."""
        return (
            width_px <= self.max_width_px
            and height_px <= self.max_height_px
            and width_px * height_px <= self.max_pixels
            and (self.max_patches is None or self.patches(width_px, height_px) <= self.max_patches)
        )

    def patches(self, width_px: int, height_px: int) -> int:
        """How many patches a tile takes."""
        return ceil(width_px / self.patch_px) * ceil(height_px / self.patch_px)

    def longest_px(self, across_px: int) -> int:
        """By area and patches, how long a tile may be that measures `across_px` the other way; 0 when none may."""
        longest = self.max_pixels // across_px
        if self.max_patches is None:
            return longest
        return min(longest, self.max_patches // ceil(across_px / self.patch_px) * self.patch_px)

    def least_height_px(self, height_px: int) -> int:
        """The height that no tile is kept below for the sake of its width: two lines, or the whole picture.

        Never above the largest square that the limits hold, so that a tile of this height always exists.
        """
        square = isqrt(self.max_pixels)
        if self.max_patches is not None:
            square = min(square, isqrt(self.max_patches) * self.patch_px)
        return max(1, min(height_px, self.max_height_px, 2 * self.overlap_y_px, square))


# The area of 1200 x 1200, but up to 2400 px wide: lines run from left to right, so an upright edge cuts every
# one of them. Measured on four generated A4 pages at 150 dpi, error rate / of fine print / CPU s: these tiles (two of
# 1240 x 941) 0.41 % / 0.14 % / 3.2; at most 1200 px on both sides (four) 0.79 / 0.97 / 4.1; the whole page
# 0.87 / 1.08 / 3.4 and 290 MB more. A 1080 x 3600 page has the same tiles either way: 0.95 / 1.16 / 5.5.
# 128 px hold a headline of 96 px with its margins; 320 px hold 16 characters of body text.
OCR_TILES = TileLimit(2400, 1200, 1200 * 1200, overlap_x_px=320, overlap_y_px=128)


# Claude counts visual tokens in squares of this side, padded at the right and at the bottom (reference/vision.md 1).
CLAUDE_PATCH_PX = 28


def claude_tiles(side_px: int, tokens: int) -> TileLimit:
    """What a picture for Claude may measure: `side_px` either way, `tokens` patches of 28 x 28 px.

    The overlaps are those of the local reader: they must hold the same, a headline's height and a few characters.
    """
    return TileLimit(
        side_px,
        side_px,
        side_px * side_px,
        OCR_TILES.overlap_x_px,
        OCR_TILES.overlap_y_px,
        patch_px=CLAUDE_PATCH_PX,
        max_patches=tokens,
    )


def plan_tiles(width_px: int, height_px: int, limit: TileLimit = OCR_TILES) -> list[Box]:
    """Tiles that cover the whole picture, row by row from the top, all of nearly the same size.

    As many columns as the width limit asks for, since every upright edge cuts lines, but none so wide that area or
    patches would leave it too low for two lines; then as many rows as height, area and patches ask for. Where an
    overlap is too large for the limit it is halved as often as needed: the limit wins.

    Raises:
        WorkerError: a side is below 1 px, or the limit is.
    """
    smallest = min(limit.max_width_px, limit.max_height_px, limit.max_pixels, limit.patch_px)
    if min(width_px, height_px, smallest, 1 if limit.max_patches is None else limit.max_patches) < 1:
        raise WorkerError("bad_picture_size", f"cannot cut {width_px} x {height_px} px", rule="sides are 1 px or more")
    widest = min(limit.max_width_px, limit.longest_px(limit.least_height_px(height_px)))
    columns = _spans(width_px, widest, limit.overlap_x_px)
    width = columns[0][1] - columns[0][0]
    rows = _spans(height_px, min(limit.max_height_px, limit.longest_px(width)), limit.overlap_y_px)
    return [(x0, y0, x1, y1) for y0, y1 in rows for x0, x1 in columns]


def halves(rect: Box, limit: TileLimit) -> list[Box]:
    """Two overlapping rectangles that cover `rect`, for an engine whose answer was cut; empty when it is too small.

    An upper and a lower one while each is higher than the overlap, so that no line is cut; then a left and a right one.
    """
    x0, y0, x1, y1 = rect
    if y1 - y0 > max(1, 2 * limit.overlap_y_px):
        return [(x0, y0 + a, x1, y0 + b) for a, b in _two(y1 - y0, limit.overlap_y_px)]
    if x1 - x0 > max(1, 2 * limit.overlap_x_px):
        return [(x0 + a, y0, x0 + b, y1) for a, b in _two(x1 - x0, limit.overlap_x_px)]
    return []


def _two(length: int, overlap: int) -> list[tuple[int, int]]:
    """Two intervals over 0..length that share at least `overlap`, each shorter than the whole."""
    size = (length + overlap + 1) // 2
    return [(0, size), (length - size, length)]


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
