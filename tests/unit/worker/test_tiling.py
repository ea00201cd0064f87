"""The plan covers every pixel, keeps its limits, and is balanced, for any size."""

from __future__ import annotations

from itertools import pairwise
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.tiling import OCR_TILES, Box, TileLimit, claude_tiles, halves, plan_tiles

Size = tuple[int, int]
SIDES = st.one_of(st.integers(1, 3000), st.integers(1, 200_000))
LIMITS = st.builds(
    TileLimit,
    max_width_px=st.integers(1, 4000),
    max_height_px=st.integers(1, 4000),
    max_pixels=st.integers(1, 4_000_000),
    overlap_x_px=st.integers(0, 500),
    overlap_y_px=st.integers(0, 500),
)
CLAUDE = claude_tiles(1568, 1568)
CLAUDE_LIMITS = st.builds(claude_tiles, st.integers(64, 8000), st.integers(16, 10_000))


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


def patches(tile: Box) -> int:
    return ceil((tile[2] - tile[0]) / 28) * ceil((tile[3] - tile[1]) / 28)


@given(width=SIDES, height=SIDES)
def test_no_tile_for_claude_is_above_its_sides_and_tokens(width: int, height: int) -> None:
    tiles = plan_tiles(width, height, CLAUDE)
    assert_covers(spans(tiles, 0), width)
    assert_covers(spans(tiles, 1), height)
    assert max(max(x1 - x0, y1 - y0) for x0, y0, x1, y1 in tiles) <= 1568
    assert max(map(patches, tiles)) <= 1568
    assert all(CLAUDE.holds(x1 - x0, y1 - y0) for x0, y0, x1, y1 in tiles[:3])


@given(width=st.integers(1, 6000), height=st.integers(1, 6000), limit=CLAUDE_LIMITS)
def test_any_setting_for_claude_is_kept(width: int, height: int, limit: TileLimit) -> None:
    tiles = plan_tiles(width, height, limit)
    assert_covers(spans(tiles, 0), width)
    assert_covers(spans(tiles, 1), height)
    assert limit.max_patches is not None
    assert max(map(patches, tiles)) <= limit.max_patches
    assert max(max(x1 - x0, y1 - y0) for x0, y0, x1, y1 in tiles) <= limit.max_width_px


@given(
    width=SIDES,
    height=SIDES,
    limit=st.builds(
        TileLimit,
        max_width_px=st.integers(300, 9000),
        max_height_px=st.integers(300, 9000),
        max_pixels=st.integers(90_000, 4_000_000),
        overlap_x_px=st.integers(0, 320),
        overlap_y_px=st.integers(0, 150),
        patch_px=st.integers(1, 56),
        max_patches=st.one_of(st.none(), st.integers(64, 5000)),
    ),
)
def test_every_kind_of_limit_is_kept_together_with_all_others(width: int, height: int, limit: TileLimit) -> None:
    if limit.max_patches is not None and limit.max_patches * limit.patch_px**2 < 40_000:
        return  # millions of tiles
    tiles = plan_tiles(width, height, limit)
    assert_covers(spans(tiles, 0), width)
    assert_covers(spans(tiles, 1), height)
    assert all(limit.holds(x1 - x0, y1 - y0) for x0, y0, x1, y1 in (tiles[0], tiles[-1]))


@pytest.mark.parametrize(
    ("size", "limit"),
    [
        ((11, 10), TileLimit(10, 99, 9999, 0, 0)),
        ((10, 11), TileLimit(99, 10, 9999, 0, 0)),
        ((11, 10), TileLimit(99, 99, 109, 0, 0)),
        ((29, 28), TileLimit(99, 99, 9999, 0, 0, patch_px=28, max_patches=1)),
    ],
)
def test_a_tile_above_any_one_limit_is_not_held(size: Size, limit: TileLimit) -> None:
    assert not limit.holds(*size)
    assert len(plan_tiles(*size, limit)) > 1


@given(width=SIDES, height=SIDES)
def test_long_lines_are_cut_as_seldom_as_the_sides_allow(width: int, height: int) -> None:
    columns = len(spans(plan_tiles(width, height, CLAUDE), 0))
    assert columns == (1 if width <= 1568 else ceil((width - 320) / (1568 - 320)))


@given(limit=CLAUDE_LIMITS, width=st.integers(1, 9000))
def test_no_tile_is_too_low_for_two_lines_where_a_square_one_would_not_be(limit: TileLimit, width: int) -> None:
    _, y0, _, y1 = plan_tiles(width, 9000, limit)[0]
    assert limit.max_patches is not None
    square = int(limit.max_patches**0.5) * 28
    # Tiles are balanced, which makes those of a tall picture a little lower than they could be.
    assert y1 - y0 >= 0.9 * min(2 * limit.overlap_y_px, square, limit.max_height_px)


def test_the_pages_that_were_lost_in_the_field_need_few_tiles() -> None:
    assert {(x0, x1) for x0, _, x1, _ in plan_tiles(1240, 1754, CLAUDE)} == {(0, 1240)}
    assert len(plan_tiles(1240, 1754, CLAUDE)) == 2
    assert len(plan_tiles(1916, 19_983, CLAUDE)) == 42
    assert len(plan_tiles(2250, 3000, CLAUDE)) == 8
    assert len(plan_tiles(1000, 120_000, CLAUDE)) == 112
    assert len(plan_tiles(1, 120_000, CLAUDE)) == 84


@given(width=st.integers(1, 3000), height=st.integers(1, 3000), limit=st.one_of(st.just(CLAUDE), LIMITS))
def test_halves_cover_the_whole_and_are_smaller_until_nothing_is_left_to_halve(
    width: int, height: int, limit: TileLimit
) -> None:
    rect = (7, 11, 7 + width, 11 + height)
    parts = halves(rect, limit)
    if not parts:
        assert height <= max(1, 2 * limit.overlap_y_px)
        assert width <= max(1, 2 * limit.overlap_x_px)
        return
    first, second = parts
    assert (min(first[0], second[0]), min(first[1], second[1])) == rect[:2]
    assert (max(first[2], second[2]), max(first[3], second[3])) == rect[2:]
    axis = 1 if height > max(1, 2 * limit.overlap_y_px) else 0
    shared = first[axis + 2] - second[axis]
    assert shared >= (limit.overlap_y_px if axis else limit.overlap_x_px)
    for part in parts:
        assert part[axis + 2] - part[axis] < rect[axis + 2] - rect[axis]
        assert (part[1 - axis], part[3 - axis]) == (rect[1 - axis], rect[3 - axis])


@pytest.mark.parametrize("limit", [TileLimit(9, 9, 9, 1, 1, patch_px=0), TileLimit(9, 9, 9, 1, 1, max_patches=0)])
def test_a_limit_without_patches_is_refused(limit: TileLimit) -> None:
    with pytest.raises(WorkerError, match="bad_picture_size"):
        plan_tiles(5, 5, limit)
