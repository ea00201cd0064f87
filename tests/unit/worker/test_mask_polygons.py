"""Polygons of masks: within the stated distance, within the number of vertices, never degenerate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt

from sam2_mcp_worker.media import mask_polygons as module
from sam2_mcp_worker.media.mask_polygons import Outline, Ring, mask_polygons

Bools = NDArray[np.bool_]


def rings(outlines: list[Outline]) -> list[Ring]:
    return [ring for outline in outlines for ring in (outline.outer, *outline.holes)]


def filled(outlines: list[Outline], height: int, width: int) -> Bools:
    """Even-odd filling at the centres of the pixels, by crossing numbers."""
    y, x = np.mgrid[0:height, 0:width] + 0.5
    inside = np.zeros((height, width), bool)
    for ring in rings(outlines):
        for (xa, ya), (xb, yb) in zip(ring, np.roll(ring, -1, axis=0), strict=True):
            if ya != yb:
                inside ^= ((ya <= y) != (yb <= y)) & (x < xa + (y - ya) * (xb - xa) / (yb - ya))
    return inside


def edge_distance(mask: Bools) -> NDArray[np.float64]:
    """How far each pixel's centre lies from the nearest side between an inner and an outer pixel."""
    padded = np.pad(mask, 1)
    rows, columns = np.nonzero(padded[:, 1:] != padded[:, :-1])
    upright = [(x, y - 1, x, y) for x, y in zip(columns, rows, strict=True)]
    rows, columns = np.nonzero(padded[1:] != padded[:-1])
    level = [(x - 1, y, x, y) for x, y in zip(columns, rows, strict=True)]
    sides = np.array(upright + level, float)
    y, x = np.mgrid[0 : mask.shape[0], 0 : mask.shape[1]][..., None] + 0.5
    dx = np.maximum(np.maximum(sides[:, 0] - x, x - sides[:, 2]), 0)
    dy = np.maximum(np.maximum(sides[:, 1] - y, y - sides[:, 3]), 0)
    return np.asarray(np.hypot(dx, dy).min(axis=-1))


@st.composite
def some_masks(draw: st.DrawFn) -> Bools:
    """Noise, blobs and everything between."""
    height, width = draw(st.integers(1, 26)), draw(st.integers(1, 26))
    noise = np.random.default_rng(draw(st.integers(0, 2**31))).random((height, width))
    for _ in range(draw(st.integers(0, 3))):
        noise = (noise + np.roll(noise, 1, 0) + np.roll(noise, 1, 1) + np.roll(noise, -1, 0)) / 4
    mask = noise <= np.quantile(noise, draw(st.floats(0, 1)))
    return np.asarray(mask)


@settings(max_examples=150)
@given(some_masks(), st.integers(4, 80))
def test_polygons_stay_within_their_tolerance_and_their_number_of_vertices(mask: Bools, most: int) -> None:
    outlines, tolerance = mask_polygons(mask, (0, 0), most)
    found = rings(outlines)
    assert outlines
    assert sum(map(len, found)) <= most
    assert all(len(ring) >= 3 and ring.min() >= 0 for ring in found)
    assert all(ring[:, 0].max() <= mask.shape[1] and ring[:, 1].max() <= mask.shape[0] for ring in found)
    wrong = filled(outlines, *mask.shape) != mask
    assert not wrong.any() or edge_distance(mask)[wrong].max() <= tolerance


@pytest.mark.parametrize(("height", "width"), [(1, 1), (1, 40), (40, 1), (3, 2)])
def test_pixels_lines_and_small_boxes_keep_their_exact_corners(height: int, width: int) -> None:
    [outline], tolerance = mask_polygons(np.ones((height, width), bool), (5, 7))
    corners = {(5, 7), (5 + width, 7), (5 + width, 7 + height), (5, 7 + height)}
    assert set(map(tuple, outline.outer.tolist())) == corners
    assert tolerance == 1.0


def test_a_slanted_line_of_single_pixels_does_not_vanish() -> None:
    outlines, _ = mask_polygons(np.eye(30, dtype=bool), (0, 0))
    assert len(outlines) == 1
    assert np.ptp(outlines[0].outer, axis=0).tolist() == [30, 30]


