"""Days as they are written in Korean documents: 2026.01.02, 2026-1-2, 2026년 1월 2일, 20260102 never. Pure.

Owns the forms of one day and of a period. A day that no calendar has is told, not mended.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

_DAY = re.compile(
    r"(?<!\d)(?P<year>(?:19|20)\d\d)\s?(?P<first>[./\-\u2010-\u2015]|년)\s?(?P<month>\d{1,2})\s?"
    r"(?:[./\-\u2010-\u2015]|월)\s?(?P<day>\d{1,2})(?!\d)(?:\s?일|\.)?"
)
_BETWEEN = re.compile(r"\s*(?:\([월화수목금토일]\))?\s*(?:[~\u223c\u301c\uff5e\-\u2010-\u2015]|부터)\s*")


@dataclass(frozen=True, slots=True)
class WrittenDay:
    """A day in a text: `value` is None where no calendar has it. `ends` is the day up to which a period runs that
    begins with it. `start` and `end` are where it stands, of a period where the whole does.
    """

    text: str
    value: date | None
    start: int
    end: int
    ends: WrittenDay | None = None


def written_days(text: str) -> tuple[WrittenDay, ...]:
    """The days and periods of a text in their order."""
    single = [_day(match) for match in _DAY.finditer(text)]
    days: list[WrittenDay] = []
    while single:
        first = single.pop(0)
        if single and _BETWEEN.fullmatch(text, first.end, single[0].start):
            last = single.pop(0)
            whole = text[first.start : last.end]
            days.append(WrittenDay(whole, first.value, first.start, last.end, ends=last))
        else:
            days.append(first)
    return tuple(days)


def _day(match: re.Match[str]) -> WrittenDay:
    try:
        value = date(int(match["year"]), int(match["month"]), int(match["day"]))
    except ValueError:
        value = None
    return WrittenDay(match[0], value, match.start(), match.end())
