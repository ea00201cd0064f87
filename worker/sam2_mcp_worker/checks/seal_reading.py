"""Marks of a review as they are written in advertisements, taken apart: name, number, days.

Owns how such marks are written ("2026.06.16 준법감시인 심의필 2026-1179 (유효기간 2026.07.31.)", "생명보험협회 심의필
제2023-02901호 (2023-07-04 ~ 2024-07-03)"). Refuses to know what must be told and whether it holds. Pure.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from sam2_mcp_worker.checks.reading import Reading, ReadLine, ReadPage
from sam2_mcp_worker.checks.squeezed import BREAK, composed, squeeze, squeezed
from sam2_mcp_worker.checks.written_dates import WrittenDay, written_days

# A mark with everything that belongs to it has 50 to 70 characters, and runs over three lines at most.
BEHIND_CHARS = 80
BEHIND_LINES = 3
# Days may stand in front of the name, right beside it: "2026.06.16 준법감시인 심의필", "(2026.06.16~2027.06.15)".
BEFORE_CHARS = 36
# A page has one to three marks; of more than so many those behind are not taken apart.
MAX_MARKS = 200
# Digits of a line that OCR was less sure of are for a person to look at.
SURE_CONFIDENCE = 0.6

_NUMBER = re.compile(
    r"[\s:\-\u2010-\u2015.,#]*(?:\([가-힣]{1,3}\))?[\s:]*(?:번호|no\.?)?[\s:]*제?\s?(?P<number>[^\s()\[\]:,;~]+)", re.I
)
_NUMBER_FORM = re.compile(r"(?=[^\d]*\d)[0-9A-Za-z가-힣]+(?:[\-\u2010-\u2015][0-9A-Za-z가-힣]+){0,5}\Z")
# What may stand between the parts of a mark; other words begin another matter ("인쇄일자", "보험기간").
_VALIDITY = r"유효\s?기간|유효\s?기한|사용\s?기한|만료일?"
_BETWEEN = re.compile(rf"(?:{_VALIDITY}|심의\s?일자?|승인\s?일자?|까지|호|[^\w]|_)*")
_UNREAD = re.compile(
    rf"{_VALIDITY}|까지|부터|[~\u223c\u301c\uff5e]|\d\s?(?:년|개월)|(?<!\d)\d\d[./\-]\s?\d{{1,2}}[./\-]\s?\d{{1,2}}(?!\d)|(?<!\d)20\d{{6}}(?!\d)"
)
_NUMBER_BEFORE = re.compile(r"\d\s*호\W*\Z")
_UNTIL = re.compile(rf"(?:(?:{_VALIDITY})[\s:]*[~\u223c\uff5e]?|[~\u223c\uff5e])\s*\Z")


@dataclass(frozen=True, slots=True)
class Seal:
    """A mark as it was read. `reviewed` is the day of the review or the first one of its validity, `until` the last.

    None is what was not told. `impossible` are days that no calendar has. `sure` is False where OCR was not. `unclear`:
    beside it stands what may be the number or the days in a form that is not read here ("'26.6.16 ~ '27.6.15", "1년").
    """

    name: str
    number: str | None
    reviewed: date | None
    until: date | None
    impossible: tuple[str, ...]
    page: int
    line: ReadLine
    sure: bool
    unclear: bool

    @property
    def said(self) -> str:
        """How it is named in a sentence."""
        return f"{self.name} {self.number}" if self.number else self.name


def seals_of(names: Sequence[str], reading: Reading) -> tuple[Seal, ...]:
    """The marks of these names, each once, in their order; of each page the first MAX_MARKS."""
    once: dict[tuple[str, str | None, date | None], Seal] = {}
    for page in reading.pages:
        for seal in _on_page(names, page):
            once.setdefault((squeeze(seal.name), seal.number, seal.until), seal)
    return tuple(once.values())


def crowded_pages(names: Sequence[str], reading: Reading) -> tuple[int, ...]:
    """The numbers of the pages with more marks than are looked at."""
    return tuple(page.number for page in reading.pages if len(_spans(names, page)) > MAX_MARKS)


def _on_page(names: Sequence[str], page: ReadPage) -> list[Seal]:
    """The marks of a page. What belongs to one ends where the next begins."""
    spans = _spans(names, page)[: MAX_MARKS + 1]
    if not spans:
        return []
    text = BREAK.join(composed(line.text).replace(BREAK, " ") for line in page.lines)
    kept = [index for index, char in enumerate(text) for _ in (squeeze(char) or (char if char == BREAK else ""))]
    places = [(kept[start], kept[end - 1] + 1, name) for start, end, name in spans]
    begins = [start for start, _, _ in places[1:]]
    pairs = zip(places, [*begins, len(text)], strict=True)
    return [_seal(page, text, *place, until) for place, until in itertools.islice(pairs, MAX_MARKS)]


def _spans(names: Sequence[str], page: ReadPage) -> list[tuple[int, int, str]]:
    """Where the names stand in the squeezed text of a page, in order; of names within one another the longest."""
    text = squeezed([line.text for line in page.lines]).text
    taken = bytearray(len(text))
    spans: list[tuple[int, int, str]] = []
    for name in sorted(names, key=len, reverse=True):
        for match in re.finditer(re.escape(squeeze(name)), text):
            start, end = match.span()
            if not any(taken[start:end]):
                taken[start:end] = b"\1" * (end - start)
                spans.append((start, end, name))
    return sorted(spans)


def _seal(page: ReadPage, text: str, start: int, end: int, name: str, until: int) -> Seal:
    behind = BREAK.join(text[end : min(until, end + BEHIND_CHARS)].split(BREAK)[:BEHIND_LINES])
    before = text[max(0, start - BEFORE_CHARS) : start]
    number, used = _number(behind)
    told = _days_behind(behind, used)
    days = [*_day_before(before), *told]
    rest = behind[max([used, *(day.end for day in told)]) :]
    unclear = _unclear(rest, days) or (number is None and _may_hold_a_number(before, rest))
    last = next((day.until for day in days if day.until is not None), None)
    first = next((day.first for day in days if day.first is not None), None)
    impossible = tuple(day.text for day in days if day.impossible)
    index = text.count(BREAK, 0, start)
    used_lines = page.lines[index : index + 1 + behind.count(BREAK, 0, max([used, *(day.end for day in days)]))]
    return Seal(name, number, first, last, impossible, page.number, page.lines[index], _sure(used_lines), unclear)


def _unclear(rest: str, days: Sequence[_Day]) -> bool:
    """Whether a last day may stand behind what was read, or is one of several days that nothing tells apart."""
    single = [day for day in days if day.until is None]
    return len(single) > 1 or bool(written_days(rest)) or _UNREAD.search(rest) is not None


def _may_hold_a_number(before: str, rest: str) -> bool:
    """Digits right behind a name in its line, or a number in front of it."""
    return bool(re.match(r"\W{0,3}\w{0,4}\d", rest)) or _NUMBER_BEFORE.search(before.rpartition(BREAK)[2]) is not None


def _number(behind: str) -> tuple[str | None, int]:
    """The number right behind a name, and where it ends."""
    days = written_days(behind)
    match = _NUMBER.match(behind, 0, days[0].start if days else len(behind))
    number = match["number"].rstrip(".").removesuffix("호") if match else ""
    if match is None or not _NUMBER_FORM.match(number):
        return None, 0
    return number, match.end()


@dataclass(frozen=True, slots=True)
class _Day:
    text: str
    end: int
    first: date | None
    until: date | None
    impossible: bool


def _day_before(before: str) -> list[_Day]:
    """The day right in front of a name, in its line."""
    line = before.rpartition(BREAK)[2]
    days = written_days(line)[-1:]
    return [replace(_meant(day, line, 0), end=0) for day in days if _BETWEEN.fullmatch(line, day.end)]


def _days_behind(behind: str, used: int) -> list[_Day]:
    """The days behind a name and its number, up to where another matter begins."""
    found: list[_Day] = []
    for day in written_days(behind):
        if day.start < used or not _BETWEEN.fullmatch(behind, used, day.start):
            break
        found.append(_meant(day, behind, used))
        used = day.end
    return found


def _meant(day: WrittenDay, text: str, used: int) -> _Day:
    """A period is the validity; a single day is its end behind the word for it or before 까지, else the review's."""
    if day.ends is not None:
        impossible = day.value is None or day.ends.value is None
        return _Day(day.text, day.end, day.value, day.ends.value, impossible)
    last = _UNTIL.search(text, used, day.start) or re.match(r"\s*까지", text[day.end :])
    first, until = (None, day.value) if last else (day.value, None)
    return _Day(day.text, day.end, first, until, day.value is None)


def _sure(lines: Sequence[ReadLine]) -> bool:
    return all(line.confidence is None or line.confidence >= SURE_CONFIDENCE for line in lines)
