"""track_video end to end: frames in one call, a minute over the cursor, and both beside two busy processes.

    python -m tests.bench.sam.track_call [--quality fast] [--objects 1] [--minute-every-s 0.5] [--json]

Weights are random ones of the true architecture: times are real, masks are not. The worker is a real one; its calls
have the 27 s that a bridge gives them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.conftest import RunningWorker, serving
from tests.e2e.tools import Agent
from tests.fakes.sam2_weights import random_weights
from tests.fakes.videos import SHAPES_FPS, moving_shapes

from sam2_mcp_worker.settings import Settings

SIZE_PX = (640, 360)  # that of the figures in reference/sam.md 3a
SHORT_S, LONG_S = 6, 60
BUSY_PROCESSES = 2
BUSY = "while True: pass"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `first_call` are the frames of the first call, `longest_s` the slowest call."""

    case: str
    beside: str
    calls: int
    frames: int
    first_call: int
    longest_s: float
    total_s: float
    spacing_s: list[float] | None
    covered: str


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Other work on the machine."""
    others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(processes)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def boxes(count: int) -> list[list[int]]:
    """Where the shapes are in the first frame, and around them."""
    width, height = SIZE_PX
    around = [[0.1, 0.3, 0.3, 0.7], [0.7, 0.1, 0.9, 0.35], [0.4, 0.4, 0.6, 0.6], [0.6, 0.6, 0.9, 0.9]]
    return [[round(x * width), round(y * height), round(u * width), round(v * height)] for x, y, u, v in around[:count]]


async def measure(worker: RunningWorker, clip: Path, case: str, beside: str, **arguments: Any) -> Row:
    """Call until no cursor is left."""
    agent = Agent(worker)
    arguments["source"] = await agent.upload(clip)
    taken, results = [], []
    cursor = ""
    while True:
        began = time.monotonic()
        facts = await agent.call("track_video", **arguments, cursor=cursor)
        taken.append(time.monotonic() - began)
        results.append(facts)
        cursor = facts.get("cursor", "")
        if not cursor:
            break
    last = results[-1]
    done, planned = last["coverage"]["done"], last["coverage"]["planned"]
    return Row(
        case,
        beside,
        len(results),
        done,
        results[0]["coverage"]["done"],
        round(max(taken), 1),
        round(sum(taken), 1),
        last.get("spacing_s"),
        f"{last['start_s']}-{last['end_s']} s, {done} of {planned}",
    )


async def run(arguments: argparse.Namespace, folder: Path) -> list[Row]:
    """All cases, one after the other."""
    weights = random_weights()
    settings = Settings(
        port=0,
        data_dir=folder / "data",
        ocr_processes=1,
        segmenter="sam2",
        sam_weights=weights.path,
        sam_weights_sha256=weights.sha256,
    )
    rows = []
    loads = [("nothing", 0), (f"{BUSY_PROCESSES} busy", BUSY_PROCESSES)]
    for worker in serving(settings):
        assert worker.services.sam_pool is not None
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(worker.services.sam_pool.wait_ready(), worker.loop))
        common = {"boxes": boxes(arguments.objects), "quality": arguments.quality}
        warm = moving_shapes(folder / "warm.mp4", frames=3, size_px=SIZE_PX)
        await measure(worker, warm.path, "warm-up", "nothing", **common)  # the encoder is exported on first use
        for beside, processes in loads:
            # The title makes them other files, so that nothing is served from what another case left.
            title = {"title": beside}
            short = moving_shapes(folder / "short.mp4", frames=SHORT_S * SHAPES_FPS, size_px=SIZE_PX, metadata=title)
            long = moving_shapes(folder / "long.mp4", frames=LONG_S * SHAPES_FPS, size_px=SIZE_PX, metadata=title)
            with busy(processes):
                rows.append(await measure(worker, short.path, f"{SHORT_S} s, as dense as fits", beside, **common))
                every_s = arguments.minute_every_s
                case = f"{LONG_S} s, every {every_s:g} s"
                rows.append(await measure(worker, long.path, case, beside, every_s=every_s, **common))
    return rows


def table(rows: list[Row], title: str) -> str:
    """The rows as text."""
    lines = [title, "| case | beside | calls | frames | in the first call | longest call | all | spacing |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    for row in rows:
        spacing = "-".join(f"{gap:g}" for gap in row.spacing_s or [])
        lines.append(
            f"| {row.case} | {row.beside} | {row.calls} | {row.frames} | {row.first_call} | {row.longest_s} s "
            f"| {row.total_s} s | {spacing} s |"
        )
    return "\n".join(lines)


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quality", choices=("accurate", "balanced", "fast"), default="fast")
    parser.add_argument("--objects", type=int, default=1, choices=(1, 2, 3, 4))
    parser.add_argument("--minute-every-s", type=float, default=0.5)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = asyncio.run(run(arguments, Path(folder)))
    if arguments.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
    else:
        title = f"SAM 2.1 tiny with RANDOM weights, quality {arguments.quality}, {arguments.objects} object(s)"
        print(table(rows, f"{title}, {SIZE_PX[0]} x {SIZE_PX[1]} px at {SHAPES_FPS} fps"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
