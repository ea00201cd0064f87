"""Findings over the calls of a request: each is told exactly once, whatever fits into one result."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.cursors import encode_cursor
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.pipelines.findings_delivery import Place, deliver, from_cursor, mark_of, to_cursor

KEY = "k" * 16


@given(st.lists(st.text(max_size=30), max_size=30), st.integers(1, 200))
def test_every_finding_is_told_once_in_order_and_every_call_gets_on(items: list[str], room: int) -> None:
    told: list[str] = []
    place, calls = from_cursor("", "tool", KEY, 2), 0
    while True:
        part = deliver(items, mark_of(items), place, room, len)
        assert part.first == len(told) and not part.again
        told += part.items
        calls += 1
        assert calls <= len(items) + 1
        if part.complete:
            break
        assert part.items, "a call that tells nothing would never end"
        cursor = to_cursor("tool", KEY, Place(("fast", ""), part.told, part.mark))
        place = from_cursor(cursor, "tool", KEY, 2)
        assert place.began_with == ("fast", "")
    assert told == items


def test_findings_that_became_others_are_told_anew() -> None:
    first = deliver(["a", "b"], mark_of(["a", "b"]), Place(("",)), 1, len)
    again = deliver(["a", "c"], mark_of(["a", "c"]), Place(("",), first.told, first.mark), 1, len)
    assert again.again and again.items == ("a",)


@pytest.mark.parametrize(
    "state",
    [{}, {"m": "fast"}, {"m": ["", ""]}, {"m": [1]}, {"m": [""], "n": -1}, {"m": [""], "n": "1"}, {"m": [""], "h": 3}],
)
def test_a_damaged_cursor_is_refused(state: dict[str, object]) -> None:
    with pytest.raises(WorkerError, match="cursor_invalid"):
        from_cursor(encode_cursor("tool", KEY, state), "tool", KEY, 1)


def test_a_forged_word_in_a_cursor_is_cut() -> None:
    [began] = from_cursor(encode_cursor("tool", KEY, {"m": ["x" * 500]}), "tool", KEY, 1).began_with
    assert len(began) <= 64
