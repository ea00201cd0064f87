"""Writes a video anew with every frame painted, from the server's side: in killable steps that can be taken up again.

    written = await write_video(decoders, path, facts, PainterSpec("redact", {...}), out_path, work_dir, ...)

A minute of 1080p takes longer than a call. So a caller runs this in a job: each step encodes one segment of a few
seconds of work into `work_dir`, and the next call with the same `work_dir` goes on behind the last whole segment,
whether the one before was cancelled, killed or left to run in the background.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from sam2_mcp_worker.disk import write_whole
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.execution.port import TaskRunner
from sam2_mcp_worker.media.video import MAX_FRAME_PIXELS, VideoFacts

# A segment ends after this much work. Each begins with a keyframe and with decoding from the one before it in the
# source, so shorter ones cost more; longer ones lose more when they are killed, and block the decoder for others.
SEGMENT_BUDGET_S = 6.0
# Joining copies packets and, where the sound has to be encoded, 100 s of it in a second.
JOIN_TIMEOUT_S = 20.0
JOIN_TIMEOUT_PER_S = 0.1

Audio = Literal["keep", "drop"]


@dataclass(frozen=True, slots=True)
class PainterSpec:
    """Which painter of media/video_painter.py, and its parameters (JSON)."""

    kind: str
    params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WrittenVideo:
    """A new MP4 (H.264): upright, rotation applied, with the size and the frame times of the source.

    `pixel_format` is yuv420p, or yuv444p for odd sizes, which fewer players know. `audio` says what became of the
    sound. `damaged_s` are the spans of the source that could not be decoded whole: what is seen there is what the
    decoder made of it.
    """

    path: Path
    frames: int
    bytes: int
    pixel_format: str
    audio: Literal["copied", "encoded", "dropped", "none"]
    audio_codec: str | None
    damaged_s: tuple[tuple[float, float], ...]


async def write_video(
    decoders: TaskRunner,
    path: Path,
    facts: VideoFacts,
    painter: PainterSpec,
    out_path: Path,
    work_dir: Path,
    *,
    audio: Audio = "keep",
    timeout_s: float,
    job: str,
    on_progress: Callable[[float], None] | None = None,
    max_pixels: int = MAX_FRAME_PIXELS,
) -> WrittenVideo:
    """Encode the whole video with every frame painted; `out_path` is complete only after success.

    Pictures are encoded anew (H.264, CRF 20), so every pixel may change a little, not only painted ones. Sound is
    copied where MP4 can hold it, else encoded to AAC. Everything else of the source is dropped: metadata, chapters,
    subtitles, further tracks, attachments.

    Args:
        work_dir: an own folder for this source and painter; segments and their list stay there, also after success.
        timeout_s: for one segment; it ends by itself after SEGMENT_BUDGET_S.
        on_progress: told the time of the last frame written, after each segment.

    Raises:
        WorkerError: video_damaged, no_space, whatever the painter raises, or one of the runner's own.
    """
    plan = await asyncio.to_thread(_Plan.load, work_dir)
    while not plan.finished:
        name = f"segment-{len(plan.segments):05d}.nut"
        params = {
            "path": str(path),
            "max_pixels": max_pixels,
            "size_px": [facts.width_px, facts.height_px],
            "painter": {"kind": painter.kind, "params": painter.params},
            "out_path": str(work_dir / name),
            "after_s": plan.last_s,
            "first_index": plan.frames,
            "budget_s": SEGMENT_BUDGET_S,
        }
        plan.add(name, await decoders.run("video_segment", params, timeout_s=timeout_s, job=job))
        await asyncio.to_thread(plan.save, work_dir)
        if on_progress is not None and plan.last_s is not None:
            on_progress(plan.last_s)
    return await _join(decoders, path, facts, plan, out_path, work_dir, audio, job)


async def _join(
    decoders: TaskRunner,
    path: Path,
    facts: VideoFacts,
    plan: _Plan,
    out_path: Path,
    work_dir: Path,
    audio: Audio,
    job: str,
) -> WrittenVideo:
    if not plan.segments:
        raise WorkerError("video_damaged", "no frame of this video can be decoded", next_step="Upload the file again")
    params = {
        "path": str(path),
        "segments": [str(work_dir / name) for name in plan.segments],
        "out_path": str(out_path),
        "audio": audio,
        "end_s": facts.duration_s,
    }
    timeout_s = JOIN_TIMEOUT_S + JOIN_TIMEOUT_PER_S * facts.duration_s
    joined = await decoders.run("video_join", params, timeout_s=timeout_s, job=job)
    return WrittenVideo(
        path=out_path,
        frames=plan.frames,
        bytes=joined["bytes"],
        pixel_format=plan.pixel_format,
        audio=joined["audio"],
        audio_codec=joined["audio_codec"],
        damaged_s=tuple((start, end) for start, end in plan.damaged_s),
    )


@dataclass(slots=True)
class _Plan:
    """Which segments are there, and where the next one begins."""

    segments: list[str] = field(default_factory=list)
    last_s: float | None = None
    frames: int = 0
    finished: bool = False
    damaged_s: list[list[float]] = field(default_factory=list)
    pixel_format: str = ""

    @classmethod
    def load(cls, work_dir: Path) -> _Plan:
        """What an earlier call left; nothing if there is nothing usable."""
        try:
            plan = cls(**json.loads((work_dir / "plan.json").read_bytes()))
        except (OSError, ValueError, TypeError):
            return cls()
        return plan if all((work_dir / name).is_file() for name in plan.segments) else cls()

    def add(self, name: str, result: dict[str, Any]) -> None:
        """Note a segment."""
        if result["frames"]:
            self.segments.append(name)
            self.frames += result["frames"]
            self.pixel_format = result["pixel_format"]
        self.last_s = result["last_s"]
        self.finished = result["finished"]
        self.damaged_s += result["damaged_s"]

    def save(self, work_dir: Path) -> None:
        """Keep it for the next call."""
        record = {name: getattr(self, name) for name in self.__slots__}
        write_whole(work_dir / "plan.json", json.dumps(record).encode("ascii"))
