"""Which lines are judged together, and which of their verdicts is told: of a place its worst line, of places the best.

A phrase that stands in several places is well shown where one of them is. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from sam2_mcp_worker.checks.findings import Finding, Verdict
from sam2_mcp_worker.checks.reading import Reading, ReadLine

LineRef = tuple[int, int]
"""The number of a page and the index of a line in `ReadPage.lines`."""

PhrasePlaces = Mapping[str, Sequence[Sequence[LineRef]]]
"""By the name of each phrase its places, each with the lines that carry it there; one line may carry two phrases."""

AppliesTo = Literal["phrases", "all"]

# A mark or a letter alone is more often a bullet, a stain or an ornament than text.
MIN_LETTERS = 2

SEVERITY: tuple[Verdict, ...] = ("not_met", "review", "cannot_tell", "met")
"""Worst first."""


def is_text(line: ReadLine) -> bool:
    """Whether a line holds enough letters to be text."""
    return sum(character.isalnum() for character in line.text) >= MIN_LETTERS


def lines_by_ref(reading: Reading) -> dict[LineRef, ReadLine]:
    """Every line by its reference."""
    return {(page.number, index): line for page in reading.pages for index, line in enumerate(page.lines)}


def grouped(reading: Reading, phrases: PhrasePlaces, applies_to: AppliesTo) -> PhrasePlaces:
    """By name, then by place, the lines that are judged together: those of a phrase, or all text of a page."""
    if applies_to == "phrases":
        return phrases
    of_pages: dict[str, list[list[LineRef]]] = {}
    for page in reading.pages:
        refs = [(page.number, index) for index, line in enumerate(page.lines) if is_text(line)]
        if page.status == "done" and refs:
            of_pages[f"page {page.number}"] = [refs]
    return of_pages


def best_place(found: Iterable[Finding]) -> list[Finding]:
    """Of one phrase's findings at its places the best for each rule; of equally good ones the largest measure."""
    best: dict[str, Finding] = {}
    for one in found:
        known = best.get(one.rule)
        if known is None or _rank(one) > _rank(known):
            best[one.rule] = one
    return list(best.values())


def _rank(finding: Finding) -> tuple[int, float]:
    return SEVERITY.index(finding.verdict), finding.measured or 0.0
