"""How the kinds of what was found look in overlay pictures, for those who draw them and those who explain them.

Told apart three times over, so that neither colour vision nor a black-and-white printer matters: by colour (blue,
vermilion, yellow and purple from the Okabe-Ito palette, darkened where white digits stand on them), by line and by
word. OCR has brackets because it reads the finest print, where any line along the letters hides parts of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

BoxKind = Literal["text_layer", "ocr", "region", "ink"]
"""What an inspection found."""

FindingKind = Literal["met", "not_met", "review"]
"""What a check says of a place."""

Rgb = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class BoxStyle:
    """`shape` is what surrounds it: a frame, square brackets at both ends, a double frame, or a dotted one."""

    words: str
    shape: Literal["frame", "brackets", "double", "dots"]
    line: Rgb
    tag: Rgb
    digits: Rgb


# Digits on tags have a contrast of at least 4.5 : 1 (WCAG 2.2, 1.4.3); test_overlay.py computes it.
STYLES: dict[BoxKind, BoxStyle] = {
    "text_layer": BoxStyle("text layer", "frame", (0, 96, 168), (0, 96, 168), (255, 255, 255)),
    "ocr": BoxStyle("read by OCR", "brackets", (186, 74, 0), (186, 74, 0), (255, 255, 255)),
    "region": BoxStyle("region of a label", "double", (122, 38, 92), (244, 170, 232), (0, 0, 0)),
    "ink": BoxStyle("seen, not read", "dots", (0, 0, 0), (250, 218, 40), (0, 0, 0)),
}

FINDING_STYLES: dict[FindingKind, BoxStyle] = {
    "met": BoxStyle("as it should be", "frame", (0, 96, 168), (0, 96, 168), (255, 255, 255)),
    "not_met": BoxStyle("not as it should be", "double", (186, 74, 0), (186, 74, 0), (255, 255, 255)),
    "review": BoxStyle("for a person to look at", "dots", (0, 0, 0), (250, 218, 40), (0, 0, 0)),
}
ALL_STYLES: dict[BoxKind | FindingKind, BoxStyle] = dict([*STYLES.items(), *FINDING_STYLES.items()])
