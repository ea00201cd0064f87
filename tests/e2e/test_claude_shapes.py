"""Pictures of extreme shapes on the engine's way to the scripted Claude, which refuses what the API would refuse."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from tests.bench.claude.shapes import EDGES, FIELD, Road, page_of, shapes, unseen_pixels
from tests.fakes.claude_pages import TruePage, make_page
from tests.fakes.claude_script import Script
from tests.fakes.claude_server import FakeClaude, claude_server

from sam2_mcp_worker.engines.claude import build_claude
from sam2_mcp_worker.execution.pool import ChildPool
from sam2_mcp_worker.media.decoder import DECODER_MEMORY_LIMIT_BYTES, DECODER_MODULE
from sam2_mcp_worker.settings import Settings

# As long as the longest page of the field, but narrow: tests/bench/claude/shapes.py has the rest.
LONGEST = (60, 120_000)
SIZES = [LONGEST, (1, 1), (1, 3000), (3000, 1), (2250, 600), *EDGES[:4], *shapes(36)[len(FIELD) + len(EDGES) :]]
PAGES = [page_of(size, number) for number, size in enumerate(SIZES)]
LANDING = make_page("landing", 1916, 19_983, density=0.1)
PAPER = make_page("paper", 1240, 1754, density=0.4, shapes=("coin", "seal"))


@dataclass
class Stage:
    fake: FakeClaude
    road: Road


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    folder = tmp_path_factory.mktemp("shapes")
    with claude_server([*PAGES, LANDING, PAPER], Script()) as fake:
        settings = Settings(data_dir=folder / "data", **fake.settings())
        vision = build_claude(settings)
        await vision.start()
        async with ChildPool(
            "decoder", DECODER_MODULE, size=2, config={}, memory_limit_bytes=DECODER_MEMORY_LIMIT_BYTES
        ) as decoders:
            yield Stage(fake, Road(decoders, vision, folder, settings))
        await vision.close()


def assert_sent_whole(fake: FakeClaude, page: TruePage) -> None:
    assert fake.refused == []
    assert fake.scaled_down == []
    assert fake.unknown_pictures == 0
    assert unseen_pixels(fake, page) == 0


async def test_no_shape_is_refused_or_scaled_down_and_every_pixel_is_shown(stage: Stage) -> None:
    for page in PAGES:
        outcome = await stage.road.picture(page, settle=False)
        assert outcome.lost == []
        assert_sent_whole(stage.fake, page)


async def test_of_a_landing_page_two_tiles_wide_every_line_comes_back_once(stage: Stage) -> None:
    outcome = await stage.road.picture(LANDING, settle=False)
    assert outcome.tiles == 42
    assert sorted(line.text for line in outcome.lines) == sorted(line.text for line in LANDING.lines)
    assert_sent_whole(stage.fake, LANDING)


async def test_an_image_page_of_a_pdf_is_sent_at_full_resolution_and_settled(stage: Stage) -> None:
    outcome = await stage.road.pdf_page(PAPER)
    assert sorted(line.text for line in outcome.lines) == sorted(line.text for line in PAPER.lines)
    assert outcome.regions == len(PAPER.regions)
    by_text = {line.text: line for line in PAPER.lines}
    for line in outcome.lines:
        true = by_text[line.text]
        assert line.box_xyxy_px == pytest.approx(true.box, abs=6)  # the truth ends with the last advance, not its ink
        assert line.height_px == pytest.approx(true.size_px, abs=2)
    assert_sent_whole(stage.fake, PAPER)
