"""Lines of text over time: what was followed over the frames, as one item each with its text, height and exposures.

Owns which of many readings an item is told by. Which lines belong together is told by text_following.py.
"""

from __future__ import annotations

import hashlib
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sam2_mcp_worker.checks.exposure import Check, Exposures
from sam2_mcp_worker.engines.ports import Box, TextLine
from sam2_mcp_worker.pipelines.frame_looks import FrameLook, VideoLooks
from sam2_mcp_worker.pipelines.look_moments import LookMoments, hides
from sam2_mcp_worker.pipelines.text_following import Follower, Item

# Below, a reading is doubtful (media/seen_lines.DOUBTFUL), and so is its height.
SURE = 0.5
MAX_VARIANTS = 3


@dataclass(frozen=True, slots=True)
class TextTrack:
    """One line of text over time.

    `text` is the reading most frames agree on (of equals, the surest); `confidence` that of its surest reading.
    `box_xyxy_px` is where it was first seen, `end_box_xyxy_px` where it was last seen (scrolling text moves).
    `height_px` is the median of its sure readings, since single measurements are off by a pixel (0 where none could
    be measured); `height_share` that of the frame's height. `frames` are the samples that show it, `variants` other
    readings of it. `closed` says that no later look can change it. `key` names it in every call about the same looks.
    """

    key: str
    text: str
    confidence: float
    box_xyxy_px: Box
    end_box_xyxy_px: Box
    height_px: float
    height_share: float
    frames: int
    first_s: float
    last_s: float
    exposures: Exposures
    variants: tuple[str, ...] = ()
    closed: bool = False
    checks: tuple[Check, ...] = ()


def text_tracks(looks: VideoLooks, moments: LookMoments) -> list[TextTrack]:
    """All items: those that are over in the order in which they ended, then the others by their beginning.

    An item is closed when it ended before anything that is still unread or may still be lost, so the closed items of
    fewer looks are the first ones of more looks. In a complete range all are closed.
    """
    follower = Follower()
    for look in looks.looks:
        follower.take(look)
    reached_s = min((span.start_s for span in looks.unreached), default=float("inf"))
    if looks.settled_to_s is not None:
        reached_s = min(reached_s, looks.settled_to_s)
    return [
        _track(item, looks, moments, closed=looks.complete or _over_s(item, looks.looks) <= reached_s)
        for item in [*follower.over, *follower.open]
    ]


def _over_s(item: Item, looks: Sequence[FrameLook]) -> float:
    return float("inf") if item.over_at is None else looks[item.over_at].time_s


def _track(item: Item, looks: VideoLooks, moments: LookMoments, *, closed: bool) -> TextTrack:
    text, confidence = _voted(item.lines)
    height_px = _height_px(item.lines)
    first, last = item.seen[0], item.seen[-1]
    return TextTrack(
        key=_key(item, looks.looks[first]),
        text=text,
        confidence=confidence,
        box_xyxy_px=item.first_box,
        end_box_xyxy_px=item.last_box,
        height_px=height_px,
        height_share=height_px / looks.height_px,
        frames=len(item.seen),
        first_s=looks.looks[first].time_s,
        last_s=looks.looks[last].time_s,
        exposures=_exposures(item, looks.looks, moments),
        variants=tuple(other for other, _ in Counter(line.text for line in item.lines).most_common() if other != text)[
            :MAX_VARIANTS
        ],
        closed=closed,
    )


def _key(item: Item, look: FrameLook) -> str:
    """Of when and where it began: no two items begin at the same place of the same frame."""
    began = f"{look.time_s:.6f} {item.first_box} {item.lines[0].text}"
    return hashlib.blake2s(began.encode("utf-8"), digest_size=6).hexdigest()


def _voted(lines: Sequence[TextLine]) -> tuple[str, float]:
    surest: dict[str, float] = {}
    votes: Counter[str] = Counter()
    for line in lines:
        votes[line.text] += 1
        surest[line.text] = max(line.confidence, surest.get(line.text, 0.0))
    text = max(votes, key=lambda text: (votes[text], surest[text], text))
    return text, surest[text]


def _height_px(lines: Sequence[TextLine]) -> float:
    measured = [line for line in lines if line.height_px > 0]
    sure = [line.height_px for line in measured if line.confidence >= SURE]
    heights = sure or [line.height_px for line in measured]
    return statistics.median_low(heights) if heights else 0.0


def _exposures(item: Item, looks: Sequence[FrameLook], moments: LookMoments) -> Exposures:
    def hidden(look: FrameLook) -> bool:
        return hides(look, item.last_box)

    window = moments.window(item.seen[0], item.seen[-1], hidden)
    seen: list[bool | None] = [None if hidden(looks[index]) else False for index in window]
    for index in item.seen:
        seen[index - window.start] = True
    return moments.exposures_within(seen, window.start)
