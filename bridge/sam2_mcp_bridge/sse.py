"""Server-sent events from bytes, as the HTML standard defines them. Sans-IO.

Splits at LF, CR and CRLF only: str.splitlines and httpx's iter_lines also split at U+2028, U+0085 and more, which
occur inside JSON strings. Keeps the data of `message` events and nothing else: ids, retry and comments mean nothing
to a bridge that never resumes a stream.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_LINE_END = re.compile(rb"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"


class EventTooLarge(ValueError):
    """One event is above the limit."""


class EventParser:
    """Turns chunks into the data of complete events; an event that the end of the stream cuts is dropped."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._line = bytearray()
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._name = b""
        self._after_cr = False
        self._first_line = True

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The data of the events that `chunk` completes.

        Raises:
            EventTooLarge: the event under way is above the limit; the stream is of no further use.
        """
        start = int(self._after_cr and chunk.startswith(b"\n"))  # the second half of a CRLF
        self._after_cr = chunk.endswith(b"\r") if chunk else self._after_cr
        for end in _LINE_END.finditer(chunk, start):
            self._append(chunk[start : end.start()])
            start = end.end()
            yield from self._end_line()
        self._append(chunk[start:])

    def _append(self, piece: bytes) -> None:
        self._line += piece
        if len(self._line) + self._data_bytes > self._limit_bytes:
            raise EventTooLarge(f"above {self._limit_bytes} bytes")

    def _end_line(self) -> Iterator[bytes]:
        line = bytes(self._line)
        self._line = bytearray()
        if self._first_line:
            line = line.removeprefix(_BOM)
            self._first_line = False
        if line:
            self._field(line)
            return
        data, name = self._data, self._name
        self._data, self._data_bytes, self._name = [], 0, b""
        if data and name in (b"", b"message"):
            yield b"\n".join(data)

    def _field(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._data_bytes += len(value)
        elif field == b"event":
            self._name = value
