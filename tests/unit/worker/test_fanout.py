"""Fan-out: whatever happens, every item is done, failed or unreached."""

import asyncio
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.cursors import number_ranges
from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.fanout import Coverage, fan_out


def coverage_of(count: int) -> Coverage[int, str]:
    return Coverage(tuple(range(count)))


async def test_all_items_are_done_in_parallel_up_to_the_limit() -> None:
    running, most = 0, 0

    async def work(item: int) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return f"value {item}"

    coverage = await fan_out(coverage_of(20), work, deadline=Deadline.after(60), limit=3)
    assert coverage.done == {i: f"value {i}" for i in range(20)}
    assert coverage.complete
    assert most == 3


async def test_a_failure_costs_its_own_item_only(caplog: pytest.LogCaptureFixture) -> None:
    async def work(item: int) -> str:
        if item == 1:
            raise WorkerError("page_bad", "page 1 is bad")
        if item == 2:
            raise RuntimeError("a defect with /a/secret/path")
        return "fine"

    with caplog.at_level(logging.CRITICAL):
        coverage = await fan_out(coverage_of(4), work, deadline=Deadline.after(60), limit=2)
    assert set(coverage.done) == {0, 3}
    assert coverage.failed[1].code == "page_bad"
    assert coverage.failed[2].code == "internal"
    assert "secret" not in coverage.failed[2].public_text
    assert coverage.unreached == ()


async def test_at_the_deadline_running_items_are_cancelled_and_stay_unreached() -> None:
    cancelled = []

    async def work(item: int) -> str:
        if item == 0:
            return "quick"
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(item)
            raise
        raise AssertionError

    coverage = await fan_out(coverage_of(5), work, deadline=Deadline.after(0.05), limit=2)
    assert coverage.done == {0: "quick"}
    assert coverage.unreached == (1, 2, 3, 4)
    assert not coverage.complete
    assert sorted(cancelled) == [1, 2]


async def test_a_deadline_that_has_passed_starts_nothing() -> None:
    async def work(item: int) -> str:
        raise AssertionError

    coverage = await fan_out(coverage_of(3), work, deadline=Deadline.after(-1), limit=2)
    assert coverage.unreached == (0, 1, 2)


async def test_nothing_to_do_returns_at_once() -> None:
    async def work(item: int) -> str:
        raise AssertionError

    coverage = coverage_of(1)
    coverage.mark_done(0, "before")
    assert (await fan_out(coverage, work, deadline=Deadline.after(60), limit=2)).done == {0: "before"}


async def test_cancelling_the_caller_cancels_the_work() -> None:
    started, ended = asyncio.Event(), []

    async def work(item: int) -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(item)
        raise AssertionError

    coverage = coverage_of(3)
    caller = asyncio.create_task(fan_out(coverage, work, deadline=Deadline.after(60), limit=3))
    await started.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert sorted(ended) == [0, 1, 2]
    assert coverage.unreached == (0, 1, 2)


async def test_every_settled_item_wakes_those_who_watch() -> None:
    coverage = coverage_of(2)
    first = coverage.changed
    coverage.mark_done(0, "a")
    assert first.is_set()
    assert not coverage.changed.is_set()
    second = coverage.changed
    coverage.mark_failed(1, WorkerError("x", "y"))
    assert second.is_set()
    assert coverage.settled == 2


@given(st.lists(st.sampled_from(["done", "failed", "crash", "hang"]), max_size=12), st.integers(1, 5))
def test_no_item_is_ever_lost_or_counted_twice(fates: list[str], limit: int) -> None:
    async def work(item: int) -> str:
        match fates[item]:
            case "failed":
                raise WorkerError("failed", "as told")
            case "crash":
                raise ZeroDivisionError
            case "hang":
                await asyncio.Event().wait()
        return "done"

    async def run() -> None:
        logging.disable(logging.CRITICAL)
        coverage = coverage_of(len(fates))
        await fan_out(coverage, work, deadline=Deadline.after(0.005), limit=limit)
        states = [set(coverage.done), set(coverage.failed), set(coverage.unreached)]
        assert sum(map(len, states)) == len(fates)
        assert set.union(*states) == set(range(len(fates)))
        assert all(fates[i] == "done" for i in coverage.done)
        assert all(fates[i] in ("failed", "crash") for i in coverage.failed)

    try:
        asyncio.run(run())
    finally:
        logging.disable(logging.NOTSET)


@pytest.mark.parametrize(
    ("numbers", "text"), [([], ""), ([4], "4"), ([1, 2, 3, 7], "1-3,7"), ([9, 1, 2, 9], "1-2,9"), ([1, 3, 5], "1,3,5")]
)
def test_number_ranges_are_short(numbers: list[int], text: str) -> None:
    assert number_ranges(numbers) == text
