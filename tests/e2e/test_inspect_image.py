"""inspect_image on a real worker with the scripted Claude: what it finds, cuts and delivers, and what it cannot say."""

from __future__ import annotations

import asyncio
import io
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw
from tests.conftest import RunningWorker
from tests.e2e.segmenting import fetched, mask_of, on_loop
from tests.e2e.tools import Agent, ToolFailure
from tests.fakes.claude_pages import TruePage, TrueRegion, make_page
from tests.fakes.claude_script import WRONG_KEY, WRONG_LABELS, Script, overloaded, refusal, slow
from tests.fakes.claude_server import FakeClaude, claude_server
from tests.fakes.shapes import iou

from sam2_mcp_worker.cli.client import WorkerClient
from sam2_mcp_worker.deadline import Deadline, deadline_scope
from sam2_mcp_worker.engines.claude import build_claude
from sam2_mcp_worker.engines.ports import VisionProvider
from sam2_mcp_worker.jobs import Jobs
from sam2_mcp_worker.pipelines.inspect_image import ImageInspection, Request, inspect_image
from sam2_mcp_worker.settings import Settings

LEAFLET = make_page("inspected", 1000, 900, density=0.4, shapes=("coin", "banknote", "seal"), fine_lines=2)
BROKEN = [make_page(f"broken{n}", 420, 300, density=0.4, shapes=("coin",), fine_lines=1) for n in range(4)]
# Tiles one under the other, coins on seams and between them.
TALL = make_page("tall", 700, 4200, density=0.3, shapes=("coin",) * 9, fine_lines=2)
LONG = make_page("long", 500, 6000, density=0.1, shapes=("coin",) * 12, fine_lines=1)
# Of two tiles; the local engine has little to read on one of them.
HALF = make_page("half", 400, 1700, density=0.05, shapes=("coin",) * 6, fine_lines=1)


@pytest.fixture(scope="module")
def claude() -> Iterator[FakeClaude]:
    with claude_server([LEAFLET, *BROKEN, TALL, LONG, HALF]) as fake:
        yield fake


@contextmanager
def provided(worker: RunningWorker, settings: Settings, **changes: Any) -> Iterator[RunningWorker]:
    """The worker with a provider, and with other settings, for as long as it is needed: starting one takes seconds."""
    services = worker.services
    before = services.vision, services.settings
    vision = asyncio.run_coroutine_threadsafe(started(settings), worker.loop).result(30)
    services.vision, services.settings = vision, services.settings.model_copy(update=changes)
    yield worker
    services.vision, services.settings = before
    asyncio.run_coroutine_threadsafe(vision.close(), worker.loop).result(30)


async def started(settings: Settings) -> VisionProvider:
    vision = build_claude(settings)
    await vision.start()
    return vision


@pytest.fixture(scope="module")
def seeing(
    claude: FakeClaude, segmenting_worker: RunningWorker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningWorker]:
    """A worker with a provider and a network that cuts masks."""
    settings = Settings(data_dir=tmp_path_factory.mktemp("ledger"), **claude.settings())
    with provided(segmenting_worker, settings) as running:
        yield running


@pytest.fixture
def narrow(claude: FakeClaude, worker: RunningWorker, tmp_path: Path) -> Iterator[RunningWorker]:
    """A worker with a provider that knows of no trouble yet, no masks, small results and one question at a time."""
    settings = Settings(data_dir=tmp_path / "ledger", vision_in_flight=1, **claude.settings())
    with provided(worker, settings, result_max_chars=4000) as running:
        yield running


async def inspect(worker: RunningWorker, page: TruePage, folder: Path, **arguments: Any) -> dict[str, Any]:
    agent = Agent(worker)
    handle = await agent.upload(page.write(folder))
    return await agent.call("inspect_image", source=handle, **({"image": "none"} | arguments))


def squeezed(texts: list[str]) -> list[str]:
    return sorted("".join(text.split()) for text in texts)


