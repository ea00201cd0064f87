"""What the benches of Claude make of times, pages and calls: their arithmetic and verdicts, without the programs."""

from __future__ import annotations

import asyncio
import selectors
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.bench.claude import budget, long_pdf, repeat, schedule
from tests.bench.claude.ideal import busy_share, list_schedule_s
from tests.bench.claude.scene import Asked, Called, Record
from tests.fakes.claude_pages import make_page
from tests.fakes.claude_script import EVERY_FAULT

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines.request_limiter import RequestLimiter
from sam2_mcp_worker.fanout import Coverage, fan_out

LENGTHS = st.lists(st.floats(0, 30), min_size=1, max_size=60)


@given(LENGTHS, st.integers(1, 20))
def test_a_list_schedule_lies_between_its_two_bounds(lengths_s: list[float], slots: int) -> None:
    end_s = list_schedule_s(lengths_s, slots)
    least = max(max(lengths_s), sum(lengths_s) / slots)
    assert least - 1e-6 <= end_s <= sum(lengths_s) / slots + max(lengths_s) + 1e-6


def test_a_list_schedule_takes_the_next_piece_when_a_slot_is_free() -> None:
    assert list_schedule_s([4, 1, 1, 1, 5], 2) == 8
    assert list_schedule_s([1, 2, 3], 3) == 3
    assert list_schedule_s([], 3) == 0


def test_the_busy_share_counts_from_the_first_beginning_to_the_last_end() -> None:
    assert busy_share([(10, 12), (10, 11)], 2) == 0.75
    assert busy_share([], 2) == 0


class VirtualTime(asyncio.SelectorEventLoop):
    """A loop whose clock jumps to the next timer, so that hours pass at once and to the microsecond."""

    def __init__(self) -> None:
        super().__init__(selectors.DefaultSelector())
        self.now_s = 0.0
        select = self._selector.select  # type: ignore[attr-defined]

        def jump(timeout_s: float | None = None) -> Any:
            self.now_s += timeout_s or 0.0
            return select(0)

        self._selector.select = jump  # type: ignore[attr-defined]

    def time(self) -> float:
        return self.now_s


@given(st.lists(LENGTHS, min_size=1, max_size=9), st.integers(1, 16))
def test_pages_that_are_read_beside_each_other_leave_no_slot_of_the_provider_empty(
    pages: list[list[float]], slots: int
) -> None:
    """The fan-outs and the limiter that reading uses, with tiles that need no time but the provider's."""
    loop = VirtualTime()

    async def read() -> list[float]:
        limiter, deadline = RequestLimiter(slots), Deadline.after(1e9, loop.time)
        asked: list[float] = []

        async def read_page(number: int) -> None:
            tiles: Coverage[int, None] = Coverage(tuple(range(len(pages[number]))))

            async def read_tile(tile: int) -> None:
                async with limiter.slot(f"page {number}", deadline, again=False):
                    asked.append(pages[number][tile])
                    await asyncio.sleep(pages[number][tile])

            await fan_out(tiles, read_tile, deadline=deadline, limit=slots + 4)

        coverage: Coverage[int, None] = Coverage(tuple(range(len(pages))))
        await fan_out(coverage, read_page, deadline=deadline, limit=slots + 2)
        assert coverage.complete and not coverage.failed
        return asked

    asked = loop.run_until_complete(read())
    loop.close()
    assert len(asked) == sum(map(len, pages))
    assert loop.now_s == pytest.approx(list_schedule_s(asked, slots), abs=0.01)


GOOD_SCHEDULE = schedule.Schedule(1, 10.0, 11.0, 54, 0, 16, 0.8, 0.2, 10.0, 0.8, 9, 54, 2.0, 9.0, 3.0)


@pytest.mark.parametrize(
    "change", [{"took_s": 11.6}, {"pages_done": 8}, {"tiles_seen": 53}, {"in_flight_max": 17}], ids=str
)
def test_a_schedule_that_misses_its_bound_is_told(change: dict[str, Any]) -> None:
    assert GOOD_SCHEDULE.shortcomings() == []
    assert len(replace(GOOD_SCHEDULE, **change).shortcomings()) == 1
    assert "1.10" in schedule.table([GOOD_SCHEDULE])


PAGES = [make_page(f"judged-{number}", 600, 500, density=0.5) for number in range(3)]
RECORD = Record([Asked(0, 1, 0.5, 200, "cut", "max_tokens", [])], [], 0, 0, 4)


def called(*pages: dict[str, Any]) -> Called:
    return Called(0, 3.0, {"pages": list(pages)}, "", {"usd": 0.3, "output_tokens": 30})


