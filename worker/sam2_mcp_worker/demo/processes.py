"""Starts the demo's programs and watches what they cost: real processes on free loopback ports."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.execution.task_server import die_with_parent

# Past this a program has a fault that waiting does not mend; the worker is ready in 1-3 s.
START_LIMIT_S = 60.0
POLL_S = 0.05
STOP_LIMIT_S = 15.0
# The demo's own loopback worker needs no token; one that is set for the real worker stays out of the demo.
TOKEN_VARIABLES = {"SAM2_MCP_TOKEN", "SAM2_MCP_TOKEN_FILE"}


def free_port() -> int:
    """A port that is free right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def program(name: str, command: list[str], log: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A program for the length of the block, in a process group of its own; its output goes to `log`."""
    inherited = {variable: value for variable, value in os.environ.items() if variable not in TOKEN_VARIABLES}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=inherited | environment,
            start_new_session=True,
            # A closed terminal or a kill ends the demo without its clean-up; nothing may go on behind it.
            preexec_fn=die_with_parent,
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_until_ready(name: str, url: str, process: subprocess.Popen[bytes], log: Path) -> float:
    """Seconds until `url` answers 200.

    Raises:
        WorkerError: the program ended or took too long; the end of its log is in the text.
    """
    started_s = time.monotonic()
    with httpx.Client(trust_env=False, timeout=5) as client:
        while time.monotonic() - started_s < START_LIMIT_S:
            if process.poll() is not None:
                break
            with contextlib.suppress(httpx.HTTPError):
                if client.get(url).status_code == httpx.codes.OK:
                    return time.monotonic() - started_s
            time.sleep(POLL_S)
    last = log.read_text(encoding="utf-8", errors="replace").strip()[-300:]
    raise WorkerError("demo_program", f"the {name} did not become ready", next_step=f"its log ends: {last}")


def python_command(*arguments: str) -> list[str]:
    """This very interpreter, unbuffered."""
    return [sys.executable, "-u", *arguments]


def memory_mb(root_pid: int) -> tuple[int, int]:
    """Resident MiB now, and the sum of the peaks, of a process and all below it; (0, 0) where /proc is not there."""
    now = peak = 0
    for pid in [root_pid, *_descendants(root_pid)]:
        with contextlib.suppress(OSError):
            fields = dict(
                line.split(":", 1)
                for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
                if ":" in line
            )
            now += int(fields.get("VmRSS", "0 kB").split()[0])
            peak += int(fields.get("VmHWM", "0 kB").split()[0])
    return now // 1024, peak // 1024


def _descendants(pid: int) -> list[int]:
    found = []
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, tasks.read_text(encoding="utf-8").split()):
                found += [child, *_descendants(child)]
    return found
