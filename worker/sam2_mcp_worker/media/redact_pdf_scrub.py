"""Removes what a PDF carries beside its pages: metadata, files, scripts, thumbnails. Runs in redact children.

Whatever may repeat the words of a page out of sight goes wholesale; titles, names and addresses stay unless they hold
one of the words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pikepdf
from pikepdf import Array, Dictionary, Name, String

from sam2_mcp_worker.media.redact_pdf_syntax import name_text
from sam2_mcp_worker.media.redact_words import found_in_bytes, stands_alone

# Replaces a title, name or address that held a redacted word.
REPLACEMENT = "[redacted]"
# Dropped wherever they stand. Alternates and OPI name other versions of a picture, AF and EF attached files, AA and JS
# scripts, PieceInfo the private data of the program that wrote the file, Phoneme what is read aloud.
_DROPPED = {
    "/Metadata", "/PieceInfo", "/Thumb", "/LastModified", "/AA", "/JS", "/ActualText", "/Alt", "/Phoneme",
    "/Alternates", "/OPI", "/AF", "/EF", "/RF",
}  # fmt: skip
# Of the catalogue: what is not needed to show pages.
_CATALOGUE = ("/Collection", "/Perms", "/DSS", "/Threads", "/SpiderInfo", "/Legal", "/Requirements", "/NeedsRendering")
_NAME_TREES = (
    "/EmbeddedFiles", "/JavaScript", "/AlternatePresentations", "/Renditions", "/IDS", "/URLS", "/Templates", "/Pages",
    "/AP",
)  # fmt: skip
_ACTION_KEYS = {"/A", "/OpenAction", "/Next"}
_KEPT_ACTIONS = {"/GoTo", "/URI", "/Named"}
# Binary or technical: a font or a colour space would break, and neither holds words.
_TECHNICAL = {"/Registry", "/Ordering", "/ColorSpace", "/CS", "/Lookup", "/ID", "/DA", "/CharSet", "/Panose", "/Lang"}
_STRUCTURE_KEYS = {"/T", "/E", "/ID"}
# Direct objects nested deeper than this are an attack.
_MAX_DEPTH = 64


@dataclass(frozen=True, slots=True)
class GoneWords:
    """Comparable words (redact_words) that titles, names and addresses must not hold.

    Phrases count wherever they stand. Words that stood under a region (`told`) may be pieces which its edge cut off, so
    Latin ones count as whole words only; Korean ones carry endings.
    """

    phrases: Sequence[str]
    told: Sequence[str]

    def held_by(self, data: bytes) -> bool:
        """Whether a string or name holds one."""
        if found_in_bytes(data, self.phrases, strings=False):
            return True
        found = found_in_bytes(data, self.told, strings=False)
        return any(not form.isascii() or stands_alone(data, form) for form in found)


@dataclass(slots=True)
class Scrubbed:
    """Counts for the report."""

    attachments: int = 0
    scripts: int = 0
    renamed: int = 0
    signatures: int = 0
    xfa: bool = False
    metadata: bool = False


def scrub(pdf: pikepdf.Pdf, gone: GoneWords) -> Scrubbed:
    """Clean the whole document; no string may hold one of the words."""
    done = Scrubbed(metadata="/Info" in pdf.trailer or "/Metadata" in pdf.Root)
    for key in list(pdf.trailer.keys()):
        if key not in ("/Root", "/Size"):
            del pdf.trailer[key]
    _clean_catalogue(pdf.Root, done)
    for item in pdf.objects:
        _clean(item, gone, done, "", 0)
    return done


def _clean_catalogue(root: Any, done: Scrubbed) -> None:
    for key in _CATALOGUE:
        _drop(root, key)
    names = root.get("/Names")
    if isinstance(names, Dictionary):
        done.attachments += _tree_size(names.get("/EmbeddedFiles"))
        done.scripts += _tree_size(names.get("/JavaScript"))
        for key in _NAME_TREES:
            _drop(names, key)
    form = root.get("/AcroForm")
    if isinstance(form, Dictionary):
        done.xfa = _drop(form, "/XFA")
        _drop(form, "/SigFlags")


def _tree_size(tree: Any, depth: int = 0) -> int:
    if not isinstance(tree, Dictionary) or depth > _MAX_DEPTH:
        return 0
    own = len(tree.get("/Names", Array())) // 2
    return own + sum(_tree_size(kid, depth + 1) for kid in tree.get("/Kids", Array()))


def _drop(holder: Any, key: str) -> bool:
    if key not in holder:
        return False
    del holder[key]
    return True


def _clean(item: Any, gone: GoneWords, done: Scrubbed, key: str, depth: int) -> None:
    """Clean a dictionary, stream or array and what is written inside of it; references are met on their own."""
    if depth > _MAX_DEPTH or key in _TECHNICAL:
        return
    if isinstance(item, (Dictionary, pikepdf.Stream)):
        _clean_dictionary(item, done)
        entries: list[tuple[Any, Any]] = [(name, item[name]) for name in list(item.keys())]
    elif isinstance(item, Array):
        entries = list(enumerate(item))
    else:
        return
    for name, value in entries:
        if isinstance(value, String):
            if str(name) not in _TECHNICAL and gone.held_by(bytes(value)):
                item[name] = String(REPLACEMENT)
                done.renamed += 1
        elif isinstance(value, (Dictionary, Array)) and not value.is_indirect:
            _clean(value, gone, done, str(name) if isinstance(name, str) else key, depth + 1)


def _clean_dictionary(item: Any, done: Scrubbed) -> None:
    keys = set(item.keys())
    done.scripts += "/JS" in keys
    for key in keys & _DROPPED:
        del item[key]
    for key in keys & _ACTION_KEYS:
        action = item[key]
        if isinstance(action, Dictionary) and "/S" in action and name_text(action.S) not in _KEPT_ACTIONS:
            del item[key]
    if item.get("/Type") == Name.StructElem or {"/S", "/P", "/K"} <= keys:
        for key in keys & _STRUCTURE_KEYS:
            del item[key]
    if "/FT" in keys and Name.Sig == item.FT:
        done.signatures += _drop(item, "/V")
