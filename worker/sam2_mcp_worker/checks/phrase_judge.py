"""Whether phrases stand in a document, over all that was read of it: present, altered, missing, perhaps, or unknown.

Owns what all places, pages and sources together say of a phrase. Places are found by phrase_search.py; what may hide a
phrase is told by phrase_absence.py. Refuses to know who read the document and how.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sam2_mcp_worker.checks.phrase_absence import Absence
from sam2_mcp_worker.checks.phrase_decoys import JudgedPhrase
from sam2_mcp_worker.checks.phrase_pages import (
    PhraseLine,
    pages_of,
    seams_of,
)
from sam2_mcp_worker.checks.phrase_rewritten import stands_rewritten
from sam2_mcp_worker.checks.phrase_search import LineRuns, PhraseSearch, PlaceFound
from sam2_mcp_worker.checks.reading import Box, Reading, Source

PhraseState = Literal["present", "altered", "missing", "review", "cannot_tell"]

# An altered place is told before one for review that is no more than this more alike.
_ALTERED_FIRST = 0.05
# Places that are told beside the best one: a leaflet has a notice at its head, at its end and on its seal.
_MOST_ELSEWHERE = 8


_REWRITTEN = "it may stand there with its numbers or dates written in another way; a person has to look"


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


def judge_phrases(phrases: Sequence[JudgedPhrase], reading: Reading) -> tuple[PhraseFinding, ...]:
    """One finding for each phrase, in their order."""
    pages, seams = pages_of(reading), list(seams_of(reading))
    runs, absence = LineRuns(phrases), Absence(reading)
    rests_on = tuple(page.number for page in reading.pages if page.status == "done")
    findings: list[PhraseFinding] = []
    for index, judged in enumerate(phrases):
        search = PhraseSearch(judged, index, runs)
        for page in pages:
            search.through(page)
        if not search.places("present"):
            for seam in seams:
                search.through(seam)
        unsure = absence.why_unsure(judged.phrase.text)
        finding = _found(judged, search, unsure) or _not_found(judged, search, unsure, len(rests_on))
        if finding.state == "missing" and stands_rewritten(judged.phrase, [*pages, *seams]):
            finding = replace(finding, state="review", reason=_REWRITTEN)
        findings.append(replace(finding, rests_on=rests_on))
    return tuple(findings)


def _found(judged: JudgedPhrase, search: PhraseSearch, unsure: str) -> PhraseFinding | None:
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


def _elsewhere(told: Sequence[PlaceFound]) -> tuple[tuple[PhraseLine, ...], ...]:
    """The lines of all places but the best; a place that was read twice, as text and by OCR, is one."""
    apart: list[PlaceFound] = []
    for place in told:
        if len(apart) > _MOST_ELSEWHERE:
            break
        if not any(_same_place(place, other) for other in apart):
            apart.append(place)
    return tuple(place.lines for place in apart[1:])


def _same_place(one: PlaceFound, other: PlaceFound) -> bool:
    """Whether two places share a line, or lines that lie over one another."""
    return any(mine == theirs or _overlap(mine, theirs) for mine in one.lines for theirs in other.lines)


def _overlap(one: PhraseLine, other: PhraseLine) -> bool:
    a, b = one.line.box_xyxy, other.line.box_xyxy
    if one.page_number != other.page_number or one.line.source == other.line.source or a is None or b is None:
        return False
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _altered_elsewhere(altered: Sequence[PlaceFound]) -> str:
    if not altered:
        return ""
    said = "; ".join(altered[0].sighting.differences)
    return f"it also stands there altered ({said}), on page {altered[0].lines[0].page_number}"


def _not_found(judged: JudgedPhrase, search: PhraseSearch, unsure: str, pages: int) -> PhraseFinding:
    state: PhraseState = "missing"
    reason = f"on none of the {pages} pages that were read" if pages > 1 else "not in what was read"
    if unsure:
        state, reason = "cannot_tell", f"not found in what was read, but {unsure}"
    elif search.in_pieces:
        state, reason = "review", "many of its words stand on one page, but not together; a person has to look"
    elif search.overlooks:
        state, reason = "review", "too many places resemble it for all to be looked at; a person has to look"
    return PhraseFinding(
        phrase=judged.phrase.text,
        state=state,
        reason=reason,
        score=round(search.score, 3),
        coverage=round(search.coverage, 3),
        read_as=search.read_as,
    )
