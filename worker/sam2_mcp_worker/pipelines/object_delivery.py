"""What of a segmentation is delivered in which call: every object exactly once, in order. Pure.

An object that does not fit into what is left of a result waits for the next. One that was delivered as failed stays
so for this request; a later request tries it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sam2_mcp_worker.cursors import decode_cursor, encode_cursor, number_ranges, parse_ranges
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.fanout import Coverage


@dataclass(frozen=True, slots=True)
class Delivered:
    """What earlier calls of the request delivered; `failed` is a part of `numbers`."""

    numbers: frozenset[int] = frozenset()
    failed: frozenset[int] = frozenset()


def reported(coverage: Coverage[int, Any], before: Delivered) -> Coverage[int, Any]:
    """The coverage with those objects as failed that an earlier call delivered so."""
    done = {number: value for number, value in coverage.done.items() if number not in before.failed}
    failed = {number: WorkerError("failed_before", "see the earlier result") for number in before.failed}
    return Coverage(coverage.items, done, failed | coverage.failed)


def pack(coverage: Coverage[int, Any], before: Delivered, chars: Mapping[int, int], budget: int) -> list[int]:
    """Numbers of the settled objects that go into this result: as many as fit, at least one, so that calls get on.

    Args:
        chars: what each settled object takes in the result.
        budget: characters of one result.
    """
    packed: list[int] = []
    for number in coverage.items:
        if number in before.numbers or number not in chars:
            continue
        budget -= chars[number]
        if packed and budget < 0:
            break
        packed.append(number)
    return packed


def next_cursor(tool: str, key: str, coverage: Coverage[int, Any], before: Delivered, packed: list[int]) -> str | None:
    """Where the next call goes on, or None when every object has been delivered."""
    numbers = before.numbers | set(packed)
    if numbers >= set(coverage.items):
        return None
    failed = before.failed | (set(coverage.failed) & numbers)
    return encode_cursor(tool, key, {"d": number_ranges(sorted(numbers)), "f": number_ranges(sorted(failed))})


def from_cursor(tool: str, key: str, cursor: str, count: int) -> Delivered:
    """What the cursor says was delivered of `count` objects; nothing for no cursor.

    Raises:
        WorkerError: `cursor_invalid`.
    """
    if not cursor.strip():
        return Delivered()
    state = decode_cursor(cursor, tool, key)
    try:
        numbers, failed = (
            frozenset(parse_ranges(state[name], limit=count)) if state[name] else frozenset[int]() for name in "df"
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise WorkerError(
            "cursor_invalid", "the cursor is damaged", next_step="repeat the call without cursor to start again"
        ) from error
    return Delivered(numbers, failed & numbers)
