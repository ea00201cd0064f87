"""The server of the bench, in a process of its own: streamable HTTP with sessions, as every bridge accepts it.

    python -m tests.bench.bridge.upstream [PORT]      prints its port, serves until stdin ends

A session belongs to one life of the process, so ending it and starting another one on the same port is the restart of
a stateful server. Every tool answers with the `tag` of its arguments, so that a host which does not look at ids, as the
station, can tell whose answer came:

    echo   at once                  wait   after `seconds`
    log    a log message first      large  `megabytes` of text behind the tag
"""

from __future__ import annotations

import asyncio
import sys
import uuid

from tests.fakes import upstream as fake
from tests.fakes.upstream import JSON, SSE, Behaviour, Call, FakeUpstream, event, head, raw, response, tool_text

SCHEMA = {"type": "object", "properties": {"tag": {"type": "string"}}}
TOOLS = [{"name": name, "description": name, "inputSchema": SCHEMA} for name in ("echo", "wait", "log", "large")]
LOG_MESSAGE = {
    "jsonrpc": "2.0",
    "method": "notifications/message",
    "params": {"level": "info", "data": "a line that no request waits for"},
}


async def call_tool(call: Call) -> None:
    params = call.message["params"]
    arguments = params.get("arguments") or {}
    await asyncio.sleep(arguments.get("seconds", 0))
    text = arguments["tag"] + "x" * int(arguments.get("megabytes", 0) * 1_000_000)
    log = event(LOG_MESSAGE) if params["name"] == "log" else b""
    body = log + event(response(call, tool_text(text)))
    await call.send(head(200, SSE, length=len(body)) + body)


def in_session(sessions: set[str], then: Behaviour) -> Behaviour:
    async def behave(call: Call) -> None:
        if call.headers.get("mcp-session-id") in sessions:
            return await then(call)
        await raw(404, JSON, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Session not found"}}')(call)

    return behave


def serve(port: int) -> None:
    sessions: set[str] = set()

    async def initialize(call: Call) -> None:
        sessions.add(session_id := uuid.uuid4().hex)
        await fake.initialize(session_id)(call)

    with FakeUpstream(port, keep_alive=True) as server:
        server.on |= {
            "initialize": initialize,
            "notifications/initialized": in_session(sessions, raw(202, "", b"")),
            "tools/list": in_session(sessions, fake.result({"tools": TOOLS}, sse=False)),
            "tools/call": in_session(sessions, call_tool),
            "GET": raw(405, "", b"", "allow: POST, DELETE"),
        }
        server.calls = fake._Nothing()
        sys.stdout.write(f"{server.port}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    serve(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
