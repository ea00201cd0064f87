"""Ways to judge a phrase in a reading, to be compared with one another: each score alone, and the judge as it is.

Owns the scores that the judge is measured against; decides nothing for the product.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from rapidfuzz import fuzz

from sam2_mcp_worker.checks.phrase_decoys import judged_phrases
from sam2_mcp_worker.checks.phrase_judge import judge_phrases
from sam2_mcp_worker.checks.phrases import REVIEW_MARGIN, likeness, match_phrase, phrase_of
from sam2_mcp_worker.checks.reading import Reading

Verdict = tuple[str, float, str]
"""State (present, altered, review, missing, cannot_tell), score, and what was read and why."""
Judge = Callable[[Sequence[str], Reading], list[Verdict]]
Score = Callable[[str, str], float]

# The field's rule for OCR text (mission.md).
COVERAGE_AT = 0.20
# Between which likeness is for a person to look at (vision.md 6).
SIMILAR_AT, UNLIKE_AT = 0.65, 0.55


def text_of(reading: Reading) -> str:
    """All lines, one after the other."""
    return "\n".join(line.text for _, line in reading.lines())


def coverage(phrase: str, text: str) -> float:
    """The share of the phrase's runs of three characters that stand anywhere in the text, spaces left out."""
    wanted, page = _plain(phrase), _plain(text)
    grams = {wanted[at : at + 3] for at in range(max(1, len(wanted) - 2))}
    return sum(gram in page for gram in grams) / len(grams)


def likeness_of_letters(phrase: str, text: str) -> float:
    """Partial ratio of the letters, with Hangul taken apart."""
    return likeness(phrase_of(phrase), text)


def likeness_of_syllables(phrase: str, text: str) -> float:
    """Partial ratio of the syllables."""
    return fuzz.partial_ratio(_plain(phrase), _plain(text)) / 100


SCORES: dict[str, Score] = {
    "3-gram coverage": coverage,
    "partial ratio, syllables": likeness_of_syllables,
    "partial ratio, letters": likeness_of_letters,
}


def by_coverage(phrases: Sequence[str], reading: Reading) -> list[Verdict]:
    """Coverage alone, at the field's threshold."""
    text = text_of(reading)
    scores = [coverage(phrase, text) for phrase in phrases]
    return [("present" if score >= COVERAGE_AT else "missing", score, "") for score in scores]


def by_likeness(phrases: Sequence[str], reading: Reading) -> list[Verdict]:
    """Likeness of the letters alone."""
    text = text_of(reading)
    scores = [likeness_of_letters(phrase, text) for phrase in phrases]
    return [
        ("present" if score >= SIMILAR_AT else "review" if score >= UNLIKE_AT else "missing", score, "")
        for score in scores
    ]


def by_match(phrases: Sequence[str], reading: Reading) -> list[Verdict]:
    """`match_phrase` over all lines: what frames of videos are judged by."""
    lines = [line.text for _, line in reading.lines()]
    found = [match_phrase(phrase_of(phrase), lines) for phrase in phrases]
    return [
        ("missing" if match.state == "absent" else match.state, match.score, f"{match.read_as} {match.differences}")
        for match in found
    ]


def by_judge(phrases: Sequence[str], reading: Reading, present_at: float | None = None) -> list[Verdict]:
    """The judge of check_phrases; with one likeness for all phrases instead of each its own, to see what it decides."""
    judged = judged_phrases(phrases)
    if present_at is not None:
        judged = tuple(replace(one, present_at=present_at, absent_below=present_at - REVIEW_MARGIN) for one in judged)
    found = judge_phrases(judged, reading)
    return [
        (finding.state, finding.score, f"{finding.read_as} {finding.differences} {finding.reason}") for finding in found
    ]


JUDGES: dict[str, Judge] = {
    "coverage alone": by_coverage,
    "likeness alone": by_likeness,
    "match_phrase": by_match,
    "judge_phrases": by_judge,
}


# The judge with one threshold for all phrases.
THRESHOLDS = (0.55, 0.65, 0.75)
SWEEP: dict[str, Judge] = {f"judge_phrases at {at:.2f}": partial(by_judge, present_at=at) for at in THRESHOLDS}


def _plain(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).casefold().split())
