"""Many callers, one session, a worker under attack: who got which answer, and when.

Knows no tool: `MakeCall` says what to ask and how to recognise the answer to exactly that request.
"""

import asyncio
import random
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import httpx
from deploy.station import loader
from tests.e2e.rehearsal.faults import Fault, strike, thresholds
from tests.e2e.rehearsal.processes import Program

# Bridge and worker begin every failure that an agent may read with its code.
HONEST_FAILURE = re.compile(r"\[(\w+)\] ")

# An agent that is told at once that the worker is gone does not ask again at once.
FAST_FAILURE_S = 1.0
PAUSE_AFTER_FAST_FAILURE_S = 0.5


@dataclass(frozen=True)
class Call:
    """`is_answer` is true for the answer to this very request and for nothing else."""

    tool: str
    arguments: dict[str, Any]
    is_answer: Callable[[str], bool]


# (random numbers, number of the call) -> what to ask
MakeCall = Callable[[random.Random, int], Call]


@dataclass(frozen=True)
class Outcome:
    number: int
    verdict: Literal["right", "failed", "wrong"]
    text: str
    took_s: float


@dataclass
class Report:
    outcomes: list[Outcome] = field(default_factory=list)
    struck: list[Fault] = field(default_factory=list)
    wall_s: float = 0.0
    session_alive: bool = False
    last_answer_right: bool = False
    bridge_rss_mib: float = 0.0

    def having(self, verdict: str) -> list[Outcome]:
        return [each for each in self.outcomes if each.verdict == verdict]

    def longer_than(self, limit_s: float) -> list[Outcome]:
        return [each for each in self.outcomes if each.took_s > limit_s]

    def failure_codes(self) -> Counter[str]:
        return Counter(found[1] for each in self.having("failed") if (found := HONEST_FAILURE.match(each.text)))

    def shortcomings(self, limit_s: float, right_share: float) -> list[str]:
        """What must not be; empty when the rehearsal is passed."""
        wrong, late = self.having("wrong"), self.longer_than(limit_s)
        claims = {
            f"{len(wrong)} calls got a wrong answer, the first: {wrong[:1]}": bool(wrong),
            f"{len(late)} calls took longer than {limit_s} s, the first: {late[:1]}": bool(late),
            "the session did not survive": not self.session_alive,
            "the last call, to a healthy worker, failed": not self.last_answer_right,
            f"fewer than {right_share:.0%} of the calls were answered": (
                len(self.having("right")) < right_share * len(self.outcomes)
            ),
            "no call failed although the worker stood still for longer than the deadline": not self.having("failed"),
        }
        return [claim for claim, holds in claims.items() if holds]

    def summary(self) -> str:
        took_s = [each.took_s for each in self.outcomes]
        right_s = [each.took_s for each in self.having("right")] or [0.0]
        faults = Counter(each.kind for each in self.struck)
        freeze_s = max((each.duration_s for each in self.struck if each.kind == "freeze"), default=0.0)
        return "\n".join(
            [
                f"calls {len(took_s)} in {self.wall_s:.0f} s: {len(self.having('right'))} right, "
                f"{len(self.having('failed'))} told that they failed, {len(self.having('wrong'))} wrong",
                f"failures by code: {dict(self.failure_codes())}",
                f"longest call {max(took_s):.2f} s; right answers: median {statistics.median(right_s):.2f} s, "
                f"longest {max(right_s):.2f} s",
                f"faults struck: {dict(faults)}, longest freeze {freeze_s:.0f} s",
                f"session alive: {self.session_alive}; last call right: {self.last_answer_right}; "
                f"bridge {self.bridge_rss_mib:.1f} MiB resident",
            ]
        )


@dataclass
class Rehearsal:
    """`client` has the station as its base_url; `session` is the body that asks it to start the bridge."""

    client: httpx.AsyncClient
    worker: Program
    session: dict[str, Any]
    make_call: MakeCall
    rng: random.Random

    async def run(self, calls: int, parallel: int, plan: Sequence[Fault]) -> Report:
        response = await self.client.post("/api/mcp/sessions", json=self.session)
        session: dict[str, Any] = response.raise_for_status().json()
        report = Report()
        numbers = iter(range(calls))
        started_s = time.monotonic()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._attack(report, plan, calls))
            for _ in range(parallel):
                group.create_task(self._keep_calling(session["session_id"], numbers, report))
        report.wall_s = time.monotonic() - started_s
        await self._inspect(session, report, calls)
        return report

    async def _attack(self, report: Report, plan: Sequence[Fault], calls: int) -> None:
        for threshold, fault in zip(thresholds(plan, calls), plan, strict=True):
            while len(report.outcomes) < threshold:
                await asyncio.sleep(0.02)
            await strike(self.worker, fault)
            report.struck.append(fault)

    async def _keep_calling(self, session_id: str, numbers: Iterator[int], report: Report) -> None:
        for number in numbers:
            outcome = await self._ask(session_id, number)
            report.outcomes.append(outcome)
            if outcome.verdict == "failed" and outcome.took_s < FAST_FAILURE_S:
                await asyncio.sleep(PAUSE_AFTER_FAST_FAILURE_S)

    async def _ask(self, session_id: str, number: int) -> Outcome:
        call = self.make_call(self.rng, number)
        started_s = time.monotonic()
        text = await loader.call_tool(self.client, session_id, call.tool, call.arguments)
        took_s = time.monotonic() - started_s
        if call.is_answer(text):
            return Outcome(number, "right", text, took_s)
        return Outcome(number, "failed" if HONEST_FAILURE.match(text) else "wrong", text, took_s)

    async def _inspect(self, session: dict[str, Any], report: Report, calls: int) -> None:
        """After the storm: the same process must be there, and answer."""
        listed = (await self.client.get("/api/mcp/sessions")).json()
        alive = [(each["session_id"], each["pid"], each["mcp_initialized"]) for each in listed]
        report.session_alive = alive == [(session["session_id"], session["pid"], True)]
        report.last_answer_right = (await self._ask(session["session_id"], calls)).verdict == "right"
        status = Path(f"/proc/{session['pid']}/status").read_text(encoding="utf-8") if report.session_alive else ""
        if resident := re.search(r"VmRSS:\s+(\d+) kB", status):
            report.bridge_rss_mib = int(resident[1]) / 1024
