"""Readings of tiles as they are kept, put together, and told; nothing that may be missing goes unsaid."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines.ports import Box, Region, TextLine, TileReading
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.fanout import Coverage
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.tiling import OCR_TILES, TileLimit
from sam2_mcp_worker.pipelines.read_picture import PictureReader, PictureReading, merge, tile_from_json, tile_to_json
from sam2_mcp_worker.result_cache import ResultCache

TILES: list[Box] = [(0, 0, 100, 60), (0, 40, 100, 100)]
LINE = TextLine("가입금액 1억원", (10, 5, 90, 25), 14.0, 0.9)
COIN = Region("coin", (5, 2, 95, 30), 0.8)

boxes = st.tuples(*[st.integers(0, 100_000)] * 4)
shares = st.floats(0, 1)
lines = st.builds(TextLine, st.text(), boxes, st.floats(0, 500), shares)
regions = st.builds(Region, st.text(min_size=1), boxes, shares, st.none() | st.floats(0, 500))
readings = st.builds(
    TileReading,
    st.lists(lines, max_size=3).map(tuple),
    st.lists(boxes, max_size=3).map(tuple),
    st.none() | st.lists(regions, max_size=3).map(tuple),
    st.booleans(),
    st.text(),
    st.text(),
    st.integers(0, 9),
    st.integers(0, 9),
)


@given(readings)
def test_a_reading_comes_back_from_the_cache_as_it_was(reading: TileReading) -> None:
    assert tile_from_json(tile_to_json(reading)) == reading


def test_readings_of_before_there_were_regions_are_still_read() -> None:
    assert tile_from_json({"lines": [], "ink": [[1, 2, 3, 4]]}) == TileReading((), ((1, 2, 3, 4),))


def merged(*readings: TileReading | WorkerError | None, labels: tuple[str, ...] = ("coin",)) -> PictureReading:
    coverage: Coverage[int, TileReading] = Coverage(tuple(range(len(readings))))
    for number, reading in enumerate(readings):
        if isinstance(reading, WorkerError):
            coverage.mark_failed(number, reading)
        elif reading is not None:
            coverage.mark_done(number, reading)
    return merge(TILES, coverage, labels)


def test_regions_have_the_height_of_the_smallest_text_in_them() -> None:
    small = TextLine("소비자 유의", (12, 16, 60, 24), 7.0, 0.9)
    reading = merged(TileReading((LINE, small), (), (COIN,)), TileReading((), (), ()))
    assert [(region.label, region.text_height_px) for region in reading.regions] == [("coin", 7.0)]
    assert reading.unlooked == reading.unread == () and reading.again == "" and reading.notes(2) == []


def test_every_place_where_regions_may_be_missing_is_told_with_the_reason() -> None:
    refused = TileReading((LINE,), (), stood_in="vision_refused: declined")
    cut = TileReading((LINE,), (), (COIN,), truncated=True)
    odd = TileReading((LINE,), (), (COIN,), dropped=2)
    failed = WorkerError("vision_timeout", "nothing came")
    assert merged(refused, failed).unlooked == (
        (TILES[0], "vision_refused: declined"),
        (TILES[1], "vision_timeout: nothing came"),
    )
    assert [area for area, _ in merged(cut, odd).unlooked] == TILES
    assert merged(refused, failed, labels=()).unlooked == ()
    assert merged(TileReading((), ()), cut).unlooked[0] == (TILES[0], "nobody looked for regions here")


def test_what_is_not_settled_yet_is_in_no_list() -> None:
    reading = merged(TileReading((LINE,), (), ()), None)
    assert (reading.unread, reading.unlooked) == ((), ())


def test_notes_say_who_read_and_what_may_be_had_again() -> None:
    reading = merged(
        TileReading((LINE,), (), again="vision_cap: spent", stood_in="vision_cap: spent"),
        TileReading((), (), (), truncated=True, dropped=1, invented=3),
    )
    assert reading.again == "vision_cap: spent"
    local, cut, dropped, invented, again = reading.notes(2)
    assert local.startswith("1 of 2 tiles were read by the local engine") and "vision_cap: spent" in local
    assert "1 of 2 tiles was cut" in cut
    assert dropped.startswith("1 items") and invented.startswith("3 lines")
    assert again == "calling again later may give more"  # the reason stands in the first note
    late = merged(TileReading((), (), (), truncated=True, again="time ran out"))
    assert late.notes(2)[-1] == "calling again later may give more: time ran out"


class CountingReader:
    """Counts how often it reads; its first readings may be had better later."""

    identity, tile_limit, tiles_in_flight = "counting", OCR_TILES, 2

    def __init__(self, *, costs_money: bool, unsure: int = 0) -> None:
        self.costs_money, self._unsure, self.reads = costs_money, unsure, 0
        self.limit: TileLimit = OCR_TILES

    async def read_tile(self, pixels: PixelFile, rect_xyxy_px: Box, *, job: str, timeout_s: float) -> TileReading:
        self.reads += 1
        return TileReading((LINE,), (), again="later" if self.reads <= self._unsure else "")

    async def read_boxes(
        self, pixels: PixelFile, boxes_xyxy_px: list[Box], *, job: str, timeout_s: float
    ) -> list[TextLine]:
        raise NotImplementedError


async def read_twice(folder: Path, reader: CountingReader) -> list[PictureReading]:
    pixels = PixelFile(folder / "none.rgb", 100, 100)
    picture = PictureReader(reader, ResultCache(folder), source_key=("test",), job="j", step_timeout_s=1)
    return [await picture.read_all(pixels, TILES[:1], Deadline.after(60)) for _ in range(2)]


async def test_what_costs_money_is_kept_however_few_tiles_there_are(tmp_path: Path) -> None:
    paid, free = CountingReader(costs_money=True), CountingReader(costs_money=False)
    await read_twice(tmp_path, paid)
    await read_twice(tmp_path, free)
    assert (paid.reads, free.reads) == (1, 2)


@pytest.mark.parametrize("worse", [TileReading((), (), stood_in="cap", again="cap"), WorkerError("late", "too late")])
async def test_a_worse_reading_does_not_take_the_place_of_the_part_that_was_paid_for(
    tmp_path: Path, worse: TileReading | WorkerError
) -> None:
    class Worsening(CountingReader):
        async def read_tile(self, pixels: PixelFile, rect_xyxy_px: Box, *, job: str, timeout_s: float) -> TileReading:
            self.reads += 1
            if self.reads == 1:
                return TileReading((LINE,), (), (), truncated=True, again="cut")
            if isinstance(worse, WorkerError):
                raise worse
            return worse

    reader = Worsening(costs_money=True)
    first, second = await read_twice(tmp_path, reader)
    assert second == first
    assert (second.lines, second.again, reader.reads) == ((LINE,), "cut", 2)


async def test_a_reading_that_may_come_out_better_is_told_so_and_read_again(tmp_path: Path) -> None:
    reader = CountingReader(costs_money=True, unsure=1)
    first, second = await read_twice(tmp_path, reader)
    assert (first.again, second.again, reader.reads) == ("later", "", 2)
