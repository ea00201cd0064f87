"""How far two figures are about the same thing: their words, what they are counted by, and their conditions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class _Context:
    """A figure with the words of its label, and with those around it as well."""

    figure: Figure
    label: tuple[str, ...]
    words: tuple[str, ...]


def likeness(figure: Figure, other: Figure) -> tuple[Likeness, float]:
    """How far two figures are about the same, and the share of the first one's words that the second has."""
    mine, theirs = _context(figure), _context(other)
    named = covered(mine.label, theirs.words)
    share = sum(named) / len(named) if named else 0.0
    if not any(covered(mine.label, theirs.label)):
        return (Likeness.ALIKE if any(covered(mine.words, theirs.words)) else Likeness.NONE), share
    if all(named) and _is_same(mine, theirs):
        return Likeness.SAME, share
    return (Likeness.NAMED if share >= COMPARABLE_SHARE and _is_named(mine, theirs) else Likeness.ALIKE), share


def _context(figure: Figure) -> _Context:
    label = words_in(figure.label)
    return _Context(figure, label, (*label, *words_in(figure.around)))


def _is_same(mine: _Context, theirs: _Context) -> bool:
    """Whether all that names the second figure is said of the first as well, with nothing against it."""
    return (
        all(covered(theirs.label, mine.words))
        and not contradict(mine.words, theirs.words)
        and _said_behind(mine, theirs)
        and _said_behind(theirs, mine)
        and _same_per(mine.figure, theirs.figure) == "same"
        and _same_conditions(mine, theirs)
    )


def _is_named(mine: _Context, theirs: _Context) -> bool:
    """Whether the name of the first figure, next to it, is the name of the second, and says which figure is meant."""
    if contradict((*mine.words, *mine.figure.conditions), (*theirs.label, *theirs.figure.conditions)):
        return False
    behind = words_of(mine.figure.behind), words_of(theirs.figure.behind)
    if all(behind) and not any(covered(behind[0], theirs.words)):
        return False  # "10% 할인" and "10% 인상"
    shared = [word for word, known in zip(mine.label, covered(mine.label, theirs.label), strict=True) if known]
    name = next((words for phrase in mine.figure.label if (words := words_of(phrase))), ())
    naming = [words_of(phrase) for phrase in theirs.figure.label if any(covered(name, words_of(phrase)))]
    return (
        all(covered(name, theirs.words)[-2:])
        and any(covered(words, mine.words)[0] for words in naming)  # 갑상선 암진단비 is no 암진단비
        and tells(shared)
        and _same_per(mine.figure, theirs.figure) != "other"
    )


def _said_behind(one: _Context, other: _Context) -> bool:
    return all(covered(words_of(one.figure.behind), (*other.words, *other.figure.conditions)))


def _same_conditions(mine: _Context, theirs: _Context) -> bool:
    """Whether each of the two is said under the conditions of the other."""
    return all(
        set(one.figure.conditions) <= {*another.figure.conditions, *another.words}
        for one, another in ((mine, theirs), (theirs, mine))
    )


def _same_per(figure: Figure, other: Figure) -> Literal["same", "unsaid", "other"]:
    if set(figure.per) == set(other.per) or (figure.kind == "percent" and {*figure.per, *other.per} == {"연"}):
        return "same"  # rates are those of a year unless something else is said
    return "unsaid" if not figure.per or not other.per else "other"


def words_in(phrases: Iterable[str]) -> tuple[str, ...]:
    """The words of several phrases, in order."""
    return tuple(word for phrase in phrases for word in words_of(phrase))
