"""Numbers as Korean texts write them: digits, digits with 십 백 천 만 억 조, and the whole word ("이십만").

Owns the form and the exact value of such a number, for phrases and for figures alike. Knows no units but the powers of
ten, and no context.
"""

from __future__ import annotations

import re
from decimal import Decimal

_SMALL_UNITS = {"십": 10, "백": 100, "천": 1_000}
_LARGE_UNITS = {"만": 10_000, "억": 100_000_000, "조": 1_000_000_000_000}
# The last group of three may stand on the next line.
DIGITS = r"\d+(?:[.,]\d+|,\n\d{3}(?!\d))*"
UNIT = "[십백천만억조]"
# Spaces are kept or lost by readers as they like: "1 억 5천만" is one amount, "1억 2026" two.
_SECTION = rf"(?:{DIGITS}(?:\s?[십백천]+(?:{DIGITS}|\s{DIGITS}(?=\s?{UNIT}))?)*|[십백천]+(?:{DIGITS})?)"


def _after(unit: str, larger: str) -> str:
    """A large unit and what is added to it, which is smaller: "1억 2억" are two amounts."""
    section = rf"(?>{_SECTION})(?!\s?[{larger}])"
    return rf"(?:\s?{unit}(?:{section}|\s(?=\d)(?>{_SECTION})(?=\s?[십백천만억원])(?!\s?[{larger}]))?)?"


AMOUNT = rf"(?=\d){_SECTION}{_after('조', '조')}{_after('억', '억조')}{_after('만', '만억조')}"
_SYLLABLES = "일이삼사오육칠팔구십백천만억조"
# "천만원", "이십만원", "일억 오천만원": the whole word is the amount. "수백만원" is none.
SPELLED = rf"(?<![가-힣\d])(?:[{_SYLLABLES}]*[억조]\s)?[{_SYLLABLES}]*[십백천만억조](?=\s?원)"
_ONES = {syllable: str(number) for number, syllable in enumerate("일이삼사오육칠팔구", start=1)}
_PART = re.compile(rf"({DIGITS})?({UNIT}*)")
# Letters that readers give for digits, where a digit or a unit stands beside them.
_LIKE_ZERO = re.compile(r"(?<=\d)[oO]|[oO](?=[.,]?\d)")
_LIKE_ONE = re.compile(r"(?<=\d)[lI|]|(?<![A-Za-z])[lI|](?=[.,]?\d|\s?(?:[십백천만억조%]|인당|개월))")


def letters_as_digits(text: str) -> str:
    """The text with letters that stand for digits ("1O만원", "l억") read as these; as long as it was."""
    return _LIKE_ONE.sub("1", _LIKE_ZERO.sub("0", text))


def amount_value(text: str) -> Decimal:
    """The value of digits with Korean units: each large unit multiplies what was gathered since the one before."""
    total = section = Decimal(0)
    plain = "".join(_ONES.get(syllable, syllable) for syllable in "".join(text.split()))
    for digits, units in _PART.findall(plain):
        count = Decimal(_without_separators(digits)) if digits else None  # "천만", "1억천만": a unit alone counts once
        for unit in units:
            if unit in _SMALL_UNITS:
                section += (1 if count is None else count) * _SMALL_UNITS[unit]
            else:
                section += count or 0
                total += (section if section or count is not None else 1) * _LARGE_UNITS[unit]
                section = Decimal(0)
            count = None
        section += count or 0
    return total + section


def plain_number(value: Decimal) -> str:
    """Digits without an exponent or zeros behind the point: "150000000", "3.5"."""
    return f"{value.normalize():f}"


def _without_separators(digits: str) -> str:
    """Commas go; of several points none is a decimal one."""
    plain = digits.replace(",", "")
    return plain if plain.count(".") <= 1 else plain.replace(".", "")
