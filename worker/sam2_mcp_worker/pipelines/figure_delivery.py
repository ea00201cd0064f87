"""Which findings of figures go into which call's result: mismatches first, each with its number. Pure.

How a request goes on over the calls is findings_delivery.py's, for all checks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sam2_mcp_worker.checks.figure_compare import FigureFinding
from sam2_mcp_worker.pipelines.findings_delivery import Delivery, Place, from_cursor, mark_of, to_cursor
from sam2_mcp_worker.pipelines.findings_delivery import deliver as deliver_items

__all__ = ["Delivery", "Numbered", "Place", "deliver", "from_cursor", "in_order", "to_cursor"]

STATE_ORDER = ("mismatch", "cannot_compare", "match")

Numbered = tuple[int, FigureFinding]
"""A finding with its number from 1, by which pictures and tables call it."""


def deliver(
    findings: Sequence[FigureFinding], place: Place, room: int, chars: Callable[[FigureFinding], int]
) -> Delivery[Numbered]:
    """As many of the findings, in the order of `in_order`, as fit into `room` characters."""
    said = [[one.state, one.figure.text, one.figure.place.page, one.reason] for one in findings]
    numbered = list(enumerate(findings, start=1))
    return deliver_items(numbered, mark_of(said), place, room, lambda one: chars(one[1]))


def in_order(findings: Sequence[FigureFinding]) -> tuple[FigureFinding, ...]:
    """Mismatches first; within a state as they stand in the advertisement."""
    return tuple(sorted(findings, key=lambda one: STATE_ORDER.index(one.state)))
