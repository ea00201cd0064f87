"""Makes the demo document: a nine-page Korean insurance leaflet, and the truth about every line in it.

Three kinds of page, as the field sends them: with a text layer, as a picture of a page, and with both. Owns the order
of the pages and the file; copy, layout and drawing have modules of their own. The same fonts give the same bytes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from fpdf import FPDF

from sam2_mcp_worker.demo import leaflet_copy as copy
from sam2_mcp_worker.demo import leaflet_pages as pages
from sam2_mcp_worker.demo import leaflet_pictures as pictures
from sam2_mcp_worker.demo.fonts import Face, find_fonts
from sam2_mcp_worker.demo.layout import FINE_PT, HEIGHT_PT, WIDTH_PT
from sam2_mcp_worker.demo.surfaces import PRINT_DPI, PdfSurface, PictureSurface, TruthLine

PageKind = Literal["text", "image", "mixed"]
PicturePage = Callable[[dict[Face, Path], int], PictureSurface]
TextPage = Callable[[PdfSurface, int], None]

PAGE_COUNT = 9
FINE_PRINT_PT = FINE_PT
FINE_PRINT_PX = round(FINE_PT * PRINT_DPI / 72)
MADE_AT = datetime(2026, 10, 12, 9, 0, tzinfo=UTC)  # the day of the review seal; fixed, so that the bytes are too


@dataclass(frozen=True, slots=True)
class PageTruth:
    """One page: `lines` in the order in which they were set; the size is in points."""

    page_number: int
    kind: PageKind
    lines: tuple[TruthLine, ...]
    width_pt: float = WIDTH_PT
    height_pt: float = HEIGHT_PT

    @property
    def smallest_size_pt(self) -> float:
        """The smallest font size on the page."""
        return min(line.size_pt for line in self.lines)


@dataclass(frozen=True, slots=True)
class LeafletTruth:
    """What the leaflet says, page by page."""

    pages: tuple[PageTruth, ...]


def make_leaflet(path: Path | str, *, font_dir: Path | str | None = None) -> LeafletTruth:
    """Write the leaflet to `path` (replaced if it is there) and return its truth.

    Raises:
        WorkerError: `font_missing` when the Nanum fonts are not installed.
        OSError: the file cannot be written.
    """
    fonts = find_fonts(Path(font_dir) if font_dir is not None else None)
    pdf = _new_document(fonts)
    truth = tuple(_add_page(pdf, fonts, number) for number in range(1, PAGE_COUNT + 1))
    Path(path).write_bytes(bytes(pdf.output()))
    return LeafletTruth(truth)


def _cover(fonts: dict[Face, Path], _number: int) -> PictureSurface:
    return pictures.cover_page(fonts)


PICTURE_PAGES: dict[int, PicturePage] = {1: _cover, 4: pictures.detail_page, 8: pictures.notices_page}
TEXT_PAGES: dict[int, TextPage] = {
    2: pages.overview_page,
    3: pages.premium_page,
    5: pages.questions_page,
    6: pages.joining_page,
    7: pages.claims_page,
    9: pages.closing_page,
}


def _add_page(pdf: FPDF, fonts: dict[Face, Path], number: int) -> PageTruth:
    pdf.add_page()
    surface = PdfSurface(pdf, fonts)
    if number in PICTURE_PAGES:
        surface.picture((0, 0, WIDTH_PT, HEIGHT_PT), PICTURE_PAGES[number](fonts, number))
    else:
        TEXT_PAGES[number](surface, number)
    return PageTruth(number, _kind(surface.lines), tuple(surface.lines))


def _kind(lines: list[TruthLine]) -> PageKind:
    in_layer = {line.in_text_layer for line in lines}
    if in_layer == {True, False}:
        return "mixed"
    return "text" if in_layer == {True} else "image"


def _new_document(fonts: dict[Face, Path]) -> FPDF:
    # fontTools warns about every hinting table that a subset leaves out; nothing can be done about it.
    logging.getLogger("fontTools.subset").setLevel(logging.ERROR)
    pdf = FPDF(unit="pt", format=(WIDTH_PT, HEIGHT_PT))
    pdf.set_auto_page_break(False)
    pdf.set_margin(0)
    pdf.set_creation_date(MADE_AT)
    pdf.set_title(f"{copy.PRODUCT} 상품 안내 ({copy.DEMO_NOTICE})")
    pdf.set_author(copy.INSURER)
    pdf.set_lang("ko-KR")
    for face, font_path in fonts.items():
        pdf.add_font(face, fname=str(font_path))
    return pdf
