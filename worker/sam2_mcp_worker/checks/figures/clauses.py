"""The words around a figure in its own line: what stands before it in its clause, behind it, and in front of a bracket.

Owns where a clause begins and ends. A figure of another kind in it is a condition ("40세 남성 월 12,300원"), one of the
same kind ends it ("암 3천만원 뇌 2천만원"). Knows one line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Protocol

from sam2_mcp_worker.checks.amounts import plain_number
from sam2_mcp_worker.checks.figures.form import Form
from sam2_mcp_worker.checks.figures.units import Unit, comparable, scaled_unit
from sam2_mcp_worker.checks.figures.words import words_of

_END = re.compile(r"[,;/※▶▷■□●○◆◇•☞✔★☆!?]|\.(?=\s|$)|\s-\s(?=\D*\d)|다\.")
_OPEN, _CLOSE = "([{<", ")]}>"
_UNIT_NOTE = re.compile(r"[(\[]\s?(?:단위\s?[:\s]\s?)?([^()\[\]]{1,8})[)\]]|단위\s?:\s?(\S{1,6})")
# What a header says about how its figures are counted.
_PER_WORDS = (
    (re.compile(r"(?<![가-힣])(?:월\s?보험료|월납|매월|월\s?납입)"), "월"),
    (re.compile(r"(?<![가-힣])(?:연\s?보험료|연납|매년|연간)"), "연"),
    (re.compile(r"(?<![가-힣])(?:매일|하루|1일당|일당)"), "일"),
)
_ENDING = re.compile(r"\s?(납입?|만기|갱신)(?![가-힣]*(?:환급|보험금))")
# A name is said in a few words; what is further away belongs to something else.
MAX_WORDS = 10


class _Measured(Protocol):
    @property
    def low(self) -> Decimal: ...
    @property
    def high(self) -> Decimal: ...
    @property
    def unit(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Clause:
    """Context of one figure: phrases that name it, weaker ones, and what it is counted by."""

    label: tuple[str, ...]
    around: tuple[str, ...] = ()
    per: tuple[str, ...] = ()

    def named_by(self, phrases: tuple[str, ...]) -> Clause:
        """The same with further phrases that name it."""
        return replace(self, label=self.label + phrases, per=self.per or per_of(phrases))


def clause_of(text: str, forms: Sequence[Form], number: int) -> Clause:
    """The context of the figure with that number in its line."""
    form = forms[number]
    before, opened = _before(text, forms, number)
    outer = _before_bracket(text, forms, opened) if opened >= 0 else ""
    behind = _behind(text, forms, number)
    ending = _ENDING.match(text, form.end)
    if ending:  # "100세 만기": what stands right behind it says what it is
        return Clause((ending[1],), tuple(phrase for phrase in (before, outer, behind) if phrase))
    label = tuple(phrase for phrase in (before, outer) if phrase)
    around = (behind,) if behind else ()
    if around and not any(words_of(phrase) for phrase in label):
        label, around = (behind, *label), ()
    return Clause(label, around, () if form.per else per_of(label))


def per_of(phrases: Sequence[str]) -> tuple[str, ...]:
    """What phrases say about how their figures are counted: "월보험료" by the month."""
    return tuple(name for pattern, name in _PER_WORDS if any(pattern.search(phrase) for phrase in phrases))[:1]


def header_unit(phrases: Sequence[str]) -> tuple[str, Unit] | None:
    """The unit that a header or a title names in brackets: "보험료(원)", "(단위: 만원)"."""
    for phrase in phrases:
        for match in _UNIT_NOTE.finditer(phrase):
            unit = scaled_unit(match[1] or match[2])
            if unit:
                return unit
    return None


def _before(text: str, forms: Sequence[Form], number: int) -> tuple[str, int]:
    """The words of the clause before a figure, and where the bracket opens that begins it, -1 if none does."""
    form = forms[number]
    start = max((one.end for one in forms[:number] if _ends(one, form)), default=0)
    for match in _END.finditer(text, start, form.start):
        if not any(one.start <= match.start() < one.end for one in forms):
            start = match.end()
    opened = max(text.rfind(char, start, form.start) for char in _OPEN)
    if opened >= 0 and any(char in text[opened : form.start] for char in _CLOSE):
        opened = -1  # "보험료(원) 12,300": the bracket is closed again
    if opened >= 0:
        return _said(text, forms, opened + 1, form.start), opened
    return _said(text, forms, start, form.start), -1


def _before_bracket(text: str, forms: Sequence[Form], opened: int) -> str:
    """What names the figure in front of the bracket: "암진단비 3천만원 (1년 이내 50%)"."""
    start = 0
    for match in _END.finditer(text, 0, opened):
        if not any(one.start <= match.start() < one.end for one in forms):
            start = match.end()
    return _said(text, [form for form in forms if form.end <= opened], start, opened, values=False)


def _behind(text: str, forms: Sequence[Form], number: int) -> str:
    form = forms[number]
    end = min((one.start for one in forms[number + 1 :]), default=len(text))
    match = next(
        (m for m in _END.finditer(text, form.end, end) if not any(one.start <= m.start() < one.end for one in forms)),
        None,
    )
    closing = min((at for at in (text.find(char, form.end, end) for char in _CLOSE) if at >= 0), default=end)
    return _said(text, forms, form.end, min(closing, match.start() if match else end))


def _ends(one: Form, other: Form) -> bool:
    return one.kind == other.kind or {one.kind, other.kind} <= {"amount", "percent"}


def _said(text: str, forms: Sequence[Form], start: int, end: int, *, values: bool = True) -> str:
    """A stretch of the line, its figures in one form ("1년" and "12개월" alike); of values only those wanted."""
    parts: list[str] = []
    at = start
    for form in forms:
        if start <= form.start and form.end <= end:
            parts.append(text[at : form.start])
            if values or form.kind not in ("amount", "percent"):
                parts.append(f" {condition(form)} ")
            at = form.end
    words = "".join([*parts, text[at:end]]).split()
    return " ".join(words[-MAX_WORDS:] if end <= (forms[-1].start if forms else end) else words[:MAX_WORDS])


def condition(form: _Measured) -> str:
    """A figure as a word of another one's context: "40세", "12개월이하"."""
    low, high, unit = comparable(form.low, form.high, form.unit)
    value = plain_number(low) if low == high else f"{plain_number(low)}~{plain_number(high)}"
    return f"{value}{unit}"
