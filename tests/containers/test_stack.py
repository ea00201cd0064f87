"""The stack at work and under faults: images, health, right answers, a worker that goes away, a network that is cut."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont
from tests.containers.engine import docker, run
from tests.containers.figures import Figures, mib
from tests.containers.stack import IMAGE_TAG, Stack, Station, container, station_at, until, wait_until_healthy
from tests.e2e.rehearsal.driver import HONEST_FAILURE
from tests.e2e.rehearsal.processes import free_port
from tests.fakes.documents import document, good_page

from sam2_mcp_worker.cli.client import WorkerClient

SERVICES = ("worker", "station")
PARALLEL_SESSIONS = 8

# Imports the module of that name, or all that are in the package; prints the names of those without bytecode.
NOT_COMPILED = """
import importlib, pathlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
for module in pkgutil.walk_packages(getattr(package, "__path__", ()), package.__name__ + "."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
cached = {name: getattr(module, "__cached__", None) for name, module in sys.modules.items()}
print(*[name for name, path in cached.items() if path and not pathlib.Path(path).exists()])
"""

# The bridge's default deadline, and a second for two HTTP servers on two busy cores.
ANSWERED_WITHIN_S = 28.0
# For tests that wait for the deadline more than once.
SHORT_DEADLINE_S = 4.0


async def test_sessions_in_parallel_get_their_own_documents(stack: Stack, station: Station, tmp_path: Path) -> None:
    client = WorkerClient(stack.worker_url, stack.token)

    async def ask(number: int) -> tuple[str, str]:
        tag = f"session{number:03d}"
        path = tmp_path / f"{tag}.pdf"
        path.write_bytes(document([good_page(f"document {tag}")]))
        source = await client.upload(path)
        session = await station.open()
        return tag, await station.text(session, "inspect_pdf", source=source)

    answers = await asyncio.gather(*(ask(number) for number in range(PARALLEL_SESSIONS)))
    for tag, text in answers:
        assert re.findall(r"document (session\d+)", json.dumps(json.loads(text)["pages"])) == [tag]


async def test_a_picture_is_read_through_station_bridge_and_worker(
    stack: Stack, station: Station, tmp_path: Path
) -> None:
    picture = Image.new("RGB", (420, 120), "white")
    ImageDraw.Draw(picture).text((40, 30), "40718253", font=ImageFont.load_default(size=40), fill="black")
    picture.save(tmp_path / "number.png")
    source = await WorkerClient(stack.worker_url, stack.token).upload(tmp_path / "number.png")
    session = await station.open()
    assert "40718253" in await station.text(session, "read_text", source=source)
    assert {"get_status", "read_text", "inspect_pdf"} <= set(await station.tools(session))


@pytest.mark.parametrize("service", SERVICES)
def test_an_image_runs_as_nobody_and_compiles_nothing_at_its_start(
    stack: Stack, figures: Figures, service: str
) -> None:
    container = stack.container(service)
    assert docker("exec", container, "id", "-u") == "10001"
    package = {"worker": "sam2_mcp_worker.app", "station": "sam2_mcp_bridge"}[service]
    assert docker("exec", container, "python", "-c", NOT_COMPILED, package) == ""
    image = docker("inspect", "--format", "{{.Image}}", container)
    size_bytes = int(docker("inspect", "--format", "{{.Size}}", image))
    figures.add("images", **{f"{service}_mib": mib(size_bytes)})


def test_both_services_are_healthy_soon_after_their_start(stack: Stack, figures: Figures) -> None:
    for service in SERVICES:
        began_s = time.monotonic()
        stack.compose("restart", "--timeout", "20", service)
        stack.wait_until_healthy(service)
        figures.add("restart_to_healthy_s", **{service: round(time.monotonic() - began_s, 1)})


async def test_calls_during_a_restart_of_the_worker_are_answered_and_the_session_goes_on(
    stack: Stack, station: Station
) -> None:
    session = await station.open()
    assert await station.serves(session)
    restart = asyncio.create_task(asyncio.to_thread(stack.compose, "restart", "--timeout", "20", "worker"))
    answers = []
    while not restart.done():
        began_s = time.monotonic()
        answers.append(await station.text(session, "get_status"))
        assert time.monotonic() - began_s < ANSWERED_WITHIN_S
        await asyncio.sleep(0.2)
    await restart
    assert all(text.startswith("{") or HONEST_FAILURE.match(text) for text in answers), answers
    await asyncio.to_thread(stack.wait_until_healthy, "worker")
    assert await station.serves(session)


async def test_a_paused_worker_costs_the_calls_meanwhile_and_no_more(stack: Stack, station: Station) -> None:
    session = await station.open()
    assert await station.serves(session)
    worker = stack.container("worker")
    docker("pause", worker)
    try:
        began_s = time.monotonic()
        text = await station.text(session, "get_status")
        assert time.monotonic() - began_s < ANSWERED_WITHIN_S
        assert HONEST_FAILURE.match(text), text
    finally:
        docker("unpause", worker)
    assert await station.serves(session)


async def test_a_network_that_swallows_packets_is_reported_and_forgiven(stack: Stack, station: Station) -> None:
    session = await station.open(SAM2_MCP_DEADLINE_S=str(SHORT_DEADLINE_S))
    assert await station.serves(session)
    pid = docker("inspect", "--format", "{{.State.Pid}}", stack.container("worker"))
    rule = ("INPUT", "-p", "tcp", "--dport", "8765", "-j", "DROP")
    inside = ("nsenter", "--target", pid, "--net", "iptables")
    run(*inside, "--insert", *rule)
    try:
        texts = await asyncio.gather(*(station.text(session, "get_status") for _ in range(2)))
        assert all(HONEST_FAILURE.match(text) for text in texts), texts
    finally:
        run(*inside, "--delete", *rule)
    assert await station.serves(session)


async def test_a_worker_cut_off_from_the_network_is_found_again(stack: Stack, station: Station) -> None:
    session = await station.open(SAM2_MCP_DEADLINE_S=str(SHORT_DEADLINE_S))
    assert await station.serves(session)
    worker = stack.container("worker")
    docker("network", "disconnect", "--force", stack.network, worker)
    try:
        text = await station.text(session, "get_status")
        assert HONEST_FAILURE.match(text), text
    finally:
        docker("network", "connect", "--alias", "worker", stack.network, worker)
    assert await station.serves(session)


async def test_a_stopped_station_ends_its_bridges_and_starts_anew(stack: Stack, station: Station) -> None:
    for _ in range(3):
        assert await station.serves(await station.open())
    pids = [process.pid for process in stack.cgroup("station").bridges()]
    assert len(pids) == 3
    await asyncio.to_thread(stack.compose, "stop", "station")
    # SIGTERM was enough: 137 would be the kill after the grace period.
    state = await asyncio.to_thread(stack.state, "station")
    assert (state["ExitCode"], state["OOMKilled"]) in ((0, False), (143, False))
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    await asyncio.to_thread(stack.compose, "start", "station")
    await asyncio.to_thread(stack.wait_until_healthy, "station")
    assert await station.serves(await station.open())


async def test_a_station_that_was_killed_comes_back_by_itself(stack: Stack, station: Station) -> None:
    assert await station.serves(await station.open())
    container = stack.container("station")
    pid = int(docker("inspect", "--format", "{{.State.Pid}}", container))
    before = stack.restarts("station")
    run("kill", "-KILL", str(pid))
    await until("restarted", lambda: stack.restarts("station") > before)
    await asyncio.to_thread(stack.wait_until_healthy, "station")
    assert await station.serves(await station.open())


def is_listening(host: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


@pytest.fixture
async def host_worker(stack: Stack, tmp_path: Path) -> AsyncIterator[str]:
    """A worker on this machine, outside all containers, at the address that they reach: its host name and port."""
    gateway = docker("network", "inspect", "bridge", "--format", "{{(index .IPAM.Config 0).Gateway}}")
    port = free_port()
    variables = {
        "SAM2_MCP_TOKEN": stack.token,
        "SAM2_MCP_ALLOWED_HOSTS": f"host.docker.internal:{port}",
        "SAM2_MCP_DATA_DIR": str(tmp_path),
    }
    command = [sys.executable, "-m", "sam2_mcp_worker", "serve", "--host", gateway, "--port", str(port)]
    log_path = tmp_path / "worker.log"
    with log_path.open("wb") as log, ExitStack() as stop:
        worker = subprocess.Popen(command, env=os.environ | variables, stdout=log, stderr=log)
        stop.callback(worker.wait, 30)
        stop.callback(worker.terminate)
        await until("listening", lambda: worker.poll() is not None or is_listening(gateway, port))
        assert worker.poll() is None, log_path.read_text(encoding="utf-8")
        yield f"host.docker.internal:{port}"


@pytest.fixture
async def lone_station(stack: Stack, host_worker: str) -> AsyncIterator[Station]:
    """A station as deploy/README.md has it for a worker on the host."""
    port = free_port()
    arguments = (
        *("--add-host", "host.docker.internal:host-gateway", "--publish", f"127.0.0.1:{port}:8000"),
        *("--env", f"SAM2_MCP_TOKEN={stack.token}", "--env", f"SAM2_MCP_URL=http://{host_worker}/mcp"),
        f"sam2-mcp-station:{IMAGE_TAG}",
    )
    with container(*arguments) as name:
        await wait_until_healthy(name)
        async with station_at(port) as station:
            yield station


async def test_a_station_in_a_container_reaches_a_worker_on_the_host(lone_station: Station) -> None:
    assert await lone_station.serves(await lone_station.open())
