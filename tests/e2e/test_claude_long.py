"""The benches of Claude in short: a document under faults loses nothing, and one that is read again is the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bench.claude import long_pdf, repeat
from tests.bench.claude.scene import Asked, Record, follow
from tests.conftest import RunningWorker, serving
from tests.fakes.claude_pages import make_page, pdf_of
from tests.fakes.claude_script import Latency, Script, cut, overloaded, rate_limited, reset
from tests.fakes.claude_server import FakeClaude, claude_server

from sam2_mcp_worker.cli.client import WorkerClient
from sam2_mcp_worker.settings import Settings

IN_FLIGHT = 4
# Two tiles each.
LONG = [make_page(f"faulty-{number}", 700, 2200, density=0.4, fine_lines=1) for number in range(6)]
AGAIN = [make_page("again", 700, 900, density=0.4, shapes=["coin", "seal"])]


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeClaude]:
    with claude_server([*LONG, *AGAIN]) as fake:
        yield fake


@pytest.fixture(scope="module")
def worker(fake: FakeClaude, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWorker]:
    data_dir = tmp_path_factory.mktemp("claude-long")
    yield from serving(
        Settings(
            port=0,
            data_dir=data_dir,
            segmenter="off",
            ocr_processes=1,
            vision_in_flight=IN_FLIGHT,
            call_budget_s=60,
            **fake.settings(),
        )
    )


async def test_faults_that_fit_the_time_cost_no_line_and_no_page(
    worker: RunningWorker, fake: FakeClaude, tmp_path: Path
) -> None:
    faults = [None, overloaded(), cut(0.6), None, rate_limited("1"), reset(0.4), None, cut(0.3)]
    fake.play(Script(faults=faults, latency=Latency(1.0, 1.2)))
    path = tmp_path / "long.pdf"
    path.write_bytes(pdf_of(LONG))
    client = WorkerClient(worker.base_url, worker.token)
    calls = await follow(client, "inspect_pdf", source=await client.upload(path))
    seen = [
        Asked(s.started_s, s.ended_s, s.latency_s, s.status, s.fault, s.stop_reason, s.tiles) for s in fake.requests
    ]
    record = Record(seen, fake.refused, len(fake.scaled_down), fake.unknown_pictures, fake.in_flight_max)
    found = long_pdf.judge(LONG, calls, record)
    assert found.shortcomings(limit_s=600) == []
    assert found.done == len(LONG) and found.lines > 100
    assert found.faults == Counter(fault.name for fault in faults if fault)
    assert record.unknown == 0
    assert fake.in_flight_max == IN_FLIGHT, "the provider's slots are filled, and no more than those"


async def test_copies_give_the_same_and_the_same_document_costs_nothing_again(
    worker: RunningWorker, fake: FakeClaude, tmp_path: Path
) -> None:
    fake.play(Script(latency=Latency(0.1, 0.4)))
    found = await repeat.read_again_and_again(worker, fake, pdf_of(AGAIN), tmp_path)
    assert found.shortcomings() == []
    assert found.pages == 1 and found.characters[0] > 100
