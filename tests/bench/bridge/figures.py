"""Seconds, megabytes and milliseconds, measured alternately: a busy moment of the machine hits every program."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import NamedTuple

import httpx
from tests.bench.bridge.behaviour import judge
from tests.bench.bridge.host import HANDSHAKE, Host, Memory
from tests.bench.bridge.programs import Program

LARGE_MB = 5
LARGE_ROUNDS = 3
LATENCY_CHUNKS = 10
# How long a measured call takes: what a small MCP server on loopback took when the peers were first measured (12.1 ms).
# A bridge in profile station keeps back what is answered within 10 ms, as no real tool is.
TOOL_S = 0.012
TEXT_BYTES = "x" * 400  # an answer of the usual size


class Start(NamedTuple):
    ready_s: float
    idle: Memory
    after_large: Memory | None


class Latency(NamedTuple):
    p50_ms: float
    p95_ms: float


def measure_start(program: Program, url: str, *, large: bool) -> Start:
    """One life: handshake, list, one call; then the large result.

    Raises:
        RuntimeError: the program did not give the right answers.
    """
    with Host(program, url) as host:
        ready_s = host.shake_hands()
        if ready_s is None or not host.answer(host.send("tools/list")):
            raise RuntimeError("it does not answer initialize and tools/list")
        call(host, "echo")
        idle = host.memory()
        if not large:
            return Start(ready_s, idle, None)
        call(host, "large", megabytes=LARGE_MB)
        return Start(ready_s, idle, host.memory())


def call(host: Host, tool: str, **arguments: float) -> None:
    request_id = host.call(tool, TEXT_BYTES, **arguments)
    if (kind := judge(host.answer(request_id), request_id, TEXT_BYTES)) != "right":
        raise RuntimeError(f"{tool}: {kind}")


def measure_starts(
    programs: Sequence[Program], url: str, rounds: int, failed: dict[str, str]
) -> dict[str, list[Start]]:
    """`rounds` lives of each program, with the large result in the first three; one before them warms the page cache.

    A program that does not give the right answers goes into `failed` with the reason, and is left out from then on.
    """
    starts: dict[str, list[Start]] = {program.name: [] for program in programs}
    for number in range(-1, rounds):
        for program in programs:
            if program.name in failed:
                continue
            try:
                start = measure_start(program, url, large=number < LARGE_ROUNDS)
            except RuntimeError as error:
                failed[program.name] = str(error)
            else:
                starts[program.name] += [start] if number >= 0 else []
    return starts


def median(starts: Sequence[Start]) -> Start:
    after_large = [start.after_large for start in starts if start.after_large is not None]
    return Start(
        statistics.median(start.ready_s for start in starts),
        _median_memory([start.idle for start in starts]),
        _median_memory(after_large) if after_large else None,
    )


def _median_memory(memories: Sequence[Memory]) -> Memory:
    return Memory(*(statistics.median(values) for values in zip(*memories, strict=True)))


def measure_latency(programs: Sequence[Program], url: str, calls: int, failed: dict[str, str]) -> dict[str, Latency]:
    """Of calls one after another, beside the same call made directly ("direct"); `failed` as for the starts."""
    with ExitStack() as stack:
        asks: dict[str, Callable[[], None]] = {"direct": stack.enter_context(Direct(url)).call}
        for program in programs:
            host = stack.enter_context(Host(program, url))
            host.shake_hands()
            asks[program.name] = partial(call, host, "echo", seconds=TOOL_S)
        times_ms: dict[str, list[float]] = {name: [] for name in asks}
        for _ in range(LATENCY_CHUNKS):
            for name in [name for name in asks if name not in failed]:
                try:
                    times_ms[name] += [_timed_ms(asks[name]) for _ in range(calls // LATENCY_CHUNKS)]
                except RuntimeError as error:
                    failed[name] = str(error)
    return {name: latency(values) for name, values in times_ms.items() if name not in failed}


def latency(times_ms: Sequence[float]) -> Latency:
    quantiles = statistics.quantiles(times_ms, n=20)
    return Latency(quantiles[9], quantiles[18])


def _timed_ms(ask: Callable[[], None]) -> float:
    began_s = time.perf_counter()
    ask()
    return (time.perf_counter() - began_s) * 1000


class Direct:
    """The call without a bridge, on a connection that is kept."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._client = httpx.Client(trust_env=False, headers={"Accept": "application/json, text/event-stream"})
        answer = self._post("initialize", HANDSHAKE)
        self._client.headers["Mcp-Session-Id"] = answer.headers["mcp-session-id"]

    def _post(self, method: str, params: object) -> httpx.Response:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self._client.post(self._url, json=message).raise_for_status()

    def call(self) -> None:
        self._post("tools/call", {"name": "echo", "arguments": {"tag": TEXT_BYTES, "seconds": TOOL_S}})

    def __enter__(self) -> Direct:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()
