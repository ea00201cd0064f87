"""Whether phrases stand in a document, over all that was read of it: present, altered, missing, perhaps, or unknown.

Owns what all places, pages and sources together say of a phrase. What one place says is told by phrase_look.py, what
may hide a phrase by phrase_absence.py. Refuses to know who read the document and how.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sam2_mcp_worker.checks.phrase_absence import Absence
from sam2_mcp_worker.checks.phrase_coverage import gram_share
from sam2_mcp_worker.checks.phrase_decoys import JudgedPhrase
from sam2_mcp_worker.checks.phrase_grams import PhraseGrams, letter_grams
from sam2_mcp_worker.checks.phrase_letters import letters
from sam2_mcp_worker.checks.phrase_look import Sighting, absent_below, look, says_exactly, text_at
from sam2_mcp_worker.checks.phrase_pages import (
    Passage,
    PhraseLine,
    broken_up,
    crosses_pages,
    joined,
    pages_of,
    seams_of,
    strangers_between,
)
from sam2_mcp_worker.checks.phrase_places import letter_likeness, most_places
from sam2_mcp_worker.checks.reading import Box, Reading, Source

PhraseState = Literal["present", "altered", "missing", "review", "cannot_tell"]

# Figures and negations in a line read less surely than this may be others (frames of videos: clear lines 0.89 to 0.96,
# fine print 0.68 and 0.76 with slips in its figures; a blurred leaflet: 0.75 and "없는" where "있는" is printed).
_SURE_FIGURES = 0.8
# Half of the 3-grams of a phrase on one page are no chance (absent ones 0.38 at most, vision.md 6): where likeness
# finds no place all the same, the phrase may stand there in pieces.
_COVERED = 0.5
# Text that was not read loses only the runs over the breaks between its pieces: of 20 syllables in four pieces 0.67 are
# left. Of absent wordings that share boilerplate 4 % reach that, 19 % reach 0.5 (docs/accuracy.md).
_COVERED_TEXT = 0.65
# An altered place is told before one for review that is no more than this more alike.
_ALTERED_FIRST = 0.05
# Lines that hold a phrase share this much of its runs of letters even where 45 % of the syllables were misread.
_SHARED_RUNS = 0.2
# Places that are told beside the best one: a leaflet has a notice at its head, at its end and on its seal.
_MOST_ELSEWHERE = 8
# So that a likeness is found again that was rounded on its way.
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class PhraseFinding:
    """What became of a phrase.

    `lines` are those it touches, in order, of two pages where it runs over a page's end; none where it was not found.
    `score` is the likeness 0-1 of the place, or of the nearest one; `coverage` the share of the phrase's 3-grams in
    those lines, or on the page that has most; `read_as` the text there. `rests_on` are the numbers of the pages that
    were gone through, `further_places` the places of that source that say the same beside the one told. `elsewhere` are
    the lines of places that say the same, of any source, the best first: each stands apart from the others.
    """

    phrase: str
    state: PhraseState
    reason: str
    source: Source | None = None
    lines: tuple[PhraseLine, ...] = ()
    score: float = 0.0
    coverage: float = 0.0
    read_as: str = ""
    differences: tuple[str, ...] = ()
    rests_on: tuple[int, ...] = ()
    further_places: int = 0
    elsewhere: tuple[tuple[PhraseLine, ...], ...] = ()

    @property
    def page_number(self) -> int | None:
        """The page where it begins, from 1."""
        return self.lines[0].page_number if self.lines else None

    @property
    def boxes(self) -> tuple[tuple[int, Box], ...]:
        """Page number and box of each of its lines that has one."""
        return tuple((one.page_number, one.line.box_xyxy) for one in self.lines if one.line.box_xyxy is not None)

    @property
    def start_s(self) -> float | None:
        """When it begins to be said."""
        return min((one.line.start_s for one in self.lines if one.line.start_s is not None), default=None)

    @property
    def end_s(self) -> float | None:
        """When it has been said."""
        return max((one.line.end_s for one in self.lines if one.line.end_s is not None), default=None)


@dataclass(frozen=True, slots=True)
class _Place:
    """A place in the document."""

    sighting: Sighting
    source: Source
    lines: tuple[PhraseLine, ...]

    @property
    def rank(self) -> tuple[float, float, bool, float]:
        """What is told first: what is more alike, then what stands in the file as text, then the larger letters."""
        heights = [one.line.height for one in self.lines if one.line.height is not None]
        sure = self.source in ("text_layer", "text")
        return self.sighting.context, self.sighting.score, sure, min(heights, default=0.0)


def judge_phrases(phrases: Sequence[JudgedPhrase], reading: Reading) -> tuple[PhraseFinding, ...]:
    """One finding for each phrase, in their order."""
    pages, seams = pages_of(reading), list(seams_of(reading))
    runs, absence = _LineRuns(phrases), Absence(reading)
    rests_on = tuple(page.number for page in reading.pages if page.status == "done")
    findings: list[PhraseFinding] = []
    for index, judged in enumerate(phrases):
        search = _Search(judged, index, runs)
        for page in pages:
            search.through(page)
        if not search.places("present"):
            for seam in seams:
                search.through(seam)
        unsure = absence.why_unsure(judged.phrase.text)
        finding = _found(judged, search, unsure) or _not_found(judged, search, unsure, len(rests_on))
        findings.append(replace(finding, rests_on=rests_on))
    return tuple(findings)


class _LineRuns:
    """Which runs of letters of which phrase stand in each line; each text is looked at once."""

    def __init__(self, phrases: Sequence[JudgedPhrase]) -> None:
        self._wanted = [letter_grams(judged.phrase.letters) for judged in phrases]
        self._phrases = PhraseGrams([judged.phrase.letters for judged in phrases])
        self._lines: dict[str, dict[int, frozenset[str]]] = {}

    def broken_up(self, passage: Passage, phrase: int) -> Iterator[Passage]:
        """Lines of a passage that may hold the phrase between others, without those others."""
        lines = enumerate(map(self._line, passage.texts))
        shared = {position: runs[phrase] for position, runs in lines if phrase in runs}
        return broken_up(passage, shared, _SHARED_RUNS * len(self._wanted[phrase]))

    def _line(self, text: str) -> dict[int, frozenset[str]]:
        """The runs that a line shares with each phrase that it may hold a part of."""
        if text not in self._lines:
            found = letters(text)
            runs = letter_grams(found)
            self._lines[text] = {phrase: self._wanted[phrase] & runs for phrase in self._phrases.like(found)}
        return self._lines[text]


class _Search:
    """All places of one phrase, and where no place is what resembles it most."""

    def __init__(self, judged: JudgedPhrase, index: int, runs: _LineRuns) -> None:
        self._judged, self._index, self._runs = judged, index, runs
        self._wanted = judged.phrase.letters
        self._found: list[_Place] = []
        self._nearest: Passage | None = None
        self.score = self.coverage = 0.0
        self.in_pieces = False

    def through(self, passage: Passage) -> None:
        """Looks through all lines of a passage, then through those that may hold the phrase between others."""
        found, others = self._look(passage, passage)
        if not any(place.sighting.state == "present" for place in found):
            for run in self._runs.broken_up(passage, self._index):
                more, of_run = self._look(run, passage)
                # What stands there in one piece is told rather than what may be put together.
                found += [place for place in more if place.sighting.state == "present" or not found]
                others = others or of_run
        if passage.seam and self._found:
            found = [place for place in found if place.sighting.state != "review"]
        self._found += found
        if not others:  # else its 3-grams are those of another wording
            share = gram_share(self._judged.phrase.text, passage.grams)
            self.coverage = max(self.coverage, share)
            self.in_pieces = self.in_pieces or share >= (_COVERED if passage.slips else _COVERED_TEXT)

    def _look(self, lines: Passage, passage: Passage) -> tuple[list[_Place], bool]:
        """The places in some lines of a passage, and whether others were left out as another wording's."""
        score, at_least = letter_likeness(self._wanted, lines.letters), absent_below(self._judged, passage.slips)
        if score > self.score:
            self.score, self._nearest = score, lines
        if score < at_least:
            return [], False
        found: list[_Place] = []
        others = False
        for place in most_places(self._wanted, lines.letters, at_least):
            sighting = look(self._judged, lines.read, place, passage.slips)
            others = others or sighting is None
            touched = tuple(lines.lines[line] for line in sighting.lines) if sighting else ()
            if sighting and _belongs(touched, lines, passage):
                found.append(_Place(self._believed(sighting, touched, passage), passage.source, touched))
        return found, others

    def _believed(self, sighting: Sighting, touched: Sequence[PhraseLine], passage: Passage) -> Sighting:
        """The sighting; for review where lines may not belong together, or a figure or negation is hard to read."""
        if sighting.state == "review":
            return sighting
        reason = ""
        sure = min((one.line.confidence for one in touched if one.line.confidence is not None), default=1.0)
        if strangers_between(touched, passage):
            reason = "other lines stand in the middle of it; a person has to look"
        elif sure < _SURE_FIGURES and (sighting.state == "altered" or says_exactly(self._judged.phrase)):
            reason = "the print is hard to read, and its numbers or negations may be others; a person has to look"
        return replace(sighting, state="review", reason=reason) if reason else sighting

    def places(self, state: str) -> list[_Place]:
        """The places of a state, the best first."""
        of_state = (place for place in self._found if place.sighting.state == state)
        return sorted(of_state, key=lambda place: place.rank, reverse=True)

    @property
    def read_as(self) -> str:
        """The text that resembles the phrase most."""
        if self._nearest is None:
            return ""
        places = most_places(self._wanted, self._nearest.letters, self.score - _ROUNDING)
        return next((text_at(self._nearest.read, place) for place in places), "")


