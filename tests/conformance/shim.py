"""Gives the bridge an HTTP face, so that the suite's server scenarios can talk to it. Run as a program.

Raw and small: it moves JSON-RPC messages between POSTs and the bridge's stdin and stdout, and knows nothing of their
meaning beyond whose they are. What is HTTP in a scenario (status codes, headers, sessions) is the shim's and says
nothing about the bridge; those scenarios are left out (tests/conformance/groups.py). What it does hold the bridge to
is the contract of stdio: ASCII lines of JSON, one answer for each request, none for anything else. Breaches are
listed at GET /breaches, and the run counts them as a failed check.

A host from before 2026-07-28 has a bridge per session. Modern requests share one as long as they declare the same
capabilities: what declares others is another host, and over stdio that is another process.
"""

import argparse
import asyncio
import json
import os
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

Message = dict[str, Any]

SESSION_HEADER = "mcp-session-id"
HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
META = "io.modelcontextprotocol/"
# How an HTTP server of 2026-07-28 says these errors; everything else travels as 200.
STATUS_OF_ERROR = {-32601: 404, -32600: 400, -32602: 400, -32020: 400, -32021: 400, -32022: 400}
LINE_LIMIT_BYTES = 64 * 2**20
END_LIMIT_S = 5.0


class Stream:
    """What one HTTP response still has to carry; ends with the answer to its request."""

    def __init__(self, request: Message | None = None) -> None:
        self.request = request or {}
        self.messages: asyncio.Queue[Message] = asyncio.Queue()
        self.answered = False

    @property
    def progress_token(self) -> Any:
        return _meta(self.request).get("progressToken")

    async def __aiter__(self) -> AsyncIterator[Message]:
        while True:
            message = await self.messages.get()
            yield message
            if "method" not in message:
                return


class Breaches(list[str]):
    """What the bridge wrote against the contract of stdio."""


class Bridge:
    """One bridge process and the requests that wait for its lines."""

    def __init__(self, command: list[str], breaches: Breaches) -> None:
        self._command = command
        self._breaches = breaches
        self._waiting: dict[str | int, Stream] = {}
        self.background = Stream()
        self._ending = False

    async def start(self) -> None:
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(
            *self._command, stdin=pipe, stdout=pipe, stderr=None, limit=LINE_LIMIT_BYTES
        )
        self._reader = asyncio.create_task(self._read())

    async def end(self) -> None:
        self._ending = True
        self._stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), END_LIMIT_S)
        except TimeoutError:
            self._breaches.append("did not end with its stdin")
            self._process.kill()
        await self._reader

    @property
    def _stdin(self) -> asyncio.StreamWriter:
        assert self._process.stdin is not None
        return self._process.stdin

    def write(self, body: bytes) -> None:
        self._stdin.write(body.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n")

    def ask(self, request: Message, body: bytes) -> Stream:
        """Send a request; the stream carries all that belongs to it.

        Raises:
            KeyError: a request with this id is already under way.
        """
        if request["id"] in self._waiting:
            raise KeyError(request["id"])
        stream = self._waiting[request["id"]] = Stream(request)
        if self._reader.done():
            self._dispatch(self._ended(stream))
        else:
            self.write(body)
        return stream

    def give_up(self, stream: Stream) -> None:
        """The HTTP client has gone: over stdio this is said with a notification."""
        if self._waiting.pop(stream.request["id"], None) is not None:
            params = {"requestId": stream.request["id"]}
            self.write(json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}).encode())

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            message = _parsed(line) if line.isascii() and line.endswith(b"\n") else None
            if message is None:
                self._breaches.append(f"not a line of ASCII JSON-RPC: {line[:200]!r}")
            else:
                self._dispatch(message)
        for stream in list(self._waiting.values()):
            self._dispatch(self._ended(stream))

    def _ended(self, stream: Stream) -> Message:
        if not self._ending:  # a host that closes stdin has stopped waiting
            self._breaches.append(f"ended without an answer to {stream.request['method']}")
        error = {"code": -32603, "message": "the bridge ended"}
        return {"jsonrpc": "2.0", "id": stream.request["id"], "error": error}

    def _dispatch(self, message: Message) -> None:
        if "method" in message:
            return self._owner(message).messages.put_nowait(message)
        stream = self._waiting.pop(message.get("id"), None) if isinstance(message.get("id"), str | int) else None
        if stream is None:
            self._breaches.append(f"an answer that nothing waits for: {json.dumps(message)[:200]}")
        else:
            stream.answered = True
            stream.messages.put_nowait(message)

    def _owner(self, message: Message) -> Stream:
        """The stream that a message of the server belongs on: by token, by subscription, else the newest one."""
        params = message.get("params") or {}
        subscription = _meta(message).get(META + "subscriptionId")
        for stream in self._waiting.values():
            if "progressToken" in params and stream.progress_token == params["progressToken"]:
                return stream
            if subscription is not None and str(stream.request["id"]) == str(subscription):
                return stream
        calls = [stream for stream in self._waiting.values() if stream.request["method"] != "subscriptions/listen"]
        return calls[-1] if calls else self.background


