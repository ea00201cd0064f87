"""Which lines may hold a part of which phrase, told cheaply, so that only those are looked at closely.

Most lines of a video or document have nothing of a phrase. Runs of a few letters tell that for all phrases at once,
the likeness of a single line more dearly. Knows nothing of what a likeness means.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rapidfuzz import fuzz

from sam2_mcp_worker.checks.phrases import SHORT_LETTERS

# A line may have something of a phrase from this likeness on: of two lines that share a phrase, the better one has
# 0.67 when it is read without slips, and 0.5 with 25 % of them.
_LINE_PERCENT = 50.0
# Lines that are this much of a phrase together are worth a close look.
WORTH_SHARE = 0.35
# Runs of this many letters (a syllable has 2 or 3) are shared: a line with 45 % of its syllables wrong still has a
# third of them, unlike lines have at most those of a common ending.
_GRAM = 4
_LEAST_GRAM_SHARE = 0.1


class PhraseGrams:
    """Which phrases, given as their letters, share runs of letters with a line. One that shares none holds nothing."""

    def __init__(self, phrases: Sequence[str]) -> None:
        self._of: dict[str, list[int]] = {}
        self._phrases = phrases
        self._short = [index for index, phrase in enumerate(phrases) if len(phrase) < SHORT_LETTERS]
        for index, phrase in enumerate(phrases):
            if len(phrase) >= SHORT_LETTERS:
                for gram in set(_grams(phrase)):
                    self._of.setdefault(gram, []).append(index)

    def weights(self, line: str) -> Iterator[tuple[int, float]]:
        """Indices of the phrases of which some may be in a line, given as its letters, and how much, 0-1."""
        for index in self.like(line):
            weight = line_weight(self._phrases[index], line)
            if weight > 0:
                yield index, weight

    def like(self, line: str) -> Iterator[int]:
        """Indices of the phrases of which the line may hold a part; of a short phrase that is not told by runs."""
        yield from self._short
        shared = Counter(index for gram in _grams(line) if gram in self._of for index in self._of[gram])
        for index, count in shared.items():
            if count >= _LEAST_GRAM_SHARE * min(len(line), len(self._phrases[index])):
                yield index


def letter_grams(text: str) -> frozenset[str]:
    """The runs of letters of a line or phrase, given as its letters."""
    return frozenset(_grams(text))


def line_weight(phrase: str, line: str) -> float:
    """How much of the phrase may be in the line, 0-1; of a short line all of it must be there."""
    if phrase in line:
        return 1.0
    if len(line) < SHORT_LETTERS:
        return len(line) / len(phrase) if line in phrase else 0.0
    percent = fuzz.partial_ratio(phrase, line, score_cutoff=_LINE_PERCENT)
    return percent / 100 * min(1.0, len(line) / len(phrase))


def _grams(text: str) -> Iterator[str]:
    return (text[start : start + _GRAM] for start in range(len(text) - _GRAM + 1))
