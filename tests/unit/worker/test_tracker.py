"""The tracker over real child processes: what a restart loses, what a saved session brings back, cancelled steps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes.sam2_tracking import moving_shapes

from sam2_mcp_worker.engines.ports import ObjectMask, ObjectPrompt
from sam2_mcp_worker.engines.tracker import SamTracker
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.execution.pool import ChildPool
from sam2_mcp_worker.media.pixels import PixelFile

ROOT = Path(__file__).parents[3]
TIMEOUT_S = 60.0
PROMPTS = [ObjectPrompt((40, 70, 100, 130)), ObjectPrompt(points=((190, 160, True),))]


@pytest.fixture
async def pool() -> AsyncIterator[ChildPool]:
    async with ChildPool(
        "sam",
        "tests.fakes.tracking_child",
        size=1,
        config={"track_memory_bytes": 2**24},
        memory_limit_bytes=0,
        env={"GOMP_SPINCOUNT": "0", "PYTHONPATH": str(ROOT)},
        recycle_growth_bytes=None,
    ) as pool:
        yield pool


@pytest.fixture
def frames(tmp_path: Path) -> list[PixelFile]:
    found = []
    for index, rgb in enumerate(moving_shapes(5)):
        path = tmp_path / f"{index}.rgb"
        path.write_bytes(rgb.tobytes())
        found.append(PixelFile(path, rgb.shape[1], rgb.shape[0]))
    return found


class Tracking:
    """One session on these frames."""

    def __init__(self, tracker: SamTracker, frames: list[PixelFile], folder: Path) -> None:
        self.tracker = tracker
        self.frames = frames
        self.folder = folder

    async def start(self) -> list[ObjectMask]:
        return await self.tracker.start(
            "a", self.frames[0], PROMPTS, quality="fast", mask_dir=self.folder, job="j", timeout_s=TIMEOUT_S
        )

    async def step(self, index: int) -> list[ObjectMask]:
        masks = await self.tracker.step("a", self.frames[index], mask_dir=self.folder, job="j", timeout_s=TIMEOUT_S)
        return [replace(mask, mask_path=None) for mask in masks]

    async def save(self) -> None:
        await self.tracker.save("a", self.folder / "memory", job="j", timeout_s=TIMEOUT_S)

    async def restore(self) -> None:
        await self.tracker.restore("a", self.folder / "memory", job="j", timeout_s=TIMEOUT_S)


@pytest.fixture
def tracking(pool: ChildPool, frames: list[PixelFile], tmp_path: Path) -> Tracking:
    return Tracking(SamTracker(pool, identity="sam2 random 0"), frames, tmp_path)


async def test_a_restart_loses_sessions_and_a_saved_one_goes_on_in_another_process(
    tracking: Tracking, pool: ChildPool
) -> None:
    assert tracking.tracker.identity == "sam2 random 0"
    first = await tracking.start()
    assert [mask.blank for mask in first] == [False, False]
    await tracking.step(1)
    await tracking.save()
    went_on = [await tracking.step(index) for index in (2, 3, 4)]
    with pytest.raises(WorkerError, match="decoder_timeout"):
        await pool.run("track_step", {}, timeout_s=1e-9, job="j")
    with pytest.raises(WorkerError, match="track_state_lost"):
        await tracking.step(2)
    await tracking.restore()
    assert [await tracking.step(index) for index in (2, 3, 4)] == went_on
    assert pool.stats().restarts == 1


async def test_a_step_that_was_begun_is_finished_though_its_caller_is_cancelled(
    tracking: Tracking, pool: ChildPool
) -> None:
    await tracking.start()
    _, second = await tracking.step(1), await tracking.step(2)
    await tracking.start()
    step = asyncio.create_task(tracking.step(1))
    await asyncio.sleep(0)  # now it waits in the queue
    while pool.stats().queued or not pool.stats().busy:
        await asyncio.sleep(0)
    step.cancel()
    with pytest.raises(asyncio.CancelledError):
        await step
    await tracking.save()  # waits for the child, which is the same one
    assert pool.stats().restarts == 0
    await tracking.restore()
    assert await tracking.step(2) == second
    await tracking.tracker.drop("a", job="j")
    with pytest.raises(WorkerError, match="track_state_lost"):
        await tracking.step(3)
