"""Which regions of an image go into which call's result: each exactly once, in the order of their places. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from sam2_mcp_worker.errors import WorkerError

Place = tuple[int, int, int, int, int]
"""Where a region stands in the order of delivery: lower edge, left, upper and right edge, number of its label."""

START: Place = (-1, -1, -1, -1, -1)
"""Before every region."""

CURSOR_KEY = "r"


class Placed(Protocol):
    """What has a place."""

    @property
    def place(self) -> Place: ...


P = TypeVar("P", bound=Placed)


def next_regions(found: Sequence[P], after: Place, chars: Callable[[P], int], budget: int) -> list[P]:
    """Those behind `after`, as many as fit into the budget of characters, at least one, so that every call gets on.

    Args:
        found: in the order of their places, all different.
    """
    chosen: list[P] = []
    for region in found:
        if region.place <= after:
            continue
        budget -= chars(region)
        if chosen and budget < 0:
            break
        chosen.append(region)
    return chosen


def to_state(after: Place) -> dict[str, Any]:
    """What a cursor carries of the last region that was delivered."""
    return {} if after == START else {CURSOR_KEY: list(after)}


def from_state(state: dict[str, Any]) -> Place:
    """The inverse of `to_state`.

    Raises:
        WorkerError: `cursor_invalid`.
    """
    values = state.get(CURSOR_KEY)
    if values is None:
        return START
    if not isinstance(values, list) or len(values) != len(START) or not all(type(value) is int for value in values):
        raise WorkerError(
            "cursor_invalid", "the cursor is damaged", next_step="repeat the call without cursor to start again"
        )
    lower, left, upper, right, label = values
    return lower, left, upper, right, label
