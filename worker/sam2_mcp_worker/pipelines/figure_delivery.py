"""Which findings of figures go into which call's result. Pure: no files, no clock, no server.

Findings are told once all files are read, mismatches first. Over the calls of one request each is told once; should a
later call have read more (a page that failed before), all are told again, and that is said.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sam2_mcp_worker.checks.figure_compare import FigureFinding
from sam2_mcp_worker.cursors import decode_cursor, encode_cursor
from sam2_mcp_worker.errors import WorkerError

STATE_ORDER = ("mismatch", "cannot_compare", "match")
# Enough to see that findings are others than those of the call before.
MARK_CHARS = 12
# As `began_with` of documents: short words of ours, so longer ones come from a forged cursor.
MAX_BEGAN_CHARS = 64


@dataclass(frozen=True, slots=True)
class Place:
    """Where a request goes on: who began to read each file, and how many findings of those with this mark were told."""

    began_with: tuple[str, ...] = ()
    told: int = 0
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Delivery:
    """The findings of one call, with their numbers from 1. `again` says that they begin anew.

    `told` of `total` are told once this result is sent.
    """

    findings: tuple[tuple[int, FigureFinding], ...]
    told: int
    total: int
    mark: str
    again: bool

    @property
    def complete(self) -> bool:
        """Whether nothing is left to tell."""
        return self.told >= self.total


def deliver(
    findings: Sequence[FigureFinding], place: Place, room: int, chars: Callable[[FigureFinding], int]
) -> Delivery:
    """As many of the findings, in the order of `in_order`, as fit into `room` characters.

    At least one, so that every call gets on.
    """
    mark = _mark(findings)
    again = bool(place.told) and place.mark != mark
    first = 0 if again else min(place.told, len(findings))
    last = first
    while last < len(findings) and (last == first or room >= chars(findings[last])):
        room -= chars(findings[last])
        last += 1
    numbered = tuple(enumerate(findings[first:last], start=first + 1))
    return Delivery(numbered, last, len(findings), mark, again)


def in_order(findings: Sequence[FigureFinding]) -> tuple[FigureFinding, ...]:
    """Mismatches first; within a state as they stand in the advertisement."""
    return tuple(sorted(findings, key=lambda one: STATE_ORDER.index(one.state)))


def _mark(findings: Sequence[FigureFinding]) -> str:
    said = [[one.state, one.figure.text, one.figure.place.page, one.reason] for one in findings]
    return hashlib.sha256(json.dumps(said, ensure_ascii=True).encode("ascii")).hexdigest()[:MARK_CHARS]


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
