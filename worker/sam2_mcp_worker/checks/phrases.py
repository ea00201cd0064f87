"""Whether a phrase stands in text that was read by OCR: there, there but altered, perhaps, or not.

Owns likeness over slips of reading, and the exact look at what likeness cannot see (`phrase_tokens`). Refuses to know
where lines come from. Measured on Korean text with 0-60 % of its syllables misread (reference/vision.md 6): likeness of
the letters, with Hangul taken apart, keeps present phrases apart from absent ones up to 45 %.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sam2_mcp_worker.checks.phrase_letters import LetterLines, composed_of, letters
from sam2_mcp_worker.checks.phrase_places import (
    Place,
    denied,
    letter_likeness,
    most_places,
    other_tokens,
    turned,
    weakest_part,
)
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
# The weakest part (phrase_places.PART_LETTERS) of a phrase that is present.
PART_PRESENT = 0.42
# In text that was read so badly, other numbers and negations are as likely slips (vision.md 6: phrases that differ in
# nothing else are 0.79 alike and more).
ALTERED = 0.75
# The longest mandatory wording known (protection of deposits) has 190 characters.
MAX_PHRASE_CHARS = 300
MAX_PHRASES = 20

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
    present_at = present_from(len(found))
    review_at = present_at - REVIEW_MARGIN if present_at < 1.0 else 1.0
    return Phrase(shown, found, tuple(tokens_of(composed_of(shown))), present_at, review_at)


def present_from(length: int) -> float:
    """The likeness from which that many letters count as the same."""
    if length < SHORT_LETTERS:
        return 1.0
    short = (LONG_LETTERS - min(length, LONG_LETTERS)) / (LONG_LETTERS - SHORT_LETTERS)
    return PRESENT + short * (PRESENT_SHORT - PRESENT)


def match_phrase(phrase: Phrase, lines: Sequence[str]) -> PhraseMatch:
    """The place in the lines, read one after the other, that resembles the phrase most.

    Of several places one where its tokens are the same comes first: "2억원" may stand above "1억원".
    """
    page = LetterLines(lines)
    best = PhraseMatch("absent", 0.0)
    for place in most_places(phrase.letters, page.letters, phrase.review_at):
        match = _described(phrase, page, place)
        if match.state == "present":
            return match
        if best.state == "absent" or (match.state == "altered" and best.state == "review"):
            best = match
    return best


def likeness(phrase: Phrase, text: str) -> float:
    """How alike the phrase and the place of the text that is most like it are, 0-1."""
    return letter_likeness(phrase.letters, letters(text))


def _described(phrase: Phrase, page: LetterLines, place: Place) -> PhraseMatch:
    score, lines = place.score, page.lines_between(place.start, place.end)
    first, last = page.character_of(place.start), page.character_of(place.end - 1) + 1
    read_as = " ".join(page.text[first:last].split())
    if score < phrase.present_at or (score < 1.0 and weakest_part(phrase.letters, page, place) < PART_PRESENT):
        return PhraseMatch("review", score, lines, read_as)
    others = other_tokens(phrase.letters, phrase.tokens, page, place)
    if others is None:
        unlike = opposed(phrase.text, read_as) or turned(phrase.tokens, page, first, last)
        if not unlike:
            after = denied(phrase.tokens, page, last)
            return PhraseMatch("review" if after else "present", score, lines, read_as, after)
        return PhraseMatch("altered" if score >= ALTERED else "review", score, lines, read_as, unlike)
    doubtful = score < ALTERED or only_units_lost(phrase.tokens, others)
    unlike = differences(phrase.tokens, others)
    return PhraseMatch("review" if doubtful else "altered", score, lines, read_as, unlike)
