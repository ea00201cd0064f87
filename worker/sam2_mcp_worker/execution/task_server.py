"""The child's half of the pool: runs the tasks of one module, one at a time, until the server closes the pipe.

Owns the limits of the process and the boundary between a task's exceptions and the wire (newline-delimited ASCII JSON).
It knows nothing of what the tasks do. A task module offers

    setup(config: dict) -> None                     # loads what is slow to load; WorkerError = cannot work, and why
    TASKS: dict[str, Callable[[dict], dict]]        # called on the main thread

First line in: `{"config", "memory_limit_bytes"}`; first line out: `{"ready": true}` or `{"error"}`. Then each
`{"id", "task", "params"}` is answered by `{"id", "result" | "error"}`; all answers carry the memory figures.
JSON and never pickle: a child that was taken over by a hostile file must not be able to run code in the server.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from sam2_mcp_worker.errors import WorkerError

Task = Callable[[dict[str, Any]], dict[str, Any]]

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_MEMORY_FIELDS = {"rss_bytes": "VmRSS", "private_bytes": "RssAnon", "peak_rss_bytes": "VmHWM"}


def die_with_parent() -> None:
    """Ask the kernel for SIGKILL when the server dies, even while a task hangs in native code.

    A server that died before this line is noticed by the end of the request pipe. Elsewhere than on Linux only
    the pipe is left, which an endless task does not see.
    """
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def apply_limits(memory_limit_bytes: int) -> None:
    """Bound the address space (0 = unbounded), write no core dumps, leave Ctrl-C to the server."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory_limit_bytes:
        resource.setrlimit(resource.RLIMIT_AS, (memory_limit_bytes, memory_limit_bytes))
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def memory_figures() -> dict[str, int]:
    """Resident bytes now, those of them that no file backs, and the peak so far; empty without /proc.

    Not from getrusage: its peak includes that of the server before it became this process.
    """
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return {}
    kilobytes = {name: value.split()[0] for name, _, value in (line.partition(":") for line in lines) if value.split()}
    return {ours: int(kilobytes.get(theirs, "0")) * 1024 for ours, theirs in _MEMORY_FIELDS.items()}


def error_fields(error: BaseException) -> dict[str, str]:
    """What of an exception may leave the child. Everything else goes to stderr."""
    if isinstance(error, WorkerError):
        if error.private:
            sys.stderr.write(f"{error.code}: {error.private}\n")
        return {"code": error.code, "what": error.what, "rule": error.rule, "next_step": error.next_step}
    if isinstance(error, MemoryError):
        return {
            "code": "out_of_memory",
            "what": "this input needs more memory than one decoder may use",
            "rule": "",
            "next_step": "Use a smaller picture or page, or a lower resolution",
        }
    traceback.print_exception(error)  # to stderr
    return {"code": "internal", "what": "an unexpected failure inside the decoder", "rule": "", "next_step": ""}


def answer(tasks: dict[str, Task], request: dict[str, Any]) -> dict[str, Any]:
    """Run one task; every exception becomes an error answer."""
    try:
        outcome: dict[str, Any] = {"result": tasks[request["task"]](request["params"])}
    except Exception as error:
        outcome = {"error": error_fields(error)}
    return {"id": request["id"], **outcome, **memory_figures()}


def load(module_name: str, config: dict[str, Any]) -> dict[str, Task]:
    """Import the task module and let it set itself up."""
    module = importlib.import_module(module_name)
    module.setup(config)
    tasks: dict[str, Task] = module.TASKS
    return tasks


def serve(module_name: str, requests: BinaryIO, answers: BinaryIO) -> int:
    """Answer requests until the server closes the pipe; 1 = could not start."""

    def send(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message, ensure_ascii=True, allow_nan=False).encode("ascii") + b"\n")
        answers.flush()

    first = requests.readline()
    if not first:
        return 0
    start = json.loads(first)
    apply_limits(start["memory_limit_bytes"])
    try:
        tasks = load(module_name, start["config"])
    except BaseException as error:
        send({"error": error_fields(error)})
        return 1
    send({"ready": True, **memory_figures()})
    for line in requests:
        request = json.loads(line)
        reply = answer(tasks, request)
        try:
            send(reply)
        except (TypeError, ValueError, MemoryError) as error:  # a result that JSON cannot carry
            send({"id": request["id"], "error": error_fields(error)})
    return 0


def main(module_name: str, wire: tuple[int, int]) -> int:
    """Run on claimed fds."""
    die_with_parent()
    with open(wire[0], "rb") as requests, open(wire[1], "wb") as answers:  # noqa: PTH123 (fds, not paths)
        with contextlib.suppress(BrokenPipeError):  # the server went away in mid-answer
            return serve(module_name, requests, answers)
        os._exit(0)  # closing `answers` would raise again for what it still holds
