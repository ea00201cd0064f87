"""What a figure in a text is: its kind, its exact value, its unit, and how the text limits it. Knows no context."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from sam2_mcp_worker.checks.amounts import plain_number

FigureKind = Literal["amount", "percent", "age", "period", "date", "time", "count", "number"]
Bound = Literal["", "at_least", "more_than", "at_most", "less_than", "about"]
# What a document promises or asks for; the other kinds are conditions as well.
VALUE_KINDS: tuple[FigureKind, ...] = ("amount", "percent")
# Units in which a date of a day, month or year of the calendar, a day of any year, and a time of day are given.
DATE_UNIT, MONTH_DAY_UNIT, MONTH_UNIT, CLOCK_UNIT = "date", "month-day", "month", "clock"


@dataclass(frozen=True, slots=True)
class Form:
    """A figure as it stands in a line; `start` and `end` are places in the normalised line.

    `low` and `high` are the same but for ranges ("20~60세", "40대"). Dates are YYYYMMDD (a month or a year is a range
    from its first to its last day), days of any year MMDD, times of day HHMM. `bound` is how the text limits the value
    ("최대", "이상"), `per` what it is counted by ("월", "1인"). `doubt` says why the value
    may be another.
    """

    text: str
    start: int
    end: int
    kind: FigureKind
    low: Decimal
    high: Decimal
    unit: str
    bound: Bound = ""
    per: tuple[str, ...] = ()
    doubt: str = ""

    @property
    def value(self) -> str:
        """The value for people and agents: "150000000", "20~60", "2026-01-02"."""
        return shown_value(self.low, self.high, self.unit)


def shown_value(low: Decimal, high: Decimal, unit: str) -> str:
    """A value or range, with dates and times in their usual form."""
    first, last = _shown(low, unit), _shown(high, unit)
    return first if first == last else f"{first}~{last}"


def _shown(value: Decimal, unit: str) -> str:
    digits = plain_number(value)
    if unit == DATE_UNIT:
        return f"{digits[:-4]}-{digits[-4:-2]}-{digits[-2:]}"
    if unit == MONTH_DAY_UNIT:
        return f"{digits.zfill(4)[:2]}-{digits[-2:]}"
    if unit == CLOCK_UNIT:
        return f"{digits.zfill(4)[:2]}:{digits.zfill(4)[2:]}"
    return digits
