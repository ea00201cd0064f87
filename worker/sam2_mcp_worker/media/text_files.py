"""Bytes of a text file to text: which encoding they are in, and what is no text at all. Pure, and light.

Korean offices still write CP949 (what Windows calls ANSI there) and Excel's "Unicode text" is UTF-16, so UTF-8 alone
would refuse half of the files that people have.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from sam2_mcp_worker.errors import WorkerError

_MARKS = (
    # The mark of UTF-32 begins with that of UTF-16.
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Of text in UTF-16 every second byte of its digits, commas and line ends is 0; of text in other encodings none is.
_PROBE_BYTES = 4096
_ZERO_SHARE = 0.1
# Control characters that text files hold: tab, line ends, form feed, and the end-of-file mark of DOS.
_NOT_TEXT = re.compile("[\x00-\x08\x0b\x0e-\x19\x1b-\x1f]")


@dataclass(frozen=True, slots=True)
class DecodedText:
    """A text with plain line ends, and the name of the encoding that it was in."""

    text: str
    encoding: str


def decode_text(data: bytes) -> DecodedText:
    """The text of these bytes: with a byte order mark what that says, else UTF-8, UTF-16 or CP949, whichever fits.

    Raises:
        WorkerError: not_text.
    """
    for encoding in _candidates(data):
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if not _NOT_TEXT.search(text):
            return DecodedText(_plain_ends(text), encoding.removesuffix("-sig"))
    raise WorkerError(
        "not_text",
        "the file is neither of a known kind nor text",
        rule="text is read as UTF-8, UTF-16 or CP949",
        next_step="save it as UTF-8 text, or give a PDF, CSV, XLSX or picture",
    )


def _candidates(data: bytes) -> tuple[str, ...]:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return (encoding,)
    head = data[:_PROBE_BYTES]
    if b"\0" in head:
        big, little = head[::2].count(0), head[1::2].count(0)
        return ("utf-16-be" if big > little else "utf-16-le",) if max(big, little) > _ZERO_SHARE * len(head) / 2 else ()
    return ("utf-8", "cp949")


def _plain_ends(text: str) -> str:
    return text.removesuffix("\x1a").replace("\r\n", "\n").replace("\r", "\n")
