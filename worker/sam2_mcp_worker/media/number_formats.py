"""Numbers of a workbook as people see them: 0.055 in a cell that shows percent is "5.5%". Pure.

Owns the part of Excel's number formats (ECMA-376 18.8.31) that changes what a number says: percent, decimals, groups,
scaling by thousands, currency signs and words like "원". What it does not know it shows plainly and calls doubtful.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache

CellValue = str | int | float | bool | date | datetime | time | timedelta | None

GENERAL = ("", "general", "@")
# A float carries 15 certain digits; the rest is noise of its binary form.
_CERTAIN_DIGITS = 15
# Beyond lies nothing that a document says; Decimal would write a million zeros for 1e999999.
_MAX_EXPONENT = 30
_PARTS = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|_.|\*.|\[\$(?P<currency>[^\]-]*)[^\]]*\]|\[[^\]]*\]'
    r"|(?P<general>General)|(?P<digits>[#0?](?:[#0?,]*[#0?])?(?:\.[#0?]*)?,*)|(?P<percent>%)|(?P<other>.)",
    re.DOTALL | re.IGNORECASE,
)
# Longer ones are not written by people; a workbook has a handful of them for all its cells.
_MAX_FORMAT_CHARS = 255
_KNOWN_FORMATS = 512
# Exponents, fractions, dates that the reader did not take for one, and a quote without its other half.
_UNKNOWN = re.compile(r'[EeMmDdYyHhSs/"]')
# How accountants write a negative number; the sign is written plainly instead.
_SIGNS = frozenset("()+-△▲−")


@dataclass(frozen=True, slots=True)
class ShownCell:
    """The text of a cell. `doubtful`: what is stored is another value than what is shown."""

    text: str
    doubtful: bool = False


def shown(value: CellValue, number_format: str) -> ShownCell:
    """What a cell with this value and format shows; dates in ISO form whatever the format."""
    if value is None:
        return ShownCell("")
    if isinstance(value, bool):
        return ShownCell("TRUE" if value else "FALSE")
    if isinstance(value, datetime):
        return ShownCell(value.date().isoformat() if value.time() == time() else value.isoformat(" ", "minutes"))
    if isinstance(value, int | float):
        return _number(value, number_format)
    return ShownCell(str(value))


def _number(value: int | float, number_format: str) -> ShownCell:
    number = Decimal(f"{value:.{_CERTAIN_DIGITS}g}") if isinstance(value, float) else Decimal(value)
    if not number.is_finite() or abs(number.adjusted()) > _MAX_EXPONENT:
        return ShownCell(str(value)[:40], doubtful=True)
    if number_format.strip().lower() in GENERAL:
        return ShownCell(_plain(number))
    return _formatted(number, _section(number_format, number))


@lru_cache(_KNOWN_FORMATS)
def _sections(number_format: str) -> tuple[tuple[re.Match[str], ...], ...]:
    """The parts of each section, for positive numbers, negative ones and zero."""
    plain = number_format[:_MAX_FORMAT_CHARS]
    sections = re.findall(r'(?:"[^"]*"|\\.|\[[^\]]*\]|[^;"\\\[])+', plain) or [plain]
    return tuple(tuple(_PARTS.finditer(section)) for section in sections)


def _section(number_format: str, number: Decimal) -> tuple[re.Match[str], ...]:
    """The part of the format that is for numbers of this sign."""
    sections = _sections(number_format)
    if number < 0 and len(sections) > 1:
        return sections[1]
    return sections[2] if number == 0 and len(sections) > 2 else sections[0]


def _formatted(number: Decimal, parts: tuple[re.Match[str], ...]) -> ShownCell:
    patterns = [part["digits"] for part in parts if part["digits"]]
    if len(patterns) > 1 or any(_UNKNOWN.match(part["other"]) for part in parts if part["other"]):
        words = "".join(part["quoted"] for part in parts if part["quoted"])  # a unit is one of them
        return ShownCell(_plain(number) + words, doubtful=True)
    if any(part["percent"] for part in parts):
        number *= 100
    rounded, text = _digits(abs(number), patterns[0]) if patterns else (abs(number), _plain(abs(number)))
    said = "".join(_said(part, text) for part in parts)
    sign = "-" if number < 0 and rounded else ""
    return ShownCell(sign + said.strip(), doubtful=bool(patterns) and rounded != abs(number))


def _said(part: re.Match[str], number: str) -> str:
    if part["digits"] or part["general"]:
        return number
    if part["percent"]:
        return "%"
    word = next((part[name] for name in ("quoted", "escaped", "currency", "other") if part[name]), "")
    return word if word not in _SIGNS else ""


def _digits(number: Decimal, pattern: str) -> tuple[Decimal, str]:
    """The value that is shown, and its digits; `pattern` is like `#,##0.00,`."""
    core = pattern.rstrip(",")
    scale = Decimal(1000) ** (len(pattern) - len(core))
    whole, _, decimals = core.partition(".")
    rounded = (number / scale).quantize(Decimal(1).scaleb(-len(decimals)), rounding=ROUND_HALF_UP)
    text = f"{rounded:,f}" if "," in whole else f"{rounded:f}"
    if decimals:
        text = _without_optional_zeros(text, decimals)
    before, point, after = text.partition(".")
    return rounded * scale, before.zfill(whole.count("0")) + point + after


def _without_optional_zeros(text: str, decimals: str) -> str:
    """ "3.50" in the pattern `0.0#` is "3.5"."""
    for sign in reversed(decimals):
        if sign == "0" or not text.endswith("0"):
            break
        text = text[:-1]
    return text.rstrip(".") if "0" not in decimals else text


def _plain(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
