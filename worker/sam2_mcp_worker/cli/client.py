"""A client for the command line: uploads files and calls tools on a worker over real HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, ResourceLink, TextContent

from sam2_mcp_worker.errors import WorkerError

CHUNK_BYTES = 1024 * 1024
# A result holds its text twice (text and structured); 64 MiB is far above the largest that can be configured.
MAX_EVENT_BYTES = 64 * 1024 * 1024


class WorkerClient:
    """Talks to one worker. `base_url` is without /mcp."""

    def __init__(self, base_url: str, token: str | None) -> None:
        self.base_url = base_url.rstrip("/").removesuffix("/mcp")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def upload(self, path: Path, name: str = "") -> str:
        """Send a file, under its own name or another, and return its handle.

        Raises:
            WorkerError: the file cannot be read or the worker refused it.
        """

        async def chunks() -> AsyncIterator[bytes]:
            async with await anyio.open_file(path, "rb") as file:
                while chunk := await file.read(CHUNK_BYTES):
                    yield chunk

        try:
            path.open("rb").close()  # a file that cannot be read is not the worker's fault
            async with httpx.AsyncClient(trust_env=False, headers=self._headers, timeout=60) as client:
                query = {"name": name or path.name}
                answer = await client.post(f"{self.base_url}/files", params=query, content=chunks())
        except OSError as error:
            raise WorkerError("file_unreadable", f"{path}: {error.strerror}", next_step="check the path") from error
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        if answer.status_code != httpx.codes.CREATED:
            raise WorkerError("upload_refused", f"the worker answered {answer.status_code}: {answer.text[:300]}")
        return str(answer.json()["handle"])

    async def save(self, link: ResourceLink, folder: Path) -> Path:
        """Fetch the artifact that a result points to, into `folder`, under its name; nothing is overwritten.

        Raises:
            WorkerError: the worker does not give it out, or the folder cannot be written.
        """
        handle = str(link.uri).rpartition("/")[2]
        # Names come from the worker; only the last part of one is a file name here.
        path = folder / (Path(link.name).name or handle)
        if path.exists():
            path = folder / f"{handle}-{path.name}"
        try:
            await anyio.Path(folder).mkdir(parents=True, exist_ok=True)
            async with (
                httpx.AsyncClient(trust_env=False, headers=self._headers, timeout=60) as client,
                client.stream("GET", f"{self.base_url}/artifacts/{handle}") as answer,
            ):
                if answer.status_code != httpx.codes.OK:
                    raise WorkerError("artifact_refused", f"the worker answered {answer.status_code} for {link.name}")
                async with await anyio.open_file(path, "xb") as out:
                    async for chunk in answer.aiter_bytes(CHUNK_BYTES):
                        await out.write(chunk)
        except OSError as error:
            raise WorkerError(
                "folder_unwritable", f"{path}: {error.strerror}", next_step="name another --save"
            ) from error
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        return path

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Client]:
        """An MCP session with the worker."""
        http = httpx2.AsyncClient(headers=self._headers, trust_env=False, timeout=httpx2.Timeout(60))
        transport = streamable_http_client(f"{self.base_url}/mcp", http_client=http, max_sse_event_size=MAX_EVENT_BYTES)
        await self.check_reachable()
        async with http, Client(transport, mode="legacy") as client:
            yield client

    async def check_reachable(self) -> None:
        """Say in one line what the MCP client would say in a group of exceptions.

        Raises:
            WorkerError: nobody answers there, or no worker.
        """
        try:
            async with httpx.AsyncClient(trust_env=False, headers=self._headers, timeout=10) as client:
                answer = await client.get(f"{self.base_url}/version")
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        if answer.status_code != httpx.codes.OK:
            raise WorkerError("worker_refused", f"the worker answered {answer.status_code}: {answer.text[:300]}")

    def _unreachable(self, error: Exception) -> WorkerError:
        return WorkerError(
            "worker_unreachable",
            f"no worker answers at {self.base_url} ({type(error).__name__})",
            next_step="start it with `sam2-mcp-worker serve` or leave --url out",
        )


def first_text(result: CallToolResult) -> str:
    """The text that carries all facts of a result."""
    for block in result.content:
        if isinstance(block, TextContent):
            return block.text
    return json.dumps(result.structured_content, ensure_ascii=False)
