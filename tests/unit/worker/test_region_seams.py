"""Objects seen by overlapping tiles come out once each, whole, and neighbours stay apart."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sam2_mcp_worker.media.region_seams import merge_regions, with_text_heights
from sam2_mcp_worker.media.tiling import Box, claude_tiles, halves, plan_tiles

LABELS = ("coin", "seal")


@dataclass(frozen=True)
class Seen:
    label: str
    box_xyxy_px: Box
    confidence: float = 0.9
    text_height_px: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Line:
    box_xyxy_px: Box
    height_px: float


def seen_by(tile: Box, objects: list[Seen], rng: Random, off_px: int) -> list[Seen]:
    """What a model reports of one tile: the parts of objects inside it, corners a little off, slivers overlooked."""
    seen = []
    for thing in objects:
        x0, y0, x1, y1 = thing.box_xyxy_px
        part = (max(x0, tile[0]), max(y0, tile[1]), min(x1, tile[2]), min(y1, tile[3]))
        if min(part[2] - part[0], part[3] - part[1]) < 24:
            continue
        a, b, c, d = (edge + rng.randint(-off_px, off_px) for edge in part)
        seen.append(
            Seen(thing.label, (max(a, tile[0]), max(b, tile[1]), min(c, tile[2]), min(d, tile[3])), rng.random())
        )
    return seen


def grid_of_objects(width: int, height: int, rng: Random) -> list[Seen]:
    """Objects of 60-700 px in a grid, at least 20 px apart."""
    objects = []
    cell_w, cell_h = rng.randint(120, 800), rng.randint(120, 800)
    for top in range(0, height - cell_h, cell_h):
        for left in range(0, width - cell_w, cell_w):
            box = (
                left + rng.randint(10, 30),
                top + rng.randint(10, 30),
                left + cell_w - rng.randint(10, 30),
                top + cell_h - rng.randint(10, 30),
            )
            objects.append(Seen(rng.choice(LABELS), box))
    return objects


def near(a: Box, b: Box, px: int) -> bool:
    return all(abs(one - other) <= px for one, other in zip(a, b, strict=True))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**9),
    width=st.integers(60, 5000),
    height=st.integers(60, 6000),
    off_px=st.integers(0, 5),
    side=st.sampled_from([1568, 1000]),
)
def test_every_object_comes_out_once_and_whole(seed: int, width: int, height: int, off_px: int, side: int) -> None:
    rng = Random(seed)
    objects = grid_of_objects(width, height, rng)
    tiles = plan_tiles(width, height, claude_tiles(side, 1568))
    merged = merge_regions(tiles, [seen_by(tile, objects, rng, off_px) for tile in tiles])
    # A sliver of an object may be all that a tile shows, and is overlooked: then that side is short by as much.
    assert len(merged) == len(objects)
    for thing in objects:
        assert [m for m in merged if m.label == thing.label and near(m.box_xyxy_px, thing.box_xyxy_px, 24 + off_px)]


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**9), off_px=st.integers(0, 4))
def test_halves_of_a_tile_give_what_the_tile_would_have(seed: int, off_px: int) -> None:
    rng = Random(seed)
    objects = grid_of_objects(1568, 784, rng)
    tiles = halves((0, 0, 1568, 784), claude_tiles(1568, 1568))
    merged = merge_regions(tiles, [seen_by(tile, objects, rng, off_px) for tile in tiles])
    assert len(merged) == len(objects)


def test_a_single_tile_is_given_back_as_it_is_from_the_top_down() -> None:
    low, high = Seen("coin", (0, 50, 9, 60)), Seen("seal", (5, 0, 9, 9), text_height_px=12.0)
    assert merge_regions([(0, 0, 100, 100)], [[low, high]]) == [high, low]


def test_neighbours_of_one_label_in_the_overlap_of_two_tiles_stay_two() -> None:
    tiles = [(0, 0, 600, 600), (400, 0, 1000, 600)]
    coins = [Seen("coin", (420, 100, 480, 160)), Seen("coin", (484, 100, 544, 160))]
    assert merge_regions(tiles, [coins, coins]) == coins


def test_things_that_overlap_meet_themselves_first_and_not_each_other() -> None:
    tiles = [(0, 0, 600, 600), (400, 0, 1000, 600)]
    notes = [Seen("note", (420, 100, 520, 200)), Seen("note", (440, 100, 540, 200))]
    assert merge_regions(tiles, [notes, notes]) == notes


def test_two_things_that_one_tile_tells_apart_are_never_united_by_another_that_sees_one() -> None:
    tiles = [(0, 0, 600, 600), (400, 0, 1000, 600)]
    notes = [Seen("note", (420, 100, 520, 200)), Seen("note", (430, 110, 530, 210))]
    merged = merge_regions(tiles, [notes, [Seen("note", (424, 104, 526, 206), 0.99)]])
    assert len(merged) == 2


def test_different_labels_of_one_place_stay_two() -> None:
    tiles = [(0, 0, 600, 600), (400, 0, 1000, 600)]
    assert len(merge_regions(tiles, [[Seen("coin", (420, 9, 480, 70))], [Seen("seal", (420, 9, 480, 70))]])) == 2


def test_an_object_larger_than_the_overlap_is_united_from_its_pieces() -> None:
    tiles = plan_tiles(4000, 600, claude_tiles(1000, 1568))
    whole = Seen("banner", (100, 50, 3900, 500))
    (merged,) = merge_regions(tiles, [seen_by(tile, [whole], Random(1), 3) for tile in tiles])
    assert near(merged.box_xyxy_px, whole.box_xyxy_px, 3)


def test_pieces_on_both_sides_of_a_seam_without_overlap_are_united_and_strangers_are_not() -> None:
    tiles = [(0, 0, 500, 500), (500, 0, 1000, 500)]
    left, right = Seen("coin", (450, 100, 500, 200), 0.5), Seen("coin", (503, 104, 560, 204), 0.8)
    stranger = Seen("coin", (500, 300, 560, 400))
    merged = merge_regions(tiles, [[left], [right, stranger]])
    assert [m.box_xyxy_px for m in merged] == [(450, 100, 560, 204), (500, 300, 560, 400)]
    assert merged[0].confidence == 0.8


def test_the_end_of_an_object_that_a_tile_took_for_a_small_one_is_no_object_of_its_own() -> None:
    tiles = [(0, 0, 600, 600), (400, 0, 1000, 600)]
    whole, end = Seen("coin", (200, 100, 560, 460), 0.9), Seen("coin", (400, 150, 470, 380), 0.4)
    (merged,) = merge_regions(tiles, [[whole], [end]])
    assert merged.box_xyxy_px == whole.box_xyxy_px


def test_the_surest_whole_sight_gives_box_and_other_fields_and_the_smallest_text_counts() -> None:
    tiles = [(0, 0, 600, 600), (400, 0, 1000, 600)]
    one = Seen("seal", (420, 100, 520, 200), 0.7, 14.0, "one")
    other = Seen("seal", (421, 101, 524, 200), 0.8, 11.0, "other")
    (merged,) = merge_regions(tiles, [[one], [other]])
    assert merged == Seen("seal", other.box_xyxy_px, 0.8, 11.0, "other")
    (unmeasured,) = merge_regions(tiles, [[Seen("seal", one.box_xyxy_px)], [Seen("seal", one.box_xyxy_px)]])
    assert unmeasured.text_height_px is None


def test_whole_sights_that_differ_much_beyond_what_both_tiles_saw_are_taken_together() -> None:
    tiles = [(0, 0, 600, 600), (500, 0, 1100, 600)]
    short, long = Seen("coin", (300, 100, 560, 200), 0.9), Seen("coin", (515, 100, 560, 200), 0.8)
    (merged,) = merge_regions(tiles, [[short], [long]])
    assert merged.box_xyxy_px == (300, 100, 560, 200)


def test_a_tile_where_nobody_looked_leaves_its_neighbours_pieces_as_they_are() -> None:
    tiles = [(0, 0, 600, 600), (400, 0, 1000, 600)]
    piece = Seen("coin", (550, 100, 600, 200))
    assert merge_regions(tiles, [[piece], None]) == [piece]
    assert merge_regions(tiles, [None, None]) == []


@pytest.mark.parametrize(
    ("heights", "smallest"), [([(30, 12.0), (60, 9.0)], 9.0), ([(30, 0.0)], None), ([], None), ([(500, 5.0)], None)]
)
def test_a_region_is_told_the_smallest_text_inside_it(heights: list[tuple[int, float]], smallest: float | None) -> None:
    lines = [Line((10, y - 5, 90, y + 5), height) for y, height in heights]
    (region,) = with_text_heights([Seen("seal", (0, 0, 100, 100), text_height_px=3.0)], lines)
    assert region.text_height_px == smallest
