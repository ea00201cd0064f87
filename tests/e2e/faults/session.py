"""A host that knows what each profile allows: which line may come when.

`station`: the next line is the answer, and nothing else is ever written. `full`: answers come by id in any order;
notifications only as MCP allows, which for this host means no progress and no logs; no requests, for it offers nothing.
"""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import queue
import select
import termios
import threading
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from tests.e2e.faults.case import PATIENT_S
from tests.unit.bridge.mcp_host import PATIENCE_S, STATION_INITIALIZE, Program

from sam2_mcp_bridge import config
from sam2_mcp_bridge.host.framing import LineSplitter

# How soon a reader sees that it shall stop.
POLL_S = 0.05
CHUNK_BYTES = 2**20
PAGE_BYTES = 4096

# `full` joins as soon as the bridge offers it.
PROFILES = [profile for profile in ("station", "full") if profile in config.PROFILES]

# Notifications that come only to a host that has asked for them.
UNWANTED = ("notifications/progress", "notifications/message")

# Never the same twice, whatever bridge it goes through.
_tags = itertools.count(1)

# Offers nothing that a server could ask for and opts in to nothing.
PLAIN_INITIALIZE: dict[str, Any] = STATION_INITIALIZE | {
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "fault-suite", "version": "1"},
    }
}


class Session(Program):
    """The real bridge, spoken to by a careful host."""

    def __init__(self, url: str, profile: str, deadline_s: float, **environment: str) -> None:
        self.profile = profile
        self._early: dict[Any, dict[str, Any]] = {}
        self._reading, self._gone = threading.Event(), threading.Event()
        self._reading.set()
        super().__init__(url, "--profile", profile, "--deadline", str(deadline_s), **environment)

    def _read(self) -> None:
        """As a host reads that can stop reading and can go away."""
        splitter, chunk = LineSplitter(), b"."
        while chunk and not self._gone.is_set():
            readable = self._reading.wait(POLL_S) and select.select([self._from_bridge], [], [], POLL_S)[0]
            if readable and self._reading.is_set():
                chunk = os.read(self._from_bridge.fileno(), CHUNK_BYTES)
                for line in splitter.feed(chunk):
                    self._lines.put((line or b"") + b"\n")
        self._from_bridge.close()

    def begin(self) -> dict[str, Any]:
        """Shake hands; what the bridge offers."""
        message = STATION_INITIALIZE if self.profile == "station" else PLAIN_INITIALIZE
        self.write(json.dumps(message).encode() + b"\n")
        answer = self.take(message["id"])
        self.send("notifications/initialized")
        result: dict[str, Any] = answer["result"]
        return result

    def line(self) -> bytes:
        until_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < until_s:
            with suppress(queue.Empty):
                alive = self._reader.is_alive()
                return self._lines.get(timeout=POLL_S if alive else 0)
            assert alive, f"the bridge has ended with {self.exit_code()}: {self.stderr!r}"
        raise AssertionError("no line came")

    def take(self, id_value: Any) -> dict[str, Any]:
        """The answer to the oldest request with this id; whatever else is written must be another answer."""
        key = json.dumps(id_value)
        while key not in self._early:
            answer = self.answer()
            if "method" in answer:
                assert self.profile == "full" and answer["method"] not in UNWANTED and "id" not in answer, answer
                continue
            found = json.dumps(answer["id"])
            assert self.profile != "station" or found == key, f"{answer} is not the answer to {key}"
            assert found not in self._early, f"{answer} and {self._early[found]}"
            self._early[found] = answer
        return self._early.pop(key)

    def ask(self, method: str, params: Any = None) -> dict[str, Any]:
        self._ids += 1
        self.send(method, params, id=self._ids)
        return self.take(self._ids)

    def start_call(self, name: str = "echo", **arguments: Any) -> str:
        """Send a tools/call with a tag that no other has; the tag, which is also its id."""
        tag = f"{name}-{next(_tags)}"
        self.send("tools/call", {"name": name, "arguments": {"tag": tag, **arguments}}, id=tag)
        return tag

    def result(self, tag: str) -> dict[str, Any]:
        return result_of(self.take(tag), tag.partition("-")[0])

    def tagged_call(self, name: str = "echo", **arguments: Any) -> tuple[str, dict[str, Any]]:
        """A tools/call and its result; the tag and the result."""
        tag = self.start_call(name, **arguments)
        return tag, self.result(tag)

    @contextmanager
    def deaf(self) -> Iterator[None]:
        """Stop reading; what was read before stays."""
        self._reading.clear()
        try:
            yield
        finally:
            self._reading.set()

    def full_pipe(self) -> None:
        """Wait until the bridge has filled the pipe that nobody reads."""
        pipe = self.process.stdout
        assert pipe is not None
        room = fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ)
        until_s = time.monotonic() + PATIENCE_S
        while array("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0] < room - PAGE_BYTES:
            assert time.monotonic() < until_s
            time.sleep(0.01)

    def close_stdout(self) -> None:
        """Go away as a reader."""
        self._gone.set()
        self._reader.join(PATIENCE_S)

    def quiet(self) -> bool:
        """Nothing was written that no request waits for: the answer to a ping is the next line."""
        return self.ask("ping")["result"] == {} and self._lines.empty() and not self._early


def result_of(answer: dict[str, Any], name: str) -> dict[str, Any]:
    """The result of a tools/call; a refusal of the upstream, which an MCP host gets as what it is, as a text."""
    if "error" in answer:
        words = f"[refused] the worker refused {name}: {str(answer['error']['message'])[:300]}"
        return {"isError": True, "content": [{"type": "text", "text": words}]}
    result: dict[str, Any] = answer["result"]
    return result


@contextmanager
def session(url: str, profile: str, deadline_s: float = PATIENT_S, **environment: str) -> Iterator[Session]:
    """A bridge that is killed at the end if it did not end by itself."""
    host = Session(url, profile, deadline_s, **environment)
    try:
        yield host
    finally:
        host.close_stdin()
        host.process.kill()
        host.exit_code()