def _belongs(touched: Sequence[PhraseLine], lines: Passage, passage: Passage) -> bool:
    """Whether a place is not one that is found anyhow, on one of two pages or without leaving out lines."""
    if passage.seam and not crosses_pages(touched):
        return False
    return lines is passage or not joined(touched, passage)


def _found(judged: JudgedPhrase, search: _Search, unsure: str) -> PhraseFinding | None:
    """What the best of all places says; None where there is none."""
    present, altered, review = (search.places(state) for state in ("present", "altered", "review"))
    if present:
        told, reason = present, _altered_elsewhere(altered)
    elif altered and not (review and review[0].sighting.context > altered[0].sighting.context + _ALTERED_FIRST):
        told, reason = altered, altered[0].sighting.reason
    elif review:
        told, reason = review, review[0].sighting.reason
    else:
        return None
    if not present and unsure:
        reason += f" (not everything was read: {unsure})"
    best = told[0]
    return PhraseFinding(
        phrase=judged.phrase.text,
        state=best.sighting.state,
        reason=reason,
        source=best.source,
        lines=best.lines,
        score=round(best.sighting.score, 3),
        coverage=round(best.sighting.coverage, 3),
        read_as=best.sighting.read_as,
        differences=best.sighting.differences,
        further_places=len({place.lines for place in told if place.source == best.source}) - 1,
        elsewhere=_elsewhere(told),
    )


