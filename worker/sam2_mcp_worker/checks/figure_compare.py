"""Whether the figures of an advertisement are those of its evidence: match, mismatch, or not to be compared.

Owns when two figures are about the same thing and when one may be called wrong. The aim is no false `mismatch`: it
takes the same context word for word in both, the same unit, certainty of reading on both sides, and evidence of which
all was read. Whatever falls short is `cannot_compare` with its reason and the nearest figure of the evidence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from sam2_mcp_worker.checks.figures import Figure
from sam2_mcp_worker.checks.figures.clauses import condition
from sam2_mcp_worker.checks.figures.form import DATE_UNIT, VALUE_KINDS
from sam2_mcp_worker.checks.figures.units import comparable
from sam2_mcp_worker.checks.figures.words import contradict, covered, words_of

FigureState = Literal["match", "mismatch", "cannot_compare"]
# Share of the words that name a figure of the advertisement that the evidence must have as well: advertisements praise
# with words that no evidence holds. The word next to the figure must be among them.
COMPARABLE_SHARE = 0.6
# Digits that readers take for one another; two figures that differ in nothing else, or in one character more, may be the
# same where one was read by OCR.
_LOOK_ALIKE = ("38", "56", "17", "0689")


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
    # How far the contexts are the same: 3 word for word, 2 what names both, 1 a word, 0 nothing.
    level: int
    # Share of the words of the advertisement that the candidate has too.
    share: float
    verdict: Literal["equal", "differs", "unclear"]
    note: str


def compare_figures(ad: Sequence[Figure], evidence: Sequence[Evidence]) -> tuple[FigureFinding, ...]:
    """One finding for each figure of the advertisement, in its order."""
    files = _Files(evidence)
    findings = [_judged(figure, evidence, files) for figure in ad]
    return tuple(_as_condition(finding, findings) for finding in findings)


def _as_condition(finding: FigureFinding, findings: Sequence[FigureFinding]) -> FigureFinding:
    """ "40세" of "40세 남성 월 12,300원" matches where the evidence gives that premium for that age."""
    figure = finding.figure
    if finding.state != "cannot_compare" or figure.doubt or figure.kind in VALUE_KINDS:
        return finding
    word = condition(figure)
    for other in findings:
        given = other.evidence
        beside = other.figure.place == figure.place and word in _words((*other.figure.label, *other.figure.around))
        if beside and given and other.state == "match" and word in _words((*given.label, *given.around)):
            what = f"It is a condition of {other.figure.text}, which the evidence gives for it."
            return FigureFinding(figure, "match", what, given, other.evidence_name)
    return finding


class _Files:
    """Figures of all files by what they measure, and by the words that name them: a book of rates has thousands."""

    def __init__(self, evidence: Sequence[Evidence]) -> None:
        self._by_word: dict[tuple[str, str], list[tuple[int, Figure]]] = defaultdict(list)
        self._by_value: dict[tuple[object, ...], list[tuple[int, Figure]]] = defaultdict(list)
        self._measures: set[str] = set()
        for file, one in enumerate(evidence):
            for figure in one.figures:
                self._add(file, figure)

    def _add(self, file: int, figure: Figure) -> None:
        low, high, unit = comparable(figure.low, figure.high, figure.unit)
        self._measures.add(unit)
        for key in {word[:2] for word in _words(figure.label)}:
            self._by_word[unit, key].append((file, figure))
        self._by_value[low, high, unit].append((file, figure))

    def measured(self, unit: str) -> bool:
        """Whether the evidence has any figure in that unit."""
        return unit in self._measures

    def without_unit(self, figure: Figure) -> tuple[int, Figure] | None:
        """A bare number of the evidence that is as large."""
        return next(iter(self._by_value.get((figure.low, figure.high, ""), ())), None)

    def near(self, figure: Figure) -> list[tuple[int, Figure]]:
        """Figures in the same unit that share the beginning of a word with it, or have its value."""
        low, high, unit = comparable(figure.low, figure.high, figure.unit)
        found = [*self._by_value.get((low, high, unit), ())]
        for key in {word[:2] for word in (*_words(figure.label), *_words(figure.around))}:
            found += self._by_word.get((unit, key), ())
        return list({id(one): (file, one) for file, one in found}.values())


def _judged(figure: Figure, evidence: Sequence[Evidence], files: _Files) -> FigureFinding:
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
        return FigureFinding(figure, "cannot_compare", f"The evidence has no figure in this unit ({_unit(figure)}).")
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
    same = [one for one in sure if one.level == 3]
    if same:
        return _same_context(figure, same, candidates, evidence)
    named = [one for one in sure if one.level == 2]
    best = max((one.share for one in named), default=0.0)
    equal = next((one for one in named if one.verdict == "equal" and one.share == best), None)
    return (
        _finding(figure, "match", f"The same figure, named alike.{_note(equal.note)}", equal, evidence)
        if equal
        else None
    )


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
    if figure.kind == "amount" and {"월", "연"} & set(figure.per) and not figure.conditions:
        return "such an amount depends on who pays it, and the advertisement does not say for whom it is"
    return "" if figure.near else "what it is about stands in another line"


def _their_hindrance(figure: Figure, same: Sequence[_Candidate], candidates: Sequence[_Candidate]) -> str:
    doubtful = next((one.figure for one in candidates if one.level >= 2 and one.figure.doubt), None)
    if doubtful is not None:
        return f"{doubtful.text} in the evidence cannot be read with certainty ({doubtful.doubt})"
    note = next((one.note for one in same if one.verdict == "unclear"), "")
    unsure = next(
        (f"of {one.figure.text} in the evidence {one.figure.unsure}" for one in same if one.figure.unsure), ""
    )
    if note or unsure:
        return note or unsure
    elsewhere = next((one.figure for one in candidates if one.verdict == "equal" and one.level == 2), None)
    if elsewhere is not None:
        return f"it says {elsewhere.text} as well, for {', '.join(elsewhere.label)}"
    if any(_slip(figure, one.figure) for one in same):
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
    if best is None or (best.level == 0 and equal is None):
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
    level, share = _likeness(figure, other)
    verdict, note = _values(figure, other)
    return _Candidate(other, file, level, share, verdict, note)


def _likeness(figure: Figure, other: Figure) -> tuple[int, float]:
    """How far two figures are about the same, and the share of the first one's words that the second has."""
    mine, theirs = _words(figure.label), _words(other.label)
    all_mine, all_theirs = (*mine, *_words(figure.around)), (*theirs, *_words(other.around))
    named = covered(mine, all_theirs)
    shared = any(covered(mine, theirs))
    share = sum(named) / len(named) if named else 0.0
    if not shared:
        return (1 if any(covered(all_mine, all_theirs)) else 0), share
    per = _same_per(figure, other)
    if all(named) and all(covered(theirs, all_mine)) and per == "same" and _same_conditions(figure, other):
        return 3, share
    if contradict((*all_mine, *figure.conditions), (*theirs, *other.conditions)):
        return 1, share
    first = _words(figure.label[:1])
    head = covered(first, all_theirs)[-2:] if first else [False]
    naming = [phrase for phrase in other.label if any(covered(first, words_of(phrase)))]
    told = any(covered(words_of(phrase), all_mine)[0] for phrase in naming)
    if all(head) and share >= COMPARABLE_SHARE and told and per != "other":
        return 2, share
    return 1, share


