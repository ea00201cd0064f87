"""The real bridge under the station with its real figures: what the loader's side sees, call by call."""

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from deploy.station import loader
from deploy.station.minimal_station.contract import Timings
from tests.e2e.rehearsal.driver import HONEST_FAILURE
from tests.e2e.rehearsal.processes import Program, echo_worker_command, free_port, running
from tests.unit.station.harness import StationClient, running_station


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def worker(tmp_path: Path) -> Program:
    """Not started yet."""
    port = free_port()
    return Program(echo_worker_command(port), port, tmp_path / "worker.log")


@pytest.fixture
async def station() -> AsyncIterator[StationClient]:
    async with running_station(Timings()) as client:
        yield client


async def start_bridge(station: StationClient, worker: Program, deadline_s: float = 27.0) -> str:
    env_vars = {"SAM2_MCP_URL": f"http://127.0.0.1:{worker.port}/mcp", "SAM2_MCP_DEADLINE_S": str(deadline_s)}
    return await station.start("sam2_mcp_bridge", command="-m", env_vars=env_vars)


async def echo(station: StationClient, session: str, tag: str, delay_ms: int = 0, timeout_s: float = 30.0) -> str:
    arguments = {"tag": tag, "delay_ms": delay_ms}
    return await loader.call_tool(station.http, session, "echo", arguments, timeout_s)


async def test_a_session_begun_without_a_worker_serves_as_soon_as_there_is_one(
    station: StationClient, worker: Program
) -> None:
    session = await start_bridge(station, worker, deadline_s=2.0)
    assert HONEST_FAILURE.match(await echo(station, session, "early"))
    assert (await station.info(session))["mcp_initialized"] is True
    assert await loader.list_tools(station.http, session) == []
    async with running(worker):
        assert [tool["name"] for tool in await loader.list_tools(station.http, session)] == ["echo"]
        assert await echo(station, session, "A") == "A"


async def test_parallel_calls_of_unequal_length_get_their_own_answers(station: StationClient, worker: Program) -> None:
    async with running(worker):
        session = await start_bridge(station, worker)
        delays_ms = {"slow": 900, "middle": 400, "quick": 0}
        calls = [echo(station, session, tag, delay_ms) for tag, delay_ms in delays_ms.items()]
        assert await asyncio.gather(*calls) == list(delays_ms)


async def test_a_call_beyond_the_deadline_leaves_the_next_ones_right(station: StationClient, worker: Program) -> None:
    async with running(worker):
        session = await start_bridge(station, worker, deadline_s=1.0)
        assert (await echo(station, session, "late", delay_ms=3000)).startswith("[deadline] ")
        assert [await echo(station, session, tag) for tag in ("N2", "N3")] == ["N2", "N3"]
        await asyncio.sleep(2.5)  # past the moment at which the late answer would have come
        assert [await echo(station, session, tag) for tag in ("N4", "N5")] == ["N4", "N5"]


async def test_failures_that_come_at_the_deadline_itself_leave_the_bridge_alive(
    station: StationClient, worker: Program
) -> None:
    # While the bridge looks for a worker in the background, each call waits for that until its very deadline.
    session = await start_bridge(station, worker, deadline_s=0.3)
    for number in range(12):
        assert HONEST_FAILURE.match(await echo(station, session, str(number), timeout_s=5))
    assert (await station.info(session))["status"] == "running"


async def test_a_caller_that_gave_up_does_not_shift_the_others(station: StationClient, worker: Program) -> None:
    async with running(worker):
        session = await start_bridge(station, worker)
        assert await echo(station, session, "warm") == "warm"
        assert await echo(station, session, "A", delay_ms=800, timeout_s=0.2) == "Error calling tool: "
        assert [await echo(station, session, tag) for tag in ("B", "C")] == ["B", "C"]


async def test_arguments_nested_by_the_loader_under_kwargs_arrive(station: StationClient, worker: Program) -> None:
    async with running(worker):
        session = await start_bridge(station, worker)
        assert await loader.call_tool(station.http, session, "echo", {"kwargs": {"tag": "nested"}}) == "nested"


@pytest.mark.parametrize("characters", [20_000, 500_000])
async def test_a_long_line_passes_both_ways(station: StationClient, worker: Program, characters: int) -> None:
    async with running(worker):
        session = await start_bridge(station, worker)
        tag = "가" * characters
        assert await echo(station, session, tag) == tag


async def test_a_killed_worker_costs_only_the_calls_on_their_way(station: StationClient, worker: Program) -> None:
    async with running(worker):
        session = await start_bridge(station, worker)
        assert await echo(station, session, "warm") == "warm"
        dying = asyncio.create_task(echo(station, session, "dies", delay_ms=20_000))
        following = asyncio.create_task(echo(station, session, "queued"))
        await asyncio.sleep(0.3)  # so that the call is upstream when the worker goes
        await worker.end(signal.SIGKILL)
        worker.start()
        assert (await dying).startswith("[connection_broken] ")
        # The dying listener may have taken its connection too; whether that call ran, nobody can know.
        queued = await following
        assert queued == "queued" or queued.startswith("[connection_broken] ")
        assert [await echo(station, session, tag) for tag in ("N3", "N4")] == ["N3", "N4"]


async def test_deleting_the_session_ends_the_bridge_without_a_kill(station: StationClient, worker: Program) -> None:
    session = await start_bridge(station, worker)
    process = Path(f"/proc/{(await station.info(session))['pid']}")
    assert await asyncio.to_thread(process.exists)
    async with asyncio.timeout(Timings().terminate_s):
        assert (await station.http.delete(f"/api/mcp/sessions/{session}")).status_code == 204
    assert not process.exists()
