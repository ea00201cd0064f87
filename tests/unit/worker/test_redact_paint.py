"""Covering pixels: what is under an area is gone, what is beside it stays, whatever the shapes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.masks import save_mask
from sam2_mcp_worker.media.redact_paint import FILL_RGB, Area, Method, clipped, grown, load_area, paint

METHODS: tuple[Method, ...] = ("fill", "pixelate", "blur")
corners = st.tuples(*[st.integers(-20, 80)] * 2, *[st.integers(1, 60)] * 2)


def noise(width: int = 60, height: int = 40, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(1, 256, (height, width, 3), np.uint8)


@given(st.lists(corners, max_size=4), st.sampled_from(METHODS), st.integers(0, 99))
def test_nothing_outside_of_the_areas_changes_and_filled_areas_have_one_colour(
    corners: list[tuple[int, int, int, int]], method: Method, seed: int
) -> None:
    before = noise(seed=seed)
    rgb, outside = before.copy(), np.ones(before.shape[:2], bool)
    areas = [area for x, y, w, h in corners if (area := clipped(Area((x, y, x + w, y + h)), 60, 40)) is not None]
    paint(rgb, areas, method)
    for area in areas:
        x0, y0, x1, y1 = area.box_xyxy_px
        outside[y0:y1, x0:x1] = False
    assert np.array_equal(rgb[outside], before[outside])
    if method == "fill":
        assert (rgb[~outside] == FILL_RGB).all()


@given(st.integers(1, 60), st.integers(1, 40), st.sampled_from(["pixelate", "blur"]))
def test_fine_detail_is_gone_from_pixelated_and_blurred_areas(width: int, height: int, method: Method) -> None:
    rgb = np.zeros((40, 60, 3), np.uint8)
    rgb[:, ::2] = 255
    paint(rgb, [Area((0, 0, width, height))], method)
    inside = rgb[:height, :width].astype(int)
    if min(width, height) >= 8:
        assert np.abs(np.diff(inside, axis=1)).max(initial=0) < 100


def test_only_the_pixels_of_a_mask_are_covered() -> None:
    before, mask = noise(), np.zeros((10, 20), bool)
    mask[2:8, 5:15] = True
    rgb = before.copy()
    paint(rgb, [Area((30, 20, 50, 30), mask)], "fill")
    changed = (rgb != before).any(axis=2)
    assert np.array_equal(changed[20:30, 30:50], mask)
    assert changed.sum() == mask.sum()


def test_a_mask_grows_on_all_sides_beyond_its_box() -> None:
    mask = np.zeros((3, 3), bool)
    mask[1, 1] = True
    wide = grown(mask, 2)
    assert wide.shape == (7, 7)
    assert wide[3].tolist() == [False, True, True, True, True, True, False]
    assert wide[:, 3].tolist() == [False, True, True, True, True, True, False]
    assert np.array_equal(grown(mask, 0), mask)


def test_a_grown_mask_at_the_edge_is_cut_at_the_picture(tmp_path: Path) -> None:
    save_mask(tmp_path / "m.png", np.ones((5, 5), bool), (0, 0, 5, 5))
    area = load_area({"box": [0, 0, 5, 5], "mask_path": str(tmp_path / "m.png"), "margin_px": 2}, 60, 40)
    assert area is not None
    assert area.box_xyxy_px == (0, 0, 7, 7)
    assert area.mask is not None
    assert area.mask[:5, :5].all()


def test_a_mask_may_be_of_the_whole_picture(tmp_path: Path) -> None:
    whole = Image.new("1", (60, 40))
    whole.paste(1, (10, 10, 20, 15))
    whole.save(tmp_path / "m.png")
    area = load_area({"box": [10, 10, 20, 15], "mask_path": str(tmp_path / "m.png")}, 60, 40)
    assert area is not None
    assert area.box_xyxy_px == (10, 10, 20, 15)
    assert area.mask is not None
    assert area.mask.shape == (5, 10)
    assert area.mask.all()


@pytest.mark.parametrize("box", [[60, 0, 70, 10], [-9, -9, 0, 0], [5, 5, 5, 9]])
def test_an_area_outside_of_the_picture_is_none(box: list[int]) -> None:
    assert load_area({"box": box, "mask_path": None}, 60, 40) is None


def test_a_mask_without_a_pixel_inside_is_none(tmp_path: Path) -> None:
    save_mask(tmp_path / "m.png", np.zeros((5, 5), bool), (0, 0, 5, 5))
    assert load_area({"box": [0, 0, 5, 5], "mask_path": str(tmp_path / "m.png")}, 60, 40) is None


@pytest.mark.parametrize("data", [None, b"", b"no picture"])
def test_a_mask_that_is_gone_or_damaged_is_an_error(tmp_path: Path, data: bytes | None) -> None:
    if data is not None:
        (tmp_path / "m.png").write_bytes(data)
    with pytest.raises(WorkerError) as caught:
        load_area({"box": [0, 0, 5, 5], "mask_path": str(tmp_path / "m.png")}, 60, 40)
    assert caught.value.code == "mask_unreadable"


def test_a_mask_of_another_size_is_an_error(tmp_path: Path) -> None:
    save_mask(tmp_path / "m.png", np.ones((5, 6), bool), (0, 0, 6, 5))
    with pytest.raises(WorkerError) as caught:
        load_area({"box": [0, 0, 5, 5], "mask_path": str(tmp_path / "m.png")}, 60, 40)
    assert caught.value.code == "mask_unreadable"
