"""Places in lines that resemble a phrase, and what its tokens and its parts are there.

Owns where a phrase may stand and what is measured there. What that means is told by phrases.py for frames of a video
and by phrase_look.py for documents.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz

from sam2_mcp_worker.checks.phrase_letters import LetterLines
from sam2_mcp_worker.checks.phrase_tokens import Token

# Places of one phrase in one frame or page that are looked at for the right numbers.
MAX_PLACES = 8
# Slips are spread over a phrase; where one part of it stands there word by word and another not at all, it is another
# phrase with the same ending ("... 제한될 수 있습니다" is 0.69 like such ones). Of parts of PART_LETTERS such others
# have 0.38 at most, present phrases with 15 % of the syllables replaced 0.58 in 95 of 100, with 30 % 0.45.
PART_LETTERS = 24
# Letters by which the edges of a likeness may be off, as a share of the phrase: tokens there may belong to it or not.
# No more than three syllables: in a long phrase the negation of the next sentence would count as its own.
EDGE_SHARE = 0.1
EDGE_MIN_LETTERS = 4
EDGE_MAX_LETTERS = 9
# A negation that turns the last word of a phrase stands this near behind it: "지급하|지 않습니다", "보장 아님".
DENIED_CHARS = 3
# What ends a sentence, a clause or a line.
_ENDS = frozenset(".,!?;:)]|/\n")


@dataclass(frozen=True, slots=True)
class Place:
    """Letters `start` to before `end` of some lines, and how like the phrase they are, 0-1."""

    score: float
    start: int
    end: int


def places(wanted: str, page: str, at_least: float) -> Iterator[Place]:
    """The places whose likeness is `at_least`: those that are the same first, then the more alike ones.

    From a likeness of 1.0 on only those that are the same are looked for.
    """
    start = page.find(wanted) if wanted else -1
    left = page
    while start >= 0:
        yield Place(1.0, start, start + len(wanted))
        left = _without(left, start, start + len(wanted))
        start = page.find(wanted, start + 1)
    if at_least >= 1.0:
        return
    blank = _blank(wanted)
    padded = blank + left + blank
    while found := fuzz.partial_ratio_alignment(wanted, padded, score_cutoff=100 * at_least):
        start, end = found.dest_start - len(blank), found.dest_end - len(blank)
        yield Place(found.score / 100, max(0, start), min(len(page), end))
        padded = _without(padded, found.dest_start, found.dest_end)


def most_places(wanted: str, page: str, at_least: float) -> Iterator[Place]:
    """The first MAX_PLACES of them."""
    return itertools.islice(places(wanted, page, at_least), MAX_PLACES)


def letter_likeness(wanted: str, page: str) -> float:
    """How alike the wanted letters and the place that is most like them are, 0-1."""
    blank = _blank(wanted)
    return fuzz.partial_ratio(wanted, blank + page + blank) / 100


def _blank(wanted: str) -> str:
    """To stand around a page: else only that part of the phrase is compared which reaches over the page's edge."""
    return "\0" * len(wanted)


def _without(page: str, start: int, end: int) -> str:
    return page[:start] + "\0" * (end - start) + page[end:]


def weakest_part(wanted: str, page: LetterLines, place: Place) -> float:
    """The likeness of that part of the phrase which is least like what stands at its place."""
    parts = max(1, round(len(wanted) / PART_LETTERS))
    bounds = [len(wanted) * part // parts for part in range(parts + 1)]
    found = page.letters[place.start : place.end] + "\0" * PART_LETTERS
    slack = PART_LETTERS // 2
    return min(
        fuzz.partial_ratio(wanted[one:two], "\0" * PART_LETTERS + found[max(0, one - slack) : two + slack]) / 100
        for one, two in itertools.pairwise(bounds)
    )


def edge_letters(wanted: str) -> int:
    """By how many letters the edges of a place may be off."""
    return min(EDGE_MAX_LETTERS, max(EDGE_MIN_LETTERS, round(EDGE_SHARE * len(wanted))))


def other_tokens(wanted: str, tokens: Sequence[Token], page: LetterLines, place: Place) -> list[Token] | None:
    """None where the tokens of the phrase stand there in order and no other is deep inside the place; else those."""
    edge = edge_letters(wanted)
    start, end, last = place.start, place.end, len(page.letters) - 1
    near = page.tokens_between(max(0, start - edge), min(last, end - 1 + edge))
    deep = page.tokens_between(min(last, start + edge), max(0, end - 1 - edge))
    values = [token.value for token in tokens]
    for begin in range(len(near) - len(values) + 1):
        taken = near[begin : begin + len(values)]
        if [token.value for token in taken] == values and all(token in taken for token in deep):
            return None
    return page.tokens_between(start, end - 1)


def turned(tokens: Sequence[Token], page: LetterLines, first: int, last: int) -> tuple[str, ...]:
    """Negations that the phrase lacks and that stand in it, or in front of it without a space: "비갱신형".

    `first` and `last` are the characters of the text where the place begins and ends.
    """
    found = [token for token in _new_negations(tokens, page) if token.start < last and token.end >= first]
    return tuple(f"(nothing) -> {token.text}" for token in found)


def denied(tokens: Sequence[Token], page: LetterLines, last: int) -> tuple[str, ...]:
    """Negations that the phrase lacks and that stand right behind it in the same line and sentence: "보장 아님"."""
    if page.text[last - 1] in _ENDS:
        return ()
    return tuple(
        f"(nothing) -> {token.text}"
        for token in _new_negations(tokens, page)
        if last <= token.start <= last + DENIED_CHARS and not _ENDS & set(page.text[last : token.start])
    )


def _new_negations(tokens: Sequence[Token], page: LetterLines) -> list[Token]:
    wanted = {token.value for token in tokens if token.negation}
    return [token for token in page.tokens if token.negation and token.value not in wanted]