def _same_conditions(figure: Figure, other: Figure) -> bool:
    """Whether each of the two is said under the conditions of the other."""
    return all(
        set(one.conditions) <= {*another.conditions, *_words(another.label), *_words(another.around)}
        for one, another in ((figure, other), (other, figure))
    )


def _same_per(figure: Figure, other: Figure) -> Literal["same", "unsaid", "other"]:
    if set(figure.per) == set(other.per) or (figure.kind == "percent" and {*figure.per, *other.per} == {"연"}):
        return "same"  # rates are those of a year unless something else is said
    return "unsaid" if not figure.per or not other.per else "other"


def _values(figure: Figure, other: Figure) -> tuple[Literal["equal", "differs", "unclear"], str]:
    low, high, _ = comparable(figure.low, figure.high, figure.unit)
    low2, high2, _ = comparable(other.low, other.high, other.unit)
    if (low, high) == (low2, high2):
        return _bounds(figure, other)
    if "about" in (figure.bound, other.bound):
        return "unclear", "one of the two is only about so much"
    if figure.unit == DATE_UNIT:
        apart = high < low2 or high2 < low
        return ("differs", "") if apart else ("unclear", "one of the two dates lies within the other")
    if low != high and low2 != high2:
        return "differs", ""
    if low == high and low2 != high2:
        return _in_range(figure, other)
    if low != high:
        return "unclear", "a range and a single figure"
    return _within(figure, other)