class Shim:
    """The HTTP side: sessions of hosts with a handshake, and the one bridge of modern requests."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._sessions: dict[str, Bridge] = {}
        self._modern: dict[str, Bridge] = {}
        # Started before it is wanted: the suite gives some probes 500 ms, which are not meant for a process to start.
        self._spare: Bridge | None = None
        self._lock = asyncio.Lock()
        self.breaches = Breaches()

    async def post(self, request: Request) -> Response:
        body = await request.body()
        message = _parsed(body)
        if message is None:
            return _error(None, -32700, "not a JSON-RPC message")
        session = request.headers.get(SESSION_HEADER)
        modern = not _is_legacy(request, message)
        if session is None and not modern and message.get("method") == "initialize":
            session = uuid.uuid4().hex
            self._sessions[session] = await self._started()
        bridge = await self._modern_bridge(message) if modern else self._sessions.get(session or "")
        if bridge is None:
            return _error(message.get("id"), -32600, "no such session", 404 if session else 400)
        if "method" not in message or "id" not in message:
            bridge.write(body)
            return Response(status_code=202)
        try:
            stream = bridge.ask(message, body)
        except KeyError:
            return _error(message["id"], -32600, "this id is in use")
        return await _answer(bridge, stream, modern, {} if modern else {SESSION_HEADER: session or ""})

    async def get(self, request: Request) -> Response:
        bridge = self._sessions.get(request.headers.get(SESSION_HEADER, ""))
        if bridge is None:
            return Response(status_code=405, headers={"allow": "POST"})
        return StreamingResponse(_events(bridge.background), media_type="text/event-stream")

    async def delete(self, request: Request) -> Response:
        bridge = self._sessions.pop(request.headers.get(SESSION_HEADER, ""), None)
        if bridge is None:
            return Response(status_code=404)
        await bridge.end()
        return Response(status_code=200)

    async def list_breaches(self, _: Request) -> Response:
        return JSONResponse(self.breaches)

    async def close(self) -> None:
        bridges = [*self._sessions.values(), *self._modern.values(), *([self._spare] if self._spare else [])]
        await asyncio.gather(*(bridge.end() for bridge in bridges))

    async def prepare(self) -> None:
        """Have a bridge ready for the next host."""
        self._spare = Bridge(self._command, self.breaches)
        await self._spare.start()

    async def _started(self) -> Bridge:
        async with self._lock:
            bridge = self._spare
            assert bridge is not None
            await self.prepare()
        return bridge

    async def _modern_bridge(self, message: Message) -> Bridge:
        declared = json.dumps(_meta(message).get(META + "clientCapabilities"), sort_keys=True)
        if declared not in self._modern:
            bridge = await self._started()
            if self._modern.setdefault(declared, bridge) is not bridge:
                await bridge.end()  # another request of this host was quicker
        return self._modern[declared]


async def _answer(bridge: Bridge, stream: Stream, modern: bool, headers: dict[str, str]) -> Response:
    """A stream; for a modern request that fails at once, the status that goes with its error."""
    first = await stream.messages.get() if modern else None
    if first is not None and "error" in first:
        return JSONResponse(first, STATUS_OF_ERROR.get(first["error"].get("code"), 200))

    async def body() -> AsyncIterator[bytes]:
        try:
            if first is not None:
                yield _event(first)
            if first is None or "method" in first:
                async for event in _events(stream):
                    yield event
        finally:
            if modern and not stream.answered:
                bridge.give_up(stream)

    return StreamingResponse(body(), media_type="text/event-stream", headers=headers)


async def _events(stream: Stream) -> AsyncIterator[bytes]:
    async for message in stream:
        yield _event(message)


def _event(message: Message) -> bytes:
    return b"event: message\ndata: " + json.dumps(message).encode() + b"\n\n"


def _is_legacy(request: Request, message: Message) -> bool:
    """As servers of both eras tell: by the version header; without one, by what only one of the eras has."""
    version = request.headers.get("mcp-protocol-version")
    if version is not None:
        return version in HANDSHAKE_VERSIONS
    return SESSION_HEADER in request.headers or message.get("method") == "initialize"


def _parsed(line: bytes) -> Message | None:
    """The message, if the bytes hold exactly one JSON object and nothing that a line could not."""
    try:
        message = json.loads(line, parse_constant=_refuse)
    except ValueError:
        return None
    return message if isinstance(message, dict) else None


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _meta(message: Message) -> Message:
    return (message.get("params") or {}).get("_meta") or {}


def _error(request_id: Any, code: int, words: str, status: int = 400) -> Response:
    return JSONResponse({"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": words}}, status)


def build_app(command: list[str]) -> Starlette:
    shim = Shim(command)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await shim.prepare()
        yield
        await shim.close()

    routes = [
        Route("/mcp", shim.post, methods=["POST"]),
        Route("/mcp", shim.get, methods=["GET"]),
        Route("/mcp", shim.delete, methods=["DELETE"]),
        Route("/breaches", shim.list_breaches),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--url", required=True)
    parser.add_argument("--profile", default="full")
    options = parser.parse_args()
    for name in [name for name in os.environ if name.startswith("SAM2_MCP_")]:
        del os.environ[name]
    bridge = [sys.executable, "-u", "-m", "sam2_mcp_bridge", "--profile", options.profile, "--url", options.url]
    uvicorn.run(build_app(bridge), host="127.0.0.1", port=options.port, log_level="error")


if __name__ == "__main__":
    main()
