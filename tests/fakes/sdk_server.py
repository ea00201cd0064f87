"""MCP servers on the official SDK, in this process on a real port: what the bridge meets in the wild."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import uvicorn
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types import EmptyResult, SubscribeRequestParams
from pydantic import AnyUrl
from starlette.types import ASGIApp
from tests.conformance.everything_server import MemoryEvents, OneEra, build_server

PATIENCE_S = 30.0


@dataclass
class SdkServer:
    """The fixtures of the conformance suite and some tools more.

    `started` and `cancelled` are about the tool `slow`, `subscribed` is about resources.
    """

    era: str
    stateless: bool
    resumable: bool
    port: int = 0
    cancelled: threading.Event = field(default_factory=threading.Event)
    started: threading.Event = field(default_factory=threading.Event)
    subscribed: threading.Event = field(default_factory=threading.Event)
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def app(self) -> ASGIApp:
        server = build_server()

        @server.tool(structured_output=False)
        async def slow() -> str:
            """Sleeps for a minute."""
            self.started.set()
            try:
                await anyio.sleep(60)
            except anyio.get_cancelled_exc_class():
                self.cancelled.set()
                raise
            return "woken"

        @server.tool(structured_output=False)
        async def 인사(이름: str) -> str:
            """Greets."""
            return f"안녕 {이름}"

        @server.tool(structured_output=False)
        async def meta(ctx: Context[Any, Any]) -> str:
            """What the request says about its client."""
            params = ctx.session.client_params
            return "" if params is None else str(params.client_info.name)

        @server.tool(structured_output=False)
        async def report(uri: str, ctx: Context[Any, Any]) -> str:
            """Says, to whom it may concern, that the tools and this resource have changed."""
            await ctx.session.send_tool_list_changed()
            await ctx.session.send_resource_updated(AnyUrl(uri))
            return "reported"

        async def subscribe(_: Any, params: SubscribeRequestParams) -> EmptyResult:
            self.subscribed.set()
            return EmptyResult()

        server._lowlevel_server.add_request_handler("resources/subscribe", SubscribeRequestParams, subscribe)
        app: ASGIApp = server.streamable_http_app(
            stateless_http=self.stateless,
            event_store=MemoryEvents() if self.resumable else None,
            retry_interval=100 if self.resumable else None,
        )
        return app if self.era == "dual" else OneEra(app, self.era)

    async def serve(self, ready: threading.Event) -> None:
        config = uvicorn.Config(self.app(), port=self.port, log_level="critical", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        task = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        self.port = server.servers[0].sockets[0].getsockname()[1]
        self.loop = asyncio.get_running_loop()
        ready.set()
        await self.stop.wait()
        server.should_exit = True
        await task


@contextmanager
def sdk_server(
    era: str = "dual", *, stateless: bool = False, resumable: bool = False, port: int = 0
) -> Iterator[SdkServer]:
    """A server of `era` dual, legacy or modern; both of the last refuse the other one as such servers do."""
    server = SdkServer(era, stateless, resumable, port)
    ready = threading.Event()

    def run() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            asyncio.run(server.serve(ready))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(PATIENCE_S)
    try:
        yield server
    finally:
        server.loop.call_soon_threadsafe(server.stop.set)
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
