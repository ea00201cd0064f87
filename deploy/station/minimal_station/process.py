"""One MCP server process and the two pipes to it. Refuses to know about sessions, routing and HTTP.

The faults are the point: ONE unbounded queue takes every stdout line; whoever waits first gets the next line, whatever
it is; ids are never compared; nothing is locked; a line that cannot be read ends its reader while the process lives on.
"""

import asyncio
import contextlib
import json
import logging
import os
import re
import shlex
import shutil
import signal
from collections.abc import Mapping
from typing import Any

from .contract import INITIALIZE_PARAMS, LINE_LIMIT_BYTES, SessionRequest, Timings

logger = logging.getLogger(__name__)

_VARIABLE = re.compile(r"\$\{(\w+)\}")


def substitute_variables(text: str, environment: Mapping[str, str]) -> str:
    """`${NAME}` becomes its value; an unknown name stays as it is written."""
    return _VARIABLE.sub(lambda found: environment.get(found[1], found[0]), text)


class ServerProcess:
    """Started by `start`, spoken to by `exchange`, ended by `stop`."""

    def __init__(self, request: SessionRequest, timings: Timings) -> None:
        self._request = request
        self._timings = timings
        self._environment = {**os.environ, **request.env_vars}
        self._process: asyncio.subprocess.Process | None = None
        self._lines: asyncio.Queue[str] = asyncio.Queue()
        # Nobody ever reads it: the public station keeps every stderr line in memory until the session is deleted.
        self._stderr_lines: asyncio.Queue[str] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []
        self._next_id = 1
        self.initialized = False

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Returns as soon as the process exists, whether or not it can serve.

        Raises OSError when it cannot be forked at all: no `python` on the PATH, no such working directory.
        """
        self._process = await self._spawn()
        assert self._process.stdout and self._process.stderr
        work = [
            self._read_lines(self._process.stdout, self._lines),
            self._read_lines(self._process.stderr, self._stderr_lines, log=True),
            self._initialize(),
            self._run_additional_commands(),
        ]
        self._tasks = [asyncio.create_task(each) for each in work]

    async def exchange(self, message: dict[str, Any]) -> Any | None:
        """Writes one message and takes the next stdout line as its answer; None when no line comes in time.

        Raises ValueError when that line is not JSON, OSError when the pipe is broken.
        """
        await self._write(message)
        try:
            line = await asyncio.wait_for(self._lines.get(), self._timings.request_s)
        except TimeoutError:
            return None
        return json.loads(line)

    async def wait_until_initialized(self) -> None:
        """Polls, and gives up in silence: the request goes out all the same."""
        waited_s = 0.0
        while not self.initialized and waited_s < self._timings.init_s:
            await asyncio.sleep(self._timings.init_poll_s)
            waited_s += self._timings.init_poll_s

    async def stop(self) -> None:
        """SIGTERM to the group, SIGKILL after the grace period; stdin is not closed first."""
        for number, wait_s in ((signal.SIGTERM, self._timings.terminate_s), (signal.SIGKILL, self._timings.kill_s)):
            if not (self._process and self.is_running):
                break
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), wait_s)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._close_pipes()

    async def _close_pipes(self) -> None:
        """A pipe whose reader ended early holds unread bytes, and asyncio closes it only after they are read."""
        assert self._process and self._process.stdout and self._process.stderr
        for stream in (self._process.stdout, self._process.stderr):
            with contextlib.suppress(TimeoutError):  # a grandchild that left the group may keep the pipe open
                async with asyncio.timeout(self._timings.kill_s):
                    while await stream.read(LINE_LIMIT_BYTES):
                        pass

    async def _spawn(self) -> asyncio.subprocess.Process:
        arguments = [substitute_variables(each, self._environment) for each in self._request.server_args]
        options: dict[str, Any] = {
            "stdin": asyncio.subprocess.PIPE,
            "stdout": asyncio.subprocess.PIPE,
            "stderr": asyncio.subprocess.PIPE,
            "cwd": self._request.working_dir,
            "env": self._environment,
            "limit": LINE_LIMIT_BYTES,
            "start_new_session": True,
        }
        if self._request.server_type == "node":  # the command is ignored, the arguments go to npx through a shell
            npx = shutil.which("npx", path=self._environment.get("PATH")) or "npx"
            return await asyncio.create_subprocess_shell(shlex.join([npx, *arguments]), **options)
        command = ["python", "-u", self._request.server_command, *arguments]
        return await asyncio.create_subprocess_exec(*command, **options)

    async def _write(self, message: dict[str, Any]) -> None:
        assert self._process and self._process.stdin
        self._process.stdin.write((json.dumps(message) + "\n").encode())
        await self._process.stdin.drain()

    async def _read_lines(self, stream: asyncio.StreamReader, lines: asyncio.Queue[str], *, log: bool = False) -> None:
        try:
            while raw := await stream.readline():
                line = raw.decode().strip()
                if log:
                    logger.warning("stderr of %s: %s", self.pid, line)
                lines.put_nowait(line)
        except ValueError as error:  # an overlong line or bytes that are not UTF-8: this reader is gone for good
            logger.error("reader of %s ended: %s", self.pid, error)

    async def _initialize(self) -> None:
        await self._write({"jsonrpc": "2.0", "id": self._next_id, "method": "initialize", "params": INITIALIZE_PARAMS})
        self._next_id += 1
        try:
            answer = json.loads(await asyncio.wait_for(self._lines.get(), self._timings.init_s))
            if "error" not in answer:
                await self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})
                self.initialized = True
        except (TimeoutError, ValueError, OSError) as error:
            logger.error("initialize of %s failed: %r", self.pid, error)

    async def _run_additional_commands(self) -> None:
        await asyncio.sleep(self._timings.additional_delay_s)
        for command in self._request.additional_commands:
            await self._run_shell(command)

    async def _run_shell(self, command: str) -> None:
        process = await asyncio.create_subprocess_shell(
            command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=self._request.working_dir,
            env=self._environment,
        )
        try:
            output, _ = await asyncio.wait_for(process.communicate(), self._timings.additional_command_s)
            logger.info("additional command ended %s: %s", process.returncode, output.decode(errors="replace"))
        except TimeoutError:
            logger.error("additional command ran past %s s", self._timings.additional_command_s)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
