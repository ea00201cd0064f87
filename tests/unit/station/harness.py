"""A real station on a real socket, with shortened waits, and the loader's side of it."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from deploy.station import loader
from deploy.station.minimal_station.app import create_app
from deploy.station.minimal_station.contract import Timings

OBEDIENT = Path(__file__).parent / "children" / "obedient.py"
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

# Long enough that a child answers on a busy machine, short enough for tests that wait for a timeout.
SHORT = Timings(request_s=1.5, init_s=5.0, init_poll_s=0.05, terminate_s=0.5, kill_s=2.0, additional_delay_s=0.05)


class StationClient:
    """Starts children and calls their tools as the loader does."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.http = client

    async def start(self, *args: str, command: str = str(OBEDIENT), **extra: Any) -> str:
        """The id of a new session that runs `python -u command args`."""
        env_vars = {"PATH": PATH, **extra.pop("env_vars", {})}
        body = {"server_type": "python", "server_command": command, "server_args": args, "env_vars": env_vars, **extra}
        response = await self.http.post("/api/mcp/sessions", json=body)
        assert response.status_code == 201, response.text
        return str(response.json()["session_id"])

    async def call(self, session_id: str, timeout_s: float = loader.CALL_TIMEOUT_S, **arguments: Any) -> str:
        return await loader.call_tool(self.http, session_id, "any", arguments, timeout_s)

    async def raw(self, session_id: str, method: str = "tools/call", **arguments: Any) -> dict[str, Any]:
        body = {"session_id": session_id, "method": method, "params": {"name": "any", "arguments": arguments}}
        response = await self.http.post("/api/mcp/mcp-request", json=body)
        assert response.status_code == 200
        answer: dict[str, Any] = response.json()
        return answer

    async def info(self, session_id: str) -> dict[str, Any]:
        info: dict[str, Any] = (await self.http.get(f"/api/mcp/sessions/{session_id}")).json()
        return info

    async def listed(self) -> list[str]:
        return [each["session_id"] for each in (await self.http.get("/api/mcp/sessions")).json()]


@asynccontextmanager
async def running_station(timings: Timings) -> AsyncIterator[StationClient]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(create_app(timings), log_config=None, timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        base_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with httpx.AsyncClient(base_url=base_url, timeout=60, trust_env=False) as client:
            yield StationClient(client)
        server.should_exit = True
        await serving
