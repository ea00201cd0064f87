"""A third-party server for the bridge: the fixtures on the SDK with all that the worker leaves out. Run as a program.

Sessions, resumable streams, log levels and subscriptions; and `--era`, because real servers often know only one:
`legacy` behaves as servers from before 2026-07-28 do, `modern` as one that never had a handshake.
"""

import argparse
import json
import warnings
from collections import defaultdict
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.streamable_http import EventCallback, EventId, EventMessage, EventStore, StreamId
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types import EmptyResult, SetLevelRequestParams, SubscribeRequestParams, UnsubscribeRequestParams
from starlette.types import ASGIApp, Receive, Scope, Send
from tests.conformance.fixtures import add_fixtures

# What a client waits before it comes back to a closed stream.
RETRY_MS = 500

VERSION_HEADER = b"mcp-protocol-version"
MODERN_VERSIONS = (b"2026-07-28",)


class MemoryEvents(EventStore):
    """Every event since the start; a run of the suite makes some hundred."""

    def __init__(self) -> None:
        self._events: list[tuple[StreamId, Any]] = []

    async def store_event(self, stream_id: StreamId, message: Any) -> EventId:
        self._events.append((stream_id, message))
        return str(len(self._events))

    async def replay_events_after(self, last_event_id: EventId, send_callback: EventCallback) -> StreamId | None:
        if not last_event_id.isdecimal() or not 0 < int(last_event_id) <= len(self._events):
            return None
        stream_id = self._events[int(last_event_id) - 1][0]
        for number, (stream, message) in enumerate(self._events[int(last_event_id) :], int(last_event_id) + 1):
            if stream == stream_id and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream_id


class OneEra:
    """Lets through only what a server of one era would understand, and refuses the rest as such a server does."""

    def __init__(self, app: ASGIApp, era: str) -> None:
        self._app = app
        self._era = era

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._is_understood(dict(scope["headers"]).get(VERSION_HEADER)):
            return await self._app(scope, receive, send)
        words, code = ("Bad Request: Unsupported protocol version", -32600)
        if self._era == "modern":
            words, code = "Unsupported protocol version", -32022
        data = {"supported": ["2026-07-28"], "requested": ""} if self._era == "modern" else None
        error = {"code": code, "message": words} | ({"data": data} if data else {})
        body = json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 400, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _is_understood(self, version: bytes | None) -> bool:
        return (version in MODERN_VERSIONS) == (self._era == "modern")


def build_server() -> MCPServer[Any]:
    server: MCPServer[Any] = MCPServer("everything", version="1", log_level="ERROR")
    add_fixtures(server)
    watched: defaultdict[str, int] = defaultdict(int)

    async def subscribe(_: Any, params: SubscribeRequestParams) -> EmptyResult:
        watched[str(params.uri)] += 1
        return EmptyResult()

    async def unsubscribe(_: Any, params: UnsubscribeRequestParams) -> EmptyResult:
        watched.pop(str(params.uri), None)
        return EmptyResult()

    async def set_level(_: Any, params: SetLevelRequestParams) -> EmptyResult:
        return EmptyResult()

    handlers = server._lowlevel_server.add_request_handler
    handlers("resources/subscribe", SubscribeRequestParams, subscribe)
    handlers("resources/unsubscribe", UnsubscribeRequestParams, unsubscribe)
    handlers("logging/setLevel", SetLevelRequestParams, set_level)
    return server


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--era", choices=("dual", "legacy", "modern"), default="dual")
    options = parser.parse_args()
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    app: ASGIApp = build_server().streamable_http_app(event_store=MemoryEvents(), retry_interval=RETRY_MS)
    if options.era != "dual":
        app = OneEra(app, options.era)
    uvicorn.run(app, host="127.0.0.1", port=options.port, log_level="error")


if __name__ == "__main__":
    main()
