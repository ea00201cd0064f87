"""Cursors: where a call stopped, as one opaque word that the next call hands back.

A cursor carries everything that is needed, so it survives a restart of the worker. It is not a secret and grants
nothing: the source is named again with every call.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

from sam2_mcp_worker.errors import WorkerError

# A request is compared with its cursor by this many characters of its key.
KEY_CHARS = 16
MAX_CURSOR_CHARS = 20_000
# Whole numbers up to here are exact as floats too; pages, lines and pixels stay far below.
MAX_CURSOR_NUMBER = 2**53
# A text of ranges is at least allowed to be this long; each part of it can cost `limit` steps.
MAX_RANGES_CHARS = 2000


def encode_cursor(tool: str, key: str, state: dict[str, Any]) -> str:
    """A URL-safe word for the state of one request; `key` identifies the request (source and parameters)."""
    text = json.dumps({"t": tool, "k": key[:KEY_CHARS], **state}, separators=(",", ":"), sort_keys=True)
    return base64.urlsafe_b64encode(text.encode("ascii")).decode("ascii").rstrip("=")


def decode_cursor(cursor: str, tool: str, key: str) -> dict[str, Any]:
    """The state in a cursor; every number in it is finite and at most `MAX_CURSOR_NUMBER` in size.

    Raises:
        WorkerError: `cursor_invalid`: damaged, of another tool, or of another request.
    """
    try:
        if len(cursor) > MAX_CURSOR_CHARS:
            raise ValueError("too long")
        padded = cursor.strip() + "=" * (-len(cursor.strip()) % 4)
        text = base64.b64decode(padded, altchars=b"-_", validate=True)
        state = json.loads(text, parse_constant=_no_constant, parse_int=_int, parse_float=_float)
        if not isinstance(state, dict):
            raise ValueError("not an object")
    # binascii.Error, JSONDecodeError and UnicodeDecodeError are ValueErrors; RecursionError is for deep nesting.
    except (ValueError, RecursionError) as error:
        raise _invalid("the cursor is damaged") from error
    if state.get("t") != tool or state.get("k") != key[:KEY_CHARS]:
        raise _invalid("the cursor belongs to another request")
    return state


def belongs(cursor: str, tool: str, key: str) -> bool:
    """Whether this is a cursor of the request."""
    try:
        decode_cursor(cursor, tool, key)
    except WorkerError:
        return False
    return True


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _int(digits: str) -> int:
    _check_size(number := int(digits))
    return number


def _float(digits: str) -> float:
    _check_size(number := float(digits))  # 1e999 is infinite
    return number


def _check_size(number: float) -> None:
    if abs(number) > MAX_CURSOR_NUMBER:
        raise ValueError("a number is too large")


def _invalid(what: str) -> WorkerError:
    return WorkerError(
        "cursor_invalid",
        what,
        rule="a cursor is used with the same tool, source and parameters as the call that returned it",
        next_step="repeat the call without cursor to start again",
    )


def number_ranges(numbers: Sequence[int]) -> str:
    """Sorted numbers as short text: `[1, 2, 3, 7]` -> `"1-3,7"`."""
    parts: list[list[int]] = []
    for number in sorted(set(numbers)):
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def parse_ranges(text: str, *, limit: int) -> list[int]:
    """`"1-3,7"` -> `[1, 2, 3, 7]`, the inverse of `number_ranges`, for numbers from 1 to `limit`.

    Raises:
        ValueError: not of that form, empty, reversed, outside the limit, or longer than any text that is needed.
    """
    # No text of `number_ranges` is longer than the digits of all numbers: cursors carry scattered pages of long PDFs.
    max_chars = max(MAX_RANGES_CHARS, limit * len(str(limit)))
    if len(text) > max_chars:
        raise ValueError(f"the ranges have {len(text)} characters; at most {max_chars} are read: join pages as in 3-7")
    numbers: set[int] = set()
    for part in text.replace(" ", "").split(","):
        first, dash, last = part.partition("-")
        if not (first.isascii() and first.isdigit()) or (dash and not (last.isascii() and last.isdigit())):
            raise ValueError(f"{part[:20]!r} is neither a number nor a range such as 3-7")
        start, stop = int(first[:9]), int((last or first)[:9])
        if not 1 <= start <= stop <= limit:
            raise ValueError(f"{part[:20]!r} is outside 1-{limit}")
        numbers.update(range(start, stop + 1))
    return sorted(numbers)
