"""Whether the figures of an advertisement are those of its evidence: match, mismatch, or not to be compared.

Owns when two figures are about the same thing and when one may be called wrong. The aim is no false `mismatch`: it
takes the same context word for word in both, the same unit, certainty of reading on both sides, and evidence of which
all was read. Whatever falls short is `cannot_compare` with its reason and the nearest figure of the evidence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Literal

from sam2_mcp_worker.checks.figures import Figure
from sam2_mcp_worker.checks.figures.clauses import condition
from sam2_mcp_worker.checks.figures.form import VALUE_KINDS
from sam2_mcp_worker.checks.figures.index import FigureIndex
from sam2_mcp_worker.checks.figures.likeness import Likeness, likeness, words_in
from sam2_mcp_worker.checks.figures.shape import Place
from sam2_mcp_worker.checks.figures.units import comparable
from sam2_mcp_worker.checks.figures.values import Relation, relation, slip_apart

FigureState = Literal["match", "mismatch", "cannot_compare"]


# Counts that are part of a name: "3대 질병" and "5대 질병", "1종" and "2종" are two things.
_NAMING = ("대", "종", "형", "급", "등급", "등", "기", "세대", "차", "번", "번째", "단계")


@dataclass(frozen=True, slots=True)
class Evidence:
    """One file with its figures. `unread` says what of it was not read; "" where all was."""

    name: str
    figures: tuple[Figure, ...]
    unread: str = ""


@dataclass(frozen=True, slots=True)
class FigureFinding:
    """What became of a figure of the advertisement. `evidence` is the figure that decided, or the nearest one."""

    figure: Figure
    state: FigureState
    reason: str
    evidence: Figure | None = None
    evidence_name: str = ""


@dataclass(frozen=True, slots=True)
class _Candidate:
    figure: Figure
    file: int
    level: Likeness
    # Share of the words of the advertisement that the candidate has too.
    share: float
    verdict: Relation
    note: str


def compare_figures(ad: Sequence[Figure], evidence: Sequence[Evidence]) -> tuple[FigureFinding, ...]:
    """One finding for each figure of the advertisement, in its order."""
    files = FigureIndex([one.figures for one in evidence])
    findings = [_judged(figure, evidence, files) for figure in ad]
    findings = [_beside_its_own(finding, findings) for finding in findings]
    return tuple(_as_condition(finding, findings) for finding in findings)


def _beside_its_own(finding: FigureFinding, findings: Sequence[FigureFinding]) -> FigureFinding:
    """No mismatch of 1,500만원 in "3천만원 (1년 미만 1,500만원)" where what the evidence says is that 3천만원."""
    nearest = finding.evidence
    if finding.state != "mismatch" or nearest is None:
        return finding
    for other in findings:
        if other.state == "match" and other.figure.place == finding.figure.place and _are_one(nearest, other.evidence):
            what = f"The evidence says that for {other.figure.text} beside it."
            return FigureFinding(finding.figure, "cannot_compare", what, nearest, finding.evidence_name)
    return finding


def _are_one(figure: Figure, other: Figure | None) -> bool:
    """Whether two figures of the evidence are one: a PDF's text comes as lines and as tables."""
    return other is not None and relation(figure, other)[0] == "equal" and _subject(figure) == _subject(other)


def _subject(figure: Figure) -> tuple[object, ...]:
    """All that a text says a figure to be about; names that are written in one word or in two are the same."""
    words = ("".join(words_in(phrases)) for phrases in (figure.label, figure.around))
    return (*words, frozenset(figure.per), frozenset(figure.conditions))


def _as_condition(finding: FigureFinding, findings: Sequence[FigureFinding]) -> FigureFinding:
    """ "40세" of "40세 남성 월 12,300원" matches where the evidence gives that premium for that age."""
    figure = finding.figure
    if finding.state != "cannot_compare" or figure.doubt or figure.kind in VALUE_KINDS:
        return finding
    word = condition(figure)
    for other in findings:
        given = other.evidence
        beside = other.figure.place == figure.place and word in words_in((*other.figure.label, *other.figure.around))
        if beside and given and other.state == "match" and word in words_in((*given.label, *given.around)):
            what = f"It is a condition of {other.figure.text}, which the evidence gives for it."
            return FigureFinding(figure, "match", what, given, other.evidence_name)
    return finding


