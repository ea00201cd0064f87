"""The programs of a rehearsal as real processes: the station, and a worker that can be killed, restarted and frozen."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

ROOT = Path(__file__).parents[3]
STATION = ROOT / "deploy" / "station" / "main.py"
ECHO_WORKER = Path(__file__).parent / "echo_worker.py"

# On two busy cores the MCP SDK takes 3 s to import.
START_LIMIT_S = 60.0
TERMINATE_LIMIT_S = 5.0

WorkerCommand = Callable[[int], Sequence[str]]


def echo_worker_command(port: int) -> list[str]:
    return [sys.executable, str(ECHO_WORKER), "--port", str(port)]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


class Program:
    """One process on one port; its output goes to `log_path`."""

    def __init__(self, command: Sequence[str], port: int, log_path: Path, env: dict[str, str] | None = None) -> None:
        self.port = port
        self.log_path = log_path
        self._command = list(command)
        self._env = {**os.environ, **(env or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._env, start_new_session=True
            )

    async def wait_until_it_listens(self) -> None:
        with anyio.fail_after(START_LIMIT_S):
            while not await asyncio.to_thread(self._accepts):
                assert self._process and self._process.poll() is None, self.log_path.read_text(encoding="utf-8")
                await asyncio.sleep(0.05)

    def send(self, number: signal.Signals) -> None:
        """To the whole process group: a worker's children freeze and die with it."""
        assert self._process
        if self._process.poll() is None:
            os.killpg(self._process.pid, number)

    async def end(self, number: signal.Signals) -> None:
        """Sends the signal, and SIGKILL when it was not enough."""
        assert self._process
        self.send(number)
        try:
            await asyncio.to_thread(self._process.wait, TERMINATE_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.send(signal.SIGKILL)
            await asyncio.to_thread(self._process.wait)

    def _accepts(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return True
        except OSError:
            return False


@asynccontextmanager
async def running(program: Program) -> AsyncIterator[Program]:
    program.start()
    try:
        await program.wait_until_it_listens()
        yield program
    finally:
        program.send(signal.SIGCONT)
        await program.end(signal.SIGTERM)


def station_program(log_path: Path) -> Program:
    port = free_port()
    # The station starts the first `python` on its PATH: the one that runs this.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return Program([sys.executable, str(STATION), "--port", str(port)], port, log_path, env={"PATH": path})