def truth_of(page: TruePage, shape: TrueRegion) -> np.ndarray[Any, np.dtype[np.bool_]]:
    canvas = Image.new("L", page.size_px)
    x0, y0, x1, y1 = shape.box
    pen = ImageDraw.Draw(canvas)
    (pen.rectangle if shape.label == "banknote" else pen.ellipse)((x0, y0, x1 - 1, y1 - 1), fill=255)
    return np.asarray(canvas) > 127


async def test_text_and_regions_come_in_one_call_with_exact_masks_and_a_second_call_costs_nothing(
    claude: FakeClaude, seeing: RunningWorker, tmp_path: Path
) -> None:
    claude.play(Script())
    agent = Agent(seeing)
    handle = await agent.upload(LEAFLET.write(tmp_path))
    result = await agent.call("inspect_image", source=handle, image="none")
    assert squeezed([line["text"] for line in result["lines"]]) == squeezed([line.text for line in LEAFLET.lines])
    regions = result["regions"]
    assert regions["complete"] and regions["total"] == len(LEAFLET.regions) and "not_available" not in regions
    assert [found["number"] for found in regions["found"]] == [1, 2, 3, 4, 5]
    by_label = {found["label"]: found for found in regions["found"]}
    assert set(by_label) == {region.label for region in LEAFLET.regions}
    for shape in LEAFLET.shapes:
        found = by_label[shape.label]
        mask = mask_of(seeing, found)
        assert iou(mask, truth_of(LEAFLET, shape)) > 0.9
        assert found["area_px"] == np.count_nonzero(mask) and found["polygons"]
    assert by_label["disclaimer"]["text_height_px"] == pytest.approx(13, abs=1.5)
    assert all(("mask" in found) != ("box_only" in found) for found in regions["found"])
    with Image.open(io.BytesIO(fetched(seeing, result["overlay"]))) as overlay:
        assert overlay.width >= LEAFLET.width_px and overlay.height > LEAFLET.height_px
    assert "cursor" not in result

    async with WorkerClient(seeing.base_url, seeing.token).session() as session:
        again = await session.call_tool("inspect_image", {"source": handle, "image": "thumb"})
    assert [block.type for block in again.content] == ["text", "image", "resource_link"]
    assert again.meta is not None and again.meta["sam2-mcp/usage"]["requests"] == 0
    assert len(claude.requests) == result["coverage"]["total"]
    assert not claude.refused and not claude.scaled_down


async def test_labels_are_a_closed_list_in_schema_and_prompt_and_nothing_else_is_reported(
    claude: FakeClaude, seeing: RunningWorker, tmp_path: Path
) -> None:
    claude.play(Script(always=WRONG_LABELS))
    result = await inspect(seeing, BROKEN[0], tmp_path, labels=["coin", "magic wand"])
    (asked,) = claude.requests
    assert asked.schema is not None
    label = asked.schema["properties"]["regions"]["items"]["properties"]["label"]
    assert label == {"type": "string", "enum": ["coin", "magic wand"]}
    assert "pile of coins" in asked.text and "magic wand" in asked.text, "the pack defines coins, nobody a wand"
    assert result["regions"]["labels"] == ["coin", "magic wand"]
    assert "found" not in result["regions"] and result["regions"]["complete"] is False
    assert "made no sense" in result["regions"]["unlooked_areas"][0]["reason"]
    assert result["lines"]


@pytest.mark.parametrize(
    ("labels", "code"),
    [
        (["coin", "Coin"], "label_twice"),
        (["a\nb"], "label_invalid"),
        ([""], "label_invalid"),
        (["x" * 61], "label_invalid"),
        ([str(number) for number in range(21)], "invalid_arguments"),
        (["default", *(f"own {number}" for number in range(15))], "too_many_labels"),
        ("coin", "invalid_arguments"),
        ([7], "invalid_arguments"),
    ],
)
async def test_slips_in_labels_are_named_before_anything_is_paid(
    claude: FakeClaude, seeing: RunningWorker, tmp_path: Path, labels: Any, code: str
) -> None:
    claude.play(Script())
    with pytest.raises(ToolFailure, match=rf"\[{code}\]"):
        await inspect(seeing, BROKEN[0], tmp_path, labels=labels)
    assert not claude.requests


