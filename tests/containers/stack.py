"""The stack as its users start it: docker-compose.yml, unchanged, under a project name and on ports of its own.

Also the station's side of a session. Knows no test.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
from deploy.station import loader
from tests.containers.cgroup import Cgroup
from tests.containers.engine import compose_command, docker, run
from tests.e2e.rehearsal.processes import free_port

ROOT = Path(__file__).parents[2]

# The images that a developer may have made stay as they are.
IMAGE_TAG = "test"
# Both are how `remove_leftovers` knows what a run that was killed has left; Compose's containers would start again.
PROJECT = "sam2mcptest"
LABEL = "sam2-mcp-test"

# Two busy cores: the worker imports for 3 s and starts its children before it is healthy.
HEALTHY_LIMIT_S = 120.0
HEALTH = "{{.State.Health.Status}}"
# As the station's own: its clients have gone by then.
REQUEST_TIMEOUT_S = 35.0


class Station:
    """Sessions of one station, by its HTTP interface."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def open(self, command: str = "-m", *args: str, **env_vars: str) -> str:
        """The id of a new session; by default of the bridge that is installed in the image."""
        args = args or (("sam2_mcp_bridge",) if command == "-m" else ())
        body = {"server_type": "python", "server_command": command, "server_args": args, "env_vars": env_vars}
        response = await self.http.post("/api/mcp/sessions", json=body)
        assert response.status_code == 201, response.text
        return str(response.json()["session_id"])

    async def close(self, session_id: str) -> None:
        await self.http.delete(f"/api/mcp/sessions/{session_id}")

    async def close_all(self) -> None:
        """Every session that lives, whoever opened it."""
        for session in (await self.http.get("/api/mcp/sessions")).json():
            await self.close(session["session_id"])

    async def text(self, session_id: str, tool: str, **arguments: Any) -> str:
        """What the language model reads after a call of the tool."""
        return await loader.call_tool(self.http, session_id, tool, arguments)

    async def facts(self, session_id: str, tool: str, **arguments: Any) -> dict[str, Any]:
        text = await self.text(session_id, tool, **arguments)
        assert text.startswith("{"), text[:500]
        facts: dict[str, Any] = json.loads(text)
        return facts

    async def serves(self, session_id: str) -> bool:
        """Whether a call is answered with the worker's own facts."""
        return (await self.text(session_id, "get_status")).startswith("{")

    async def tools(self, session_id: str) -> list[str]:
        return [str(tool["name"]) for tool in await loader.list_tools(self.http, session_id)]

    async def info(self, session_id: str) -> dict[str, Any]:
        info: dict[str, Any] = (await self.http.get(f"/api/mcp/sessions/{session_id}")).json()
        return info


@asynccontextmanager
async def station_at(port: int) -> AsyncIterator[Station]:
    """A client of the station on this port."""
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{port}", timeout=REQUEST_TIMEOUT_S, trust_env=False
    ) as http:
        yield Station(http)


class Stack:
    """Worker and station by Compose. Methods block; `wait_until_healthy` is what `up --wait` does in Compose 2."""

    def __init__(self, base_image: str) -> None:
        self.project = f"{PROJECT}{os.getpid()}"
        self.token = secrets.token_urlsafe(24)
        self.station_port, self.worker_port = free_port(), free_port()
        self._env = {
            "COMPOSE_PROJECT_NAME": self.project,
            "BASE_IMAGE": base_image,
            "SAM2_MCP_TAG": IMAGE_TAG,
            "SAM2_MCP_TOKEN": self.token,
            "STATION_PORT": str(self.station_port),
            "WORKER_PORT": str(self.worker_port),
            # What the developer's shell holds is nobody's business here.
            "ANTHROPIC_API_KEY": "",
            "OPENAI_API_KEY": "",
        }

    @property
    def worker_url(self) -> str:
        return f"http://127.0.0.1:{self.worker_port}"

    @property
    def network(self) -> str:
        return f"{self.project}_default"

    def compose(self, *arguments: str) -> str:
        return run(*compose_command(), "-f", str(ROOT / "docker-compose.yml"), *arguments, env=self._env)

    def container(self, service: str) -> str:
        """The id of the service's container, running or not."""
        label = f"com.docker.compose.service={service}"
        found = docker(
            "ps", "-aq", "-f", f"label={label}", "-f", f"label=com.docker.compose.project={self.project}", "--no-trunc"
        ).split()
        assert len(found) == 1, f"{len(found)} containers of {service}"
        return found[0]

    def state(self, service: str) -> dict[str, Any]:
        state: dict[str, Any] = json.loads(docker("inspect", "--format", "{{json .State}}", self.container(service)))
        return state

    def restarts(self, service: str) -> int:
        """How often the engine itself has started the container again."""
        return int(docker("inspect", "--format", "{{.RestartCount}}", self.container(service)))

    def cgroup(self, service: str) -> Cgroup:
        return Cgroup(self.container(service))

    def wait_until_healthy(self, *services: str) -> None:
        deadline_s = time.monotonic() + HEALTHY_LIMIT_S
        for service in services:
            while self.state(service).get("Health", {}).get("Status") != "healthy":
                assert time.monotonic() < deadline_s, docker("logs", "--tail", "50", self.container(service))
                time.sleep(0.2)

    def down(self) -> None:
        self.compose("down", "--volumes", "--timeout", "5")


@contextmanager
def container(*arguments: str) -> Iterator[str]:
    """The id of a container beside the stack, removed behind the block; arguments as for `docker run`."""
    name = docker("run", "--detach", "--init", "--label", LABEL, *arguments)
    try:
        yield name
    finally:
        docker("rm", "--force", "--volumes", name)


def remove_leftovers() -> None:
    """What earlier runs have left behind. One run at a time on a machine."""
    for flag in (f"name={PROJECT}", f"label={LABEL}"):
        if containers := docker("ps", "--all", "--quiet", "--filter", flag).split():
            docker("rm", "--force", "--volumes", *containers)
    if networks := docker("network", "ls", "--quiet", "--filter", f"name={PROJECT}").split():
        docker("network", "rm", *networks)
    if volumes := docker("volume", "ls", "--quiet", "--filter", f"name={PROJECT}").split():
        docker("volume", "rm", *volumes)


async def until(what: str, holds: Any, limit_s: float = 30.0) -> None:
    """Wait until the condition, a function that may block, is true."""
    with anyio.move_on_after(limit_s):
        while not await anyio.to_thread.run_sync(holds):
            await anyio.sleep(0.1)
        return
    raise AssertionError(f"not within {limit_s:g} s: {what}")


async def wait_until_healthy(name: str) -> None:
    """For a container beside the stack."""
    await until(f"{name} is healthy", lambda: docker("inspect", "--format", HEALTH, name) == "healthy", HEALTHY_LIMIT_S)