def test_holes_belong_to_the_part_around_them_and_parts_within_holes_are_parts() -> None:
    mask = np.zeros((60, 90), bool)
    mask[5:55, 5:55] = True
    mask[15:45, 15:45] = False
    mask[25:35, 25:35] = True
    mask[10:20, 70:80] = True
    outlines, tolerance = mask_polygons(mask, (100, 0))
    assert tolerance == 1.0
    boxes = [(*o.outer.min(axis=0).tolist(), *o.outer.max(axis=0).tolist()) for o in outlines]
    assert boxes[0] == (105, 5, 155, 55)
    assert set(boxes[1:]) == {(125, 25, 135, 35), (170, 10, 180, 20)}
    assert [len(o.holes) for o in outlines] == [1, 0, 0]
    # The corners of a hole are cut: OpenCV joins the pixels around it over their corners.
    hole = outlines[0].holes[0]
    assert (*hole.min(axis=0).tolist(), *hole.max(axis=0).tolist()) == (115, 15, 145, 45)


def bars(count: int) -> Bools:
    """Separate bars of 100 x 4 px, too long to be specks at any tolerance that is tried, and one that is wider."""
    mask = np.zeros((8 * count + 8, 130), bool)
    for number in range(count):
        mask[8 * number + 4 : 8 * number + 8, 10:110] = True
    mask[:4, :120] = True
    return mask


def comb() -> Bools:
    """A comb whose teeth stay apart at every tolerance that is tried."""
    mask = np.zeros((300, 2000), bool)
    mask[:40] = True
    mask[:, (np.arange(2000) // 100) % 2 == 0] = True
    return mask


@pytest.mark.parametrize(("mask", "most"), [(bars(20), 24), (comb(), 30), (comb(), 4)])
def test_where_no_tolerance_fits_the_largest_parts_stay_and_the_tolerance_says_so(mask: Bools, most: int) -> None:
    outlines, tolerance = mask_polygons(mask, (0, 0), most)
    assert 0 < sum(map(len, rings(outlines))) <= most
    wrong = filled(outlines, *mask.shape) != mask
    padded = np.pad(mask, 1)
    to_other_pixel = np.where(padded, distance_transform_edt(padded), distance_transform_edt(~padded))[1:-1, 1:-1]
    assert wrong.any()
    # Between the centres of two pixels lies their edge, half a pixel's side or diagonal away.
    assert to_other_pixel[wrong].max() <= tolerance + np.sqrt(0.5)


def test_an_outline_that_only_collapses_is_replaced_by_its_box(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two pixels that touch over a corner have six corners, and nothing coarser that has an area."""
    monkeypatch.setattr(module, "TOLERANCES_PX", (0.2,))
    mask = np.array([[1, 0, 1], [0, 1, 0], [1, 0, 1]], bool)
    [outline], tolerance = mask_polygons(mask, (0, 0), 4)
    assert len(outline.outer) == 4
    wrong = filled([outline], 3, 3) != mask
    assert not wrong.any() or edge_distance(mask)[wrong].max() <= tolerance


def test_nothing_has_no_polygons() -> None:
    assert mask_polygons(np.zeros((0, 0), bool), (0, 0)) == ([], 0.0)
    assert mask_polygons(np.zeros((4, 4), bool), (0, 0)) == ([], 0.0)


def test_large_masks_are_traced_on_a_coarser_grid_which_the_tolerance_says(monkeypatch: pytest.MonkeyPatch) -> None:
    y, x = np.mgrid[0:200, 0:203]
    mask = (np.hypot(x - 100, y - 100) < 90) & (np.hypot(x - 120, y - 90) > 30)
    mask[199, 202] = True
    fine, fine_tolerance = mask_polygons(mask, (0, 0))
    monkeypatch.setattr(module, "MAX_TRACED_PIXELS", 10_000)
    coarse, coarse_tolerance = mask_polygons(mask, (0, 0))
    assert fine_tolerance < coarse_tolerance <= 8
    wrong = filled(coarse, *mask.shape) != mask
    assert edge_distance(mask)[wrong].max() <= coarse_tolerance
    assert max(int(ring.max()) for ring in rings(coarse)) <= 203
    assert len(fine[0].holes) == len(coarse[0].holes) == 1
