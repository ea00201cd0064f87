"""Which lines of a picture are delivered in which call. Pure: no files, no clock, no server.

Lines come in reading order within a band. A band ends at the top of the first tile that is not read yet: no line above
it can change any more. A cursor that pages through a band names the band's end, so that the order within it stays; when
its tiles are missing again (after a restart) nothing is delivered until they are back. A tile that was delivered as
failed stays failed for this request, since the band that it belongs to has gone by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sam2_mcp_worker.cursors import decode_cursor, encode_cursor, number_ranges, parse_ranges
from sam2_mcp_worker.engines.ports import Box, TextLine
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.reading_order import reading_order


@dataclass(frozen=True, slots=True)
class Place:
    """Where the last call stopped.

    Everything that ends at or above `after_y_px` was delivered, and the first `skip` lines of the band up to
    `until_y_px`; `failed` are the tiles that were delivered as failed.
    """

    after_y_px: int = 0
    until_y_px: int | None = None
    skip: int = 0
    failed: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Delivery:
    """Lines of this call, whether it is the first of its band, the band's end, and where the next call goes on."""

    lines: tuple[TextLine, ...]
    until_y_px: int
    next_place: Place | None


def settled_until_px(tiles: Sequence[Box], unreached: Sequence[int], height_px: int) -> int:
    """The y up to which nothing can change any more: the top of the first tile (numbered from 1) that is not read."""
    return min((tiles[number - 1][1] for number in unreached), default=height_px)


def deliver(
    lines: Sequence[TextLine],
    place: Place,
    *,
    settled_px: int,
    height_px: int,
    failed: frozenset[int],
    fit: Callable[[Sequence[TextLine]], int],
) -> Delivery:
    """The next lines. `fit` says how many of those given go into the result, at least one."""
    if place.after_y_px >= height_px:
        return Delivery((), height_px, None)  # every line was delivered, the tool's cursor goes on with something else
    until = settled_px if place.until_y_px is None else place.until_y_px
    if until > settled_px or until <= place.after_y_px:
        return Delivery((), place.after_y_px, place)  # nothing new is settled
    band = [line for line in lines if place.after_y_px < line.box_xyxy_px[3] <= until]
    ordered = [band[index] for index in reading_order([line.box_xyxy_px for line in band])][place.skip :]
    chosen = tuple(ordered[: fit(ordered)])
    if len(chosen) < len(ordered):
        more = Place(place.after_y_px, until, place.skip + len(chosen), failed)
        return Delivery(chosen, until, more)
    return Delivery(chosen, until, Place(until, failed=failed) if until < height_px else None)


def to_cursor(tool: str, key: str, place: Place | None, more: dict[str, Any] | None = None) -> str | None:
    """The place as a cursor, with what else the tool wants to find in it; None when all has been delivered."""
    if place is None:
        return None
    state: dict[str, Any] = {
        "y": place.after_y_px,
        "s": place.skip,
        "f": number_ranges(sorted(place.failed)),
        **(more or {}),
    }
    if place.until_y_px is not None:
        state["u"] = place.until_y_px
    return encode_cursor(tool, key, state)


def from_cursor(tool: str, key: str, cursor: str, tile_count: int) -> Place:
    """The place in a cursor; the top of the picture for an empty one.

    Raises:
        WorkerError: `cursor_invalid`.
    """
    if not cursor.strip():
        return Place()
    state = decode_cursor(cursor, tool, key)
    try:
        failed = frozenset(parse_ranges(state["f"], limit=tile_count) if state["f"] else ())
        until = int(state["u"]) if "u" in state else None
        return Place(max(0, int(state["y"])), until, max(0, int(state["s"])), failed)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise WorkerError(
            "cursor_invalid", "the cursor is damaged", next_step="repeat the call without cursor to start again"
        ) from error