async def test_without_a_provider_regions_are_not_available_and_the_text_is_read(
    worker: RunningWorker, tmp_path: Path
) -> None:
    result = await inspect(worker, BROKEN[1], tmp_path, labels=["coin"])
    assert result["lines"]
    regions = result["regions"]
    assert "found" not in regions and "total" not in regions and regions["complete"] is False
    assert "vision provider" in regions["not_available"]["reason"]
    assert "ANTHROPIC_API_KEY" in regions["not_available"]["mend"]
    assert "overlay" not in result and "cursor" not in result


async def test_a_part_that_nobody_looked_at_is_named_and_no_label_is_called_absent(
    claude: FakeClaude, narrow: RunningWorker, tmp_path: Path
) -> None:
    claude.play(Script(faults=[refusal()]))
    result = await inspect(narrow, HALF, tmp_path, labels=["coin"], mode="fast")
    regions = result["regions"]
    assert regions["complete"] is False and regions["found"]
    (area,) = regions["unlooked_areas"]
    assert regions["unlooked"] == 1
    assert "refused" in area["reason"]
    x0, y0, x1, y1 = area["box_xyxy_px"]
    assert (x0, x1) == (0, HALF.width_px) and y1 - y0 < HALF.height_px
    found = [region["box_xyxy_px"] for region in regions["found"]]
    outside = [shape.box for shape in HALF.shapes if shape.box[3] <= y0 or shape.box[1] >= y1]
    assert outside and len(found) >= len(outside), "whatever stands wholly in the other tile is found"
    assert any("local engine" in note for note in result["notes"])


async def test_regions_and_lines_come_once_each_over_small_results(
    claude: FakeClaude, narrow: RunningWorker, tmp_path: Path
) -> None:
    claude.play(Script())
    agent = Agent(narrow)
    handle = await agent.upload(TALL.write(tmp_path))
    results = await agent.follow("inspect_image", source=handle, labels=["coin"], image="none", max_lines=8)
    assert len(results) > 2
    lines = [line["text"] for result in results for line in result["lines"]]
    assert squeezed(lines) == squeezed([line.text for line in TALL.lines])
    found = [region for result in results for region in result["regions"].get("found", ())]
    assert [region["number"] for region in found] == list(range(1, len(TALL.shapes) + 1))
    for region, shape in zip(found, sorted(TALL.shapes, key=lambda shape: shape.box[3]), strict=True):
        assert np.abs(np.array(region["box_xyxy_px"]) - np.array(shape.box)).max() <= 6
        assert "segmenter" in region["box_only"].lower() or "not_available" in region["box_only"]
    assert [result["regions"]["complete"] for result in results[-2:]] in ([False, True], [True, True])
    assert results[-1]["overlay"]
    assert len(claude.requests) == results[0]["coverage"]["total"]


async def test_regions_have_the_whole_result_once_there_are_no_more_lines(
    claude: FakeClaude, narrow: RunningWorker, tmp_path: Path
) -> None:
    boxes = [[x, y, x + 12, y + 12] for y in range(10, 100, 20) for x in range(10, 250, 20)]
    regions = [{"label": "coin", "confidence": 0.9, "box": box} for box in boxes]
    claude.play(Script(override={"regions": regions, "lines": []}))
    Image.effect_noise((260, 110), 60).save(tmp_path / "coins.png")  # no page that the scripted Claude knows
    agent = Agent(narrow)
    handle = await agent.upload(tmp_path / "coins.png")
    results = await agent.follow("inspect_image", source=handle, labels=["coin"], image="none")
    counts = [len(result["regions"]["found"]) for result in results]
    assert sum(counts) == len(boxes)
    assert counts[1] > 1.5 * counts[0]
    found = [tuple(region["box_xyxy_px"]) for result in results for region in result["regions"]["found"]]
    assert sorted(found) == sorted(map(tuple, boxes))