def read_page(number: int, *, lines: int | None = None, **more: Any) -> dict[str, Any]:
    text = "\n".join(line.text for line in PAGES[number - 1].lines[:lines])
    return {"page_number": number, "status": "done", "ocr_text": text, **more}


def test_a_long_pdf_of_which_all_was_delivered_has_no_shortcoming() -> None:
    head, rest = read_page(2, lines=1, continues=True), read_page(2)
    found = long_pdf.judge(PAGES, [called(read_page(1), head), called(rest, read_page(3))], RECORD)
    assert found.shortcomings(27.0) == []
    assert (found.done, found.calls, found.faults) == (3, 2, {"cut": 1})
    assert found.usd_per_page == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("pages", "record", "word"),
    [
        ([read_page(1), read_page(2)], RECORD, "never delivered"),
        ([read_page(1), read_page(2), read_page(3), read_page(3)], RECORD, "delivered twice"),
        ([read_page(1), read_page(2), {"page_number": 3, "status": "failed"}], RECORD, "failed pages"),
        ([read_page(1), read_page(2, lines=-1), read_page(3)], RECORD, "1 of"),
        ([read_page(1), read_page(2), read_page(3)], replace(RECORD, refused=["400"]), "refused"),
        ([read_page(1), read_page(2), read_page(3)], replace(RECORD, scaled_down=1), "scaled down"),
    ],
)
def test_what_a_long_pdf_lost_is_told(pages: list[dict[str, Any]], record: Record, word: str) -> None:
    good = long_pdf.judge(PAGES, [called(*map(read_page, (1, 2, 3)))], record)
    assert "an error" in replace(good, errors=["[busy]"], refused=0, scaled_down=0).shortcomings(27.0)[0]
    (claim,) = long_pdf.judge(PAGES, [called(*pages)], record).shortcomings(27.0)
    assert word in claim
    assert len(long_pdf.judge(PAGES, [called(*pages)], record).shortcomings(3.0)) == 2


GOOD_REPEATS = repeat.Repeats(2, 6, 1, True, [9] * 6, 40, 0, 0, [4] * 6, 0, 0.0, True)


@pytest.mark.parametrize(
    "change",
    [
        {"readings": 2},
        {"complete": False},
        {"used_twice": 1},
        {"left_behind": 1},
        {"copy_requests": [4, 0]},
        {"repeat_requests": 1},
        {"repeat_usd": 0.01},
        {"repeats_same": False},
    ],
    ids=str,
)
def test_a_repeat_that_differs_or_costs_is_told(change: dict[str, Any]) -> None:
    assert GOOD_REPEATS.shortcomings() == []
    assert len(replace(GOOD_REPEATS, **change).shortcomings()) == 1


def test_late_and_unexplained_calls_and_growing_memory_are_told() -> None:
    good = budget.Ended("read_text", "stall", 5.4, "some unreached", internal=False)
    run = budget.Run([good] * 3, server_mb=[100, 120, 121], tree_mb=[500, 600, 600])
    assert run.shortcomings(3) == []
    assert "longest_s" in str(run.as_dict())
    assert "only 3 calls" in run.shortcomings(4)[0]
    run.calls = [good, replace(good, took_s=5.6), replace(good, internal=True)]
    run.server_mb[-1] = 140
    assert [claim.split()[0] for claim in run.shortcomings(3)] == ["1", "1", "the"]


def test_the_end_of_a_call_is_told_in_a_word() -> None:
    def end(facts: dict[str, Any], error: str = "") -> str:
        return budget.end_of(Called(0, 1, facts, error, {}))

    assert end({}, "[busy] too much; wait") == "busy"
    assert end({}) == "answered"
    assert end({"coverage": {"failed": [1], "unreached": [2]}}) == "some failed"
    assert end({"coverage": {"failed": [], "unreached": [2]}}) == "some unreached"
    assert end({"coverage": {"failed": [], "unreached": []}}) == "all done"


def test_the_default_bench_makes_the_calls_that_it_promises() -> None:
    lost = sum(fault.name in budget.WHOLE_PROVIDER for fault in EVERY_FAULT)
    calls = (len(EVERY_FAULT) - lost) * (3 * budget.ROUNDS + 4) + lost * (3 * budget.ROUNDS_OF_A_LOST_PROVIDER + 4)
    assert calls >= 500 and lost == len(budget.WHOLE_PROVIDER)
    assert budget.supplies_needed(EVERY_FAULT, budget.ROUNDS) * 1.0 >= calls - 2 * len(EVERY_FAULT)
