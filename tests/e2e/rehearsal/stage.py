"""A whole rehearsal: station, bridge and worker as real processes, sized by a `Size`.

`ECHO` is the worker of the SDK with one tool; any other is a `Stage` of its own: how to start it and what to ask it.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from tests.e2e.rehearsal.driver import Call, MakeCall, Rehearsal, Report
from tests.e2e.rehearsal.faults import make_plan
from tests.e2e.rehearsal.processes import (
    Program,
    WorkerCommand,
    echo_worker_command,
    free_port,
    running,
    station_program,
)

PARALLEL = 12


@dataclass(frozen=True)
class Size:
    """Most calls take up to `usual_ms`, the `slow` ones up to half the deadline, the `hopeless` ones longer than it."""

    calls: int
    deadline_s: float
    usual_ms: int
    slow: int
    hopeless: int
    kills: int
    restarts: int
    freezes: int
    longest_freeze_s: float


def echo_calls(size: Size, rng: random.Random) -> MakeCall:
    special = rng.sample(range(size.calls), size.slow + size.hopeless)
    beyond_ms = round((size.deadline_s + 5) * 1000)
    delays_ms = {number: rng.randint(1000, round(size.deadline_s * 500)) for number in special[: size.slow]}
    delays_ms |= dict.fromkeys(special[size.slow :], beyond_ms)

    def make_call(rng: random.Random, number: int) -> Call:
        tag = f"{number}-{rng.getrandbits(64):016x}"
        delay_ms = delays_ms.get(number, rng.randint(0, size.usual_ms))
        return Call("echo", {"tag": tag, "delay_ms": delay_ms}, lambda text: text == tag)

    return make_call


@dataclass(frozen=True)
class Stage:
    """`make_calls` is asked once per rehearsal; `bridge` is the session's server_command and server_args."""

    worker_command: WorkerCommand
    make_calls: Callable[[Size, random.Random], MakeCall]
    worker_env: Mapping[str, str] = field(default_factory=dict)
    bridge: tuple[str, ...] = ("-m", "sam2_mcp_bridge")
    bridge_env: Mapping[str, str] = field(default_factory=dict)


ECHO = Stage(echo_worker_command, echo_calls)


async def rehearse(size: Size, seed: int, log_dir: Path, stage: Stage = ECHO) -> Report:
    rng = random.Random(seed)
    port = free_port()
    worker = Program(stage.worker_command(port), port, log_dir / "worker.log", dict(stage.worker_env))
    station = station_program(log_dir / "station.log")
    async with running(worker), running(station):
        base_url = f"http://127.0.0.1:{station.port}"
        async with httpx.AsyncClient(base_url=base_url, timeout=30, trust_env=False) as client:
            rehearsal = Rehearsal(
                client=client,
                worker=worker,
                session={
                    "server_type": "python",
                    "server_command": stage.bridge[0],
                    "server_args": list(stage.bridge[1:]),
                    "env_vars": {
                        "SAM2_MCP_URL": f"http://127.0.0.1:{port}/mcp",
                        "SAM2_MCP_DEADLINE_S": str(size.deadline_s),
                        **stage.bridge_env,
                    },
                },
                make_call=stage.make_calls(size, rng),
                rng=rng,
            )
            plan = make_plan(
                rng,
                kills=size.kills,
                restarts=size.restarts,
                freezes=size.freezes,
                longest_freeze_s=size.longest_freeze_s,
            )
            return await rehearsal.run(size.calls, PARALLEL, plan)
