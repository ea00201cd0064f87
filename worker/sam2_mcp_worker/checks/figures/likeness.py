"""How far two figures are about the same thing: their words, what they are counted by, and their conditions."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Literal

from sam2_mcp_worker.checks.figures.shape import Figure
from sam2_mcp_worker.checks.figures.words import contradict, covered, tells, words_of

# Share of the words that name a figure of the advertisement that the evidence must have as well: advertisements praise
# with words that no evidence holds. The word next to the figure must be among them.
COMPARABLE_SHARE = 0.6


class Likeness(IntEnum):
    """SAME: word for word, under the same conditions. NAMED: what names one names the other too. ALIKE: some word."""

    NONE = 0
    ALIKE = 1
    NAMED = 2
    SAME = 3


def likeness(figure: Figure, other: Figure) -> tuple[Likeness, float]:
    """How far two figures are about the same, and the share of the first one's words that the second has."""
    mine, theirs = words_in(figure.label), words_in(other.label)
    all_mine, all_theirs = (*mine, *words_in(figure.around)), (*theirs, *words_in(other.around))
    named = covered(mine, all_theirs)
    shared = any(covered(mine, theirs))
    share = sum(named) / len(named) if named else 0.0
    if not shared:
        return (Likeness.ALIKE if any(covered(all_mine, all_theirs)) else Likeness.NONE), share
    per = _same_per(figure, other)
    alike = all(named) and all(covered(theirs, all_mine)) and not contradict(all_mine, all_theirs)
    if alike and per == "same" and _same_conditions(figure, other):
        return Likeness.SAME, share
    if contradict((*all_mine, *figure.conditions), (*theirs, *other.conditions)):
        return Likeness.ALIKE, share
    first = next((words for phrase in figure.label if (words := words_of(phrase))), ())
    head = covered(first, all_theirs)[-2:]
    naming = [phrase for phrase in other.label if any(covered(first, words_of(phrase)))]
    told = any(covered(words_of(phrase), all_mine)[0] for phrase in naming)
    told = told and tells([word for word, known in zip(mine, covered(mine, theirs), strict=True) if known])
    if all(head) and share >= COMPARABLE_SHARE and told and per != "other":
        return Likeness.NAMED, share
    return Likeness.ALIKE, share


def _same_conditions(figure: Figure, other: Figure) -> bool:
    """Whether each of the two is said under the conditions of the other."""
    return all(
        set(one.conditions) <= {*another.conditions, *words_in(another.label), *words_in(another.around)}
        for one, another in ((figure, other), (other, figure))
    )


def _same_per(figure: Figure, other: Figure) -> Literal["same", "unsaid", "other"]:
    if set(figure.per) == set(other.per) or (figure.kind == "percent" and {*figure.per, *other.per} == {"연"}):
        return "same"  # rates are those of a year unless something else is said
    return "unsaid" if not figure.per or not other.per else "other"


def words_in(phrases: Iterable[str]) -> tuple[str, ...]:
    """The words of several phrases, in order."""
    return tuple(word for phrase in phrases for word in words_of(phrase))
