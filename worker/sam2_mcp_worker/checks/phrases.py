"""Whether a phrase stands in text that was read by OCR: there, there but altered, perhaps, or not.

Owns likeness over slips of reading, and the exact look at what likeness cannot see (`phrase_tokens`). Refuses to know
where lines come from. Measured on Korean text with 0-60 % of its syllables misread (reference/vision.md 6): likeness of
the letters, with Hangul taken apart, keeps present phrases apart from absent ones up to 45 %.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rapidfuzz import fuzz

from sam2_mcp_worker.checks.phrase_tokens import Token, differences, only_units_lost, opposed, tokens_of
from sam2_mcp_worker.errors import WorkerError

# Likeness of phrases of LONG_LETTERS and more (vision.md 6: present with 45 % of the syllables wrong 0.65 at least,
# absent 0.52 at most).
PRESENT = 0.65
# What lies between this and "present" is for a person to look at.
REVIEW_MARGIN = 0.10
# Shorter phrases resemble something in any page by chance: 95 % of absent ones stay below 0.86 with 8 letters, 0.76
# with 20, 0.60 with 49 (halves of one Korean text against each other). Below SHORT_LETTERS only the exact text counts.
LONG_LETTERS = 40
SHORT_LETTERS = 8
PRESENT_SHORT = 0.90
# Slips are spread over a phrase; where one part of it stands there word by word and another not at all, it is another
# phrase with the same ending ("... 제한될 수 있습니다" is 0.69 like such ones). Parts of PART_LETTERS: of such others
# 0.38 at most, of present phrases with 15 % of the syllables replaced 0.58 in 95 of 100, with 30 % 0.45.
PART_LETTERS = 24
PART_PRESENT = 0.42
# In text that was read so badly, other numbers and negations are as likely slips (vision.md 6: phrases that differ in
# nothing else are 0.79 alike and more).
ALTERED = 0.75
# Letters by which the edges of a likeness may be off, as a share of the phrase: tokens there may belong to it or not.
EDGE_SHARE = 0.1
EDGE_MIN_LETTERS = 4
# The longest mandatory wording known (protection of deposits) has 190 characters.
MAX_PHRASE_CHARS = 300
MAX_PHRASES = 20
# A negation that turns the last word of a phrase stands this near behind it: "지급하|지 않습니다", "보장 아님".
DENIED_CHARS = 3
# What ends a sentence, a clause or a line.
_ENDS = frozenset(".,!?;:)]|/\n")
# Places of one phrase in one frame that are looked at for the right numbers.
MAX_PLACES = 8

MatchState = Literal["present", "altered", "review", "absent"]


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase made ready: its letters, its tokens, and the likeness from which it counts."""

    text: str
    letters: str
    tokens: tuple[Token, ...]
    present_at: float
    review_at: float


@dataclass(frozen=True, slots=True)
class PhraseMatch:
    """What became of a phrase in some lines: `lines` are the indices of those it touches, `read_as` the text there.

    `score` 0-1 is how alike the letters are; `differences` name tokens that are not the same ("1억 -> 5천만").
    """

    state: MatchState
    score: float
    lines: tuple[int, ...] = ()
    read_as: str = ""
    differences: tuple[str, ...] = ()


def checked_phrases(phrases: Sequence[str]) -> tuple[Phrase, ...]:
    """Phrases as they come from a caller, made ready.

    Raises:
        WorkerError: phrase_invalid, too_many_phrases.
    """
    if len(phrases) > MAX_PHRASES:
        raise WorkerError(
            "too_many_phrases",
            f"{len(phrases)} phrases were asked for",
            rule=f"at most {MAX_PHRASES} in one call",
            next_step="ask for the rest in a further call; what was read is kept, so that costs nothing",
        )
    return tuple(_checked(phrase) for phrase in phrases)


def _checked(text: str) -> Phrase:
    if len(text) > MAX_PHRASE_CHARS:
        raise _invalid(f"the phrase {text[:40]!r}... has {len(text)} characters")
    phrase = phrase_of(text)
    if not any(character.isalnum() for character in phrase.letters):
        raise _invalid(f"the phrase {text[:40].encode('ascii', 'backslashreplace').decode('ascii')!r} has no letters")
    return phrase


