"""An ordinary MCP host of either era, with the bridge as its server, and servers of every era for the bridge."""

from __future__ import annotations

import json
import queue
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.unit.bridge.mcp_host import PATIENCE_S, Program

ERAS = ("legacy", "modern", "dual")
MODERN = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
ASKABLE = {"elicitation": {}, "sampling": {}, "roots": {"listChanged": True}}
ANSWERS: dict[str, dict[str, Any]] = {
    "elicitation/create": {"action": "accept", "content": {"name": "Kim", "color": "red", "ok": True}},
    "sampling/createMessage": {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m"},
    "roots/list": {"roots": [{"uri": "file:///home"}]},
}


class FarServer:
    """tests/e2e/far_server.py as a process; its socket outlives it, so that it can be started again."""

    def __init__(self, *flags: str, down: bool = False) -> None:
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/mcp"
        self._process: subprocess.Popen[bytes] | None = None
        if not down:
            self.start(*flags)

    def start(self, *flags: str) -> None:
        self._socket.listen()
        fd = self._socket.fileno()
        command = [sys.executable, "-m", "tests.e2e.far_server", "--fd", str(fd), *flags]
        self._process = subprocess.Popen(command, pass_fds=[fd], stdin=subprocess.DEVNULL)

    def ready(self) -> FarServer:
        """Once it answers anything."""
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(self.url, timeout=PATIENCE_S).close()
        return self

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE_S)

    def close(self) -> None:
        self.stop()
        self._socket.close()


@contextmanager
def far_servers() -> Iterator[dict[str, FarServer]]:
    """One of each kind, by its era; a dual one serves both."""
    servers = {era: FarServer("--era", era) for era in ERAS}
    try:
        yield {era: server.ready() for era, server in servers.items()}
    finally:
        for server in servers.values():
            server.close()


class FullHost(Program):
    """Sends requests side by side, answers the server's, and keeps what was notified."""

    def __init__(self, url: str, modern: bool, capabilities: dict[str, Any] | None = None, *flags: str) -> None:
        super().__init__(url, "--profile", "full", *flags)
        self.modern = modern
        self.capabilities = ASKABLE if capabilities is None else capabilities
        self.notices: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []
        self.answering: Callable[[dict[str, Any]], dict[str, Any] | None] = lambda request: ANSWERS[request["method"]]
        self._responses: dict[int, dict[str, Any]] = {}

    def start(self) -> dict[str, Any]:
        """The handshake, or the discovery."""
        if self.modern:
            return self.do("server/discover")
        client = {"name": "host", "version": "1"}
        params = {"protocolVersion": "2025-06-18", "capabilities": self.capabilities, "clientInfo": client}
        result = self.do("initialize", **params)
        self.send("notifications/initialized")
        return result

    def begin(self, method: str, /, _meta: dict[str, Any] | None = None, **params: Any) -> int:
        """Send a request; its id."""
        self._ids += 1
        meta = dict(_meta or {})
        if self.modern:
            meta |= {PREFIX + "protocolVersion": MODERN, PREFIX + "clientCapabilities": self.capabilities}
        self.send(method, params | ({"_meta": meta} if meta else {}), id=self._ids)
        return self._ids

    def finish(self, id_value: int) -> dict[str, Any]:
        """The answer to this request; each has one."""
        while id_value not in self._responses:
            self.pump()
        return self._responses.pop(id_value)

    def do(self, method: str, /, _meta: dict[str, Any] | None = None, **params: Any) -> dict[str, Any]:
        answer = self.finish(self.begin(method, _meta, **params))
        assert "error" not in answer, answer
        return answer["result"]

    def begin_tool(self, name: str, /, _meta: dict[str, Any] | None = None, **arguments: Any) -> int:
        return self.begin("tools/call", _meta, name=name, arguments=arguments)

    def tool(self, name: str, /, _meta: dict[str, Any] | None = None, **arguments: Any) -> str:
        """The text of a call that must succeed; what it needs is given in the way of the host's era."""
        more: dict[str, Any] = {}
        while True:
            result = self.do("tools/call", _meta, name=name, arguments=arguments, **more)
            if result.get("resultType") != "input_required":
                break
            assert self.modern
            requests = result.get("inputRequests", {})
            self.asked += requests.values()
            more = {"inputResponses": {key: ANSWERS[request["method"]] for key, request in requests.items()}}
            more |= {"requestState": result["requestState"]} if "requestState" in result else {}
        assert not result.get("isError"), result
        assert not self.modern or result["resultType"] == "complete"
        return str(result["content"][0]["text"])

    def cancel(self, id_value: int) -> None:
        self.send("notifications/cancelled", {"requestId": id_value, "reason": "enough"})

    def notice(self, method: str) -> dict[str, Any]:
        """The next notification of this kind."""
        while True:
            for index, message in enumerate(self.notices):
                if message["method"] == method:
                    return self.notices.pop(index)
            self.pump()

    def pump(self) -> None:
        """Take one line."""
        message = self.answer()
        if "method" not in message:
            assert message["id"] not in self._responses, "two answers to one request"
            self._responses[message["id"]] = message
        elif "id" in message:
            assert not self.modern, "a request was written to a modern host"
            self.asked.append(message)
            if (result := self.answering(message)) is not None:
                self.send_raw({"jsonrpc": "2.0", "id": message["id"], "result": result})
        else:
            self.notices.append(message)

    def send_raw(self, message: dict[str, Any]) -> None:
        self.write(json.dumps(message).encode() + b"\n")

    def rest(self) -> list[dict[str, Any]]:
        """Close stdin, and everything that was written and not looked at."""
        lines = self.end()
        assert self.exit_code() == 0
        return [*self.notices, *self._responses.values(), *map(json.loads, lines)]

    def line(self) -> bytes:
        try:
            return super().line()
        except queue.Empty:
            raise AssertionError(f"no line came; stderr and so far: {self.stderr!r} {self.notices}") from None


@contextmanager
def full_host(
    server: FarServer, era: str, capabilities: dict[str, Any] | None = None, *flags: str
) -> Iterator[FullHost]:
    host = FullHost(server.url, era == "modern", capabilities, *flags)
    try:
        yield host
    finally:
        host.kill()
