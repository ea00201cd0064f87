"""Finds the Korean fonts that the demo leaflet is set in, and measures text with them.

Owns the font names and their places; knows nothing of pages. No font is shipped or downloaded.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

from PIL import ImageFont

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.sheet_words import FONT_ROOTS

Face = Literal["title", "light", "body", "bold"]

FONT_FILES: dict[Face, str] = {
    "title": "NanumSquareRoundB.ttf",
    "light": "NanumSquareRoundR.ttf",
    "body": "NanumGothic.ttf",
    "bold": "NanumGothicBold.ttf",
}
"""All four are in Debian's fonts-nanum; the licence (OFL 1.1) allows embedding."""

# Measured large, then scaled: hinting at small sizes rounds every advance to whole pixels.
MEASURING_SIZE_PX = 120


def find_fonts(font_dir: Path | None = None) -> dict[Face, Path]:
    """One file for every face.

    Args:
        font_dir: the only folder to search (with its subfolders); without it the usual font folders.

    Raises:
        WorkerError: `font_missing`, naming the files that were not found and how to get them.
    """
    roots = [font_dir] if font_dir is not None else [root.expanduser() for root in FONT_ROOTS]
    found = {face: _first(roots, name) for face, name in FONT_FILES.items()}
    missing = sorted(FONT_FILES[face] for face, path in found.items() if path is None)
    if missing:
        raise WorkerError(
            "font_missing",
            f"the Korean fonts {', '.join(missing)} were not found",
            rule="the demo leaflet is set in the Nanum fonts",
            next_step="install them (Debian, Ubuntu: apt-get install fonts-nanum) or name their folder as font_dir",
            private=f"searched {[str(root) for root in roots]}",
        )
    return {face: path for face, path in found.items() if path is not None}


def _first(roots: list[Path], name: str) -> Path | None:
    return next((path for root in roots for path in sorted(root.rglob(name)) if path.is_file()), None)


@cache
def load_font(path: Path, size_px: int) -> ImageFont.FreeTypeFont:
    """The font at a whole pixel size. Basic layout: the same advances whether or not libraqm is there."""
    return ImageFont.truetype(str(path), size_px, layout_engine=ImageFont.Layout.BASIC)


def ink_box_px(font: ImageFont.FreeTypeFont, text: str) -> tuple[int, int, int, int]:
    """The box of the letters' pixels, with the baseline's start at (0, 0); `getbbox` would add the last advance."""
    mask, offset = font.getmask2(text, "L", anchor="ls")
    left, top, right, bottom = mask.getbbox() or (0, 0, 0, 0)
    return left + offset[0], top + offset[1], right + offset[0], bottom + offset[1]
