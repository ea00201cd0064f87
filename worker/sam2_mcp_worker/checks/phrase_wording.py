"""Syllable by syllable: which words of a phrase stand at a place as others, so that likeness does not pass them over.

A slip of reading turns a syllable into one that looks like it; another word shares next to nothing ("해지" and "만기").
Owns that comparison. Tokens are compared by phrase_places.py and left out here.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz
from rapidfuzz.distance import Levenshtein, Opcode

from sam2_mcp_worker.checks.phrase_letters import LetterLines, letters
from sam2_mcp_worker.checks.phrase_places import Place, edge_letters
from sam2_mcp_worker.checks.phrase_tokens import Token, tokens_of

# Of the letters of two syllables side by side: look-alikes keep at least half of theirs, two words that happen to be
# as long a third.
_KEPT_LEAST = 0.4
# What stands in the middle of a phrase and is none of it, in letters (two to three syllables).
_ADDED_LETTERS = 7
# Syllables beside a number or negation that differs: they change with it ("될 수 있", "되지 않").
_NEAR_TOKEN = 3
# Particles may be others by the rules of spelling or by habit; they change no meaning.
_PARTICLES = frozenset("은는이가을를와과의에도로")
# Runs of syllables, as the field counts them.
_GRAM_SYLLABLES = 3


@dataclass(frozen=True, slots=True)
class Syllable:
    """A character that counts, where it stands in its text and among the letters, and whether a token holds it."""

    char: str
    at: int
    start: int
    end: int
    token: bool


@dataclass(frozen=True, slots=True)
class Wording:
    """A phrase held against a place.

    `context` is the likeness of what is no token, 0-1; `swapped` are words that stand there as others ("해지 -> 만기");
    `kept` is for each syllable of the phrase the share of its letters that stand there.
    """

    context: float
    swapped: tuple[str, ...]
    kept: tuple[float, ...]


def coverage(phrase: str, text: str) -> float:
    """The share of the phrase's runs of three syllables that stand in the text, 0-1; of a shorter one itself."""
    return gram_share(phrase, grams_of(text))


def gram_share(phrase: str, grams: frozenset[str]) -> float:
    """The same, of runs that were taken from a text by `grams_of`."""
    wanted = grams_of(phrase)
    found = sum(gram in grams or (len(gram) < _GRAM_SYLLABLES and any(gram in one for one in grams)) for gram in wanted)
    return found / len(wanted) if wanted else 0.0


@functools.lru_cache(maxsize=1024)  # pages of a document and the phrases that are looked for
def grams_of(text: str) -> frozenset[str]:
    """The runs of three syllables of a text, without its spaces."""
    plain = unicodedata.normalize("NFC", letters(text))
    last = max(1, len(plain) - _GRAM_SYLLABLES + 1)
    return frozenset(plain[start : start + _GRAM_SYLLABLES] for start in range(last) if plain)


@functools.lru_cache(maxsize=512)  # the phrases of a few rule packs
def syllables_of(text: str) -> tuple[Syllable, ...]:
    """The characters of a text (in NFKC) that count."""
    return tuple(_syllables(text, tokens_of(text), 0))


def _syllables(text: str, tokens: Sequence[Token], offset: int) -> Iterator[Syllable]:
    """`offset` is where the text begins in the one whose tokens these are."""
    held = {index - offset for token in tokens for index in range(token.start, token.end)}
    start = 0
    for at, char in enumerate(text):
        end = start + len(letters(char))
        if end > start:
            yield Syllable(char, at, start, end, at in held)
        start = end


