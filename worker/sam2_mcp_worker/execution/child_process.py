"""The server's end of one child: start it, exchange lines with it, kill it, read its last words.

Knows the wire of child.py and nothing of queues. Whatever a child says is untrusted: a line that is not the expected
answer counts as the end of that child.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

from sam2_mcp_worker.errors import WorkerError

# The longest answer of a child. A page of MAX_CHARS_PER_PAGE characters with the boxes of its lines stays below 16 MiB.
ANSWER_LIMIT_BYTES = 32 * 2**20
# Loading a recogniser took 2.5 s on two idle cores; eight children that load at once on two busy ones need 20 s.
START_TIMEOUT_S = 60.0
# An idle child that was told to end does so in milliseconds.
CLOSE_GRACE_S = 2.0
# What a child may know of the server's environment. Keys and tokens are not among it: hostile files are parsed there.
_ENV_NAMES = {"PATH", "HOME", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "SYSTEMROOT"}
_ENV_PREFIXES = ("LC_", "PYTHON", "COVERAGE_")


class ChildGoneError(Exception):
    """The child ended, or broke the protocol, before it answered; the text says how."""


def child_environment(environ: Mapping[str, str], extra: Mapping[str, str]) -> dict[str, str]:
    """The environment of a child: harmless names of the server's, and what the pool was given."""
    kept = {name: value for name, value in environ.items() if name in _ENV_NAMES or name.startswith(_ENV_PREFIXES)}
    return {**kept, **extra}


def describe_exit(returncode: int) -> str:
    """`SIGSEGV`, `SIGKILL`, `exit status 3`."""
    if returncode >= 0:
        return f"exit status {returncode}"
    try:
        return signal.Signals(-returncode).name
    except ValueError:
        return f"signal {-returncode}"


class ChildProcess:
    """One running child. Not for concurrent use: one `call` at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._last_id = 0
        self.exited = asyncio.ensure_future(process.wait())
        self.killed = False
        self.tasks = 0
        self.memory = {"rss_bytes": 0, "private_bytes": 0, "peak_rss_bytes": 0}
        """As the child measured it after its last task."""
        self.private_bytes_at_start = 0

    @classmethod
    async def spawn(
        cls, module: str, config: dict[str, Any], *, memory_limit_bytes: int, env: Mapping[str, str]
    ) -> ChildProcess:
        """Start the process and hand it its configuration; it loads meanwhile (`wait_ready`)."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "sam2_mcp_worker.execution.child", module),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=child_environment(os.environ, env),
            limit=ANSWER_LIMIT_BYTES,
        )
        child = cls(process)
        try:
            await child._send({"config": config, "memory_limit_bytes": memory_limit_bytes})
        except ChildGoneError:
            pass  # wait_ready says so, with the way it ended
        except BaseException:
            child.kill()
            raise
        return child

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """False from the moment that it was killed or has ended."""
        return not self.killed and not self.exited.done()

    async def wait_ready(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until the task module has set itself up.

        Raises:
            WorkerError: what `setup` raised.
            ChildGoneError: it ended, failed otherwise, or did not get ready in time.
        """
        try:
            async with asyncio.timeout(timeout_s):
                reply = await self._receive()
        except TimeoutError:
            raise ChildGoneError(f"not ready after {timeout_s:g} s") from None
        if "error" in reply:
            error = _error_of(reply["error"])
            raise error if error.code != "internal" else ChildGoneError("it failed while it loaded; its log says why")
        self.private_bytes_at_start = self.memory["private_bytes"]

    async def call(self, task: str, params: dict[str, Any]) -> dict[str, Any]:
        """Run one task.

        Raises:
            WorkerError: the task failed and said why.
            ChildGoneError: the child ended first, or answered nonsense; it must not be used any more.
        """
        self._last_id += 1
        await self._send({"id": self._last_id, "task": task, "params": params})
        reply = await self._receive()
        self.tasks += 1
        if reply.get("id") != self._last_id:
            raise ChildGoneError("answer to another request")
        if "error" in reply:
            raise _error_of(reply["error"])
        result = reply.get("result")
        if not isinstance(result, dict):
            raise ChildGoneError("answer without a result")
        return result

    def kill(self) -> None:
        """Send SIGKILL, at once and without waiting: it runs no further instruction of its own."""
        self.killed = True
        if not self.exited.done():
            # Not Process.kill: it polls first, and may take the exit status away from the event loop's watcher.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    async def close(self) -> None:
        """End it, kindly if it is idle, and wait until it is gone."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        done, _ = await asyncio.wait({self.exited}, timeout=CLOSE_GRACE_S)
        if not done:
            self.kill()
        await self.exited

    async def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message, ensure_ascii=True).encode("ascii") + b"\n")
        try:
            await self._process.stdin.drain()
        except ConnectionError:
            raise ChildGoneError(await self._last_words()) from None

    async def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        try:
            line = await self._process.stdout.readline()
        except ValueError:
            raise ChildGoneError(f"answer of more than {ANSWER_LIMIT_BYTES} bytes") from None
        if not line.endswith(b"\n"):
            raise ChildGoneError(await self._last_words())
        try:
            reply = json.loads(line)
        except (ValueError, RecursionError):
            raise ChildGoneError("answer that is not JSON") from None
        if not isinstance(reply, dict):
            raise ChildGoneError("answer that is no object")
        self.memory = {name: _count(reply.get(name)) for name in self.memory}
        return reply

    async def _last_words(self) -> str:
        """How it ended. One that closed its pipe and lives on is killed."""
        done, _ = await asyncio.wait({self.exited}, timeout=CLOSE_GRACE_S)
        if not done:
            self.kill()
        return describe_exit(await self.exited)


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _error_of(fields: object) -> WorkerError:
    known = fields if isinstance(fields, dict) else {}
    text = {name: str(known.get(name) or "") for name in ("code", "what", "rule", "next_step")}
    return WorkerError(text["code"] or "internal", text["what"], rule=text["rule"], next_step=text["next_step"])
