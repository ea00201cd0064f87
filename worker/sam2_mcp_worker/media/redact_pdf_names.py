"""Names of PDF syntax that hold a redacted word: destinations, states of buttons, roles, inks. Runs in redact children.

Owns which names are the format's own, and so no words, and how the others are replaced, each by the same one wherever
it stands, so that what refers to it still finds it.
"""

from __future__ import annotations

from typing import Any

import pikepdf
import pymupdf
from pikepdf import Array, Dictionary, Name

from sam2_mcp_worker.media.redact_pdf_scrub import GoneWords
from sam2_mcp_worker.media.redact_pdf_syntax import name_text

# Standard fonts and encodings, structure types and page modes that MuPDF has no constants for.
_FURTHER = (
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "Courier", "Helvetica", "Times", "Symbol", "ZapfDingbats", "Document", "Part", "Sect",
    "Figure", "Table", "Span", "Artifact", "Widths", "Ascent", "Descent", "ToUnicode", "CIDToGIDMap", "PageLabels",
    "Threads", "ProcSet", "Text", "ImageB", "ImageC", "ImageI", "PieceInfo", "StructParents", "ViewerPreferences",
    "GTS_PDFA1", "OutputConditionIdentifier", "RegistryName", "DestOutputProfile", "MarkInfo", "Marked", "Suspects",
)  # fmt: skip
_PREFIX = "PDF_ENUM_NAME_"
KNOWN_NAMES: frozenset[bytes] = frozenset(
    name.encode("ascii")
    for name in (
        *(constant.removeprefix(_PREFIX) for constant in dir(pymupdf.mupdf) if constant.startswith(_PREFIX)),
        *_FURTHER,
    )
)
# Values of these are glyphs and fonts: another name would be another letter.
_TECHNICAL = {"/Differences", "/BaseFont", "/FontName", "/Encoding", "/Name"}
# Dictionaries whose keys are names that people gave; what refers to them by value is replaced alike.
_NAMED = {"/Dests", "/N", "/D", "/R", "/RoleMap", "/ClassMap"}
_MAX_DEPTH = 64


def is_known(name: str) -> bool:
    """Whether a name, with its slash, belongs to the format."""
    return name[1:].encode("utf-8", "surrogateescape") in KNOWN_NAMES


def replace_names(pdf: pikepdf.Pdf, gone: GoneWords) -> int:
    """Replace names that hold one of the words; returns how many different ones."""
    if not gone.phrases and not gone.told:
        return 0
    renaming = _Renaming(gone)
    for item in pdf.objects:
        renaming.clean(item, "", 0)
        for key in _NAMED & set(item.keys()) if isinstance(item, Dictionary) else ():
            renaming.clean_keys(item[key])
    return len(renaming.taken)


class _Renaming:
    def __init__(self, gone: GoneWords) -> None:
        self._gone = gone
        self.taken: dict[str, str] = {}

    def _other(self, name: str) -> str | None:
        """The replacement; None when the name stays."""
        if is_known(name) or not self._gone.held_by(name.encode("utf-8", "surrogateescape")):
            return None
        return self.taken.setdefault(name, f"/Redacted{len(self.taken) + 1}")

    def clean(self, item: Any, key: str, depth: int) -> None:
        """Values of a dictionary or array and of what is written inside of it."""
        if depth > _MAX_DEPTH or key in _TECHNICAL or not isinstance(item, (Dictionary, pikepdf.Stream, Array)):
            return
        entries: list[tuple[Any, Any]] = (
            list(enumerate(item)) if isinstance(item, Array) else [(name, item[name]) for name in list(item.keys())]
        )
        for place, value in entries:
            inner = key if isinstance(place, int) else str(place)
            if isinstance(value, Name):
                other = None if inner in _TECHNICAL else self._other(name_text(value))
                if other is not None:
                    item[place] = Name(other)
            elif isinstance(value, (Dictionary, Array)) and not value.is_indirect:
                self.clean(value, inner, depth + 1)
                for named in _NAMED & set(value.keys()) if isinstance(value, Dictionary) else ():
                    self.clean_keys(value[named])

    def clean_keys(self, item: Any) -> None:
        """Keys of one dictionary."""
        if not isinstance(item, Dictionary):
            return
        for key in list(item.keys()):
            other = self._other(str(key))
            if other is not None:
                item[other] = item[key]
                del item[key]
