"""Masks cross the border between child and server as JSON and come out the same."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from sam2_mcp_worker.engines.mask_output import describe_mask, write_mask
from sam2_mcp_worker.engines.mask_wire import box_from_json, mask_from_json, mask_to_json
from sam2_mcp_worker.engines.ports import ObjectMask, ObjectPrompt, Polygon
from sam2_mcp_worker.engines.sam_predictor import MaskLogits, prompt_from_params
from sam2_mcp_worker.media.masks import Mask, load_mask

FOUND = ObjectMask(
    box_xyxy_px=(1, 2, 30, 40),
    mask_path=Path("m.png"),
    area_px=500,
    predicted_iou=0.9312,
    stability=0.875,
    touches_border=False,
    polygons=(Polygon(((1, 2), (30, 2), (30, 40)), (((5, 6), (7, 6), (7, 9)),)), Polygon(((1, 2), (3, 4), (1, 5)))),
    polygon_tolerance_px=1.5,
)
BLANK = ObjectMask(None, None, 0, 0.0, 0.0, False, (), 0.0)


@pytest.mark.parametrize("mask", [FOUND, BLANK])
def test_masks_come_back_through_json(mask: ObjectMask) -> None:
    assert mask_from_json(json.loads(json.dumps(mask_to_json(mask), allow_nan=False))) == mask
    assert mask.blank is (mask is BLANK)


@pytest.mark.parametrize("prompt", [ObjectPrompt((1, 2, 3, 4)), ObjectPrompt(None, ((5, 6, True), (7, 8, False)))])
def test_prompts_come_back_through_json(prompt: ObjectPrompt) -> None:
    assert prompt_from_params(json.loads(json.dumps(prompt.to_params()))) == prompt


def test_a_box_is_a_tuple_and_none_is_none() -> None:
    assert box_from_json([1, 2, 3, 4]) == (1, 2, 3, 4)
    assert box_from_json(None) is None


def test_logits_become_a_file_and_a_description(tmp_path: Path) -> None:
    logits = np.full((4, 4), -5, np.float32)
    logits[1:3, 1:3] = 5
    answer = mask_from_json(write_mask(MaskLogits(logits, 0.9), (40, 40), tmp_path / "m.png"))
    assert answer.box_xyxy_px == (10, 10, 30, 30)
    assert answer.mask_path is not None
    inside = load_mask(answer.mask_path)
    assert inside.shape == (20, 20)
    assert answer.area_px == np.count_nonzero(inside)
    assert (answer.predicted_iou, answer.touches_border, len(answer.polygons)) == (0.9, False, 1)
    assert 0.5 < answer.stability < 1


def test_a_mask_of_a_window_lies_where_the_window_lies(tmp_path: Path) -> None:
    logits = np.full((4, 4), 5, np.float32)
    answer = mask_from_json(write_mask(MaskLogits(logits, 1.0), (40, 40), tmp_path / "m.png", (30, 10, 40, 20)))
    assert answer.box_xyxy_px == (30, 10, 40, 20)
    assert answer.touches_border
    assert set(answer.polygons[0].outer) == {(30, 10), (40, 10), (40, 20), (30, 20)}


def test_a_blank_mask_writes_no_file_and_no_score_is_claimed_for_it(tmp_path: Path) -> None:
    answer = write_mask(MaskLogits(np.full((4, 4), -5, np.float32), 0.9), (40, 40), tmp_path / "m.png")
    assert mask_from_json(answer) == BLANK
    assert not list(tmp_path.iterdir())


def test_a_score_that_is_no_number_is_none(tmp_path: Path) -> None:
    mask = Mask((0, 0, 1, 1), np.ones((1, 1), bool), 1, 1.0)
    assert describe_mask(mask, float("nan"), (2, 2), tmp_path / "m.png").predicted_iou == 0.0
