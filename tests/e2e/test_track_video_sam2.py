"""track_video with SAM 2 itself on a real worker. The weights are random: masks mean nothing, but must be the same
again whatever happens on the way: parallel calls, a killed engine, a cursor, a restart of the worker.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import RunningWorker, serving
from tests.e2e.sam2_worker import with_sam2
from tests.e2e.tools import Agent
from tests.fakes.videos import Clip, moving_shapes

pytestmark = pytest.mark.timeout(300)

BOXES = [[30, 60, 95, 120], [230, 15, 285, 65]]
# Four frames: the engine takes about a second for each.
SPACED: dict[str, Any] = {"boxes": BOXES, "every_s": 0.25, "end_s": 0.8, "quality": "fast"}


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Clip:
    return moving_shapes(tmp_path_factory.mktemp("videos") / "shapes.mp4", frames=30)


@pytest.fixture(scope="module")
def sam2(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWorker]:
    """One worker with SAM 2."""
    yield from serving(with_sam2(tmp_path_factory.mktemp("sam2")))


@pytest.fixture(scope="module")
def truth(sam2: RunningWorker, clip: Clip) -> list[dict[str, Any]]:
    """What the objects are when nothing disturbs."""

    async def track() -> list[dict[str, Any]]:
        agent = Agent(sam2)
        return merged(await agent.follow("track_video", source=await agent.upload(clip.path), **SPACED))

    return asyncio.run(track())


def merged(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All frames of a request that took several calls."""
    objects: list[dict[str, Any]] = results[-1]["objects"]
    for number, one in enumerate(objects):
        one["visible"] = [row for result in results for row in result["objects"][number]["visible"]]
        one["lost_times_s"] = [time for result in results for time in result["objects"][number]["lost_times_s"]]
    return objects


async def forgotten(worker: RunningWorker) -> None:
    """Until no job is known any more and no record is left: the next call begins anew."""
    tracks = worker.services.settings.data_dir / "tracks"
    for record in tracks.glob("*/track.json"):
        record.unlink()
    for job in list(worker.services.jobs._jobs.values()):
        worker.loop.call_soon_threadsafe(worker.services.jobs._forget, job)


async def test_every_frame_has_every_object(sam2: RunningWorker, truth: list[dict[str, Any]]) -> None:
    for one in truth:
        times = sorted([row[0] for row in one["visible"]] + one["lost_times_s"])
        assert times == [0.0, 0.25, 0.5, 0.75]
        assert one["visible"], "blank masks would be the same whatever went wrong"


async def test_a_killed_engine_changes_nothing(sam2: RunningWorker, clip: Clip, truth: list[dict[str, Any]]) -> None:
    await forgotten(sam2)
    pool = sam2.services.sam_pool
    assert pool is not None
    agent = Agent(sam2)
    source = await agent.upload(clip.path)
    before = pool.stats().children[0]
    call = asyncio.ensure_future(agent.call("track_video", source=source, **SPACED))
    while pool.stats().children[0].tasks < before.tasks + 2:
        assert not call.done()
        await asyncio.sleep(0.01)
    assert before.pid is not None
    os.kill(before.pid, signal.SIGKILL)
    results = [await call]
    while cursor := results[-1].get("cursor"):
        results.append(await agent.call("track_video", source=source, **SPACED, cursor=cursor))
    assert merged(results) == truth
    assert pool.stats().children[0].pid != before.pid


async def test_a_cancelled_call_costs_neither_the_engine_nor_the_next_call(
    sam2: RunningWorker, clip: Clip, truth: list[dict[str, Any]]
) -> None:
    await forgotten(sam2)
    pool = sam2.services.sam_pool
    assert pool is not None
    agent = Agent(sam2)
    source = await agent.upload(clip.path)
    before = pool.stats().children[0]
    call = asyncio.ensure_future(agent.call("track_video", source=source, **SPACED))
    while pool.stats().children[0].tasks < before.tasks + 1:
        assert not call.done()
        await asyncio.sleep(0.01)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert merged(await agent.follow("track_video", source=source, **SPACED)) == truth
    assert pool.stats().children[0].pid == before.pid


async def test_parallel_calls_give_what_they_give_alone(
    sam2: RunningWorker, clip: Clip, truth: list[dict[str, Any]]
) -> None:
    await forgotten(sam2)
    agent = Agent(sam2)
    source = await agent.upload(clip.path)
    other = {**SPACED, "boxes": BOXES[:1]}
    both, alone = await asyncio.gather(
        agent.follow("track_video", source=source, **SPACED), agent.follow("track_video", source=source, **other)
    )
    assert merged(both) == truth
    assert merged(alone) == truth[:1], "objects do not influence each other"


async def test_a_tracking_goes_on_over_a_restart_as_if_there_had_been_none(
    tmp_path: Path, clip: Clip, truth: list[dict[str, Any]]
) -> None:
    results: list[dict[str, Any]] = []
    for number in range(2):
        # The first call has time for a frame or two.
        settings = with_sam2(tmp_path, call_budget_s=3 if number == 0 else 27, background_limit_s=0)
        for worker in serving(settings):
            agent = Agent(worker)
            source = await agent.upload(clip.path)
            cursor = results[-1]["cursor"] if results else ""
            results.append(await agent.call("track_video", source=source, **SPACED, cursor=cursor))
            while number == 1 and (cursor := results[-1].get("cursor")):
                results.append(await agent.call("track_video", source=source, **SPACED, cursor=cursor))
    assert merged(results) == truth
