"""From a network's logits to the pixels of the picture, exactly, at any size, and to a file and back."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media import masks
from sam2_mcp_worker.media.masks import Mask, cut_mask, load_mask, save_mask, tight_mask, touches_border

NEAR = 1e-4  # of the threshold: there the order of float32 operations decides


def bilinear(logits: NDArray[np.float32], width: int, height: int, extent: tuple[float, float]) -> NDArray[np.float64]:
    """Bilinear interpolation with half-pixel centres, pixel by pixel and in double precision."""
    rows, columns = logits.shape
    out = np.zeros((height, width))
    for y in range(height):
        v = min(max((y + 0.5) * extent[1] / height - 0.5, 0), rows - 1)
        for x in range(width):
            u = min(max((x + 0.5) * extent[0] / width - 0.5, 0), columns - 1)
            i, j = int(v), int(u)
            i2, j2 = min(i + 1, rows - 1), min(j + 1, columns - 1)
            upper = float(logits[i, j]) * (1 - (u - j)) + float(logits[i, j2]) * (u - j)
            lower = float(logits[i2, j]) * (1 - (u - j)) + float(logits[i2, j2]) * (u - j)
            out[y, x] = upper * (1 - (v - i)) + lower * (v - i)
    return out


def placed(mask: Mask, width: int, height: int) -> NDArray[np.bool_]:
    """The mask in the whole picture."""
    full = np.zeros((height, width), np.bool_)
    if mask.box_xyxy_px is not None:
        x0, y0, x1, y1 = mask.box_xyxy_px
        full[y0:y1, x0:x1] = mask.inside
    return full


@st.composite
def some_logits(draw: st.DrawFn) -> NDArray[np.float32]:
    shape = (draw(st.integers(1, 6)), draw(st.integers(1, 6)))
    values = draw(st.lists(st.floats(-8, 8, width=16), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
    return np.array(values, np.float32).reshape(shape)


@given(some_logits(), st.integers(1, 24), st.integers(1, 24), st.floats(0.4, 1), st.floats(0.4, 1))
def test_masks_are_what_bilinear_interpolation_gives(
    logits: NDArray[np.float32], width: int, height: int, part_x: float, part_y: float
) -> None:
    extent = (logits.shape[1] * part_x, logits.shape[0] * part_y)
    mask = cut_mask(logits, (0, 0, width, height), extent)
    wanted = bilinear(logits, width, height, extent)
    clear = np.abs(wanted) > NEAR
    assert np.array_equal(placed(mask, width, height)[clear], wanted[clear] > 0)
    if np.all(np.abs(np.abs(wanted) - 1) > NEAR):
        raised, lowered = np.count_nonzero(wanted > 1), np.count_nonzero(wanted > -1)
        assert mask.stability == pytest.approx(raised / lowered if lowered else 0)


@given(some_logits(), st.integers(1, 20), st.integers(1, 20), st.integers(0, 9), st.integers(0, 9))
def test_a_window_only_moves_its_mask(logits: NDArray[np.float32], width: int, height: int, x: int, y: int) -> None:
    at_origin = cut_mask(logits, (0, 0, width, height))
    moved = cut_mask(logits, (x, y, x + width, y + height))
    assert np.array_equal(at_origin.inside, moved.inside)
    if at_origin.box_xyxy_px is None:
        assert moved.box_xyxy_px is None
        return
    x0, y0, x1, y1 = at_origin.box_xyxy_px
    assert moved.box_xyxy_px == (x0 + x, y0 + y, x1 + x, y1 + y)


@given(some_logits(), st.integers(1, 30), st.integers(1, 30))
def test_boxes_are_tight_and_areas_counted(logits: NDArray[np.float32], width: int, height: int) -> None:
    mask = cut_mask(logits, (0, 0, width, height))
    assert mask.area_px == np.count_nonzero(mask.inside)
    if mask.box_xyxy_px is None:
        assert mask.inside.shape == (0, 0)
        return
    edges = (mask.inside[0], mask.inside[-1], mask.inside[:, 0], mask.inside[:, -1])
    assert all(edge.any() for edge in edges)


def test_strips_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    logits = np.random.default_rng(1).normal(size=(16, 16)).astype(np.float32)
    whole = cut_mask(logits, (0, 0, 90, 70))
    monkeypatch.setattr(masks, "STRIP_PIXELS", 100)
    in_strips = cut_mask(logits, (0, 0, 90, 70))
    assert np.array_equal(whole.inside, in_strips.inside)
    assert whole.stability == in_strips.stability


def test_a_small_object_of_a_huge_picture_costs_little() -> None:
    logits = np.full((256, 256), -9, np.float32)
    logits[100, 200] = 9
    tracemalloc.start()
    mask = cut_mask(logits, (0, 0, 12_000, 9_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert mask.box_xyxy_px is not None
    assert (mask.box_xyxy_px[0], mask.box_xyxy_px[2]) == (9375, 9422)
    assert peak < 8 * 2**20


def test_a_picture_of_one_pixel_has_masks_too() -> None:
    assert cut_mask(np.full((64, 64), 3, np.float32), (0, 0, 1, 1)) == Mask((0, 0, 1, 1), np.ones((1, 1), bool), 1, 1.0)
    assert cut_mask(np.full((64, 64), -3, np.float32), (0, 0, 1, 1)).box_xyxy_px is None


def test_logits_that_are_no_numbers_are_a_blank_mask() -> None:
    blank = cut_mask(np.full((4, 4), np.nan, np.float32), (0, 0, 9, 9))
    assert (blank.box_xyxy_px, blank.area_px, blank.stability) == (None, 0, 0.0)


def test_only_objects_at_the_edge_touch_the_border() -> None:
    size = (10, 8)
    assert not touches_border((1, 1, 9, 7), size)
    assert not touches_border(None, size)
    for box in ((0, 1, 9, 7), (1, 0, 9, 7), (1, 1, 10, 7), (1, 1, 9, 8)):
        assert touches_border(box, size)


@given(st.integers(1, 20), st.integers(1, 20), st.integers(0, 2**20), st.integers(0, 50))
def test_files_give_back_what_was_saved(
    tmp_path_factory: pytest.TempPathFactory, width: int, height: int, seed: int, x: int
) -> None:
    inside = np.random.default_rng(seed).random((height, width)) < 0.5
    path = tmp_path_factory.getbasetemp() / "mask.png"
    save_mask(path, inside, (x, 3, x + width, 3 + height))
    assert np.array_equal(load_mask(path), inside)
    assert not path.with_name("mask.png.part").exists()


def test_files_that_are_gone_or_damaged_are_named_as_such(tmp_path: Path) -> None:
    for content in (None, b"", b"no picture"):
        path = tmp_path / "mask.png"
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(WorkerError, match="mask_unreadable"):
            load_mask(path)


def test_a_folder_that_is_gone_is_not_made_anew(tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match="storage_failed"):
        save_mask(tmp_path / "gone" / "mask.png", np.ones((1, 1), bool), (0, 0, 1, 1))
    assert not (tmp_path / "gone").exists()


def test_margins_are_cut_off_and_nothing_stays_nothing() -> None:
    inside = np.zeros((5, 6), bool)
    inside[2, 3:5] = True
    assert tight_mask(inside, (10, 20)).box_xyxy_px == (13, 22, 15, 23)
    assert tight_mask(np.zeros((5, 6), bool), (0, 0)).box_xyxy_px is None
