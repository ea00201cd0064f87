"""Looks through a redacted file as a whole: words in any byte stream, and whatever should not be there any more.

Runs in redact children. The streams are found and unpacked here with nothing but zlib, so that no library which wrote
the file decides what is looked at; qpdf then walks the objects.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pikepdf
from pikepdf import Array, Dictionary, Name, String

from sam2_mcp_worker.media.redact_pdf_names import KNOWN_NAMES, is_known
from sam2_mcp_worker.media.redact_pdf_private import private_keys
from sam2_mcp_worker.media.redact_pdf_syntax import name_text
from sam2_mcp_worker.media.redact_picture_metadata import tells
from sam2_mcp_worker.media.redact_words import found_in_bytes

_STREAM = re.compile(rb"(?<!end)stream\r?\n")
# The dictionary of a stream stands before it; longer ones are not written by qpdf.
_HEADER_BYTES = 2000
# Pixels and fonts hold no strings in PDF syntax, and reading megabytes of them under seven encodings takes seconds.
_READ_BYTES = 4_000_000
# Keys under which something could be carried out of sight; redact_pdf_scrub takes them out, this finds them again.
_FORBIDDEN = {
    "/Metadata", "/PieceInfo", "/Thumb", "/JS", "/ActualText", "/Alternates", "/EF", "/RF", "/EmbeddedFiles",
    "/JavaScript", "/XFA", "/AF", "/OPI", "/Info", "/Prev", "/Encrypt",
}  # fmt: skip
_WORD_ENCODINGS = ("utf-8", "utf-16-be", "utf-16-le", "cp949")
# Shorter words stand in megabytes of pixels by chance. (Three bytes: once in 16 MB, case aside once in 2 MB.)
_MIN_BINARY_BYTES = 6


def pdf_verify_file(params: dict[str, Any]) -> dict[str, Any]:
    """`{path, forms}` -> `{problems: [..], streams, objects}`; `forms` are comparable words (redact_words)."""
    path, forms = Path(params["path"]), params["forms"]
    data = path.read_bytes()
    problems = _revisions(data)
    streams = 0
    for place, body, is_text in _streams(data):
        streams += 1
        for form in _found(body, forms, is_text):
            problems.append(f"'{form}' is in the stream at byte {place}")
    outside = _STREAM_BODY.sub(b"", data)
    hits = found_in_bytes(outside, forms, known_names=KNOWN_NAMES)
    problems += [f"'{form}' is in the file outside of its streams" for form in hits]
    with pikepdf.open(path) as pdf:
        objects = len(pdf.objects)
        for item in [pdf.trailer, *pdf.objects]:
            problems += _walk(item, forms)
            problems += [f"{key} is still there, private to a program" for key in private_keys(item)]
            if isinstance(item, pikepdf.Stream) and tells(item):
                problems.append("a picture holds metadata")
    return {"problems": sorted(set(problems)), "streams": streams, "objects": objects}


_STREAM_BODY = re.compile(rb"(?<!end)stream\r?\n.*?endstream", re.DOTALL)


def _revisions(data: bytes) -> list[str]:
    ends = data.count(b"%%EOF")
    return [] if ends == 1 else [f"the file has {ends} ends, so it may hold earlier revisions"]


def _streams(data: bytes) -> Iterator[tuple[int, bytes, bool]]:
    """Place, unpacked bytes, and whether they are text rather than pixels or font programs."""
    for match in _STREAM.finditer(data):
        start = match.end()
        header = data[max(0, match.start() - _HEADER_BYTES) : match.start()].rpartition(b" obj")[2]
        raw = data[start : max(start, data.find(b"endstream", start))]
        is_binary = b"/Image" in header or b"/Length1" in header or b"FontFile" in header or b"/Type1C" in header
        yield start, _unpacked(raw, data, start), not is_binary


def _unpacked(raw: bytes, data: bytes, start: int) -> bytes:
    """Inflated when it can be: from the start of the stream on, since its end mark may stand in its bytes."""
    try:
        return zlib.decompressobj().decompress(data[start:] if raw[:1] == b"\x78" else raw)
    except zlib.error:
        return raw


def _found(body: bytes, forms: Sequence[str], is_text: bool) -> list[str]:
    if is_text and len(body) <= _READ_BYTES:
        return found_in_bytes(body, forms, known_names=KNOWN_NAMES)
    body = body.lower().translate(None, _BLANKS)
    return [form for form in forms if any(code in body for code in _codes(form))]


_BLANKS = b" \t\r\n"


def _codes(form: str) -> list[bytes]:
    codes = [form.encode(encoding, errors="ignore").lower() for encoding in _WORD_ENCODINGS]
    return [code for code in codes if len(code) >= _MIN_BINARY_BYTES]


def _walk(item: Any, forms: Sequence[str], depth: int = 0) -> Iterator[str]:
    """Problems of one object and of what is written inside of it."""
    entries: list[tuple[str, Any]] = []
    if isinstance(item, (Dictionary, pikepdf.Stream)):
        entries = [(str(key), item[key]) for key in item.keys()]  # noqa: SIM118 (not a dict)
        for key, _ in entries:
            if not is_known(key):
                hits = found_in_bytes(key.encode("utf-8", "surrogateescape"), forms, strings=False)
                yield from (f"'{form}' is in the name {key}" for form in hits)
        yield from (f"{key} is still there" for key, _ in entries if key in _FORBIDDEN and not _is_harmless(item, key))
    elif isinstance(item, Array):
        entries = [("", value) for value in item]
    for key, value in entries:
        if isinstance(value, Name) and is_known(name_text(value)):
            continue
        if isinstance(value, (String, Name)):
            hits = found_in_bytes(bytes(value), forms, strings=False)
            yield from (f"'{form}' is in {key or 'an array'}" for form in hits)
        elif isinstance(value, (Dictionary, Array)) and not value.is_indirect and depth < 64:
            yield from _walk(value, forms, depth + 1)


def _is_harmless(item: Any, key: str) -> bool:
    """An outline entry names the one before it by /Prev; an output intent (PDF/A has one) is described by /Info."""
    if key == "/Info":
        return isinstance(item[key], String)
    return key == "/Prev" and ("/Title" in item or "/Parent" in item)


TASKS = {"pdf_verify_file": pdf_verify_file}
