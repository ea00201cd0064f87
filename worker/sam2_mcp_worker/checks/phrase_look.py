"""What a place that resembles a phrase is: the phrase, the phrase with other tokens, or something for a person to see.

Owns how likeness, 3-gram coverage, tokens and single words are weighed against one another at one place. Where places
are, and what all of them together say, is told by phrase_judge.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sam2_mcp_worker.checks.phrase_coverage import coverage
from sam2_mcp_worker.checks.phrase_decoys import JudgedPhrase
from sam2_mcp_worker.checks.phrase_letters import LetterLines, composed_of, letters
from sam2_mcp_worker.checks.phrase_places import (
    Place,
    denied,
    edge_letters,
    letter_likeness,
    turned,
)
from sam2_mcp_worker.checks.phrase_slips import certainly_other
from sam2_mcp_worker.checks.phrase_tokens import differences, opposed, turning
from sam2_mcp_worker.checks.phrase_units import other_units
from sam2_mcp_worker.checks.phrase_wording import AFFIRMATIONS, Alignment
from sam2_mcp_worker.checks.phrases import ALTERED, SHORT_LETTERS, Phrase, present_from

# Text that was not read but stands in the file has no slips: what is less alike is another wording (mission.md).
TEXT_PRESENT = 0.82
# What shares no more than an ending and some words with a phrase is 0.52 like it (vision.md 6), with half of the phrase
# 0.65.
TEXT_ABSENT = 0.65
# Text that was read by OCR also needs the field's coverage of 3-grams: it falls to 0.12 with 30 % of the syllables
# wrong, so that what has less may be anything.
LEAST_COVERAGE = 0.20
# A place that is this much more like another wording is the other one's; nearer ones are for a person.
_RIVAL_MARGIN = 0.10
# The first syllables of words that say the opposite of what follows.
_TURNING = frozenset("비무유미불부")
_NUMERALS = frozenset("일이삼사오육칠팔구십백천만억조一二三四五六七八九十百千萬億壹貳參")
# What takes a sentence back, or quotes it in another one: "있습니다만", "있습니다 라는 말은 사실이 아닙니다",
# '"있습니다"는 옛말'. What is a word of its own as well only does without a space: "있습니다 만 15세부터".
_QUOTED = "\"'”’」』》〉"
_TAKEN_BACK = re.compile(
    rf"(?:만|는|고|란|[\s.{_QUOTED}]*(?:라는|라고|라던)|[{_QUOTED}]+\s?는|[{_QUOTED}]+[만고란은도이가을를와과의])(?=[\s,.]|\Z)"
)
_ALTERED = "the wording stands there with other numbers, amounts, dates or negations"


@dataclass(frozen=True, slots=True)
class Sighting:
    """A place and what it is. `context` is the likeness of what is not altered; `lines` are indices into the lines."""

    state: Literal["present", "altered", "review"]
    reason: str
    score: float
    context: float
    coverage: float
    lines: tuple[int, ...]
    read_as: str
    differences: tuple[str, ...] = ()


def absent_below(judged: JudgedPhrase, slips: bool) -> float:
    """The likeness below which a place is none; `slips` tells whether the text may be misread."""
    return judged.absent_below if slips else max(judged.absent_below, TEXT_ABSENT)


def present_at(judged: JudgedPhrase, slips: bool) -> float:
    """The likeness from which a place may be the phrase."""
    return judged.present_at if slips else max(judged.phrase.present_at, TEXT_PRESENT)


def look(judged: JudgedPhrase, page: LetterLines, place: Place, slips: bool) -> Sighting | None:
    """What the place is; None where it is another wording's."""
    phrase = judged.phrase
    wanted = composed_of(phrase.text)
    laid = Alignment(wanted, page, place)
    read_as = " ".join(page.text[laid.first : laid.last].split())
    unlike = () if _is_same(place, laid) else differences(phrase.tokens, laid.tokens)
    unlike = unlike or opposed(phrase.text, read_as)
    unlike = unlike or turned(phrase.tokens, page, laid.first, laid.last)
    unlike = unlike or other_units(wanted, phrase.tokens, page.text, laid.tokens, slips=slips)
    after = () if unlike else denied(phrase.tokens, page, laid.last) or _taken_back(wanted, page, laid)
    if slips and not unlike and not after:
        after = _turned_perhaps(phrase, page, laid.first)
    lead = -1.0 if place.score == 1.0 else _lead_of_rival(judged, page, place)
    if lead >= _RIVAL_MARGIN:
        return None
    covered = coverage(phrase.text, page.text_of(laid.lines))
    others = laid.swapped(bool(unlike), slips) if place.score < 1.0 else ()
    others = tuple(other for other in others if not _part_of_any(other, unlike))
    state: Literal["present", "altered", "review"]
    if unlike:
        reason = _why_not_altered(phrase, laid, others, slips)
        state, reason = ("review", reason) if reason else ("altered", _ALTERED)
    else:
        reason = _why_not_present(judged, place, others, covered, slips)
        reason = "what stands right beside it may turn its meaning; a person has to look" if after else reason
        reason = reason or ("the place resembles another wording still more; a person has to look" if lead > 0 else "")
        state = "review" if reason else "present"
    said = () if state == "present" else (*unlike, *after, *others)
    return Sighting(
        state, reason, place.score, laid.context if unlike else place.score, covered, laid.lines, read_as, said
    )


