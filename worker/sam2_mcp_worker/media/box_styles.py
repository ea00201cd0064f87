"""How the three kinds of found text look in overlay pictures, for those who draw them and those who explain them.

Told apart three times over, so that neither colour vision nor a black-and-white printer matters: by colour (blue,
vermilion and yellow from the Okabe-Ito palette, darkened where white digits stand on them), by line and by word.
OCR has brackets because it reads the finest print, where any line along the letters hides parts of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

BoxKind = Literal["text_layer", "ocr", "ink"]
Rgb = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class BoxStyle:
    """`shape` is what surrounds the text: a frame, square brackets at both ends, or a dotted frame."""

    words: str
    shape: Literal["frame", "brackets", "dots"]
    line: Rgb
    tag: Rgb
    digits: Rgb


# Digits on tags have a contrast of at least 4.5 : 1 (WCAG 2.2, 1.4.3); test_overlay.py computes it.
STYLES: dict[BoxKind, BoxStyle] = {
    "text_layer": BoxStyle("text layer", "frame", (0, 96, 168), (0, 96, 168), (255, 255, 255)),
    "ocr": BoxStyle("read by OCR", "brackets", (186, 74, 0), (186, 74, 0), (255, 255, 255)),
    "ink": BoxStyle("seen, not read", "dots", (0, 0, 0), (250, 218, 40), (0, 0, 0)),
}
