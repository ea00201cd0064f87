"""Who carries out the tools of an evaluation: a worker over MCP, or a station with bridges to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client

from sam2_mcp_worker.cli.client import WorkerClient, first_text
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.evaluation.ports import CALL_LIMIT_S, ToolAnswer, ToolSession
from sam2_mcp_worker.evaluation.runs import RefusedRun
from sam2_mcp_worker.evaluation.station import BridgeCommand, StationTarget
from sam2_mcp_worker.settings import Settings


def station_target(url: str, bridge_url: str | None, worker: WorkerClient) -> StationTarget:
    """A station whose bridges reach the worker at `bridge_url`, or where we do.

    Raises:
        WorkerError: `token_needs_file`: the station logs what a bridge is given, so only a file's name may go there.
    """
    environment = {"SAM2_MCP_URL": f"{(bridge_url or worker.base_url).removesuffix('/mcp')}/mcp"}
    settings = Settings()
    if settings.token is not None and settings.token.get_secret_value():
        raise WorkerError(
            "token_needs_file", "SAM2_MCP_TOKEN would stand in the station's log", next_step="set SAM2_MCP_TOKEN_FILE"
        )
    if settings.token_file is not None:
        environment["SAM2_MCP_TOKEN_FILE"] = str(settings.token_file.resolve())
    return StationTarget(url, BridgeCommand(environment=environment), worker)


class WorkerTarget:
    """A worker, spoken to over MCP without station and bridge, under the same limit for a call."""

    def __init__(self, worker: WorkerClient) -> None:
        self._worker = worker

    async def upload(self, path: Path, name: str) -> str:
        """Its handle."""
        return await self._worker.upload(path, name)

    @asynccontextmanager
    async def session(self, run_id: str) -> AsyncIterator[ToolSession]:
        """An MCP session; what a run raises comes out as it is, not in a group."""
        try:
            async with self._worker.session() as client:
                yield WorkerSession(client)
        except BaseExceptionGroup as group:
            refused = group.subgroup(RefusedRun)
            if refused is None:
                raise
            raise _first(refused) from group


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class WorkerSession:
    """One session with a worker."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def tools(self) -> list[str]:
        """Names of the tools."""
        return [tool.name for tool in (await self._client.list_tools()).tools]

    async def call(self, tool: str, arguments: dict[str, Any]) -> ToolAnswer:
        """One call."""
        try:
            async with asyncio.timeout(CALL_LIMIT_S):
                result = await self._client.call_tool(tool, arguments)
        except TimeoutError as error:
            raise RefusedRun("timeout", f"{tool}: no answer in {CALL_LIMIT_S:g} s") from error
        return ToolAnswer(first_text(result), bool(result.is_error))
