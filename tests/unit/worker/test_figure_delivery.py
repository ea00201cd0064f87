"""Which findings of figures go into which call: each once, mismatches first, and anew where more was read."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.checks.figure_compare import FigureFinding, FigureState
from sam2_mcp_worker.checks.figures import Figure, Place
from sam2_mcp_worker.cursors import encode_cursor
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.pipelines.figure_delivery import Place as Where
from sam2_mcp_worker.pipelines.figure_delivery import deliver, from_cursor, in_order, to_cursor
from sam2_mcp_worker.pipelines.figure_rows import figure_row, finding_chars

TOOL, KEY = "check_figures", "k" * 64
STATES: list[FigureState] = ["match", "mismatch", "cannot_compare"]


def finding(number: int, state: FigureState = "match", reason: str = "") -> FigureFinding:
    figure = Figure(f"{number}원", "amount", Decimal(number), Decimal(number), "원", place=Place(page=1))
    return FigureFinding(figure, state, reason)


@given(st.lists(st.sampled_from(STATES), max_size=30), st.integers(0, 900))
def test_every_finding_is_told_once_over_the_calls_with_its_number(states: list[FigureState], room: int) -> None:
    findings = in_order([finding(number, state) for number, state in enumerate(states)])
    place, told, calls = Where(("",)), [], 0
    while True:
        delivery = deliver(findings, place, room, finding_chars)
        told += delivery.items
        calls += 1
        assert not delivery.again and calls <= len(findings) + 1
        if delivery.complete:
            break
        cursor = to_cursor(TOOL, KEY, Where(("",), delivery.told, delivery.mark))
        place = from_cursor(cursor, TOOL, KEY, 1)
    assert told == list(enumerate(findings, start=1))


def test_mismatches_come_first_and_a_state_keeps_the_order_of_the_pages() -> None:
    states: list[FigureState] = ["match", "mismatch", "cannot_compare", "mismatch"]
    ordered = in_order([finding(number, state) for number, state in enumerate(states)])
    assert [one.figure.text for one in ordered] == ["1원", "3원", "2원", "0원"]


def test_findings_that_changed_since_are_all_told_again() -> None:
    before = deliver([finding(1), finding(2)], Where(), 0, finding_chars)
    assert (before.told, before.total, before.again) == (1, 2, False)
    place = Where((), before.told, before.mark)
    same = deliver([finding(1), finding(2)], place, 0, finding_chars)
    assert [number for number, _ in same.items] == [2] and same.complete
    other = deliver([finding(1, reason="page 2 was read since"), finding(2)], place, 0, finding_chars)
    assert other.again and [number for number, _ in other.items] == [1]


def test_a_request_without_figures_is_complete() -> None:
    assert deliver([], Where(), 100, finding_chars).complete


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"m": "a"},
        {"m": [1]},
        {"m": []},
        {"m": ["a", "b"]},
        {"m": ["a"], "n": -1},
        {"m": ["a"], "n": "1"},
        {"m": ["a"], "h": 1},
    ],
)
def test_a_forged_cursor_is_refused(state: dict[str, object]) -> None:
    with pytest.raises(WorkerError, match="cursor_invalid"):
        from_cursor(encode_cursor(TOOL, KEY, state), TOOL, KEY, 1)


def test_a_cursor_keeps_who_began_to_read_each_file() -> None:
    place = Where(("fast", "", "x" * 16), 7, "abc")
    assert from_cursor(to_cursor(TOOL, KEY, place), TOOL, KEY, 3) == place
    assert from_cursor(to_cursor(TOOL, KEY, Where(("fast",))), TOOL, KEY, 1) == Where(("fast",))
    assert from_cursor(" ", TOOL, KEY, 2) == Where(("", ""))


def test_a_row_tells_both_figures_with_their_places_and_leaves_out_what_is_not_known() -> None:
    place = Place(page=3, box_xyxy=(1.04, 2.0, 3.0, 4.0), line=7, source="ocr")
    ad = Figure(
        "5천만원", "amount", Decimal(50_000_000), Decimal(50_000_000), "원", label=("사망", "보험금"), place=place
    )
    cell = Place(sheet="보장", cell="B3", source="text")
    filed = Figure("1억원", "amount", Decimal(100_000_000), Decimal(100_000_000), "원", place=cell, doubt="rounded")
    row = figure_row(4, FigureFinding(ad, "mismatch", "The evidence says 1억원 for this.", filed, "filed.xlsx"))
    assert row == {
        "number": 4,
        "text": "5천만원",
        "kind": "amount",
        "value": "50000000",
        "unit": "원",
        "label": "사망 보험금",
        "page": 3,
        "box_xyxy": [1.0, 2.0, 3.0, 4.0],
        "source": "ocr",
        "state": "mismatch",
        "reason": "The evidence says 1억원 for this.",
        "evidence": {
            "file": "filed.xlsx",
            "text": "1억원",
            "kind": "amount",
            "value": "100000000",
            "unit": "원",
            "doubt": "rounded",
            "sheet": "보장",
            "cell": "B3",
            "source": "text",
        },
    }
