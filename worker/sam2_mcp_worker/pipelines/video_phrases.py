"""One phrase over the frames of a video: where it was read, how alike, and whether its numbers are the same.

Owns what all frames together say of it. Which lines hold it is told by phrase_lines.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sam2_mcp_worker.checks.phrases import MatchState, Phrase, PhraseMatch, phrase_of
from sam2_mcp_worker.checks.rule_packs import VideoRules
from sam2_mcp_worker.engines.ports import TextLine
from sam2_mcp_worker.pipelines.frame_looks import FrameLook, VideoLooks
from sam2_mcp_worker.pipelines.look_moments import LookMoments, hides
from sam2_mcp_worker.pipelines.phrase_lines import STATES_BY_RANK, FrameLines
from sam2_mcp_worker.pipelines.video_absence import why_unsure
from sam2_mcp_worker.pipelines.video_finding_types import PhraseFinding, Place
from sam2_mcp_worker.pipelines.video_rules import height_checks, smallest_place, time_checks

# A letter of print that can be read is at least 6 px high and half as wide: less unread ink cannot hide a phrase.
_LETTER_AREA_PX = 18

# Of figures that differ in a line read less surely than this, a slip is as likely. Of an advertisement in H.264, clear
# lines were read with 0.89 to 0.96, fine print of 12 and 16 px with 0.68 and 0.76, and with slips in its figures.
_SURE_FIGURES = 0.8

_SAID: dict[MatchState, Literal["shown", "altered", "review"]] = {
    "present": "shown",
    "altered": "altered",
    "review": "review",
}


@dataclass(frozen=True, slots=True)
class _Found:
    """A phrase in one look."""

    index: int
    match: PhraseMatch
    place: Place


def find_phrases(
    looks: VideoLooks,
    moments: LookMoments,
    phrases: Sequence[str],
    rules: VideoRules | None,
    decoys: Sequence[str] = (),
) -> tuple[PhraseFinding, ...]:
    """One finding for each phrase, in their order; `decoys` are other wordings of their field."""
    ready = [phrase_of(text) for text in phrases]
    lines = FrameLines(looks.looks if ready else (), ready, decoys)
    unread_px = [_unread_area_px(look) for look in looks.looks]
    return tuple(
        _finding(phrase, found, looks, moments, rules)
        if (found := list(_matches(index, looks.looks, lines)))
        else _absent(phrase, lines.closest(index), unread_px, looks, moments)
        for index, phrase in enumerate(ready)
    )


def _matches(index: int, looks: Sequence[FrameLook], lines: FrameLines) -> Iterator[_Found]:
    for number, (match, positions) in enumerate(lines.matches(index)):
        if match.state != "absent":
            yield _Found(number, _believed(match, looks[number], positions), _place(looks[number], positions))


def _believed(match: PhraseMatch, look: FrameLook, positions: Sequence[int]) -> PhraseMatch:
    """The match; of figures that differ where the print is hard to read, nothing is said for sure."""
    doubtful = min(look.lines[position].confidence for position in positions) < _SURE_FIGURES
    return replace(match, state="review") if match.state == "altered" and doubtful else match


def _place(look: FrameLook, positions: Sequence[int]) -> Place:
    lines: list[TextLine] = [look.lines[position] for position in positions]
    boxes = [line.box_xyxy_px for line in lines]
    around = (
        min(box[0] for box in boxes),
        min(box[1] for box in boxes),
        max(box[2] for box in boxes),
        max(box[3] for box in boxes),
    )
    return Place(look.time_s, around, min((line.height_px for line in lines if line.height_px > 0), default=0.0))


def _finding(
    phrase: Phrase,
    found: Sequence[_Found],
    looks: VideoLooks,
    moments: LookMoments,
    rules: VideoRules | None,
) -> PhraseFinding:
    states = {item.match.state for item in found}
    state = next(state for state in STATES_BY_RANK if state in states)
    exposures = moments.exposures(_seen(found, state, looks.looks))
    told = [item for item in found if item.match.state == state]
    best = max(told, key=lambda item: (item.match.score, -item.index))
    places = tuple(item.place for item in told)
    smallest = smallest_place(places, exposures)
    return PhraseFinding(
        phrase=phrase.text,
        state=_SAID[state],
        reason=_others(found, state),
        score=round(best.match.score, 3),
        read_as=best.match.read_as,
        differences=best.match.differences,
        frames=len(told),
        first_s=places[0].time_s,
        last_s=places[-1].time_s,
        exposures=exposures,
        place=best.place,
        smallest=smallest,
        smallest_share=smallest.height_px / looks.height_px if smallest else None,
        places=places,
        checks=(
            *time_checks(rules, exposures, looks),
            *height_checks(rules, smallest.height_px if smallest else None, looks.height_px),
        ),
    )


def _absent(
    phrase: Phrase,
    closest: tuple[str, float],
    unread_px: Sequence[float],
    looks: VideoLooks,
    moments: LookMoments,
) -> PhraseFinding:
    """A phrase that was read nowhere. It may be anywhere, so ink that was not read may hide it wherever that is."""
    hiding_px = _LETTER_AREA_PX * sum(not character.isspace() for character in phrase.text)
    seen = [None if area_px >= hiding_px else False for area_px in unread_px]
    unsure = [look for look, value in zip(looks.looks, seen, strict=True) if value is None]
    reason = why_unsure(looks, unsure, "there is ink that was not read")
    state: Literal["cannot_tell", "not_shown"] = "cannot_tell" if reason else "not_shown"
    text, share = closest
    exposures = moments.exposures(seen)
    return PhraseFinding(phrase.text, state, reason, score=round(share, 3), read_as=text, exposures=exposures)


def _seen(found: Sequence[_Found], state: MatchState, looks: Sequence[FrameLook]) -> list[bool | None]:
    """What each look tells of a phrase whose places are known: only ink at the nearest ones may hide it."""
    seen: list[bool | None] = []
    place: Place | None = None
    coming = iter([*found, None])
    following = next(coming)
    for index, look in enumerate(looks):
        if following is not None and following.index == index:
            seen.append(True if following.match.state == state else None)
            place, following = following.place, next(coming)
        else:
            near = [place, following.place if following else None]
            seen.append(None if any(hides(look, one.box_xyxy_px) for one in near if one) else False)
    return seen


def _unread_area_px(look: FrameLook) -> float:
    """How much of the frame was not read: nothing can be excluded where that is unknown."""
    if look.failed or look.partly:
        return float("inf")
    return sum((box[2] - box[0]) * (box[3] - box[1]) for box in look.undetected_ink)


def _others(found: Sequence[_Found], state: MatchState) -> str:
    """What frames say that read it otherwise."""
    altered = [item.match for item in found if item.match.state == "altered"]
    if state == "present" and altered:
        said = "; ".join(altered[0].differences)
        return f"in {len(altered)} other frames it was read altered ({said})"
    if state != "review":
        return ""
    figures = any(item.match.differences for item in found)
    what = "the print is hard to read, and other figures were read" if figures else "something like it was read"
    return f"{what}; a person has to look"
