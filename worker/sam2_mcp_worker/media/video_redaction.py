"""Checks of redacted videos as the server sees them: done in children of the redact pool, in steps of a few seconds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sam2_mcp_worker.execution.port import TaskRunner
from sam2_mcp_worker.media.video import MAX_FRAME_PIXELS, VideoFacts

# A step decodes two videos and ends by itself after this, so that other redactions get their turn.
STEP_BUDGET_S = 5.0


@dataclass(slots=True)
class VideoCheck:
    """What the comparison of all frames found.

    `stray_s` is the first time at which one video has a frame and the other has not, None when there is none.
    `fill_level`: how far a pixel well inside of a cover is from its colour at most, in levels of 255. PSNR is of whole
    frames against the source with the same areas painted.
    """

    frames: int = 0
    covered_frames: int = 0
    stray_s: float | None = None
    fill_level: int = 0
    least_psnr_db: float = 99.0
    sum_psnr_db: float = 0.0

    @property
    def mean_psnr_db(self) -> float:
        """Of all frames."""
        return self.sum_psnr_db / self.frames if self.frames else 0.0

    def add(self, step: dict[str, Any]) -> None:
        """Take in the result of one step."""
        self.frames += step["frames"]
        self.covered_frames += step["covered_frames"]
        self.stray_s = step["stray_s"]
        self.fill_level = max(self.fill_level, step["fill_level"])
        self.least_psnr_db = min(self.least_psnr_db, step["least_psnr_db"])
        self.sum_psnr_db += step["sum_psnr_db"]


@dataclass(frozen=True, slots=True)
class VideoContents:
    """Numbers of tracks in a file, kinds of further ones, and tags that tell more than the format."""

    video: int
    audio: int
    others: tuple[str, ...]
    tags: tuple[str, ...]


async def compare_videos(
    redactors: TaskRunner,
    source: Path,
    output: Path,
    facts: VideoFacts,
    painter: dict[str, Any],
    *,
    timeout_s: float,
    job: str,
    on_progress: Callable[[float], None],
) -> VideoCheck:
    """Compare all frames; `painter` are the parameters of the painter that wrote the output.

    Raises:
        WorkerError: one of the videos cannot be read, or one of the runner's own.
    """
    check, after_s = VideoCheck(), None
    while True:
        params = {
            "source": str(source),
            "output": str(output),
            "max_pixels": MAX_FRAME_PIXELS,
            "size_px": [facts.width_px, facts.height_px],
            "painter": painter,
            "after_s": after_s,
            "budget_s": STEP_BUDGET_S,
        }
        step = await redactors.run("video_compare", params, timeout_s=timeout_s, job=job)
        check.add(step)
        if step["finished"]:
            return check
        after_s = step["last_s"]
        on_progress(after_s)


async def video_contents(redactors: TaskRunner, path: Path, *, timeout_s: float, job: str) -> VideoContents:
    """Tracks and tags of a file of ours."""
    result = await redactors.run("video_contents", {"path": str(path)}, timeout_s=timeout_s, job=job)
    return VideoContents(result["video"], result["audio"], tuple(result["others"]), tuple(result["tags"]))
