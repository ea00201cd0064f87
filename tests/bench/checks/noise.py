"""Slips of reading, from a seed: syllables read as ones that look like them, or as any, and spaces that are lost.

Owns the slips only. Digits and Latin letters stay as they are: what OCR does to them is measured on real readings.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

_FIRST, _LAST = 0xAC00, 0xD7A3
_VOWELS, _FINALS = 21, 28
# Letters that differ in one stroke, by their number within a syllable (Unicode 3.12).
_INITIALS_ALIKE = ("ㄱㅋㄲ", "ㄴㄹ", "ㄷㅌㄸ", "ㅁㅂㅍ", "ㅅㅈㅊㅆ", "ㅇㅎ")
_VOWELS_ALIKE = ("ㅏㅑㅓㅣ", "ㅓㅕㅣ", "ㅐㅔㅒㅖ", "ㅗㅛㅡㅜ", "ㅜㅠㅡ", "ㅘㅙㅚ", "ㅝㅞㅟㅢ")
_FINALS_ALIKE = ("-ㄴㄱㅅ", "ㄴㄹㅇ", "ㅁㅂㅇ", "ㄹㄷㅌ", "ㅅㅆㅈㅊ", "ㄶㄴㅎ", "ㅄㅂㅅ")
_INITIAL_ORDER = "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ"
_VOWEL_ORDER = "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ"
_FINAL_ORDER = "-ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ"
# A misread syllable mostly has one wrong letter.
_TWO_WRONG = 0.3


def look_alike(chance: Random, text: str, share: float) -> str:
    """The text with a share of its syllables read as others that look like them, and that share of its spaces lost."""
    return "".join(_with_slips(chance, char) if chance.random() < share else char for char in text)


def any_syllable(chance: Random, text: str, share: float) -> str:
    """The text with a share of its syllables read as any others, and that share of its spaces lost."""
    return "".join(
        (chr(chance.randint(_FIRST, _LAST)) if _is_syllable(char) else "" if char == " " else char)
        if chance.random() < share
        else char
        for char in text
    )


def _with_slips(chance: Random, char: str) -> str:
    if not _is_syllable(char):
        return "" if char == " " else char
    slips = [chance.choice((_INITIALS_ALIKE, _VOWELS_ALIKE, _FINALS_ALIKE))]
    if chance.random() < _TWO_WRONG:
        slips.append(chance.choice((_INITIALS_ALIKE, _VOWELS_ALIKE, _FINALS_ALIKE)))
    for groups in slips:
        char = _slipped(chance, char, groups)
    return char


def _slipped(chance: Random, syllable: str, groups: Sequence[str]) -> str:
    code = ord(syllable) - _FIRST
    places = [code // (_VOWELS * _FINALS), code // _FINALS % _VOWELS, code % _FINALS]
    orders = (_INITIAL_ORDER, _VOWEL_ORDER, _FINAL_ORDER)
    place = (_INITIALS_ALIKE, _VOWELS_ALIKE, _FINALS_ALIKE).index(tuple(groups))
    letter = orders[place][places[place]]
    others = sorted({other for group in groups if letter in group for other in group} - {letter})
    if others:
        places[place] = orders[place].index(chance.choice(others))
    return chr(_FIRST + (places[0] * _VOWELS + places[1]) * _FINALS + places[2])


def _is_syllable(char: str) -> bool:
    return chr(_FIRST) <= char <= chr(_LAST)
