"""The zipapp on each Python that the project names: started by a station that runs on it."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from deploy.pyz.build import build
from tests.containers.bases import SUITES, Bases
from tests.containers.cgroup import Cgroup
from tests.containers.engine import docker
from tests.containers.figures import Figures
from tests.containers.filling import check, fill
from tests.containers.sized_upstream import PORT, text_of
from tests.containers.stack import ROOT, Station, container, station_at, wait_until_healthy
from tests.e2e.rehearsal.driver import HONEST_FAILURE
from tests.e2e.rehearsal.processes import free_port

SESSIONS = 8
PYZ = "/dist/sam2-mcp-bridge.pyz"
SOURCES = ("--volume", f"{ROOT}:/src:ro", "--workdir", "/src", "--env", "PYTHONPATH=/src")


@pytest.fixture(scope="module", params=SUITES)
def python(request: pytest.FixtureRequest) -> str:
    """The minor version."""
    return str(request.param)


@pytest.fixture(scope="module")
def image(bases: Bases, python: str) -> str:
    """The station's image on this Python."""
    name = f"sam2-mcp-station:python{python}"
    base = bases.image(SUITES[python])
    docker("build", "-q", "--build-arg", f"BASE_IMAGE={base}", "-f", "deploy/Dockerfile.station", "-t", name, str(ROOT))
    return name


@pytest.fixture(scope="module")
def running(image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """A station in 512 MB with the zipapp at PYZ, an upstream beside it, and the station's port."""
    folder = tmp_path_factory.mktemp("dist")
    build(folder / Path(PYZ).name)
    folder.chmod(0o755)
    folder.parent.chmod(0o755)
    port = free_port()
    station_arguments = (
        *("--read-only", "--tmpfs", "/tmp", "--memory", "512m", "--memory-swap", "512m"),
        *("--publish", f"127.0.0.1:{port}:8000", "--volume", f"{folder}:/dist:ro"),
        *("--env", f"SAM2_MCP_URL=http://127.0.0.1:{PORT}/mcp", image),
    )
    upstream_arguments = (*SOURCES, "--entrypoint", "python", image, "-m", "tests.containers.sized_upstream")
    with (
        container(*station_arguments) as station,
        container("--network", f"container:{station}", *upstream_arguments),
    ):
        yield station, port


@pytest.fixture
async def station(running: tuple[str, int]) -> AsyncIterator[Station]:
    name, port = running
    await wait_until_healthy(name)
    async with station_at(port) as station:
        yield station
        await station.close_all()


async def test_the_zipapp_serves_sessions(
    station: Station, running: tuple[str, int], python: str, figures: Figures
) -> None:
    name, _ = running
    version = docker("exec", name, "python", "--version").removeprefix("Python ")
    assert version.startswith(f"{python}.")
    sessions, starts_s = [], []
    for number in range(SESSIONS):
        began_s = time.monotonic()
        session = await station.open(PYZ)
        assert await station.tools(session) == ["echo"]
        starts_s.append(time.monotonic() - began_s)
        assert await station.text(session, "sized", tag=f"s{number}", size_bytes=100) == text_of(f"s{number}", 100)
        sessions.append(session)
    bridges = Cgroup(name).bridges()
    assert len(bridges) == SESSIONS and all(PYZ in bridge.command for bridge in bridges)
    figures.add(
        f"pyz_on_python_{python}",
        version=version,
        # With the station's own poll of 0.5 s for a process that is not ready at once.
        open_to_tools_s=round(statistics.median(starts_s), 2),
    )
    # A call that goes wrong is a text on every Python, and the session serves on.
    text = await station.text(sessions[0], "sized", tag="huge", size_bytes=50 * 2**20)
    assert HONEST_FAILURE.match(text), text[:200]
    assert await station.text(sessions[0], "sized", tag="after", size_bytes=9) == text_of("after", 9)
    for session in sessions:
        await station.close(session)
    assert Cgroup(name).bridges() == []


async def test_two_dozen_sessions_of_the_zipapp_fit_in_512_mb(
    station: Station, running: tuple[str, int], python: str, figures: Figures
) -> None:
    async def serves(session: str) -> bool:
        return await station.text(session, "sized", tag=session, size_bytes=100) == text_of(session, 100)

    cgroup = Cgroup(running[0])
    filled = await fill(station, cgroup, serves, PYZ)
    figures.add(f"pyz_on_python_{python}", **filled.figures())
    check(filled, cgroup)


def test_without_httpx_the_zipapp_says_what_is_missing(image: str, running: tuple[str, int]) -> None:
    name, _ = running
    # The system's own Python holds no httpx.
    source = (
        "import subprocess, sys; done = subprocess.run(['/usr/bin/python3', '-u', sys.argv[1]], input=b'',"
        " capture_output=True); print(done.returncode, done.stdout, done.stderr.decode())"
    )
    said = docker("exec", name, "python", "-c", source, PYZ)
    assert re.match(r"3 b'' sam2-mcp: httpx cannot be imported .*pip install httpx", said), said


# The machine's own Python runs these in any case, and the stack's is between the two.
@pytest.mark.parametrize("python", ["3.14"], indirect=True)
def test_the_bridge_passes_its_own_tests_on_the_newest_python(image: str) -> None:
    # It asks the worker's code, which is not there.
    deselected = "-k 'not names_shared_with_the_worker'"
    script = (
        "cp -r /opt/venv /tmp/venv && /tmp/venv/bin/python -m pip install -q --no-cache-dir"
        " mcp pytest pytest-timeout hypothesis trustme &&"
        # What hypothesis says of its own random numbers on this Python is not ours to mend.
        " /tmp/venv/bin/python -m pytest -q -p no:cacheprovider --confcutdir=tests/unit/bridge"
        f" -W 'ignore:It looks like `register_random`' {deselected}"
        " tests/unit/bridge"
    )
    # CI chooses hypothesis' settings for shared machines; /src cannot be written.
    variables = ("--env", "CI=true", "--env", "HYPOTHESIS_STORAGE_DIRECTORY=/tmp/hypothesis")
    said = docker(
        *("run", "--rm", "--init", *SOURCES, *variables, "--user", "0"),
        *("--entrypoint", "sh", image, "-euc", script),
    )
    assert re.match(r"\d+ passed", said.splitlines()[-1]), said[-2000:]
