"""Small prompts in huge pictures are looked at in windows of native resolution."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.engines.embed_windows import (
    WHOLE_SIDE_PX,
    WINDOW_SIDE_PX,
    extent,
    first_window,
    inside_window,
    prompts_per_step,
    runs_out,
    whole,
    wider_window,
)
from sam2_mcp_worker.engines.ports import Box, ObjectPrompt

Size = tuple[int, int]


@st.composite
def sized_prompts(draw: st.DrawFn) -> tuple[Size, ObjectPrompt]:
    width, height = draw(st.integers(1, 20_000)), draw(st.integers(1, 20_000))
    points = st.tuples(st.integers(0, width - 1), st.integers(0, height - 1), st.booleans())
    some = tuple(draw(st.lists(points, max_size=3)))
    if some and draw(st.booleans()):
        return (width, height), ObjectPrompt(None, some)
    x0, y0 = draw(st.integers(0, width - 1)), draw(st.integers(0, height - 1))
    box = (x0, y0, draw(st.integers(x0 + 1, width)), draw(st.integers(y0 + 1, height)))
    return (width, height), ObjectPrompt(box, some)


def holds(outer: Box, inner: Box) -> bool:
    return outer[0] <= inner[0] and outer[1] <= inner[1] and outer[2] >= inner[2] and outer[3] >= inner[3]


@given(sized_prompts())
def test_windows_lie_in_the_picture_hold_the_prompt_and_grow_to_all_of_it(case: tuple[Size, ObjectPrompt]) -> None:
    size, prompt = case
    window = first_window(prompt, size)
    seen = 0
    while window != whole(size):
        assert holds(whole(size), window)
        assert holds(window, extent(prompt))
        x0, y0, x1, y1 = window
        assert (x1 - x0 == size[0] or x1 - x0 >= WINDOW_SIDE_PX) and (y1 - y0 == size[1] or y1 - y0 >= WINDOW_SIDE_PX)
        window = wider_window(window, prompt, size)
        seen += 1
    assert seen <= 2  # so that one object never costs more than three embeddings


@given(sized_prompts())
def test_pictures_of_ordinary_size_are_embedded_whole(case: tuple[Size, ObjectPrompt]) -> None:
    size, prompt = case
    if max(size) <= WHOLE_SIDE_PX:
        assert first_window(prompt, size) == whole(size)
        assert prompts_per_step(size) == 4
    else:
        assert prompts_per_step(size) == 1


def test_prompts_close_together_share_a_window() -> None:
    size = (12_000, 9_000)
    assert first_window(ObjectPrompt((5000, 5000, 5030, 5040)), size) == first_window(
        ObjectPrompt(None, ((5040, 5020, True),)), size
    )


def test_prompts_are_moved_into_their_window() -> None:
    prompt = ObjectPrompt((110, 220, 130, 240), ((115, 225, True), (112, 239, False)))
    assert inside_window(prompt, (100, 200, 300, 400)) == ObjectPrompt(
        (10, 20, 30, 40), ((15, 25, True), (12, 39, False))
    )


@pytest.mark.parametrize(
    ("mask", "out"),
    [
        (None, False),
        ((110, 110, 190, 140), False),
        ((100, 110, 190, 140), True),
        ((110, 0, 190, 140), False),
        ((110, 110, 200, 140), True),
        ((110, 110, 190, 150), True),
    ],
)
def test_only_edges_inside_the_picture_cut_an_object(mask: Box | None, out: bool) -> None:
    assert runs_out(mask, (100, 0, 200, 150), (1000, 1000)) is out


def test_an_edge_of_the_picture_cuts_nothing() -> None:
    size = (200, 200)
    assert not runs_out((120, 120, 200, 200), (100, 100, 200, 200), size)
    assert runs_out((100, 120, 200, 200), (100, 100, 200, 200), size)
    assert not runs_out((0, 0, 200, 200), (0, 0, 200, 200), size)
