"""Videos as the server sees them: opened, decoded and encoded in decoder children. Nothing here parses a byte of them.

All times are seconds since the first frame of the picture track, as the frames' own time stamps say. Pictures are
upright: rotation stated in the file is applied, and sizes are those after it. Pixels that the file calls non-square
are left as they are stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.execution.port import TaskRunner
from sam2_mcp_worker.media.pixels import PixelFile

# 8192 x 4320 px; see video_file.py for what such a frame costs.
MAX_FRAME_PIXELS = 8192 * 4320
# A step ends after this time at the next frame, so that other jobs get their turn and a killed one loses little.
STEP_BUDGET_S = 4.0
# Raw frames that a step may write ahead of their use: 256 MB are 40 frames of 1080p.
STEP_BYTES = 256 * 2**20
# The first step is short, so that work on the first frames begins at once; then steps grow.
FIRST_STEP_FRAMES = 2


@dataclass(frozen=True, slots=True)
class VideoFacts:
    """What a video is. Sizes are upright, `duration_s` is from the first frame to the end of the last one.

    `frame_count` is None when the file is too large to be looked through; it counts stored frames, of which some
    codecs show a few less. `fps` is the average. `stated_duration_s` is set when the file claims to be longer than it
    is: it was cut off. `start_s` is the time stamp that the file gives to the first frame.
    """

    width_px: int
    height_px: int
    duration_s: float
    frame_count: int | None
    fps: float
    rotation_deg: int
    start_s: float
    codec: str
    container: str
    audio_codec: str | None
    interlaced: bool
    stated_duration_s: float | None

    @property
    def has_audio(self) -> bool:
        """Whether there is sound."""
        return self.audio_codec is not None


@dataclass(frozen=True, slots=True)
class VideoFrame:
    """The frame on screen at `wanted_s`: `time_s` is its own time. `index` counts the wanted times from 0."""

    index: int
    wanted_s: float
    time_s: float
    pixels: PixelFile
    thumbnail: PixelFile | None


@dataclass(frozen=True, slots=True)
class LostFrame:
    """A wanted time whose frame cannot be decoded, and why. Nothing may be concluded about it."""

    index: int
    wanted_s: float
    reason: str


async def probe_video(
    decoders: TaskRunner,
    path: Path,
    *,
    max_video_s: float,
    max_pixels: int = MAX_FRAME_PIXELS,
    timeout_s: float,
    job: str,
) -> VideoFacts:
    """Open a video, decode its first frame and look through its packets.

    Raises:
        WorkerError: video_damaged (also an empty file), unsupported_video, no_video_stream, video_encrypted,
            video_too_large, video_too_long, or one of the runner's own.
    """
    params = {"path": str(path), "max_pixels": max_pixels, "max_video_s": max_video_s}
    return VideoFacts(**await decoders.run("video_probe", params, timeout_s=timeout_s, job=job))


async def list_times(
    decoders: TaskRunner, path: Path, *, max_pixels: int = MAX_FRAME_PIXELS, timeout_s: float, job: str
) -> list[float]:
    """Times of all stored frames, ascending, from the container alone: an hour takes about a second.

    Some codecs store frames that are never shown, and some old containers give none of them a time: to be right, ask
    `read_frames`, whose times are those of decoded frames.
    """
    params = {"path": str(path), "max_pixels": max_pixels}
    result = await decoders.run("video_times", params, timeout_s=timeout_s, job=job)
    return [float(value) for value in result["times_s"]]


async def read_frames(
    decoders: TaskRunner,
    path: Path,
    facts: VideoFacts,
    times_s: Sequence[float],
    out_dir: Path,
    *,
    timeout_s: float,
    job: str,
    keep: bool = False,
    thumbnail_px: int = 0,
    max_pixels: int = MAX_FRAME_PIXELS,
) -> AsyncGenerator[VideoFrame | LostFrame, None]:
    """The frames on screen at the given times, in order, while the next ones are being decoded.

    The frame on screen at `t` is the last whose own time is not later than `t`; behind the end it is the last frame.
    Two wanted times may give the same frame (the same `time_s`).

    Decoding runs in steps of a few seconds, of which the next one is under way while the caller works. Frames lie as
    raw RGB in `out_dir`, which is the caller's; each file is removed when the next frame is asked for, unless `keep`.
    Thumbnails (longer side `thumbnail_px`) always stay. The iterator may be abandoned at any point: use
    `contextlib.aclosing`, or cancel the task that iterates; its child is killed then.

    Args:
        times_s: ascending, 0 or later.
        timeout_s: for one step; a step ends by itself after STEP_BUDGET_S unless one frame takes longer.

    Raises:
        WorkerError: the video cannot be opened any more, or one of the runner's own. A damaged stretch is no error:
            its times come as `LostFrame`.
    """
    steps = _Steps(decoders, path, facts, list(times_s), out_dir, timeout_s, job, thumbnail_px, max_pixels)
    async with aclosing(steps.frames()) as frames:
        async for frame in frames:
            yield frame
            if not keep and isinstance(frame, VideoFrame):
                await asyncio.to_thread(frame.pixels.path.unlink, missing_ok=True)


async def read_thumbnails(
    decoders: TaskRunner,
    path: Path,
    facts: VideoFacts,
    times_s: Sequence[float],
    out_dir: Path,
    *,
    thumbnail_px: int,
    timeout_s: float,
    job: str,
) -> AsyncGenerator[tuple[int, PixelFile], None]:
    """Small pictures (longer side `thumbnail_px`) of the frames on screen at the given times, with their places there.

    Frames that cannot be decoded are left out. One decoding run of a few seconds after the other, nothing ahead.

    Args:
        times_s: ascending, 0 or later.

    Raises:
        WorkerError: the video cannot be opened any more, or one of the runner's own.
    """
    params = {**_step_params(path, facts, out_dir, thumbnail_px, MAX_FRAME_PIXELS), "whole": False}
    index = 0
    while index < len(times_s):
        step = {**params, "times_s": list(times_s[index:]), "first_index": index}
        found = (await decoders.run("video_frames", step, timeout_s=timeout_s, job=job))["frames"]
        for number, fields in enumerate(found, start=index):
            if (small := fields.get("thumbnail")) is not None:
                yield number, PixelFile(out_dir / small["name"], small["width_px"], small["height_px"])
        if not found:
            return
        index += len(found)


def _step_params(path: Path, facts: VideoFacts, out_dir: Path, thumbnail_px: int, max_pixels: int) -> dict[str, Any]:
    """What every step of one reading has."""
    return {
        "path": str(path),
        "max_pixels": max_pixels,
        "size_px": [facts.width_px, facts.height_px],
        "out_dir": str(out_dir),
        "budget_s": STEP_BUDGET_S,
        "thumbnail_px": thumbnail_px,
    }


class _Steps:
    """Reads ahead by one step."""

    def __init__(
        self,
        decoders: TaskRunner,
        path: Path,
        facts: VideoFacts,
        times_s: list[float],
        out_dir: Path,
        timeout_s: float,
        job: str,
        thumbnail_px: int,
        max_pixels: int,
    ) -> None:
        self._decoders = decoders
        self._times_s = times_s
        self._out_dir = out_dir
        self._size = (facts.width_px, facts.height_px)
        self._timeout_s = timeout_s
        self._job = job
        self._params = _step_params(path, facts, out_dir, thumbnail_px, max_pixels)
        self._most = max(1, STEP_BYTES // (facts.width_px * facts.height_px * 3))

    async def frames(self) -> AsyncGenerator[VideoFrame | LostFrame, None]:
        index, count = 0, FIRST_STEP_FRAMES
        step = self._start(index, count)
        try:
            while index < len(self._times_s):
                found = await step
                ready = [self._frame(index + i, fields) for i, fields in enumerate(found)]
                index, count = index + len(ready), min(self._most, 2 * count)
                step = self._start(index, count)
                for frame in ready:
                    yield frame
        finally:
            step.cancel()
            await asyncio.gather(step, return_exceptions=True)

    def _start(self, index: int, count: int) -> asyncio.Task[list[dict[str, Any]]]:
        return asyncio.create_task(self._run(index, self._times_s[index : index + min(count, self._most)]))

    async def _run(self, index: int, times_s: list[float]) -> list[dict[str, Any]]:
        if not times_s:
            return []
        params = {**self._params, "times_s": times_s, "first_index": index}
        result = await self._decoders.run("video_frames", params, timeout_s=self._timeout_s, job=self._job)
        if not result["frames"]:
            raise WorkerError("video_damaged", "no frame came of this video", next_step="Upload the file again")
        return list(result["frames"])

    def _frame(self, index: int, fields: dict[str, Any]) -> VideoFrame | LostFrame:
        if "reason" in fields:
            return LostFrame(index, self._times_s[index], fields["reason"])
        small = fields.get("thumbnail")
        return VideoFrame(
            index,
            self._times_s[index],
            fields["time_s"],
            PixelFile(self._out_dir / fields["name"], *self._size),
            PixelFile(self._out_dir / small["name"], small["width_px"], small["height_px"]) if small else None,
        )
