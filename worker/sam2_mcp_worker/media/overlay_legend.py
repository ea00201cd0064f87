"""The legend at the foot of an overlay sheet, in as many rows as it needs. Knows nothing of what it explains."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from PIL import ImageDraw

from sam2_mcp_worker.media.overlay_layout import Sheet
from sam2_mcp_worker.media.sheet_picture import FOOT_INK, FOOT_PX, tag_font

ROW_PX = 20
FONT_PX = 13
SIGN_GAP_PX = 8
ENTRY_GAP_PX = 20
# The font inside Pillow has Latin letters only; what it lacks would be a row of empty boxes.
LAST_DRAWABLE = "\u024f"

Swatch = Callable[[ImageDraw.ImageDraw, int, int], None]
"""Draws the sign of an entry: pen, left edge, middle line."""


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """A sign of `width_px` and its words."""

    draw: Swatch
    width_px: int
    words: str


def drawable(words: str, otherwise: str) -> str:
    """The words, with `otherwise` for what stands before the last colon where the font lacks a letter of it."""
    if all(character <= LAST_DRAWABLE for character in words):
        return words
    _, colon, rest = words.rpartition(": ")
    return f"{otherwise}{colon}{rest}" if colon else otherwise


def legend_height(entries: Sequence[LegendEntry], sheet: Sheet, side_px: int) -> int:
    """Height in px on a sheet of that width; at most about half of `side_px`, so that a picture remains."""
    rows = 1 + max((row for _, row, _ in _placed(entries, sheet)), default=0)
    return FOOT_PX + ROW_PX * (min(rows, max(1, side_px // (2 * ROW_PX))) - 1)


def draw_legend(pen: ImageDraw.ImageDraw, sheet: Sheet, entries: Sequence[LegendEntry]) -> None:
    """Draw the entries below the pieces of the page."""
    font, top = tag_font(FONT_PX), max(piece.target[3] for piece in sheet.pieces)
    for entry, row, x in _placed(entries, sheet):
        y = top + FOOT_PX // 2 + row * ROW_PX
        entry.draw(pen, x, y)
        pen.text((x + entry.width_px + SIGN_GAP_PX, y), entry.words, fill=FOOT_INK, font=font, anchor="lm")


def _placed(entries: Sequence[LegendEntry], sheet: Sheet) -> Iterator[tuple[LegendEntry, int, int]]:
    """Every entry with its row and left edge."""
    font, row, x = tag_font(FONT_PX), 0, sheet.margin_px
    for entry in entries:
        length = entry.width_px + SIGN_GAP_PX + round(font.getlength(entry.words)) + ENTRY_GAP_PX
        if x > sheet.margin_px and x + length > sheet.width_px:
            row, x = row + 1, sheet.margin_px
        yield entry, row, x
        x += length
