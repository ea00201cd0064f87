"""Regions over the calls of one request: each exactly once, in order, whatever fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.pipelines.region_delivery import START, Place, from_state, next_regions, to_state


@dataclass(frozen=True)
class Found:
    place: Place
    chars: int


founds = st.lists(
    st.builds(Found, st.tuples(*[st.integers(0, 300)] * 4, st.integers(0, 19)), st.integers(1, 900)),
    unique_by=lambda one: one.place,
    max_size=30,
).map(lambda found: sorted(found, key=lambda one: one.place))


@given(founds, st.integers(1, 2000), st.lists(st.integers(0, 30), max_size=6))
def test_every_region_comes_once_and_in_order_while_more_of_them_settle(
    found: list[Found], budget: int, settled: list[int]
) -> None:
    delivered: list[Found] = []
    after = START
    for known in [*sorted(settled), *[len(found)] * (len(found) + 1)]:
        chosen = next_regions(found[:known], after, lambda one: one.chars, budget)
        assert len(chosen) <= 1 or sum(one.chars for one in chosen) <= budget
        delivered += chosen
        after = from_state(to_state(chosen[-1].place if chosen else after))
    assert delivered == found


@pytest.mark.parametrize("damaged", ["x", [1, 2, 3, 4], [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, "5"], [1, 2, 3, 4, True], {}])
def test_a_damaged_place_is_named(damaged: Any) -> None:
    with pytest.raises(WorkerError) as caught:
        from_state({"r": damaged})
    assert caught.value.code == "cursor_invalid"
