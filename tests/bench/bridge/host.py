"""The host's end of a bridge, as the station is one: it writes a line and takes the next one as the answer.

For a program that is made for other hosts (profile full) it matches ids, as those do. Owns the child process and the
memory of its tree; knows nothing of what is measured. Linux only: memory is from /proc.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import subprocess
import time
from pathlib import Path
from typing import Any, NamedTuple

from tests.bench.bridge.programs import ROOT, Program

HANDSHAKE = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "mcp-station", "version": "1"}}
# The station waits so long for a tool (station.md), and so long for the handshake.
STATION_PATIENCE_S = 30.0


class Memory(NamedTuple):
    """Megabytes of 2**20 bytes, the process and all below it."""

    rss_mb: float
    pss_mb: float
    private_mb: float


class Host:
    def __init__(self, program: Program, url: str) -> None:
        self.started_s = time.perf_counter()
        self._matches_ids = program.matches_ids
        self.process = program.start(url)
        self._rest = bytearray()
        self._next_id = 0

    def __enter__(self) -> Host:
        return self

    def __exit__(self, *_: object) -> None:
        """End it as politely as it lets us: end of input, then SIGKILL for the whole tree."""
        tree = process_tree(self.process.pid)
        with contextlib.suppress(OSError):
            self.process.stdin.close()  # type: ignore[union-attr]
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        for pid in tree:
            with contextlib.suppress(OSError):
                os.kill(pid, 9)
        self.process.wait(5)
        self.process.stdout.close()  # type: ignore[union-attr]

    def send(self, method: str, params: dict[str, Any] | None = None, *, notify: bool = False) -> int:
        """Write one message; its id. Nothing happens if the process has ended: then no line will come either."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        if not notify:
            self._next_id += 1
            message["id"] = self._next_id
        rest = memoryview(json.dumps(message).encode() + b"\n")
        with contextlib.suppress(BrokenPipeError):
            while rest:
                rest = rest[os.write(self.process.stdin.fileno(), rest) :]  # type: ignore[union-attr]
        return self._next_id

    def call(self, tool: str, tag: str, **arguments: Any) -> int:
        return self.send("tools/call", {"name": tool, "arguments": {"tag": tag, **arguments}})

    def line(self, patience_s: float = STATION_PATIENCE_S) -> bytes | None:
        """The next line on stdout; None if none comes in time, b"" if stdout has ended."""
        end_s = time.perf_counter() + patience_s
        fd = self.process.stdout.fileno()  # type: ignore[union-attr]
        searched = 0
        while (at := self._rest.find(b"\n", searched)) < 0:
            searched = len(self._rest)
            if not select.select([fd], [], [], max(0.0, end_s - time.perf_counter()))[0]:
                return None
            if not (chunk := os.read(fd, 2**20)):
                return b""
            self._rest += chunk
        line = bytes(self._rest[: at + 1])
        del self._rest[: at + 1]
        return line

    def answer(self, request_id: int, patience_s: float = STATION_PATIENCE_S) -> bytes | None:
        """What this host takes for the answer: the next line, or the next one with that id and no method."""
        end_s = time.perf_counter() + patience_s
        while (line := self.line(end_s - time.perf_counter())) and self._matches_ids:
            message = json.loads(line)
            if message.get("id") == request_id and "method" not in message:
                break
        return line

    def shake_hands(self, patience_s: float = STATION_PATIENCE_S) -> float | None:
        """Seconds from the start of the process to the answer of initialize; None without one."""
        request_id = self.send("initialize", HANDSHAKE)
        line = self.answer(request_id, patience_s)
        if not line or b'"result"' not in line:
            return None
        ready_s = time.perf_counter() - self.started_s
        self.send("notifications/initialized", notify=True)
        return ready_s

    def memory(self) -> Memory:
        sums = [0, 0, 0]
        for pid in process_tree(self.process.pid):
            for index, kilobytes in enumerate(memory_kb(Path(f"/proc/{pid}/smaps_rollup").read_text("ascii"))):
                sums[index] += kilobytes
        return Memory(*(total / 1024 for total in sums))


def memory_kb(smaps_rollup: str) -> tuple[int, int, int]:
    """Resident, proportional and private kilobytes."""
    values = {name: int(kb) for name, kb in re.findall(r"^(\w+):\s+(\d+) kB$", smaps_rollup, re.MULTILINE)}
    return values["Rss"], values["Pss"], values["Private_Clean"] + values["Private_Dirty"]


def process_tree(pid: int) -> list[int]:
    """The process and all its descendants."""
    found = [pid]
    for parent in found:
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                found += [int(child) for child in children.read_text("ascii").split()]
    return found


class Server:
    """The upstream of upstream.py, which can be stopped and come back on its port."""

    def __init__(self, python: str) -> None:
        self._python = python
        self._process: subprocess.Popen[str] | None = None
        self._port = 0
        self.start()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/mcp"

    def start(self) -> None:
        self._process = subprocess.Popen(
            [self._python, "-m", "tests.bench.bridge.upstream", str(self._port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            text=True,
            encoding="ascii",
        )
        assert self._process.stdout
        self._port = int(self._process.stdout.readline())

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
