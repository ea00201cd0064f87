"""Which findings of a check go into which call's result. Pure: no files, no clock, no server.

Findings are told once everything is read, in the order in which the check gives them. Over the calls of one request
each is told once; should a later call have read more (a page that failed before), all are told again, and that is said.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sam2_mcp_worker.cursors import decode_cursor, encode_cursor
from sam2_mcp_worker.errors import WorkerError

# Enough to see that findings are others than those of the call before.
MARK_CHARS = 12
# As `began_with` of documents: short words of ours, so longer ones come from a forged cursor.
MAX_BEGAN_CHARS = 64

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a request goes on: who began to read each file, and how many findings of those with this mark were told."""

    began_with: tuple[str, ...] = ()
    told: int = 0
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Delivery(Generic[Item]):
    """The findings of one call, the first of them number `first` (from 0) of all.

    `told` are told once this result is sent, `again` says that they begin anew.
    """

    items: tuple[Item, ...]
    first: int
    told: int
    total: int
    mark: str
    again: bool

    @property
    def complete(self) -> bool:
        """Whether nothing is left to tell."""
        return self.told >= self.total


def deliver(items: Sequence[Item], mark: str, place: Place, room: int, chars: Callable[[Item], int]) -> Delivery[Item]:
    """As many as fit into `room` characters, at least one, so that every call gets on. `mark` stands for them all."""
    again = bool(place.told) and place.mark != mark
    first = 0 if again else min(place.told, len(items))
    last = first
    while last < len(items) and (last == first or room >= chars(items[last])):
        room -= chars(items[last])
        last += 1
    return Delivery(tuple(items[first:last]), first, last, len(items), mark, again)


def mark_of(told: Any) -> str:
    """A short word for findings, as JSON, by which it is seen that they are the same."""
    return hashlib.sha256(json.dumps(told, ensure_ascii=True).encode("ascii")).hexdigest()[:MARK_CHARS]


def from_cursor(cursor: str, tool: str, key: str, files: int) -> Place:
    """Where the request goes on; its beginning for no cursor.

    Raises:
        WorkerError: `cursor_invalid`.
    """
    if not cursor.strip():
        return Place(("",) * files)
    state = decode_cursor(cursor, tool, key)
    began, told, mark = state.get("m"), state.get("n", 0), state.get("h", "")
    if not (isinstance(began, list) and len(began) == files and all(isinstance(one, str) for one in began)):
        raise _damaged()
    if not (isinstance(told, int) and told >= 0 and isinstance(mark, str)):
        raise _damaged()
    return Place(tuple(one[:MAX_BEGAN_CHARS] for one in began), told, mark)


def to_cursor(tool: str, key: str, place: Place) -> str:
    """The place as a cursor."""
    state = {"m": list(place.began_with)} | ({"n": place.told, "h": place.mark} if place.told else {})
    return encode_cursor(tool, key, state)


def _damaged() -> WorkerError:
    return WorkerError(
        "cursor_invalid", "the cursor is damaged", next_step="repeat the call without cursor to start again"
    )
