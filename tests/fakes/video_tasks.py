"""Runs the video tasks of the decoder children in the tests' own process, and holds two videos side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sam2_mcp_worker.media import video_child, video_encoder, video_join, video_scan_child, video_sheet
from sam2_mcp_worker.media.video_pixels import Rgb, Turn, to_rgb
from sam2_mcp_worker.media.video_reader import SAME_FRAME_S, Decoded, VideoReader

TASKS = {
    **video_child.TASKS,
    **video_encoder.TASKS,
    **video_join.TASKS,
    **video_scan_child.TASKS,
    **video_sheet.TASKS,
}


class InThisProcess:
    """A `TaskRunner` without children."""

    async def run(self, task: str, params: dict[str, Any], *, timeout_s: float, job: str) -> dict[str, Any]:
        """Run it at once."""
        return TASKS[task](params)


@dataclass(frozen=True, slots=True)
class Pair:
    """One frame before and after, both upright RGB of one size; None where one of the videos has no such frame."""

    time_s: float
    before: Rgb | None
    after: Rgb | None


def paired_frames(
    source: Path,
    copy: Path,
    size_px: tuple[int, int],
    *,
    after_s: float | None = None,
) -> Iterator[Pair]:
    """The frames of both videos by their times, ascending, those later than `after_s`."""
    with VideoReader(source) as before, VideoReader(copy) as after:
        olds, news = before.frames_after(after_s), after.frames_after(after_s)
        old, new = next(olds, None), next(news, None)
        while old is not None or new is not None:
            first_s = min(frame.time_s for frame in (old, new) if frame is not None)
            here_old = old if old is not None and old.time_s - first_s <= SAME_FRAME_S else None
            here_new = new if new is not None and new.time_s - first_s <= SAME_FRAME_S else None
            yield Pair(first_s, _rgb(here_old, size_px), _rgb(here_new, size_px))
            old = next(olds, None) if here_old is not None else old
            new = next(news, None) if here_new is not None else new


def _rgb(decoded: Decoded | None, size_px: tuple[int, int]) -> Rgb | None:
    return None if decoded is None else to_rgb(decoded.frame, size_px, Turn.of(decoded.frame))