def _invalid(what: str) -> WorkerError:
    return WorkerError(
        "phrase_invalid",
        what,
        rule=f"1-{MAX_PHRASE_CHARS} characters with at least one letter or digit",
        next_step="give each phrase as it should be read on screen, without line breaks or wildcards",
    )


def phrase_of(text: str) -> Phrase:
    """A phrase made ready. Short ones must be more alike than long ones."""
    shown = " ".join(unicodedata.normalize("NFC", text).split())
    found = letters(shown)
    short = (LONG_LETTERS - min(max(len(found), SHORT_LETTERS), LONG_LETTERS)) / (LONG_LETTERS - SHORT_LETTERS)
    present_at = PRESENT + short * (PRESENT_SHORT - PRESENT)
    review_at = present_at - REVIEW_MARGIN
    if len(found) < SHORT_LETTERS:
        present_at = review_at = 1.0
    return Phrase(shown, found, tuple(tokens_of(unicodedata.normalize("NFKC", shown))), present_at, review_at)


# Lines and single characters of one long video; an entry is some 300 bytes.
@functools.lru_cache(maxsize=32768)
def letters(text: str) -> str:
    """What is compared: NFKC, without case, white space and invisible characters; Hangul syllables taken apart."""
    composed = _composed(text).casefold()
    if not composed.isprintable():  # of what is not, most is invisible; the rest is told apart slowly
        composed = "".join(char for char in composed if unicodedata.category(char) not in ("Cf", "Cc"))
    return unicodedata.normalize("NFD", "".join(composed.split()))


def match_phrase(phrase: Phrase, lines: Sequence[str]) -> PhraseMatch:
    """The place in the lines, read one after the other, that resembles the phrase most.

    Of several places one where its tokens are the same comes first: "2억원" may stand above "1억원".
    """
    page = _Page(lines)
    best = PhraseMatch("absent", 0.0)
    for place in itertools.islice(_places(phrase, page.letters), MAX_PLACES):
        match = _described(phrase, page, *place)
        if match.state == "present":
            return match
        if best.state == "absent" or (match.state == "altered" and best.state == "review"):
            best = match
    return best


def likeness(phrase: Phrase, text: str) -> float:
    """How alike the phrase and the place of the text that is most like it are, 0-1."""
    blank = _blank(phrase)
    return fuzz.partial_ratio(phrase.letters, blank + letters(text) + blank) / 100


def _blank(phrase: Phrase) -> str:
    """To stand around a page: else only that part of the phrase is compared which reaches over the page's edge."""
    return "\0" * len(phrase.letters)


def _places(phrase: Phrase, page: str) -> Iterator[tuple[float, int, int]]:
    """Likeness, start and end of places, those that are the same first, then the more alike ones."""
    start = page.find(phrase.letters) if phrase.letters else -1
    while start >= 0:
        yield 1.0, start, start + len(phrase.letters)
        start = page.find(phrase.letters, start + 1)
    if len(phrase.letters) < SHORT_LETTERS:
        return
    blank = _blank(phrase)
    padded = blank + page + blank
    while True:
        found = fuzz.partial_ratio_alignment(phrase.letters, padded, score_cutoff=100 * phrase.review_at)
        if found is None:
            return
        start, end = found.dest_start - len(blank), found.dest_end - len(blank)
        yield found.score / 100, max(0, start), min(len(page), end)
        padded = padded[: found.dest_start] + blank[: end - start] + padded[found.dest_end :]


def _described(phrase: Phrase, page: _Page, score: float, start: int, end: int) -> PhraseMatch:
    lines = tuple(range(page.line_of(start), page.line_of(end - 1) + 1))
    first, last = page.character_of(start), page.character_of(end - 1) + 1
    read_as = " ".join(page.text[first:last].split())
    if score < phrase.present_at or (score < 1.0 and _weakest_part(phrase, page, start, end) < PART_PRESENT):
        return PhraseMatch("review", score, lines, read_as)
    others = _other_tokens(phrase, page, start, end)
    if others is None:
        unlike = opposed(phrase.text, read_as) or _turned(phrase, page, first, last)
        if not unlike:
            denied = _denied(phrase, page, last)
            return PhraseMatch("review" if denied else "present", score, lines, read_as, denied)
        return PhraseMatch("altered" if score >= ALTERED else "review", score, lines, read_as, unlike)
    doubtful = score < ALTERED or only_units_lost(phrase.tokens, others)
    unlike = differences(phrase.tokens, others)
    return PhraseMatch("review" if doubtful else "altered", score, lines, read_as, unlike)


