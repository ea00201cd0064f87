"""Server-sent events from bytes, as the HTML standard defines them. Sans-IO.

Splits at LF, CR and CRLF only: str.splitlines and httpx's iter_lines also split at U+2028, U+0085 and more, which
occur inside JSON strings. Keeps the data of `message` events, and what is needed to take up a stream that was cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_LINE_END = re.compile(rb"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"
_DIGITS = re.compile(rb"[0-9]{1,9}")
_HEADER_VALUE = re.compile(rb"(?! )[ -~]*(?<! )")  # other ids fit into no Last-Event-ID

# Until a cut stream is taken up again, where the server does not say; and at least, whatever it says.
DEFAULT_RETRY_S = 1.0
MIN_RETRY_S = 0.1


class EventTooLarge(ValueError):
    """One event is above the limit."""


class EventParser:
    """Turns chunks into the data of complete events; an event that the end of the stream cuts is dropped.

    Attributes:
        last_event_id: of the last complete event that had one, "" before; for the header Last-Event-ID.
        retry_s: how long to wait before the stream is taken up again.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self.last_event_id = ""
        self.retry_s = DEFAULT_RETRY_S
        self.restart()

    def restart(self) -> None:
        """Forget the unfinished event: what follows is a new stream."""
        self._line = bytearray()
        self._data: bytearray | None = None  # not a list: an empty line would cost eight bytes and count as none
        self._name = b""
        self._id = self.last_event_id
        self._after_cr = False
        self._first_line = True

    def feed(self, chunk: bytes) -> Iterator[bytearray]:
        """The data of the events that `chunk` completes; it is the caller's, since a copy may be 32 MiB.

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
        if len(self._line) + len(self._data or b"") > self._limit_bytes:
            raise EventTooLarge(f"above {self._limit_bytes} bytes")

    def _end_line(self) -> Iterator[bytearray]:
        line, self._line = self._line, bytearray()
        if self._first_line:
            line = line.removeprefix(_BOM)
            self._first_line = False
        if line:
            self._field(line)
            return
        data, name = self._data, self._name
        self._data, self._name = None, b""
        self.last_event_id = self._id
        if data is not None and name in (b"", b"message"):
            yield data

    def _field(self, line: bytearray) -> None:
        field, _, value = line.partition(b":")
        if value.startswith(b" "):
            del value[0]
        if field == b"data":
            if self._data is None:
                self._data = value
            else:
                self._data += b"\n" + value
        elif field == b"event":
            self._name = bytes(value)
        elif field == b"id" and _HEADER_VALUE.fullmatch(value):
            self._id = value.decode()
        elif field == b"retry" and _DIGITS.fullmatch(value):
            self.retry_s = max(MIN_RETRY_S, int(value) / 1000)
