"""inspect_video as a pipeline: what calls share, what they tell when time is short, what a restart finds."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.fakes.scripted_eyes import COST, Asked, ScriptedEyes, as_seen
from tests.fakes.spot_video import NOTICE, PREMIUM, Spot, write_spot

from sam2_mcp_worker.deadline import Deadline, deadline_scope
from sam2_mcp_worker.engines.ports import Sight
from sam2_mcp_worker.engines.vision_errors import VisionError
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.jobs import Job
from sam2_mcp_worker.pipelines.inspect_video import Request, VideoInspection, inspect_video
from sam2_mcp_worker.pipelines.segment_looks import SegmentLooks
from sam2_mcp_worker.pipelines.video_job import reading_notes
from sam2_mcp_worker.pipelines.video_rows import numbered
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.settings import Settings

CALL_S = 60.0
ABSENT = "원금을 보장합니다"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("inspect-video")


@pytest.fixture(scope="module")
def spot(folder: Path) -> Spot:
    return write_spot(folder / "spot.mp4", still=True)


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Services]:
    """What a worker has of it that starts over this folder."""
    made = Services(Settings(data_dir=folder / "data", allowed_roots=(str(folder),), ocr_processes=1))
    made._prepare_folders()
    async with made.decoders, made.scanner:
        yield made
        await made.jobs.close()
        await asyncio.gather(*made._background, return_exceptions=True)


@pytest.fixture(scope="module")
async def services(folder: Path) -> AsyncIterator[Services]:
    async with running(folder) as made, made.ocr_pool:
        yield made


class Agent:
    """Calls with eyes of its own. Each test has a range or labels of its own, so that it finds no other one's job."""

    def __init__(self, services: Services, spot: Spot, **eyes: object) -> None:
        self.eyes = ScriptedEyes(spot.pages, **eyes)  # type: ignore[arg-type]
        services.vision, services.vision_missing = self.eyes, None
        self.services, self.spot = services, spot

    async def call(
        self, start_s: float, *, time_s: float = CALL_S, cursor: str = "", **arguments: object
    ) -> VideoInspection:
        wanted = {"labels": ["coin"], "phrases": [PREMIUM, NOTICE, ABSENT], **arguments}
        request = Request(str(self.spot.path), start_s=start_s, cursor=cursor, **wanted)  # type: ignore[arg-type]
        with deadline_scope(Deadline.after(time_s, margin_s=1.0)):
            return await inspect_video(self.services, request)


def states(inspection: VideoInspection) -> dict[str, str]:
    return {one["phrase"]: one["state"] for one in inspection.told.findings.phrases}


async def test_a_call_without_time_calls_nothing_absent_and_its_cursor_brings_everything(
    services: Services, spot: Spot
) -> None:
    agent = Agent(services, spot)
    first = await agent.call(0.0, time_s=0.0)
    assert first.coverage.unreached_s == pytest.approx(first.coverage.asked_s)
    assert set(states(first).values()) == {"cannot_tell"}
    assert first.cursor
    told, rest = [*first.told.texts], first
    while rest.cursor:
        rest = await agent.call(0.0, cursor=rest.cursor)
        told += rest.told.texts
    assert rest.coverage.read_s == pytest.approx(rest.coverage.asked_s)
    assert {one.model for one in agent.eyes.asked} == {"fast"}, "twelve tiles are many"
    assert not (rest.looks.more_before or rest.looks.more_behind), "the whole video"
    # The drawing of the coin holds ink that nobody read: what was not found may stand there.
    assert states(rest) == {PREMIUM: "shown", NOTICE: "shown", ABSENT: "cannot_tell"}
    assert [one["number"] for one in told] == [number for number, _ in numbered(rest.findings).texts]
    assert {NOTICE, PREMIUM} <= {one["text"] for one in told}


async def test_a_repeated_call_costs_nothing_also_after_a_restart(folder: Path, spot: Spot) -> None:
    async with running(folder) as worker:
        agent = Agent(worker, spot)
        first = await agent.call(0.1, end_s=3.6)
        assert sum(usage.usd for usage in first.spent.values()) == pytest.approx(COST.usd * len(agent.eyes.asked))
        again = await agent.call(0.1, end_s=3.6, phrases=["다른 문구", " 다른  문구 "])
        assert list(states(again)) == ["다른 문구"] and len(again.told.findings.phrases) == 1, "asked for once"
        assert not again.spent, "other phrases need no other frames"
    async with running(folder) as worker:
        agent = Agent(worker, spot)
        repeated = await agent.call(0.1, end_s=3.6)
        assert not agent.eyes.asked
        assert not repeated.spent
        assert repeated.findings == first.findings
        assert repeated.told == first.told


