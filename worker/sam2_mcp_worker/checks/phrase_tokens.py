"""What no score of likeness sees: numbers, amounts, dates and negations, taken out of a text to be compared exactly.

"1억원" and "5천만원", "제한될 수 있습니다" and "제한되지 않습니다" are 79 to 96 % alike (reference/vision.md 6).
Owns what such a token is and when two are the same. Knows no phrases and no lines.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

_SMALL_UNITS = {"십": 10, "백": 100, "천": 1_000}
_LARGE_UNITS = {"만": 10_000, "억": 100_000_000, "조": 1_000_000_000_000}
_DIGITS = r"\d+(?:[.,]\d+)*"
_UNIT = "[십백천만억조]"
# Spaces are kept or lost by readers as they like: "1 억 5천만" is one amount, "1억 2026" two.
_AMOUNT = rf"{_DIGITS}(?:\s?{_UNIT}+(?:{_DIGITS}|\s{_DIGITS}(?=\s?{_UNIT}))?)*"
# Of several syllables only those that no two words make where they meet ("보험금 지급" holds 금지).
_NEGATION = r"않|아니|없|못|(?<!환)불가|제외|n[o']t\b|cannot|\b(?:without|no|never)\b"
_TOKEN = re.compile(rf"(?P<number>{_AMOUNT})|(?P<negation>{_NEGATION})", re.IGNORECASE)
_PART = re.compile(rf"({_DIGITS})?({_UNIT}*)")
# Letters that readers give for digits, where a digit or a unit stands beside them.
_LIKE_ZERO = re.compile(r"(?<=\d)[oO]|[oO](?=[.,]?\d)")
_LIKE_ONE = re.compile(r"(?<=\d)[lI|]|(?<![A-Za-z])[lI|](?=[.,]?\d|\s?[십백천만억조%])")


@dataclass(frozen=True, slots=True)
class Token:
    """A number or a negation; tokens with the same `value` say the same. `start`, `end`: where it stands."""

    text: str
    value: str
    start: int
    end: int


def tokens_of(text: str) -> list[Token]:
    """The tokens of a text in order. Positions are those of the text as it was given."""
    digits = _LIKE_ONE.sub("1", _LIKE_ZERO.sub("0", text))
    tokens: list[Token] = []
    for match in _TOKEN.finditer(digits):
        if match["negation"]:
            tokens.append(Token(match[0], match[0].casefold(), match.start(), match.end()))
        else:
            tokens += _numbers(match[0], match.start())
    return tokens


def differences(wanted: Sequence[Token], found: Sequence[Token]) -> tuple[str, ...]:
    """What differs between two lists of tokens, "1억 -> 5천만" each; empty when they say the same."""
    said: list[str] = []
    matcher = difflib.SequenceMatcher(None, [t.value for t in wanted], [t.value for t in found], autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind != "equal":
            before = " ".join(token.text for token in wanted[a:b]) or "(nothing)"
            said.append(f"{before} -> {' '.join(token.text for token in found[c:d]) or '(nothing)'}")
    return tuple(said)


def only_units_lost(wanted: Sequence[Token], found: Sequence[Token]) -> bool:
    """Whether the same digits stand there and some only lack their unit ("1억" read as "1"): one misread syllable."""
    return len(wanted) == len(found) and all(
        one.value == other.value or (other.text.isdigit() and other.text == one.text.rstrip("십백천만억조 "))
        for one, other in zip(wanted, found, strict=True)
    )


def _numbers(text: str, start: int) -> list[Token]:
    """One amount ("1억5천만" and "150,000,000" alike), or the parts of a date, version or range ("2026.01.02")."""
    if re.fullmatch(r"\d+(?:\.\d+){2,}", text):
        return [Token(part[0], str(int(part[0])), start + part.start(), start + part.end()) for part in _digits(text)]
    return [Token(text, _plain(_amount(text)), start, start + len(text))]


def _digits(text: str) -> list[re.Match[str]]:
    return list(re.finditer(r"\d+", text))


def _amount(text: str) -> Decimal:
    """The value of digits with Korean units: each large unit multiplies what was gathered since the one before."""
    total = section = Decimal(0)
    for digits, units in _PART.findall("".join(text.split())):
        value = Decimal(_without_separators(digits)) if digits else Decimal(1)
        for unit in units:
            if unit in _SMALL_UNITS:
                section += value * _SMALL_UNITS[unit]
            else:
                total += (section + value if value else section) * _LARGE_UNITS[unit]
                section = Decimal(0)
            value = Decimal(0)
        section += value if digits or units else 0
    return total + section


def _without_separators(digits: str) -> str:
    """Commas go; of several points none is a decimal one."""
    plain = digits.replace(",", "")
    return plain if plain.count(".") <= 1 else plain.replace(".", "")


def _plain(value: Decimal) -> str:
    return f"{value.normalize():f}"
