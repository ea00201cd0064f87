"""One phrase over the frames of a video: where it was read, how alike, and whether its numbers are the same.

Owns which frames are worth a close look: most lines of a long video have nothing of a phrase, which a cheap comparison
of single lines tells. What a likeness means is told by checks/phrases.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rapidfuzz import fuzz

from sam2_mcp_worker.checks.phrases import (
    SHORT_LETTERS,
    MatchState,
    Phrase,
    PhraseMatch,
    letters,
    match_phrase,
    phrase_of,
)
from sam2_mcp_worker.checks.rule_packs import VideoRules
from sam2_mcp_worker.engines.ports import TextLine
from sam2_mcp_worker.pipelines.frame_looks import FrameLook, VideoLooks
from sam2_mcp_worker.pipelines.look_moments import LookMoments, hides
from sam2_mcp_worker.pipelines.video_absence import why_unsure
from sam2_mcp_worker.pipelines.video_finding_types import PhraseFinding, Place
from sam2_mcp_worker.pipelines.video_rules import height_checks, smallest_place, time_checks

# A line may have something of a phrase from this likeness on: of two lines that share a phrase, the better one has
# 0.67 when it is read without slips, and 0.5 with 25 % of them.
_LINE_PERCENT = 50.0
# Lines that are this much of a phrase together are worth a close look.
_WORTH_SHARE = 0.35
# Runs of this many letters (a syllable has 2 or 3) are shared: a line with 45 % of its syllables wrong still has a
# third of them, unlike lines have at most those of a common ending.
_GRAM = 4
_LEAST_GRAM_SHARE = 0.1
# A letter of print that can be read is at least 6 px high and half as wide: less unread ink cannot hide a phrase.
_LETTER_AREA_PX = 18

_BY_RANK: tuple[MatchState, ...] = ("present", "altered", "review")
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
    looks: VideoLooks, moments: LookMoments, phrases: Sequence[str], rules: VideoRules | None
) -> tuple[PhraseFinding, ...]:
    """One finding for each phrase, in their order."""
    ready = [phrase_of(text) for text in phrases]
    lines = _Lines(looks.looks if ready else (), ready)
    unread_px = [_unread_area_px(look) for look in looks.looks]
    return tuple(
        _finding(phrase, list(_matches(phrase, index, looks.looks, lines)), unread_px, looks, moments, rules)
        for index, phrase in enumerate(ready)
    )


class _Lines:
    """The different texts of all looks, and how much of which phrase may be in each. Equal looks are one frame."""

    def __init__(self, looks: Sequence[FrameLook], phrases: Sequence[Phrase]) -> None:
        numbers: dict[str, int] = {}
        frames: dict[tuple[int, ...], int] = {}
        self.frame_of_look: list[int] = []
        for look in looks:
            frame = tuple([numbers.setdefault(line.text, len(numbers)) for line in look.lines])
            self.frame_of_look.append(frames.setdefault(frame, len(frames)))
        self.frames = list(frames)
        self.texts = list(numbers)
        self.weights: list[dict[int, float]] = [{} for _ in phrases]
        grams = _Grams(phrases)
        for number, text in enumerate(self.texts):
            found = letters(text)
            for index in grams.like(found):
                weight = _weight(phrases[index].letters, found)
                if weight > 0:
                    self.weights[index][number] = weight

    def worth_a_look(self, numbers: Sequence[int], phrase: int) -> list[list[int]]:
        """Positions of the lines of a frame to look at for a phrase: those that may hold some of it, then these with
        their neighbours; none where there is too little.

        A line that holds the end of a phrase and much else resembles it too little by itself, but stands beside one
        that does not. A line of another column that stands between two of the phrase's is none of the first.
        """
        weights = self.weights[phrase]
        likely = [position for position, number in enumerate(numbers) if number in weights]
        if sum(weights[numbers[position]] for position in likely) < _WORTH_SHARE:
            return []
        near = {position + step for position in likely for step in (-1, 0, 1)}
        return [likely, sorted(position for position in near if 0 <= position < len(numbers))]


class _Grams:
    """Which phrases share runs of letters with a line: cheap, and a line that shares none holds nothing of them."""

    def __init__(self, phrases: Sequence[Phrase]) -> None:
        self._of: dict[str, list[int]] = {}
        self._lengths = [len(phrase.letters) for phrase in phrases]
        self._short = [index for index, phrase in enumerate(phrases) if len(phrase.letters) < SHORT_LETTERS]
        for index, phrase in enumerate(phrases):
            if len(phrase.letters) >= SHORT_LETTERS:
                for gram in set(_grams(phrase.letters)):
                    self._of.setdefault(gram, []).append(index)

    def like(self, line: str) -> Iterator[int]:
        """Indices of the phrases that the line may hold a part of; short lines and phrases always may."""
        yield from self._short
        shared = Counter(index for gram in _grams(line) if gram in self._of for index in self._of[gram])
        for index, count in shared.items():
            if count >= _LEAST_GRAM_SHARE * min(len(line), self._lengths[index]):
                yield index


def _grams(text: str) -> Iterator[str]:
    return (text[start : start + _GRAM] for start in range(len(text) - _GRAM + 1))


def _weight(phrase: str, line: str) -> float:
    """How much of the phrase may be in the line, 0-1; of a short line all of it must be there."""
    if phrase in line:
        return 1.0
    if len(line) < SHORT_LETTERS:
        return len(line) / len(phrase) if line in phrase else 0.0
    percent = fuzz.partial_ratio(phrase, line, score_cutoff=_LINE_PERCENT)
    return percent / 100 * min(1.0, len(line) / len(phrase))


def _matches(phrase: Phrase, index: int, looks: Sequence[FrameLook], lines: _Lines) -> Iterator[_Found]:
    known: dict[tuple[int, ...], PhraseMatch] = {}
    of_frame = [
        _best_match(phrase, numbers, lines.worth_a_look(numbers, index), lines, known) for numbers in lines.frames
    ]
    for number, frame in enumerate(lines.frame_of_look):
        match, positions = of_frame[frame]
        if match.state != "absent":
            yield _Found(number, match, _place(looks[number], [positions[line] for line in match.lines]))


def _best_match(
    phrase: Phrase,
    numbers: Sequence[int],
    choices: Sequence[Sequence[int]],
    lines: _Lines,
    known: dict[tuple[int, ...], PhraseMatch],
) -> tuple[PhraseMatch, Sequence[int]]:
    """The best match in any of these choices of lines, and the choice; `known` keeps what was compared before."""
    best: tuple[PhraseMatch, Sequence[int]] = PhraseMatch("absent", 0.0), ()
    for positions in choices:
        key = tuple(numbers[position] for position in positions)
        if key not in known:
            known[key] = match_phrase(phrase, [lines.texts[number] for number in key])
        if _rank(known[key]) > _rank(best[0]):
            best = known[key], positions
        if best[0].state == "present":
            break
    return best


def _rank(match: PhraseMatch) -> tuple[int, float]:
    return (0 if match.state == "absent" else len(_BY_RANK) - _BY_RANK.index(match.state)), match.score


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
    unread_px: Sequence[float],
    looks: VideoLooks,
    moments: LookMoments,
    rules: VideoRules | None,
) -> PhraseFinding:
    states = {item.match.state for item in found}
    state: MatchState = next((state for state in _BY_RANK if state in states), "absent")
    if state == "absent":
        return _absent(phrase, unread_px, looks, moments)
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
            *time_checks(rules, exposures),
            *height_checks(rules, smallest.height_px if smallest else None, looks.height_px),
        ),
    )


def _absent(phrase: Phrase, unread_px: Sequence[float], looks: VideoLooks, moments: LookMoments) -> PhraseFinding:
    """A phrase that was read nowhere. It may be anywhere, so ink that was not read may hide it wherever that is."""
    hiding_px = _LETTER_AREA_PX * sum(not character.isspace() for character in phrase.text)
    seen = [None if area_px >= hiding_px else False for area_px in unread_px]
    unsure = [look for look, value in zip(looks.looks, seen, strict=True) if value is None]
    reason = why_unsure(looks, unsure, "there is ink that was not read")
    state: Literal["cannot_tell", "not_shown"] = "cannot_tell" if reason else "not_shown"
    return PhraseFinding(phrase.text, state, reason, exposures=moments.exposures(seen))


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
    return "something like it was read; a person has to look" if state == "review" else ""
