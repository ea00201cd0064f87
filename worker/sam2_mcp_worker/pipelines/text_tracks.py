"""Lines of text followed over the frames: the same line with its slips of reading and small moves is one item.

Owns when two lines are the same item. Knows no phrases and no rules.
"""

from __future__ import annotations

from dataclasses import dataclass

from sam2_mcp_worker.checks.exposure import Check, Exposures
from sam2_mcp_worker.engines.ports import Box


@dataclass(frozen=True, slots=True)
class TextTrack:
    """One line of text over time.

    `text` is the reading most frames agree on (of equals, the surest); `confidence` that of its surest reading.
    `box_xyxy_px` is where it was first seen with that text, `end_box_xyxy_px` where it was last seen (scrolling text
    moves). `height_px` is the smallest height that a sure reading of it has, `height_share` that of the frame.
    `frames` are the samples that show it, `variants` other readings of it. `closed` says that no later look can change
    it. `key` names it in every call about the same looks.
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
