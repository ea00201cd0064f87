"""A whole rehearsal with the echo worker: station, bridge and worker as real processes, sized by a `Size`."""

import random
from dataclasses import dataclass
from pathlib import Path

import httpx
from tests.e2e.rehearsal.driver import Call, MakeCall, Rehearsal, Report
from tests.e2e.rehearsal.faults import make_plan
from tests.e2e.rehearsal.processes import Program, echo_worker_command, free_port, running, station_program

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


async def rehearse(
    size: Size,
    seed: int,
    log_dir: Path,
    server_command: str = "-m",
    server_args: tuple[str, ...] = ("sam2_mcp_bridge",),
) -> Report:
    rng = random.Random(seed)
    port = free_port()
    worker = Program(echo_worker_command(port), port, log_dir / "worker.log")
    station = station_program(log_dir / "station.log")
    async with running(worker), running(station):
        base_url = f"http://127.0.0.1:{station.port}"
        async with httpx.AsyncClient(base_url=base_url, timeout=30, trust_env=False) as client:
            rehearsal = Rehearsal(
                client=client,
                worker=worker,
                env_vars={"SAM2_MCP_URL": f"http://127.0.0.1:{port}/mcp", "SAM2_MCP_DEADLINE_S": str(size.deadline_s)},
                make_call=echo_calls(size, rng),
                rng=rng,
                server_command=server_command,
                server_args=server_args,
            )
            plan = make_plan(
                rng,
                kills=size.kills,
                restarts=size.restarts,
                freezes=size.freezes,
                longest_freeze_s=size.longest_freeze_s,
            )
            return await rehearsal.run(size.calls, PARALLEL, plan)
