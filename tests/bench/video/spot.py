"""The synthetic spot of mission.md in one call: beside the ideal schedule, beside its truth, and with the local engine.

    python -m tests.bench.video.spot [--seeds 1 2 3] [--check] [--json]

Twelve frames half a second apart, all different and no more (scene_changes is off), are read by the scripted Claude
with the latencies of tests/bench/claude/schedule.py. The ideal is the list schedule of the very latencies that were
drawn, 16 at once, with nothing around it: no decoding, no pictures. The local engine reads an ordinary H.264 encode; it
looks for text only.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from tests.bench.bridge.host import process_tree
from tests.bench.claude.command import finish, options
from tests.bench.claude.ideal import list_schedule_s
from tests.bench.claude.scene import (
    FakeProcess,
    RunningProgram,
    call,
    cpu_s,
    fake_process,
    follow,
    quiet_environment,
    worker_program,
)
from tests.bench.claude.schedule import IN_FLIGHT, MOST_TIMES_IDEAL, script, slow_settings
from tests.fakes.spot_video import (
    DURATION_S,
    LABELS,
    NOTICE,
    NOTICE_PX,
    NOTICE_S,
    PREMIUM,
    PREMIUM_PX,
    PREMIUM_S,
    Spot,
    write_spot,
    wrong_findings,
    wrong_phrase,
)

STEP_S = 0.5
FRAMES = int(DURATION_S / STEP_S)
PHRASES = [PREMIUM, NOTICE]


@dataclass(frozen=True)
class SpotCall:
    """One call. `before`, `during` and `after` are around the first and the last request; `wrong` is what is not so."""

    seed: int
    ideal_s: float
    took_s: float
    before_s: float
    during_s: float
    after_s: float
    requests: int
    in_flight_max: int
    frames_read: int
    cpu_s: float
    again_requests: int
    again_s: float
    wrong: list[str]

    @property
    def times_ideal(self) -> float:
        return self.took_s / self.ideal_s

    def shortcomings(self) -> list[str]:
        claims = {
            f"{self.times_ideal:.2f} times the ideal": self.times_ideal > MOST_TIMES_IDEAL,
            f"{self.frames_read} of {FRAMES} frames read": self.frames_read != FRAMES,
            f"{self.in_flight_max} requests at once": self.in_flight_max > IN_FLIGHT,
            f"{self.again_requests} requests for the same call again": self.again_requests > 0,
            f"wrong: {self.wrong}": bool(self.wrong),
        }
        return [f"seed {self.seed}: {claim}" for claim, holds in claims.items() if holds]


@dataclass(frozen=True)
class LocalCall:
    """The same spot, read by the local engine."""

    took_s: float
    frames_read: int
    cpu_s: float
    wrong: list[str]

    @property
    def frames_per_s(self) -> float:
        return self.frames_read / self.took_s

    def shortcomings(self) -> list[str]:
        claims = {
            f"{self.frames_read} of {FRAMES} frames read": self.frames_read < FRAMES,
            f"wrong: {self.wrong}": bool(self.wrong),
        }
        return [f"local: {claim}" for claim, holds in claims.items() if holds]


async def _one(fake: FakeProcess, worker: RunningProgram, spot: Spot, seed: int, time_scale: float) -> SpotCall:
    fake.play(partial(script, seed, time_scale))
    source = await worker.client.upload(spot.path)
    arguments = {
        "source": source,
        "labels": list(LABELS),
        "phrases": PHRASES,
        "interval_s": STEP_S,
        "scene_changes": False,
    }
    before_s = cpu_s(process_tree(worker.pid))
    called = await call(worker.client, "inspect_video", **arguments)
    cpu = cpu_s(process_tree(worker.pid)) - before_s
    record = fake.record()
    again = await call(worker.client, "inspect_video", **arguments)
    first_s = min(each.started_s for each in record.requests)
    last_s = max(each.ended_s for each in record.requests)
    waited = [each.latency_s * time_scale if each.status == 200 else 0.0 for each in record.requests]
    return SpotCall(
        seed=seed,
        ideal_s=list_schedule_s(waited, IN_FLIGHT),
        took_s=called.took_s,
        before_s=first_s - called.started_s,
        during_s=last_s - first_s,
        after_s=called.started_s + called.took_s - last_s,
        requests=len(record.requests),
        in_flight_max=record.in_flight_max,
        frames_read=called.facts.get("coverage", {}).get("frames", {}).get("read", 0),
        cpu_s=cpu,
        again_requests=len(fake.record().requests) - len(record.requests),
        again_s=again.took_s,
        wrong=[called.error] if called.error else wrong_findings(called.facts, STEP_S),
    )


async def _local(folder: Path, spot: Spot) -> LocalCall:
    async with worker_program(folder, segmenter="off") as worker:
        source = await worker.client.upload(spot.path)
        before_s = cpu_s(process_tree(worker.pid))
        calls = await follow(
            worker.client, "inspect_video", source=source, phrases=PHRASES, interval_s=STEP_S, scene_changes=False
        )
        cpu = cpu_s(process_tree(worker.pid)) - before_s
    took_s, last = sum(each.took_s for each in calls), calls[-1]
    if last.error:
        return LocalCall(took_s, 0, cpu, [last.error])
    premium, notice = last.facts["phrases"]
    wrong = [
        *wrong_phrase(premium, PREMIUM_S, PREMIUM_PX, STEP_S, most_px=2.0),
        *wrong_phrase(notice, NOTICE_S, NOTICE_PX, STEP_S),
    ]
    return LocalCall(took_s, last.facts["coverage"]["frames"]["read"], cpu, wrong)


async def measure(seeds: Sequence[int], scratch: Path, time_scale: float) -> tuple[list[SpotCall], LocalCall]:
    spots = [write_spot(scratch / f"{seed}.mp4", title=f"seed-{seed}") for seed in seeds]
    pages = [page for spot in spots for page in spot.pages]
    with fake_process(pages, partial(script, seeds[0], time_scale)) as fake:
        limits = slow_settings(time_scale)
        async with worker_program(scratch, **fake.settings, **limits, segmenter="off") as worker:
            calls = [await _one(fake, worker, *each, time_scale) for each in zip(spots, seeds, strict=True)]
    (scratch / "local").mkdir()
    return calls, await _local(scratch / "local", write_spot(scratch / "lossy.mp4", lossy=True))


def table(calls: Sequence[SpotCall], local: LocalCall) -> str:
    rows = [
        "| seed | ideal s | took s | times | before, during, after s | requests, at once | CPU s | wrong | again s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    rows += [
        f"| {each.seed} | {each.ideal_s:.2f} | {each.took_s:.2f} | {each.times_ideal:.2f} | "
        f"{each.before_s:.2f}, {each.during_s:.2f}, {each.after_s:.2f} | {each.requests}, {each.in_flight_max} | "
        f"{each.cpu_s:.1f} | {len(each.wrong)} | {each.again_s:.2f} |"
        for each in calls
    ]
    rows.append(
        f"\nlocal engine: {local.frames_read} frames in {local.took_s:.2f} s = {local.frames_per_s:.2f} a second, "
        f"{local.cpu_s:.1f} CPU s, wrong: {len(local.wrong)}"
    )
    return "\n".join(rows)


def main() -> int:
    parser = options("spot", "video")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--time-scale", type=float, default=1.0, help="all latencies and limits that much longer")
    arguments = parser.parse_args()
    quiet_environment()
    with tempfile.TemporaryDirectory() as folder:
        calls, local = asyncio.run(measure(arguments.seeds, Path(folder), arguments.time_scale))
    short = [claim for each in [*calls, local] for claim in each.shortcomings()]
    data = {"calls": [asdict(each) for each in calls], "local": asdict(local)}
    return finish(arguments, data, table(calls, local), short)


if __name__ == "__main__":
    sys.exit(main())
