"""The frames of a video beside those of its rewritten copy, for whoever checks what was changed. For children only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sam2_mcp_worker.media.video_file import MAX_FRAME_PIXELS
from sam2_mcp_worker.media.video_pixels import Rgb, Turn, to_rgb
from sam2_mcp_worker.media.video_reader import SAME_FRAME_S, Decoded, VideoReader


@dataclass(frozen=True, slots=True)
class Pair:
    """One frame before and after, both upright RGB of one size; None where one of the videos has no such frame.

    `damaged` says that one of the two could not be decoded whole.
    """

    time_s: float
    before: Rgb | None
    after: Rgb | None
    damaged: bool


def paired_frames(
    source: Path,
    copy: Path,
    size_px: tuple[int, int],
    *,
    after_s: float | None = None,
    max_pixels: int = MAX_FRAME_PIXELS,
) -> Iterator[Pair]:
    """All frames of both videos by their times, ascending, those later than `after_s`.

    A task that must end stops anywhere and goes on with the time of its last pair as `after_s`.

    Args:
        source: the video as it was.
        copy: what `write_video` made of it.
        size_px: upright width and height (`VideoFacts`), which all pictures get.
    """
    with VideoReader(source, max_pixels) as before, VideoReader(copy, max_pixels) as after:
        olds, news = before.frames_after(after_s), after.frames_after(after_s)
        old, new = next(olds, None), next(news, None)
        while old is not None or new is not None:
            first_s = min(frame.time_s for frame in (old, new) if frame is not None)
            here_old = old if old is not None and old.time_s - first_s <= SAME_FRAME_S else None
            here_new = new if new is not None and new.time_s - first_s <= SAME_FRAME_S else None
            damaged = any(frame is not None and frame.damaged for frame in (here_old, here_new))
            yield Pair(first_s, _rgb(here_old, size_px), _rgb(here_new, size_px), damaged)
            old = next(olds, None) if here_old is not None else old
            new = next(news, None) if here_new is not None else new


def _rgb(decoded: Decoded | None, size_px: tuple[int, int]) -> Rgb | None:
    return None if decoded is None else to_rgb(decoded.frame, size_px, Turn.of(decoded.frame))
