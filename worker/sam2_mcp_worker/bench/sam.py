"""`bench sam`: our engine beside plain ultralytics, turn by turn, so that other load on the machine hits both alike.

Pictures are compared at equal work, masks at the picture's size, inside the process of each; beside that stands a whole
step of ours, through the pool, with polygons and PNGs (which cost most where the masks are noise, as those of random
weights are). Tracking is measured from outside on our side. Medians; a ratio says how many times faster ours is.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sam2_mcp_worker.bench.sam_inputs import Weights, make_clip, make_picture, prepare_weights, square_box
from sam2_mcp_worker.engines import segmenter as sam
from sam2_mcp_worker.engines.ports import PROMPTS_PER_CHUNK, Box, ObjectPrompt, Quality
from sam2_mcp_worker.engines.tracker import SamTracker
from sam2_mcp_worker.execution.pool import ChildPool
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.settings import Settings

# Billions of operations of the image encoder of the tiny model, attention counted (reference/sam.md 3).
ENCODER_GFLOP = {448: 42.8, 512: 62.8, 1024: 292.0}
STEP_TIMEOUT_S = 120.0
FRAMES_BEFORE_STEADY = 8  # the prompt's frame and seven memories: from then on every frame costs the same
BOXES = tuple((80 + 100 * (i % 5), 60 + 200 * (i // 5), 240 + 100 * (i % 5), 260 + 200 * (i // 5)) for i in range(10))


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison; `target` is the least ratio that the project asks for, None where it asks for nothing."""

    case: str
    base_s: float
    ours_s: float
    target: float | None

    @property
    def ratio(self) -> float:
        """How many times faster ours is."""
        return self.base_s / self.ours_s


@dataclass(slots=True)
class Report:
    """What was measured. `floors` are encoder times over the time of the same operations as bare matrix products."""

    model: str
    random_weights: bool
    threads: int
    gflop_per_s: float = 0.0
    rows: list[Row] = field(default_factory=list)
    floors: list[tuple[str, float, float, float | None]] = field(default_factory=list)

    @property
    def short_of(self) -> list[str]:
        """What falls short of its target."""
        slow = [row.case for row in self.rows if row.target and row.ratio < row.target]
        return slow + [case for case, _, ratio, most in self.floors if most and ratio > most]


@dataclass(frozen=True, slots=True)
class _Desk:
    """Everything that the measurements use."""

    plain: ChildPool
    parts: ChildPool
    segmenter: sam.SamSegmenter
    tracker: SamTracker
    folder: Path
    rounds: int

    async def plain_s(self, task: str, **params: Any) -> float:
        """Seconds of one task of the baseline, as it took them."""
        answer = await self.plain.run(task, params, timeout_s=STEP_TIMEOUT_S, job="bench")
        return float(answer.get("seconds", 0.0))


def measure(settings: Settings, *, rounds: int, frames: int) -> Report:
    """Run everything once; takes 2 to 4 minutes with 5 rounds and 16 frames on two cores.

    Raises:
        WorkerError: the configured weights are missing or wrong, or a child cannot start.
    """
    with tempfile.TemporaryDirectory(prefix="sam2-mcp-bench-") as name:
        weights = prepare_weights(settings, Path(name))
        return asyncio.run(_measure(settings, weights, Path(name), rounds, frames))


async def _measure(settings: Settings, weights: Weights, folder: Path, rounds: int, frames: int) -> Report:
    threads = settings.sam_threads or sam.usable_cores()
    report = Report(weights.config["model"], weights.random, threads)
    async with AsyncExitStack() as stack:
        desk = await _open_desk(stack, weights, folder, threads, rounds)
        await _floor(desk, report)
        await _pictures(desk, report)
        await _tracking(desk, report, frames)
    return report


async def _open_desk(stack: AsyncExitStack, weights: Weights, folder: Path, threads: int, rounds: int) -> _Desk:
    config = sam.child_config(
        "sam2", weights.config, threads=threads, embedding_cache_bytes=2**28, track_memory_bytes=2**30
    )
    env = sam.child_env(folder)
    # The baseline gets nothing but what keeps it off the network.
    plain_env = {name: env[name] for name in ("YOLO_OFFLINE", "YOLO_AUTOINSTALL", "YOLO_CONFIG_DIR")}
    parts_config = {**weights.config, "threads": threads}
    pools = [
        ChildPool(
            name,
            module,
            size=1,
            config=cfg,
            memory_limit_bytes=0,
            env=e,
            recycle_growth_bytes=None,
            start_timeout_s=sam.START_TIMEOUT_S,
        )
        for name, module, cfg, e in (
            ("plain", "sam2_mcp_worker.bench.plain_ultralytics", {"weights": str(weights.checkpoint)}, plain_env),
            ("parts", "sam2_mcp_worker.bench.sam_parts", parts_config, env),
            ("ours", sam.CHILD_MODULE, config, env),
        )
    ]
    for pool in pools:  # one after the other: a child must be ready in time, and each takes both cores to load
        await stack.enter_async_context(pool)
    plain, parts, ours = pools
    segmenter, tracker = sam.SamSegmenter(ours, identity="bench"), SamTracker(ours, identity="bench")
    return _Desk(plain, parts, segmenter, tracker, folder, rounds)


