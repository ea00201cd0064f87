"""An MCP host for tests, with the bridge as a thread of this process or as the real program."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from sam2_mcp_bridge.app import Bridge
from sam2_mcp_bridge.config import Config
from sam2_mcp_bridge.process.stdio import Wire

# A bound for waits that must end, not a claim about speed.
PATIENCE_S = 30.0

STATION_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2024-11-05",
        "capabilities": {"roots": {"listChanged": True}, "sampling": {}},
        "clientInfo": {"name": "mcp-station", "version": "1.0.0"},
    },
}


class Host:
    """Writes lines to the bridge and takes its lines."""

    def __init__(self, to_bridge: BinaryIO, from_bridge: BinaryIO) -> None:
        self._to_bridge = to_bridge
        self._from_bridge = from_bridge
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._ids = 1

    def _read(self) -> None:
        for line in self._from_bridge:
            self._lines.put(line)
        self._from_bridge.close()

    def write(self, data: bytes) -> None:
        self._to_bridge.write(data)
        self._to_bridge.flush()

    def send(self, method: str, params: Any = None, **fields: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params}) | fields
        self.write(json.dumps(message).encode() + b"\n")

    def line(self) -> bytes:
        return self._lines.get(timeout=PATIENCE_S)

    def answer(self) -> dict[str, Any]:
        """The next line, which must be what the station can take."""
        line = self.line()
        assert line.isascii() and line.endswith(b"\n") and len(line.decode().splitlines()) == 1
        answer = json.loads(line, parse_constant=lambda name: self._unexpected(name))
        assert isinstance(answer, dict)
        return answer

    @staticmethod
    def _unexpected(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    def request(self, method: str, params: Any = None) -> dict[str, Any]:
        """Send and take the next line, as the station does; the id is then compared, as the station does not."""
        self._ids += 1
        self.send(method, params, id=self._ids)
        answer = self.answer()
        assert answer["id"] == self._ids
        return answer

    def call(self, name: str = "echo", **arguments: Any) -> dict[str, Any]:
        """The result of a tools/call; there is always one."""
        answer = self.request("tools/call", {"name": name, "arguments": arguments})
        assert "error" not in answer
        return answer["result"]

    def failing_call(self, name: str = "echo", **arguments: Any) -> str:
        """The text of a tools/call that must fail in the one form that the station's loader can show."""
        result = self.call(name, **arguments)
        assert result["isError"] is True
        (block,) = result["content"]
        assert block["type"] == "text" and len(block["text"]) <= 500
        return block["text"]

    def initialize(self) -> dict[str, Any]:
        self.write(json.dumps(STATION_INITIALIZE).encode() + b"\n")
        answer = self.answer()
        self.send("notifications/initialized")
        return answer["result"]

    def silent(self) -> bool:
        """Nothing was written that no request waits for: the answer to a ping is the next line."""
        return self.request("ping")["result"] == {} and self._lines.empty()

    def close_stdin(self) -> None:
        self._to_bridge.close()

    def end(self) -> list[bytes]:
        """Close stdin and wait for the bridge to end; the lines it still wrote."""
        self.close_stdin()
        self._reader.join(PATIENCE_S)
        assert not self._reader.is_alive()
        return [self._lines.get_nowait() for _ in range(self._lines.qsize())]


@contextmanager
def threaded_host(url: str, **settings: Any) -> Iterator[Host]:
    """The bridge in this process, over real pipes; everything but the entry point is as in the program."""
    source_fd, to_bridge_fd = os.pipe()
    from_bridge_fd, sink_fd = os.pipe()
    bridge = Bridge(Config(url=url, **settings), Wire(source_fd, sink_fd))

    def serve() -> None:
        bridge.serve()
        bridge.close()
        os.close(source_fd)
        os.close(sink_fd)

    thread = threading.Thread(target=serve)
    thread.start()
    host = Host(os.fdopen(to_bridge_fd, "wb"), os.fdopen(from_bridge_fd, "rb"))
    try:
        yield host
    finally:
        host.end()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


class Program(Host):
    """The bridge as the station starts it: python -u -m sam2_mcp_bridge."""

    def __init__(self, url: str, *flags: str, **environment: str) -> None:
        env = {name: value for name, value in os.environ.items() if not name.startswith("SAM2_MCP_")}
        env |= {"SAM2_MCP_URL": url, "PYTHONWARNDEFAULTENCODING": "1"} | environment
        command = [sys.executable, "-u", "-m", "sam2_mcp_bridge", *flags]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=env)
        assert self.process.stdin and self.process.stdout and self.process.stderr
        self.stderr = b""
        self._stderr_reader = threading.Thread(target=self._read_stderr, args=(self.process.stderr,), daemon=True)
        self._stderr_reader.start()
        super().__init__(self.process.stdin, self.process.stdout)

    def _read_stderr(self, pipe: BinaryIO) -> None:
        self.stderr = pipe.read()
        pipe.close()

    def terminate(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.exit_code()

    def kill(self) -> None:
        self.close_stdin()
        self.process.kill()
        self.exit_code()

    def exit_code(self) -> int:
        code = self.process.wait(PATIENCE_S)
        self._stderr_reader.join(PATIENCE_S)
        return code


@contextmanager
def program_host(url: str, *flags: str, **environment: str) -> Iterator[Program]:
    host = Program(url, *flags, **environment)
    try:
        yield host
    finally:
        host.kill()
