"""The words of what a video showed: labels, phrases and lines of text, with their exposures and places.

Owns the meaning of shown, altered, review, not shown and cannot tell. How they come about is told by video_labels.py,
video_phrases.py and text_tracks.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sam2_mcp_worker.checks.exposure import Check, Exposures
from sam2_mcp_worker.engines.ports import Box
from sam2_mcp_worker.pipelines.text_tracks import TextTrack


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands in the frame at `time_s`: pixels of the upright frame."""

    time_s: float
    box_xyxy_px: Box
    height_px: float


@dataclass(frozen=True, slots=True)
class LabelFinding:
    """One label over the whole range.

    `frames` are the samples that show it. `greatest` is the tallest region that bears it, `smallest_text` the place
    with the smallest text inside such a region (the median of each showing). Shares are of the frame's height.
    `most_at_once` counts regions in one frame. `not_shown` is only said when every sample of a complete range was
    looked at for it; else `reason` says why it is `cannot_tell`.
    """

    label: str
    state: Literal["shown", "not_shown", "cannot_tell"]
    reason: str = ""
    frames: int = 0
    first_s: float | None = None
    last_s: float | None = None
    exposures: Exposures = field(default_factory=Exposures)
    greatest: Place | None = None
    greatest_share: float | None = None
    smallest_text: Place | None = None
    smallest_text_share: float | None = None
    most_at_once: int = 0
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class PhraseFinding:
    """One asked phrase over the whole range.

    `shown`: read word by word or with slips of reading; `altered`: read, but numbers, dates or negations differ
    (`differences`, "1억 -> 5천만") wherever it was read; `review`: something like it was read, a person has to look.
    `places` are the best place of each frame that has it in that state, rising by time (for one that wraps over lines:
    one box around them); `place` is the one that resembles it most, `read_as` what was read there, `score` 0-1 how
    alike. `smallest` is the place with the smallest text: of each showing the median, since single measurements are
    off by a pixel. `exposures` are those of the state; frames that read it otherwise are unknown in them. Of a phrase
    that was not found, `read_as` is the line that has most of it, and `score` how alike the two are.
    """

    phrase: str
    state: Literal["shown", "altered", "review", "not_shown", "cannot_tell"]
    reason: str = ""
    score: float = 0.0
    read_as: str = ""
    differences: tuple[str, ...] = ()
    frames: int = 0
    first_s: float | None = None
    last_s: float | None = None
    exposures: Exposures = field(default_factory=Exposures)
    place: Place | None = None
    smallest: Place | None = None
    smallest_share: float | None = None
    places: tuple[Place, ...] = ()
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class SmallestText:
    """The smallest text that was read surely enough to be one, in the whole range."""

    text: str
    place: Place
    share: float


@dataclass(frozen=True, slots=True)
class VideoFindings:
    """All findings of the range as it is known by now.

    `texts` come in the order in which they were over: first those that no later look can change (`closed`), so that
    the closed ones of an earlier call are the first ones of a later call; then the open ones. `cuts_s` are the times of
    the first frames behind cuts. `checks` are those of the smallest text of all.
    """

    labels: tuple[LabelFinding, ...]
    phrases: tuple[PhraseFinding, ...]
    texts: tuple[TextTrack, ...]
    cuts_s: tuple[float, ...]
    smallest_text: SmallestText | None
    checks: tuple[Check, ...] = ()
