"""Cursors: where a call stopped, as one opaque word that the next call hands back.

A cursor carries everything that is needed, so it survives a restart of the worker. It is not a secret and grants
nothing: the source is named again with every call.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.fanout import number_ranges

# A request is compared with its cursor by this many characters of its key.
KEY_CHARS = 16
MAX_CURSOR_CHARS = 20_000


def encode_cursor(tool: str, key: str, state: dict[str, Any]) -> str:
    """A URL-safe word for the state of one request; `key` identifies the request (source and parameters)."""
    text = json.dumps({"t": tool, "k": key[:KEY_CHARS], **state}, separators=(",", ":"), sort_keys=True)
    return base64.urlsafe_b64encode(text.encode("ascii")).decode("ascii").rstrip("=")


def decode_cursor(cursor: str, tool: str, key: str) -> dict[str, Any]:
    """The state in a cursor.

    Raises:
        WorkerError: `cursor_invalid`: damaged, of another tool, or of another request.
    """
    try:
        if len(cursor) > MAX_CURSOR_CHARS:
            raise ValueError("too long")
        padded = cursor.strip() + "=" * (-len(cursor.strip()) % 4)
        state = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        if not isinstance(state, dict):
            raise ValueError("not an object")
    except (ValueError, binascii.Error, RecursionError) as error:
        raise _invalid("the cursor is damaged") from error
    if state.get("t") != tool or state.get("k") != key[:KEY_CHARS]:
        raise _invalid("the cursor belongs to another request")
    return state


def _invalid(what: str) -> WorkerError:
    return WorkerError(
        "cursor_invalid",
        what,
        rule="a cursor is used with the same tool, source and parameters as the call that returned it",
        next_step="repeat the call without cursor to start again",
    )


def parse_ranges(text: str, *, limit: int) -> list[int]:
    """`"1-3,7"` -> `[1, 2, 3, 7]`, the inverse of `number_ranges`, for numbers from 1 to `limit`.

    Raises:
        ValueError: not of that form, empty, reversed, or outside the limit.
    """
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


__all__ = ["decode_cursor", "encode_cursor", "number_ranges", "parse_ranges"]
