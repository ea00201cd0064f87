"""What is done to the worker, and when: at fixed shares of the calls, in a random order."""

import asyncio
import random
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tests.e2e.rehearsal.processes import Program

Kind = Literal["kill", "restart", "freeze"]


@dataclass(frozen=True)
class Fault:
    """`duration_s`: how long the worker is gone (kill), or stands still (freeze); a restart has none."""

    kind: Kind
    duration_s: float = 0.0


def make_plan(rng: random.Random, *, kills: int, restarts: int, freezes: int, longest_freeze_s: float) -> list[Fault]:
    """Every kind as often as asked, and one freeze of `longest_freeze_s` besides."""
    plan = [Fault("kill", rng.uniform(0.2, 3.0)) for _ in range(kills)]
    plan += [Fault("restart") for _ in range(restarts)]
    plan += [Fault("freeze", rng.uniform(0.5, 4.0)) for _ in range(freezes)]
    plan.append(Fault("freeze", longest_freeze_s))
    rng.shuffle(plan)
    return plan


def thresholds(plan: Sequence[Fault], calls: int) -> list[int]:
    """After how many finished calls each fault strikes; the last leaves a share of the calls to recover in."""
    return [calls * (number + 1) // (len(plan) + 1) for number in range(len(plan))]


async def strike(worker: Program, fault: Fault) -> None:
    """Returns when the worker serves again."""
    if fault.kind == "freeze":
        worker.send(signal.SIGSTOP)
        await asyncio.sleep(fault.duration_s)
        worker.send(signal.SIGCONT)
    else:
        await worker.end(signal.SIGKILL if fault.kind == "kill" else signal.SIGTERM)
        await asyncio.sleep(fault.duration_s)
        worker.start()
    await worker.wait_until_it_listens()
