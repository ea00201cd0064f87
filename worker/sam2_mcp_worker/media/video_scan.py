"""Samples of a video on a time grid and around its cuts, from the server's side: segment by segment, in order.

The scan child keeps the file open, so that segments in order are one linear decode. A segment is the same whether the
one before it was scanned a moment ago, in an earlier call or never: nothing of its result depends on what came before.
(Where the file is damaged, what a decoder makes of the stretch may depend on where it began; what is lost is told.)
Times are those of media/video.py: seconds since the first frame.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sam2_mcp_worker.execution.port import TaskRunner
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.video import MAX_FRAME_PIXELS, VideoFacts

# Raise it whenever the same file gives other samples: whoever keeps what was read of them has it in the key.
SCAN_VERSION = 2
# Cuts of one segment whose frames are samples: as many frames as the grid has in 8 s at its default. Faster cutting
# (strobes, 1000 frames a second) would cost more than the rest of the call; it is counted.
MOST_CUTS = 8
# A step ends after this time at the next frame. Steps are short, since going on costs nothing: whoever reads the
# samples gets them soon, other jobs get their turn, and a cancelled one has its child back without killing it.
STEP_BUDGET_S = 0.5
# Raw frames that a step may write; one more step may be under way meanwhile. 20 frames of 1080p.
STEP_BYTES = 128 * 2**20
# Grid times are sums of binary fractions: less than this part of a step is no step.
_GRID_TOLERANCE = 1e-6

SampleKind = Literal["grid", "before_cut", "after_cut"]


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """What is sampled: the frame on screen at each `start_s + number * interval_s` before `end_s`; with `cuts`, the
    frames right before and after each scene change between the two as well.
    """

    start_s: float
    end_s: float
    interval_s: float
    cuts: bool

    @property
    def grid_count(self) -> int:
        """How many times the grid has; at least one."""
        return max(1, math.ceil((self.end_s - self.start_s) / self.interval_s - _GRID_TOLERANCE))

    def grid_s(self, number: int) -> float:
        """A time of the grid."""
        return self.start_s + number * self.interval_s

    def span_s(self, first_number: int, count: int) -> tuple[float, float]:
        """From when to when the segment of these grid times speaks: up to the first time of the next one."""
        ends_s = self.end_s if first_number + count >= self.grid_count else self.grid_s(first_number + count)
        return self.grid_s(first_number), ends_s


@dataclass(frozen=True, slots=True)
class Sample:
    """A sampled frame, on screen from `time_s` (its own time, which may be earlier than the grid's) to `until_s`, when
    the next one comes (None where that is not known).

    One frame is one sample, however many times of the grid it covers; as the first of a segment it may have been the
    last of the one before. An `after_cut` frame stands right behind the sample before it. `same_as` is the index of
    the earlier sample of this segment that looks the same, and then there are no pixels. The file of `pixels` is the
    caller's, who removes it. `lost` says why the frame cannot be decoded; nothing may be concluded about it, and
    `time_s` is then the grid's time.
    """

    index: int
    time_s: float
    until_s: float | None
    kind: SampleKind
    same_as: int | None = None
    pixels: PixelFile | None = None
    lost: str = ""


@dataclass(frozen=True, slots=True)
class SegmentEnd:
    """Comes last: what is to be said of the segment as a whole.

    `failed_s` are spans (start, end, reason) that cannot be decoded. `cuts_s` are the times of the frames right after
    a scene change; those beyond MOST_CUTS a segment are only counted, in `cuts_left_out`, and their frames are no
    samples.
    """

    failed_s: tuple[tuple[float, float, str], ...] = ()
    cuts_s: tuple[float, ...] = ()
    cuts_left_out: int = 0


async def scan_segment(
    scanner: TaskRunner,
    path: Path,
    facts: VideoFacts,
    plan: ScanPlan,
    first_number: int,
    count: int,
    out_dir: Path,
    *,
    timeout_s: float,
    job: str,
    max_pixels: int = MAX_FRAME_PIXELS,
) -> AsyncGenerator[Sample | SegmentEnd, None]:
    """The samples of grid times `first_number` to `first_number + count - 1` and of the cuts between, by rising time;
    then a `SegmentEnd`.

    Raw frames are written to `out_dir`, which is the caller's. While the caller works on the samples of a step, the
    next one runs, and no more: a slow caller stops the decoding. The iterator may be abandoned at any point (use
    `contextlib.aclosing`, or cancel the task that iterates); the step under way then ends by itself first.

    Args:
        timeout_s: for one step; a step ends by itself after STEP_BUDGET_S unless one frame takes longer.

    Raises:
        WorkerError: the video cannot be opened any more, or one of the runner's own. A damaged stretch is no error.
    """
    params = {
        "path": str(path),
        "max_pixels": max_pixels,
        "size_px": [facts.width_px, facts.height_px],
        "plan": {name: getattr(plan, name) for name in ScanPlan.__slots__},
        "first_number": first_number,
        "count": count,
        "out_dir": str(out_dir),
        "budget_s": STEP_BUDGET_S,
        "most_bytes": STEP_BYTES,
    }

    def start(known: int) -> asyncio.Task[dict[str, Any]]:
        step = scanner.run("video_scan", {**params, "known": known}, timeout_s=timeout_s, job=job)
        return asyncio.create_task(step)

    known = 0
    step = start(known)
    try:
        while True:
            result = await asyncio.shield(step)
            ready = [_sample(known + i, fields, facts, out_dir) for i, fields in enumerate(result["samples"])]
            known += len(ready)
            end = result["end"]
            if end is None:
                step = start(known)
            for sample in ready:
                yield sample
            if end is not None:
                yield _end(end)
                return
    finally:
        await _let_end(step)


async def _let_end(step: asyncio.Task[dict[str, Any]]) -> None:
    """Wait for a step whose result nobody wants: killing its child would close a file that stands at its place."""
    try:
        await asyncio.wait({step})
    finally:
        step.cancel()
        await asyncio.gather(step, return_exceptions=True)


def _sample(index: int, fields: dict[str, Any], facts: VideoFacts, out_dir: Path) -> Sample:
    name = fields["name"]
    pixels = PixelFile(out_dir / name, facts.width_px, facts.height_px) if name else None
    return Sample(index, fields["time_s"], fields["until_s"], fields["kind"], fields["same_as"], pixels, fields["lost"])


def _end(fields: dict[str, Any]) -> SegmentEnd:
    failed = tuple((float(start), float(end), str(reason)) for start, end, reason in fields["failed_s"])
    return SegmentEnd(failed, tuple(fields["cuts_s"]), fields["cuts_left_out"])