async def test_calls_at_the_same_time_share_one_job(services: Services, spot: Spot) -> None:
    agent = Agent(services, spot)
    calls = await asyncio.gather(*(agent.call(0.2, labels=["seal"]) for _ in range(3)))
    assert len(agent.eyes.asked) == calls[0].coverage.frames_read
    assert all(one.findings == calls[0].findings for one in calls)
    assert sum(bool(one.spent) for one in calls) == 1, "what it cost is told once"


async def test_a_call_that_is_dropped_stops_its_work(services: Services, spot: Spot) -> None:
    asked = asyncio.Event()

    def change(one: Asked, sight: Sight) -> Sight:
        asked.set()
        return sight

    call = asyncio.create_task(Agent(services, spot, change=change).call(0.3))
    await asked.wait()
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    assert services.jobs.running == 0


async def test_frames_of_a_provider_in_trouble_are_read_locally_and_later_by_it(services: Services, spot: Spot) -> None:
    trouble = VisionError("credit", "the account has no credit", next_step="add credit")
    troubled = await Agent(services, spot, trouble=trouble).call(2.5, end_s=3.0)
    assert "local OCR" in troubled.choice.engine
    assert troubled.choice.regions_missing is trouble
    assert troubled.told.findings.labels[0]["state"] == "cannot_tell"
    assert any("no credit" in note for note in troubled.notes)
    agent = Agent(services, spot, change=as_seen)
    mended = await agent.call(2.5, end_s=3.0)
    assert {one.model for one in agent.eyes.asked} == {"accurate"}, "one frame is little"
    assert mended.looks.more_before and mended.looks.more_behind, "a part of the video"
    assert mended.told.findings.labels[0]["state"] == "shown"
    served = await Agent(services, spot, trouble=trouble).call(2.5, end_s=3.0)
    assert served.told.findings.labels[0]["state"] == "shown", "what it read is served meanwhile"


async def test_without_a_provider_text_is_read_and_regions_are_not_available(services: Services, spot: Spot) -> None:
    services.vision = None
    services.vision_missing = WorkerError("not_available", "no key", next_step="set one")
    request = Request(str(spot.path), ["coin"], [PREMIUM], start_s=0.0, end_s=0.4)
    with deadline_scope(Deadline.after(CALL_S)):
        found = await inspect_video(services, request)
    assert found.choice.regions_missing is not None
    assert found.told.findings.labels == [found.told.findings.labels[0]]
    assert found.told.findings.labels[0]["state"] == "cannot_tell"
    assert states(found) == {PREMIUM: "shown"}
    assert not found.spent


async def test_a_cursor_fits_the_request_that_it_came_from(services: Services, spot: Spot) -> None:
    agent = Agent(services, spot)
    cursor = (await agent.call(0.4, time_s=0.0)).cursor
    assert cursor
    others: list[dict[str, object]] = [
        {"interval_s": 1.0},
        {"labels": []},
        {"phrases": []},
        {"scene_changes": False},
        {"mode": "fast"},
    ]
    for other in others:
        with pytest.raises(WorkerError, match="cursor_invalid"):
            await agent.call(0.4, cursor=cursor, **other)  # type: ignore[arg-type]


async def test_a_scan_child_that_dies_costs_its_segment_until_the_next_call(services: Services, spot: Spot) -> None:
    killed: list[int] = []

    def kill_once(one: Asked, sight: Sight) -> Sight:
        for slot in services.scanner._slots if not killed else ():
            if slot.child is not None:
                slot.child.kill()
                killed.append(slot.child.pid)
        return sight

    # Dense enough for several segments, so that the scan goes on while the first frame is looked at.
    broken = await Agent(services, spot, change=kill_once).call(2.4, end_s=5.0, interval_s=0.04, scene_changes=False)
    assert killed
    account = broken.coverage
    assert account.read_s + account.failed_s + account.unreached_s == pytest.approx(account.asked_s)
    mended = await Agent(services, spot).call(2.4, end_s=5.0, interval_s=0.04, scene_changes=False)
    assert mended.coverage.failed == ()
    assert mended.coverage.read_s == pytest.approx(mended.coverage.asked_s)


def test_how_frames_were_read_is_said_once_a_reason() -> None:
    job = Job("notes", (1, 2, 3))
    job.coverage.mark_done(1, SegmentLooks((), stood_in=Counter({"busy": 2}), dropped=1, again="busy"))
    job.coverage.mark_done(2, SegmentLooks((), stood_in=Counter({"busy": 1}), invented=2, cuts_left_out=7))
    assert reading_notes(job) == [
        "3 frames were read by the local engine instead of the vision provider: busy",
        "scenes change so fast that the frames at 7 more cuts were not looked at",
        "1 items of the vision provider's answers made no sense and were left out",
        "2 lines were left out: there is nothing where they were said to stand",
        "calling again later may give more",
    ]
    job.coverage.mark_done(3, SegmentLooks((), again="the reader crashed"))
    del job.coverage.done[1]
    assert reading_notes(job)[-1] == "calling again later may give more: the reader crashed"
