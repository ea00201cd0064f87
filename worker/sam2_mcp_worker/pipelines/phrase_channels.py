"""What a video shows and what it says of a phrase, put together: both are asked, and absence needs both.

Owns the order of what the two channels say. How each is judged is told by video_phrases.py and checks/phrase_judge.py.
"""

from __future__ import annotations

from dataclasses import replace

from sam2_mcp_worker.checks.phrase_coverage import coverage
from sam2_mcp_worker.checks.phrase_judge import PhraseFinding, PhraseState
from sam2_mcp_worker.checks.phrase_pages import PhraseLine
from sam2_mcp_worker.checks.reading import ReadLine
from sam2_mcp_worker.pipelines.video_finding_types import PhraseFinding as ShownPhrase

_STATES: dict[str, PhraseState] = {
    "shown": "present",
    "altered": "altered",
    "review": "review",
    "not_shown": "missing",
    "cannot_tell": "cannot_tell",
}
_BY_RANK: tuple[PhraseState, ...] = ("present", "altered", "review", "cannot_tell", "missing")
NOT_SPOKEN = "nobody speaks in its sound"
LOW_QUALITY = "the local speech engine may have misheard what differs; a person has to listen"


def of_screen(shown: ShownPhrase) -> PhraseFinding:
    """What the frames of a video say of a phrase, in the words of documents; times are first and last seen."""
    lines: tuple[PhraseLine, ...] = ()
    if shown.place is not None:
        x0, y0, x1, y1 = shown.place.box_xyxy_px
        height = shown.smallest.height_px if shown.smallest else None
        line = ReadLine(shown.read_as, "ocr", (x0, y0, x1, y1), height, start_s=shown.first_s, end_s=shown.last_s)
        lines = (PhraseLine(1, 0, line),)
    state = _STATES[shown.state]
    reason = "on none of the frames that were sampled" if state == "missing" and not shown.reason else shown.reason
    return PhraseFinding(
        shown.phrase,
        state,
        reason,
        source="ocr" if lines else None,
        lines=lines,
        score=shown.score,
        coverage=round(coverage(shown.phrase, shown.read_as), 3),
        read_as=shown.read_as,
        differences=shown.differences,
        rests_on=(1,),
    )


def of_speech(said: PhraseFinding, *, low_quality: bool) -> PhraseFinding:
    """What was heard; figures of an engine that mishears are for a person to listen to."""
    if low_quality and said.state == "altered":
        return replace(said, state="review", reason=LOW_QUALITY)
    return said


def not_spoken(phrase: str) -> PhraseFinding:
    """Of sound that was gone through and holds no speech."""
    return PhraseFinding(phrase, "missing", NOT_SPOKEN, rests_on=(1,))


def not_heard(phrase: str, why: str) -> PhraseFinding:
    """Of sound that nobody could go through."""
    return PhraseFinding(phrase, "cannot_tell", why)


def both(shown: PhraseFinding, said: PhraseFinding) -> PhraseFinding:
    """One answer for a phrase that may be shown or spoken: what is there most; missing only where both say so."""
    told, other = sorted((shown, said), key=lambda one: _BY_RANK.index(one.state))
    channels = {id(shown): "on the screen", id(said): "in the speech"}
    if told.state == "missing":
        return replace(told, reason=f"{shown.reason}; {said.reason}")
    if told.state == "cannot_tell":
        unsure = [one for one in (shown, said) if one.state == "cannot_tell"]
        return replace(told, reason="; ".join(f"{channels[id(one)]}: {one.reason}" for one in unsure))
    if other.state in ("altered", "review") and other.reason:
        also = f"{channels[id(other)]}: {other.state} ({'; '.join(other.differences) or other.reason})"
        return replace(told, reason=f"{told.reason}; {also}" if told.reason else also)
    return told
