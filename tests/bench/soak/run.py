"""A soak from its settings to its report."""

from __future__ import annotations

import random
import statistics
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.soak.actor import DEADLINE_S, QUICK, QUIET_THREADS, SLOW, Actor, Record
from tests.bench.soak.measure import Growth, growth, peak_rss_mb, sample
from tests.bench.soak.speakers import Pipes, Speaker, Station, StationSession
from tests.bench.soak.upstream import SoakUpstream

SAMPLE_EVERY_S = 2.0
# Caches fill and the allocator finds its size: not before a tenth of the time is over, and not much longer than this.
WARM_UP_SHARE, LONGEST_WARM_UP_S = 0.1, 300.0
# The issue's own figure, for the hour.
MAX_GROWTH_MB = 2.0
# The station itself mixes up requests of one moment if the first is answered before it has sent the second: of 294
# calls, six at a time, 9 were swapped with an upstream that answers in 1 ms, none with 5 ms. No real tool is as quick.
STATION_PAUSE_S = 0.02
# Calls that were under way at the end of a soak take up to the deadline; restarts a moment more.
END_PATIENCE_S = 60.0


@dataclass(frozen=True)
class Plan:
    minutes: float
    profile: str = "station"
    seed: int = 1
    bridges: int = 2
    rate_per_s: float = 20.0
    through_station: bool = False


@dataclass(frozen=True)
class BridgeReport:
    record: Record
    warm_up_s: float
    peak_rss_mb: float
    stateful: bool

    @property
    def growth(self) -> Growth:
        """Of the samples at quiet points, after the warm-up."""
        start_s = self.record.quiet[0].at_s + self.warm_up_s
        warm = [each for each in self.record.quiet if each.at_s >= start_s]
        return growth(warm if len(warm) > 1 else self.record.quiet)

    def shortcomings(self, max_growth_mb: float) -> list[str]:
        quiet, grown = self.record.quiet, self.growth.grown_mb
        descriptors, threads = {each.descriptors for each in quiet}, max(each.threads for each in quiet)
        wrong = self.record.wrong
        claims = {
            f"{len(wrong)} answers wrong or missing, the first: {wrong[:3]}": bool(wrong),
            f"memory grew by {grown:.1f} MB": grown > max_growth_mb,
            f"descriptors at quiet points: {sorted(descriptors)}": len(descriptors) > 1,
            f"{threads} threads at a quiet point": threads > QUIET_THREADS,
            "nothing was done": self.record.done["calls"] < 10,
        }
        return [claim for claim, holds in claims.items() if holds]


@dataclass
class Report:
    plan: Plan
    bridges: list[BridgeReport] = field(default_factory=list)
    wall_s: float = 0.0

    def shortcomings(self, max_growth_mb: float = MAX_GROWTH_MB) -> list[str]:
        return [
            f"bridge {number}: {claim}"
            for number, bridge in enumerate(self.bridges, 1)
            for claim in bridge.shortcomings(max_growth_mb)
        ]

    def as_dict(self) -> dict[str, Any]:
        return {
            "plan": asdict(self.plan),
            "wall_s": round(self.wall_s, 1),
            "fault_kinds": len(QUICK) + len(SLOW),
            "bridges": [_bridge_dict(bridge) for bridge in self.bridges],
            "shortcomings": self.shortcomings(),
        }


def _bridge_dict(bridge: BridgeReport) -> dict[str, Any]:
    record = bridge.record
    rss_mb = [each.rss_mb for each in record.samples] or [0.0]
    return {
        "stateful": bridge.stateful,
        "done": dict(record.done),
        "kinds_met": len(record.cases),
        "failures": dict(record.failures),
        "wrong": record.wrong[:20],
        "wrong_count": len(record.wrong),
        "rss_mb": {"median": statistics.median(rss_mb), "highest_sample": max(rss_mb), "peak": bridge.peak_rss_mb},
        "quiet_mb": asdict(bridge.growth) | {"grown_mb": bridge.growth.grown_mb},
        "quiet_pss_mb": [record.quiet[0].pss_mb, record.quiet[-1].pss_mb],
        "quiet_points": len(record.quiet),
        "descriptors": dict(Counter(each.descriptors for each in record.quiet)),
        "threads": dict(Counter(each.threads for each in record.quiet)),
    }


def soak(plan: Plan) -> Report:
    """Drive the bridges for as long as the plan says."""
    rng = random.Random(plan.seed)
    report = Report(plan)
    started_s = time.monotonic()
    warm_up_s = min(WARM_UP_SHARE * plan.minutes * 60, LONGEST_WARM_UP_S)
    with ExitStack() as stack:
        station = None
        if plan.through_station:
            station = Station(Path(stack.enter_context(tempfile.TemporaryDirectory())) / "station.log")
            stack.callback(station.stop)
        actors = [
            _actor(plan, station, random.Random(rng.random()), stateful=bool(n % 2), stack=stack)
            for n in range(plan.bridges)
        ]
        until_s = time.monotonic() + plan.minutes * 60
        for actor in actors:
            actor.until_s = until_s
            actor.start()
        _watch(actors)
        for number, actor in enumerate(actors):
            peak_mb = 0.0
            with suppress(OSError):  # it has ended, which is reported
                peak_mb = peak_rss_mb(actor.speaker.pid)
            if trouble := actor.speaker.close():
                actor.record.wrong.append(f"at the end: {trouble}")
            report.bridges.append(BridgeReport(actor.record, warm_up_s, peak_mb, bool(number % 2)))
    report.wall_s = time.monotonic() - started_s
    return report


def _actor(plan: Plan, station: Station | None, rng: random.Random, *, stateful: bool, stack: ExitStack) -> Actor:
    pause_s = STATION_PAUSE_S if plan.through_station else 0.0
    upstream = SoakUpstream(QUICK | SLOW, stateful=stateful, pause_s=pause_s)
    stack.callback(upstream.stop)
    speaker: Speaker
    if station is None:
        speaker = Pipes(upstream.url, plan.profile, DEADLINE_S)
        stack.callback(speaker.host.process.kill)
    else:
        speaker = StationSession(station, upstream.url, plan.profile, DEADLINE_S)
    return Actor(speaker, upstream, rng, stateful=stateful, rate_per_s=plan.rate_per_s)


def _watch(actors: list[Actor]) -> None:
    """Sample the bridges until all actors have ended."""
    stopped = threading.Event()
    last_s = max(actor.until_s for actor in actors) + END_PATIENCE_S
    while any(actor.is_alive() for actor in actors) and time.monotonic() < last_s:
        for actor in actors:
            with suppress(OSError):
                actor.record.samples.append(sample(actor.speaker.pid, time.monotonic()))
        stopped.wait(SAMPLE_EVERY_S)
    for actor in actors:
        if actor.is_alive():
            actor.record.wrong.append("the session no longer moves")