def _elsewhere(told: Sequence[_Place]) -> tuple[tuple[PhraseLine, ...], ...]:
    """The lines of all places but the best; a place that was read twice, as text and by OCR, is one."""
    apart: list[_Place] = []
    for place in told:
        if len(apart) > _MOST_ELSEWHERE:
            break
        if not any(_same_place(place, other) for other in apart):
            apart.append(place)
    return tuple(place.lines for place in apart[1:])


def _same_place(one: _Place, other: _Place) -> bool:
    """Whether two places share a line, or lines that lie over one another."""
    return any(mine == theirs or _overlap(mine, theirs) for mine in one.lines for theirs in other.lines)


def _overlap(one: PhraseLine, other: PhraseLine) -> bool:
    a, b = one.line.box_xyxy, other.line.box_xyxy
    if one.page_number != other.page_number or one.line.source == other.line.source or a is None or b is None:
        return False
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _altered_elsewhere(altered: Sequence[_Place]) -> str:
    if not altered:
        return ""
    said = "; ".join(altered[0].sighting.differences)
    return f"it also stands there altered ({said}), on page {altered[0].lines[0].page_number}"


def _not_found(judged: JudgedPhrase, search: _Search, unsure: str, pages: int) -> PhraseFinding:
    state: PhraseState = "missing"
    reason = f"on none of the {pages} pages that were read" if pages > 1 else "not in what was read"
    if unsure:
        state, reason = "cannot_tell", f"not found in what was read, but {unsure}"
    elif search.in_pieces:
        state, reason = "review", "many of its words stand on one page, but not together; a person has to look"
    return PhraseFinding(
        phrase=judged.phrase.text,
        state=state,
        reason=reason,
        score=round(search.score, 3),
        coverage=round(search.coverage, 3),
        read_as=search.read_as,
    )
