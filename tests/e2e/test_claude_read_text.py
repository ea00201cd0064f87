"""read_text with a vision provider: real worker, real engine, the scripted Claude at the other end of the wire."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp_types import CallToolResult
from tests.conftest import RunningWorker, serving
from tests.e2e.tools import Agent
from tests.fakes.claude_pages import TruePage, make_page
from tests.fakes.claude_script import Script, cut, overloaded, refusal, slow, stall
from tests.fakes.claude_server import FakeClaude, claude_server

from sam2_mcp_worker.cli.client import WorkerClient, first_text
from sam2_mcp_worker.settings import Settings

FAST, ACCURATE = "claude-haiku-5-5", "claude-sonnet-5-5"
# One, two and three tiles.
SMALL = make_page("small", 700, 300, fine_lines=2)
A4 = make_page("a4", 1240, 1500, density=0.4)
TALL = make_page("tall", 900, 3200, density=0.2)
CUT = make_page("cut", 800, 700, density=0.4)
TWICE = make_page("twice", 1240, 1300, density=0.2)
BUSY = make_page("busy", 1240, 1200, density=0.2)
LATER = make_page("later", 500, 250, fine_lines=1)
SLOW = make_page("slow", 500, 260, fine_lines=1)
SHELL = make_page("shell", 480, 240, fine_lines=1)
STALLED = make_page("stalled", 700, 500, density=0.6)
PAGES = (SMALL, A4, TALL, CUT, TWICE, BUSY, LATER, SLOW, SHELL, STALLED)


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeClaude]:
    with claude_server(PAGES, Script()) as running:
        yield running


@pytest.fixture(scope="module")
def reading(fake: FakeClaude, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWorker]:
    settings = Settings(
        port=0, data_dir=tmp_path_factory.mktemp("claude"), ocr_processes=1, segmenter="off", **fake.settings()
    )
    yield from serving(settings)


class HurriedClient(WorkerClient):
    """Says with every call how long it may take, as the bridge does."""

    def __init__(self, base_url: str, budget_ms: int | None) -> None:
        super().__init__(base_url, None)
        self._headers |= {} if budget_ms is None else {"Sam2-Mcp-Budget-Ms": str(budget_ms)}


class Reader:
    """Uploads a page and reads it; keeps what the last call cost."""

    def __init__(self, worker: RunningWorker, folder: Path) -> None:
        self._base_url = worker.base_url
        self._folder = folder
        self.usage: dict[str, Any] = {}

    async def call(self, page: TruePage, budget_ms: int | None, arguments: dict[str, Any]) -> CallToolResult:
        client = HurriedClient(self._base_url, budget_ms)
        source = await client.upload(page.write(self._folder))
        async with client.session() as session:
            return await session.call_tool("read_text", {"source": source, **arguments})

    async def read(self, page: TruePage, budget_ms: int | None = None, **arguments: Any) -> dict[str, Any]:
        result = await self.call(page, budget_ms, arguments)
        assert not result.is_error, first_text(result)
        assert result.meta is not None
        self.usage = result.meta["sam2-mcp/usage"]
        facts: dict[str, Any] = json.loads(first_text(result))
        return facts


@pytest.fixture
def reader(reading: RunningWorker, tmp_path: Path) -> Reader:
    return Reader(reading, tmp_path)


def texts(result: dict[str, Any]) -> list[str]:
    return sorted("".join(line["text"].split()) for line in result["lines"])


def truth(page: TruePage) -> list[str]:
    return sorted("".join(line.text.split()) for line in page.lines)


async def test_every_line_comes_where_it_stands_and_a_repeated_call_costs_nothing(
    fake: FakeClaude, reader: Reader
) -> None:
    fake.play(Script())
    first = await reader.read(A4)
    assert texts(first) == truth(A4)
    assert first["engine"] == f"{ACCURATE} (accurate)"
    assert "notes" not in first and first["undetected_ink"] == 0
    by_text = {"".join(line.text.split()): line for line in A4.lines}
    for line in first["lines"]:
        box = by_text["".join(line["text"].split())].box
        assert max(abs(a - b) for a, b in zip(line["box_xyxy_px"], box, strict=True)) <= 12
    assert reader.usage["requests"] == len(fake.requests) == 2
    assert sorted(reader.usage["per_tile"]) == ["1", "2"]
    assert (reader.usage["input_tokens"], reader.usage["output_tokens"]) == fake.tokens()
    assert 0 < reader.usage["usd"] <= reader.usage["usd_today"] < reader.usage["cap_usd"]
    again = await reader.read(A4)
    assert again["lines"] == first["lines"]
    assert (reader.usage["requests"], reader.usage["usd"], reader.usage["per_tile"]) == (0, 0, {})
    assert len(fake.requests) == 2 and not fake.refused and not fake.scaled_down


async def test_many_tiles_take_the_fast_model_unless_the_call_says_otherwise(fake: FakeClaude, reader: Reader) -> None:
    fake.play(Script())
    assert (await reader.read(TALL))["engine"] == f"{FAST} (fast)"
    assert {seen.model for seen in fake.requests} == {FAST} and len(fake.requests) >= 3
    fake.play(Script())
    assert (await reader.read(TALL, mode="accurate"))["engine"] == f"{ACCURATE} (accurate)"
    assert (await reader.read(SMALL, mode="fast"))["engine"] == f"{FAST} (fast)"
    assert [seen.model for seen in fake.requests][-1] == FAST


async def test_a_call_that_goes_on_with_the_cursor_is_not_told_the_cost_again(fake: FakeClaude, reader: Reader) -> None:
    fake.play(Script())
    first = await reader.read(TWICE, max_lines=3)
    assert reader.usage["requests"] == 2
    rest = await reader.read(TWICE, max_lines=100, cursor=first["cursor"])
    assert reader.usage["requests"] == 0
    assert sorted(texts(first) + texts(rest)) == truth(TWICE)
    assert len(fake.requests) == 2


async def test_a_cut_answer_is_asked_again_in_halves_and_nothing_is_lost(fake: FakeClaude, reader: Reader) -> None:
    fake.play(Script(faults=[cut(0.4)]))
    result = await reader.read(CUT)
    assert texts(result) == truth(CUT)
    assert "truncated_areas_px" not in result and "notes" not in result
    assert reader.usage["requests"] == 3


async def test_a_refused_tile_is_read_by_the_local_engine_and_said_so(fake: FakeClaude, reader: Reader) -> None:
    fake.play(Script(faults=[refusal()]))
    result = await reader.read(BUSY)
    assert result["coverage"]["failed"] == result["coverage"]["unreached"] == []
    (note,) = result["notes"]
    assert note.startswith("1 of 2 tiles were read by the local engine") and "vision_refused" in note
    fake.play(Script())
    again = await reader.read(BUSY)
    assert again["lines"] == result["lines"] and not fake.requests


async def test_an_overloaded_provider_fails_tiles_that_the_next_call_reads(fake: FakeClaude, reader: Reader) -> None:
    fake.play(Script(always=overloaded("3600")))
    failed = await reader.read(LATER)
    assert failed["coverage"] == {"total": 1, "done": 0, "failed": [1], "unreached": []} and "cursor" not in failed
    (area,) = failed["failed_areas"]
    assert "vision_overloaded" in area["reason"] and "3600 s" in area["reason"] and failed["lines"] == []
    assert reader.usage["requests"] == 1, "what a call without a result cost is told by that call"
    fake.play(Script())
    assert texts(await reader.read(LATER)) == truth(LATER)


async def test_a_tile_that_outlives_its_call_is_paid_once_and_found_by_the_next(
    fake: FakeClaude, reader: Reader
) -> None:
    fake.play(Script(always=slow(2.0)))
    first = await reader.read(SLOW, budget_ms=1200)
    assert first["coverage"]["unreached"] == [1] and first["lines"] == [] and first["cursor"]
    rest = await reader.read(SLOW, cursor=first["cursor"])
    assert texts(rest) == truth(SLOW)
    assert len(fake.requests) == 1 and reader.usage["requests"] == 1


async def test_where_nothing_goes_on_after_a_call_what_had_arrived_by_then_is_told(
    fake: FakeClaude, reading: RunningWorker, reader: Reader
) -> None:
    fake.play(Script(always=stall(0.6)))
    usual = reading.services.settings
    reading.services.settings = usual.model_copy(update={"background_limit_s": 0.0})
    try:
        result = await reader.read(STALLED, budget_ms=4000)
    finally:
        reading.services.settings = usual
    assert 0 < len(result["lines"]) < len(STALLED.lines)
    assert result["truncated_areas_px"] == [[0, 0, 700, 500]] and result["undetected_ink"] > 0
    assert any("calling again later" in note for note in result["notes"])
    fake.play(Script())
    assert texts(await reader.read(STALLED)) == truth(STALLED)


async def test_get_status_tells_what_leaves_and_what_today_cost(
    fake: FakeClaude, reading: RunningWorker, reader: Reader
) -> None:
    fake.play(Script())
    await reader.read(SMALL)
    status = await Agent(reading).call("get_status")
    vision = status["vision"]
    assert vision["sends_to"].startswith("127.0.0.1") and "tiles" in vision["what_leaves"]
    assert [model["id"] for model in vision["models"]] == [FAST, ACCURATE]
    assert {model["state"] for model in vision["models"]} == {"verified"}
    assert vision["today"]["requests"] > 0 and 0 < vision["today"]["usd"] < vision["today"]["cap_usd"]
    assert (vision["in_flight"], vision["waiting"], "trouble" in vision) == (0, 0, False)
    cost = reader.usage["per_tile"]["1"]
    assert vision["recent"][-1] == {
        "unit": "tile",
        "count": 1,
        "input_tokens_each": cost["input_tokens"],
        "output_tokens_each": cost["output_tokens"],
        "usd_each": cost["usd"],
    }
    paid = [engine for engine in status["engines"] if engine["costs_money"]]
    assert len(paid) == 2 and all(engine["leaves_machine"] for engine in paid)


async def test_a_call_from_the_shell_tells_its_cost_beside_the_result(
    fake: FakeClaude, reading: RunningWorker, tmp_path: Path
) -> None:
    fake.play(Script())
    source = str(SHELL.write(tmp_path))
    program = [sys.executable, "-m", "sam2_mcp_worker", "call", "read_text", '{"source": "{file0}"}', "--file", source]
    for requests in (1, 0):
        process = await asyncio.create_subprocess_exec(
            *program, "--url", reading.base_url, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        out, told = await process.communicate()
        assert json.loads(out)["coverage"]["done"] == 1
        assert f"USD ({requests} requests" in told.decode("utf-8")


async def test_without_a_provider_nothing_costs_money_and_a_mode_is_said_to_do_nothing(
    worker: RunningWorker, tmp_path: Path
) -> None:
    agent = Agent(worker)
    status = await agent.call("get_status")
    assert "vision" not in status and not any(engine["costs_money"] for engine in status["engines"])
    assert any("ANTHROPIC_API_KEY" in row["mend"] for row in status["not_available"])
    result = await agent.call("read_text", source=await agent.upload(SMALL.write(tmp_path)), mode="accurate")
    assert result["engine"] == "local OCR"
    assert "mode 'accurate'" in result["notes"][0]
