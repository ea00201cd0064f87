"""What the sampled frames of a video showed: what scanning and reading make, and what findings are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sam2_mcp_worker.engines.ports import Box, Region, TextLine


@dataclass(frozen=True, slots=True)
class FrameLook:
    """One sampled frame. Times are seconds since the first frame of the video, boxes in pixels of the upright frame.

    `kind` says why it was sampled: it was on screen at a time of the grid, or it stands right before or after a cut.
    The frame of an `after_cut` look came right behind that of the look before it. From `time_s` to `until_s` the frame
    was on screen (None: nobody knows when the next one came).
    `same_as_s` is the time of the earlier frame whose reading it shares, since both look the same. `regions` is None
    where nobody looked for any. `failed` says why nothing is known of it, and then nothing else is set. `partly` says
    why something of it may have been missed (a tile failed, an answer was cut); what was read still counts.
    """

    time_s: float
    kind: Literal["grid", "before_cut", "after_cut"]
    until_s: float | None = None
    lines: tuple[TextLine, ...] = ()
    regions: tuple[Region, ...] | None = None
    undetected_ink: tuple[Box, ...] = ()
    same_as_s: float | None = None
    failed: str = ""
    partly: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the video, `start_s` to `end_s`, and what is to be said of it."""

    start_s: float
    end_s: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class VideoLooks:
    """All that is known of the asked range by now.

    `looks` rise by time. `failed` are spans that cannot be decoded, `unreached` those that were not come to yet: of
    both nothing is known. Everything else of `asked` was sampled every `interval_s`, and nothing is known between two
    samples but that no cut lies there (where `cuts` were looked for, and not in `restless` spans, where scenes change
    so fast that the frames at some cuts were not looked at). Looks before `settled_to_s` stay as they are; later ones
    may still turn out to be lost (None: all stay). `more_before` and `more_behind` say that the video goes on outside
    of the range, and so may a showing.
    """

    asked: Span
    interval_s: float
    cuts: bool
    width_px: int
    height_px: int
    looks: tuple[FrameLook, ...]
    failed: tuple[Span, ...] = ()
    unreached: tuple[Span, ...] = ()
    restless: tuple[Span, ...] = ()
    settled_to_s: float | None = None
    more_before: bool = False
    more_behind: bool = False

    @property
    def complete(self) -> bool:
        """Whether every part of the range was read or failed for good."""
        return not self.unreached
