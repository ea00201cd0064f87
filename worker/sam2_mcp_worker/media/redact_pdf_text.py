"""The characters of a page with their boxes, as pdfium finds them, hidden ones included. Runs in redact children."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pypdfium2.raw as pdfium

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.pdf_document import OpenPage
from sam2_mcp_worker.media.pdf_text import MAX_CHARS_PER_PAGE
from sam2_mcp_worker.media.redact_paths import Rect, overlap

# A glyph whose ink reaches this far into a region, in points, or a quarter of its own size if that is less, is under
# it. Less shows nothing of a letter, and boxes drawn round a line always touch its neighbours.
GRAZING_PT = 0.3
_GRAZING_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Char:
    """A character: `ink` is the box of what is drawn, `cell` that of its line height; sheet coordinates."""

    text: str
    ink: Rect
    cell: Rect

    def is_under(self, rect: Rect) -> bool:
        """Whether enough of it lies in the region to be seen; blanks by the middle of their cell."""
        width, height = self.ink[2] - self.ink[0], self.ink[3] - self.ink[1]
        if width <= 0 or height <= 0 or self.text.isspace():
            x, y = (self.cell[0] + self.cell[2]) / 2, (self.cell[1] + self.cell[3]) / 2
            return rect[0] < x < rect[2] and rect[1] < y < rect[3]
        least = min(GRAZING_PT, _GRAZING_SHARE * min(width, height))
        return overlap(self.ink, rect, least)


def page_chars(opened: OpenPage) -> list[Char]:
    """Every character of the text layer but those that pdfium made up between words.

    Raises:
        WorkerError: page_damaged, page_too_complex.
    """
    text_page = pdfium.FPDFText_LoadPage(opened.page)
    if not text_page:
        raise WorkerError("page_damaged", "the text of the page cannot be read")
    try:
        count = max(0, pdfium.FPDFText_CountChars(text_page))
        if count > MAX_CHARS_PER_PAGE:
            raise WorkerError(
                "page_too_complex", f"the page has {count} characters", rule=f"at most {MAX_CHARS_PER_PAGE} a page"
            )
        return [_char(text_page, i) for i in range(count) if pdfium.FPDFText_IsGenerated(text_page, i) != 1]
    finally:
        pdfium.FPDFText_ClosePage(text_page)


def page_text(opened: OpenPage) -> str:
    """The text layer in one piece, in pdfium's order."""
    text_page = pdfium.FPDFText_LoadPage(opened.page)
    if not text_page:
        raise WorkerError("page_damaged", "the text of the page cannot be read")
    try:
        count = min(max(0, pdfium.FPDFText_CountChars(text_page)), MAX_CHARS_PER_PAGE)
        units = (ctypes.c_ushort * (count * 2 + 1))()  # a character outside of the basic plane takes two
        pdfium.FPDFText_GetText(text_page, 0, count, units)
        return bytes(units).decode("utf-16-le", errors="ignore").replace("\0", "")
    finally:
        pdfium.FPDFText_ClosePage(text_page)


def under(chars: Sequence[Char], rects: Sequence[Rect]) -> list[Char]:
    """Those that lie under one of the regions."""
    return [char for char in chars if any(char.is_under(rect) for rect in rects)]


def _char(text_page: Any, index: int) -> Char:
    left, right, bottom, top = (ctypes.c_double() for _ in range(4))
    pdfium.FPDFText_GetCharBox(text_page, index, *map(ctypes.byref, (left, right, bottom, top)))
    loose = pdfium.FS_RECTF()
    pdfium.FPDFText_GetLooseCharBox(text_page, index, ctypes.byref(loose))
    code = pdfium.FPDFText_GetUnicode(text_page, index)
    text = chr(code) if not 0xD800 <= code < 0xE000 else "\ufffd"
    ink = (left.value, bottom.value, right.value, top.value)
    return Char(text, ink, (loose.left, loose.bottom, loose.right, loose.top))
