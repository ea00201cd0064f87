"""The spot of mission.md through inspect_video: the scripted Claude knows each frame, the local engine reads it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.conftest import RunningWorker, serving
from tests.e2e.tools import Agent
from tests.fakes.claude_script import Script
from tests.fakes.claude_server import FakeClaude, claude_server
from tests.fakes.spot_video import (
    DURATION_S,
    LABELS,
    NOTICE,
    NOTICE_PX,
    NOTICE_S,
    PREMIUM,
    PREMIUM_PX,
    PREMIUM_S,
    Spot,
    write_spot,
    wrong_findings,
    wrong_phrase,
)

from sam2_mcp_worker.cli.client import first_text
from sam2_mcp_worker.settings import Settings

STEP_S = 0.5
FRAMES = 12
FAST = "claude-haiku-5-5"
ASKED: dict[str, Any] = {"labels": list(LABELS), "phrases": [PREMIUM, NOTICE], "interval_s": STEP_S}
GRID_ONLY = ASKED | {"scene_changes": False}


@pytest.fixture(scope="module")
def spots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Spot]:
    folder = tmp_path_factory.mktemp("spots")
    return {
        "moving": write_spot(folder / "moving.mp4", title="moving"),
        "still": write_spot(folder / "still.mp4", title="still", still=True),
        "lossy": write_spot(folder / "lossy.mp4", lossy=True),
    }


@pytest.fixture(scope="module")
def fake(spots: dict[str, Spot]) -> Iterator[FakeClaude]:
    with claude_server([*spots["moving"].pages, *spots["still"].pages]) as server:
        yield server


@pytest.fixture(scope="module")
def reading(fake: FakeClaude, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWorker]:
    folder = tmp_path_factory.mktemp("spot-worker")
    settings = Settings(port=0, data_dir=folder, ocr_processes=1, segmenter="off", **fake.settings())
    yield from serving(settings, with_masks=False)


@pytest.fixture(autouse=True)
def plain_script(fake: FakeClaude) -> None:
    fake.play(Script())


class Caller(Agent):
    """An agent whose host looks at `_meta` too."""

    async def inspect(self, **arguments: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The facts of one call, and what it cost."""
        async with self._client.session() as session:
            result = await session.call_tool("inspect_video", arguments)
        assert not result.is_error, result.content
        return json.loads(first_text(result)), (result.meta or {}).get("sam2-mcp/usage", {})


def accounted(coverage: dict[str, Any]) -> bool:
    """Whether every second was read."""
    return bool(coverage["asked_s"] == coverage["read_s"] == pytest.approx(DURATION_S, abs=0.01))


async def test_what_is_on_screen_is_told_with_its_times_and_heights_and_costs_nothing_again(
    reading: RunningWorker, fake: FakeClaude, spots: dict[str, Spot]
) -> None:
    agent = Caller(reading)
    source = await agent.upload(spots["moving"].path)
    facts, usage = await agent.inspect(source=source, **GRID_ONLY)
    assert wrong_findings(facts, STEP_S) == []
    assert accounted(facts["coverage"])
    assert facts["coverage"]["frames"] == {"sampled": FRAMES, "read": FRAMES, "same": 0, "failed": 0}
    assert {seen.model for seen in fake.requests} == {FAST}
    assert len(fake.requests) == usage["requests"] == FRAMES
    assert not fake.refused
    assert not fake.unknown_pictures
    again, free = await agent.inspect(source=source, **GRID_ONLY)
    assert len(fake.requests) == FRAMES
    assert free.get("requests", 0) == 0
    assert again["labels"] == facts["labels"]
    assert again["phrases"] == facts["phrases"]
    other, _ = await agent.inspect(source=source, **(GRID_ONLY | {"phrases": [NOTICE]}))
    assert [each["phrase"] for each in other["phrases"]] == [NOTICE]
    assert len(fake.requests) == FRAMES


async def test_frames_that_look_the_same_are_read_once(
    reading: RunningWorker, fake: FakeClaude, spots: dict[str, Spot]
) -> None:
    agent = Caller(reading)
    facts, _ = await agent.inspect(source=await agent.upload(spots["still"].path), **ASKED)
    assert wrong_findings(facts, STEP_S) == []
    frames = facts["coverage"]["frames"]
    assert frames["read"] == len(fake.requests) <= 6  # with the premium, without, with the notice; then around cuts
    assert frames["read"] + frames["same"] == frames["sampled"] >= FRAMES


async def test_the_local_engine_finds_both_texts_and_says_that_it_looks_for_no_regions(
    worker: RunningWorker, spots: dict[str, Spot]
) -> None:
    agent = Agent(worker)
    source = await agent.upload(spots["lossy"].path)
    facts = (await agent.follow("inspect_video", source=source, **ASKED))[-1]
    premium, notice = facts["phrases"]
    assert wrong_phrase(premium, PREMIUM_S, PREMIUM_PX, STEP_S, most_px=2.0) == []
    assert wrong_phrase(notice, NOTICE_S, NOTICE_PX, STEP_S) == []
    assert accounted(facts["coverage"])
    assert facts["regions_not_available"]["mend"]
    assert {each["state"] for each in facts.get("labels", [])} <= {"cannot_tell"}
