"""What is covered in each frame: boxes in their time, tracked objects wholly, between tracked frames too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.shape_tracks import shape_tracks, written
from tests.fakes.videos import SHAPES_FPS, SHAPES_SIZE, shape_mask

from sam2_mcp_worker.media.redact_frames import RedactPainter

FRAMES = 144
SHA256 = "0" * 64


def painter(boxes: list[Any] | None = None, tracks: list[Any] | None = None) -> RedactPainter:
    params = {"method": "fill", "size_px": list(SHAPES_SIZE), "boxes": boxes or [], "tracks": tracks or []}
    return RedactPainter(params)


def covered(one: RedactPainter, time_s: float) -> np.ndarray:
    width, height = SHAPES_SIZE
    rgb = np.full((height, width, 3), 200, np.uint8)
    return np.asarray((one.paint(rgb, 0, time_s) == 0).all(axis=2))


def following(
    tmp_path: Path, indices: list[int], span: tuple[float, float] = (0.0, 99.0), **more: Any
) -> RedactPainter:
    tracks = written(tmp_path / "t.json", shape_tracks(SHA256, indices, frames=FRAMES, **more))
    return painter(tracks=[{"path": str(tracks), "start_s": span[0], "end_s": span[1]}])


def test_a_box_covers_the_frames_of_its_time_ends_included() -> None:
    one = painter([{"box": [10, 20, 40, 60], "start_s": 1.0, "end_s": 2.0}])
    inside = np.zeros(SHAPES_SIZE[::-1], bool)
    inside[20:60, 10:40] = True
    for time_s in (1.0, 1.5, 2.0):
        assert np.array_equal(covered(one, time_s), inside)
    for time_s in (0.0, 0.99, 2.01):
        assert not covered(one, time_s).any()


def test_a_box_over_the_edge_is_cut_there() -> None:
    one = painter([{"box": [300, 170, 400, 400], "start_s": 0, "end_s": 9}])
    assert covered(one, 1).sum() == 20 * 10


def test_in_a_tracked_frame_the_mask_is_covered_and_little_more(tmp_path: Path) -> None:
    one = following(tmp_path, [0, 10, 20])
    seen, mask = covered(one, 10 / SHAPES_FPS), shape_mask(10, "disc")
    assert seen[mask].all()
    assert mask.sum() < seen.sum() < 2 * mask.sum()


@given(step=st.integers(1, 36), index=st.integers(0, FRAMES - 1))
def test_between_tracked_frames_no_pixel_of_the_object_shows(
    tmp_path_factory: pytest.TempPathFactory, step: int, index: int
) -> None:
    """Up to 1.5 s apart, on a curved way."""
    indices = sorted({*range(0, FRAMES, step), FRAMES - 1})
    one = following(tmp_path_factory.mktemp("tracks"), indices)
    assert covered(one, index / SHAPES_FPS)[shape_mask(index, "disc")].all()


def test_behind_the_last_tracked_frame_the_object_may_go_on_as_before(tmp_path: Path) -> None:
    one = following(tmp_path, list(range(0, 121, 12)))
    for index in range(120, 132):
        assert covered(one, index / SHAPES_FPS)[shape_mask(index, "disc")].all()


def test_before_the_first_tracked_frame_nothing_is_covered(tmp_path: Path) -> None:
    assert not covered(following(tmp_path, [24, 36]), 0.5).any()


def test_beside_a_frame_in_which_it_is_lost_the_known_mask_stays_covered(tmp_path: Path) -> None:
    one = following(tmp_path, [0, 12, 24, 36, 48], lost=[24])
    assert covered(one, 13 / SHAPES_FPS)[shape_mask(13, "disc")].all()
    assert covered(one, 35 / SHAPES_FPS)[shape_mask(35, "disc")].all()
    assert not covered(one, 24 / SHAPES_FPS).any()


def test_where_both_frames_have_lost_it_nothing_is_covered(tmp_path: Path) -> None:
    one = following(tmp_path, [0, 12, 24], lost=[0, 12])
    assert not covered(one, 6 / SHAPES_FPS).any()
    assert covered(one, 18 / SHAPES_FPS).any()


def test_the_times_of_a_handle_bound_it_and_a_step_that_was_begun_is_finished(tmp_path: Path) -> None:
    one = following(tmp_path, [0, 12, 24, 36], span=(0.4, 1.0))
    assert not covered(one, 0.3).any()
    assert covered(one, 0.6).any()
    assert covered(one, 1.4).any()
    assert not covered(one, 1.5).any()


def test_all_objects_of_the_tracks_are_covered(tmp_path: Path) -> None:
    one = following(tmp_path, [0, 12], names=("disc", "square"))
    seen = covered(one, 6 / SHAPES_FPS)
    assert seen[shape_mask(6, "disc")].all()
    assert seen[shape_mask(6, "square")].all()
