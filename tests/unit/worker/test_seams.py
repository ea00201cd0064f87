"""What tiles cut comes back whole and once; what none could read is reported as ink."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sam2_mcp_worker.engines.ports import TextLine, TileReading
from sam2_mcp_worker.media import seams
from sam2_mcp_worker.media.seams import _united, join_text, merge_readings
from sam2_mcp_worker.media.tiling import Box, TileLimit, plan_tiles

LIMIT = TileLimit(max_width_px=600, max_height_px=300, max_pixels=600 * 300, overlap_x_px=200, overlap_y_px=64)
GLYPHS = "가나다라마바사아자차카타파하거너더러머버서어저처커터퍼허"


@dataclass(frozen=True)
class Printed:
    """A line as it stands on the page; every glyph `pitch` px wide."""

    text: str
    x: int
    y: int
    height: int
    pitch: int

    @property
    def box(self) -> Box:
        return self.x, self.y, self.x + self.pitch * len(self.text), self.y + self.height


def line(text: str, box: Box, *, height: float | None = None, confidence: float = 0.9) -> TextLine:
    return TextLine(text, box, height if height is not None else float(box[3] - box[1]), confidence)


def seen_by(tile: Box, printed: Printed) -> TextLine | None:
    """What a faithful engine reads in `tile`: whole glyphs right, a cut glyph as something else."""
    x0, y0, x1, y1 = printed.box
    box = (max(x0, tile[0]), max(y0, tile[1]), min(x1, tile[2]), min(y1, tile[3]))
    if box[0] >= box[2] or box[1] >= box[3]:
        return None
    text = ""
    for k, glyph in enumerate(printed.text):
        left, right = x0 + k * printed.pitch, x0 + (k + 1) * printed.pitch
        if left < tile[2] and right > tile[0]:
            text += glyph if tile[0] <= left and right <= tile[2] else "?"
    if box[1] > y0 or box[3] < y1:
        text = "#" * len(text)  # cut lengthways: rubbish
    return line(text, box)


def read_all(tiles: list[Box], page: list[Printed]) -> list[TileReading]:
    return [TileReading(tuple(found for p in page if (found := seen_by(tile, p))), ()) for tile in tiles]


@st.composite
def pages(draw: st.DrawFn) -> tuple[int, int, list[Printed]]:
    """Lines of one to 120 glyphs in rows that do not touch, at any phase to the tiles."""
    width, height = draw(st.integers(300, 2600)), draw(st.integers(100, 1500))
    page: list[Printed] = []
    y = draw(st.integers(0, 90))
    while True:
        tall = draw(st.integers(8, 50))
        if y + tall > height or len(page) > 40:
            return width, height, page
        x = draw(st.integers(0, width // 2))
        pitch = max(4, tall - 2)
        room = (width - x) // pitch
        if room >= 1:
            count = draw(st.integers(1, min(room, 120)))
            start = draw(st.integers(0, len(GLYPHS) - 1))
            text = "".join(GLYPHS[(start + k * 3 + k * k) % len(GLYPHS)] for k in range(count))
            page.append(Printed(text, x, y, tall, pitch))
        y += tall + draw(st.integers(4, 60))


@settings(max_examples=300, deadline=None)
@given(pages())
def test_every_line_comes_back_once_and_whole(page: tuple[int, int, list[Printed]]) -> None:
    width, height, printed = page
    tiles = plan_tiles(width, height, LIMIT)
    merged = merge_readings(tiles, read_all(tiles, printed))
    assert Counter((found.text, found.box_xyxy_px) for found in merged.lines) == Counter(
        (p.text, p.box) for p in printed
    )
    assert merged.undetected_ink == ()


def test_of_two_sights_that_end_alike_each_gives_the_end_that_it_saw_whole() -> None:
    printed = Printed(
        "거머커마거퍼파", 353, 20, 31, 29
    )  # starts 2 px before the second tile, ends 1 px beyond the first
    tiles = [(0, 0, 555, 300), (355, 0, 910, 300)]
    merged = merge_readings(tiles, read_all(tiles, [printed]))
    assert [(found.text, found.box_xyxy_px) for found in merged.lines] == [(printed.text, printed.box)]


@settings(max_examples=60, deadline=None)
@given(pages(), st.data())
def test_a_line_that_no_tile_read_is_reported_as_ink(page: tuple[int, int, list[Printed]], data: st.DataObject) -> None:
    width, height, printed = page
    tiles = plan_tiles(width, height, LIMIT)
    lost = set(data.draw(st.lists(st.sampled_from(range(len(printed))), max_size=5))) if printed else set()
    readings = read_all(tiles, [p for i, p in enumerate(printed) if i not in lost])
    for i in lost:
        for k, tile in enumerate(tiles):
            if found := seen_by(tile, printed[i]):
                ink = (*readings[k].undetected_ink, found.box_xyxy_px)
                readings[k] = replace(readings[k], undetected_ink=ink)
    merged = merge_readings(tiles, readings)
    assert sorted(merged.undetected_ink) == sorted(printed[i].box for i in lost)
    assert len(merged.lines) == len(printed) - len(lost)


def test_a_line_taller_than_the_overlap_is_reported_as_ink_rather_than_read_from_its_halves() -> None:
    tiles = plan_tiles(500, 500, LIMIT)
    headline = Printed("가나다", 10, 180, 140, 100)
    merged = merge_readings(tiles, read_all(tiles, [headline]))
    assert merged.lines == ()
    assert merged.undetected_ink == (headline.box,)


def test_ink_is_explained_by_the_neighbour_that_read_it_but_not_by_a_line_of_the_same_tile() -> None:
    tiles = [(0, 0, 500, 300), (0, 236, 500, 536)]
    read = line("가나다", (10, 250, 200, 280))
    by_neighbour = [TileReading((), ((12, 252, 190, 278),)), TileReading((read,), ())]
    assert merge_readings(tiles, by_neighbour).undetected_ink == ()
    by_itself = [TileReading((), ()), TileReading((read,), ((12, 252, 190, 278),))]
    assert merge_readings(tiles, by_itself).undetected_ink == ((12, 252, 190, 278),)


def test_a_line_cut_by_an_unread_tile_is_reported_as_ink() -> None:
    tiles = [(0, 0, 500, 300), (0, 236, 500, 536)]
    half = TileReading((line("#", (10, 290, 200, 300)), line("가", (10, 10, 30, 30))), ())
    merged = merge_readings(tiles, [half, None])
    assert [found.text for found in merged.lines] == ["가"]
    assert merged.undetected_ink == ((10, 290, 200, 300),)


def test_of_two_sights_of_one_line_the_surer_one_is_kept() -> None:
    tiles = [(0, 0, 500, 300), (0, 236, 500, 536)]
    unsure, sure = line("보혐", (10, 250, 60, 270), confidence=0.6), line("보험", (11, 251, 61, 271), confidence=0.9)
    merged = merge_readings(tiles, [TileReading((unsure,), ()), TileReading((sure,), ())])
    assert merged.lines == (sure,)


def test_neighbouring_table_cells_from_two_tiles_stay_apart() -> None:
    tiles = [(0, 0, 600, 100), (400, 0, 1000, 100)]
    left, right = line("구분", (300, 10, 505, 30)), line("지급금액", (500, 10, 700, 30))
    merged = merge_readings(tiles, [TileReading((left,), ()), TileReading((right,), ())])
    assert [found.text for found in merged.lines] == ["구분", "지급금액"]


def test_what_one_tile_tells_apart_is_never_merged() -> None:
    a, b = line("가", (0, 0, 100, 20)), line("나", (0, 2, 100, 22))
    assert len(merge_readings([(0, 0, 200, 200)], [TileReading((a, b), ())]).lines) == 2


def test_tilted_lines_whose_boxes_overlap_their_neighbours_are_told_apart_by_their_text() -> None:
    tiles = [(0, 0, 700, 200), (300, 0, 1000, 200)]
    # 20 px text, tilted so that the boxes are 50 px high and two lines below each other share half of it.
    upper = line("첫째 줄은 여기에 있습니다", (20, 20, 690, 70), height=20)
    lower = line("둘째", (420, 50, 560, 94), height=20)
    again = line("여기에 있습니다", (380, 30, 690, 68), height=20)
    merged = merge_readings(tiles, [TileReading((upper,), ()), TileReading((lower, again), ())])
    assert [found.text for found in merged.lines] == [upper.text, lower.text]


def test_a_line_that_one_tile_read_in_two_is_joined_with_the_other_tiles_piece() -> None:
    tiles = [(0, 0, 600, 100), (400, 0, 1000, 100)]
    first = line("가나다라마바사아자차", (100, 10, 600, 40))
    second = [line("?사아", (400, 10, 500, 40)), line("자차카타파하", (500, 10, 800, 40))]
    merged = merge_readings(tiles, [TileReading((first,), ()), TileReading(tuple(second), ())])
    assert [found.text for found in merged.lines] == ["가나다라마바사아자차카타파하"]
    assert merged.lines[0].box_xyxy_px == (100, 10, 800, 40)


def test_pieces_are_joined_where_their_boxes_say_even_if_the_text_repeats() -> None:
    left, right = "0000000000", "0000000000"
    assert join_text(left, (0, 0, 100, 10), right, (60, 0, 160, 10)) == "0" * 16


def test_pieces_without_a_common_character_are_set_side_by_side() -> None:
    assert join_text("가나", (0, 0, 20, 10), "다라", (15, 0, 35, 10)) == "가나다라"
    assert join_text("", (0, 0, 20, 10), "다라", (15, 0, 35, 10)) == "다라"


@pytest.mark.parametrize("spoiled", ["가나다라마바사아?", "가나다라마빠사아?"])
def test_a_misread_glyph_in_the_overlap_does_not_double_it(spoiled: str) -> None:
    joined = join_text(spoiled, (0, 0, 90, 10), "?바사아자차카", (40, 0, 110, 10))
    assert joined in ("가나다라마바사아자차카", "가나다라마빠사아자차카")


def test_thousands_of_lines_are_each_compared_with_few() -> None:
    tiles = plan_tiles(1916, 100_000)
    page = [Printed("보험료가 오를 수 있습니다", 50, y, 20, 20) for y in range(5, 99_900, 25)]
    merged = merge_readings(tiles, read_all(tiles, page))
    assert len(merged.lines) == len(page)


def united_slowly(boxes: list[Box]) -> list[Box]:
    """Two boxes at a time, as the rule says it."""
    rest = list(boxes)
    for i, a in enumerate(rest):
        for j in range(i):
            b = rest[j]
            if min(a[2], b[2]) > max(a[0], b[0]) and min(a[3], b[3]) > max(a[1], b[1]):
                hull = (min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3]))
                return united_slowly([*rest[:j], *rest[j + 1 : i], *rest[i + 1 :], hull])
    return rest


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    x, y = draw(st.integers(-50, 200)), draw(st.integers(-50, 200))
    return x, y, x + draw(st.integers(0, 40)), y + draw(st.integers(0, 40))


@settings(max_examples=500, deadline=None)
@given(st.lists(boxes(), max_size=40))
def test_overlapping_ink_is_united_as_by_comparing_every_pair(ink: list[Box]) -> None:
    united = _united(ink)
    assert Counter(united) == Counter(united_slowly(ink))
    assert united == sorted(united, key=lambda box: box[1::-1])


def test_ink_that_each_hull_reaches_only_when_it_has_grown_round_a_corner_is_united() -> None:
    x0, y0, x1, y1 = hull = (0, 0, 10, 10)
    spiral = [hull]
    for k in range(100):
        corner = [(x1, y0), (x1, y1), (x0, y1), (x0, y0)][k % 4]
        spiral.append((corner[0] - 2, corner[1] - 2, corner[0] + 2, corner[1] + 2))
        x0, y0 = min(x0, spiral[-1][0]), min(y0, spiral[-1][1])
        x1, y1 = max(x1, spiral[-1][2]), max(y1, spiral[-1][3])
    assert _united(spiral) == [(x0, y0, x1, y1)]


@pytest.mark.parametrize("columns", [1, 126, 16_000])
def test_sixteen_thousand_specks_of_ink_are_compared_with_their_neighbours_only(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    specks = [
        (i % columns * 20, i // columns * 20, i % columns * 20 + 12, i // columns * 20 + 12) for i in range(16_000)
    ]
    sweeps = []
    sweep = seams._swept
    monkeypatch.setattr(seams, "_swept", lambda found: sweeps.append(len(found)) or sweep(found))
    assert len(_united(specks)) == 16_000
    assert sweeps == [16_000]
