"""A long 1080p video through inspect_video: short calls, flat memory, every second accounted for, nothing made up.

    python -m tests.bench.video.hour [--minutes 60] [--interval-s 0.5] [--check] [--json]

One minute is encoded (slides with print, then seconds of moving pictures without) and remuxed over and over. The
local engine reads it. After each call the memory of the server and of all its children is taken, and the account of the
range is held against the range itself. The decoding alone, by plain PyAV in one process, is measured beside it.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
from tests.bench.bridge.host import process_tree
from tests.bench.claude.command import finish, options, rows_of
from tests.bench.claude.scene import (
    MOST_ERRORS,
    Called,
    RunningProgram,
    call,
    cpu_s,
    quiet_environment,
    resident_mb,
    worker_program,
)
from tests.bench.video.slides import LENGTH_S, Slide, slides, write_minute
from tests.fakes.long_videos import repeat_video

CALL_LIMIT_S = 27.0
# Of the server, from the first quarter of the calls to their end: what is known of 7,200 frames is part of it.
MOST_SERVER_GROWTH_MB = 48.0
# Of everything: the decoder's and the readers' pictures come and go.
MOST_TREE_GROWTH_MB = 160.0
# Times are told in milliseconds.
SLACK_S = 0.01


@dataclass(frozen=True)
class Account:
    """What a call says of the range: seconds by what became of them, and the memory right after it."""

    took_s: float
    asked_s: float
    read_s: float
    failed_s: float
    unreached_s: float
    frames: dict[str, int]
    server_mb: float
    tree_mb: float

    @property
    def adds_up(self) -> bool:
        return abs(self.read_s + self.failed_s + self.unreached_s - self.asked_s) <= SLACK_S


@dataclass
class LongVideo:
    """All calls for one video, in order, and what they told of what is printed in it."""

    minutes: int
    interval_s: float
    accounts: list[Account] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    texts: list[dict[str, Any]] = field(default_factory=list)
    cpu_s: float = 0.0
    scan_cpu_s: float = 0.0
    plain_cpu_s: float = 0.0
    again_s: float = 0.0
    again_calls: int = 0
    lost: list[str] = field(default_factory=list)

    @property
    def settled(self) -> list[Account]:
        """The calls behind the first quarter: children are warm, caches have their size."""
        return self.accounts[len(self.accounts) // 4 :]

    def growth_mb(self, part: str) -> float:
        sizes = [getattr(each, part) for each in self.settled]
        return sizes[-1] - sizes[0] if sizes else 0.0

    def shortcomings(self) -> list[str]:
        longest_s = max((each.took_s for each in self.accounts), default=0.0)
        last = self.accounts[-1] if self.accounts else None
        claims = {
            f"a call took {longest_s:.1f} s": longest_s >= CALL_LIMIT_S,
            f"calls that ended in an error: {self.errors}": bool(self.errors),
            "an account that does not add up": not all(each.adds_up for each in self.accounts),
            f"not the whole range: {last}": last is None or abs(last.read_s - self.minutes * LENGTH_S) > 1.0,
            f"the server grew by {self.growth_mb('server_mb'):.1f} MB": self.growth_mb("server_mb")
            > MOST_SERVER_GROWTH_MB,
            f"all processes grew by {self.growth_mb('tree_mb'):.1f} MB": self.growth_mb("tree_mb")
            > MOST_TREE_GROWTH_MB,
            f"{len(self.lost)} printed lines lost or at the wrong time: {self.lost[:3]}": bool(self.lost),
        }
        return [claim for claim, holds in claims.items() if holds]

    def as_dict(self) -> dict[str, Any]:
        mb = [each.server_mb for each in self.accounts]
        tree = [each.tree_mb for each in self.accounts]
        frames = self.accounts[-1].frames if self.accounts else {}
        total_s = sum(each.took_s for each in self.accounts)
        return {
            "minutes": self.minutes,
            "interval_s": self.interval_s,
            "calls": len(self.accounts),
            "longest_call_s": round(max((each.took_s for each in self.accounts), default=0.0), 2),
            "total_s": round(total_s, 1),
            "frames": frames,
            "frames_per_s": round(frames.get("sampled", 0) / total_s, 2) if total_s else 0.0,
            "cpu_s_a_minute": round(self.cpu_s / self.minutes, 2),
            "scan_child_cpu_s_a_minute": round(self.scan_cpu_s / self.minutes, 2),
            "plain_decode_cpu_s_a_minute": round(self.plain_cpu_s / self.minutes, 2),
            "server_mb": [round(mb[0]), round(mb[-1]), round(max(mb))] if mb else [],
            "all_processes_mb": [round(tree[0]), round(tree[-1]), round(max(tree))] if tree else [],
            "server_growth_mb": round(self.growth_mb("server_mb"), 1),
            "all_growth_mb": round(self.growth_mb("tree_mb"), 1),
            "texts": len(self.texts),
            "lines_lost": len(self.lost),
            "again": f"{self.again_calls} calls, {self.again_s:.1f} s",
        }


def account_of(called: Called, pid: int) -> Account:
    coverage = called.facts["coverage"]
    return Account(
        called.took_s,
        coverage["asked_s"],
        coverage["read_s"],
        coverage.get("failed_s", 0.0),
        coverage.get("unreached_s", 0.0),
        coverage["frames"],
        resident_mb([pid]),
        resident_mb(process_tree(pid)),
    )


def lost_lines(minutes: int, step_s: float, texts: Sequence[dict[str, Any]]) -> list[str]:
    """Printed lines that no told text shows at their time: read alike, on screen in the middle of their slide.

    The smallest print is left out where it wobbles: what counts is that nothing is shifted or dropped over the hour.
    """
    lost = []
    for minute in range(minutes):
        for slide in slides():
            title = squeezed(slide.lines[0])
            if not any(title == squeezed(text["text"]) and covers(text, slide, minute, step_s) for text in texts):
                lost.append(f"{slide.lines[0]} in minute {minute}")
    return lost


def squeezed(text: str) -> str:
    return "".join(text.split())


def covers(text: dict[str, Any], slide: Slide, minute: int, step_s: float) -> bool:
    """Whether an exposure of the text is the slide's, within one sampling step."""
    start_s, end_s = (minute * LENGTH_S + edge_s for edge_s in (slide.start_s, slide.end_s))
    return any(
        abs(first_s - start_s) <= step_s + SLACK_S and abs(last_s - end_s) <= step_s + SLACK_S
        for _, first_s, last_s, _ in text["exposures_s"]
    )


