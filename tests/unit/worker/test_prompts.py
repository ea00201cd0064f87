"""Prompts: every object gets what was said of it, and slips are named with the rule and the size."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.engines.ports import ObjectPrompt
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.pipelines.prompts import (
    MAX_OBJECTS,
    MAX_POINTS_PER_OBJECT,
    MarkedPoint,
    PictureSize,
    Prompts,
    object_prompts,
)

SIZE = PictureSize(640, 480)
BOX = [10, 20, 110, 220]


def refused(boxes: list[list[int]], points: list[MarkedPoint], size: PictureSize = SIZE) -> WorkerError:
    with pytest.raises(WorkerError) as caught:
        object_prompts(boxes, points, size)
    return caught.value


def test_object_n_is_box_n_and_points_join_their_object_or_open_the_next_one() -> None:
    points = [MarkedPoint(2, 300, 300), MarkedPoint(1, 50, 60, False), MarkedPoint(3, 5, 6), MarkedPoint(3, 7, 8)]
    assert object_prompts([BOX, [200, 200, 400, 400]], points, SIZE) == Prompts(
        (
            ObjectPrompt((10, 20, 110, 220), ((50, 60, False),)),
            ObjectPrompt((200, 200, 400, 400), ((300, 300, True),)),
            ObjectPrompt(None, ((5, 6, True), (7, 8, True))),
        )
    )


@pytest.mark.parametrize(
    ("boxes", "points", "code", "said"),
    [
        ([], [], "prompt_missing", "boxes [[x0, y0, x1, y1], ...]"),
        ([[110, 20, 10, 220]], [], "box_invalid", "box 1 [110, 20, 10, 220]"),
        ([BOX, [10, 20, 10, 220]], [], "box_invalid", "box 2"),
        ([[700, 20, 800, 220]], [], "prompt_outside", "640 x 480"),
        ([[-300, 20, 100, 220]], [], "prompt_outside", "partly outside"),
        ([], [MarkedPoint(1, 640, 10)], "prompt_outside", "640 x 480"),
        ([BOX], [MarkedPoint(1, -1, 10)], "prompt_outside", "(-1, 10)"),
        ([], [MarkedPoint(1, 10, 10, False)], "point_missing", "object 1"),
        ([BOX], [MarkedPoint(3, 10, 10)], "object_number_gap", "object 2"),
        ([BOX] * (MAX_OBJECTS + 1), [], "too_many_objects", str(MAX_OBJECTS)),
        ([], [MarkedPoint(10**300, 1, 1)], "too_many_objects", str(MAX_OBJECTS)),
        ([BOX], [MarkedPoint(1, 1, 1)] * (MAX_POINTS_PER_OBJECT + 1), "too_many_points", str(MAX_POINTS_PER_OBJECT)),
        ([[10**300, 0, 10**301, 10]], [], "prompt_outside", "640 x 480"),
        ([[0, 0, 10**400, 10]], [], "prompt_outside", "partly outside"),
    ],
)
def test_a_slip_is_named_with_its_value_and_the_rule(
    boxes: list[list[int]], points: list[MarkedPoint], code: str, said: str
) -> None:
    error = refused(boxes, points)
    assert error.code == code
    assert said in error.public_text


def test_the_whole_picture_and_a_single_pixel_are_boxes() -> None:
    assert object_prompts([[0, 0, 640, 480]], [], SIZE).objects[0].box_xyxy_px == (0, 0, 640, 480)
    assert object_prompts([[0, 0, 1, 1]], [MarkedPoint(1, 0, 0)], PictureSize(1, 1)).notes == ()


def test_a_box_that_reaches_a_little_over_the_edge_is_cut_and_that_is_said() -> None:
    prompts = object_prompts([[-10, 400, 100, 500]], [], SIZE)
    assert prompts.objects[0].box_xyxy_px == (0, 400, 100, 480)
    assert prompts.notes == ("box 1 reached over the edge of the picture and was cut to [0, 400, 100, 480]",)


def test_errors_name_what_the_prompts_refer_to() -> None:
    assert (
        "outside the video; the video is 8 x 6"
        in refused([], [MarkedPoint(1, 9, 9)], PictureSize(8, 6, "video")).public_text
    )


coordinates = st.integers(-700, 1400)
marked = st.builds(MarkedPoint, st.integers(1, 6), coordinates, coordinates, st.booleans())


@given(st.lists(st.lists(coordinates, min_size=4, max_size=4), max_size=5), st.lists(marked, max_size=8))
def test_what_is_accepted_lies_in_the_picture_and_keeps_every_point(
    boxes: list[list[int]], points: list[MarkedPoint]
) -> None:
    try:
        prompts = object_prompts(boxes, points, SIZE)
    except WorkerError as error:
        assert len(error.public_text) <= 500
        return
    kept: list[Any] = []
    for number, prompt in enumerate(prompts.objects, start=1):
        assert (prompt.box_xyxy_px is not None) == (number <= len(boxes))
        if prompt.box_xyxy_px is not None:
            x0, y0, x1, y1 = prompt.box_xyxy_px
            assert 0 <= x0 < x1 <= 640
            assert 0 <= y0 < y1 <= 480
        assert prompt.box_xyxy_px is not None or any(positive for _, _, positive in prompt.points)
        kept += [(number, *point) for point in prompt.points]
    assert sorted(kept) == sorted((p.object_number, p.x_px, p.y_px, p.positive) for p in points)
