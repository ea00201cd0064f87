"""Jobs outlive calls, are shared by calls, and stop when nobody wants them."""

import asyncio

import pytest

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.fanout import fan_out
from sam2_mcp_worker.jobs import Job, Jobs
from sam2_mcp_worker.spending import Usage


class Work:
    """A fan-out whose items finish when told to."""

    def __init__(self) -> None:
        self.starts = 0
        self.gates: dict[int, asyncio.Event] = {}
        self.stopped = asyncio.Event()

    def gate(self, item: int) -> asyncio.Event:
        return self.gates.setdefault(item, asyncio.Event())

    async def start(self, job: Job) -> None:
        self.starts += 1

        async def work(item: int) -> str:
            await self.gate(item).wait()
            return f"page {item}"

        try:
            await fan_out(job.coverage, work, deadline=Deadline.after(60), limit=10)
        finally:
            self.stopped.set()


async def test_a_call_leaves_at_its_deadline_and_the_next_one_finds_more() -> None:
    jobs, work = Jobs(background_limit_s=60), Work()
    work.gate(1).set()
    async with jobs.join("k", (1, 2), work.start) as job:
        await job.wait(Deadline.after(0.05))
        assert dict(job.coverage.done) == {1: "page 1"}
    assert jobs.running == 1
    work.gate(2).set()
    async with jobs.join("k", (1, 2), work.start) as again:
        await again.wait(Deadline.after(60))
        assert again is job
        assert again.coverage.complete
    assert work.starts == 1
    await jobs.close()


async def test_two_hundred_calls_share_one_job() -> None:
    jobs, work = Jobs(background_limit_s=60), Work()

    async def call() -> dict[int, str]:
        async with jobs.join("k", (1,), work.start) as job:
            await job.wait(Deadline.after(60))
            return dict(job.coverage.done)

    calls = [asyncio.create_task(call()) for _ in range(200)]
    await asyncio.sleep(0)
    work.gate(1).set()
    assert await asyncio.gather(*calls) == [{1: "page 1"}] * 200
    assert work.starts == 1
    await jobs.close()


async def test_waiting_ends_as_soon_as_more_is_settled() -> None:
    jobs, work = Jobs(background_limit_s=60), Work()
    work.gate(1).set()
    async with jobs.join("k", (1, 2), work.start) as job:
        await job.wait_beyond(0, Deadline.after(60))
        assert job.coverage.unreached == (2,)
    await jobs.close()


async def test_a_job_whose_only_call_was_cancelled_stops_at_once() -> None:
    jobs, work = Jobs(background_limit_s=60), Work()

    async def call() -> None:
        async with jobs.join("k", (1,), work.start) as job:
            await job.wait(Deadline.after(60))

    task = asyncio.create_task(call())
    while not work.gates:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await work.stopped.wait()
    assert repr(jobs) == "<Jobs [0 running, 0 known]>"


async def test_a_cancelled_call_leaves_the_job_to_the_others() -> None:
    jobs, work = Jobs(background_limit_s=60), Work()

    async def call() -> bool:
        async with jobs.join("k", (1,), work.start) as job:
            await job.wait(Deadline.after(60))
            return job.coverage.complete

    first, second = asyncio.create_task(call()), asyncio.create_task(call())
    while not work.gates:
        await asyncio.sleep(0)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    work.gate(1).set()
    assert await second
    await jobs.close()


async def test_unfinished_work_stops_at_the_background_limit() -> None:
    jobs, work = Jobs(background_limit_s=0.02), Work()
    async with jobs.join("k", (1,), work.start) as job:
        await job.wait(Deadline.after(0.01))
        assert "running [0/1, 1 waiting]" in repr(job)
    await work.stopped.wait()
    await asyncio.gather(job.task or asyncio.sleep(0), return_exceptions=True)
    assert jobs.running == 0


async def test_without_background_nothing_goes_on_after_the_call() -> None:
    jobs, work = Jobs(background_limit_s=0), Work()
    async with jobs.join("k", (1,), work.start) as job:
        await job.wait(Deadline.after(0.01))
    await work.stopped.wait()


async def test_a_job_that_broke_is_started_anew_by_the_next_call() -> None:
    jobs, starts = Jobs(background_limit_s=60), []

    async def start(job: Job) -> None:
        starts.append(1)
        if len(starts) == 1:
            raise OSError("disk full")
        job.coverage.mark_done(1, "fine")

    async with jobs.join("k", (1,), start) as job:
        await job.wait(Deadline.after(60))
        assert job.finished
        with pytest.raises(OSError, match="disk full"):
            job.raise_error()
    async with jobs.join("k", (1,), start) as job:
        await job.wait(Deadline.after(60))
        assert job.coverage.complete
    await jobs.close()


async def test_what_ended_a_job_after_its_last_call_left_is_told_to_the_next_one() -> None:
    jobs, gate, starts = Jobs(background_limit_s=60), asyncio.Event(), []

    async def start(job: Job) -> None:
        starts.append(1)
        await gate.wait()
        raise OSError("disk full")

    async with jobs.join("k", (1,), start) as job:
        await job.wait(Deadline.after(0.01))
        job.raise_error()  # nothing yet
    gate.set()
    await asyncio.gather(job.task or asyncio.sleep(0), return_exceptions=True)
    async with jobs.join("k", (1,), start) as again:
        await again.wait(Deadline.after(60))
        with pytest.raises(OSError, match="disk full"):
            again.raise_error()
    assert len(starts) == 1
    await jobs.close()


async def test_work_that_one_call_left_for_later_goes_on_though_another_was_dropped() -> None:
    jobs, work = Jobs(background_limit_s=60), Work()
    async with jobs.join("k", (1,), work.start) as job:
        await job.wait(Deadline.after(0.01))

    async def dropped() -> None:
        async with jobs.join("k", (1,), work.start) as again:
            await again.wait(Deadline.after(60))

    call = asyncio.create_task(dropped())
    await asyncio.sleep(0)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    assert jobs.running == 1
    await jobs.close()


async def test_what_may_come_out_better_is_done_again_for_a_call_that_asks_for_it() -> None:
    jobs, work = Jobs(background_limit_s=60), Work()
    work.gate(1).set()
    seen: list[Job] = []
    for retry in (False, False, True):
        async with jobs.join("k", (1,), work.start, retry=retry) as job:
            assert job.task is not None
            await job.task
            job.again = True
            seen.append(job)
    assert seen[0] is seen[1] is not seen[2]
    assert work.starts == 2
    await jobs.close()


async def test_what_a_job_spent_in_the_background_is_told_by_the_one_that_takes_its_place() -> None:
    jobs = Jobs(background_limit_s=60)

    async def pay(job: Job) -> None:
        job.spent.add(1, Usage(requests=1))
        job.coverage.mark_done(1, "page 1")
        job.again = True

    async with jobs.join("k", (1,), pay) as first:
        await first.wait(Deadline.after(60))
    async with jobs.join("k", (1,), pay, retry=True) as second:
        await second.wait(Deadline.after(60))
    assert second is not first
    assert second.spent.take() == {1: Usage(requests=2)}
    assert second.spent.take() == {}
    await jobs.close()
