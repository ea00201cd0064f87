"""Run lengths of masks: plain, compressed, and of the size of the object rather than of the picture."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.masks import tight_mask
from sam2_mcp_worker.media.rle import coco_rle, compress_runs, decode_runs, encode_runs, expand_runs


def counted(picture: NDArray[np.bool_]) -> list[int]:
    """Runs down the columns, outside first, counted one pixel at a time."""
    runs = [0]
    state = False
    for value in picture.T.ravel().tolist():
        if value != state:
            runs.append(0)
            state = value
        runs[-1] += 1
    return runs


@st.composite
def pictures(draw: st.DrawFn) -> NDArray[np.bool_]:
    height, width = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    share = draw(st.sampled_from((0, 0.1, 0.5, 0.9, 1)))
    return np.random.default_rng(draw(st.integers(0, 2**31))).random((height, width)) < share


@given(pictures())
def test_runs_are_those_of_the_whole_picture_and_come_back(picture: NDArray[np.bool_]) -> None:
    size = (picture.shape[1], picture.shape[0])
    mask = tight_mask(picture, (0, 0))
    runs = encode_runs(mask.inside, mask.box_xyxy_px, size)
    assert runs == counted(picture)
    back = decode_runs(runs, size)
    assert back.box_xyxy_px == mask.box_xyxy_px
    assert np.array_equal(back.inside, mask.inside)


@given(st.lists(st.integers(0, 2**33), max_size=12))
def test_compressed_runs_come_back(runs: list[int]) -> None:
    text = compress_runs(runs)
    assert text.isascii()
    assert text.isprintable()
    assert expand_runs(text) == runs


@pytest.mark.parametrize(
    ("runs", "counts"),
    [
        # As pycocotools 2.0.11 writes them.
        ([12], "<"),
        ([0, 12], "0<"),
        ([5, 2, 3, 2, 3, 2, 103], "523000T3"),
        ([100, 40, 60, 1, 999], "T3X1l1iN[m0"),
    ],
)
def test_the_string_is_the_one_that_coco_tools_read(runs: list[int], counts: str) -> None:
    assert compress_runs(runs) == counts
    assert expand_runs(counts) == runs


def test_a_coco_object_names_height_before_width() -> None:
    mask = tight_mask(np.ones((2, 1), bool), (3, 1))
    assert coco_rle(mask, (5, 4)) == {"size": [4, 5], "counts": compress_runs([13, 2, 5])}


@pytest.mark.parametrize("runs", [[], [5], [3, -1, 10], [13]])
def test_runs_that_do_not_fill_the_picture_are_refused(runs: list[int]) -> None:
    with pytest.raises(WorkerError, match="rle_invalid"):
        decode_runs(runs, (4, 3))


@pytest.mark.parametrize("counts", ["P", "0 ", "é"])
def test_strings_that_no_mask_gives_are_refused(counts: str) -> None:
    with pytest.raises(WorkerError, match="rle_invalid"):
        expand_runs(counts)


def test_a_small_object_of_a_huge_picture_costs_little() -> None:
    tracemalloc.start()
    runs = encode_runs(np.ones((3, 2), bool), (11_000, 5, 11_002, 8), (12_000, 9_000))
    mask = decode_runs(runs, (12_000, 9_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert runs == [11_000 * 9_000 + 5, 3, 8_997, 3, 998 * 9_000 + 8_992]
    assert mask.box_xyxy_px == (11_000, 5, 11_002, 8)
    assert peak < 2**20
