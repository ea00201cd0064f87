"""Requests to a vision provider: never more at once than allowed, in turn between jobs, retries first."""

from __future__ import annotations

import asyncio

import pytest

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines.request_limiter import RequestLimiter


def long() -> Deadline:
    """Made by each test: one made with the module is over before a long suite comes here."""
    return Deadline.after(60)


async def hold(limiter: RequestLimiter, name: str, log: list[str], job: str, *, again: bool = False) -> None:
    async with limiter.slot(job, long(), again=again):
        log.append(name)
        assert limiter.in_flight <= limiter.size
        await asyncio.sleep(0)


async def test_jobs_are_served_in_turn_and_retries_before_them() -> None:
    limiter, log = RequestLimiter(1), list[str]()
    async with limiter.slot("long", long(), again=False):
        tasks = [asyncio.create_task(hold(limiter, f"long{number}", log, "long")) for number in range(3)]
        tasks.append(asyncio.create_task(hold(limiter, "short", log, "short")))
        tasks.append(asyncio.create_task(hold(limiter, "retry", log, "long", again=True)))
        await asyncio.sleep(0)
        assert (limiter.in_flight, limiter.waiting) == (1, 5)
    await asyncio.gather(*tasks)
    assert log == ["retry", "long0", "short", "long1", "long2"]
    assert (limiter.in_flight, limiter.waiting) == (0, 0)


async def test_no_more_than_allowed_are_under_way_at_once() -> None:
    limiter, log = RequestLimiter(3), list[str]()
    await asyncio.gather(*(hold(limiter, str(number), log, str(number % 2)) for number in range(40)))
    assert len(log) == 40
    assert limiter.in_flight == 0


async def test_whoever_gives_up_leaves_the_queue_and_loses_no_slot() -> None:
    limiter, log = RequestLimiter(1), list[str]()
    async with limiter.slot("a", long(), again=False):
        with pytest.raises(TimeoutError):
            async with limiter.slot("b", Deadline.after(0.01), again=False):
                pass
        waiting = asyncio.create_task(hold(limiter, "c", log, "c"))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert limiter.waiting == 0
    assert limiter.in_flight == 0


async def test_a_slot_that_comes_at_the_moment_of_cancellation_goes_on_to_the_next() -> None:
    limiter, log = RequestLimiter(1), list[str]()
    async with limiter.slot("a", long(), again=False):
        late = asyncio.create_task(hold(limiter, "late", log, "b"))
        after = asyncio.create_task(hold(limiter, "after", log, "c"))
        await asyncio.sleep(0)
    late.cancel()  # its turn has been given already
    await asyncio.gather(late, after, return_exceptions=True)
    assert "after" in log
    assert limiter.in_flight == 0