def plain_decode_cpu_s(path: Path) -> float:
    """Processor time that PyAV alone takes for all frames, on two threads as the worker's decoder has."""
    before_s = time.process_time()
    with av.open(str(path)) as container:
        container.streams.video[0].thread_type = "AUTO"
        container.streams.video[0].codec_context.thread_count = 2
        for _ in container.decode(video=0):
            pass
    return time.process_time() - before_s


async def follow(worker: RunningProgram, found: LongVideo, **arguments: Any) -> None:
    """Call up to the end of the cursor, as an agent does."""
    cursor = ""
    while True:
        called = await call(worker.client, "inspect_video", **arguments, **({"cursor": cursor} if cursor else {}))
        if called.error:
            found.errors.append(called.error)
            if len(found.errors) > MOST_ERRORS:
                return
            continue
        found.accounts.append(account_of(called, worker.pid))
        found.texts += called.facts.get("texts", [])
        say(found)
        cursor = called.facts.get("cursor", "")
        if not cursor:
            return


def say(found: LongVideo) -> None:
    """Where it stands, for those who watch."""
    last = found.accounts[-1]
    where = f"{last.read_s:.0f} of {last.asked_s:.0f} s read, {last.server_mb:.0f} and {last.tree_mb:.0f} MB"
    print(f"call {len(found.accounts)}: {last.took_s:.1f} s, {where}", file=sys.stderr)


def scan_children_cpu_s(pid: int) -> float:
    """Of the child that scans."""
    found = []
    for child in process_tree(pid):
        with suppress(OSError):  # it has ended
            found += [child] if b"scan_child" in Path(f"/proc/{child}/cmdline").read_bytes() else []
    return cpu_s(found)


async def measure(minutes: int, interval_s: float, scratch: Path) -> LongVideo:
    minute = write_minute(scratch / "minute.mp4")
    video = repeat_video(minute, scratch / "long.mp4", minutes, Fraction(LENGTH_S))
    found = LongVideo(minutes, interval_s, plain_cpu_s=plain_decode_cpu_s(minute) * minutes)
    async with worker_program(scratch, segmenter="off") as worker:
        source = await worker.client.upload(video)
        before_s, scan_before_s = cpu_s(process_tree(worker.pid)), scan_children_cpu_s(worker.pid)
        await follow(worker, found, source=source, interval_s=interval_s)
        found.cpu_s = cpu_s(process_tree(worker.pid)) - before_s
        found.scan_cpu_s = scan_children_cpu_s(worker.pid) - scan_before_s
        if not found.errors:
            found.lost = lost_lines(minutes, interval_s, found.texts)
            again = LongVideo(minutes, interval_s)
            await follow(worker, again, source=source, interval_s=interval_s)
            found.again_s, found.again_calls = sum(each.took_s for each in again.accounts), len(again.accounts)
    return found


def main() -> int:
    parser = options("hour", "video")
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--interval-s", type=float, default=0.5)
    arguments = parser.parse_args()
    quiet_environment()
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(measure(arguments.minutes, arguments.interval_s, Path(folder)))
    rows = found.as_dict()
    return finish(
        arguments, rows | {"all": [asdict(each) for each in found.accounts]}, rows_of(rows), found.shortcomings()
    )


if __name__ == "__main__":
    sys.exit(main())
