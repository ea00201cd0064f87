"""How many sessions 512 MB hold, and what happens to the others when memory runs out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from tests.containers.cgroup import Cgroup
from tests.containers.engine import docker
from tests.containers.figures import MIB, Figures, mib
from tests.containers.filling import check, fill
from tests.containers.sized_upstream import PORT, text_of
from tests.containers.stack import IMAGE_TAG, ROOT, Stack, Station, container, until

STATION_LIMIT_BYTES = 512 * MIB
UPSTREAM_URL = f"http://127.0.0.1:{PORT}/mcp"
TOO_LARGE_BYTES = 50 * MIB
# Below the bridge's own limit for a line, 8 MiB, by more than the line needs beside the text.
LARGE_BYTES = 8 * MIB - 64 * 1024
PARALLEL_LARGE = 4


@pytest.fixture
def fresh(stack: Stack) -> Cgroup:
    """The station's control group, after a new start."""
    stack.compose("restart", "--timeout", "10", "station")
    stack.wait_until_healthy("worker", "station")
    cgroup = stack.cgroup("station")
    assert cgroup.limit_bytes() == STATION_LIMIT_BYTES
    return cgroup


@pytest.fixture
def upstream(stack: Stack, fresh: Cgroup) -> Iterator[str]:
    """The URL, for bridges, of a server with answers of any size; its memory is not the station's."""
    arguments = (
        *("--network", f"container:{stack.container('station')}", "--volume", f"{ROOT / 'tests'}:/src/tests:ro"),
        *("--env", "PYTHONPATH=/src", "--workdir", "/src", "--entrypoint", "python3"),
        *(f"sam2-mcp-station:{IMAGE_TAG}", "-m", "tests.containers.sized_upstream"),
    )
    with container(*arguments):
        yield UPSTREAM_URL


@pytest.mark.timeout(300)
async def test_two_dozen_sessions_fit_and_one_too_many_costs_no_other(
    stack: Stack, station: Station, fresh: Cgroup, figures: Figures
) -> None:
    restarts = stack.restarts("station")
    filled = await fill(station, fresh, station.serves)
    figures.add(
        "sessions_in_512_mb",
        **filled.figures(),
        ended_by="the kernel, memory limit" if fresh.oom_kills() else "the test",
        swap_mib=mib(fresh.swap_bytes()),
    )
    check(filled, fresh)
    assert stack.restarts("station") == restarts


async def test_an_answer_of_50_mb_becomes_one_line_of_text_and_harms_nobody(
    stack: Stack, station: Station, fresh: Cgroup, upstream: str, figures: Figures
) -> None:
    bystander, session = await station.open(), await station.open(SAM2_MCP_URL=upstream)
    assert await station.serves(bystander)
    assert await station.text(session, "sized", tag="warm", size_bytes=10) == text_of("warm", 10)
    before = fresh.bridges()
    texts = [await station.text(session, "sized", tag="huge", size_bytes=TOO_LARGE_BYTES) for _ in range(3)]
    assert all(text.startswith("[answer_too_large] ") for text in texts), [text[:200] for text in texts]
    assert await station.text(session, "sized", tag="after", size_bytes=10) == text_of("after", 10)
    assert await station.serves(bystander)
    after = fresh.bridges()
    assert [bridge.pid for bridge in after] == [bridge.pid for bridge in before]
    grown = max(b.private_bytes - a.private_bytes for a, b in zip(before, after, strict=True))
    figures.add("answer_of_50_mb", bridge_grown_mib=mib(grown), oom_kills=fresh.oom_kills())
    assert fresh.oom_kills() == 0


async def test_answers_up_to_the_limit_come_whole_in_parallel_and_their_memory_goes_back(
    stack: Stack, station: Station, fresh: Cgroup, upstream: str, figures: Figures
) -> None:
    sessions = [await station.open(SAM2_MCP_URL=upstream) for _ in range(PARALLEL_LARGE)]
    for number, session in enumerate(sessions):
        assert await station.text(session, "sized", tag=f"warm{number}", size_bytes=10) == text_of(f"warm{number}", 10)
    before = fresh.bridges()
    for _ in range(3):
        texts = await asyncio.gather(
            *(
                station.text(session, "sized", tag=f"s{number}", size_bytes=LARGE_BYTES)
                for number, session in enumerate(sessions)
            )
        )
        assert [text == text_of(f"s{number}", LARGE_BYTES) for number, text in enumerate(texts)] == [True] * len(texts)
    # An ordinary call afterwards, as in a session that goes on.
    for session in sessions:
        assert await station.text(session, "sized", tag="after", size_bytes=10) == text_of("after", 10)
    after = fresh.bridges()
    grown = [b.private_bytes - a.private_bytes for a, b in zip(before, after, strict=True)]
    figures.add(
        "answers_of_8_mb",
        parallel=PARALLEL_LARGE,
        bridge_grown_mib=mib(max(grown)),
        oom_kills=fresh.oom_kills(),
        station_private_mib=mib(max(p.private_bytes for p in fresh.processes() if not p.is_bridge)),
    )
    assert fresh.oom_kills() == 0
    assert max(grown) < LARGE_BYTES


async def test_a_bridge_that_the_kernel_ends_leaves_the_others(
    stack: Stack, station: Station, fresh: Cgroup, upstream: str
) -> None:
    others = [await station.open() for _ in range(4)]
    large = await station.open(SAM2_MCP_URL=upstream)
    assert all([await station.serves(session) for session in others])
    assert await station.text(large, "sized", tag="warm", size_bytes=10) == text_of("warm", 10)
    name, restarts = stack.container("station"), stack.restarts("station")
    # No room for the answer: a real shortage, made by the limit rather than by filling it up.
    scarce_bytes = str(fresh.usage_bytes() + 4 * MIB)
    docker("update", "--memory", scarce_bytes, "--memory-swap", scarce_bytes, name)
    # The station waits 30 s for a line of a process that has ended; nobody here does.
    call = asyncio.create_task(station.text(large, "sized", tag="large", size_bytes=LARGE_BYTES))
    try:
        await until("one bridge has ended", lambda: len(fresh.bridges()) == len(others))
    finally:
        limit = str(STATION_LIMIT_BYTES)
        docker("update", "--memory", limit, "--memory-swap", limit, name)
    assert fresh.oom_kills() == 1
    assert all([await station.serves(session) for session in others])
    assert await station.serves(await station.open())
    assert stack.restarts("station") == restarts
    call.cancel()
