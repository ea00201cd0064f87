"""Which frames are tracked: evenly, within the range, and never more than fit."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.pipelines.frame_plan import (
    TIME_TOLERANCE_S,
    Pace,
    Plan,
    between,
    choose_even,
    choose_spaced,
    frames_between,
)

FPS = 24


def steady(count: int) -> list[float]:
    return [index / FPS for index in range(count)]


@st.composite
def any_times(draw: st.DrawFn, most: int = 120) -> list[float]:
    """Rising times with any gaps, as in a video of variable frame rate."""
    gaps = draw(st.lists(st.floats(0.001, 2), max_size=most - 1))
    return list(itertools.accumulate(gaps, initial=draw(st.floats(0, 1))))


@given(any_times(), st.floats(-1, 100), st.floats(-1, 100))
def test_the_range_holds_the_frame_on_screen_at_its_start_and_nothing_beyond_its_end(
    times_s: list[float], start_s: float, end_s: float
) -> None:
    frames = frames_between(times_s, start_s, end_s)
    assert len(frames) >= 1
    assert 0 <= frames[0] <= frames[-1] < len(times_s)
    if start_s >= times_s[0]:
        assert times_s[frames[0]] <= start_s + TIME_TOLERANCE_S
    if end_s >= start_s >= times_s[0]:
        assert times_s[frames[-1]] <= end_s + TIME_TOLERANCE_S
    if frames[-1] + 1 < len(times_s):
        assert times_s[frames[-1] + 1] > min(start_s, end_s) + TIME_TOLERANCE_S


def test_a_time_as_a_result_states_it_finds_its_own_frame() -> None:
    times_s = steady(200)
    for index, time_s in enumerate(times_s):
        assert frames_between(times_s, round(time_s, 3), round(time_s, 3)) == range(index, index + 1)


@given(any_times(most=20), st.floats(min_value=0, exclude_min=True))
def test_any_spacing_that_is_more_than_nothing_gives_frames(times_s: list[float], every_s: float) -> None:
    chosen = choose_spaced(times_s, range(len(times_s)), every_s)
    assert chosen[0] == 0
    assert chosen == sorted(set(chosen))


@given(any_times(), st.integers(-2, 130))
def test_an_even_choice_is_rising_and_keeps_both_ends(times_s: list[float], count: int) -> None:
    candidates = range(len(times_s))
    chosen = choose_even(times_s, candidates, count)
    assert len(chosen) == max(0, min(count, len(candidates)))
    assert all(left < right for left, right in itertools.pairwise(chosen))
    if count >= 1:
        assert chosen[0] == 0
    if count >= 2:
        assert chosen[-1] == len(times_s) - 1


@given(st.integers(1, 400), st.integers(2, 400))
def test_at_a_steady_frame_rate_no_gap_is_more_than_a_frame_longer_than_another(frames: int, count: int) -> None:
    chosen = choose_even(steady(frames), range(frames), count)
    gaps = [right - left for left, right in itertools.pairwise(chosen)]
    assert not gaps or max(gaps) - min(gaps) <= 1


@given(any_times(), st.floats(0.001, 5))
def test_a_given_spacing_takes_the_frame_on_screen_at_each_of_its_times(times_s: list[float], every_s: float) -> None:
    candidates = range(len(times_s))
    chosen = choose_spaced(times_s, candidates, every_s)
    assert all(left < right for left, right in itertools.pairwise(chosen))
    number, expected = 0, []
    while (wanted_s := times_s[0] + number * every_s) <= times_s[-1] + TIME_TOLERANCE_S:
        expected.append(frames_between(times_s, wanted_s, wanted_s)[0])
        number += 1
    assert set(chosen) == set(expected)


def test_half_a_second_at_24_frames_is_every_twelfth_frame() -> None:
    assert choose_spaced(steady(60), range(60), 0.5) == [0, 12, 24, 36, 48]
    assert choose_spaced(steady(60), range(60), 0.001) == list(range(60))
    assert choose_spaced(steady(60), range(60), 100) == [0]


@given(any_times(), st.data())
def test_between_lies_strictly_between(times_s: list[float], data: st.DataObject) -> None:
    taken = sorted(data.draw(st.sets(st.integers(0, len(times_s) - 1))))
    free = [index for index in range(len(times_s)) if index not in taken]
    found = between(times_s, free, taken)
    assert not set(found) & set(taken)
    gaps = [(left, right) for left, right in itertools.pairwise(taken) if right - left > 1]
    assert len(found) == len(gaps)
    assert all(left < middle < right for middle, (left, right) in zip(found, gaps, strict=True))


def test_the_middle_of_a_gap_is_its_middle_in_time() -> None:
    assert between([0.0, 0.1, 0.2, 0.9, 1.0], [1, 2, 3], [0, 4]) == [2]


class Machine:
    """A machine whose frames take the given times; what is left over repeats the last."""

    def __init__(self, seconds: list[float]) -> None:
        self._seconds = seconds
        self.now_s = 0.0
        self.overrun_s = 0.0

    def track(self, number: int, expected_s: float) -> float:
        seconds = self._seconds[min(number, len(self._seconds) - 1)]
        self.now_s += seconds
        self.overrun_s = max(0.0, seconds - expected_s)
        return seconds


def run(plan: Plan, pace: Pace, machine: Machine, budget_s: float, most: int = 600) -> list[int]:
    """All frames that are tracked, the first one, on which the session begins, included."""
    tracked = [plan.current]
    pace.add(machine.track(0, pace.frame_s))
    while (index := plan.take(pace.fitting(budget_s - machine.now_s, most - len(tracked)))) is not None:
        tracked.append(index)
        pace.add(machine.track(len(tracked) - 1, pace.frame_s))
    return tracked


@given(any_times(), st.lists(st.floats(0.01, 20), min_size=1, max_size=40), st.floats(1, 30), st.booleans())
def test_no_machine_makes_the_budget_break(
    times_s: list[float], seconds: list[float], budget_s: float, adaptive: bool
) -> None:
    """Only what a step takes beyond what the steps before let expect can lie behind the budget."""
    plan = Plan(times_s, range(1, len(times_s)), adaptive, current=0)
    machine = Machine(seconds)
    tracked = run(plan, Pace(1.5, 6), machine, budget_s)
    assert all(left < right for left, right in itertools.pairwise(tracked))
    assert machine.now_s <= budget_s + machine.overrun_s + 1e-9
    assert tracked[0] == 0  # whatever the machine, the first frame is tracked
    if adaptive and not plan.ahead and len(times_s) > 1:
        assert tracked[-1] == len(times_s) - 1  # the whole range was followed, however thinly
    assert not set(tracked) & set(plan.ahead)
    if not adaptive:
        assert [*tracked, *plan.ahead] == list(range(len(times_s)))


@given(st.floats(0.05, 3), st.floats(1, 2.5), st.integers(1, 7), st.integers(2, 2000))
def test_on_a_steady_machine_the_whole_range_is_followed_evenly(
    step_s: float, growth: float, full_after: int, frames: int
) -> None:
    """Also while steps become slower because the memory fills, which the plan expects."""
    budget_s = 24.0
    seconds = [step_s / growth, *(step_s / growth * (1 + (growth - 1) * min(1, k / full_after)) for k in range(400))]
    plan = Plan(steady(frames), range(1, frames), adaptive=True, current=0)
    machine = Machine(seconds)
    tracked = run(plan, Pace(growth, full_after), machine, budget_s)
    assert machine.now_s <= budget_s + 1e-9
    assert tracked[0] == 0
    assert tracked[-1] == frames - 1
    gaps = [right - left for left, right in itertools.pairwise(tracked)][1:]
    assert not gaps or max(gaps) <= 2 * min(gaps) + 2
    assert len(tracked) >= min(frames, int(budget_s / step_s * 0.7))


def test_a_machine_that_becomes_slower_drops_frames_evenly_from_what_remains() -> None:
    plan = Plan(steady(241), range(1, 241), adaptive=True, current=0)
    machine = Machine([0.5] * 10 + [1.0] * 100)
    tracked = run(plan, Pace(), machine, 20.0)
    assert machine.now_s <= 20.0
    assert tracked[-1] == 240
    late = [right - left for left, right in itertools.pairwise(tracked[14:])]
    assert max(late) <= 2 * min(late) + 1


def test_a_machine_that_stops_leaves_the_rest_to_the_cursor() -> None:
    plan = Plan(steady(100), range(1, 100), adaptive=True, current=0)
    tracked = run(plan, Pace(), Machine([1.0, 1.0, 30.0]), 20.0)
    assert len(tracked) == 3
    assert plan.ahead[-1] == 99


def test_two_frames_are_the_first_and_the_last() -> None:
    assert run(Plan(steady(100), range(1, 100), adaptive=True, current=0), Pace(), Machine([10.0]), 20.0) == [0, 99]


@pytest.mark.parametrize("adaptive", [True, False])
def test_a_single_frame_is_a_whole_plan(adaptive: bool) -> None:
    plan = Plan([0.0], range(0), adaptive, current=0)
    assert run(plan, Pace(), Machine([0.5]), 20.0) == [0]
    assert plan.ahead == []


def test_a_session_that_goes_on_chooses_from_what_comes_after_its_last_frame() -> None:
    plan = Plan(steady(100), range(51, 100), adaptive=True, current=50)
    tracked = run(plan, Pace(), Machine([1.0]), 10.0)
    assert len(tracked) == 10
    assert tracked[1] > 51
    assert tracked[-1] == 99


def test_only_a_plan_that_stands_is_worth_reading_ahead() -> None:
    plan = Plan(steady(100), range(1, 100), adaptive=True, current=0)
    assert plan.certain == []
    plan.take(19)
    assert plan.certain == []
    plan.take(18)
    assert plan.certain == plan.ahead
    assert len(plan.ahead) == 17
    plan.take(3)
    assert len(plan.ahead) == 2
    assert set(plan.ahead) < set(plan.certain)
    assert Plan(steady(10), range(1, 10), adaptive=False, current=0).certain == list(range(1, 10))


def test_nothing_is_known_before_the_first_frame() -> None:
    pace = Pace(2.0, 6)
    assert pace.frame_s == 0.0
    assert str(pace) == "0 steps, begun in 0.00 s"
    assert pace.fitting(10.0, 600) == 600
    pace.add(1.0)
    assert pace.frame_s == 2.0
    assert pace.fitting(10.0, 600) == 5
    pace.add(0.5)
    assert pace.frame_s == 1.0
    for _ in range(6):
        pace.add(1.0)
    assert pace.frame_s == 1.0
    assert str(pace) == "7 steps, begun in 1.00 s, steps 0.50 s at first and 1.00 s at last"
