"""Every fault of the scripted Claude against every tool: no call over its budget, each with an honest end, memory flat.

    python -m tests.bench.claude.budget [--rounds 7] [--check] [--json]

The budget is a short one, so that stalls reach it in every call. A fault that is the whole provider's (wrong key, no
credit ...) is remembered for a minute, so each of these gets a worker of its own; all others meet one and the same.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench.bridge.host import process_tree
from tests.bench.claude.command import finish, options, rows_of
from tests.bench.claude.scene import (
    Called,
    FakeProcess,
    RunningProgram,
    call,
    fake_process,
    quiet_environment,
    resident_mb,
    worker_program,
)
from tests.fakes.claude_pages import TruePage, make_page, pdf_of
from tests.fakes.claude_script import (
    EVERY_FAULT,
    NO_CREDIT,
    NO_PERMISSION,
    PAYMENT_REQUIRED,
    UNKNOWN_MODEL,
    WRONG_KEY,
    Fault,
    Latency,
    Script,
)
from tests.fakes.videos import index_clip
from tests.models import PairMissingError, fetch_onnx_pair

BUDGET_S = 5.0
GRACE_S = 0.5
# At once: the worker's own queues must be part of what is measured.
PARALLEL = 4
ROUNDS, ROUNDS_OF_A_LOST_PROVIDER = 7, 3
PAGE_SIZE_PX = (900, 700)
LATENCY = Latency(0.3, 0.8)
WHOLE_PROVIDER = {fault.name for fault in (WRONG_KEY, NO_PERMISSION, NO_CREDIT, PAYMENT_REQUIRED, UNKNOWN_MODEL)}
WHOLE_PROVIDER |= {"no_api"}
# Tools that ask Claude, and those that must not notice what it does.
READING = ("read_text", "inspect_image", "inspect_pdf")
BESIDE = ("get_status", "segment_image", "track_video", "redact_media")
# Of the server process, between the middle and the end of the long run.
MOST_GROWTH_MB = 16.0


@dataclass(frozen=True)
class Ended:
    """One call: by whom, under which fault, how long it took, and how it ended in a word."""

    tool: str
    fault: str
    took_s: float
    end: str
    internal: bool


@dataclass
class Run:
    """All calls, and the memory of the server and of all its children after each fault, in MB."""

    calls: list[Ended] = field(default_factory=list)
    server_mb: list[float] = field(default_factory=list)
    tree_mb: list[float] = field(default_factory=list)
    budget_s: float = BUDGET_S

    @property
    def growth_mb(self) -> float:
        """Of the server, from the middle of the faults that met one worker to their end."""
        return self.server_mb[-1] - self.server_mb[len(self.server_mb) // 2] if self.server_mb else 0.0

    def shortcomings(self, least_calls: int) -> list[str]:
        late = [each for each in self.calls if each.took_s > self.budget_s + GRACE_S]
        internal = [each for each in self.calls if each.internal]
        claims = {
            f"{len(late)} calls over the budget, the longest {max(late, key=_took, default=None)}": bool(late),
            f"{len(internal)} calls told of a failure of ours, the first {internal[:1]}": bool(internal),
            f"the server grew by {self.growth_mb:.1f} MB": self.growth_mb > MOST_GROWTH_MB,
            f"only {len(self.calls)} calls": len(self.calls) < least_calls,
        }
        return [claim for claim, holds in claims.items() if holds]

    def as_dict(self) -> dict[str, Any]:
        longest = {
            f"{tool} longest_s": round(max((e.took_s for e in self.calls if e.tool == tool), default=0.0), 2)
            for tool in READING + BESIDE
        }
        return {
            "calls": len(self.calls),
            "faults": len({each.fault for each in self.calls}),
            "budget_s": self.budget_s,
            **longest,
            "ends": dict(Counter(each.end for each in self.calls)),
            "server_mb": [round(mb, 1) for mb in self.server_mb],
            "tree_mb": [round(mb) for mb in self.tree_mb],
            "growth_mb": round(self.growth_mb, 1),
        }


def _took(each: Ended) -> float:
    return each.took_s


def script(index: int, seed: int, time_scale: float = 1.0) -> Script:
    """The fault of this number meets three of four requests, so that tries that follow a fault are there too."""
    fault = EVERY_FAULT[index]
    chances = {fault: 1.0 if fault.name in WHOLE_PROVIDER else 0.75}
    return Script(latency=LATENCY, chances=chances, seed=seed, time_scale=time_scale)


def end_of(called: Called) -> str:
    """How a call ended, in a word: the code of its error, or what its coverage says."""
    if called.error:
        return called.error.partition("]")[0].lstrip("[")[:40]
    coverage = called.facts.get("coverage")
    if coverage is None:
        return "answered"
    if coverage.get("failed"):
        return "some failed"
    return "some unreached" if coverage.get("unreached") else "all done"


@dataclass
class Supplies:
    """Files that no call has used, so that nothing comes from a cache."""

    folder: Path
    pages: list[TruePage]
    _next: int = 0

    def page(self) -> TruePage:
        self._next += 1
        return self.pages[self._next - 1]

    def file(self, tool: str) -> Path:
        """A picture, a PDF of two pages, or, for tools that ask no Claude, what they take."""
        if tool == "inspect_pdf":
            path = self.folder / f"{self._next}.pdf"
            path.write_bytes(pdf_of([self.page(), self.page()]))
            return path
        if tool == "track_video":
            return self.folder / "clip.mp4"
        return self.page().write(self.folder)


def arguments_of(tool: str, handle: str) -> dict[str, Any]:
    box = [60, 60, 300, 200]
    return {
        "get_status": {},
        "read_text": {"source": handle},
        "inspect_image": {"source": handle, "labels": ["coin", "seal"]},
        "inspect_pdf": {"source": handle, "labels": ["coin", "seal"]},
        "segment_image": {"source": handle, "boxes": [box], "quality": "fast"},
        "track_video": {"source": handle, "boxes": [box], "quality": "fast"},
        "redact_media": {"source": handle, "regions": [{"box_xyxy_px": box}]},
    }[tool]


async def one_call(worker: RunningProgram, supplies: Supplies, tool: str, fault: str) -> Ended:
    handle = "" if tool == "get_status" else await worker.client.upload(supplies.file(tool))
    called = await call(worker.client, tool, **arguments_of(tool, handle))
    everything = called.error + json.dumps(called.facts, ensure_ascii=False)
    return Ended(tool, fault, called.took_s, end_of(called), "unexpected failure" in everything)


async def all_calls(worker: RunningProgram, supplies: Supplies, rounds: int, fault: str) -> list[Ended]:
    """Each reading tool `rounds` times, each other tool once, `PARALLEL` at once."""
    tools = [tool for tool in READING for _ in range(rounds)] + list(BESIDE)
    turn = asyncio.Semaphore(PARALLEL)

    async def one(tool: str) -> Ended:
        async with turn:
            return await one_call(worker, supplies, tool, fault)

    return list(await asyncio.gather(*(one(tool) for tool in tools)))


@asynccontextmanager
async def worker_of(folder: Path, fake: FakeProcess, budget_s: float) -> AsyncIterator[RunningProgram]:
    masks: dict[str, Any] = {"segmenter": "off"}
    try:
        masks = fetch_onnx_pair().settings()
    except (PairMissingError, OSError) as error:
        print(f"no masks: {error}", file=sys.stderr)
    folder.mkdir()
    limits = {"call_budget_s": budget_s, "vision_tile_limit_s": budget_s, "claude_daily_cap_usd": 1000}
    async with worker_program(folder, **fake.settings, **limits, **masks) as worker:
        yield worker


def supplies_needed(faults: Sequence[Fault], rounds: int) -> int:
    lost = sum(fault.name in WHOLE_PROVIDER for fault in faults)
    calls = (len(faults) - lost) * rounds + lost * min(rounds, ROUNDS_OF_A_LOST_PROVIDER)
    return calls * 4 + len(faults) * 2


async def measure(rounds: int, scratch: Path, faults: Sequence[int], budget_s: float = BUDGET_S) -> Run:
    chosen = [EVERY_FAULT[index] for index in faults]
    pages = [
        make_page(f"budget-{number}", *PAGE_SIZE_PX, density=0.5, shapes=["coin", "seal"])
        for number in range(supplies_needed(chosen, rounds))
    ]
    supplies, run = Supplies(scratch, pages), Run(budget_s=budget_s)
    index_clip(scratch / "clip.mp4", frames=6)
    one_by_one = [index for index in faults if EVERY_FAULT[index].name in WHOLE_PROVIDER]
    with fake_process(pages, partial(script, faults[0], 0)) as fake:
        async with AsyncExitStack() as stack:
            worker = await stack.enter_async_context(worker_of(scratch / "shared", fake, budget_s))
            for index in (index for index in faults if index not in one_by_one):
                fake.play(partial(script, index, index))
                run.calls += await all_calls(worker, supplies, rounds, EVERY_FAULT[index].name)
                run.server_mb.append(resident_mb([worker.pid]))
                run.tree_mb.append(resident_mb(process_tree(worker.pid)))
        for index in one_by_one:
            fake.play(partial(script, index, index))
            async with worker_of(scratch / f"lost-{index}", fake, budget_s) as worker:
                few = min(rounds, ROUNDS_OF_A_LOST_PROVIDER)
                run.calls += await all_calls(worker, supplies, few, EVERY_FAULT[index].name)
    return run


def main() -> int:
    parser = options("budget")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--faults", type=int, nargs="+", default=list(range(len(EVERY_FAULT))))
    parser.add_argument("--calls", type=int, default=500, help="fewer are a shortcoming")
    parser.add_argument("--budget-s", type=float, default=BUDGET_S)
    arguments = parser.parse_args()
    quiet_environment()
    with tempfile.TemporaryDirectory() as folder:
        run = asyncio.run(measure(arguments.rounds, Path(folder), arguments.faults, arguments.budget_s))
    short, rows = run.shortcomings(arguments.calls), run.as_dict()
    whole = rows | {"all": [asdict(each) for each in run.calls]}
    return finish(arguments, whole, rows_of(rows), short)


if __name__ == "__main__":
    sys.exit(main())
