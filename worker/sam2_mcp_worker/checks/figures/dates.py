"""Dates and times of day in a line of text. Owns their forms; what is no day of the calendar is none of them."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal

from sam2_mcp_worker.checks.figures.form import CLOCK_UNIT, DATE_UNIT, MONTH_DAY_UNIT, MONTH_UNIT, Form

_YEAR = r"(?P<year>(?:19|20)\d{2})"
_MONTH = r"(?P<month>1[0-2]|0?[1-9])"
_DAY = r"(?P<day>3[01]|[12]\d|0?[1-9])"
_DATE = re.compile(
    rf"(?<![\d.,])(?:{_YEAR}|'?(?P<short>\d\d))(?:\s?(?P<point>[./-])\s?{_MONTH}\s?(?P=point)\s?{_DAY}(?!\d)\.?(?!\d)"
    rf"|\s?년\s?{_MONTH.replace('month', 'month2')}\s?월\s?{_DAY.replace('day', 'day2')}\s?일)"
)
# What follows a date behind "~" takes the year, or the year and the month, from it: "2026.01.02~12.31".
_REST = re.compile(rf"\s*~\s*{_MONTH}\s?(?:[./-]|월)\s?{_DAY}(?!\d)(?!\s?[./-]\s?\d)(?:\s?일)?")
_MONTH_OF = re.compile(
    rf"(?<![\d.,]){_YEAR}(?:\s?년\s?{_MONTH}\s?월"
    rf"|\s?(?P<point>[./-])\s?{_MONTH.replace('month', 'month2')}(?![\d,%]|\s?[원만억천%배세호]|[.-]\d))"
)
_MONTH_REST = re.compile(rf"\s*~\s*{_MONTH}\s?월(?!\s?\d)")
_YEAR_OF = re.compile(rf"(?<![\d.,]){_YEAR}\s?년(?!\s?(?:간|납|만기))도?")
_COMPACT = re.compile(
    rf"(?<![\d.,-]){_YEAR}(?P<month>0[1-9]|1[0-2])(?P<day>0[1-9]|[12]\d|3[01])(?![\d.,-]|\s?[원만억천%])"
)
_MONTH_DAY = re.compile(rf"(?<!\d){_MONTH}\s?월\s?{_DAY}\s?일")
_MONTH_ONLY = re.compile(rf"(?<![\d.,]){_MONTH}\s?월(?![가-힣]?납|\s?\d|보험료|\s보험료)")
_CLOCK = re.compile(
    r"(?<![\d:])(?P<half>오전|오후)?\s?(?P<hour>[01]?\d|2[0-4])(?:\s?:\s?(?P<minute>[0-5]\d)(?!\d|:)"
    r"|\s?시(?![가-힣])(?:\s?(?P<minute2>[0-5]?\d)\s?분)?)"
)
# "26.01.02" is a date; with other signs between them three numbers may be something else.
_SHORT_DOUBT = "a year of two digits"
_COMPACT_DOUBT = "eight digits, taken as a date"


def dates_of(text: str) -> list[Form]:
    """Dates and times of a normalised line, those that name more of the calendar first taken."""
    found: list[Form] = []
    for forms in (_days(text), _months(text), _years(text), _compact(text), _others(text)):
        found += [form for form in forms if not any(form.start < one.end and one.start < form.end for one in found)]
    return sorted(found, key=lambda form: form.start)


def _days(text: str) -> Iterator[Form]:
    for match in _DATE.finditer(text):
        year = int(match["year"] or f"20{match['short']}")
        doubt = _SHORT_DOUBT if match["short"] and match["point"] != "." and match[0][0] != "'" else ""
        first = _day(year, match["month"] or match["month2"], match["day"] or match["day2"])
        if first is None:
            continue
        end = match.end()
        yield Form(match[0].strip(), match.start(), end, "date", first, first, DATE_UNIT, doubt=doubt)
        rest = _REST.match(text, end)
        last = _day(year, rest["month"], rest["day"]) if rest else None
        if rest and last is not None:
            start = rest.start("month")
            yield Form(text[start : rest.end()], start, rest.end(), "date", last, last, DATE_UNIT, doubt=doubt)


def _months(text: str) -> Iterator[Form]:
    for match in _MONTH_OF.finditer(text):
        year, month = int(match["year"]), int(match["month"] or match["month2"])
        yield _month_form(text, match.start(), match.end(), year, month)
        rest = _MONTH_REST.match(text, match.end())
        if rest:
            yield _month_form(text, rest.start("month"), rest.end(), year, int(rest["month"]))


def _month_form(text: str, start: int, end: int, year: int, month: int) -> Form:
    first, last = (Decimal(year * 10000 + month * 100 + day) for day in (1, calendar.monthrange(year, month)[1]))
    return Form(text[start:end], start, end, "date", first, last, DATE_UNIT)


def _years(text: str) -> Iterator[Form]:
    for match in _YEAR_OF.finditer(text):
        year = int(match["year"]) * 10000
        yield Form(match[0], *match.span(), "date", Decimal(year + 101), Decimal(year + 1231), DATE_UNIT)


def _compact(text: str) -> Iterator[Form]:
    for match in _COMPACT.finditer(text):
        day = _day(int(match["year"]), match["month"], match["day"])
        if day is not None:
            yield Form(match[0], *match.span(), "date", day, day, DATE_UNIT, doubt=_COMPACT_DOUBT)


def _others(text: str) -> Iterator[Form]:
    for match in _MONTH_DAY.finditer(text):
        day = Decimal(int(match["month"]) * 100 + int(match["day"]))
        yield Form(match[0], *match.span(), "date", day, day, MONTH_DAY_UNIT)
    for match in _MONTH_ONLY.finditer(text):
        month = Decimal(match["month"])
        yield Form(match[0], *match.span(), "date", month, month, MONTH_UNIT)
    for match in _CLOCK.finditer(text):
        hour = int(match["hour"]) + (12 if match["half"] == "오후" and int(match["hour"]) < 12 else 0)
        moment = Decimal(hour * 100 + int(match["minute"] or match["minute2"] or 0))
        start = match.start("half") if match["half"] else match.start("hour")
        yield Form(text[start : match.end()], start, match.end(), "time", moment, moment, CLOCK_UNIT)


def _day(year: int, month: str, day: str) -> Decimal | None:
    try:
        found = date(year, int(month), int(day))
    except ValueError:
        return None
    return Decimal(found.year * 10000 + found.month * 100 + found.day)
