"""What the looks at a video add up to: per label, phrase and line of text, when it was on screen and how large.

Owns putting the parts together. Knows no engine, no decoder and no call: the same looks give the same findings,
however many calls it took to get them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from sam2_mcp_worker.checks.exposure import Check
from sam2_mcp_worker.checks.rule_packs import VideoRules
from sam2_mcp_worker.pipelines.frame_looks import VideoLooks
from sam2_mcp_worker.pipelines.look_moments import LookMoments
from sam2_mcp_worker.pipelines.text_tracks import SURE, TextTrack, text_tracks
from sam2_mcp_worker.pipelines.video_finding_types import (
    LabelFinding,
    PhraseFinding,
    Place,
    SmallestText,
    VideoFindings,
)
from sam2_mcp_worker.pipelines.video_labels import find_labels
from sam2_mcp_worker.pipelines.video_phrases import find_phrases
from sam2_mcp_worker.pipelines.video_rules import doubted, height_checks, time_checks

__all__ = ["LabelFinding", "PhraseFinding", "Place", "SmallestText", "VideoFindings", "find_all"]

# One letter alone is more often a speck or an edge than text.
_TEXT_MIN_LETTERS = 2
# Boxes of lines that the edge of the frame cuts end on it, give or take what is lost in reading.
_EDGE_PX = 2


def find_all(
    looks: VideoLooks,
    phrases: Sequence[str],
    labels: Sequence[str],
    rules: VideoRules | None,
    decoys: Sequence[str] = (),
) -> VideoFindings:
    """All findings of the looks; `decoys` are other wordings of the phrases' field.

    Takes up to seconds for hours of video: call it in a thread.
    """
    moments = LookMoments(looks)
    texts = tuple(
        dataclasses.replace(track, checks=_track_checks(track, looks, rules)) for track in text_tracks(looks, moments)
    )
    smallest = _smallest_text(texts, looks)
    return VideoFindings(
        labels=find_labels(looks, moments, labels, rules),
        phrases=find_phrases(looks, moments, phrases, rules, decoys),
        texts=texts,
        cuts_s=tuple(look.time_s for look in looks.looks if look.kind == "after_cut"),
        smallest_text=smallest,
        checks=height_checks(rules, smallest.place.height_px if smallest else None, looks.height_px),
    )


def _track_checks(track: TextTrack, looks: VideoLooks, rules: VideoRules | None) -> tuple[Check, ...]:
    times = time_checks(rules, track.exposures, looks)
    heights = height_checks(rules, track.height_px, looks.height_px)
    if track.confidence < SURE:
        return doubted((*times, *heights), ("met", "not_met"), "hardly readable: neither its size nor its time is sure")
    # Of a line that enters or leaves the frame, the other parts are items of their own, and what is cut is higher.
    cut = "cut off by the edge of the frame"
    times = doubted(times, ("not_met",), cut) if _passes(track, looks, (0, 1, 2, 3)) else times
    return (*times, *(doubted(heights, ("not_met",), cut) if _passes(track, looks, (1, 3)) else heights))


def _passes(track: TextTrack, looks: VideoLooks, sides: Sequence[int]) -> bool:
    """Whether the line passes one of these sides of the frame: it lies on it, and not in the same place for long."""
    if track.frames > 1 and track.box_xyxy_px == track.end_box_xyxy_px:
        return False
    edges = (0, 0, looks.width_px, looks.height_px)
    boxes = (track.box_xyxy_px, track.end_box_xyxy_px)
    return any(abs(box[side] - edges[side]) <= _EDGE_PX for box in boxes for side in sides)


def _smallest_text(texts: Sequence[TextTrack], looks: VideoLooks) -> SmallestText | None:
    whole = (track for track in texts if _is_text(track) and not _passes(track, looks, (1, 3)))
    track = min(whole, key=lambda track: track.height_px, default=None)
    if track is None:
        return None
    return SmallestText(track.text, Place(track.first_s, track.box_xyxy_px, track.height_px), track.height_share)


def _is_text(track: TextTrack) -> bool:
    letters = sum(character.isalnum() for character in track.text)
    return track.height_px > 0 and track.confidence >= SURE and letters >= _TEXT_MIN_LETTERS