async def test_calls_that_end_early_deliver_what_is_settled_and_go_on_even_after_a_restart(
    claude: FakeClaude, narrow: RunningWorker, tmp_path: Path
) -> None:
    claude.play(Script(always=slow(0.4)))
    handle = await Agent(narrow).upload(LONG.write(tmp_path))
    results: list[ImageInspection] = []
    cursor: str | None = ""
    while cursor is not None:
        assert len(results) < 100, "the cursor does not end"
        request = Request(handle, ["coin"], max_lines=500, cursor=cursor)
        results.append(await on_loop(narrow, hurried(narrow, request)))
        cursor = results[-1].cursor
        if len(results) == 2:
            await on_loop(narrow, narrow.services.jobs.close())
            narrow.services.jobs = Jobs(background_limit_s=600)  # all that a restart forgets
    assert results[0].coverage.unreached and not results[0].regions.complete and results[0].overlay is None
    assert results[-1].regions.complete and results[-1].overlay is not None
    texts = [line.text for result in results for line in result.lines.lines]
    assert squeezed(texts) == squeezed([line.text for line in LONG.lines])
    numbers = [region["number"] for result in results for region in result.regions.found]
    assert numbers == list(range(1, len(LONG.shapes) + 1))


async def test_text_does_not_wait_for_masks_and_regions_come_with_theirs(
    claude: FakeClaude, seeing: RunningWorker, tmp_path: Path
) -> None:
    claude.play(Script())
    handle = await Agent(seeing).upload(BROKEN[1].write(tmp_path))
    pool = seeing.services.sam_pool
    assert pool is not None
    child = pool.stats().children[0].pid
    assert child is not None
    results: list[ImageInspection] = []
    os.kill(child, signal.SIGSTOP)
    try:
        while not any("being cut to masks" in note for result in results[-1:] for note in result.notes):
            assert len(results) < 30, "nobody says what the regions wait for"
            cursor = results[-1].cursor or "" if results else ""
            results.append(await on_loop(seeing, hurried(seeing, Request(handle, ["coin"], cursor=cursor))))
    finally:
        os.kill(child, signal.SIGCONT)
    assert squeezed([line.text for result in results for line in result.lines.lines]) == squeezed(
        [line.text for line in BROKEN[1].lines]
    )
    assert not any(result.regions.found for result in results) and not results[-1].regions.complete
    rest = await Agent(seeing).call(
        "inspect_image", source=handle, labels=["coin"], image="none", cursor=results[-1].cursor
    )
    assert rest["lines"] == [] and rest["regions"]["complete"]
    assert [("mask" in region, region["number"]) for region in rest["regions"]["found"]] == [(True, 1)]


async def hurried(running: RunningWorker, request: Request) -> ImageInspection:
    with deadline_scope(Deadline.after(0.6)):
        return await inspect_image(running.services, request)


async def test_a_provider_that_fails_leaves_the_text_and_says_why_there_are_no_regions(
    claude: FakeClaude, narrow: RunningWorker, tmp_path: Path
) -> None:
    claude.play(Script(always=overloaded("3600")))
    busy = await inspect(narrow, BROKEN[2], tmp_path, labels=["coin"])
    assert busy["coverage"]["failed"] == [1] and "3600 s" in busy["failed_areas"][0]["reason"]
    assert "found" not in busy["regions"] and "overloaded" in busy["regions"]["not_available"]["reason"]
    claude.play(Script(always=refusal()))
    refused = await inspect(narrow, BROKEN[2], tmp_path, labels=["coin"])
    claude.play(Script(always=WRONG_KEY))
    locked_out = await inspect(narrow, BROKEN[3], tmp_path, labels=["coin"])
    for result, said in ((refused, "refused"), (locked_out, "auth")):
        assert result["lines"]
        assert "found" not in result["regions"] and result["regions"]["complete"] is False
        assert said in result["regions"]["not_available"]["reason"]
        assert result["regions"]["not_available"]["mend"]
