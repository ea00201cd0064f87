"""What is passed over while decoding was never asked for."""

from __future__ import annotations

import math
from bisect import bisect_right
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.videos import even_times, index_clip, read_index

from sam2_mcp_worker.media.frame_skip import GridSkip
from sam2_mcp_worker.media.frame_walk import FrameWalk
from sam2_mcp_worker.media.video_pixels import Turn, to_rgb
from sam2_mcp_worker.media.video_reader import SAME_FRAME_S, VideoReader


@given(
    steps_ms=st.lists(st.integers(1, 90), min_size=1, max_size=60),
    reorder=st.lists(st.integers(0, 6), min_size=61, max_size=61),
    start_ms=st.integers(0, 500),
    interval_ms=st.integers(1, 400),
)
def test_frames_on_screen_and_those_that_end_them_are_decoded_in_whatever_order_they_are_stored(
    steps_ms: list[int], reorder: list[int], start_ms: int, interval_ms: int
) -> None:
    times_s = [float(ms) / 1000 for ms in np.cumsum([0, *steps_ms])]
    stored = sorted(range(len(times_s)), key=lambda index: (index + reorder[index], index))
    skip = GridSkip(start_ms / 1000, interval_ms / 1000, SAME_FRAME_S)
    decoded = {index for index in stored if not skip.see(times_s[index])}
    number = 0
    while (asked_s := (start_ms + number * interval_ms) / 1000) <= times_s[-1] + 0.5:
        shown = max(0, bisect_right(times_s, asked_s + SAME_FRAME_S / 2) - 1)
        assert shown in decoded
        assert shown + 1 in decoded or shown + 1 == len(times_s)
        number += 1


@pytest.mark.parametrize("options", [{"x264-params": "b-pyramid=none"}, {}])
def test_a_grid_needs_about_half_of_a_video_with_reordered_frames(tmp_path: Path, options: dict[str, str]) -> None:
    clip = index_clip(tmp_path / "a.mp4", frames=120, times=even_times(120, 30), gop=60, b_frames=3, options=options)
    with VideoReader(clip.path) as reader:
        reader.skip = GridSkip(0.0, 0.5, SAME_FRAME_S)
        frames = list(reader.frames())
        numbers = [read_index(to_rgb(one.frame, clip.size_px, Turn.of(one.frame))) for one in frames]
        # Their times are those of what they show, and those of the grid are among them.
        assert [
            clip.times_s.index(next(t for t in clip.times_s if abs(t - one.time_s) < 1e-5)) for one in frames
        ] == numbers
        assert {15 * k for k in range(8)} <= set(numbers)
        assert len(numbers) < 90
        assert not any(one.damaged or one.after_gap for one in frames)
        walk = FrameWalk(reader)
        for k in range(8):
            for _ in walk.reach(0.5 * k + SAME_FRAME_S / 2):
                pass
            assert walk.now is not None
            assert math.isclose(walk.now.time_s, 0.5 * k, abs_tol=1e-5)
            assert math.isclose(walk.until_s, 0.5 * k + 1 / 30, abs_tol=1e-5)
