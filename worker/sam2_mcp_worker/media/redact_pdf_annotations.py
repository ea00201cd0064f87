"""Removes annotations and form fields under the regions, whole, and those that carry files. Runs in redact children."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pikepdf
from pikepdf import Array, Dictionary, Name, String

from sam2_mcp_worker.media.redact_paths import Rect, overlap
from sam2_mcp_worker.media.redact_pdf_syntax import name_text
from sam2_mcp_worker.media.redact_words import found_in_bytes

# They carry files, films or sounds, in which nothing can be looked for.
_CARRIERS = {"/FileAttachment", "/RichMedia", "/Screen", "/Movie", "/Sound", "/3D"}
# Not shown to anybody.
_INTERNAL = {"/NM", "/DA", "/DS", "/M"}
# Fields nested deeper are cyclic.
_MAX_DEPTH = 32


@dataclass(slots=True)
class RemovedAnnotations:
    """Boxes of what was removed and was drawn, in the PDF's own coordinates; how many were fields or carried files."""

    boxes: list[Rect] = field(default_factory=list)
    fields: int = 0
    carriers: int = 0


def remove_annotations(
    pdf: pikepdf.Pdf, page: pikepdf.Page, rects: Sequence[Rect], forms: Sequence[str], *, every: bool = False
) -> RemovedAnnotations:
    """Remove those that touch a region (or `every` one), their pop-ups and replies, and on any page all carriers.

    Those whose texts hold one of the words (`forms`, see redact_words) go too: their appearance would still show it.
    """
    removed = RemovedAnnotations()
    annotations = page.obj.get("/Annots")
    if not isinstance(annotations, Array):
        return removed
    entries = [entry for entry in annotations if isinstance(entry, Dictionary)]
    doomed = [every or _is_carrier(entry) or _touches(entry, rects) or _tells(entry, forms) for entry in entries]
    marked = {entry.objgen for entry, goes in zip(entries, doomed, strict=True) if goes and entry.is_indirect}
    doomed = [goes or _belongs_to(entry, marked) for entry, goes in zip(entries, doomed, strict=True)]
    for entry, goes in zip(entries, doomed, strict=True):
        if goes:
            _note(pdf, entry, removed)
    if any(doomed):
        page.obj.Annots = Array([entry for entry, goes in zip(entries, doomed, strict=True) if not goes])
    return removed


def _note(pdf: pikepdf.Pdf, entry: Dictionary, removed: RemovedAnnotations) -> None:
    removed.carriers += _is_carrier(entry)
    if (box := _box(entry)) is not None:
        removed.boxes.append(box)
    if entry.get("/Subtype") == Name.Widget:
        removed.fields += 1
        _detach_field(pdf, entry)


def _is_carrier(entry: Dictionary) -> bool:
    return name_text(entry.get("/Subtype")) in _CARRIERS


def _box(entry: Dictionary) -> Rect | None:
    try:
        x0, y0, x1, y1 = (float(side) for side in entry.get("/Rect", Array()))
    except (TypeError, ValueError):
        return None
    return min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)


def _touches(entry: Dictionary, rects: Sequence[Rect]) -> bool:
    box = _box(entry)
    return box is not None and any(overlap(box, rect) for rect in rects)


def _tells(entry: Any, forms: Sequence[str]) -> bool:
    """Whether a text of the annotation, or the value of the field that it shows, holds a word."""
    for _ in range(_MAX_DEPTH if forms else 0):
        texts = [bytes(value) for key, value in entry.items() if isinstance(value, String) and key not in _INTERNAL]
        if any(found_in_bytes(text, forms, strings=False) for text in texts):
            return True
        entry = entry.get("/Parent")
        if not isinstance(entry, Dictionary):
            break
    return False


def _belongs_to(entry: Dictionary, marked: set[tuple[int, int]]) -> bool:
    return any(isinstance(entry.get(key), Dictionary) and entry[key].objgen in marked for key in ("/Parent", "/IRT"))


def _detach_field(pdf: pikepdf.Pdf, widget: Dictionary) -> None:
    """Take a widget out of the form, and every field above it that has no other widget left."""
    form = pdf.Root.get("/AcroForm")
    node: Dictionary = widget
    for _ in range(_MAX_DEPTH):
        parent = node.get("/Parent")
        if not isinstance(parent, Dictionary):
            break
        left = _without(parent.get("/Kids", Array()), node)
        parent.Kids = left
        if len(left):
            return
        node = parent
    if isinstance(form, Dictionary):
        for key in ("/Fields", "/CO"):
            if isinstance(form.get(key), Array):
                form[key] = _without(form[key], node)


def _without(items: Any, item: Dictionary) -> Array:
    return Array([entry for entry in items if not (entry.is_indirect and entry.objgen == item.objgen)])
