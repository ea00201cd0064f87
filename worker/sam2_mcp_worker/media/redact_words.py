"""Whether words occur in bytes, in whatever encoding a PDF may hold them. Pure.

Spaces, case and the form of composition (NFC, NFD, full width) do not count: a word set letter by letter, or broken
over two lines, is the same word. What a font's own codes mean is not known here; pdfium's text extraction covers that.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from urllib.parse import unquote_to_bytes

# A shorter word is found by chance in any stream.
MIN_CHARS = 2
# The encodings of strings, metadata and scripts in PDFs, and those of Korean files from before Unicode.
_ENCODINGS = ("utf-8", "utf-16-be", "utf-16-le", "cp949", "latin-1")
# A literal string (one level of nesting, as writers make them) or a hexadecimal one.
_STRING = rb"\((?:\\.|[^\\()]|\((?:\\.|[^\\()])*\))*\)|<[0-9A-Fa-f\s]*>"
_STRINGS = re.compile(_STRING, re.DOTALL)
# Strings of one array: the pieces of a line between which a writer adjusts the spacing.
_ARRAYS = re.compile(rb"\[(?:\s*(?:" + _STRING + rb"|[-+.0-9]+))*\s*\]", re.DOTALL)
# Names and numbers, operators and keywords of PDF syntax; strings and comments, which may hold words, come first.
_SYNTAX = re.compile(
    rb"(" + _STRING + rb"|%[^\r\n]*)|(/[^\s/()<>\[\]{}%]+)"
    rb"|(?<![^\s\[\]<>()/])(?:[-+.0-9]+|[A-Za-z*'\"]{1,3}|(?:end)?(?:obj|stream)|startxref|trailer|xref|null|true|false)"
    rb"(?![^\s\[\]<>()/])",
    re.DOTALL,
)
# What separates tokens where one was taken out: it is in no word.
_CUT = b"\x01"
# What prints nothing: soft hyphens, zero-width and direction marks, and what pdfium makes of a hyphen at a line's end.
_SILENT = re.compile("[\x02\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufffe]")
_LINE_END_HYPHEN = re.compile("(?:[-\u2010]\\s*[\r\n]+|\ufffe)\\s*")
_PERCENT_CODE = re.compile(rb"%[0-9A-Fa-f]{2}")
_ESCAPE = re.compile(rb"\\([0-7]{1,3}|\r\n|.)", re.DOTALL)
_ESCAPED = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f", b"\n": b"", b"\r": b"", b"\r\n": b""}


def plain(text: str) -> str:
    """Text as it is compared: composed, lower case, without spaces."""
    if text.isascii():
        return "".join(text.lower().replace("\x02", "").split())
    return "".join(_SILENT.sub("", unicodedata.normalize("NFKC", text)).casefold().split())


def needles(words: Iterable[str], least: int = MIN_CHARS) -> list[str]:
    """Comparable forms, each once, without those of fewer than `least` characters."""
    return sorted({form for word in words if len(form := plain(word)) >= max(1, least)})


def found_in_text(text: str, forms: Iterable[str]) -> list[str]:
    """Those of the comparable forms that occur in a text; a hyphen at the end of a line counts or not."""
    haystacks = {plain(text), plain(_LINE_END_HYPHEN.sub("", text)), plain(_LINE_END_HYPHEN.sub("-", text))}
    return [form for form in forms if any(form in haystack for haystack in haystacks)]


def stands_alone(data: bytes, form: str) -> bool:
    """Whether a word occurs in bytes, under any encoding, and not as a part of a longer one."""
    whole = re.compile(rf"(?<![^\W_]){re.escape(form)}(?![^\W_])")
    readings = [data, unquote_to_bytes(data.replace(b"+", b" "))]
    return any(
        whole.search(unicodedata.normalize("NFKC", text.decode(encoding, errors="ignore")).casefold())
        for text in dict.fromkeys(readings)
        for encoding in _ENCODINGS
    )


def found_in_bytes(
    data: bytes, forms: Iterable[str], *, strings: bool = True, known_names: frozenset[bytes] | None = None
) -> list[str]:
    """Those that occur in bytes under any encoding; with `strings` also in the strings of PDF syntax.

    With `known_names` (without slashes) the bytes are PDF syntax: those names, numbers and operators are no words.

    Strings that follow each other are read as one text, since writers may set each letter on its own. Two neighbours
    that make up a word by chance are found as well.
    """
    missing = {form for form in forms if len(form) <= len(data)}
    if not missing:
        return []
    found: list[str] = []
    for text in _readings(data, strings, known_names):
        hits = [form for form in missing if form in text]
        found += hits
        missing.difference_update(hits)
        if not missing:
            break
    return sorted(found)


def _readings(data: bytes, strings: bool, known_names: frozenset[bytes] | None) -> Iterator[str]:
    yield from decodings(data if known_names is None else _without_syntax(data, known_names))
    if _PERCENT_CODE.search(data):  # addresses
        yield from decodings(unquote_to_bytes(data.replace(b"+", b" ")))
    if not strings:
        return
    yield from decodings(b"\n".join(string_bytes(match.group()) for match in _STRINGS.finditer(data)))
    for array in _ARRAYS.finditer(data):
        yield from decodings(b"".join(string_bytes(match.group()) for match in _STRINGS.finditer(array.group())))


def _without_syntax(data: bytes, known_names: frozenset[bytes]) -> bytes:
    def kept(match: re.Match[bytes]) -> bytes:
        text, name = match.group(1), match.group(2)
        if text is not None:
            return text
        return _CUT if name is None or name[1:] in known_names else name + _CUT

    return _SYNTAX.sub(kept, data)


def decodings(data: bytes) -> Iterator[str]:
    """Comparable text under each encoding; 16-bit ones from both offsets.

    Plain ASCII is read once: 16-bit text has zero bytes or, in Korean, bytes above 127.
    """
    if data.isascii() and b"\0" not in data:
        yield plain(data.decode("ascii"))
        return
    for encoding in _ENCODINGS:
        yield plain(data.decode(encoding, errors="ignore"))
    for encoding in ("utf-16-be", "utf-16-le"):
        yield plain(data[1:].decode(encoding, errors="ignore"))


def string_bytes(token: bytes) -> bytes:
    """What a string token of PDF syntax stands for."""
    if token.startswith(b"<"):
        digits = re.sub(rb"[^0-9A-Fa-f]", b"", token)
        return bytes.fromhex((digits + b"0" * (len(digits) % 2)).decode("ascii"))
    return _ESCAPE.sub(_unescaped, token[1:-1])


def _unescaped(match: re.Match[bytes]) -> bytes:
    code = match.group(1)
    if code.isdigit() and code[:1] not in b"89":
        return bytes([int(code, 8) & 0xFF])
    return _ESCAPED.get(code, code)
