"""Phrases that begin on one page and end on the next. Pure: it knows lines, no documents.

Headers and footers stand between the two halves, so a few lines on either side may be passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sam2_mcp_worker.pipelines.redact_phrases import Match, ReadLine, find_phrases

# A phrase of 200 characters fills three lines at most.
_LINES = 3
# A footer with a page number, and one line of a header more.
_PASSED_OVER = 2


@dataclass(frozen=True, slots=True)
class BrokenMatch:
    """A phrase over a page break: indices of its lines on the page before and on the page after."""

    match: Match
    before: tuple[int, ...]
    after: tuple[int, ...]


def over_page_break(phrases: Sequence[str], before: Sequence[ReadLine], after: Sequence[ReadLine]) -> list[BrokenMatch]:
    """Phrases that hold the end of one page and the beginning of the next; lines come in reading order."""
    found: dict[tuple[int, tuple[int, ...], tuple[int, ...]], BrokenMatch] = {}
    for last in range(len(before), max(0, len(before) - _PASSED_OVER - 1), -1):
        for first in range(min(len(after), _PASSED_OVER + 1)):
            start = max(0, last - _LINES)
            lines = [*before[start:last], *after[first : first + _LINES]]
            for match in find_phrases(phrases, lines):
                ahead = tuple(start + i for i in match.lines if i < last - start)
                behind = tuple(first + i - (last - start) for i in match.lines if i >= last - start)
                if ahead and behind:
                    found.setdefault((match.phrase, ahead, behind), BrokenMatch(match, ahead, behind))
    return list(found.values())
