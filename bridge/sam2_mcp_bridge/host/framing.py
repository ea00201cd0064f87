"""Bytes of the host's stream to JSON-RPC messages, and messages to lines. Sans-IO.

Owns what a line is, what JSON is, which messages are valid, and that every line out is one line of ASCII. Knows
neither order nor deadlines (ledger.py).
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NamedTuple

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
UNSUPPORTED_VERSION = -32022  # of MCP

# A host may hand over a whole file in an argument, 8 MiB and more. A line costs about four times its size while it is
# being read, and all bridges of a station share 512 MB.
MAX_LINE_BYTES = 32 * 2**20

# A message in a batch costs 300 bytes and an answer, however short it is: a line of `[1,1,1,...` would cost gigabytes.
# Revision 2025-03-26 alone has batches, and hosts put a few requests into one.
MAX_BATCH_MESSAGES = 1000

# An id comes back in the answer; a huge one would carry the answer above the host's line limit.
MAX_ID_CHARACTERS = 1024

_SURROGATE = re.compile(r"\\ud[89a-f]")
_ESCAPE = re.compile(r"\\ud[89ab]..\\ud[c-f]..|(?P<lone>\\ud[89a-f]..)|\\.")


class Request(NamedTuple):
    id: str | int
    method: str
    params: Any


class Notification(NamedTuple):
    method: str
    params: Any


class Response(NamedTuple):
    """The host's answer to a request that the bridge passed on: `result` or `error` in `outcome`, as they came."""

    id: str | int
    outcome: dict[str, Any]


class Malformed(NamedTuple):
    """A line, or an element of a batch, that can only be answered with an error."""

    id: str | int | None
    code: int
    reason: str


Message = Request | Notification | Response | Malformed


def decode(data: bytes | bytearray, errors: str = "strict") -> Any:
    """The JSON value in `data`; numbers that JSON cannot express (NaN, 1e400) become null.

    Raises:
        ValueError: it is not JSON, or not UTF-8 and `errors` is strict.
    """
    try:
        # A byte order mark is no part of the message; some hosts on Windows begin their first line with one.
        return json.loads(data.decode("utf-8-sig", errors), parse_constant=_finite_or_null, parse_float=_finite_or_null)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _finite_or_null(number: str) -> float | None:
    value = float(number)
    return value if math.isfinite(value) else None


def encode(message: Any) -> str:
    """One line of ASCII JSON. A lone surrogate becomes U+FFFD, because strict parsers refuse it.

    Raises:
        RecursionError: the message is nested about as deeply as Python's stack allows.
    """
    text = json.dumps(message, separators=(",", ":"), allow_nan=False)
    if _SURROGATE.search(text):
        text = _ESCAPE.sub(lambda match: r"\ufffd" if match["lone"] else match[0], text)
    return text


class LineSplitter:
    """Cuts a byte stream at LF, whatever the chunks. `None` stands for a line that is skipped: above the limit, or
    larger than the memory that is left."""

    def __init__(self, limit_bytes: int = MAX_LINE_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._line: bytearray | None = bytearray()

    def feed(self, chunk: bytes) -> list[bytes | None]:
        """The lines that `chunk` completes, without LF."""
        *complete, rest = chunk.split(b"\n")
        lines: list[bytes | None] = []
        for piece in complete:
            self._append(piece)
            lines.append(self._take())
        self._append(rest)
        return lines

    def _append(self, piece: bytes) -> None:
        try:
            if self._line is not None and len(self._line) + len(piece) <= self._limit_bytes:
                self._line += piece
            elif piece:
                self._line = None
        except MemoryError:
            self._line = None

    def _take(self) -> bytes | None:
        line, self._line = self._line, bytearray()
        try:
            return None if line is None else bytes(line)
        except MemoryError:
            return None


def parse(line: bytes | None) -> list[Message]:
    """The messages in one line of the host; a batch is taken apart, blank lines vanish."""
    if line is None:
        return [Malformed(None, PARSE_ERROR, f"the line is longer than {MAX_LINE_BYTES} bytes or the memory left")]
    if line.isspace() or not line:
        return []
    try:
        value = decode(line)
    except MemoryError:
        return parse(None)
    except ValueError as error:
        return [Malformed(None, PARSE_ERROR, f"not a line of JSON in UTF-8: {error}")]
    if isinstance(value, list) and len(value) > MAX_BATCH_MESSAGES:
        return [Malformed(None, INVALID_REQUEST, f"a batch holds up to {MAX_BATCH_MESSAGES} messages")]
    elements = value if isinstance(value, list) and value else [value]
    return [message for element in elements if (message := _message(element)) is not None]


def _message(value: Any) -> Message | None:
    if not isinstance(value, dict):
        return Malformed(None, INVALID_REQUEST, "a message is an object, a batch at least one")
    id_value: Any = value.get("id")
    method = value.get("method")
    id_is_valid = type(id_value) in (str, int) and len(str(id_value)) <= MAX_ID_CHARACTERS
    if method is None and ("result" in value or "error" in value):
        outcome = {key: value[key] for key in ("result", "error") if key in value}
        return Response(id_value, outcome) if id_is_valid else None  # else the answer to nothing the bridge asked
    if not isinstance(method, str):
        return Malformed(id_value if id_is_valid else None, INVALID_REQUEST, "method must be a string")
    if "id" not in value:
        return Notification(method, value.get("params"))
    if not id_is_valid:
        return Malformed(None, INVALID_REQUEST, f"id must be a string or integer, up to {MAX_ID_CHARACTERS} characters")
    return Request(id_value, method, value.get("params"))