async def _floor(desk: _Desk, report: Report) -> None:
    kinds = ((512, "fp32", 1.5), (512, "int8", 1.15), (448, "fp32", None), (448, "int8", None), (1024, "fp32", None))
    speeds: list[float] = []
    taken: dict[tuple[int, str], list[float]] = {(side, precision): [] for side, precision, _ in kinds}
    for round_number in range(desk.rounds + 1):
        for side, precision in taken:
            answer = await desk.parts.run("product", {}, timeout_s=STEP_TIMEOUT_S, job="bench")
            params = {"side_px": side, "precision": precision}
            encoded = await desk.parts.run("encode", params, timeout_s=STEP_TIMEOUT_S, job="bench")
            if round_number:  # the first one warms up
                speeds.append(answer["gflop_per_s"])
                taken[side, precision].append(encoded["seconds"])
    report.gflop_per_s = statistics.median(speeds)
    for side, precision, most in kinds:
        seconds = statistics.median(taken[side, precision])
        floor_s = ENCODER_GFLOP[side] / report.gflop_per_s
        report.floors.append((f"encoder {side} px {precision}", seconds, seconds / floor_s, most))


async def _pictures(desk: _Desk, report: Report) -> None:
    picture = make_picture(desk.folder / "picture.rgb")
    cases: list[tuple[str, int, Quality, int, bool, float]] = [
        ("picture, one box, 512 px", 512, "balanced", 1, False, 1.8),
        ("second prompt on the same picture, 512 px", 512, "balanced", 1, True, 20.0),
        ("picture, ten boxes, 1024 px", 1024, "accurate", 10, False, 1.6),
        ("second prompt on the same picture, 1024 px", 1024, "accurate", 1, True, 20.0),
    ]
    for case, side, quality, count, cached, target in cases:
        boxes = list(BOXES[:count])
        base, ours, steps = [], [], []
        for round_number in range(desk.rounds + 1):
            base_s = await desk.plain_s("image", pixels=picture.to_params(), boxes=boxes, side_px=side)
            params: dict[str, Any] = {"pixels": picture.to_params(), "boxes": boxes, "quality": quality}
            params["cached"] = cached and round_number > 0
            answer = await desk.parts.run("masks", params, timeout_s=STEP_TIMEOUT_S, job="bench")
            key = f"{case} {0 if cached else round_number}"
            step_s = await _timed(_masks(desk, picture, key, boxes, quality))
            if round_number:  # the first one warms up, and embeds the picture of the cached case
                base.append(base_s)
                ours.append(answer["seconds"])
                steps.append(step_s)
        report.rows.append(Row(case, statistics.median(base), statistics.median(ours), target))
        report.rows.append(
            Row(f"- with polygons and PNGs, {case}", statistics.median(base), statistics.median(steps), None)
        )


async def _masks(desk: _Desk, picture: PixelFile, key: str, boxes: list[Box], quality: Quality) -> None:
    prompts = [ObjectPrompt(box) for box in boxes]
    for start in range(0, len(prompts), PROMPTS_PER_CHUNK):
        await desk.segmenter.masks(
            picture,
            key,
            prompts[start : start + PROMPTS_PER_CHUNK],
            quality=quality,
            mask_dir=desk.folder,
            job="bench",
            timeout_s=STEP_TIMEOUT_S,
        )


async def _tracking(desk: _Desk, report: Report, frames: int) -> None:
    """One frame each, in turn; what is compared are frames with a full memory."""
    clip = desk.folder / "clip.mp4"
    files = make_clip(clip, desk.folder, frames)
    qualities: list[tuple[Quality, float | None]] = [("accurate", 1.9), ("balanced", None), ("fast", 3.4)]
    await desk.plain_s("video_start", path=str(clip), side_px=512, box=square_box(0))
    base: list[float] = []
    taken: dict[Quality, list[float]] = {quality: [] for quality, _ in qualities}
    for number, file in enumerate(files):
        base.append(await desk.plain_s("video_next"))
        for quality in taken:
            taken[quality].append(await _timed(_track(desk, quality, file, number)))
    base_s = statistics.median(base[FRAMES_BEFORE_STEADY:])
    for quality, target in qualities:
        ours_s = statistics.median(taken[quality][FRAMES_BEFORE_STEADY:])
        report.rows.append(Row(f"tracked frame, {quality}", base_s, ours_s, target))


async def _track(desk: _Desk, quality: Quality, file: PixelFile, number: int) -> None:
    if number:
        await desk.tracker.step(quality, file, mask_dir=desk.folder, job="bench", timeout_s=STEP_TIMEOUT_S)
        return
    await desk.tracker.start(
        quality,
        file,
        [ObjectPrompt(square_box(0))],
        quality=quality,
        mask_dir=desk.folder,
        job="bench",
        timeout_s=STEP_TIMEOUT_S,
    )


async def _timed(work: Awaitable[None]) -> float:
    began = time.perf_counter()
    await work
    return time.perf_counter() - began
