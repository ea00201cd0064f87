"""Delivery of objects: over the calls of a request each exactly once, whatever fits and whenever each is settled."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.cursors import encode_cursor
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.fanout import Coverage
from sam2_mcp_worker.pipelines.object_delivery import Delivered, from_cursor, next_cursor, pack, reported

KEY = "k" * 16


def coverage_of(count: int, done: set[int], failed: set[int]) -> Coverage[int, str]:
    errors = {number: WorkerError("broken", "it broke") for number in failed}
    return Coverage(tuple(range(1, count + 1)), dict.fromkeys(done, "mask"), errors)


@given(
    st.lists(st.integers(1, 500), min_size=1, max_size=30),
    st.integers(1, 1500),
    st.lists(st.sets(st.integers(1, 30)), max_size=6),
    st.sets(st.integers(1, 30)),
)
def test_every_object_is_delivered_exactly_once(
    sizes: list[int], budget: int, waves: list[set[int]], broken: set[int]
) -> None:
    count = len(sizes)
    everything = set(range(1, count + 1))
    settled: set[int] = set()
    delivered: list[int] = []
    cursor: str | None = ""
    for wave in [*waves, *[everything] * count]:
        settled |= wave & everything
        before = from_cursor("t", KEY, cursor or "", count)
        coverage = reported(coverage_of(count, settled - broken, settled & broken), before)
        chars = {number: sizes[number - 1] for number in coverage.items if number in settled}
        packed = pack(coverage, before, chars, budget)
        assert sum(chars[number] for number in packed) <= budget or len(packed) == 1
        assert packed == sorted(packed)
        delivered += packed
        cursor = next_cursor("t", KEY, coverage, before, packed)
        if cursor is None:
            break
    assert cursor is None
    assert sorted(delivered) == list(range(1, count + 1))


def test_an_object_that_was_delivered_as_failed_stays_failed_for_the_request() -> None:
    before = Delivered(frozenset({1, 2}), frozenset({2}))
    again = reported(coverage_of(3, {1, 2, 3}, set()), before)
    assert sorted(again.done) == [1, 3]
    assert again.failed[2].code == "failed_before"
    cursor = next_cursor("t", KEY, coverage_of(4, {1, 3}, {2}), before, [3])
    assert cursor is not None
    assert from_cursor("t", KEY, cursor, 4) == Delivered(frozenset({1, 2, 3}), frozenset({2}))


@pytest.mark.parametrize(
    "state", [{"d": "1-9", "f": ""}, {"d": "1"}, {"d": 7, "f": ""}, {"d": "x", "f": ""}, {"d": "", "f": ["1"]}]
)
def test_a_cursor_that_no_call_gave_is_refused(state: dict[str, object]) -> None:
    with pytest.raises(WorkerError, match="without cursor") as caught:
        from_cursor("t", KEY, encode_cursor("t", KEY, state), 4)
    assert caught.value.code == "cursor_invalid"
