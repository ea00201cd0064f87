"""Removes glyphs and picture content under the regions with MuPDF. Runs in redact children.

MuPDF filters the content of the page and of the forms that it shows, with copies of what other pages show too, and
blanks pixels in copies of pictures. Vector drawings are cut elsewhere: MuPDF drops a whole path or nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymupdf

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.redact_paths import Rect

# Without its types, which cover half of it.
_fitz: Any = pymupdf
_mupdf: Any = pymupdf.mupdf
# Around a single glyph: its middle half, so that no neighbour is met.
_CORE = 0.25


@dataclass(frozen=True, slots=True)
class PageCut:
    """A page counted from 1, its regions, and the ink boxes of glyphs that go as a whole; sheet coordinates.

    `pictures`: blank them too, because there are some that only MuPDF can unpack. It converts them to RGB.
    """

    page_number: int
    rects: Sequence[Rect]
    glyphs: Sequence[Rect]
    pictures: bool


def cut_glyphs(
    path: Path, password: str, page_count: int, cuts: Iterable[PageCut], out_path: Path, *, subset_fonts: bool
) -> set[int]:
    """Write a copy without encryption in which text and pictures under the regions are gone.

    Returns the numbers of pages whose content MuPDF cannot change (cyclic forms, for one): they are to be replaced.

    Raises:
        WorkerError: pdf_damaged when MuPDF finds other pages in the file than pdfium did.
    """
    _fitz.TOOLS.mupdf_display_errors(False)
    _fitz.TOOLS.mupdf_display_warnings(False)
    try:
        with _fitz.open(str(path), filetype="pdf") as document:
            if document.needs_pass:
                document.authenticate(password)
            if document.is_encrypted:
                raise WorkerError(
                    "encryption_unsupported",
                    "parts of the PDF are encrypted and cannot be opened",
                    next_step="Pass its `password`, or save it without encryption",
                )
            if document.page_count != page_count:
                raise _unreadable(f"{document.page_count} of {page_count} pages")
            failed = {cut.page_number for cut in cuts if not _cut_page(document, cut)}
            if subset_fonts:
                document.subset_fonts()
            document.save(os.fspath(out_path), garbage=0, encryption=_fitz.PDF_ENCRYPT_NONE)
    except (RuntimeError, ValueError, _mupdf.FzErrorBase) as error:
        raise _unreadable(str(error)) from error
    return failed


def _unreadable(private: str) -> WorkerError:
    return WorkerError(
        "pdf_damaged",
        "the PDF is damaged in a way that does not let its content be changed safely",
        next_step="Save it anew with another program",
        private=private,
    )


def _cut_page(document: Any, cut: PageCut) -> bool:
    try:
        _cut(document, cut)
    except (RuntimeError, ValueError, _mupdf.FzErrorBase):
        return False
    return True


def _cut(document: Any, cut: PageCut) -> None:
    xref = document.page_xref(cut.page_number - 1)
    _own_content(document, cut.page_number - 1)
    kind, annotations = document.xref_get_key(xref, "Annots")
    image_method = _mupdf.PDF_REDACT_IMAGE_PIXELS if cut.pictures else _mupdf.PDF_REDACT_IMAGE_NONE
    _redact(document, cut.page_number - 1, cut.rects, image_method)
    # Again with the glyphs of which only an edge lies in a region: MuPDF keeps those. Pictures below them stay.
    _redact(document, cut.page_number - 1, [_core(glyph) for glyph in cut.glyphs], _mupdf.PDF_REDACT_IMAGE_NONE)
    document.xref_set_key(xref, "Annots", annotations if kind != "null" else "null")


def _own_content(document: Any, index: int) -> None:
    """Pages may share one content stream."""
    page = document[index]
    own = document.get_new_xref()
    document.update_object(own, "<<>>")
    document.update_stream(own, page.read_contents())
    page.set_contents(own)


def _redact(document: Any, index: int, rects: Sequence[Rect], image_method: int) -> None:
    if not rects:
        return
    marks = [document.get_new_xref() for _ in rects]
    for mark, (left, bottom, right, top) in zip(marks, rects, strict=True):
        quad = f"{left} {top} {right} {top} {left} {bottom} {right} {bottom}"
        box = f"{left} {bottom} {right} {top}"
        document.update_object(mark, f"<</Type/Annot/Subtype/Redact/Rect[{box}]/QuadPoints[{quad}]>>")
    # Alone on the page: annotations of others are neither applied nor touched here.
    document.xref_set_key(document.page_xref(index), "Annots", "[" + " ".join(f"{mark} 0 R" for mark in marks) + "]")
    page = document.reload_page(document[index])
    options = _mupdf.PdfRedactOptions()
    options.black_boxes = 0
    options.text = _mupdf.PDF_REDACT_TEXT_REMOVE
    options.image_method = image_method
    options.line_art = _mupdf.PDF_REDACT_LINE_ART_NONE
    _mupdf.pdf_redact_page(_fitz._as_pdf_document(document), _fitz._as_pdf_page(page), options)


def _core(box: Rect) -> Rect:
    left, bottom, right, top = box
    dx, dy = (right - left) * _CORE, (top - bottom) * _CORE
    return left + dx, bottom + dy, right - dx, top - dy
