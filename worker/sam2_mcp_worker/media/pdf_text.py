"""The characters of a page as pdfium knows them, in displayed coordinates, without those that are not displayed."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pypdfium2.raw as pdfium

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.pdf_document import OpenPage
from sam2_mcp_worker.media.pdf_geometry import BoxPt
from sam2_mcp_worker.media.text_lines import Glyph, Line, build_lines

# The fullest page of running text has 20,000; ten times that is a data dump or an attack.
MAX_CHARS_PER_PAGE = 200_000
UNMAPPED = "\ufffd"
"""Stands for a glyph that is displayed and has no Unicode value."""

_INVISIBLE_MODES = {pdfium.FPDF_TEXTRENDERMODE_INVISIBLE, pdfium.FPDF_TEXTRENDERMODE_CLIP}
# pdfium's marks for a hyphen at the end of a line.
_LINE_END_HYPHENS = {0x02, 0xFFFE}
# A computed em further than this factor from the height of the font's box is not believed (odd Type 3 fonts).
_BELIEVABLE = 5.0
_FONT_NAME_BYTES = 128


@dataclass(frozen=True, slots=True)
class PageText:
    """Lines that are displayed; how many characters are not; how many displayed glyphs have no Unicode value."""

    lines: list[Line]
    hidden_chars: int
    unmapped_chars: int


@dataclass(frozen=True, slots=True)
class _Style:
    """What characters of one text object share."""

    visible: bool
    font: str


def read_text(opened: OpenPage) -> PageText:
    """Read the text layer.

    Hidden are characters drawn in an invisible mode (the layer that scanners add under a picture) or fully
    transparent, of no size, or centred outside of the displayed box. Text under a picture or in the colour of its
    ground is not found to be hidden here.

    Raises:
        WorkerError: page_too_complex.
    """
    text_page = pdfium.FPDFText_LoadPage(opened.page)
    if not text_page:
        raise WorkerError("page_damaged", "the text of the page cannot be read")
    try:
        return _read(opened, text_page)
    finally:
        pdfium.FPDFText_ClosePage(text_page)


def _read(opened: OpenPage, text_page: Any) -> PageText:
    count = max(0, pdfium.FPDFText_CountChars(text_page))
    if count > MAX_CHARS_PER_PAGE:
        raise WorkerError(
            "page_too_complex", f"the page has {count} characters", rule=f"at most {MAX_CHARS_PER_PAGE} a page"
        )
    glyphs: list[Glyph] = []
    hidden = 0
    for glyph, visible in _glyphs(opened, text_page, count):
        if visible:
            glyphs.append(glyph)
        else:
            hidden += 1
    unmapped = sum(glyph.text == UNMAPPED for glyph in glyphs)
    return PageText(build_lines(glyphs), hidden, unmapped)


def _glyphs(opened: OpenPage, text_page: Any, count: int) -> Iterator[tuple[Glyph, bool]]:
    styles: dict[int | None, _Style] = {}
    pending_high = 0  # the first half of a surrogate pair
    for i in range(count):
        code = pdfium.FPDFText_GetUnicode(text_page, i)
        if 0xD800 <= code < 0xDC00 and not pending_high:
            pending_high = code
            continue
        text = _text(code, pending_high)
        pending_high = 0
        if pdfium.FPDFText_IsGenerated(text_page, i) == 1:
            yield _space(), True
            continue
        item = pdfium.FPDFText_GetTextObject(text_page, i)
        address = ctypes.cast(item, ctypes.c_void_p).value
        if address not in styles:
            styles[address] = _style(item)
        glyph = _glyph(opened, text_page, i, text, styles[address].font)
        yield glyph, text.isspace() or (styles[address].visible and _is_displayed(opened, glyph))


def _space() -> Glyph:
    return Glyph(" ", (0.0, 0.0, 0.0, 0.0), (0.0, 0.0), (1.0, 0.0), 1.0)


def _text(code: int, high: int) -> str:
    if high and 0xDC00 <= code < 0xE000:
        return chr(0x10000 + ((high - 0xD800) << 10) + (code - 0xDC00))
    if code in _LINE_END_HYPHENS:
        return "-"
    if code in (0x09, 0x0A, 0x0D, 0xA0):
        return " "
    is_control = code < 0x20 or 0x7F <= code < 0xA0
    is_private = 0xE000 <= code < 0xF900 or code >= 0xF0000
    if is_control or is_private or 0xD800 <= code < 0xE000 or code in (0xFEFF, 0xFFFF):
        return UNMAPPED
    return chr(code)


def _style(item: Any) -> _Style:
    if not item:
        return _Style(True, "")
    mode = pdfium.FPDFTextObj_GetTextRenderMode(item)
    strokes_only = mode == pdfium.FPDF_TEXTRENDERMODE_STROKE
    get_color = pdfium.FPDFPageObj_GetStrokeColor if strokes_only else pdfium.FPDFPageObj_GetFillColor
    r, g, b, a = (ctypes.c_uint() for _ in range(4))
    has_color = get_color(item, *map(ctypes.byref, (r, g, b, a)))
    return _Style(mode not in _INVISIBLE_MODES and not (has_color and a.value == 0), _font_name(item))


def _font_name(item: Any) -> str:
    name = ctypes.create_string_buffer(_FONT_NAME_BYTES)
    size = pdfium.FPDFFont_GetBaseFontName(pdfium.FPDFTextObj_GetFont(item), name, _FONT_NAME_BYTES)
    text = name.value.decode("utf-8", errors="replace") if 0 < size <= _FONT_NAME_BYTES else ""
    subset, plus, rest = text.partition("+")
    return rest if plus and len(subset) == 6 else text


def _glyph(opened: OpenPage, text_page: Any, i: int, text: str, font: str) -> Glyph:
    m, loose = pdfium.FS_MATRIX(), pdfium.FS_RECTF()
    x, y = ctypes.c_double(), ctypes.c_double()
    pdfium.FPDFText_GetMatrix(text_page, i, ctypes.byref(m))
    pdfium.FPDFText_GetLooseCharBox(text_page, i, ctypes.byref(loose))
    pdfium.FPDFText_GetCharOrigin(text_page, i, ctypes.byref(x), ctypes.byref(y))
    size = pdfium.FPDFText_GetFontSize(text_page, i)
    length = math.copysign(math.hypot(m.a, m.b), size)  # a negative size writes backwards
    direction = (m.a / length, m.b / length) if length else (1.0, 0.0)
    geometry = opened.geometry
    box = geometry.box(loose.left, loose.bottom, loose.right, loose.top)
    shown = geometry.direction(*direction)
    em = abs((m.a * m.d - m.b * m.c) / length * size) if length else 0.0
    return Glyph(text, box, geometry.point(x.value, y.value), shown, _believable(em, box, shown), font)


def _believable(em: float, box: BoxPt, direction: tuple[float, float]) -> float:
    """The em if it fits the height of the font's box across the direction, else that height."""
    ux, uy = abs(direction[0]), abs(direction[1])
    width, height = box[2] - box[0], box[3] - box[1]
    across = height if ux >= uy else width
    if across <= 0 or (math.isfinite(em) and across / _BELIEVABLE < em < across * _BELIEVABLE):
        return em if math.isfinite(em) else 0.0
    return across


def _is_displayed(opened: OpenPage, glyph: Glyph) -> bool:
    x0, y0, x1, y1 = glyph.box
    if not all(map(math.isfinite, glyph.box)) or glyph.size_pt <= 0 or x0 >= x1 or y0 >= y1:
        return False
    return opened.geometry.contains((x0 + x1) / 2, (y0 + y1) / 2)
