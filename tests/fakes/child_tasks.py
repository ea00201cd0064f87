"""A task module for the pool's tests: real work of every bad kind, done in a real child process."""

from __future__ import annotations

import ctypes
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

from sam2_mcp_worker.errors import WorkerError

_kept: list[bytearray] = []
_config: dict[str, Any] = {}


def setup(config: dict[str, Any]) -> None:
    _config.update(config)
    print("noise of a library while it loads")
    os.write(1, b"more noise, on the file descriptor\n")
    if "refuse" in config and not Path(config["refuse"]).exists():
        raise WorkerError("no_language_data", "language data is missing", next_step="Install it")
    if "defect_at_start" in config:
        raise ImportError("no module named x")
    if "hang_at_start" in config:
        time.sleep(3600)
    if "crash_at_start" in config:
        os._exit(3)


def echo(params: dict[str, Any]) -> dict[str, Any]:
    print("noise of a task")
    os.write(1, b'{"id": 1, "result": {"forged": true}}\n')
    ctypes.CDLL(None).puts(b"noise of native code")
    return {"pid": os.getpid(), **params}


def describe(params: dict[str, Any]) -> dict[str, Any]:
    return {
        "cwd_on_path": "" in sys.path or str(Path.cwd()) in sys.path,
        "environment": sorted(os.environ),
        "stdin": sys.stdin.read(),
        "config": _config,
    }


def crash(params: dict[str, Any]) -> dict[str, Any]:
    if params["how"] == "abort":
        os.abort()
    if params["how"] == "segfault":
        ctypes.string_at(0)
    os._exit(7)


def hang(params: dict[str, Any]) -> dict[str, Any]:
    Path(params["started"]).write_text(str(os.getpid()), encoding="ascii")
    if params["how"] == "sleep":
        time.sleep(3600)
    re.match(r"(a+)+$", "a" * 64 + "b")  # inside C code that never looks at signals or at other threads
    return {}


def wait_for(params: dict[str, Any]) -> dict[str, Any]:
    """Say that it began, then run until the file `until` is there."""
    Path(params["started"]).write_text(str(os.getpid()), encoding="ascii")
    while not Path(params["until"]).exists():
        time.sleep(0.01)
    return {"pid": os.getpid()}


def allocate(params: dict[str, Any]) -> dict[str, Any]:
    block = bytearray(params["bytes"])
    for offset in range(0, len(block), 4096):
        block[offset] = 1
    if params.get("keep"):
        _kept.append(block)
    return {"pid": os.getpid()}


def fail(params: dict[str, Any]) -> dict[str, Any]:
    if params["how"] == "worker_error":
        raise WorkerError("pdf_damaged", "page 3 is damaged", rule="a page has one tree", next_step="Repair the file")
    if params["how"] == "not_json":
        return {"value": object()}
    raise KeyError("/secret/path")


def answer_on_wire(params: dict[str, Any]) -> dict[str, Any]:
    """What a child under foreign control might do: write to the real answer pipe."""
    for fd in range(3, 16):
        try:
            os.write(fd, params["line"].encode("ascii") + b"\n")
        except OSError:
            continue  # closed, or the request pipe, which is for reading
    return {}


def append(params: dict[str, Any]) -> dict[str, Any]:
    with Path(params["path"]).open("a", encoding="ascii") as log:
        log.write(params["mark"] + "\n")
    return {}


TASKS = {
    task.__name__: task for task in (echo, describe, crash, hang, wait_for, allocate, fail, answer_on_wire, append)
}
