"""Calls tools on a running worker the way an agent does: real HTTP, real MCP client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mcp_types import AudioContent, ImageContent
from tests.conftest import RunningWorker

from sam2_mcp_worker.cli.client import WorkerClient, first_text


class ToolFailure(Exception):
    """A tool's error text."""


class Agent:
    """One agent; each call is a session of its own, as the worker is stateless."""

    def __init__(self, worker: RunningWorker) -> None:
        self._client = WorkerClient(worker.base_url, worker.token)

    async def upload(self, path: Path) -> str:
        return await self._client.upload(path)

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The facts of one call.

        Raises:
            ToolFailure: the tool reported an error.
        """
        async with self._client.session() as session:
            result = await session.call_tool(tool, arguments)
        text = first_text(result)
        if result.is_error:
            raise ToolFailure(text)
        facts: dict[str, Any] = json.loads(text)
        seen = any(isinstance(block, ImageContent | AudioContent) for block in result.content)
        assert result.structured_content == (None if seen else facts)
        return facts

    async def follow(self, tool: str, **arguments: Any) -> list[dict[str, Any]]:
        """All results up to the end of the cursor."""
        results = [await self.call(tool, **arguments)]
        while cursor := results[-1].get("cursor"):
            assert len(results) < 200, "the cursor does not end"
            results.append(await self.call(tool, **arguments, cursor=cursor))
        return results
