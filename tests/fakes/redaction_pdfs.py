"""Sixty generated PDFs with something in each that must be gone after redaction. The same content every time."""

from __future__ import annotations

from collections.abc import Callable

from tests.fakes import redaction_pdfs_pictures, redaction_pdfs_structure, redaction_pdfs_text
from tests.fakes.pdf_desk import Sample

Maker = Callable[[], Sample]

CASES: dict[str, Maker] = {
    **redaction_pdfs_text.CASES,
    **redaction_pdfs_pictures.CASES,
    **redaction_pdfs_structure.CASES,
}
