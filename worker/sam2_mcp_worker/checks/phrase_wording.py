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
from rapidfuzz.distance import Indel, Levenshtein, Opcode

from sam2_mcp_worker.checks.phrase_letters import LetterLines, letters
from sam2_mcp_worker.checks.phrase_places import Place
from sam2_mcp_worker.checks.phrase_tokens import Token, tokens_of

# Of the letters of two syllables side by side: look-alikes keep at least half of theirs, two words that happen to be
# as long a third.
_KEPT_LEAST = 0.4
# The last two syllables say how a sentence ends ("합니다", "하지 않습니다"): more of them must be there than by chance.
_ENDING_KEPT = 0.6
# What stands in the middle of a phrase and is none of it, in letters: two syllables, as "지 않" in "지급하지 않습니다".
_ADDED_LETTERS = 5
# Syllables beside a negation: they change with it ("될 수 있", "되지 않").
_NEAR_NEGATION = 3
# A place is as long as the phrase: where words were added, the end of the phrase stands this far behind it.
_REACH_LETTERS = 16
# Of the letters of a line at the edge of a place at least half are the phrase's: with 45 % of the syllables misread two
# thirds are, of another text a third.
_LINE_SHARE = 0.5
# So many of its last letters tell where a phrase ends ("ㅂ니다", "지 않습니다").
_TAIL_LETTERS = 6
# Runs of letters that are no chance: a syllable and more.
_STRONG_LETTERS = 4
# Particles may be others by the rules of spelling or by habit; they change no meaning.
_PARTICLES = frozenset("은는이가을를와과의에도로")
# One syllable says yes or no: misread, it may have been the other one ("없" read as "엇").
_AFFIRMATIONS = frozenset("있")
# Runs of syllables, as the field counts them.
_GRAM_SYLLABLES = 3


@dataclass(frozen=True, slots=True)
class Syllable:
    """A character that counts, where it stands in its text and among the letters, and the token that holds it."""

    char: str
    at: int
    start: int
    end: int
    token: Token | None


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
    held = {index - offset: token for token in tokens for index in range(token.start, token.end)}
    start = 0
    for at, char in enumerate(text):
        end = start + len(letters(char))
        if end > start:
            yield Syllable(char, at, start, end, held.get(at))
        start = end


class Alignment:
    """A phrase (in NFKC) laid against a place, letter by letter.

    `lines` are the lines it touches, `first` and `last` the characters where it begins and ends: nearer than the place, whose
    length is that of the phrase even where words were added or left out.
    """

    def __init__(self, phrase: str, page: LetterLines, place: Place) -> None:
        start, end = max(0, place.start - _REACH_LETTERS), min(len(page.letters), place.end + _REACH_LETTERS)
        self._wanted = syllables_of(phrase)
        before = _joined(self._wanted)
        start, end = _trimmed(before, page.letters[start:end], start)
        start, end = _without_strange_lines(before, page, start, end)
        self.lines = page.lines_between(start, end)
        self.first, self.last = page.character_of(start), page.character_of(end - 1) + 1
        self._tokens = [token for token in page.tokens if token.end > self.first and token.start < self.last]
        self._found = tuple(_syllables(page.text[self.first : self.last], self._tokens, self.first))
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

    def kept_under(self, token: Token) -> float:
        """The share of their letters that those syllables of the phrase keep in whose place a new token stands."""
        held = [one for one in self._found if one.token == token]
        ops = [op for op in self._ops if op.dest_start < held[-1].end and op.dest_end > held[0].start]
        first = min(op.src_start + max(0, held[0].start - op.dest_start) for op in ops)
        last = max(op.src_end - max(0, op.dest_end - held[-1].end) for op in ops)
        under = [
            share for share, one in zip(self._kept, self._wanted, strict=True) if one.start < last and one.end > first
        ]
        return min(under, default=0.0)

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
        said = [f"{_said(self._wanted, run)} -> {self._stands(*self._span(run)) or '(nothing)'}" for run in gaps]
        if not tokens_differ:
            said += [f"(nothing) -> {self._stands(*added)}" for added in self._added()]
        return tuple(said)

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


def _trimmed(wanted: str, around: str, start: int) -> tuple[int, int]:
    """From where to where a phrase reaches within some letters, the first of which is letter `start` of the page."""
    equal = [op for op in Indel.opcodes(wanted, around) if op.tag == "equal"]
    longest = max(op.src_end - op.src_start for op in equal)
    strong = [op for op in equal if op.src_end - op.src_start >= min(longest, _STRONG_LETTERS)]
    first = max(0, strong[0].dest_start - strong[0].src_start)
    return start + first, start + _end(wanted[strong[-1].src_end :], around, strong[-1].dest_end)


def _without_strange_lines(wanted: str, page: LetterLines, start: int, end: int) -> tuple[int, int]:
    """The stretch without its first and last line where little of those is the phrase's: a headline above it."""
    first, last = page.line_of(start), page.line_of(end - 1)
    if first == last:
        return start, end
    ops = [op for op in Levenshtein.opcodes(wanted, page.letters[start:end]) if op.tag == "equal"]
    head, tail = page.start_of(first + 1), page.start_of(last)
    if _equal(ops, 0, head - start) < _LINE_SHARE * (head - start):
        start = head
    if tail > start and _equal(ops, tail - start, end - start) < _LINE_SHARE * (end - tail):
        end = tail
    return start, end


def _equal(ops: Sequence[Opcode], first: int, last: int) -> int:
    """How many letters from `first` to before `last` of the place are the phrase's."""
    return sum(max(0, min(op.dest_end, last) - max(op.dest_start, first)) for op in ops)


def _end(rest: str, around: str, begin: int) -> int:
    """Where the rest of a phrase ends that goes on at `begin`: with its last letters, or where it is as long."""
    plain = rest.rstrip("".join(char for char in rest if not char.isalnum()))
    for length in range(min(_TAIL_LETTERS, len(plain)), _STRONG_LETTERS - 1, -1):
        at = around.find(plain[-length:], begin)
        if at >= 0:
            return at + length
    return min(len(around), begin + len(rest))


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
    """Runs of syllables that are too unlike what stands there; one alone only where nothing is misread."""
    open_ = [syllable.token is None and syllable.char.isalnum() for syllable in wanted]
    bad: set[int] = set()
    last = max((index for index, syllable in enumerate(wanted) if syllable.char.isalnum()), default=0)
    for index in range(len(wanted)):
        pair = kept[index : index + 2]
        if all(open_[index : index + 2]) and len(pair) == 2 and sum(pair) / 2 < _KEPT_LEAST:
            bad |= {index, index + 1}
        if index == last - 1 and all(open_[index : index + 2]) and sum(pair) / 2 < _ENDING_KEPT:
            bad |= {index, index + 1}
        if slips and wanted[index].char in _AFFIRMATIONS and kept[index] < 1.0:
            bad.add(index)
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