def wording(phrase: str, page: LetterLines, place: Place, tokens_differ: bool, slips: bool) -> Wording:
    """The phrase (in NFKC) held against the place; `slips` tells whether syllables may have been misread."""
    wanted = syllables_of(phrase)
    edge = edge_letters(page.letters[place.start : place.end])
    first = page.character_of(max(0, place.start - edge))
    last = page.character_of(min(len(page.letters), place.end + edge) - 1) + 1
    found = tuple(_syllables(page.text[first:last], page.tokens, first))
    before, after = _joined(wanted), _joined(found)
    ops = list(Levenshtein.opcodes(before, after))
    kept = _kept(wanted, ops)
    loose = _near_tokens(wanted) if tokens_differ else frozenset()
    gaps = [run for run in _gaps(wanted, kept, slips) if not loose & set(run)]
    swapped = [
        f"{_said(wanted, run)} -> {_stands(wanted[run[0]].start, wanted[run[-1]].end, found, ops)}" for run in gaps
    ]
    if not tokens_differ:
        swapped += [f"(nothing) -> {text}" for text in _added(found, ops, range(edge, len(before) - edge))]
    return Wording(_context(wanted, found), tuple(swapped), kept)


def _joined(syllables: Sequence[Syllable]) -> str:
    return "".join(letters(syllable.char) for syllable in syllables)


def _context(wanted: Sequence[Syllable], found: Sequence[Syllable]) -> float:
    """How alike both are without their tokens."""
    plain = _joined([syllable for syllable in wanted if not syllable.token])
    blank = "\0" * len(plain)
    other = _joined([syllable for syllable in found if not syllable.token])
    return fuzz.partial_ratio(plain, blank + other + blank) / 100 if plain else 1.0


def _kept(wanted: Sequence[Syllable], ops: Sequence[Opcode]) -> tuple[float, ...]:
    stands = {index for op in ops if op.tag == "equal" for index in range(op.src_start, op.src_end)}
    return tuple(
        sum(index in stands for index in range(syllable.start, syllable.end)) / (syllable.end - syllable.start)
        for syllable in wanted
    )


def _near_tokens(wanted: Sequence[Syllable]) -> frozenset[int]:
    held = [index for index, syllable in enumerate(wanted) if syllable.token]
    return frozenset(index + step for index in held for step in range(-_NEAR_TOKEN, _NEAR_TOKEN + 1))


def _gaps(wanted: Sequence[Syllable], kept: Sequence[float], slips: bool) -> list[range]:
    """Runs of syllables that are too unlike what stands there; one alone only where nothing is misread."""
    open_ = [not syllable.token and syllable.char.isalnum() for syllable in wanted]
    bad: set[int] = set()
    for index in range(len(wanted)):
        pair = kept[index : index + 2]
        if all(open_[index : index + 2]) and len(pair) == 2 and sum(pair) / 2 < _KEPT_LEAST:
            bad |= {index, index + 1}
        if not slips and open_[index] and kept[index] < _KEPT_LEAST and wanted[index].char not in _PARTICLES:
            bad.add(index)
    return _runs(sorted(bad))


def _runs(indices: Sequence[int]) -> list[range]:
    runs: list[range] = []
    for index in indices:
        if runs and runs[-1].stop == index:
            runs[-1] = range(runs[-1].start, index + 1)
        else:
            runs.append(range(index, index + 1))
    return runs


def _said(wanted: Sequence[Syllable], run: range) -> str:
    return "".join(wanted[index].char for index in run)


def _stands(start: int, end: int, found: Sequence[Syllable], ops: Sequence[Opcode]) -> str:
    """What stands at letters `start` to before `end` of the phrase."""
    spans = [
        (op.dest_start + max(0, start - op.src_start), op.dest_end - max(0, op.src_end - end))
        for op in ops
        if op.src_start < end and op.src_end > start
    ]
    first, last = min(span[0] for span in spans), max(span[1] for span in spans)
    return "".join(one.char for one in found if one.start < last and one.end > first) or "(nothing)"


def _added(found: Sequence[Syllable], ops: Sequence[Opcode], inside: range) -> Iterator[str]:
    """What stands in the middle of the phrase and is none of it; at its edges the place may be off."""
    for op in ops:
        if op.tag == "insert" and op.src_start in inside and op.dest_end - op.dest_start >= _ADDED_LETTERS:
            yield "".join(one.char for one in found if one.start < op.dest_end and one.end > op.dest_start)
