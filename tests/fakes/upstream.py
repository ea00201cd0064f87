"""A scripted streamable-HTTP MCP server on a real loopback socket.

Behaves like a stateless worker until a script says otherwise: `fake.on["tools/call"] = hang()`. A behaviour gets the
request and may write whatever bytes it likes, whole, broken or late. Everything received is recorded.

Run as a program (`python tests/fakes/upstream.py`) it serves in a process of its own and prints its port, for benches.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import threading
import weakref
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

JSON = "application/json"
SSE = "text/event-stream"


@dataclass
class Call:
    """One HTTP request that came in, and the way to answer it."""

    http_method: str
    path: str
    headers: dict[str, str]
    body: bytes
    writer: asyncio.StreamWriter = field(repr=False)
    reader: asyncio.StreamReader = field(repr=False)
    cut: threading.Event = field(default_factory=threading.Event)  # the client closed before the answer was complete

    @property
    def message(self) -> dict[str, Any]:
        return json.loads(self.body) if self.body else {}

    @property
    def rpc_method(self) -> str:
        if self.path.startswith("/files"):  # no JSON-RPC there
            return f"{self.http_method} /files"
        return self.message.get("method", "") if self.body else self.http_method

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()


Behaviour = Callable[[Call], Awaitable[None]]


def head(status: int, content_type: str, *headers: str, length: int | None = None) -> bytes:
    lines = [f"HTTP/1.1 {status} Fake"] + ([f"content-type: {content_type}"] if content_type else []) + list(headers)
    lines.append("connection: close" if length is None else f"content-length: {length}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def raw(status: int, content_type: str, body: bytes, *headers: str) -> Behaviour:
    """A whole HTTP response, whatever its sense."""

    async def behave(call: Call) -> None:
        await call.send(head(status, content_type, *headers, length=len(body)) + body)

    return behave


def response(call: Call, result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": call.message.get("id"), "result": result}


def event(message: Any, **dumps: Any) -> bytes:
    text = message if isinstance(message, str) else json.dumps(message, **dumps)
    return b"event: message\r\ndata: " + text.encode("utf-8", "surrogatepass") + b"\r\n\r\n"


def result(value: Any, *, sse: bool = True, before: tuple[Any, ...] = (), **dumps: Any) -> Behaviour:
    """Answer with this result, as JSON or as a stream with other messages `before` it."""

    async def behave(call: Call) -> None:
        answer = response(call, value)
        if sse:
            await call.send(head(200, SSE) + b"".join(event(message) for message in before) + event(answer, **dumps))
        else:
            body = json.dumps(answer, **dumps).encode()
            await call.send(head(200, JSON, length=len(body)) + body)

    return behave


def tool_text(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


def text(value: str, **options: Any) -> Behaviour:
    return result(tool_text(value), **options)


def stream(make: Callable[[Call], bytes]) -> Behaviour:
    """A stream with exactly these bytes, after which the connection ends."""

    async def behave(call: Call) -> None:
        await call.send(head(200, SSE) + make(call))

    return behave


def after(seconds: float, then: Behaviour) -> Behaviour:
    async def behave(call: Call) -> None:
        await asyncio.sleep(seconds)
        await then(call)

    return behave


def hang(*, with_head: bool = True) -> Behaviour:
    """Never answer; set `call.cut` when the client gives up."""

    async def behave(call: Call) -> None:
        if with_head:
            await call.send(head(200, SSE) + b": waiting\r\n\r\n")
        while await call.reader.read(1024):
            pass
        call.cut.set()

    return behave


def reset() -> Behaviour:
    """Close without a word."""

    async def behave(call: Call) -> None:
        sock = call.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")

    return behave


def cut_short() -> Behaviour:
    """Announce more bytes than come."""

    async def behave(call: Call) -> None:
        await call.send(head(200, JSON, length=1000) + b'{"jsonrpc"')
        call.writer.close()

    return behave


def in_turn(*behaviours: Behaviour) -> Behaviour:
    """One behaviour for each request, the last one for all further ones."""
    waiting = list(behaviours)

    async def behave(call: Call) -> None:
        await (waiting.pop(0) if len(waiting) > 1 else waiting[0])(call)

    return behave


def stateful(sessions: list[str], then: Behaviour) -> Behaviour:
    """Answer only requests that carry the newest session id; 404 for another one, 400 for none."""

    async def behave(call: Call) -> None:
        given = call.headers.get("mcp-session-id")
        if given == sessions[-1]:
            return await then(call)
        status, words = (400, "Bad Request: Missing session ID") if given is None else (404, "Session not found")
        error = {"jsonrpc": "2.0", "id": "server-error", "error": {"code": -32600, "message": words}}
        await raw(status, JSON, json.dumps(error).encode())(call)

    return behave


def initialize(session_id: str | None = None, version: str | None = None) -> Behaviour:
    async def behave(call: Call) -> None:
        answer = {
            "protocolVersion": version or call.message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "fake", "version": "1"},
        }
        body = json.dumps(response(call, answer)).encode()
        extra = [] if session_id is None else [f"mcp-session-id: {session_id}"]
        await call.send(head(200, JSON, *extra, length=len(body)) + body)

    return behave


async def echo(call: Call) -> None:
    """tools/call answers with the name and arguments it got."""
    await text(json.dumps(call.message.get("params")))(call)


class FakeUpstream:
    """The server, in a thread of its own; `port` may be given to come back where another one was."""

    def __init__(self, port: int = 0, tls: ssl.SSLContext | None = None, keep_alive: bool = False) -> None:
        self.on: dict[str, Behaviour] = {
            "initialize": initialize(),
            "notifications/initialized": raw(202, "", b""),
            "tools/list": result({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}),
            "tools/call": echo,
            "": raw(202, "", b""),  # responses
            "DELETE": raw(200, "", b""),
        }
        self.unread: set[str] = set()  # requests whose body stays on the wire, for their behaviour to read or not
        self.calls: list[Call] = []
        self._tls = tls
        self._keep_alive = keep_alive
        self._arrived = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ready = threading.Event()
        self.port = port

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}/mcp"

    def __enter__(self) -> FakeUpstream:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Close every connection and the port; harmless the second time."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(10)
        assert not self._thread.is_alive()

    def received(self, rpc_method: str) -> list[Call]:
        return [call for call in list(self.calls) if call.rpc_method == rpc_method]

    def wait_for(self, rpc_method: str, count: int = 1, timeout_s: float = 20.0) -> list[Call]:
        """Block until so many requests of this method have come."""
        with self._arrived:
            assert self._arrived.wait_for(lambda: len(self.received(rpc_method)) >= count, timeout_s), self.calls
        return self.received(rpc_method)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        self._writers: weakref.WeakSet[asyncio.StreamWriter] = weakref.WeakSet()
        self._connections: weakref.WeakSet[asyncio.Task[None]] = weakref.WeakSet()
        server = await asyncio.start_server(self._connected, "127.0.0.1", self.port, ssl=self._tls, limit=2**24)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        # A connection that is being accepted while the server closes would leave its socket open: stop accepting first,
        # let asyncio's own tasks end by themselves, and cancel ours, which may hang on purpose.
        for listener in server.sockets:
            self._loop.remove_reader(listener.fileno())
        while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in tasks.intersection(self._connections):
                task.cancel()
            await asyncio.wait(tasks, timeout=0.05)
        server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        await asyncio.sleep(0.01)  # transports close in the loop's next rounds

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        self._writers.add(writer)
        try:
            while await self._handle(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError, ssl.SSLError):
            pass  # the client went away, or the server was stopped
        finally:
            writer.close()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request; whether the connection may carry another."""
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        http_method, path, _ = lines[0].split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:-2])}
        call = Call(http_method, path, headers, b"", writer, reader)
        if call.rpc_method not in self.unread:
            call.body = await reader.readexactly(int(headers.get("content-length", "0")))
        with self._arrived:
            self.calls.append(call)
            self._arrived.notify_all()
        await self.on.get(call.rpc_method, raw(404, "text/plain", b"no such method here"))(call)
        return self._keep_alive and not writer.is_closing() and headers.get("connection", "").lower() != "close"


def main() -> None:
    """Serve echo, with kept-alive connections, until stdin ends."""
    import sys

    async def quick(call: Call) -> None:
        body = event(response(call, tool_text("x" * 400)))
        await call.send(head(200, SSE, length=len(body)) + body)

    with FakeUpstream(keep_alive=True) as fake:
        fake.on |= {"tools/call": quick}
        fake.calls = _Nothing()
        sys.stdout.write(f"{fake.port}\n")
        sys.stdout.flush()
        sys.stdin.read()


class _Nothing(list):  # type: ignore[type-arg]
    """Records nothing, so that a long bench stays flat."""

    def append(self, item: object) -> None:
        pass


if __name__ == "__main__":
    main()
