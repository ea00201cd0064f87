"""The plan covers every pixel, keeps its limits, and is balanced, for any size."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.tiling import OCR_TILES, Box, TileLimit, plan_tiles

SIDES = st.one_of(st.integers(1, 3000), st.integers(1, 200_000))
LIMITS = st.builds(
    TileLimit,
    max_width_px=st.integers(1, 4000),
    max_height_px=st.integers(1, 4000),
    max_pixels=st.integers(1, 4_000_000),
    overlap_x_px=st.integers(0, 500),
    overlap_y_px=st.integers(0, 500),
)


def spans(tiles: list[Box], axis: int) -> list[tuple[int, int]]:
    return sorted({(tile[axis], tile[axis + 2]) for tile in tiles})


def assert_covers(intervals: list[tuple[int, int]], length: int) -> None:
    reached = 0
    for start, end in intervals:
        assert start <= reached
        reached = max(reached, end)
    assert intervals[0][0] == 0
    assert reached == length == intervals[-1][1]


@given(width=SIDES, height=SIDES)
def test_every_pixel_is_in_a_tile_and_no_tile_is_larger_than_the_limit(width: int, height: int) -> None:
    tiles = plan_tiles(width, height)
    columns, rows = spans(tiles, 0), spans(tiles, 1)
    assert len(tiles) == len(columns) * len(rows)  # a full grid, so covering each axis covers the picture
    assert_covers(columns, width)
    assert_covers(rows, height)
    for x0, y0, x1, y1 in tiles:
        assert 0 < x1 - x0 <= OCR_TILES.max_width_px
        assert 0 < y1 - y0 <= OCR_TILES.max_height_px
        assert (x1 - x0) * (y1 - y0) <= OCR_TILES.max_pixels


@given(width=st.integers(1, 2000), height=st.integers(1, 2000), limit=LIMITS)
def test_any_limit_is_kept_even_where_the_overlap_does_not_fit_it(width: int, height: int, limit: TileLimit) -> None:
    if min(limit.max_width_px, limit.max_height_px) < 40 or limit.max_pixels < 40_000:
        limit = TileLimit(max(40, limit.max_width_px), max(40, limit.max_height_px), 40_000, 16, 300)
    tiles = plan_tiles(width, height, limit)
    assert_covers(spans(tiles, 0), width)
    assert_covers(spans(tiles, 1), height)
    for x0, y0, x1, y1 in tiles:
        assert x1 - x0 <= limit.max_width_px
        assert y1 - y0 <= limit.max_height_px
        assert (x1 - x0) * (y1 - y0) <= limit.max_pixels


@given(width=SIDES, height=SIDES)
def test_neighbours_overlap_by_what_a_line_needs(width: int, height: int) -> None:
    tiles = plan_tiles(width, height)
    for axis, overlap in ((0, OCR_TILES.overlap_x_px), (1, OCR_TILES.overlap_y_px)):
        intervals = spans(tiles, axis)
        for (_, end), (start, _) in pairwise(intervals):
            assert end - start >= overlap - 1


@given(width=SIDES, height=SIDES)
def test_all_tiles_have_the_same_size(width: int, height: int) -> None:
    assert len({(x1 - x0, y1 - y0) for x0, y0, x1, y1 in plan_tiles(width, height)}) == 1


def test_pages_as_they_come_are_never_cut_from_top_to_bottom() -> None:
    assert len(plan_tiles(1240, 1754)) == 2  # A4 at 150 dpi
    assert len(plan_tiles(1080, 3600)) == 4
    assert {(x0, x1) for x0, _, x1, _ in plan_tiles(1916, 19_983)} == {(0, 1916)}


def test_a_limit_of_one_pixel_gives_one_tile_a_pixel() -> None:
    assert len(plan_tiles(5, 4, TileLimit(1, 1, 1, 10, 10))) == 20


@pytest.mark.parametrize(("width", "height"), [(0, 5), (5, 0), (-1, 5)])
def test_a_picture_without_pixels_is_refused_with_its_size(width: int, height: int) -> None:
    with pytest.raises(WorkerError, match=rf"bad_picture_size.*{width} x {height}"):
        plan_tiles(width, height)


def test_a_limit_without_pixels_is_refused() -> None:
    with pytest.raises(WorkerError, match="bad_picture_size"):
        plan_tiles(5, 5, TileLimit(0, 10, 100, 1, 1))
