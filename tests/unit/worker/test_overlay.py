"""Overlay pictures: within their limits, boxes where the text is, numbers where it is not."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.box_styles import STYLES, Rgb
from sam2_mcp_worker.media.overlay import TASKS, draw_overlay
from sam2_mcp_worker.media.overlay_layout import MAX_PIECES, TagPlacer, lay_out_sheet, stack
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.sheet_picture import DEFAULT_MAX_BYTES, DEFAULT_MAX_SIDE_PX

BLUE = np.array(STYLES["text_layer"].line)


def save(picture: NDArray[np.uint8], folder: Path) -> dict[str, Any]:
    path = folder / "page.rgb"
    path.write_bytes(np.ascontiguousarray(picture).tobytes())
    return PixelFile(path, picture.shape[1], picture.shape[0]).to_params()


def white(width: int, height: int) -> NDArray[np.uint8]:
    return np.full((height, width, 3), 255, dtype=np.uint8)


def page_of_lines(width: int, height: int, pitch: int = 24) -> tuple[NDArray[np.uint8], list[dict[str, Any]]]:
    """Black bars like lines of text, and their boxes."""
    picture = white(width, height)
    boxes = []
    for number, y in enumerate(range(pitch, height - 2 * pitch, pitch), start=1):
        picture[y : y + pitch // 2, width // 10 : width * 9 // 10] = 0
        boxes.append({"box": [width // 10, y, width * 9 // 10, y + pitch // 2], "kind": "ocr", "number": number})
    return picture, boxes


def draw(folder: Path, picture: NDArray[np.uint8], boxes: list[dict[str, Any]], **limits: int) -> tuple[Any, Any]:
    out = folder / "overlay.jpg"
    params = {"pixels": save(picture, folder), "boxes": boxes, "out_path": str(out), **limits}
    result = TASKS["draw_overlay"](params)
    with Image.open(out) as image:
        assert image.format == "JPEG"
        assert image.size == (result["width_px"], result["height_px"])
        assert out.stat().st_size == result["bytes"]
        return result, np.asarray(image.convert("RGB")).astype(int)


def near(pixels: Any, colour: Any, distance: int = 60) -> Any:
    return np.abs(pixels - np.asarray(colour)).sum(axis=-1) < distance


def test_draws_a_frame_around_the_box_and_leaves_its_inside_alone(tmp_path: Path) -> None:
    boxes = [{"box": [200, 100, 500, 160], "kind": "text_layer", "number": 7}]
    result, pixels = draw(tmp_path, white(800, 600), boxes)
    left = (result["width_px"] - 800) // 2  # the margin for tags
    framed = near(pixels, BLUE)
    assert framed[130, left + 198] and framed[130, left + 501]
    assert framed[98, left + 350] and framed[161, left + 350]
    inside = pixels[102:158, left + 202 : left + 498]
    assert (inside > 230).all()


def test_number_tag_covers_neither_text_nor_another_tag(tmp_path: Path) -> None:
    picture, boxes = page_of_lines(900, 1200)
    result, pixels = draw(tmp_path, picture, boxes)
    assert result["numbers_left_out"] == 0
    left = (result["width_px"] - 900) // 2
    for box in boxes:
        x0, y0, x1, y1 = box["box"]
        text = pixels[y0 + 2 : y1 - 2, left + x0 + 2 : left + x1 - 2]
        assert (text < 70).all(), box["number"]


def test_small_page_is_not_enlarged_and_a_large_one_fits_the_longest_side(tmp_path: Path) -> None:
    small, _ = draw(tmp_path, white(300, 200), [])
    assert (small["width_px"], small["height_px"]) == (300, 200)
    large, _ = draw(tmp_path, white(3000, 4000), [])
    assert large["height_px"] == DEFAULT_MAX_SIDE_PX
    limited, _ = draw(tmp_path, white(3000, 4000), [], max_side_px=500)
    assert max(limited["width_px"], limited["height_px"]) == 500


def test_very_tall_page_stands_in_columns_that_are_wide_enough_to_read(tmp_path: Path) -> None:
    picture, boxes = page_of_lines(1916, 19983, pitch=60)
    result, _ = draw(tmp_path, picture, boxes)
    assert max(result["width_px"], result["height_px"]) <= DEFAULT_MAX_SIDE_PX
    assert result["bytes"] <= DEFAULT_MAX_BYTES
    # One column would be 153 px wide. Three are 450 px each.
    sheet = lay_out_sheet((1916, 19983), [], DEFAULT_MAX_SIDE_PX, 30, 26)
    assert len(sheet.pieces) == 3
    assert all(piece.target[2] - piece.target[0] >= 450 for piece in sheet.pieces)


def test_columns_are_cut_between_boxes() -> None:
    boxes = [(100, y, 900, y + 30) for y in range(10, 9950, 40)]
    sheet = lay_out_sheet((1000, 10000), boxes, 1600, 30, 26)
    cuts = [piece.source[3] for piece in sheet.pieces[:-1]]
    assert cuts
    for cut in cuts:
        assert not any(top < cut < bottom for _, top, _, bottom in boxes)


def test_wide_banner_stands_in_rows(tmp_path: Path) -> None:
    result, pixels = draw(tmp_path, white(9000, 700), [{"box": [8800, 10, 8990, 690], "kind": "ink", "number": 1}])
    assert result["height_px"] > 700 * 1600 / 9000 * 2
    assert near(pixels, STYLES["ink"].tag).any()


def test_noise_is_encoded_harder_then_smaller_until_it_fits(tmp_path: Path) -> None:
    noise = np.random.default_rng(5).integers(0, 256, (1500, 1500, 3), dtype=np.uint8)
    free, _ = draw(tmp_path, noise, [], max_bytes=10_000_000)
    assert free["bytes"] > 1_000_000
    tight, _ = draw(tmp_path, noise, [], max_bytes=120_000)
    assert tight["bytes"] <= 120_000
    assert tight["width_px"] < free["width_px"]


def test_limit_that_no_picture_can_keep_is_an_error_and_leaves_no_file(tmp_path: Path) -> None:
    noise = np.random.default_rng(5).integers(0, 256, (600, 600, 3), dtype=np.uint8)
    params = {"pixels": save(noise, tmp_path), "boxes": [], "out_path": str(tmp_path / "o.jpg"), "max_bytes": 500}
    with pytest.raises(WorkerError, match=r"overlay_too_large.*500 bytes"):
        draw_overlay(params)
    assert [path.name for path in tmp_path.iterdir()] == ["page.rgb"]


@pytest.mark.parametrize("size", [(1, 1), (1, 3000), (3000, 1), (2, 12000)])
def test_odd_shapes_are_drawn(tmp_path: Path, size: tuple[int, int]) -> None:
    box = {"box": [0, 0, size[0], size[1]], "kind": "ocr", "number": 1}
    result, _ = draw(tmp_path, white(*size), [box])
    assert result["bytes"] > 0


def test_boxes_outside_the_page_are_cut_off_or_dropped(tmp_path: Path) -> None:
    boxes = [
        {"box": [-50, -50, 40, 40], "kind": "text_layer", "number": 1},
        {"box": [500, 500, 900, 900], "kind": "text_layer", "number": 2},
        {"box": [30, 90, 30, 95], "kind": "text_layer", "number": 3},
        {"box": [80, 80, 60, 60], "kind": "text_layer", "number": 4},
    ]
    result, pixels = draw(tmp_path, white(400, 300), boxes)
    assert result["numbers_left_out"] == 0
    left = (result["width_px"] - 400) // 2
    assert near(pixels[:42, left : left + 44], BLUE).any()
    assert not near(pixels[60:300, left : left + 400], BLUE).any()


def test_more_boxes_than_margins_hold_are_drawn_and_counted(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    photo = rng.integers(0, 256, (400, 400, 3), dtype=np.uint8)  # no quiet place anywhere
    boxes = [
        {"box": [x, y, x + 12, y + 12], "kind": "ocr", "number": y * 20 + x}
        for y in range(0, 400, 20)
        for x in range(0, 400, 20)
    ]
    result, _ = draw(tmp_path, photo, boxes)
    assert 0 < result["numbers_left_out"] < len(boxes)


def test_missing_or_short_pixels_are_named(tmp_path: Path) -> None:
    short = tmp_path / "short.rgb"
    short.write_bytes(b"\0" * 10)
    for path in (short, tmp_path / "none.rgb"):
        params = {"pixels": PixelFile(path, 100, 100).to_params(), "boxes": [], "out_path": str(tmp_path / "o.jpg")}
        with pytest.raises(WorkerError) as caught:
            draw_overlay(params)
        assert caught.value.code == "pixels_unreadable"
        assert str(tmp_path) not in caught.value.public_text


def test_legend_names_only_the_kinds_that_are_there(tmp_path: Path) -> None:
    box = {"box": [100, 50, 300, 90], "number": 1}
    _, with_ink = draw(tmp_path, white(400, 200), [box | {"kind": "ink"}])
    _, with_ocr = draw(tmp_path, white(400, 200), [box | {"kind": "ocr"}])
    yellow, orange = STYLES["ink"].tag, STYLES["ocr"].line
    assert near(with_ink[200:], yellow, 150).any() and not near(with_ink[200:], orange).any()
    assert near(with_ocr[200:], orange, 150).any() and not near(with_ocr[200:], yellow).any()


def luminance(colour: Rgb) -> float:
    """Relative luminance as WCAG 2.2 defines it."""
    parts = [part / 255 for part in colour]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: Rgb, other: Rgb) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


# Severe deuteranopia and protanopia as linear maps of linear RGB (Machado, Oliveira, Fernandes 2009, severity 1.0).
DEUTERANOPIA = np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]])
PROTANOPIA = np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]])


def test_digits_have_the_contrast_that_accessibility_asks_for() -> None:
    assert all(contrast(style.digits, style.tag) >= 4.5 for style in STYLES.values())


@pytest.mark.parametrize("sight", [np.eye(3), DEUTERANOPIA, PROTANOPIA])
def test_tags_differ_clearly_for_every_colour_vision_and_shapes_differ_without_any(sight: NDArray[np.float64]) -> None:
    seen = [sight @ (np.array(style.tag) / 255) ** 2.2 for style in STYLES.values()]
    for index, one in enumerate(seen):
        for other in seen[index + 1 :]:
            assert np.abs(one - other).sum() > 0.4
    assert len({style.shape for style in STYLES.values()}) == len(STYLES)


@given(
    st.tuples(st.integers(1, 30_000), st.integers(1, 30_000)),
    st.integers(200, 2000),
    st.integers(0, 40),
    st.lists(st.tuples(*[st.integers(-100, 30_000)] * 4), max_size=20),
)
def test_sheet_holds_the_whole_page_once_and_keeps_its_limits(
    size: tuple[int, int], side: int, margin: int, boxes: list[tuple[int, int, int, int]]
) -> None:
    foot = 26
    sheet = lay_out_sheet(size, boxes, side, margin, foot)
    assert 1 <= len(sheet.pieces) <= MAX_PIECES
    area = sum((p.source[2] - p.source[0]) * (p.source[3] - p.source[1]) for p in sheet.pieces)
    assert area == size[0] * size[1]
    assert sheet.pieces[0].source[:2] == (0, 0)
    assert sheet.pieces[-1].source[2:] == size
    for before, after in pairwise(sheet.pieces):
        assert after.source[0] in (0, before.source[2]) and after.source[1] in (0, before.source[3])
    for piece in sheet.pieces:
        x0, y0, x1, y1 = piece.target
        assert margin <= x0 < x1 <= sheet.width_px - margin and 0 <= y0 < y1 <= sheet.height_px - foot
    # A piece is at least 1 px wide, so only a page thinner than its own scale may pass the limit, by a pixel a piece.
    assert sheet.width_px <= side + MAX_PIECES and sheet.height_px <= side + MAX_PIECES
    if size[0] <= side - 2 * margin and size[1] <= side - foot:
        assert len(sheet.pieces) == 1  # what fits is not cut


@given(st.lists(st.integers(-50, 600), max_size=60).map(sorted), st.integers(5, 20))
def test_stacked_tags_never_overlap_and_stay_in_the_margin(wanted: list[int], height: int) -> None:
    tops = stack(wanted, height, 0, 500)
    assert len(tops) == min(len(wanted), 500 // height)
    assert all(0 <= top <= 500 - height for top in tops)
    assert all(after - before >= height for before, after in pairwise(tops))


@given(
    st.lists(st.tuples(st.integers(0, 180), st.integers(0, 180), st.integers(2, 60), st.integers(2, 20)), max_size=30)
)
def test_tags_beside_boxes_never_touch_a_box_or_each_other(corners: list[tuple[int, int, int, int]]) -> None:
    boxes = [(x, y, x + width, y + height) for x, y, width, height in corners]
    busy = np.zeros((200, 200), dtype=np.bool_)
    for x0, y0, x1, y1 in boxes:
        busy[y0:y1, x0:x1] = True
    covered = busy.astype(int)
    placer = TagPlacer(busy)
    for box in boxes:
        tag = placer.beside(box, (16, 11), (0, 0, 200, 200))
        if tag is not None:
            covered[tag[1] : tag[3], tag[0] : tag[2]] += 1
    assert covered.max(initial=0) <= 1


def test_server_process_never_loads_the_drawing_code() -> None:
    """The styles are words and colours, free of numpy, so that the report may import them."""
    code = (
        "import sys; import sam2_mcp_worker.media.box_styles; "
        "print([m for m in ('numpy', 'PIL', 'cv2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", check=True)
    assert done.stdout.strip() == "[]"
