"""Which rectangles of a page are looked at: nothing that needs reading is left out, and requests are few."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.engines.ports import Box
from sam2_mcp_worker.media.tiling import claude_tiles, plan_tiles
from sam2_mcp_worker.pipelines.page_tiles import MIN_SIDE_PX, PageTile, tiles_of_areas, tiles_of_whole_page

LIMIT = claude_tiles(1568, 1568)


def inside(inner: Box, outer: Box) -> bool:
    return outer[0] <= inner[0] and outer[1] <= inner[1] and outer[2] >= inner[2] and outer[3] >= inner[3]


@st.composite
def pages(draw: st.DrawFn) -> tuple[list[Box], list[Box]]:
    """A plan, and areas each inside one of its tiles."""
    plan = plan_tiles(draw(st.integers(1, 6000)), draw(st.integers(1, 9000)), LIMIT)
    areas = []
    for _ in range(draw(st.integers(0, 8))):
        x0, y0, x1, y1 = draw(st.sampled_from(plan))
        left, top = draw(st.integers(x0, x1 - 1)), draw(st.integers(y0, y1 - 1))
        areas.append((left, top, draw(st.integers(left + 1, x1)), draw(st.integers(top + 1, y1))))
    return plan, areas


@given(pages())
def test_one_request_a_tile_covers_all_areas_and_stays_within_the_limit(page: tuple[list[Box], list[Box]]) -> None:
    plan, areas = page
    tiles = tiles_of_areas(plan, areas, one_each=True)
    assert len(tiles) <= min(len(plan), len(areas))
    for area in areas:
        assert any(inside(area, tile.rect_xyxy_px) for tile in tiles)
    for tile in tiles:
        x0, y0, x1, y1 = tile.rect_xyxy_px
        (around, *_) = [whole for whole in plan if inside(tile.rect_xyxy_px, whole)]
        assert tile.text
        assert LIMIT.holds(x1 - x0, y1 - y0)
        assert x1 - x0 >= min(MIN_SIDE_PX, around[2] - around[0])
        assert y1 - y0 >= min(MIN_SIDE_PX, around[3] - around[1])


@given(pages())
def test_a_page_looked_at_for_regions_is_seen_whole_and_its_text_read_where_it_is_not_known(
    page: tuple[list[Box], list[Box]],
) -> None:
    plan, areas = page
    tiles = tiles_of_whole_page(plan, areas)
    assert [tile.rect_xyxy_px for tile in tiles] == plan
    for area in areas:
        assert any(tile.text and inside(area, tile.rect_xyxy_px) for tile in tiles)
    assert sum(tile.text for tile in tiles) <= len(areas)


def test_where_reading_is_free_each_area_is_read_by_itself() -> None:
    areas = [(10, 10, 60, 30), (10, 50, 60, 70)]
    assert tiles_of_areas([(0, 0, 500, 500)], areas, one_each=False) == [PageTile(area) for area in areas]
    assert tiles_of_areas([(0, 0, 500, 500)], areas, one_each=True) == [PageTile((0, 0, 256, 256))]
