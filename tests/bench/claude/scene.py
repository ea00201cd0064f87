"""The stage of the benches of Claude: the scripted Claude, the worker and the agent, each in a process of its own.

So the fake's looking at pictures takes no time of the worker's event loop. What it takes of the cores stays.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import anyio
import httpx
from tests.e2e.rehearsal.processes import Program, free_port, running
from tests.fakes.claude_pages import Box, TruePage
from tests.fakes.claude_script import Script
from tests.fakes.claude_server import FakeClaude, claude_server

from sam2_mcp_worker.cli.client import WorkerClient, first_text

USAGE_KEY = "sam2-mcp/usage"
START_LIMIT_S = 120.0
MOST_ERRORS = 2
# Settings that come as environment variables without the worker's prefix.
UNPREFIXED = ("anthropic_api_key", "anthropic_base_url", "openai_api_key", "openai_base_url")

MakeScript = Callable[[], Script]


@dataclass(frozen=True)
class Asked:
    """One request as the fake saw it; times on the machine's monotonic clock."""

    started_s: float
    ended_s: float
    latency_s: float
    status: int
    fault: str
    stop_reason: str
    tiles: list[tuple[str, Box] | None]

    @property
    def span_s(self) -> tuple[float, float]:
        return self.started_s, self.ended_s


@dataclass(frozen=True)
class Record:
    """What the fake saw since its script began."""

    requests: list[Asked]
    refused: list[str]
    scaled_down: int
    unknown: int
    in_flight_max: int


@dataclass
class FakeProcess:
    """The scripted Claude in another process. Scripts hold functions, so they are made there, by `MakeScript`."""

    settings: dict[str, Any]
    pid: int
    _pipe: Connection = field(repr=False)

    def _ask(self, what: str, argument: Any = None) -> Any:
        self._pipe.send((what, argument))
        return self._pipe.recv()

    def play(self, make: MakeScript) -> None:
        """Another script, and records that begin anew."""
        self._ask("play", make)

    def record(self) -> Record:
        record: Record = self._ask("record")
        return record


def _serve(pipe: Connection, pages: Sequence[TruePage], make: MakeScript) -> None:
    for page in pages:
        _ = page.lines  # where each character stands takes a while to find out: not while somebody waits
    with claude_server(pages, make()) as fake:
        pipe.send(fake.settings())
        while True:
            what, argument = pipe.recv()
            if what == "stop":
                return
            if what == "play":
                fake.play(argument())
            pipe.send(_record(fake) if what == "record" else None)


def _record(fake: FakeClaude) -> Record:
    requests = [
        Asked(s.started_s, s.ended_s, s.latency_s, s.status, s.fault, s.stop_reason, list(s.tiles))
        for s in fake.requests
        if s.ended_s
    ]
    return Record(requests, list(fake.refused), len(fake.scaled_down), fake.unknown_pictures, fake.in_flight_max)


@contextmanager
def fake_process(pages: Sequence[TruePage], make: MakeScript) -> Iterator[FakeProcess]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, pages, make), daemon=True)
    process.start()
    assert process.pid is not None
    try:
        yield FakeProcess(ours.recv(), process.pid, ours)
    finally:
        ours.send(("stop", None))
        process.join(START_LIMIT_S)


@dataclass(frozen=True)
class RunningProgram:
    """A worker that is a process of its own."""

    client: WorkerClient
    pid: int


def environment(data_dir: Path, settings: dict[str, Any]) -> dict[str, str]:
    """Settings as environment variables."""
    named = {name.upper() if name in UNPREFIXED else f"SAM2_MCP_{name.upper()}": settings[name] for name in settings}
    return {"SAM2_MCP_DATA_DIR": str(data_dir), **{name: str(value) for name, value in named.items()}}


@asynccontextmanager
async def worker_program(folder: Path, **settings: Any) -> AsyncIterator[RunningProgram]:
    """`sam2-mcp-worker serve` with these settings, ready for calls; its log goes to `folder`."""
    port = free_port()
    command = [sys.executable, "-m", "sam2_mcp_worker", "serve", "--port", str(port)]
    program = Program(command, port, folder / "worker.log", environment(folder / "data", settings))
    async with running(program), httpx.AsyncClient(trust_env=False) as http:
        url = f"http://127.0.0.1:{port}"
        with anyio.fail_after(START_LIMIT_S):
            while (await http.get(f"{url}/readyz")).status_code != httpx.codes.OK:
                await anyio.sleep(0.1)
        assert program._process is not None
        yield RunningProgram(WorkerClient(url, None), program._process.pid)


@dataclass(frozen=True)
class Called:
    """One call of a tool: its facts or the text of its error, its cost, and how long the agent waited."""

    started_s: float
    took_s: float
    facts: dict[str, Any]
    error: str
    usage: dict[str, Any]


async def call(client: WorkerClient, tool: str, **arguments: Any) -> Called:
    async with client.session() as session:
        started_s = time.monotonic()
        result = await session.call_tool(tool, arguments)
        took_s = time.monotonic() - started_s
    text = first_text(result)
    usage = (result.meta or {}).get(USAGE_KEY, {})
    return Called(
        started_s, took_s, {} if result.is_error else json.loads(text), text if result.is_error else "", usage
    )


async def follow(client: WorkerClient, tool: str, **arguments: Any) -> list[Called]:
    """All calls up to the end of the cursor. After an error the same call is made again, as an agent does: twice."""
    calls = [await call(client, tool, **arguments)]
    cursor, errors = "", 0
    while calls[-1].error or calls[-1].facts.get("cursor"):
        errors += bool(calls[-1].error)
        if errors > MOST_ERRORS:
            break
        cursor = calls[-1].facts.get("cursor", cursor)
        calls.append(await call(client, tool, **arguments, **({"cursor": cursor} if cursor else {})))
    return calls


def cpu_s(pids: Iterable[int]) -> float:
    """Processor time that these processes have taken so far."""
    ticks = 0
    for pid in pids:
        with suppress(OSError):  # it has ended
            fields = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def resident_mb(pids: Iterable[int]) -> float:
    """Memory that these processes hold together."""
    total_kb = 0
    for pid in pids:
        with suppress(OSError):  # it has ended
            for line in Path(f"/proc/{pid}/status").read_text("ascii", "replace").splitlines():
                total_kb += int(line.split()[1]) if line.startswith("VmRSS") else 0
    return total_kb / 1024


def quiet_environment() -> None:
    """No key of a developer's, no setting of a shell's."""
    for name in list(os.environ):
        if name.startswith(("SAM2_MCP_", "ANTHROPIC_", "OPENAI_")) and name != "SAM2_MCP_TESSDATA_DIR":
            del os.environ[name]
