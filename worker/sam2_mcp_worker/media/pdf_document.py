"""Opens documents and pages with pdfium, inside a decoder child, and names what is wrong with those that do not open.

One document stays open, since the pages of one come one after the other. pdfium is not thread-safe; a child runs one
task at a time on one thread.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.pdf_geometry import PageGeometry

# Longer than any leaflet, shorter than what a forged /Count claims (2^31).
MAX_PAGES = 20_000
# Acrobat stops at 14,400 pt, but captures of landing pages are written at 1 pt per px: 1916 x 19983 pt is common and
# 120,000 pt was seen. Beyond lie only forged sizes (2^31, and 200,000 x 200,000 in one public test file).
MAX_SIDE_PT = 150_000.0
# A PDF header may stand behind other bytes, but not further in than this (ISO 32000 implementation note 13).
_HEADER_BYTES = 1024


@dataclass(frozen=True, slots=True)
class OpenPage:
    """A loaded page with the handles that pdfium's functions want."""

    document: Any
    page: Any
    geometry: PageGeometry


_Key = tuple[str, int, int, str]
_cached: dict[_Key, Any] = {}


def open_document(path: Path, password: str) -> Any:
    """The document, opened now or still open from the call before.

    Raises:
        WorkerError: pdf_empty, not_a_pdf, pdf_damaged, password_required, wrong_password, encryption_unsupported,
            too_many_pages.
    """
    stat = path.stat()
    key = (str(path), stat.st_mtime_ns, stat.st_size, password)
    if key not in _cached:
        for document in _cached.values():
            document.close()
        _cached.clear()
        if stat.st_size == 0:
            raise WorkerError("pdf_empty", "the file is empty (0 bytes)", next_step="Upload the file again")
        _cached[key] = _open(path, password)
    return _cached[key]


@contextmanager
def open_page(path: Path, password: str, page_number: int) -> Iterator[OpenPage]:
    """Load one page (counted from 1) and close it again.

    Raises:
        WorkerError: those of `open_document`; page_out_of_range, page_damaged, page_size.
    """
    document = open_document(path, password)
    if not 1 <= page_number <= len(document):
        raise WorkerError(
            "page_out_of_range", f"there is no page {page_number}", rule=f"the document has pages 1 to {len(document)}"
        )
    try:
        page = document.get_page(page_number - 1)
    except pypdfium2.PdfiumError as error:
        raise WorkerError(
            "page_damaged",
            f"page {page_number} cannot be read",
            next_step="Save the file anew with another program; other pages are not affected",
            private=str(error),
        ) from error
    try:
        yield OpenPage(document, page, _geometry(page, page_number))
    finally:
        page.close()


def _open(path: Path, password: str) -> Any:
    # The raw call: pypdfium2's own opening reports the error of an earlier document for one without pages.
    handle = pdfium.FPDF_LoadDocument(os.fsencode(path), password.encode("utf-8") if password else None)
    if not handle:
        raise _open_error(path, password, pdfium.FPDF_GetLastError())
    document = pypdfium2.PdfDocument(handle)
    try:
        _check_page_count(document)
    except BaseException:
        document.close()
        raise
    with contextlib.suppress(pypdfium2.PdfiumError):  # a broken form: the pages are still there
        document.init_forms()  # before any page is loaded, or its fields are not drawn
    return document


def _check_page_count(document: Any) -> None:
    pages = len(document)
    if pages == 0:
        raise WorkerError("pdf_empty", "the PDF has no pages that can be found", next_step="Save the file anew")
    if pages > MAX_PAGES:
        raise WorkerError(
            "too_many_pages", f"the PDF claims {pages} pages", rule=f"at most {MAX_PAGES}", next_step="Split the file"
        )


def _open_error(path: Path, password: str, err_code: int) -> WorkerError:
    match err_code:
        case pdfium.FPDF_ERR_PASSWORD if password:
            return WorkerError(
                "wrong_password", "the password does not open this PDF", next_step="Pass another `password`"
            )
        case pdfium.FPDF_ERR_PASSWORD:
            return WorkerError("password_required", "the PDF is encrypted", next_step="Pass its `password`")
        case pdfium.FPDF_ERR_SECURITY:
            return WorkerError(
                "encryption_unsupported",
                "the PDF is encrypted in a way that is not known here",
                rule="password encryption (RC4, AES) can be opened",
                next_step="Save it without encryption",
            )
    with path.open("rb") as file:
        if b"%PDF-" not in file.read(_HEADER_BYTES):
            return WorkerError(
                "not_a_pdf",
                "the file is not a PDF",
                rule=f"a PDF has %PDF- within its first {_HEADER_BYTES} bytes",
                next_step="Check the file; read_text reads pictures, inspect_video videos",
            )
    return WorkerError(
        "pdf_damaged", "the PDF is damaged and cannot be opened", next_step="Save it anew with another program"
    )


def _geometry(page: Any, page_number: int) -> PageGeometry:
    box = pdfium.FS_RECTF()
    if not pdfium.FPDF_GetPageBoundingBox(page, ctypes.byref(box)):
        raise WorkerError("page_size", f"page {page_number} has no size")
    geometry = PageGeometry(box.left, box.bottom, box.right, box.top, page.get_rotation())
    if not all(math.isfinite(side) and 0 < side <= MAX_SIDE_PT for side in geometry.size_pt):
        width, height = geometry.size_pt
        raise WorkerError(
            "page_size",
            f"page {page_number} claims to be {width:.0f} x {height:.0f} pt",
            rule=f"each side is more than 0 and at most {MAX_SIDE_PT:.0f} pt",
            next_step="Save the page in a smaller size",
        )
    return geometry