def _weakest_part(phrase: Phrase, page: _Page, start: int, end: int) -> float:
    """The likeness of that part of the phrase which is least like what stands at its place."""
    parts = max(1, round(len(phrase.letters) / PART_LETTERS))
    bounds = [len(phrase.letters) * part // parts for part in range(parts + 1)]
    found = page.letters[start:end] + "\0" * PART_LETTERS
    slack = PART_LETTERS // 2
    return min(
        fuzz.partial_ratio(phrase.letters[one:two], "\0" * PART_LETTERS + found[max(0, one - slack) : two + slack])
        / 100
        for one, two in itertools.pairwise(bounds)
    )


def _other_tokens(phrase: Phrase, page: _Page, start: int, end: int) -> list[Token] | None:
    """None where the tokens of the phrase stand there in order and no other is deep inside the place; else those."""
    edge = max(EDGE_MIN_LETTERS, round(EDGE_SHARE * len(phrase.letters)))
    last = len(page.letters) - 1
    near = _between(page, max(0, start - edge), min(last, end - 1 + edge))
    deep = _between(page, min(last, start + edge), max(0, end - 1 - edge))
    wanted = [token.value for token in phrase.tokens]
    for begin in range(len(near) - len(wanted) + 1):
        taken = near[begin : begin + len(wanted)]
        if [token.value for token in taken] == wanted and all(token in taken for token in deep):
            return None
    return _between(page, start, end - 1)


def _turned(phrase: Phrase, page: _Page, first: int, last: int) -> tuple[str, ...]:
    """Negations that the phrase lacks and that stand in it, or in front of it without a space: "비갱신형"."""
    found = [token for token in _new_negations(phrase, page) if token.start < last and token.end >= first]
    return tuple(f"(nothing) -> {token.text}" for token in found)


def _denied(phrase: Phrase, page: _Page, last: int) -> tuple[str, ...]:
    """Negations that the phrase lacks and that stand right behind it in the same line and sentence: "보장 아님"."""
    return tuple(
        f"(nothing) -> {token.text}"
        for token in _new_negations(phrase, page)
        if last <= token.start <= last + DENIED_CHARS and not _ENDS & set(page.text[last : token.start])
    )


def _new_negations(phrase: Phrase, page: _Page) -> list[Token]:
    wanted = {token.value for token in phrase.tokens if token.negation}
    return [token for token in page.tokens if token.negation and token.value not in wanted]


def _between(page: _Page, first: int, last: int) -> list[Token]:
    """The tokens that lie between two letters, or reach over one of them."""
    start, end = page.character_of(first), page.character_of(last)
    return [token for token in page.tokens if token.end > start and token.start <= end]


class _Page:
    """Lines as one text and as letters. Where a letter stands is only worked out for places that were found."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._texts = [_composed(line) for line in lines]
        parts = [letters(line) for line in lines]
        self._letter_starts = list(itertools.accumulate(map(len, parts), initial=0))
        self.letters = "".join(parts)

    @functools.cached_property
    def text(self) -> str:
        """The lines in NFKC, each on its own line."""
        return "\n".join(self._texts)

    @functools.cached_property
    def tokens(self) -> list[Token]:
        """The tokens of `text`."""
        return tokens_of(self.text)

    def line_of(self, letter: int) -> int:
        """The index of the line that holds a letter."""
        return bisect.bisect_right(self._letter_starts, letter) - 1

    def character_of(self, letter: int) -> int:
        """The index in `text` of the character that a letter comes from."""
        line = self.line_of(letter)
        before = sum(len(text) + 1 for text in self._texts[:line])
        return before + _characters_of(self._texts[line])[letter - self._letter_starts[line]]


def _composed(text: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFC", text))


@functools.lru_cache(maxsize=2048)  # lines around the phrases of one document
def _characters_of(text: str) -> tuple[int, ...]:
    """For each letter of a line in NFKC, the index of the character it comes from."""
    return tuple(index for index, char in enumerate(text) for _ in letters(char))
