"""What kind of document a file is, by its first bytes, and by its name only where text is text. Pure, and light.

Refuses to know whether the file is whole: whoever reads it finds out, in a child.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Literal

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.signatures import media_type_of

FileKind = Literal["pdf", "image", "office", "csv", "text", "sound", "video"]
"""`office` is an Excel workbook or looks like one from outside; `csv` any text that is separated into columns."""

# A PDF header may stand behind other bytes, but not further in than this (ISO 32000 implementation note 13).
KIND_HEAD_BYTES = 1024

_ZIP = b"PK\x03\x04"
# Old and encrypted Office files, and HWP.
_OLE2 = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_IMAGES = (b"II*\0", b"MM\0*", b"\0\0\0\x0cjP  ")
_PICTURE_BRANDS = (b"heic", b"heix", b"mif1", b"msf1", b"avif", b"avis")
_TS_PACKET = 188  # ISO 13818-1: each begins with the byte 0x47
_VIDEOS = (b"\x1aE\xdf\xa3", b"\0\0\x01\xba", b"\0\0\x01\xb3", b"FLV\x01")
_SEPARATED_NAMES = (".csv", ".tsv", ".tab")
_MARKUP = (b"<!doctype html", b"<html", b"<?xml")
_RTF = b"{\\rtf"


def kind_of(head: bytes, name: str) -> FileKind:
    """The kind of a file with these first `KIND_HEAD_BYTES` bytes and this name.

    Raises:
        WorkerError: unsupported_file, for web pages and rich text, whose bytes would pass for text.
    """
    if b"%PDF-" in head:
        return "pdf"
    if head.startswith((_ZIP, _OLE2)):
        return "office"
    media = _media_kind(head)
    if media is not None:
        return media
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((*_MARKUP, _RTF)):
        raise unsupported("a web page, XML or rich text")
    return "csv" if PurePath(name).suffix.lower() in _SEPARATED_NAMES else "text"


def unsupported(what: str) -> WorkerError:
    """The error for a file of a kind that nobody here reads."""
    return WorkerError(
        "unsupported_file",
        f"the file is {what}",
        rule="PDF, pictures, CSV, XLSX and plain text are read",
        next_step="save it as PDF (tables as XLSX or CSV) and upload that",
    )


def _media_kind(head: bytes) -> Literal["image", "sound", "video"] | None:
    brand = head[8:12]
    if head[4:8] == b"ftyp":
        return "image" if brand in _PICTURE_BRANDS else "sound" if brand == b"M4A " else "video"
    if head[:4] == b"RIFF" and brand == b"AVI ":
        return "video"
    if head.startswith(_VIDEOS) or head[::_TS_PACKET][:3] == b"GGG":
        return "video"
    # Texts begin with BM as well; behind the size of a bitmap come four reserved zeros.
    if head.startswith(_IMAGES) or (head.startswith(b"BM") and head[6:10] == bytes(4)):
        return "image"
    known = media_type_of(head)
    if known is None:
        return None
    return "image" if known.startswith("image/") else "sound"
