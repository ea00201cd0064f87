"""Ranges of a video and their segments: nothing is left out, nothing comes twice."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.video import VideoFacts
from sam2_mcp_worker.media.video_scan import ScanPlan
from sam2_mcp_worker.pipelines.video_range import (
    MAX_GRID_FRAMES,
    MAX_SEGMENT_FRAMES,
    plan_range,
    range_notes,
    segment_numbers,
    segment_of,
)

FACTS = VideoFacts(320, 180, 6.0, 144, 24.0, 0, 0.0, "h264", "mp4", None, False, None)


@given(
    st.floats(0, 100),
    st.floats(0, 500),
    st.floats(0.04, 60),
)
def test_segments_follow_each_other_and_hold_every_time_of_the_grid(
    start_s: float, length_s: float, step_s: float
) -> None:
    asked = ScanPlan(start_s, start_s + length_s, step_s, True)
    segments = [segment_of(asked, number) for number in segment_numbers(asked)]
    assert segments[0].start_s == start_s
    assert segments[-1].end_s == asked.end_s
    assert sum(segment.count for segment in segments) == asked.grid_count
    for before, after in itertools.pairwise(segments):
        assert before.end_s == after.start_s
        assert before.first + before.count == after.first
    assert all(1 <= segment.count <= MAX_SEGMENT_FRAMES for segment in segments)


def test_at_the_default_interval_a_segment_has_eight_seconds() -> None:
    asked = plan_range(0.0, None, 0.5, cuts=True, duration_s=60.0)
    assert len(segment_numbers(asked)) == 8
    assert segment_of(asked, 2).start_s == 8.0
    assert segment_of(asked, 8).end_s == 60.0


def test_a_range_ends_with_the_video() -> None:
    assert plan_range(1.0, 99.0, 0.5, cuts=True, duration_s=6.0).end_s == 6.0
    assert range_notes(FACTS, 99.0) == ["the video ends at 6.000 s, before end_s"]
    assert range_notes(FACTS, None) == []


@pytest.mark.parametrize(("start_s", "end_s"), [(7.0, None), (3.0, 2.0)])
def test_times_outside_the_video_are_refused(start_s: float, end_s: float | None) -> None:
    with pytest.raises(WorkerError, match="time_outside"):
        plan_range(start_s, end_s, 0.5, cuts=True, duration_s=6.0)


def test_more_frames_than_one_request_holds_are_refused_with_an_interval_that_fits() -> None:
    with pytest.raises(WorkerError, match="too_many_frames") as refused:
        plan_range(0.0, None, 0.04, cuts=True, duration_s=14_400.0)
    interval_s = float(refused.value.next_step.split(" of at least ")[1].split(",")[0])
    assert plan_range(0.0, None, interval_s, cuts=True, duration_s=14_400.0).grid_count <= MAX_GRID_FRAMES
