"""Drops what programs keep for themselves in pages, drawings and annotations. Runs in redact children.

Editors store the source of what they drew under keys of their own (PDFpen the text of every overlay as RTF), in formats
that nobody can search. The keys of ISO 32000-2 stay: tables 29, 31, 87, 93 and 166-199.
"""

from __future__ import annotations

from typing import Any

import pikepdf
from pikepdf import Array, Dictionary, Name

_STREAM = {"Length", "Filter", "DecodeParms", "DL"}
_XOBJECT = {"Type", "Subtype", "Name", "OC", "StructParent", "Metadata", "OPI", "AF", "Measure", "PtData"} | _STREAM
_FORM = _XOBJECT | {"FormType", "BBox", "Matrix", "Resources", "Group", "Ref", "StructParents"}
_IMAGE = _XOBJECT | {
    "Width", "Height", "ColorSpace", "BitsPerComponent", "Intent", "ImageMask", "Mask", "Decode", "Interpolate",
    "Alternates", "SMask", "SMaskInData", "Matte", "ID",
}  # fmt: skip
_PAGE = {
    "Type", "Parent", "Resources", "MediaBox", "CropBox", "BleedBox", "TrimBox", "ArtBox", "BoxColorInfo", "Contents",
    "Rotate", "Group", "B", "Dur", "Trans", "Annots", "StructParents", "ID", "PZ", "SeparationInfo", "Tabs",
    "TemplateInstantiated", "PresSteps", "UserUnit", "VP", "OutputIntents",
}  # fmt: skip
_CATALOGUE = {
    "Type", "Version", "Extensions", "Pages", "PageLabels", "Names", "Dests", "ViewerPreferences", "PageLayout",
    "PageMode", "Outlines", "OpenAction", "URI", "AcroForm", "StructTreeRoot", "MarkInfo", "Lang", "OutputIntents",
    "OCProperties",
}  # fmt: skip
# Of annotations and fields only what may hold a stream or lead to one is judged: their texts are searched.
_ANNOTATION = {
    "AP", "MK", "BS", "BE", "A", "Dest", "Parent", "P", "Popup", "IRT", "OC", "Kids", "V", "DV", "RV", "Opt", "I", "TI",
    "QuadPoints", "L", "LE", "IC", "C", "Border", "InkList", "Vertices", "RD", "CL", "Path", "Measure", "ExData",
    "Lock", "SV", "FixedPrint", "Rect", "Ref",
}  # fmt: skip


def drop_private_data(pdf: pikepdf.Pdf) -> int:
    """Drop it everywhere; returns how many entries went."""
    for page in pdf.pages:
        page.obj.Type = Name.Page
    count = 0
    for item in [pdf.Root, *pdf.objects]:
        for key in private_keys(item):
            del item[key]
            count += 1
    return count


def private_keys(item: Any) -> list[str]:
    """Keys of a page, drawing, picture, annotation or catalogue that belong to no standard."""
    if not isinstance(item, (Dictionary, pikepdf.Stream)):
        return []
    known = _known_keys(item)
    if known is not None:
        return [str(key) for key in item.keys() if str(key)[1:] not in known]  # noqa: SIM118 (not a dict)
    if "/Rect" not in item or "/Subtype" not in item:
        return []
    return [
        str(key)
        for key, value in item.items()
        if str(key)[1:] not in _ANNOTATION and isinstance(value, (Dictionary, Array, pikepdf.Stream))
    ]


def _known_keys(item: Any) -> set[str] | None:
    if isinstance(item, pikepdf.Stream):
        kind = item.get("/Subtype")
        return _FORM if kind == Name.Form else _IMAGE if kind == Name.Image else None
    kind = item.get("/Type")
    return _PAGE if kind == Name.Page else _CATALOGUE if kind == Name.Catalog else None
