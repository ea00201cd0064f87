"""Tools through an MCP station: a session with a bridge of its own for every run, spoken to as the XGEN loader does.

Wire contract: POST /api/mcp/sessions, POST /api/mcp/mcp-request (reference/station.md). The station never compares
ids, so a session in which a call was not answered in time is given up for good: its late answer would be the next one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import httpx2

from sam2_mcp_worker.evaluation.ports import CALL_LIMIT_S, ToolAnswer, ToolSession
from sam2_mcp_worker.evaluation.runs import RefusedRun

# The bridge answers inside 27 s, the station gives up at 30: what comes later is nobody's answer.
HTTP_LIMIT_S = CALL_LIMIT_S + 2
NO_RESPONSE = "No response from MCP server"
# A bridge answers with an empty list until it has reached its worker; the loader would not ask twice.
TOOLS_WAIT_S = 20.0
TOOLS_POLL_S = 0.5


class Uploader(Protocol):
    """Hands a file to the worker behind the bridge."""

    async def upload(self, path: Path, name: str) -> str:
        """Its handle."""
        ...


@dataclass(frozen=True, slots=True)
class BridgeCommand:
    """What the station starts. `environment` is logged by the station in clear: name a token's file, not the token."""

    command: str = "-m"
    arguments: tuple[str, ...] = ("sam2_mcp_bridge",)
    environment: dict[str, str] = field(default_factory=dict)


class StationTarget:
    """A station at `url`, and the uploader of the worker that its bridges talk to."""

    def __init__(
        self, url: str, bridge: BridgeCommand, uploader: Uploader, *, call_limit_s: float = HTTP_LIMIT_S
    ) -> None:
        self._url = url.rstrip("/")
        self._bridge = bridge
        self._uploader = uploader
        self._call_limit_s = call_limit_s

    async def upload(self, path: Path, name: str) -> str:
        """Straight to the worker: the station carries no files."""
        return await self._uploader.upload(path, name)

    @asynccontextmanager
    async def session(self, run_id: str) -> AsyncIterator[ToolSession]:
        """A session named after the run; deleted at the end, whatever happened.

        Raises:
            RefusedRun: `target_unreachable`.
        """
        body = {
            "server_type": "python",
            "server_command": self._bridge.command,
            "server_args": list(self._bridge.arguments),
            "env_vars": self._bridge.environment,
            "session_name": run_id,
        }
        async with httpx2.AsyncClient(base_url=self._url, trust_env=False, timeout=self._call_limit_s) as client:
            try:
                answer = (await client.post("/api/mcp/sessions", json=body)).raise_for_status()
                session_id = str(answer.json()["session_id"])
            except (httpx2.HTTPError, ValueError, KeyError, TypeError) as error:
                raise RefusedRun("target_unreachable", f"no session: {type(error).__name__}") from error
            try:
                yield _StationSession(client, session_id)
            finally:
                with suppress(httpx2.HTTPError):
                    await client.delete(f"/api/mcp/sessions/{session_id}")


class _StationSession:
    def __init__(self, client: httpx2.AsyncClient, session_id: str) -> None:
        self._client = client
        self._session_id = session_id

    async def tools(self) -> list[str]:
        """Asked again while there are none: the bridge may not have reached its worker yet."""
        give_up_s = time.monotonic() + TOOLS_WAIT_S
        while True:
            with suppress(RefusedRun) if time.monotonic() < give_up_s else nullcontext():
                result = await self._request("tools/list", {})
                if result.get("tools") or time.monotonic() >= give_up_s:
                    return [str(tool.get("name")) for tool in result.get("tools") or [] if isinstance(tool, dict)]
            await asyncio.sleep(TOOLS_POLL_S)

    async def call(self, tool: str, arguments: dict[str, Any]) -> ToolAnswer:
        """One tools/call; only the first block counts, as for the loader."""
        result = await self._request("tools/call", {"name": tool, "arguments": arguments})
        content = result.get("content")
        if not isinstance(content, list) or not content or not isinstance(content[0], dict) or "text" not in content[0]:
            raise RefusedRun("answer_unreadable", f"{tool}: the answer has no text block")
        return ToolAnswer(str(content[0]["text"]), bool(result.get("isError")))

    async def _request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        body = {"session_id": self._session_id, "method": method, "params": params}
        try:
            answer = (await self._client.post("/api/mcp/mcp-request", json=body)).raise_for_status().json()
        except httpx2.TimeoutException as error:
            raise RefusedRun("timeout", f"{method}: no answer from the station") from error
        except (httpx2.HTTPError, ValueError) as error:
            raise RefusedRun("target_unreachable", f"{method}: {type(error).__name__}") from error
        if not isinstance(answer, dict) or not answer.get("success"):
            raise _refusal(method, str(answer.get("error") if isinstance(answer, dict) else answer))
        if not isinstance(answer.get("data"), dict):
            # A notification or a request of the server was taken for the answer; the real one answers the next call.
            raise RefusedRun("answer_unreadable", f"{method}: a line that is no answer; the session is spoiled")
        data: dict[str, Any] = answer["data"]
        return data


def _refusal(method: str, error: str) -> RefusedRun:
    if NO_RESPONSE in error:
        return RefusedRun("timeout", f"{method}: {error[:200]}")
    if "Session" in error:
        return RefusedRun("session_lost", f"{method}: {error[:200]}")
    return RefusedRun("target_error", f"{method}: {error[:300]}")
