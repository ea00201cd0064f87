"""Syllable by syllable: which words of a phrase stand at a place as others, so that likeness does not pass them over.

A slip of reading turns a syllable into one that looks like it; another word shares next to nothing ("해지" and "만기").
Owns that comparison. Tokens are compared by phrase_places.py and left out here.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz
from rapidfuzz.distance import Levenshtein, Opcode

from sam2_mcp_worker.checks.phrase_extent import extent_of
from sam2_mcp_worker.checks.phrase_letters import LetterLines, letters
from sam2_mcp_worker.checks.phrase_places import Place
from sam2_mcp_worker.checks.phrase_tokens import Token, tokens_of

# Of the letters of two syllables side by side: look-alikes keep at least half of theirs, two words that happen to be
# as long a third.
_KEPT_LEAST = 0.4
# A single syllable that was misread keeps some of its letters; another one may keep none.
_SHARED_BY_SLIP = 0.1
# The last two syllables say how a sentence ends ("합니다", "하지 않습니다"): more of them must be there than by chance.
_ENDING_KEPT = 0.6
# What stands in the middle of a phrase and is none of it, in letters: two syllables, as "지 않" in "지급하지 않습니다".
_ADDED_LETTERS = 5
# Syllables beside a negation: they change with it ("될 수 있", "되지 않").
_NEAR_NEGATION = 3
# Particles may be others by the rules of spelling or by habit; they change no meaning.
_PARTICLES = frozenset("은는이가을를와과의에도로")
# One syllable says yes or no: misread, it may have been the other one ("없" read as "엇").
AFFIRMATIONS = frozenset("있")


@dataclass(frozen=True, slots=True)
class Syllable:
    """A character that counts, where it stands in its text and among the letters, and the token that holds it."""

    char: str
    at: int
    start: int
    end: int
    token: Token | None


@functools.lru_cache(maxsize=512)  # the phrases of a few rule packs
def syllables_of(text: str) -> tuple[Syllable, ...]:
    """The characters of a text (in NFKC) that count."""
    return tuple(_syllables(text, tokens_of(text), 0))


def _syllables(text: str, tokens: Sequence[Token], offset: int) -> Iterator[Syllable]:
    """`offset` is where the text begins in the one whose tokens these are."""
    held = {index - offset: token for token in tokens for index in range(token.start, token.end)}
    start = 0
    for at, char in enumerate(text):
        end = start + len(letters(char))
        if end > start:
            yield Syllable(char, at, start, end, held.get(at))
        start = end


class Alignment:
    """A phrase (in NFKC) laid against a place, letter by letter.

    `lines` are the lines it touches, `first` and `last` the characters where it begins and ends.
    """

    def __init__(self, phrase: str, page: LetterLines, place: Place) -> None:
        self._wanted = syllables_of(phrase)
        before = _joined(self._wanted)
        start, end = extent_of(before, page, place)
        self.lines = page.lines_between(start, end)
        self.first, self.last = page.character_of(start), page.character_of(end - 1) + 1
        self._tokens = [token for token in page.tokens if token.end > self.first and token.start < self.last]
        self._found = tuple(_syllables(page.text[self.first : self.last], self._tokens, self.first))  # whole syllables
        self._ops = list(Levenshtein.opcodes(before, _joined(self._found)))
        self._kept = _kept(self._wanted, self._ops)

    @property
    def tokens(self) -> list[Token]:
        """The tokens that stand there."""
        return self._tokens

    @property
    def text(self) -> str:
        """What stands there, without spaces."""
        return "".join(one.char for one in self._found)

    @property
    def context(self) -> float:
        """How alike the phrase and the place are without their tokens, 0-1."""
        plain, other = (_joined([one for one in text if one.token is None]) for text in (self._wanted, self._found))
        return fuzz.ratio(plain, other) / 100 if plain else 1.0

    @property
    def plain_letters(self) -> int:
        """How many letters of the phrase are of no token."""
        return sum(one.end - one.start for one in self._wanted if one.token is None)

    def stands_for(self, token: Token) -> str:
        """The text that stands where a token of the phrase should."""
        held = [index for index, one in enumerate(self._wanted) if one.token == token]
        return self._stands(*self._span(range(held[0], held[-1] + 1)))

    def under(self, token: Token) -> tuple[str, float]:
        """The syllables of the phrase in whose place a new token stands, and the least share of letters one keeps.

        None and 1.0 where it was only added.
        """
        held = [one for one in self._found if one.token == token]
        ops = [op for op in self._ops if op.dest_start < held[-1].end and op.dest_end > held[0].start]
        first = min(op.src_start + max(0, held[0].start - op.dest_start) for op in ops)
        last = max(op.src_end - max(0, op.dest_end - held[-1].end) for op in ops)
        shares = zip(self._kept, self._wanted, strict=True)
        under = [(one.char, share) for share, one in shares if one.start < last and one.end > first]
        return "".join(char for char, _ in under), min((share for _, share in under), default=1.0)

    def kept(self, token: Token) -> float:
        """The share of the letters of a token of the phrase that stand there, by its best syllable."""
        shares = zip(self._kept, self._wanted, strict=True)
        return max((share for share, one in shares if one.token == token), default=0.0)

    def swapped(self, tokens_differ: bool, slips: bool) -> tuple[str, ...]:
        """Words that stand there as others, "해지 -> 만기" each.

        Where tokens differ, what stands beside a negation changes with it. `slips` tells whether syllables may have
        been misread.
        """
        gaps = [
            run for run in _gaps(self._wanted, self._kept, slips) if not tokens_differ or not self._by_negation(run)
        ]
        if slips:
            gaps = [run for run in gaps if len(run) > 1 or self._is_other(run)]
        said = [f"{_said(self._wanted, run)} -> {self._stands(*self._span(run)) or '(nothing)'}" for run in gaps]
        if not tokens_differ:
            said += [f"(nothing) -> {self._stands(*added)}" for added in self._added()]
        return tuple(said)

    def _is_other(self, run: range) -> bool:
        """Whether one syllable alone is another one, also where it may have been misread: "보험|금", "보험|료"."""
        char, stands = self._wanted[run.start].char, self._stands(*self._span(run))
        return char in AFFIRMATIONS or (len(stands) == 1 and "가" <= stands <= "힣")

    def _by_negation(self, run: range) -> bool:
        start, stop = max(0, run.start - _NEAR_NEGATION), run.stop + _NEAR_NEGATION
        if any(one.token and one.token.negation for one in self._wanted[start:stop]):
            return True
        first, last = self._span(run)
        near = [index for index, one in enumerate(self._found) if one.start < last and one.end > first]
        if not near:
            return False
        around = self._found[max(0, near[0] - _NEAR_NEGATION) : near[-1] + 1 + _NEAR_NEGATION]
        return any(one.token and one.token.negation for one in around)

    def _span(self, run: range) -> tuple[int, int]:
        """The letters of the place that stand for some syllables of the phrase."""
        start, end = self._wanted[run.start].start, self._wanted[run.stop - 1].end
        spans = [
            (op.dest_start + max(0, start - op.src_start), op.dest_end - max(0, op.src_end - end))
            for op in self._ops
            if op.src_start < end and op.src_end > start
        ]
        return min(span[0] for span in spans), max(span[1] for span in spans)

    def _stands(self, start: int, end: int) -> str:
        return "".join(one.char for one in self._found if one.start < end and one.end > start)

    def _added(self) -> Iterator[tuple[int, int]]:
        """What stands in the middle of the phrase and is none of it."""
        length = self._wanted[-1].end
        for first, last in _unlike_stretches(self._ops):
            more = (last.dest_end - first.dest_start) - (last.src_end - first.src_start)
            if more >= _ADDED_LETTERS and first.src_start > 0 and last.src_end < length:
                yield first.dest_start, last.dest_end


def _unlike_stretches(ops: Sequence[Opcode]) -> Iterator[tuple[Opcode, Opcode]]:
    """The first and last operation of what differs, single letters that happen to be the same included."""
    run: list[Opcode] = []
    for op in ops:
        if op.tag != "equal":
            run.append(op)
        elif run and op.src_end - op.src_start > 1:
            yield run[0], run[-1]
            run = []
    if run:
        yield run[0], run[-1]


def _joined(syllables: Sequence[Syllable]) -> str:
    return "".join(letters(syllable.char) for syllable in syllables)


def _kept(wanted: Sequence[Syllable], ops: Sequence[Opcode]) -> tuple[float, ...]:
    """For each syllable the share of its letters that stand there."""
    stands = {index for op in ops if op.tag == "equal" for index in range(op.src_start, op.src_end)}
    return tuple(
        sum(index in stands for index in range(syllable.start, syllable.end)) / (syllable.end - syllable.start)
        for syllable in wanted
    )


def _gaps(wanted: Sequence[Syllable], kept: Sequence[float], slips: bool) -> list[range]:
    """Runs of syllables that are too unlike what stands there; one alone that is misread keeps some letters."""
    open_ = [syllable.token is None and syllable.char.isalnum() for syllable in wanted]
    bad: set[int] = set()
    last = max((index for index, syllable in enumerate(wanted) if syllable.char.isalnum()), default=0)
    for index in range(len(wanted)):
        pair = kept[index : index + 2]
        if all(open_[index : index + 2]) and len(pair) == 2 and sum(pair) / 2 < _KEPT_LEAST:
            bad |= {index, index + 1}
        if index == last - 1 and all(open_[index : index + 2]) and sum(pair) / 2 < _ENDING_KEPT:
            bad |= {index, index + 1}
        if slips and wanted[index].char in AFFIRMATIONS and kept[index] < 1.0:
            bad.add(index)
        least = _SHARED_BY_SLIP if slips else _KEPT_LEAST
        if open_[index] and kept[index] < least and wanted[index].char not in _PARTICLES:
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
