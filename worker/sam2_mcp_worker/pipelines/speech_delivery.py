"""Which words are delivered in which call. Pure: no files, no clock, no server.

Over the calls of one request every piece is delivered exactly once, in order. One that was delivered as failed and was
heard later (after a restart) is delivered once more, as heard.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sam2_mcp_worker.cursors import decode_cursor, encode_cursor, number_ranges, parse_ranges
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.pipelines.hear_piece import HeardPiece
from sam2_mcp_worker.pipelines.listening import PIECES_PER_STRETCH, Unit
from sam2_mcp_worker.pipelines.transcript import Said

# JSON around the text of one segment: keys and numbers.
SEGMENT_OVERHEAD_CHARS = 90


@dataclass(frozen=True, slots=True)
class Told:
    """What earlier calls delivered: all numbers up to `upto`; of these, `failed` were told as failed.

    Of a stretch that failed as a whole these are all that its pieces may have.
    """

    upto: int = 0
    failed: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Delivery:
    """The pieces of this call, what has been told then, and whether that is all there is."""

    pieces: tuple[HeardPiece, ...]
    told: Told
    complete: bool


def deliver(units: Sequence[Unit], before: Told, max_chars: int) -> Delivery:
    """The next pieces, whole, as many as fit; the first one always does, so that every call gets on."""
    failed = _still_failed(units, before)
    late = [unit for unit in units if unit.number in failed and unit.heard is not None and not unit.heard.failed]
    ahead = [unit for unit in units if _last(unit) > before.upto]
    settled = ahead[: next((i for i, unit in enumerate(ahead) if unit.heard is None), len(ahead))]
    pieces: list[HeardPiece] = []
    upto, left = before.upto, max_chars
    waiting = [*late, *settled]
    while waiting:
        heard = waiting[0].heard
        assert heard is not None
        left -= piece_chars(heard)
        if pieces and left < 0:
            break
        unit = waiting.pop(0)
        pieces.append(heard)
        own = set(range(max(unit.number, min(upto + 1, _last(unit))), _last(unit) + 1))
        failed = failed | own if heard.failed else failed - own
        upto = max(upto, _last(unit))
    pending = any(unit.heard is None and (_last(unit) > upto or _open(unit, failed)) for unit in units)
    return Delivery(tuple(pieces), Told(upto, failed), not waiting and not pending)


def _last(unit: Unit) -> int:
    """The last number that a unit stands for: of a stretch as a whole, that of any piece that it may have."""
    return unit.number + PIECES_PER_STRETCH - 1 if unit.number % PIECES_PER_STRETCH == 0 else unit.number


def _open(unit: Unit, failed: frozenset[int]) -> bool:
    return any(number in failed for number in range(unit.number, _last(unit) + 1))


def fills_a_result(units: Sequence[Unit], before: Told, max_chars: int) -> bool:
    """Whether what is settled already fills a result, so that waiting longer brings the agent nothing."""
    total = 0
    for unit in units:
        if _last(unit) <= before.upto:
            continue
        if unit.heard is None:
            return False
        total += piece_chars(unit.heard)
        if total >= max_chars:
            return True
    return False


def piece_chars(piece: HeardPiece) -> int:
    """What a piece takes of a result."""
    return sum(segment_chars(said) for said in piece.said)


def segment_chars(said: Said) -> int:
    """What a segment takes of a result."""
    return SEGMENT_OVERHEAD_CHARS + len(json.dumps(said.text, ensure_ascii=False))


def _still_failed(units: Sequence[Unit], before: Told) -> frozenset[int]:
    """Told as failed, without the numbers that a stretch turned out not to have."""
    known = {unit.number for unit in units}
    unknown = {number for number in known if number % PIECES_PER_STRETCH == 0}
    return frozenset(
        number for number in before.failed if number in known or number - number % PIECES_PER_STRETCH in unknown
    )


def to_cursor(tool: str, key: str, delivery: Delivery) -> str | None:
    """Where the next call goes on; None when everything has been delivered."""
    if delivery.complete:
        return None
    state = {"p": delivery.told.upto, "f": number_ranges(sorted(delivery.told.failed))}
    return encode_cursor(tool, key, state)


def from_cursor(cursor: str, tool: str, key: str, stretch_count: int) -> Told:
    """What the cursor says was delivered; nothing for no cursor.

    Raises:
        WorkerError: `cursor_invalid`.
    """
    if not cursor.strip():
        return Told()
    state = decode_cursor(cursor, tool, key)
    try:
        limit = (stretch_count + 1) * PIECES_PER_STRETCH
        failed = frozenset(parse_ranges(state["f"], limit=limit) if state["f"] else ())
        return Told(min(max(0, int(state["p"])), limit), failed)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise WorkerError(
            "cursor_invalid", "the cursor is damaged", next_step="repeat the call without cursor to start again"
        ) from error
