"""The time line of exposures and the contact sheet with numbered boxes, by their pixels."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from tests.fakes.videos import SHAPES_SIZE, shapes_picture

from sam2_mcp_worker.media import exposure_pictures, sheet_words
from sam2_mcp_worker.media.exposure_pictures import (
    COLOURS,
    FAILED,
    HEAD_PX,
    ROW_PX,
    UNREACHED,
    draw_exposures,
    draw_scenes,
    write_thumb,
)
from sam2_mcp_worker.media.exposure_sheets import CellBox, TimeLine, TimeLineRow
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.sheet_grid import CAPTION_PX, GAP_PX
from sam2_mcp_worker.media.sheet_words import ELLIPSIS, fitting_words
from sam2_mcp_worker.media.time_axis import TimeAxis

ROWS = (
    TimeLineRow("label", 1, "동전 이미지", sure=((0.0, 3.0),), possible=((0.0, 6.0),), note="3.00-6.00 s"),
    TimeLineRow("text", 2, "notice", sure=((2.0, 2.0),), unknown=((4.0, 5.0),)),
)
LINE = TimeLine(0.0, 10.0, "20 frames read", ROWS, 3, (5.0,), failed=((6.5, 7.5),), unreached=((8.0, 10.0),))


def drawn(line: TimeLine, folder: Path, **params: Any) -> NDArray[np.uint8]:
    made = draw_exposures({"line": json.loads(json.dumps(asdict(line))), "out_path": str(folder / "l.jpg"), **params})
    picture = np.asarray(Image.open(folder / "l.jpg"))
    assert (made["height_px"], made["width_px"]) == picture.shape[:2]
    return picture


def like(pixels: NDArray[np.uint8], colour: tuple[int, int, int], reach: int = 40) -> NDArray[np.bool_]:
    return np.asarray((np.abs(pixels.astype(int) - colour) <= reach).all(axis=-1))


def test_sure_possible_unknown_failed_and_unreached_are_told_apart(tmp_path: Path) -> None:
    picture = drawn(LINE, tmp_path)
    drawing = exposure_pictures._TimeLine(asdict(LINE), 1600)
    x = drawing._axis.x
    first = HEAD_PX + exposure_pictures.CUTS_PX + exposure_pictures.GROUP_PX + ROW_PX // 2
    second = first + ROW_PX + exposure_pictures.GROUP_PX
    sure, text = COLOURS["label"], COLOURS["text"]
    assert like(picture[first - 5 : first + 6, x(1.5)], sure).all()
    assert like(picture[first + 3, x(3.5) : x(5.5)], sure, 60).all()  # outlined, and pale inside
    assert picture[first, x(4.0)].min() > 150
    assert not like(picture[first - 6, x(3.2) : x(6)], sure, 60).any()  # lower than what is sure
    assert like(picture[second, x(2.0) : x(2.0) + 2], text, 90).any()  # no time at all, yet to be seen
    dashes = like(picture[second, x(4.0) : x(5.0)], text, 90).mean()
    assert 0.2 < dashes < 0.8
    assert 2 < like(picture[first, x(6.5) : x(7.5) + 1], FAILED, 90).sum() < 60
    assert like(picture[second, x(8.1) : x(9.9)], UNREACHED, 8).all()
    assert picture[HEAD_PX + 3, x(5.0)].max() < 140  # the cut


def test_a_time_line_of_forty_rows_fits_and_every_row_has_its_number(tmp_path: Path) -> None:
    rows = tuple(replace(ROWS[1], number=number) for number in range(1, 41))
    picture = drawn(replace(LINE, rows=rows), tmp_path)
    assert picture.shape[0] <= 1600
    top = HEAD_PX + exposure_pictures.CUTS_PX + exposure_pictures.GROUP_PX
    for row in range(40):
        tag = picture[top + row * ROW_PX : top + (row + 1) * ROW_PX, exposure_pictures.MARGIN_PX :][:, :20]
        assert like(tag, COLOURS["text"], 60).any()


def test_nothing_asked_is_a_time_line_too(tmp_path: Path) -> None:
    assert drawn(TimeLine(5.0, 5.0, "0 frames read", ()), tmp_path).shape[1] == 1600
    assert drawn(TimeLine(0.0, 9.0, "", ROWS), tmp_path, max_side_px=400).shape[1] == 400


@given(st.floats(0, 9e4), st.floats(0, 9e4), st.floats(-10, 1e5))
def test_an_axis_keeps_every_time_inside_and_in_order(start_s: float, length_s: float, time_s: float) -> None:
    axis = TimeAxis(start_s, start_s + length_s, 100, 900)
    assert 100 <= axis.x(time_s) <= 900
    assert axis.x(time_s) <= axis.x(time_s + 1)
    assert len(axis.ticks()) <= 28
    assert all(axis.start_s - 1e-6 <= tick <= axis.end_s + 1e-6 for tick in axis.ticks())


def test_a_part_of_a_video_has_an_axis_of_its_own() -> None:
    axis = TimeAxis(60.0, 66.0, 0, 600)
    assert (axis.x(60), axis.x(63), axis.x(66)) == (0, 300, 600)
    assert axis.ticks()[0] == 60 and axis.ticks()[-1] == 66


def cell(folder: Path, time_s: float, *boxes: CellBox) -> dict[str, Any]:
    path = folder / f"{time_s}.rgb"
    path.write_bytes(np.full((SHAPES_SIZE[1], SHAPES_SIZE[0], 3), 128, np.uint8).tobytes())
    pixels = PixelFile(path, *SHAPES_SIZE).to_params()
    return {"time_s": time_s, "pixels": pixels, "boxes": [asdict(box) for box in boxes]}


def test_boxes_stand_around_their_places_and_no_number_hides_another(tmp_path: Path) -> None:
    label, phrase = CellBox("label", 1, (200, 200, 600, 500)), CellBox("phrase", 12, (204, 204, 500, 300))
    cells = [cell(tmp_path, 0.5, label, phrase), cell(tmp_path, 1.0)]
    out = tmp_path / "s.jpg"
    width = 2 * SHAPES_SIZE[0]
    draw_scenes({"cells": cells, "frame_width_px": width, "out_path": str(out)})
    sheet = np.asarray(Image.open(out))
    shown = sheet[GAP_PX : GAP_PX + SHAPES_SIZE[1], GAP_PX : GAP_PX + SHAPES_SIZE[0]]
    assert like(shown[150:240, 99], COLOURS["label"], 90).mean() > 0.9  # left edge, half size
    assert shown[160, 200].tolist() == pytest.approx([128, 128, 128], abs=4)  # nothing covers what is inside
    tags = shown[85:101, 98:160]
    assert like(tags, COLOURS["label"], 60).sum() > 40 and like(tags, COLOURS["phrase"], 60).sum() > 60
    below = 2 * GAP_PX + SHAPES_SIZE[1] + CAPTION_PX
    assert np.ptp(sheet[below + 8 : below + SHAPES_SIZE[1] - 8, 20:300].astype(int)) < 12  # the other frame is bare


def test_a_box_at_the_edge_or_outside_is_drawn_inside(tmp_path: Path) -> None:
    boxes = (CellBox("text", 7, (-50, -50, 5000, 4000)), CellBox("text", 8, (9000, 9000, 9100, 9100)))
    out = tmp_path / "s.jpg"
    made = draw_scenes({"cells": [cell(tmp_path, 0.0, *boxes)], "frame_width_px": 320, "out_path": str(out)})
    assert made["bytes"] > 0
    assert like(np.asarray(Image.open(out)), COLOURS["text"], 60).any()


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 60)), max_size=12), st.integers(8, 40))
def test_tags_never_overlap(corners: list[tuple[int, int]], width: int) -> None:
    taken: list[tuple[int, int, int]] = []
    for left, top in corners:
        x = exposure_pictures._beside(taken, left, top, width)
        assert x >= left
        for start, y, end in taken:
            assert abs(y - top) >= exposure_pictures.CELL_TAG_PX or x >= end or x + width <= start
        taken.append((x, top, x + width))


def test_korean_words_need_a_korean_font(monkeypatch: pytest.MonkeyPatch) -> None:
    words, font = fitting_words("보험료  안내 무☎", "label 3", 400, 13)
    assert words == "보험료 안내 무?"
    assert font.getlength(words) > 40
    monkeypatch.setattr(sheet_words, "korean_font", lambda size_px: None)
    assert fitting_words("보험료 안내", "label 3", 400, 13)[0] == "label 3"
    assert fitting_words("premium", "label 3", 400, 13)[0] == "premium"


@given(st.text(st.characters(min_codepoint=32, max_codepoint=0x24F), max_size=60), st.integers(30, 300))
def test_shortened_words_fit(words: str, width_px: int) -> None:
    shown, font = fitting_words(words, "", width_px, 13)
    assert font.getlength(shown) <= width_px
    assert shown == " ".join(words.split()) or shown.endswith(ELLIPSIS)
    ImageDraw.Draw(Image.new("RGB", (9, 9))).text((0, 0), shown, font=font)


def test_a_picture_of_the_video_is_what_a_cell_shows(tmp_path: Path) -> None:
    path = tmp_path / "shapes.rgb"
    path.write_bytes(np.ascontiguousarray(shapes_picture(0)).tobytes())
    cells = [{"time_s": 0.0, "pixels": PixelFile(path, *SHAPES_SIZE).to_params(), "boxes": []}]
    draw_scenes({"cells": cells, "frame_width_px": SHAPES_SIZE[0], "out_path": str(tmp_path / "s.jpg")})
    sheet = np.asarray(Image.open(tmp_path / "s.jpg")).astype(int)
    shown = sheet[GAP_PX : GAP_PX + SHAPES_SIZE[1], GAP_PX : GAP_PX + SHAPES_SIZE[0]]
    assert np.abs(shown - shapes_picture(0)).mean() < 6


def test_a_small_jpeg_is_as_good_as_raw_pixels_for_a_cell(tmp_path: Path) -> None:
    path, jpeg = tmp_path / "shapes.rgb", tmp_path / "t.jpg"
    path.write_bytes(np.ascontiguousarray(shapes_picture(0)).tobytes())
    pixels = PixelFile(path, *SHAPES_SIZE).to_params()
    made = write_thumb({"pixels": pixels, "side_px": 160, "out_path": str(jpeg)})
    assert made["bytes"] == jpeg.stat().st_size
    assert np.asarray(Image.open(jpeg)).shape == (90, 160, 3)
    shown = []
    for picture in ({"pixels": pixels}, {"jpeg": str(jpeg)}):
        cells = [{"time_s": 0.0, "boxes": [], **picture}]
        draw_scenes({"cells": cells, "frame_width_px": SHAPES_SIZE[0], "out_path": str(tmp_path / "s.jpg")})
        sheet = Image.open(tmp_path / "s.jpg").convert("RGB")
        whole = (GAP_PX, GAP_PX, sheet.width - GAP_PX, sheet.height - GAP_PX - CAPTION_PX)
        shown.append(np.asarray(sheet.crop(whole).resize((80, 45), Image.Resampling.BOX)).astype(int))
    assert np.abs(shown[0] - shown[1]).mean() < 8


def test_frames_of_two_sources_stand_in_one_grid(tmp_path: Path) -> None:
    small = cell(tmp_path, 0.5)
    path = tmp_path / "small.rgb"
    path.write_bytes(np.full((90, 160, 3), 30, np.uint8).tobytes())
    small["pixels"] = PixelFile(path, 160, 90).to_params()
    cells = [small, cell(tmp_path, 1.0)]
    made = draw_scenes({"cells": cells, "frame_width_px": 320, "out_path": str(tmp_path / "s.jpg")})
    assert made["width_px"] == SHAPES_SIZE[0] + 2 * GAP_PX
