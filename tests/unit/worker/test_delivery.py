"""Delivery: over the calls of one request every page and every line comes exactly once."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.fanout import Coverage
from sam2_mcp_worker.pipelines.delivery import (
    Delivered,
    budget_for_pages,
    delivered_after,
    fills_a_result,
    from_cursor,
    next_cursor,
    pack,
    reported,
)

KEY = "ab" * 32


def page(*texts: str, regions: int | None = None) -> dict[str, Any]:
    found = None if regions is None else [{"number": number, "label": "coin"} for number in range(regions)]
    return {"lines": [{"text": text} for text in texts], "regions": found}


@given(
    st.lists(st.one_of(st.none(), st.lists(st.integers(0, 900), max_size=12)), min_size=1, max_size=10),
    st.randoms(use_true_random=False),
    st.integers(1, 3000),
    st.booleans(),
)
def test_every_line_and_region_of_every_page_comes_exactly_once(
    documents: list[list[int] | None], random: Any, budget: int, detailed: bool
) -> None:
    """Pages settle in any order between calls; None stands for a page that fails. Page n has n regions."""
    count = len(documents)
    coverage: Coverage[int, Any] = Coverage(tuple(range(1, count + 1)))
    waiting = list(range(1, count + 1))
    random.shuffle(waiting)
    seen: dict[int, list[int]] = {}
    regions: dict[int, list[int]] = {}
    whole: list[int] = []
    cursor: str | None = None
    for _ in range(500):
        while waiting and random.random() < 0.5:
            number = waiting.pop()
            sizes = documents[number - 1]
            if sizes is None:
                coverage.mark_failed(number, WorkerError("bad", "bad"))
            else:
                coverage.mark_done(number, page(*("x" * size for size in sizes), regions=number))
        before = from_cursor(cursor, "inspect_pdf", KEY, count)
        assert before.model == ("fast" if cursor else "")
        pages = pack(coverage, before, budget, detailed)
        for part in pages:
            assert part.first_item == len(seen.setdefault(part.page_number, []))
            seen[part.page_number] += range(part.first_item, part.last_item)
            assert len(part.lines) + len(part.regions) == part.last_item - part.first_item
            regions.setdefault(part.page_number, []).extend(region["number"] for region in part.regions)
            if not part.continues:
                whole.append(part.page_number)
        cursor = next_cursor("inspect_pdf", KEY, coverage, before, pages, model="fast")
        assert reported(coverage, before).unreached == coverage.unreached
        if cursor is None:
            break
    assert cursor is None
    assert sorted(whole) == list(range(1, count + 1))
    assert {number: len(lines) for number, lines in seen.items()} == {
        number: 0 if sizes is None else len(sizes) + number for number, sizes in enumerate(documents, start=1)
    }
    assert {number: found for number, found in regions.items() if found} == {
        number: list(range(number)) for number, sizes in enumerate(documents, start=1) if sizes is not None
    }


@given(
    st.lists(st.lists(st.integers(0, 300), max_size=8), min_size=1, max_size=8), st.integers(400, 3000), st.booleans()
)
def test_a_result_stays_within_its_budget_unless_one_line_alone_exceeds_it(
    documents: list[list[int]], budget: int, detailed: bool
) -> None:
    coverage: Coverage[int, Any] = Coverage(tuple(range(len(documents))))
    for number, sizes in enumerate(documents):
        coverage.mark_done(number, page(*("x" * size for size in sizes)))
    pages = pack(coverage, Delivered(), budget, detailed)
    chars = [
        350
        + len("[]")
        + sum(
            len(json.dumps(line if detailed else line["text"]))
            for line in part.result["lines"][part.first_item : part.last_item]
        )
        for part in pages
        if part.result is not None
    ]
    only_one_line = len(pages) == 1 and pages[0].last_item <= 1
    assert sum(chars) <= budget + 352 or only_one_line
    if len(pages) < len(documents) or pages[-1].continues:
        assert fills_a_result(coverage, Delivered(), sum(chars), detailed)


def test_what_json_makes_longer_counts_as_long_as_it_gets() -> None:
    coverage: Coverage[int, Any] = Coverage((1, 2))
    coverage.mark_done(1, page('"\\' * 400))
    coverage.mark_done(2, page("x"))
    assert [part.page_number for part in pack(coverage, Delivered(), 1900, False)] == [1]


def test_the_lists_of_unreached_pages_take_their_room_from_the_pages() -> None:
    assert budget_for_pages(Coverage(tuple(range(1, 2001))), 40_000) < 32_000


def test_a_page_that_failed_before_a_restart_is_reported_failed_until_it_is_read() -> None:
    before = Delivered(delivered={1, 2}, failed={2})
    coverage: Coverage[int, Any] = Coverage((1, 2, 3))
    assert reported(coverage, before).failed.keys() == {2}
    assert reported(coverage, before).unreached == (1, 3)
    coverage.mark_done(2, page("now"))
    pages = pack(coverage, before, 1000, False)
    assert [part.page_number for part in pages] == [2]
    assert from_cursor(next_cursor("t", KEY, coverage, before, pages), "t", KEY, 3).failed == set()


def test_a_page_that_became_readable_and_did_not_fit_comes_with_the_next_result() -> None:
    before = Delivered(delivered={1, 3}, failed={3})
    coverage: Coverage[int, Any] = Coverage((1, 2, 3))
    for number in (1, 2, 3):
        coverage.mark_done(number, page("x" * 400))
    first = pack(coverage, before, 800, False)
    assert [part.page_number for part in first] == [2]
    assert delivered_after(coverage, before, first) == {1, 2}
    then = from_cursor(next_cursor("t", KEY, coverage, before, first), "t", KEY, 3)
    second = pack(coverage, then, 800, False)
    assert [part.page_number for part in second] == [3]
    assert next_cursor("t", KEY, coverage, then, second) is None


def test_an_unfinished_job_does_not_fill_a_result() -> None:
    coverage: Coverage[int, Any] = Coverage((1, 2))
    coverage.mark_done(1, page("short"))
    assert not fills_a_result(coverage, Delivered(), 1000, False)


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"d": "0"},
        {"d": "5"},
        {"d": 7},
        {"d": "", "n": [1]},
        {"d": "", "n": {"x": 1}},
        {"d": "", "f": "9"},
        {"d": "", "m": "opus"},
    ],
)
def test_a_cursor_with_impossible_content_is_damaged(state: dict[str, Any]) -> None:
    from sam2_mcp_worker.cursors import encode_cursor

    with pytest.raises(WorkerError, match="without cursor"):
        from_cursor(encode_cursor("t", KEY, state), "t", KEY, 3)