def _judged(figure: Figure, evidence: Sequence[Evidence], files: FigureIndex) -> FigureFinding:
    unit = comparable(figure.low, figure.high, figure.unit)[2]
    if not any(one.figures for one in evidence):
        unread = next((f"{one.name}: {one.unread}" for one in evidence if one.unread), "")
        what = "No evidence was given." if not evidence else f"The evidence has no figures{_because(unread)}."
        return FigureFinding(figure, "cannot_compare", what)
    bare = files.without_unit(figure) if unit else None
    if bare is not None and not files.near(figure):
        what = "The evidence has this number, but names no unit for it."
        return FigureFinding(figure, "cannot_compare", what, bare[1], evidence[bare[0]].name)
    if not files.measured(unit):
        return FigureFinding(figure, "cannot_compare", f"The evidence has no figure {_in_unit(figure)}.")
    candidates = [_candidate(figure, other, file) for file, other in files.near(figure)]
    candidates.sort(key=lambda one: (one.level, one.share, one.verdict == "equal"), reverse=True)
    decided = _decided(figure, candidates, evidence)
    if decided is not None:
        return decided
    return _left_open(figure, candidates, evidence)


def _decided(figure: Figure, candidates: Sequence[_Candidate], evidence: Sequence[Evidence]) -> FigureFinding | None:
    if figure.doubt:
        return None
    sure = [one for one in candidates if not one.figure.doubt]
    same = [one for one in sure if one.level == Likeness.SAME]
    if same:
        return _same_context(figure, same, candidates, evidence)
    named = [one for one in sure if one.level == Likeness.NAMED]
    best = max((one.share for one in named), default=0.0)
    named = [one for one in named if one.share == best]
    equal = next((one for one in named if one.verdict == "equal"), None)
    if equal is None:
        return None
    if contradiction := _contradiction(named):
        return _at_odds(figure, *contradiction, evidence)
    return _finding(figure, "match", f"The same figure, named alike.{_note(equal.note)}", equal, evidence)


def _same_context(
    figure: Figure, same: Sequence[_Candidate], candidates: Sequence[_Candidate], evidence: Sequence[Evidence]
) -> FigureFinding:
    equal = next((one for one in same if one.verdict == "equal"), None)
    files = {one.file for one in same}
    agreeing = {one.file for one in same if one.verdict == "equal"}
    if equal is not None and files != agreeing:
        other = next(one for one in same if one.file not in agreeing)
        what = f"Evidence disagrees: {evidence[other.file].name} says {other.figure.text} for the same."
        return _finding(figure, "cannot_compare", what, equal, evidence)
    if contradiction := _contradiction(same):
        return _at_odds(figure, *contradiction, evidence)
    if equal is not None:
        return _finding(figure, "match", f"The same figure in the same context.{_note(equal.note)}", equal, evidence)
    nearest = same[0]
    hindrance = _hindrance(figure, same, candidates, evidence)
    if hindrance:
        return _finding(
            figure,
            "cannot_compare",
            f"The evidence says {nearest.figure.text} for this, but {hindrance}.",
            nearest,
            evidence,
        )
    return _finding(figure, "mismatch", f"The evidence says {nearest.figure.text} for this.", nearest, evidence)


def _contradiction(candidates: Sequence[_Candidate]) -> tuple[_Candidate, _Candidate] | None:
    """An equal and a differing figure that one file gives for the same thing: not for two plans or two conditions."""
    differing: dict[object, list[_Candidate]] = defaultdict(list)
    for one in candidates:
        if one.verdict == "differs" and _is_plain(one.figure):
            differing[one.file, _subject(one.figure)].append(one)
    for one in candidates:
        if one.verdict == "equal" and _is_plain(one.figure):
            for other in differing.get((one.file, _subject(one.figure)), ()):
                if not _in_one_row(one.figure.place, other.figure.place) and not slip_apart(one.figure, other.figure):
                    return one, other
    return None


def _is_plain(figure: Figure) -> bool:
    """Whether a file can give only one such figure, and it was surely read."""
    return figure.near and not figure.unsure and not figure.of_a_value and figure.unit not in _NAMING


def _in_one_row(one: Place, other: Place) -> bool:
    """Whether two figures stand in one line or row, whose columns may be plans that only a header names."""
    if one.box_xyxy is not None and other.box_xyxy is not None and one.page == other.page:
        return min(one.box_xyxy[3], other.box_xyxy[3]) > max(one.box_xyxy[1], other.box_xyxy[1])
    rows = [(place.page, place.line, place.sheet, place.cell.lstrip(ascii_uppercase)) for place in (one, other)]
    return one.box_xyxy is None and other.box_xyxy is None and rows[0] == rows[1]


