"""How a notice is spoken beside the rest: how much of the speech it is, how fast, how loud. Pure.

Owns the measures, no minimum: the notices ask for balance in speed and loudness and name no number (reference/vision.md
section 6). Times are seconds on one clock, loudness in dBFS.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

# Shorter pieces of speech have no rate worth the name: times of segments are off by some 0.1 s.
MIN_RATE_S = 0.5

_HANGUL = re.compile("[가-힣]")
# Kana and Chinese signs are a syllable each, too, or nearly.
_SIGNS = re.compile("[\u3041-\u3096\u30a1-\u30fa\u3400-\u4dbf\u4e00-\u9fff]")
_VOWELS = re.compile("[aeiouyáàâäéèêëíìîïóòôöúùûüаеёиоуыэюяіїєαεηιουωάέήίόύώ]+", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")
# Digits are grouped by ten thousands in Korean; within a group 10, 100 and 1,000 are one syllable each.
_GROUP_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Spoken:
    """Something that was said; `loudness_dbfs` is its mean level, None where that is not known."""

    start_s: float
    end_s: float
    text: str
    loudness_dbfs: float | None = None

    @property
    def duration_s(self) -> float:
        """Its length in seconds."""
        return self.end_s - self.start_s


@dataclass(frozen=True, slots=True)
class Comparison:
    """A notice beside the rest of the speech; None where one of the two has nothing to measure.

    `share` is of the time of all speech, 0-1. `rate_ratio` is above 1 where the notice is spoken faster,
    `louder_db` below 0 where it is quieter.
    """

    share: float | None
    rate_ratio: float | None
    louder_db: float | None


def compare_spoken(notice: Sequence[Spoken], rest: Sequence[Spoken]) -> Comparison:
    """The notice against the rest."""
    notice_s, rest_s = _seconds(notice), _seconds(rest)
    rates = speech_rate(notice), speech_rate(rest)
    levels = mean_loudness_dbfs(notice), mean_loudness_dbfs(rest)
    return Comparison(
        share=notice_s / (notice_s + rest_s) if notice_s + rest_s > 0 else None,
        rate_ratio=rates[0] / rates[1] if rates[0] is not None and rates[1] else None,
        louder_db=levels[0] - levels[1] if levels[0] is not None and levels[1] is not None else None,
    )


def speech_rate(said: Sequence[Spoken]) -> float | None:
    """Syllables a second over all of it, pauses between pieces left out; None for less than MIN_RATE_S."""
    seconds = _seconds(said)
    return sum(syllables(spoken.text) for spoken in said) / seconds if seconds >= MIN_RATE_S else None


def mean_loudness_dbfs(said: Sequence[Spoken]) -> float | None:
    """The mean power of what has a level, as a level; None where nothing has."""
    known = [(spoken.duration_s, spoken.loudness_dbfs) for spoken in said if spoken.loudness_dbfs is not None]
    seconds = sum(duration_s for duration_s, _ in known)
    if seconds <= 0:
        return None
    power = sum(duration_s * 10 ** (level / 10) for duration_s, level in known) / seconds
    return 10 * math.log10(power) if power > 0 else None


def syllables(text: str) -> int:
    """How many syllables a text has when it is spoken.

    Hangul, kana and Chinese signs count by character, words in Latin, Cyrillic and Greek letters by their groups of
    vowels, other scripts not at all. Numbers count as they are read in Korean where
    the text holds Hangul (2026 has five: 이천이십육), else a syllable a digit.
    """
    composed = unicodedata.normalize("NFC", text)
    hangul = len(_HANGUL.findall(composed))
    numbers = _NUMBER.findall(composed.replace(",", ""))
    spoken = sum(_korean_syllables(number) if hangul else len(number) for number in numbers)
    return hangul + len(_SIGNS.findall(composed)) + len(_VOWELS.findall(composed)) + spoken


def _korean_syllables(number: str) -> int:
    """Of a number in Sino-Korean: digits but zero, powers of ten, powers of ten thousand; no 일 before 십."""
    count = 0
    digits = number.lstrip("0")
    for place, digit in enumerate(reversed(digits)):
        power = place % _GROUP_DIGITS
        if digit != "0":
            count += 1 if power == 0 or digit == "1" else 2
        if (
            power == 0
            and place > 0
            and digits[max(0, len(digits) - place - _GROUP_DIGITS) : len(digits) - place].strip("0")
        ):
            count += 1
    return max(count, 1)


def _seconds(said: Sequence[Spoken]) -> float:
    return sum(spoken.duration_s for spoken in said)
