"""Redact-child tasks that tell what a PDF is made of: boxes, colour spaces, fonts, attached files. They only look."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pikepdf
from pikepdf import Array, Dictionary

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.pdf_document import open_document
from sam2_mcp_worker.media.pdf_paints import page_paints

# User units are there for pages larger than 5 m; viewers know no other ones than these, and nobody prints in less.
MIN_USER_UNIT, MAX_USER_UNIT = 0.1, 75_000
# More attached files than these are no leaflet's.
MAX_ATTACHED = 1_000
# What wrong operands, missing entries and streams that need another program to be unpacked raise.
_BROKEN = (
    pikepdf.PdfError, pikepdf.DependencyError, TypeError, ValueError, AttributeError, KeyError, IndexError,
    ArithmeticError,
)  # fmt: skip
_MAX_TREE_DEPTH = 64

BoxPdf = list[float]
"""left, bottom, right, top in points (user units of the file applied)."""


def pdf_page_facts(params: dict[str, Any]) -> dict[str, Any]:
    """`{path, password, page_number}` -> what `checks.file_rules` calls facts of a page, as far as the file tells them.

    `crop` is what viewers show; `trim` and `bleed` are None where the file states none. `fonts` maps each used font to
    whether it is embedded.

    Raises:
        WorkerError: those of `open_document`; pdf_damaged, page_out_of_range.
    """
    with _opened(params) as pdf:
        if not 1 <= params["page_number"] <= len(pdf.pages):
            raise WorkerError("page_out_of_range", f"there is no page {params['page_number']}")
        page = pdf.pages[params["page_number"] - 1]
        try:
            paints = page_paints(page)
        except _BROKEN as error:
            raise _damaged(f"the content of page {params['page_number']} cannot be looked through", error) from error
        unit = _user_unit(page)
        media = _box(_inherited(page, "/MediaBox"), unit)
        return {
            "media": media,
            "crop": _within(_box(_inherited(page, "/CropBox"), unit), media) or media,
            "trim": _within(_box(page.obj.get("/TrimBox"), unit), media),
            "bleed": _within(_box(page.obj.get("/BleedBox"), unit), media),
            "user_unit": unit,
            "colour_spaces": sorted(paints.spaces),
            "fonts": dict(sorted(paints.fonts.items())),
        }


def pdf_attached(params: dict[str, Any]) -> dict[str, Any]:
    """`{path, password}` -> `{names}` of the files that are attached to the document or to places on its pages.

    Raises:
        WorkerError: those of `open_document`; pdf_damaged.
    """
    with _opened(params) as pdf:
        names: list[str] = []
        try:
            for name, spec in pdf.attachments.items():
                names.append(_sendable(spec.filename or name))
                if len(names) >= MAX_ATTACHED:
                    break
            for page in pdf.pages:
                names += _on_page(page)
        except _BROKEN as error:
            raise _damaged("the list of attached files cannot be read", error) from error
        return {"names": sorted(set(names))[:MAX_ATTACHED]}


TASKS = {"pdf_page_facts": pdf_page_facts, "pdf_attached": pdf_attached}


def _on_page(page: pikepdf.Page) -> Iterator[str]:
    annotations = page.obj.get("/Annots")
    for annotation in annotations if isinstance(annotations, Array) else ():
        if isinstance(annotation, Dictionary) and annotation.get("/Subtype") == "/FileAttachment":
            spec = annotation.get("/FS")
            name = spec.get("/UF", spec.get("/F")) if isinstance(spec, Dictionary) else spec
            if name is not None:
                yield _sendable(str(name))


def _sendable(name: str) -> str:
    """Without halves of surrogate pairs, which no protocol carries."""
    return name.encode("utf-8", "replace").decode("utf-8")


@contextmanager
def _opened(params: dict[str, Any]) -> Iterator[pikepdf.Pdf]:
    path, password = Path(params["path"]), params.get("password") or ""
    open_document(path, password)  # the errors that everybody knows, in the same words
    try:
        pdf = pikepdf.open(path, password=password)
    except (pikepdf.PdfError, pikepdf.PasswordError) as error:
        raise _damaged("the structure of the PDF cannot be read", error) from error
    with pdf:
        yield pdf


def _damaged(what: str, error: Exception) -> WorkerError:
    return WorkerError(
        "pdf_damaged", what, next_step="Save the file anew with another program", private=repr(error)[:300]
    )


def _user_unit(page: pikepdf.Page) -> float:
    try:
        unit = float(page.obj.get("/UserUnit", 1))
    except _BROKEN:
        return 1.0
    return unit if MIN_USER_UNIT <= unit <= MAX_USER_UNIT else 1.0


def _inherited(page: pikepdf.Page, key: str) -> Any:
    node: Any = page.obj
    for _ in range(_MAX_TREE_DEPTH):
        if not isinstance(node, Dictionary):
            return None
        if key in node:
            return node[key]
        node = node.get("/Parent")
    return None


def _within(box: BoxPdf | None, media: BoxPdf | None) -> BoxPdf | None:
    """What of a box is on the sheet: boxes that reach over it end there; None where nothing is."""
    if box is None or media is None:
        return box
    cut = [max(box[0], media[0]), max(box[1], media[1]), min(box[2], media[2]), min(box[3], media[3])]
    return cut if cut[0] < cut[2] and cut[1] < cut[3] else None


def _box(value: Any, unit: float) -> BoxPdf | None:
    """A rectangle with a size, corners in order; None for anything else."""
    try:
        sides = [float(side) * unit for side in value] if isinstance(value, Array) else []
    except _BROKEN:
        return None
    if len(sides) != 4 or not all(map(math.isfinite, sides)):
        return None
    left, right = sorted((sides[0], sides[2]))
    bottom, top = sorted((sides[1], sides[3]))
    return [left, bottom, right, top] if left < right and bottom < top else None