def _at_odds(figure: Figure, equal: _Candidate, other: _Candidate, evidence: Sequence[Evidence]) -> FigureFinding:
    name, said = evidence[equal.file].name, f"{equal.figure.text} and {other.figure.text}"
    what = f"The evidence disagrees with itself: {name} says {said} under the same name."
    return _finding(figure, "cannot_compare", what, equal, evidence)


def _hindrance(
    figure: Figure, same: Sequence[_Candidate], candidates: Sequence[_Candidate], evidence: Sequence[Evidence]
) -> str:
    """Why a figure that differs is not certainly wrong; "" if nothing speaks against it."""
    unread = next((one for one in evidence if one.unread), None)
    if unread is not None:
        return f"not all evidence was read ({unread.name}: {unread.unread})"
    return _own_hindrance(figure) or _their_hindrance(figure, same, candidates)


def _own_hindrance(figure: Figure) -> str:
    if figure.unsure:
        return f"of the advertisement's figure {figure.unsure}"
    if figure.kind == "number":
        return "it has no unit"
    if figure.of_a_value:
        return "it is a condition of another figure"
    if figure.unit in _NAMING:
        return "it may name one of several"
    if figure.kind == "amount" and {"월", "연"} & set(figure.per) and not figure.conditions:
        return "such an amount depends on who pays it, and the advertisement does not say for whom it is"
    return "" if figure.near else "what it is about stands in another line"


def _their_hindrance(figure: Figure, same: Sequence[_Candidate], candidates: Sequence[_Candidate]) -> str:
    doubtful = next((one.figure for one in candidates if one.level >= Likeness.NAMED and one.figure.doubt), None)
    if doubtful is not None:
        return f"{doubtful.text} in the evidence cannot be read with certainty ({doubtful.doubt})"
    if any(one.figure.of_a_value for one in same):
        return "in the evidence that is a condition of other figures"
    note = next((one.note for one in same if one.verdict == "unclear"), "")
    unsure = next((one.figure for one in same if one.figure.unsure), None)
    if note:
        return note
    if unsure is not None:
        return f"of {unsure.text} in the evidence {unsure.unsure}"
    elsewhere = next((one.figure for one in candidates if one.verdict == "equal" and one.level == Likeness.NAMED), None)
    if elsewhere is not None:
        return f"it says {elsewhere.text} as well, for {', '.join(elsewhere.label)}"
    if any(slip_apart(figure, one.figure) for one in same):
        return "the two differ by no more than a slip of reading, and one was read from a picture"
    return ""


def _left_open(figure: Figure, candidates: Sequence[_Candidate], evidence: Sequence[Evidence]) -> FigureFinding:
    """Why nothing could be decided, with the nearest figure of the evidence."""
    best = candidates[0] if candidates else None
    equal = next((one for one in candidates if one.verdict == "equal"), None)
    if figure.doubt:
        return _finding(
            figure, "cannot_compare", f"Its reading is not certain: {figure.doubt}.", equal or best, evidence
        )
    if best is None or (best.level == Likeness.NONE and equal is None):
        what = "The evidence has nothing with a comparable context."
        return FigureFinding(figure, "cannot_compare", what)
    if equal is not None and equal.level >= best.level:
        why = f"its reading is not certain: {equal.figure.doubt}" if equal.figure.doubt else "its context is another"
        return _finding(
            figure, "cannot_compare", f"The same figure stands in the evidence, but {why}.", equal, evidence
        )
    what = (
        f"The nearest figure of the evidence is {best.figure.text}, in a context that is only alike{_note(best.note)}"
    )
    return _finding(figure, "cannot_compare", f"{what.rstrip('.')}.", best, evidence)


def _candidate(figure: Figure, other: Figure, file: int) -> _Candidate:
    level, share = likeness(figure, other)
    verdict, note = relation(figure, other)
    return _Candidate(other, file, level, share, verdict, note)


def _finding(
    figure: Figure, state: FigureState, reason: str, candidate: _Candidate | None, evidence: Sequence[Evidence]
) -> FigureFinding:
    if candidate is None:
        return FigureFinding(figure, state, reason)
    return FigureFinding(figure, state, reason, candidate.figure, evidence[candidate.file].name)


def _because(unread: str) -> str:
    return f", and not all of it was read ({unread})" if unread else ""


def _note(note: str) -> str:
    return f" {note[0].upper()}{note[1:]}." if note else ""


def _in_unit(figure: Figure) -> str:
    return f"in this unit ({figure.unit})" if figure.unit else "without a unit, as this one is"
