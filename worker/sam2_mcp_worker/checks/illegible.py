"""Lines that a reader gave and that are none: print on its side, or a page that it could not make out. Pure.

Owns when such lines count as not read, so that no judge takes what they hide for absent. Lines keep their text: what
was found in them may still be there.
"""

from __future__ import annotations

from collections.abc import Sequence

from sam2_mcp_worker.checks.reading import ReadLine, Unread

# Readers read level lines. A line of print on its side comes as one stroke ("|"), sure to 0.6 to 0.9, in a box that is
# as high as the line was long; letters alone are up to 3 times as high as wide.
TURNED_ASPECT = 4.0
# Narrower ones are rules: boxes are 4 px wider than ink on each side, and print is at least 6 px high.
MIN_WIDTH_PX = 16.0
# Print upside down is read with 0.39 to 0.61, bad copies with 0.75, clean print with 0.9 and more.
JUNK_BELOW = 0.65
# Of a page's letters: patterns of photographs give some junk on any page, and it is no print.
JUNK_SHARE = 1 / 3

TURNED = "print that stands on its side, which nobody could read"
JUNK = "print that could not be made out: upside down, or too bad a copy"


def illegible_parts(lines: Sequence[ReadLine], px_per_unit: float = 1.0) -> tuple[Unread, ...]:
    """What was not read of a page, given the lines that its reader gave; `px_per_unit` of the picture it read."""
    turned = [line for line in lines if line.source == "ocr" and _is_turned(line, px_per_unit)]
    level = [line for line in lines if line not in turned]
    junk = [line for line in level if line.confidence is not None and line.confidence < JUNK_BELOW]
    if _letters(junk) <= JUNK_SHARE * _letters(level):
        junk = []
    return (*(Unread(TURNED, line.box_xyxy) for line in turned), *(Unread(JUNK, line.box_xyxy) for line in junk))


def _is_turned(line: ReadLine, px_per_unit: float) -> bool:
    if line.box_xyxy is None:
        return False
    width, height = line.box_xyxy[2] - line.box_xyxy[0], line.box_xyxy[3] - line.box_xyxy[1]
    return width * px_per_unit >= MIN_WIDTH_PX and height >= TURNED_ASPECT * width


def _letters(lines: Sequence[ReadLine]) -> int:
    return sum(character.isalnum() for line in lines for character in line.text)
