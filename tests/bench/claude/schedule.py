"""Nine pages of six tiles each beside the ideal list schedule of the very latencies that the scripted Claude drew.

    python -m tests.bench.claude.schedule [--seeds 1 2 3] [--check] [--json]

Latencies are log-normal (median 2.0 s, 95th percentile 4.5 s) and 1 % of the requests are answered with 529. The ideal
begins with the call, has 16 requests under way from its first to its last moment, and needs no time for anything else.
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
from tests.bench.claude.ideal import busy_share, list_schedule_s
from tests.bench.claude.scene import (
    FakeProcess,
    RunningProgram,
    call,
    cpu_s,
    fake_process,
    quiet_environment,
    worker_program,
)
from tests.fakes.claude_pages import TruePage, make_page, pdf_of
from tests.fakes.claude_script import REAL, Script, overloaded

IN_FLIGHT = 16
PAGES, TILES_A_PAGE = 9, 6
# A4 at 200 dpi.
PAGE_SIZE_PX = (1654, 2339)
MOST_TIMES_IDEAL = 1.15
# About 1,600 characters a page; a field document had 12,018 on nine (mission.md). Full pages keep two cores busy.
DENSITY = 0.3


@dataclass(frozen=True)
class Schedule:
    """One call. `requests_s` is from the first request to the end of the last, the two others are around it.

    `..._cpu_s` is processor time during the call: where it comes near to what the cores have, nothing else counts.
    """

    seed: int
    ideal_s: float
    took_s: float
    requests: int
    overloaded: int
    in_flight_max: int
    busy_share: float
    before_requests_s: float
    requests_s: float
    after_requests_s: float
    pages_done: int
    tiles_seen: int
    server_cpu_s: float
    children_cpu_s: float
    fake_cpu_s: float

    @property
    def times_ideal(self) -> float:
        return self.took_s / self.ideal_s

    def shortcomings(self) -> list[str]:
        claims = {
            f"{self.times_ideal:.2f} times the ideal": self.times_ideal > MOST_TIMES_IDEAL,
            f"{self.pages_done} of {PAGES} pages done": self.pages_done != PAGES,
            f"{self.tiles_seen} tiles seen": self.tiles_seen != PAGES * TILES_A_PAGE,
            f"{self.in_flight_max} requests at once": self.in_flight_max > IN_FLIGHT,
        }
        return [f"seed {self.seed}: {claim}" for claim, holds in claims.items() if holds]


def script(seed: int, time_scale: float) -> Script:
    return Script(latency=REAL, chances={overloaded(): 0.01}, seed=seed, time_scale=time_scale)


def slow_settings(time_scale: float) -> dict[str, float]:
    """A machine whose cores are shared seems quicker when everything else takes longer, its limits included."""
    return {"call_budget_s": 27 * time_scale, "vision_tile_limit_s": 25 * time_scale}


def document(seed: int, density: float) -> list[TruePage]:
    names = [f"schedule-{seed}-{number}" for number in range(1, PAGES + 1)]
    return [make_page(name, *PAGE_SIZE_PX, density=density) for name in names]


async def measure(seeds: Sequence[int], scratch: Path, time_scale: float, density: float) -> list[Schedule]:
    pages = {seed: document(seed, density) for seed in seeds}
    with fake_process([page for each in pages.values() for page in each], partial(script, seeds[0], 1.0)) as fake:
        limits = slow_settings(time_scale)
        async with worker_program(scratch, **fake.settings, **limits, segmenter="off") as worker:
            found = []
            for seed in seeds:
                path = scratch / f"{seed}.pdf"
                path.write_bytes(pdf_of(pages[seed]))
                handle = await worker.client.upload(path)
                found.append(await _one(fake, worker, handle, seed, time_scale))
            return found


def _cpu_s(fake: FakeProcess, worker: RunningProgram) -> list[float]:
    """Of the server, of its children, of the fake."""
    server = cpu_s([worker.pid])
    return [server, cpu_s(process_tree(worker.pid)) - server, cpu_s([fake.pid])]


async def _one(fake: FakeProcess, worker: RunningProgram, handle: str, seed: int, time_scale: float) -> Schedule:
    fake.play(partial(script, seed, time_scale))
    before = _cpu_s(fake, worker)
    called = await call(worker.client, "inspect_pdf", source=handle)
    cpu = [after - earlier for after, earlier in zip(_cpu_s(fake, worker), before, strict=True)]
    record = fake.record()
    first_s = min(each.started_s for each in record.requests)
    last_s = max(each.ended_s for each in record.requests)
    waited = [each.latency_s * time_scale if each.status == 200 else 0.0 for each in record.requests]
    return Schedule(
        seed=seed,
        ideal_s=list_schedule_s(waited, IN_FLIGHT),
        took_s=called.took_s,
        requests=len(record.requests),
        overloaded=sum(each.fault == "overloaded" for each in record.requests),
        in_flight_max=record.in_flight_max,
        busy_share=busy_share([each.span_s for each in record.requests], IN_FLIGHT),
        before_requests_s=first_s - called.started_s,
        requests_s=last_s - first_s,
        after_requests_s=called.started_s + called.took_s - last_s,
        pages_done=called.facts.get("coverage", {}).get("done", 0),
        tiles_seen=len({tile for each in record.requests if each.status == 200 for tile in each.tiles if tile}),
        server_cpu_s=cpu[0],
        children_cpu_s=cpu[1],
        fake_cpu_s=cpu[2],
    )


def table(found: Sequence[Schedule]) -> str:
    rows = [
        "| seed | ideal s | took s | times | requests (529) | at once | slots busy | before, during, after s | CPU s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    rows += [
        f"| {each.seed} | {each.ideal_s:.2f} | {each.took_s:.2f} | {each.times_ideal:.2f} | {each.requests} "
        f"({each.overloaded}) | {each.in_flight_max} | {each.busy_share:.0%} | {each.before_requests_s:.2f}, "
        f"{each.requests_s:.2f}, {each.after_requests_s:.2f} | "
        f"{each.server_cpu_s:.1f} + {each.children_cpu_s:.1f} + {each.fake_cpu_s:.1f} |"
        for each in found
    ]
    return "\n".join(rows)


def main() -> int:
    parser = options("schedule")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--time-scale", type=float, default=1.0, help="all latencies and limits that much longer")
    parser.add_argument("--density", type=float, default=DENSITY, help="share of rows that hold text")
    arguments = parser.parse_args()
    quiet_environment()
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(measure(arguments.seeds, Path(folder), arguments.time_scale, arguments.density))
    short = [claim for each in found for claim in each.shortcomings()]
    return finish(arguments, [asdict(each) for each in found], table(found), short)


if __name__ == "__main__":
    sys.exit(main())