def says_exactly(phrase: Phrase) -> bool:
    """Whether a phrase has what a single misread letter turns into something else: numbers, negations, "있"."""
    return bool(phrase.tokens) or any(char in AFFIRMATIONS for char in phrase.text)


def _is_same(place: Place, laid: Alignment) -> bool:
    """Whether all letters are the same, of tokens too: then only spaces tell these apart ("등 불이익", "등불이익")."""
    return place.score == 1.0 and all(laid.first <= one.start and one.end <= laid.last for one in laid.tokens)


def _taken_back(wanted: str, page: LetterLines, laid: Alignment) -> tuple[str, ...]:
    """What takes a sentence back that ends with the phrase: "있습니다|만 당사는 예외입니다"."""
    if not wanted.rstrip(".").endswith("다"):
        return ()
    found = page.text[laid.first : laid.last].rstrip(f".{_QUOTED}")  # a quotation mark may stand for the phrase's end
    match = _TAKEN_BACK.match(page.text, laid.first + len(found))
    return (f"(nothing) -> {match[0].strip()}",) if match else ()


def _part_of_any(word: str, said: Sequence[str]) -> bool:
    """Whether a difference is a part of one that is told already: "상 -> 하" of "이상 -> 이하"."""
    before, _, after = word.partition(" -> ")
    parts = (one.partition(" -> ") for one in said)
    return any(before in whole and after in other for whole, _, other in parts)


def _turned_perhaps(phrase: Phrase, page: LetterLines, first: int) -> tuple[str, ...]:
    """A syllable right in front that may turn the first word, also where one of both was misread: "비|굤신형"."""
    before = page.text[first - 1] if first > 0 else ""
    like = any(set(letters(before)) & set(letters(prefix)) for prefix in turning(phrase.text))
    may_be = "가" <= before <= "힣" and (before in _TURNING or like)
    return (f"(nothing) -> {before}",) if may_be else ()


def text_at(page: LetterLines, place: Place) -> str:
    """The text of a place, in one line."""
    return " ".join(page.text[page.character_of(place.start) : page.character_of(place.end - 1) + 1].split())


def _why_not_altered(phrase: Phrase, laid: Alignment, others: Sequence[str], slips: bool) -> str:
    """Why tokens that differ are no certain alteration; empty where they are. `others` are other words."""
    if laid.plain_letters < SHORT_LETTERS:
        return "another number or negation stands beside the same few letters, maybe by chance; a person has to look"
    if laid.context < present_from(laid.plain_letters) or (slips and laid.context < ALTERED):
        return "numbers or negations differ, and so does the rest; a person has to look"
    if any(_is_spelled(laid.stands_for(token)) for token in phrase.tokens if not token.negation):
        return "a number is spelled out there; a person has to look"
    if others:
        return "numbers or negations differ, and other words as well; a person has to look"
    if slips and not certainly_other(phrase.tokens, laid):
        return "a number or negation was not read, which may be a slip of reading; a person has to look"
    return ""


def _is_spelled(stands: str) -> bool:
    return bool(stands) and set(stands) <= _NUMERALS


def _why_not_present(judged: JudgedPhrase, place: Place, others: Sequence[str], covered: float, slips: bool) -> str:
    """Why a place whose tokens are the same is not certainly the phrase; empty where it is."""
    if place.score < present_at(judged, slips):
        return "something like it stands there; a person has to look"
    if others:
        return "most of it stands there, with other words; a person has to look"
    if slips and covered < LEAST_COVERAGE:
        return "the print was read too badly to be sure; a person has to look"
    return ""


def _lead_of_rival(judged: JudgedPhrase, page: LetterLines, place: Place) -> float:
    """By how much the place is more like the best of the rivals than like the phrase; below 0 where it is less."""
    leads = [-1.0]
    for rival in judged.rivals:
        reach = max(0, len(rival.letters) - (place.end - place.start)) + edge_letters(rival.letters)
        around = page.letters[max(0, place.start - reach) : place.end + reach]
        leads.append(letter_likeness(rival.letters, around) - place.score)
    return max(leads)
