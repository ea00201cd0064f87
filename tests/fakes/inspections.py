"""Looks and findings of a small video, made by hand: what pictures and reports are drawn from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.fakes.videos import SHAPES_SIZE

from sam2_mcp_worker.checks.exposure import Check, Exposure, Exposures, Stretch
from sam2_mcp_worker.checks.rule_packs import VideoRules
from sam2_mcp_worker.engines.ports import Region, TextLine
from sam2_mcp_worker.media.video import VideoFacts
from sam2_mcp_worker.pipelines.frame_looks import FrameLook, Span, VideoLooks
from sam2_mcp_worker.pipelines.inspected_video import InspectedVideo
from sam2_mcp_worker.pipelines.text_tracks import TextTrack
from sam2_mcp_worker.pipelines.video_finding_types import (
    LabelFinding,
    PhraseFinding,
    Place,
    SmallestText,
    VideoFindings,
)
from sam2_mcp_worker.uploads import StoredFile

COINS, NOTICE = (20, 100, 120, 170), (10, 160, 200, 172)
RULES = VideoRules(
    min_text_height_px=24, min_text_height_share=0.02, min_exposure_s=2.0, basis="house", note="Set by the test."
)
TOO_SHORT = Check("min_exposure_s", 2.0, 0.0, "not_met", "seen in one frame only", possible=0.5)


def exposures(*spans: tuple[float, float, float, float]) -> Exposures:
    """Showings by earliest, first, last and latest."""
    return Exposures(tuple(Exposure(a, b, c, d, (Stretch(b, c),)) for a, b, c, d in spans), (), 0.5)


def line(text: str, box: tuple[int, int, int, int] = NOTICE) -> TextLine:
    """A line that was read surely."""
    return TextLine(text, box, float(box[3] - box[1]), 0.95)


def region(label: str = "coins or banknotes") -> Region:
    """A region with no text in it."""
    return Region(label, COINS, 0.9)


def look(time_s: float, **fields: Any) -> FrameLook:
    """A frame of the grid; coins are in it, and nothing else."""
    return FrameLook(time_s, **{"kind": "grid", "regions": (region(),), **fields})


LOOKS = (
    look(0.0, lines=(line("월 9,900원", (10, 10, 90, 30)),)),
    look(0.5, same_as_s=0.0, lines=(line("월 9,900원", (10, 10, 90, 30)),)),
    look(1.0, kind="after_cut", lines=(line("약관을 확인하세요"),)),
    look(1.5, failed="frame_damaged: it is damaged", regions=None),
    look(2.0, partly="a tile failed", undetected_ink=((0, 0, 9, 9),)),
)


def findings(phrase: str = "약관을 확인하세요", label: str = "coins or banknotes") -> VideoFindings:
    """Coins the whole time, a notice in one frame, a price in two."""
    place = Place(1.0, NOTICE, 12.0)
    coins = exposures((0.0, 0.0, 2.0, 2.0))
    notice = exposures((0.75, 1.0, 1.0, 1.5))
    price = exposures((0.0, 0.0, 0.5, 1.0))
    return VideoFindings(
        labels=(
            LabelFinding(label, "shown", "", 4, 0.0, 2.0, coins, Place(2.0, COINS, 70.0), 0.39, None, None, 1),
            LabelFinding("premium amount", "cannot_tell", "a frame failed", exposures=Exposures((), (Stretch(1, 2),))),
        ),
        phrases=(
            PhraseFinding(
                *(phrase, "shown", "", 0.98, "약관을 확인하세오"),
                frames=1,
                first_s=1.0,
                last_s=1.0,
                exposures=notice,
                place=place,
                smallest=place,
                smallest_share=0.067,
                places=(place,),
                checks=(TOO_SHORT,),
            ),
        ),
        texts=(
            text("price", "월 9,900원", (10, 10, 90, 30), price),
            text("notice", "약관을 확인하세요", NOTICE, notice, checks=(TOO_SHORT,)),
        ),
        cuts_s=(1.0,),
        smallest_text=SmallestText("약관을 확인하세요", place, 0.067),
        checks=(Check("min_text_height_share", 0.02, 0.067, "met"),),
    )


def text(key: str, words: str, box: tuple[int, int, int, int], seen: Exposures, **fields: Any) -> TextTrack:
    """A line over time, as often seen as its exposures say."""
    first, last = seen.shown[0].first_s, seen.shown[-1].last_s
    height = float(box[3] - box[1])
    return TextTrack(key, words, 0.9, box, box, height, height / 180, 1, first, last, seen, **fields)


def looks(*, complete: bool = True, frames: tuple[FrameLook, ...] = LOOKS) -> VideoLooks:
    """Of 0 to 3 s, with a stretch that cannot be decoded; an incomplete one ends at 2.5 s."""
    failed = (Span(1.6, 1.9, "the stream is damaged"),)
    unreached = () if complete else (Span(2.5, 3.0),)
    return VideoLooks(Span(0.0, 3.0), 0.5, True, *SHAPES_SIZE, frames, failed, unreached)


def inspection(path: Path, **fields: Any) -> InspectedVideo:
    """The inspection of a video of `SHAPES_SIZE`."""
    facts = VideoFacts(*SHAPES_SIZE, 3.0, 72, 24.0, 0, 0.0, "h264", "mp4", None, False, None)
    stored = StoredFile("file_x", "광고 <1>.mp4", path.stat().st_size if path.exists() else 0, "0" * 64, path)
    return replace(InspectedVideo(stored, facts, looks(), findings(), RULES, "the local engine"), **fields)
