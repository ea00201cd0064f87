"""Masks for people and tools: a PNG of the picture's size, run lengths, and an overlay on which each object stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from PIL import Image
from tests.fakes.shapes import Scene, scene

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.mask_files import mask_files
from sam2_mcp_worker.media.mask_overlay import COLOURS, draw_mask_overlay
from sam2_mcp_worker.media.masks import save_mask, tight_mask
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.rle import coco_rle, decode_runs, expand_runs
from sam2_mcp_worker.media.sheet_picture import SMALLEST_SIDE_PX


def counts_of(inside: NDArray[np.bool_]) -> str:
    height, width = inside.shape
    return str(coco_rle(tight_mask(inside, (0, 0)), (width, height))["counts"])


def pixels_of(picture: Image.Image, folder: Path) -> dict[str, Any]:
    path = folder / "picture.rgb"
    path.write_bytes(np.asarray(picture.convert("RGB")).tobytes())
    return PixelFile(path, *picture.size).to_params()


def overlay(folder: Path, picture: Image.Image, objects: list[dict[str, Any]], **limits: int) -> NDArray[np.int32]:
    out = folder / "overlay.jpg"
    params = {"pixels": pixels_of(picture, folder), "objects": objects, "out_path": str(out), **limits}
    result = draw_mask_overlay(params)
    with Image.open(out) as drawn:
        assert drawn.size == (result["width_px"], result["height_px"])
        return np.asarray(drawn.convert("RGB")).astype(np.int32)


def asked(number: int, counts: str | None, box: Any = None, points: Any = ()) -> dict[str, Any]:
    return {"number": number, "counts": counts, "box": box, "points": [list(point) for point in points]}


def near(pixels: NDArray[np.int32], colour: tuple[int, int, int]) -> NDArray[np.bool_]:
    return np.asarray(np.abs(pixels - np.asarray(colour)).sum(axis=-1) < 60)


@pytest.fixture(scope="module")
def drawn() -> Scene:
    return scene()


@given(arrays(np.bool_, st.tuples(st.integers(1, 12), st.integers(1, 12))), st.integers(0, 5), st.integers(0, 5))
def test_the_png_and_the_run_lengths_say_where_the_mask_lies(
    tmp_path_factory: pytest.TempPathFactory, inside: NDArray[np.bool_], x: int, y: int
) -> None:
    mask = tight_mask(inside, (x, y))
    if mask.box_xyxy_px is None:
        return
    folder = tmp_path_factory.mktemp("mask")
    save_mask(folder / "crop.png", mask.inside, mask.box_xyxy_px)
    size = (20, 18)
    out = folder / "whole.png"
    params = {
        "mask_path": str(folder / "crop.png"),
        "box": list(mask.box_xyxy_px),
        "size": list(size),
        "out_path": str(out),
        "max_vertices": 40,
    }
    result = mask_files(params)
    expected = np.zeros((18, 20), np.bool_)
    expected[y : y + inside.shape[0], x : x + inside.shape[1]] = inside
    with Image.open(out) as picture:
        assert picture.size == size
        assert np.array_equal(np.asarray(picture.convert("L")) == 255, expected)
    back = decode_runs(expand_runs(result["counts"]), size)
    assert back.box_xyxy_px == mask.box_xyxy_px
    assert np.array_equal(back.inside, mask.inside)
    assert result["polygons"] and result["tolerance_px"] >= 1


def test_each_object_is_tinted_outlined_and_numbered_in_its_colour(drawn: Scene, tmp_path: Path) -> None:
    objects = [asked(number, counts_of(truth)) for number, truth in enumerate(drawn.truths, start=1)]
    before = overlay(tmp_path, drawn.picture, [])
    after = overlay(tmp_path, drawn.picture, objects)
    for truth, (colour, _) in zip(drawn.truths, COLOURS, strict=False):
        rows, columns = np.nonzero(truth)
        inside = after[rows, columns + 8]  # the margin of the sheet
        shift = np.abs(inside - before[rows, columns + 8]).sum(axis=1)
        assert np.median(shift) > 20
        assert near(after, colour).sum() > 100
    untouched = ~np.any(drawn.truths, axis=0)
    untouched[:, :] &= ~np.array(
        Image.fromarray(np.any(drawn.truths, axis=0)).convert("L").resize(drawn.picture.size)
    ).astype(bool)
    assert np.median(np.abs(after[:240, 8:328][untouched] - before[:240, 8:328][untouched])) <= 3


def test_a_hole_keeps_its_picture(tmp_path: Path) -> None:
    white = Image.new("RGB", (200, 200), "white")
    rows, columns = np.mgrid[:200, :200]
    radius = np.hypot(rows - 100, columns - 100)
    after = overlay(tmp_path, white, [asked(1, counts_of((radius < 80) & (radius > 40)))])
    assert near(after[95:105, 103:113], (255, 255, 255)).all()
    assert not near(after[95:105, 43:53], (255, 255, 255)).any()


def test_what_was_not_found_is_drawn_as_it_was_asked_for(tmp_path: Path) -> None:
    grey = Image.new("RGB", (240, 200), (200, 200, 200))
    nothing = overlay(tmp_path, grey, [])
    by_box = overlay(tmp_path, grey, [asked(1, None, box=[40, 40, 160, 120])])
    by_point = overlay(tmp_path, grey, [asked(1, None, points=[(60, 60, True), (150, 90, False)])])
    # A dotted frame along the box, and nothing inside of it.
    assert np.abs(by_box[40, 48:168] - nothing[40, 48:168]).sum() > 1000
    assert np.abs(by_box[60:100, 80:150] - nothing[60:100, 80:150]).sum() == 0
    for x, y in ((60, 60), (150, 90)):
        assert np.abs(by_point[y - 4 : y + 5, x + 4 : x + 13] - nothing[y - 4 : y + 5, x + 4 : x + 13]).sum() > 500


def test_an_object_too_small_for_its_number_has_it_beside(tmp_path: Path) -> None:
    white = Image.new("RGB", (300, 200), "white")
    inside = np.zeros((200, 300), np.bool_)
    inside[100:104, 150:154] = True
    after = overlay(tmp_path, white, [asked(1, counts_of(inside))])
    tag = near(after[:200], COLOURS[0][0])
    columns = np.flatnonzero(tag.any(axis=0))
    assert tag.sum() > 100
    assert columns[-1] - columns[0] < 40


@pytest.mark.parametrize("size", [(1, 1), (3000, 2), (2, 3000), (5000, 900)])
def test_pictures_of_any_shape_fit_their_limits(tmp_path: Path, size: tuple[int, int]) -> None:
    whole = np.ones((size[1], size[0]), np.bool_)
    after = overlay(tmp_path, Image.new("RGB", size, "white"), [asked(1, counts_of(whole))], max_side_px=800)
    assert max(after.shape) <= 800 + 20


@settings(max_examples=40)
@given(st.integers(1, 1500), st.integers(1, 1500), st.integers(200, 700), st.data())
def test_objects_at_the_edges_of_pictures_of_any_size_are_drawn(
    tmp_path_factory: pytest.TempPathFactory, width: int, height: int, side_px: int, data: st.DataObject
) -> None:
    inside = np.zeros((height, width), np.bool_)
    inside[data.draw(st.integers(0, height - 1)) :, data.draw(st.integers(0, width - 1)) :] = True
    picture = Image.new("RGB", (width, height), "white")
    after = overlay(tmp_path_factory.mktemp("edge"), picture, [asked(1, counts_of(inside))], max_side_px=side_px)
    assert max(after.shape) <= side_px + 20


@pytest.mark.parametrize("size", [(1000, 382), (1500, 431), (1500, 494)])
def test_what_is_rounded_out_stays_on_its_piece(tmp_path: Path, size: tuple[int, int]) -> None:
    whole = np.ones((size[1], size[0]), np.bool_)
    after = overlay(tmp_path, Image.new("RGB", size, "white"), [asked(1, counts_of(whole))], max_side_px=300)
    assert max(after.shape) <= 300 + 20


def test_a_picture_that_fits_no_limit_is_an_error(drawn: Scene, tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match=rf"at least {SMALLEST_SIDE_PX} px") as caught:
        overlay(tmp_path, drawn.picture, [], max_bytes=500)
    assert caught.value.code == "overlay_too_large"
    assert not (tmp_path / "overlay.jpg").exists()


def test_numbers_stand_on_colours_that_they_are_read_on() -> None:
    def luminance(colour: tuple[int, int, int]) -> float:
        parts = [c / 255 / 12.92 if c / 255 <= 0.03928 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    for ground, digits in COLOURS:
        low, high = sorted((luminance(ground), luminance(digits)))
        assert (high + 0.05) / (low + 0.05) >= 4.5
