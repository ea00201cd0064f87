"""Claude is set up and cannot be used: every tool says why and what would mend it, and the local engine reads on."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import RunningWorker, serving
from tests.e2e.tools import Agent
from tests.fakes import claude_script as script
from tests.fakes.claude_pages import TruePage, make_page
from tests.fakes.claude_script import Script
from tests.fakes.claude_server import FakeClaude, claude_server

from sam2_mcp_worker.engines.claude import build_claude
from sam2_mcp_worker.settings import Settings

PAGE: TruePage = make_page("banner", 640, 200, shapes=("coin",), density=0.4)
POSTER: TruePage = make_page("poster", 900, 1500, shapes=("coin",), density=0.2)


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeClaude]:
    with claude_server([PAGE, POSTER]) as server:
        yield server


@pytest.fixture(scope="module")
def worker(fake: FakeClaude, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWorker]:
    folder = tmp_path_factory.mktemp("data")
    yield from serving(
        Settings(port=0, data_dir=folder, ocr_processes=1, decoder_processes=1, segmenter="off", **fake.settings())
    )


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return PAGE.write(tmp_path_factory.mktemp("pictures"))


@asynccontextmanager
async def provider(worker: RunningWorker, fake: FakeClaude, play: Script, **changes: Any) -> AsyncIterator[None]:
    """Give the worker a provider of its own that knows of no trouble yet."""
    fake.play(play)
    before = worker.services.vision
    settings = Settings(**{**worker.services.settings.model_dump(), **fake.settings(), **changes})
    vision = worker.services.vision = build_claude(settings)
    try:
        yield
    finally:
        worker.services.vision = before
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(vision.close(), worker.loop))


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


@pytest.mark.parametrize(
    ("play", "changes", "code", "mend"),
    [
        pytest.param(Script(), {"anthropic_api_key": "sk-wrong"}, "vision_auth", "ANTHROPIC_API_KEY", id="wrong key"),
        pytest.param(Script(always=script.NO_CREDIT), {}, "vision_credit", "credit", id="no credit"),
        pytest.param(Script(), {"claude_daily_cap_usd": 0.0}, "vision_cap", "CLAUDE_DAILY_CAP_USD", id="cap"),
        pytest.param(
            Script(unknown_fields=("output_config",)), {}, "vision_gateway", "ANTHROPIC_BASE_URL", id="old gateway"
        ),
        pytest.param(Script(always=script.no_api()), {}, "vision_gateway", "ANTHROPIC_BASE_URL", id="no API there"),
        pytest.param(
            Script(),
            {"anthropic_base_url": f"http://127.0.0.1:{closed_port()}"},
            "vision_unreachable",
            "network",
            id="unreachable",
        ),
        pytest.param(
            Script(),
            {"claude_fast_model": "claude-none", "claude_accurate_model": "claude-none"},
            "vision_model",
            "CLAUDE_FAST_MODEL",
            id="unknown model",
        ),
    ],
)
async def test_the_local_engine_reads_on_and_the_reason_is_told(
    worker: RunningWorker,
    fake: FakeClaude,
    picture: Path,
    play: Script,
    changes: dict[str, Any],
    code: str,
    mend: str,
) -> None:
    agent = Agent(worker)
    handle = await agent.upload(picture)
    async with provider(worker, fake, play, **changes):
        # The first call may find it out, the second knows.
        for mode in ("auto", "fast", "accurate"):
            read = await agent.call("read_text", source=handle, mode=mode)
            assert read["lines"]
            assert read["coverage"]["done"] == read["coverage"]["total"]
            assert any(code in note for note in read["notes"])
        inspected = await agent.call("inspect_image", source=handle, labels=["coin"], image="none")
        status = await agent.call("get_status")
    assert inspected["lines"]
    missing = inspected["regions"]["not_available"]
    assert mend in missing["mend"]
    assert inspected["regions"].get("found") is None
    assert not inspected["regions"]["complete"]
    assert mend in str(status)
    assert len(fake.requests) <= 4  # found out once, not by every tile of every call


async def test_an_overloaded_provider_costs_its_own_tiles_and_the_next_call_has_them(
    worker: RunningWorker, fake: FakeClaude, tmp_path: Path
) -> None:
    agent = Agent(worker)
    handle = await agent.upload(POSTER.write(tmp_path))
    async with provider(worker, fake, Script(faults=[script.rate_limited("3600")])):
        first = await agent.call("inspect_image", source=handle, labels=["coin", "seal"], image="none")
        assert len(first["coverage"]["failed"]) == 1
        assert 0 < first["coverage"]["done"] == first["coverage"]["total"] - 1
        assert "3600 s" in first["failed_areas"][0]["reason"]
        assert not first["regions"]["complete"]
        second = await agent.call("inspect_image", source=handle, labels=["coin", "seal"], image="none")
    assert second["coverage"]["failed"] == []
    assert [region["label"] for region in second["regions"]["found"]] == ["coin"]
    assert {line["text"] for line in second["lines"]} == {line.text for line in POSTER.lines}
    assert len(fake.requests) == second["coverage"]["total"] + 1


async def test_a_gateway_that_rejects_one_field_is_used_without_it(
    worker: RunningWorker, fake: FakeClaude, picture: Path
) -> None:
    agent = Agent(worker)
    async with provider(worker, fake, Script(unknown_fields=("transformations",))):
        read = await agent.call("inspect_image", source=await agent.upload(picture), labels=["seal"], image="none")
    assert read["engine"].startswith("claude-")
    assert len(read["lines"]) == len(PAGE.lines)
    assert read["regions"]["complete"]
