"""When something was on screen, told from samples: never more than is known, never less, whatever the samples are."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.checks.exposure import (
    BRIDGED_S,
    Check,
    Exposure,
    Exposures,
    Moment,
    Stretch,
    exposures_of,
    minimum_height,
    minimum_height_share,
    minimum_time,
    overlap,
    spoken_while_shown,
)

WHOLE = Stretch(0.0, 6.0)


def grid(shown: str, interval_s: float = 0.5) -> list[Moment]:
    """One sample a letter: x seen, . not seen, ? unknown."""
    told = {"x": True, ".": False, "?": None}
    return [Moment(index * interval_s, told[letter]) for index, letter in enumerate(shown)]


def test_a_showing_is_sure_between_samples_that_show_it_and_possible_up_to_those_that_do_not() -> None:
    found = exposures_of(grid("..xxx......."), WHOLE)
    assert found.shown == (Exposure(0.5, 1.0, 2.0, 2.5, (Stretch(1.0, 2.0),)),)
    assert (found.surely_s, found.at_most_s, found.blind_s) == (1.0, 2.0, 0.5)
    assert (found.longest_surely_s, found.longest_possible_s) == (1.0, 2.0)


def test_bounds_are_exact_between_neighbouring_frames() -> None:
    moments = [
        Moment(0, False),
        Moment(0.96, False, 1.0),
        Moment(1.0, True),
        Moment(1.96, True, 2.0),
        Moment(2.0, False),
    ]
    found = exposures_of(moments, Stretch(0, 2.5))
    assert found.shown == (Exposure(1.0, 1.0, 2.0, 2.0, (Stretch(1.0, 2.0),)),)


def test_the_edges_of_the_range_are_told_as_such_and_the_frame_on_screen_at_its_beginning_counts_from_there() -> None:
    moments = [Moment(9.9, True), Moment(10.5, True), Moment(11.5, True, 12.5)]
    found = exposures_of(moments, Stretch(10.0, 12.0))
    assert found.shown == (Exposure(10.0, 10.0, 12.0, 12.0, (Stretch(10.0, 12.0),), True, True),)


def test_unknown_samples_keep_a_showing_open_and_are_possible_where_nothing_was_seen() -> None:
    found = exposures_of(grid(".x??x..??..."), WHOLE)
    assert found.shown == (Exposure(0.0, 0.5, 2.0, 2.5, (Stretch(0.5, 0.5), Stretch(2.0, 2.0))),)
    assert found.possible == (Stretch(3.0, 4.5),)


def test_between_samples_far_apart_it_is_possible_and_not_sure() -> None:
    found = exposures_of([Moment(0, True, 0.04), Moment(60, True, 60.04), Moment(120, True, 121)], Stretch(0, 121))
    sure = Stretch(0, 0.04), Stretch(60, 60.04), Stretch(120, 121)
    assert found.shown == (Exposure(0, 0, 121, 121, sure, True, True),)
    assert (round(found.surely_s, 6), found.at_most_s, found.longest_surely_s) == (1.08, 121, 1.0)
    assert minimum_time(found, 1.5).verdict == "cannot_tell"
    assert spoken_while_shown(found, Stretch(10, 50)) == "cannot_tell"


@pytest.mark.parametrize(("gap_s", "sure_s"), [(BRIDGED_S, BRIDGED_S + 0.08), (BRIDGED_S + 0.01, 0.04)])
def test_a_gap_is_bridged_up_to_a_second_measured_between_frames(gap_s: float, sure_s: float) -> None:
    moments = [Moment(2, True, 2.04), Moment(2.04 + gap_s, True, 2.08 + gap_s), Moment(2.08 + gap_s, False)]
    assert exposures_of(moments, WHOLE).longest_surely_s == pytest.approx(sure_s)


def test_a_frame_that_stands_for_a_minute_is_sure_for_that_minute() -> None:
    found = exposures_of([Moment(0, True, 60.0), Moment(60.0, False)], Stretch(0, 61))
    assert found.longest_surely_s == 60.0


def test_a_stretch_that_failed_parts_what_is_sure_and_is_possible_between_samples_that_lack_it() -> None:
    found = exposures_of(grid("xxx...", 1.0), WHOLE, [Stretch(3.2, 3.8), Stretch(0.5, 0.7)])
    assert found.shown == (Exposure(0.0, 0.0, 2.0, 3.0, (Stretch(0.0, 0.0), Stretch(1.0, 2.0)), True),)
    assert found.possible == (Stretch(3.0, 4.0),)


def test_a_showing_may_have_fallen_between_samples_that_lack_it_also_at_the_edges() -> None:
    assert exposures_of([Moment(4.0, False)], WHOLE).blind_s == 4.0
    assert exposures_of([Moment(1.0, False)], WHOLE).blind_s == 5.0
    beside_unknown = exposures_of(grid(".?.", 1.0), Stretch(0.0, 2.0))
    assert (beside_unknown.blind_s, beside_unknown.longest_possible_s) == (0.0, 2.0)


def test_a_showing_of_exactly_the_minimum_meets_it() -> None:
    assert minimum_time(exposures_of(grid("..xxx......."), WHOLE), 1.0).verdict == "met"


def test_what_was_not_reached_at_the_end_of_the_range_is_possible() -> None:
    found = exposures_of(grid("x.....", 1.0), WHOLE, [Stretch(5.5, 6.0)])
    assert found.possible == (Stretch(5.0, 6.0),)
    assert minimum_time(found, 1.0).verdict == "cannot_tell"


def test_without_samples_everything_is_possible() -> None:
    found = exposures_of([], WHOLE)
    assert found == Exposures((), (WHOLE,), 0.0)
    assert exposures_of([], Stretch(1.0, 1.0)) == Exposures()


@dataclass(frozen=True)
class Film:
    """Frames of 0.1 s with what they show, and the samples that were taken of them."""

    frames: list[bool]
    moments: list[Moment]
    failed: list[Stretch]


@st.composite
def films(draw: st.DrawFn) -> Film:
    """Between two samples that are the same nothing changes, and between two others it changes once: what is claimed
    holds under this. Inside failed stretches anything may happen.
    """
    picks = draw(st.lists(st.integers(0, 59), min_size=1, max_size=12, unique=True).map(sorted))
    values = draw(st.lists(st.booleans(), min_size=len(picks), max_size=len(picks)))
    frames: list[bool] = [values[0]] * (picks[0] + 1)
    failed: list[Stretch] = []
    for before, pick, value in zip(picks, picks[1:], values[1:], strict=False):
        if pick - before > 3 and draw(st.booleans()):
            frames += draw(st.lists(st.booleans(), min_size=pick - before - 1, max_size=pick - before - 1))
            failed.append(Stretch((before + 1) / 10, pick / 10))
        else:
            change = draw(st.integers(before + 1, pick))
            frames += [frames[-1]] * (change - before - 1) + [value] * (pick - change)
        frames.append(value)
    frames += [values[-1]] * draw(st.integers(0, 60 - len(frames)))
    frames += [False] * (60 - len(frames)) if values[-1] else [values[-1]] * (60 - len(frames))
    moments = []
    for pick, value in zip(picks, values, strict=True):
        known = draw(st.sampled_from([True, True, True, False]))
        until_s = (pick + 1) / 10 if draw(st.booleans()) else None
        moments.append(Moment(pick / 10, value if known else None, until_s))
    return Film(frames, moments, failed)


def covered(time_s: float, parts: list[tuple[float, float]]) -> bool:
    return any(start_s - 1e-6 <= time_s <= end_s + 1e-6 for start_s, end_s in parts)


@given(films())
def test_what_is_sure_was_shown_and_what_was_shown_is_possible(film: Film) -> None:
    found = exposures_of(film.moments, WHOLE, film.failed)
    sure = [(part.start_s, part.end_s) for exposure in found.shown for part in exposure.surely]
    most = [(exposure.earliest_s, exposure.latest_s) for exposure in found.shown]
    most += [(stretch.start_s, stretch.end_s) for stretch in found.possible]
    first_known = film.moments[0].time_s
    for number, shows in enumerate(film.frames):
        middle_s = number / 10 + 0.05
        if any(start_s < middle_s < end_s for start_s, end_s in sure):
            assert shows
        if shows and (middle_s > first_known or film.moments[0].seen is not False):
            assert covered(middle_s, most)


@given(films())
def test_showings_are_in_order_apart_and_within_their_bounds(film: Film) -> None:
    found = exposures_of(film.moments, WHOLE, film.failed)
    end_s = 0.0
    for exposure in found.shown:
        assert end_s <= exposure.earliest_s <= exposure.first_s <= exposure.last_s <= exposure.latest_s <= WHOLE.end_s
        assert exposure.first_s == exposure.surely[0].start_s and exposure.last_s == exposure.surely[-1].end_s
        for one, two in zip(exposure.surely, exposure.surely[1:], strict=False):
            assert one.end_s <= two.start_s
        end_s = exposure.latest_s
    assert found.surely_s <= found.at_most_s + 1e-6
    assert found.longest_surely_s <= found.longest_possible_s + 1e-6
    assert exposures_of(film.moments, WHOLE, film.failed[::-1]) == found


@given(films(), st.floats(0.05, 7))
def test_a_minimum_is_met_only_by_what_is_sure_and_failed_only_by_what_is_impossible(
    film: Film, minimum_s: float
) -> None:
    found = exposures_of(film.moments, WHOLE, film.failed)
    check = minimum_time(found, minimum_s)
    if check.verdict == "met":
        assert found.longest_surely_s >= minimum_s - 1e-5
    if check.verdict == "not_met":
        assert found.longest_possible_s < minimum_s
    assert (check.verdict == "cannot_tell") == bool(check.reason)


def test_a_minimum_time_below_the_sampling_step_cannot_be_failed_since_more_may_lie_between_samples() -> None:
    found = exposures_of(
        [Moment(0, True, 0.04), Moment(0.04, False), Moment(1, False), Moment(2, False)], Stretch(0, 2)
    )
    assert minimum_time(found, 0.5).verdict == "cannot_tell"
    assert minimum_time(found, 1.5) == Check("min_exposure_s", 1.5, 0.04, "not_met", "", 1.0)


@pytest.mark.parametrize(("height_px", "verdict"), [(12.0, "met"), (11.9, "cannot_tell"), (11.0, "not_met")])
def test_a_height_is_too_small_only_beyond_what_a_measurement_may_be_off(height_px: float, verdict: str) -> None:
    assert minimum_height(height_px, 12.0).verdict == verdict
    share = minimum_height_share(height_px, 600, 0.02)
    assert share.verdict == verdict and share.measured == height_px / 600


@pytest.mark.parametrize(
    ("spoken", "verdict"),
    [(Stretch(1.0, 2.0), "met"), (Stretch(1.5, 3.0), "cannot_tell"), (Stretch(3.0, 5.0), "not_met")],
)
def test_a_notice_is_spoken_while_shown_as_far_as_that_is_sure(spoken: Stretch, verdict: str) -> None:
    shown = exposures_of(grid("..xxx......."), WHOLE)
    assert spoken_while_shown(shown, spoken) == verdict


def test_the_time_that_speech_and_screen_share_has_a_sure_and_a_possible_part() -> None:
    assert overlap(exposures_of(grid(".xxx.??."), Stretch(0, 4)), Stretch(1.0, 3.0)) == (0.5, 2.0)
