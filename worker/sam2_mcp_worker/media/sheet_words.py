"""Words on sheets in whatever script they come: the font inside Pillow, or a Korean one where this machine has it.

No font is shipped. Where the machine has none, whoever draws falls back to a number that a report explains. For
decoder children, never for the server process.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path

from PIL import ImageFont

from sam2_mcp_worker.media.overlay_legend import LAST_DRAWABLE
from sam2_mcp_worker.media.sheet_picture import tag_font

# `make` unpacks fonts into the virtual environment; systems and their users keep them below one of the others.
FONT_ROOTS = (
    Path(sys.prefix) / "share" / "fonts",
    Path("/usr/share/fonts"),
    Path("/usr/local/share/fonts"),
    Path("/System/Library/Fonts"),
    Path("C:/Windows/Fonts"),
    Path("~/.local/share/fonts"),
    Path("~/.fonts"),
)
# One of each system: Debian's fonts-nanum and fonts-noto-cjk, Windows, macOS.
KOREAN_FONTS = ("NanumGothic.ttf", "NotoSansCJK-Regular.ttc", "malgun.ttf", "AppleSDGothicNeo.ttc")
# What those fonts surely have: Latin, Hangul, punctuation and the signs of Korean print.
_KNOWN = re.compile(
    f"[^ -{LAST_DRAWABLE}\u1100-\u11ff\u2010-\u2027\u2030-\u203b\u20a9\u3000-\u303f\u3130-\u318f\uac00-\ud7a3]"
)
ELLIPSIS = "..."


def find_font(name: str) -> Path | None:
    """The first font file of that name below the usual folders."""
    roots = (root.expanduser() for root in FONT_ROOTS)
    return next((path for root in roots for path in sorted(root.rglob(name)) if path.is_file()), None)


@cache
def korean_font_path() -> Path | None:
    """The Korean font of this machine; None where it has none."""
    return next((path for name in KOREAN_FONTS if (path := find_font(name)) is not None), None)


@cache
def korean_font(size_px: int) -> ImageFont.FreeTypeFont | None:
    """That font at a size. Basic layout: the same advances whether or not libraqm is there."""
    path = korean_font_path()
    return ImageFont.truetype(str(path), size_px, layout_engine=ImageFont.Layout.BASIC) if path else None


def fitting_words(words: str, otherwise: str, width_px: int, size_px: int) -> tuple[str, ImageFont.FreeTypeFont]:
    """The words in one line of at most that width, and the font that has their letters.

    Letters that no font is sure to have become question marks; `otherwise` (Latin) stands where there is no font at
    all.
    """
    line = " ".join(words.split())
    font: ImageFont.FreeTypeFont | None = tag_font(size_px)
    if any(character > LAST_DRAWABLE for character in line):
        font = korean_font(size_px)
        line = _KNOWN.sub("?", line)
    if font is None:
        font, line = tag_font(size_px), otherwise
    return _shortened(line, font, width_px), font


def _shortened(line: str, font: ImageFont.FreeTypeFont, width_px: int) -> str:
    if font.getlength(line) <= width_px:
        return line
    low, high = 0, len(line)
    while low < high:  # the longest beginning that fits with the dots
        middle = (low + high + 1) // 2
        low, high = (middle, high) if font.getlength(line[:middle] + ELLIPSIS) <= width_px else (low, middle - 1)
    return line[:low].rstrip() + ELLIPSIS
