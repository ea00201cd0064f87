"""Deadlines: they shrink, never grow, and every call gets one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.deadline import Deadline, call_budget_s, current_deadline, deadline_passed, deadline_scope
from sam2_mcp_worker.errors import WorkerError


class HandClock:
    """A clock that moves when told to."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_time_left_counts_down_and_stops_at_zero() -> None:
    clock = HandClock()
    deadline = Deadline.after(5, clock)
    assert deadline.remaining_s() == 5
    clock.now_s += 4
    assert deadline.remaining_s() == 1
    assert not deadline.expired
    clock.now_s += 4
    assert deadline.remaining_s() == 0
    assert deadline.expired


def test_check_passes_in_time_and_names_the_work_after_it() -> None:
    clock = HandClock()
    deadline = Deadline.after(1, clock)
    deadline.check("page 3")
    clock.now_s += 1
    with pytest.raises(WorkerError, match="page 3") as caught:
        deadline.check("page 3")
    assert caught.value.code == "deadline"


def test_whether_the_running_call_is_over_can_be_asked_anywhere() -> None:
    assert not deadline_passed()
    with deadline_scope(Deadline.after(5)):
        assert not deadline_passed()
    with deadline_scope(Deadline.after(-1)):
        assert deadline_passed()


def test_the_current_deadline_is_the_innermost_and_ends_with_its_block() -> None:
    with pytest.raises(LookupError):
        current_deadline()
    with deadline_scope(Deadline.after(10)) as outer:
        with deadline_scope(Deadline.after(5)) as inner:
            assert current_deadline() is inner
        assert current_deadline() is outer
    with pytest.raises(LookupError):
        current_deadline()


@pytest.mark.parametrize(
    ("header", "expected_s"),
    [
        (None, 26.0),  # no bridge in front: the whole limit less the margin
        ("27000", 26.0),
        ("99999999", 26.0),  # a longer wish is cut to the limit
        ("10000", 9.0),
        ("1000", 0.5),  # a short budget gives at most half of itself to the margin
        ("0", 0.0),
        ("-5", 0.0),
        ("soon", 26.0),
        ("", 26.0),
    ],
)
def test_the_budget_comes_from_the_header_within_the_limit(header: str | None, expected_s: float) -> None:
    assert call_budget_s(header, limit_s=27, margin_s=1) == pytest.approx(expected_s)


@given(st.one_of(st.none(), st.text(max_size=30), st.integers().map(str)))
def test_no_header_text_ever_gives_more_than_the_limit(header: str | None) -> None:
    assert 0 <= call_budget_s(header, limit_s=27, margin_s=1) <= 27
