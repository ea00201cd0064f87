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
    """What earlier calls delivered: every unit up to `upto`; of these, `failed` were told as failed."""

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
    ahead = [unit for unit in units if unit.number > before.upto]
    settled = ahead[: next((i for i, unit in enumerate(ahead) if unit.heard is None), len(ahead))]
    pieces: list[HeardPiece] = []
    taken: set[int] = set()
    left = max_chars
    for unit in (*late, *settled):
        assert unit.heard is not None
        left -= piece_chars(unit.heard)
        if pieces and left < 0:
            break
        pieces.append(unit.heard)
        taken.add(unit.number)
        failed = failed | {unit.number} if unit.heard.failed else failed - {unit.number}
    upto = max([before.upto, *(unit.number for unit in settled if unit.number in taken)])
    open_ones = [unit for unit in units if unit.number > upto or (unit.number in failed and unit.heard is None)]
    untold = [unit for unit in late if unit.number not in taken]
    return Delivery(tuple(pieces), Told(upto, failed), not open_ones and not untold)


def fills_a_result(units: Sequence[Unit], before: Told, max_chars: int) -> bool:
    """Whether what is settled already fills a result, so that waiting longer brings the agent nothing."""
    total = 0
    for unit in units:
        if unit.number <= before.upto:
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
    """Told as failed; of a stretch that is cut into pieces by now, its pieces are."""
    known = {unit.number for unit in units}
    whole = {number for number in before.failed if number % PIECES_PER_STRETCH == 0 and number not in known}
    pieces = {number for number in known if number - number % PIECES_PER_STRETCH in whole and number <= before.upto}
    return frozenset((before.failed - whole) | pieces)


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