def _bounds(figure: Figure, other: Figure) -> tuple[Literal["equal", "differs", "unclear"], str]:
    """Two equal numbers that the texts may limit in different ways."""
    if figure.bound == other.bound or figure.unit == DATE_UNIT:
        return "equal", ""
    if not other.bound:
        return "equal", "The evidence names the figure without a limit"
    if not figure.bound:
        return "unclear", f"the evidence limits it ({other.text})"
    if "about" in (figure.bound, other.bound):
        return "unclear", f"the evidence limits it in another way ({other.text})"
    return "differs", ""


def _in_range(figure: Figure, other: Figure) -> tuple[Literal["equal", "differs", "unclear"], str]:
    low, _, _ = comparable(figure.low, figure.high, figure.unit)
    low2, high2, _ = comparable(other.low, other.high, other.unit)
    if (figure.bound == "at_most" and low == high2) or (figure.bound == "at_least" and low == low2):
        return "equal", "An end of the evidence's range"
    if low2 <= low <= high2:
        return "unclear", "it lies within a range of the evidence"
    return "differs", ""


def _within(figure: Figure, other: Figure) -> tuple[Literal["equal", "differs", "unclear"], str]:
    """Two different numbers, of which the evidence's may only be a limit."""
    mine, theirs = (comparable(one.low, one.high, one.unit)[0] for one in (figure, other))
    most, least = ("at_most", "less_than"), ("at_least", "more_than")
    if (other.bound in most and mine <= theirs and figure.bound not in most) or (
        other.bound in least and mine >= theirs and figure.bound not in least
    ):
        return "unclear", f"the evidence only gives a limit ({other.text})"
    if figure.bound and other.bound and figure.bound != other.bound:
        return "unclear", f"the evidence limits it in another way ({other.text})"
    return "differs", ""


def _words(phrases: Iterable[str]) -> tuple[str, ...]:
    return tuple(_all_words(phrases))


def _all_words(phrases: Iterable[str]) -> Iterator[str]:
    for phrase in phrases:
        yield from words_of(phrase)


def _slip(figure: Figure, other: Figure) -> bool:
    """Whether two figures, one of them read by OCR, differ by no more than a slip of reading."""
    if "ocr" not in (figure.place.source, other.place.source):
        return False
    pairs = ((figure.value, other.value), *((_plain(figure.text), _plain(other.text)),))
    return any(_look_alike(*pair) or _one_more(*pair) or _one_more(*pair[::-1]) for pair in pairs)


def _plain(text: str) -> str:
    return "".join(char for char in text if char.isalnum() or char in ".%")


def _look_alike(one: str, other: str) -> bool:
    """Whether two texts of the same length differ only in digits that are taken for one another."""
    if len(one) != len(other):
        return False
    differing = [{a, b} for a, b in zip(one, other, strict=True) if a != b]
    return bool(differing) and all(any(pair <= set(group) for group in _LOOK_ALIKE) for pair in differing)


def _one_more(one: str, other: str) -> bool:
    """Whether the first text is the second with a character more."""
    return len(one) == len(other) + 1 and any(one[:at] + one[at + 1 :] == other for at in range(len(one)))


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


def _unit(figure: Figure) -> str:
    return figure.unit or "a number without a unit"
