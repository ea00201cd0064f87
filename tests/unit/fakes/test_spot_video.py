"""The spot is what it claims: its frames come out of the decoder bit by bit, and its truth says what they show."""

from __future__ import annotations

import numpy as np
import pytest
from tests.fakes.claude_stamp import find
from tests.fakes.spot_video import COIN_PX, FRAMES, NOTICE_PX, SIZE_PX, Spot, seen_grid, write_spot

from sam2_mcp_worker.media.video_pixels import Turn, to_rgb
from sam2_mcp_worker.media.video_reader import VideoReader

GRID_S = [index / 2 for index in range(12)]


@pytest.fixture(scope="module")
def spot(tmp_path_factory: pytest.TempPathFactory) -> Spot:
    return write_spot(tmp_path_factory.mktemp("spot") / "spot.mp4")


def test_every_frame_comes_out_as_it_was_drawn_and_is_found_by_its_stamp(spot: Spot) -> None:
    known = {page.name: page.rgb() for page in spot.pages}
    places = [(page.name, *page.size_px) for page in spot.pages]
    last = None
    with VideoReader(spot.path) as reader:
        names = []
        for number, decoded in enumerate(reader.frames()):
            rgb = to_rgb(decoded.frame, SIZE_PX, Turn.of(decoded.frame))
            assert np.array_equal(rgb, known[spot.shown[number]])
            if spot.shown[number] != last:  # looking for the stamp takes a while, and twins are equal
                last = spot.shown[number]
                names.append(find(rgb, places))
    assert number == FRAMES - 1
    assert [found[0] for found in names if found] == list(dict.fromkeys(spot.shown))


def test_the_truth_is_that_of_the_mission(spot: Spot) -> None:
    assert seen_grid(spot, "coin", GRID_S) == GRID_S
    assert seen_grid(spot, "headline amount", GRID_S) == [0.0, 0.5, 1.0, 1.5]
    assert seen_grid(spot, "disclaimer", GRID_S) == [3.5]
    notice = spot.page_at(3.5)
    assert [region.text_height_px for region in notice.regions] == [None, NOTICE_PX]
    assert all(region.box[3] - region.box[1] == COIN_PX for region in notice.shapes)
    assert sum(name.endswith("-notice") for name in spot.shown) == 12  # half a second
    assert len({spot.page_at(time_s).name for time_s in GRID_S}) == 12
