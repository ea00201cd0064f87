"""A model's lines stand on their ink afterwards, and what it left out is told as ink."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from tests.bench.ocr.pages import load_font

from sam2_mcp_worker.media.ink import Box, print_shapes
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.seen_lines import settle_lines
from sam2_mcp_worker.media.tilt import Levelled, tilt

RGB = NDArray[np.uint8]
Ground = tuple[int, int, int]
BODY = (
    "해약환급금이 납입보험료보다 적거나 없을 수 있으며, 자세한 사항은 약관을 확인하시기 바랍니다",
    "보험계약자가 기존 보험계약을 해지하고 새로운 계약을 체결하면 인수가 거절될 수 있습니다",
    "이 보험계약은 예금자보호법에 따라 해약환급금에 기타 지급금을 합하여 보호됩니다",
    "만기 또는 중도에 해지하면 세법에서 정한 요건에 따라 과세될 수 있습니다",
    "갱신형 특약은 갱신할 때 나이와 위험률에 따라 보험료가 오를 수 있습니다",
)


class Sheet:
    """Text drawn where it is known to stand, and the file that a task reads."""

    def __init__(self, folder: Path, size: tuple[int, int] = (1000, 420), ground: Ground = (255, 255, 255)) -> None:
        self.image = Image.new("RGB", size, ground)
        self.path = folder / "sheet.rgb"
        self.lines: list[dict[str, Any]] = []
        self.sizes: list[int] = []

    def text(self, at: tuple[int, int], text: str, size_px: int, colour: Ground = (40, 40, 40)) -> Box:
        draw, font = ImageDraw.Draw(self.image), load_font("NanumGothic", size_px)
        draw.text(at, text, font=font, fill=colour)
        x0, y0, x1, y1 = (round(edge) for edge in draw.textbbox(at, text, font=font))
        self.lines.append({"text": text, "box": [x0, y0, x1, y1], "confidence": 0.9})
        self.sizes.append(size_px)
        return x0, y0, x1, y1

    def paragraph(self, size_px: int, leading: float = 1.5, colour: Ground = (40, 40, 40)) -> list[Box]:
        return [
            self.text((60, 50 + round(row * size_px * leading)), text, size_px, colour) for row, text in enumerate(BODY)
        ]

    def settle(self, lines: list[dict[str, Any]] | None = None, rect: Box | None = None) -> dict[str, Any]:
        rgb = np.asarray(self.image, np.uint8)
        self.path.write_bytes(rgb.tobytes())
        pixels = PixelFile(self.path, rgb.shape[1], rgb.shape[0])
        whole = (0, 0, rgb.shape[1], rgb.shape[0])
        asked = self.lines if lines is None else lines
        return settle_lines({"pixels": pixels.to_params(), "rect": list(rect or whole), "lines": asked})


def roughly(lines: list[dict[str, Any]], px: int, seed: int = 1) -> list[dict[str, Any]]:
    """As a model would say it: every edge off by some px."""
    random = Random(seed)
    return [{**line, "box": [edge + random.randint(-px, px) for edge in line["box"]]} for line in lines]


def share_covered(box: Box, ink: list[list[int]]) -> float:
    mask = np.zeros((box[3] - box[1], box[2] - box[0]), bool)
    for x0, y0, x1, y1 in ink:
        mask[max(0, y0 - box[1]) : max(0, y1 - box[1]), max(0, x0 - box[0]) : max(0, x1 - box[0])] = True
    return float(mask.mean())


@pytest.mark.parametrize(
    ("ground", "colour"),
    [((255, 255, 255), (40, 40, 40)), ((20, 40, 90), (255, 255, 255)), ((255, 214, 51), (0, 60, 160))],
)
@pytest.mark.parametrize(("size_px", "leading"), [(12, 1.4), (20, 1.5)])
def test_boxes_some_px_off_come_to_stand_on_their_ink_and_tell_its_font_size(
    tmp_path: Path, size_px: int, leading: float, ground: Ground, colour: Ground
) -> None:
    sheet = Sheet(tmp_path, ground=ground)
    boxes = sheet.paragraph(size_px, leading, colour)
    found = sheet.settle(roughly(sheet.lines, 4))
    assert [line["text"] for line in found["lines"]] == list(BODY)
    for line, box in zip(found["lines"], boxes, strict=True):
        assert all(abs(a - b) <= 3 for a, b in zip(line["box"], box, strict=True))
        assert line["height_px"] == pytest.approx(size_px, abs=1)
        assert line["confidence"] == 0.9
    assert found["ink"] == []
    assert found["invented"] == 0


@pytest.mark.parametrize("missing", range(len(BODY)))
def test_a_line_that_the_model_left_out_is_told_as_ink_however_close_its_neighbours(
    tmp_path: Path, missing: int
) -> None:
    sheet = Sheet(tmp_path)
    boxes = sheet.paragraph(12, 1.4)
    told = [line for number, line in enumerate(roughly(sheet.lines, 4)) if number != missing]
    found = sheet.settle(told)
    assert share_covered(boxes[missing], found["ink"]) > 0.6
    assert all(share_covered(box, found["ink"]) < 0.3 for n, box in enumerate(boxes) if n != missing)


def test_a_line_of_which_only_half_was_read_leaves_the_rest_as_ink(tmp_path: Path) -> None:
    sheet = Sheet(tmp_path)
    x0, y0, x1, y1 = sheet.text((60, 60), BODY[0], 18)
    half = {"text": BODY[0][:24], "box": [x0, y0, (x0 + x1) // 2, y1], "confidence": 0.9}
    found = sheet.settle([half])
    assert share_covered(((x0 + x1) // 2 + 20, y0, x1, y1), found["ink"]) > 0.6
    assert share_covered((x0, y0, (x0 + x1) // 2 - 40, y1), found["ink"]) < 0.1
    # Said to fill the whole line, it is too short for the ink, and nobody knows which part was read.
    found = sheet.settle([{**half, "box": [x0, y0, x1, y1]}])
    assert share_covered((x0, y0, x1, y1), found["ink"]) > 0.6


def test_a_paragraph_told_as_one_line_explains_all_its_rows_and_measures_one(tmp_path: Path) -> None:
    sheet = Sheet(tmp_path)
    boxes = sheet.paragraph(16)
    hull = [min(b[0] for b in boxes), boxes[0][1], max(b[2] for b in boxes), boxes[-1][3]]
    found = sheet.settle([{"text": " ".join(BODY), "box": hull, "confidence": 0.9}])
    assert found["ink"] == []
    assert found["lines"][0]["height_px"] == pytest.approx(16, abs=2)
    assert all(abs(a - b) <= 3 for a, b in zip(found["lines"][0]["box"], hull, strict=True))


def test_a_line_on_bare_paper_is_left_out_and_counted(tmp_path: Path) -> None:
    sheet = Sheet(tmp_path)
    sheet.text((60, 60), BODY[0], 18)
    made_up = [
        {"text": "원금 손실 가능", "box": [300, 300, 460, 320], "confidence": 0.9},
        {"text": "밖에 있음", "box": [2000, 900, 2100, 920], "confidence": 0.9},
    ]
    found = sheet.settle([*sheet.lines, *made_up])
    assert [line["text"] for line in found["lines"]] == [BODY[0]]
    assert found["invented"] == 2


def test_print_too_faint_for_the_test_of_ink_keeps_its_line_and_is_measured(tmp_path: Path) -> None:
    sheet = Sheet(tmp_path)
    box = sheet.text((60, 60), BODY[0], 18, (225, 225, 225))
    (line,) = sheet.settle(roughly(sheet.lines, 2))["lines"]
    assert line["height_px"] == pytest.approx(18, abs=2)
    assert all(abs(a - b) <= 5 for a, b in zip(line["box"], box, strict=True))


def test_a_headline_too_large_for_the_test_of_ink_is_measured_all_the_same(tmp_path: Path) -> None:
    sheet = Sheet(tmp_path)
    sheet.text((40, 60), "보험 하나로", 180)
    (line,) = sheet.settle()["lines"]
    assert line["height_px"] == pytest.approx(180, rel=0.1)


def test_a_line_that_stands_among_rules_only_is_kept_with_doubt(tmp_path: Path) -> None:
    sheet = Sheet(tmp_path)
    ImageDraw.Draw(sheet.image).rectangle((0, 100, 1000, 101), fill=(120, 120, 120))
    (line,) = sheet.settle([{"text": "없는 말", "box": [300, 92, 420, 110], "confidence": 0.9}])["lines"]
    assert (line["height_px"], line["confidence"], line["box"]) == (0.0, 0.3, [300, 92, 420, 110])


def test_a_button_keeps_its_neighbours_and_its_own_panel_out_of_its_box(tmp_path: Path) -> None:
    sheet = Sheet(tmp_path)
    draw = ImageDraw.Draw(sheet.image)
    for x, colour in ((60, (0, 72, 153)), (292, (0, 121, 107)), (520, (230, 92, 0))):
        draw.rectangle((x, 100, x + 208, 152), fill=colour)
    boxes = [sheet.text((x, 114), "보험료 계산하기", 24, (255, 255, 255)) for x in (84, 316, 544)]
    found = sheet.settle(roughly(sheet.lines[1:], 4))
    for line, box in zip(found["lines"], boxes[1:], strict=True):
        assert all(abs(a - b) <= 4 for a, b in zip(line["box"], box, strict=True))
    assert share_covered(boxes[0], found["ink"]) > 0.6


def test_a_headline_close_above_fine_print_takes_none_of_it(tmp_path: Path) -> None:
    sheet = Sheet(tmp_path)
    head = sheet.text((24, 34), "든든한 오늘, 편안한 내일", 44)
    fine = sheet.text((24, head[3] + 3), BODY[0] + " " + BODY[3], 13)
    found = sheet.settle(roughly(sheet.lines, 2))
    for line, box, size_px in zip(found["lines"], (head, fine), (44, 13), strict=True):
        assert line["box"] == pytest.approx(box, abs=4)
        assert line["height_px"] == pytest.approx(size_px, abs=2)


@pytest.mark.parametrize("degrees", [-2.0, 0.7, 3.0])
def test_lines_of_a_tilted_scan_are_as_high_as_they_are_upright(tmp_path: Path, degrees: float) -> None:
    sheet = Sheet(tmp_path)
    sheet.paragraph(14, 2.2)
    height, width = 420, 1000
    matrix = cv2.getRotationMatrix2D((width / 2, height / 2), -degrees, 1.0)
    turned = cv2.warpAffine(np.asarray(sheet.image), matrix, (width, height), borderValue=(255, 255, 255))
    for line in sheet.lines:
        x0, y0, x1, y1 = line["box"]
        corners = np.array([[x0, y0, 1], [x1, y0, 1], [x1, y1, 1], [x0, y1, 1]]) @ matrix.T
        line["box"] = [*map(int, np.floor(corners.min(axis=0))), *map(int, np.ceil(corners.max(axis=0)))]
    sheet.image = Image.fromarray(turned)
    found = sheet.settle()
    assert found["ink"] == []
    for line, asked in zip(found["lines"], sheet.lines, strict=True):
        assert line["height_px"] == pytest.approx(14, abs=1.5)
        assert all(abs(a - b) <= 6 for a, b in zip(line["box"], asked["box"], strict=True))


def test_level_print_and_pictures_with_hardly_any_are_not_turned(tmp_path: Path) -> None:
    sheet = Sheet(tmp_path)
    sheet.paragraph(14)
    assert tilt(print_shapes(np.asarray(sheet.image, np.uint8))) == 0.0
    assert tilt(print_shapes(np.zeros((100, 100, 3), np.uint8))) == 0.0
    assert tilt(print_shapes(np.zeros((3, 100, 3), np.uint8))) == 0.0
    assert not Levelled((100, 100), 0.0).turned


def test_a_tile_inside_a_larger_picture_is_told_in_pixels_of_the_picture(tmp_path: Path) -> None:
    sheet = Sheet(tmp_path)
    sheet.text((60, 20), BODY[1], 16)
    box = sheet.text((160, 300), BODY[0], 16)
    found = sheet.settle(sheet.lines[1:], rect=(100, 200, 1000, 420))
    assert all(abs(a - b) <= 3 for a, b in zip(found["lines"][0]["box"], box, strict=True))
    assert found["ink"] == []
    (ink,) = sheet.settle([], rect=(100, 200, 1000, 420))["ink"]
    assert share_covered(box, [ink]) > 0.6


@pytest.mark.parametrize("size", [(1, 1), (1, 400), (400, 1), (5, 5)])
def test_tiny_pictures_are_settled_without_complaint(tmp_path: Path, size: tuple[int, int]) -> None:
    found = Sheet(tmp_path, size).settle([{"text": "가", "box": [0, 0, 5, 5], "confidence": 0.9}])
    assert found == {"lines": [], "ink": [], "invented": 1}
