"""Whether two figures have the same value, as far as their limits, ranges and their reading let that be said."""

from __future__ import annotations

from typing import Literal

from sam2_mcp_worker.checks.figures.form import DATE_UNIT
from sam2_mcp_worker.checks.figures.shape import Figure
from sam2_mcp_worker.checks.figures.units import comparable

# Digits that readers take for one another; two figures that differ in nothing else, or in one character
# more, may be the same where one was read by OCR.
_LOOK_ALIKE = ("38", "56", "17", "0689")


Relation = Literal["equal", "differs", "unclear"]


def relation(figure: Figure, other: Figure) -> tuple[Relation, str]:
    """How the values of two figures with the same unit stand to each other, and what is to be said about it."""
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


def _bounds(figure: Figure, other: Figure) -> tuple[Relation, str]:
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


def _in_range(figure: Figure, other: Figure) -> tuple[Relation, str]:
    low, _, _ = comparable(figure.low, figure.high, figure.unit)
    low2, high2, _ = comparable(other.low, other.high, other.unit)
    if (figure.bound == "at_most" and low == high2) or (figure.bound == "at_least" and low == low2):
        return "equal", "An end of the evidence's range"
    if low2 <= low <= high2:
        return "unclear", "it lies within a range of the evidence"
    return "differs", ""


def _within(figure: Figure, other: Figure) -> tuple[Relation, str]:
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


def slip_apart(figure: Figure, other: Figure) -> bool:
    """Whether two figures, one of them read by OCR, differ by no more than a slip of reading."""
    if "ocr" not in (figure.place.source, other.place.source):
        return False
    pairs = ((figure.value, other.value), (_plain(figure.text), _plain(other.text)))
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
