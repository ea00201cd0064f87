"""When the place of a tracked object is known: every frame of every gap, by the definition and by brute force."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.media.track_spans import (
    Unknown,
    known_spans,
    largest_step_s,
    tail_s,
    unknown_spans,
    without,
)
from sam2_mcp_worker.media.tracks_file import TrackedFrame, TrackedObject, Tracks


def tracks(*seen: str, step_s: float = 1.0, start_s: float = 0.0, duration_s: float = 0.0) -> Tracks:
    """One string for each object: `x` seen, `.` lost, one letter a frame."""
    frames = []
    for index, letters in enumerate(zip(*seen, strict=True)):
        objects = tuple(
            TrackedObject(number, (0, 0, 9, 9), 81, 0.9, "x")
            if letter == "x"
            else TrackedObject(number, None, 0, 0.0, None)
            for number, letter in enumerate(letters, 1)
        )
        frames.append(TrackedFrame(start_s + index * step_s, objects))
    end_s = duration_s or start_s + len(frames) * step_s
    return Tracks("0" * 64, 90, 60, end_s, start_s, end_s, "fast", len(seen), True, tuple(frames))


def test_an_object_that_is_seen_throughout_is_known_to_the_end_of_the_video() -> None:
    assert known_spans(tracks("xxxx"), 1) == [(0.0, 4.0)]
    assert unknown_spans(tracks("xxxx"), (0.0, 4.0)) == []


def test_beside_a_frame_in_which_it_is_lost_nothing_is_known() -> None:
    assert unknown_spans(tracks("xx.xx"), (0.0, 5.0)) == [Unknown(1, 1.0, 3.0)]
    assert unknown_spans(tracks("xxx.."), (0.0, 5.0)) == [Unknown(1, 2.0, 5.0)]
    assert unknown_spans(tracks("..x"), (0.0, 3.0)) == [Unknown(1, 0.0, 2.0)]


def test_the_end_is_not_known_while_the_tracking_goes_on() -> None:
    unfinished = replace(tracks("xxx"), complete=False)
    assert unknown_spans(unfinished, (0.0, 3.0)) == [Unknown(1, 2.0, 3.0)]


def test_each_object_counts() -> None:
    assert unknown_spans(tracks("xxx", "x.x"), (0.0, 3.0)) == [Unknown(2, 0.0, 2.0)]


def test_before_the_first_frame_and_far_behind_the_last_nothing_is_known() -> None:
    late = tracks("xxx", start_s=2.0, duration_s=9.0)
    assert unknown_spans(late, (0.0, 9.0)) == [Unknown(1, 0.0, 2.0), Unknown(1, 4.0, 9.0)]
    assert tail_s(late) == 5.0


def test_times_of_the_handle_leave_out_what_needs_no_cover() -> None:
    assert unknown_spans(tracks("xx.xx"), (0.0, 1.0)) == []
    assert unknown_spans(tracks("xx.xx"), (3.0, 4.0)) == []
    assert unknown_spans(tracks("xx.xx"), (0.5, 1.5)) == [Unknown(1, 1.0, 1.5)]


def test_a_box_that_lasts_over_the_whole_gap_answers_it_and_one_that_does_not_leaves_it() -> None:
    assert unknown_spans(tracks("xx.xx"), (0.0, 5.0), [(0.5, 3.5)]) == []
    assert unknown_spans(tracks("xx.xx"), (0.0, 5.0), [(1.5, 3.0)]) == [Unknown(1, 1.0, 3.0)]


def test_tracks_without_a_frame_know_nothing() -> None:
    empty = tracks("")
    assert unknown_spans(empty, (0.0, 2.0)) == [Unknown(1, 0.0, 2.0)]
    assert (largest_step_s(empty), tail_s(empty)) == (0.0, 0.0)


@given(st.text("x.", min_size=1, max_size=12), st.integers(0, 24))
def test_a_moment_is_known_exactly_when_the_frames_on_both_sides_see_the_object(seen: str, half: int) -> None:
    moment = half / 2
    one = tracks(seen)
    known = any(start <= moment <= end for start, end in known_spans(one, 1))
    before, after = int(moment), int(moment + 0.5)
    last = len(seen) - 1
    end = len(seen) if last > 0 else 0  # one frame tells no pace, so nothing of what comes after it
    expected = moment <= end and seen[min(before, last)] == seen[min(after, last)] == "x"
    assert known == expected


spans = st.tuples(st.integers(0, 20), st.integers(1, 9)).map(lambda pair: (float(pair[0]), float(sum(pair))))


@given(spans, st.lists(spans, max_size=5), st.integers(0, 58))
def test_what_is_left_of_a_span_lies_in_none_of_its_parts(
    whole: tuple[float, float], parts: list[tuple[float, float]], third: int
) -> None:
    moment = third / 2 + 0.25
    left = any(start < moment < end for start, end in without(whole, parts))
    inside = any(start < moment < end for start, end in parts)
    assert left == (whole[0] < moment < whole[1] and not inside)
