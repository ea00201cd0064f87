"""The words around a figure in its own line: before it in its clause, behind it, and in front of a bracket.

Owns where a clause begins and ends, and what in it is a condition of the figure ("40세 남성 월 12,300원", "1천만원
기준"). Amounts and rates are values: one ends the clause of the next ("암 3천만원
뇌 2천만원"). Knows one line.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Protocol

from sam2_mcp_worker.checks.amounts import plain_number
from sam2_mcp_worker.checks.figures.form import CLOCK_UNIT, DATE_UNIT, MONTH_DAY_UNIT, MONTH_UNIT, VALUE_KINDS, Form
from sam2_mcp_worker.checks.figures.units import Unit, comparable, scaled_unit
from sam2_mcp_worker.checks.figures.words import words_of

_BREAK = re.compile(r"(?P<soft>[,/])|[;※▶▷■□●○◆◇•☞✔★☆!?]|\.(?=\s|$)|\s-\s(?=\D*\d)|(?<=다)\.")
_OPEN, _CLOSE = "([{<", ")]}>"
_UNIT_NOTE = re.compile(r"[(\[]\s?(?:단위\s?[:\s]\s?)?([^()\[\]]{1,8})[)\]]|단위\s?:\s?(\S{1,6})")
# What a header says about how its figures are counted.
_PER_WORDS = (
    (re.compile(r"(?<![가-힣])(?:월\s?보험료|월납|매월|월\s?납입)"), "월"),
    (re.compile(r"(?<![가-힣])(?:연\s?보험료|연납|매년|연간)"), "연"),
    (re.compile(r"(?<![가-힣])(?:매일|하루|1일당|일당)"), "일"),
)
# What stands right behind a length or an age and says what it is one of.
_ENDING = re.compile(r"\s?(납입?|만기|갱신)(?![가-힣]*(?:환급|보험금))")
_BRACKET = re.compile(r"\s?[(\[]([^()\[\]]*)[)\]]")
# An amount or a rate is a condition of another figure where the text limits it or gives it as such.
_LIMITS = {"at_least": "이상", "more_than": "이상", "at_most": "이하", "less_than": "이하"}
_CONDITIONS = ("at_least", "more_than", "less_than")
_GIVEN = re.compile(r"\s?(?:기준|가입\s?시|일\s?때|인\s?경우|의\s?경우|가입\s?경우)")
_NO_LENGTH = (DATE_UNIT, MONTH_DAY_UNIT, MONTH_UNIT, CLOCK_UNIT)
# A name is said in a few words; what is further away belongs to something else.
MAX_WORDS = 10
MAX_CHARS = 120
# A sentence has a few conditions; a row of hundreds of numbers has none.
MAX_CONDITIONS = 12


class Measured(Protocol):
    """What a condition needs of a figure."""

    @property
    def low(self) -> Decimal: ...
    @property
    def high(self) -> Decimal: ...
    @property
    def unit(self) -> str: ...
    @property
    def bound(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Clause:
    """Context of one figure: phrases that name it, weaker ones, what it is counted by, conditions beside it.

    `behind` is what stands right behind it ("10% 할인"); it is part of one of the others as well. `named` is false
    where nothing in front of the figure names it, so that a name may stand beside or above the line. `of_a_value` is
    true of a figure that is itself a condition of a value in its sentence: the age of a premium.
    """

    label: tuple[str, ...]
    around: tuple[str, ...] = ()
    per: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    named: bool = True
    behind: str = ""
    of_a_value: bool = False

    def named_by(self, phrases: tuple[str, ...]) -> Clause:
        """The same with phrases from elsewhere that name it, which come first."""
        return replace(self, label=phrases + self.label, per=self.per or per_of(phrases))


def clauses_of(text: str, forms: Sequence[Form]) -> list[Clause]:
    """The context of each figure of a line, in order."""
    line = _Line(text, forms)
    return [line.clause(number) for number in range(len(forms))]


def condition(figure: Measured) -> str:
    """A figure as a word of another one's context: "40세", "12개월이하"."""
    low, high, unit = comparable(figure.low, figure.high, figure.unit)
    value = plain_number(low) if low == high else f"{plain_number(low)}~{plain_number(high)}"
    return f"{value}{'' if unit in _NO_LENGTH else unit}{_LIMITS.get(figure.bound, '')}"


def conditions_in(text: str, forms: Sequence[Form]) -> tuple[str, ...]:
    """What a title says about all figures below it: "40세 남자, 20년납"."""
    return tuple(condition(form) for form in forms if _is_condition(form, text))[:MAX_CONDITIONS]


def with_conditions(text: str, forms: Sequence[Form]) -> str:
    """A text with each of its figures as a condition is written."""
    return _said(text, forms, 0, len(text))


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


class _Line:
    """A line with its figures and the places where its clauses end."""

    def __init__(self, text: str, forms: Sequence[Form]) -> None:
        self._text, self._forms = text, forms
        inside = {at for form in forms for at in range(form.start, form.end)}
        self._breaks = [match for match in _BREAK.finditer(text) if match.start() not in inside]
        self._values = [form for form in forms if not _is_condition(form, text)]
        self._conditions = [form for form in forms if _is_condition(form, text)]

    def clause(self, number: int) -> Clause:
        form = self._forms[number]
        first = self._first_of_run(number)
        start = self._start(first)
        opened = self._opened(start, first.start)
        before = self._words(opened + 1 if opened >= 0 else start, first.start)
        outer = self._words(self._start_before(opened), opened) if opened >= 0 else ""
        behind = self._behind(number)
        ending = _ENDING.match(self._text, form.end)
        named = bool(ending) or any(words_of(phrase) for phrase in (before, outer))
        label = tuple(phrase for phrase in (ending[1] if ending else "", before, outer) if phrase)
        tail = behind
        if behind and not ending and (form.kind not in VALUE_KINDS or not named):
            label, behind = ((*label, behind) if named else (behind, *label)), ""
        around = (behind,) if behind else ()
        return Clause(
            label=label,
            around=around,
            per=() if form.per else per_of(label),
            conditions=self._beside(form, ended=bool(ending)),
            named=named,
            behind=tail,
            of_a_value=_is_condition(form, self._text) and self._has_value(form),
        )

    def _first_of_run(self, number: int) -> Form:
        """ "20년납 100세 만기": what stands before the first of these names all of them."""
        while number and _ENDING.match(self._text, self._forms[number].end):
            between = _ENDING.match(self._text, self._forms[number - 1].end)
            if not between or self._text[between.end() : self._forms[number].start].strip(" ,/"):
                break
            number -= 1
        return self._forms[number]

    def _start(self, form: Form) -> int:
        """Where the clause of a figure begins: behind the last value, and behind a comma if a name stands after it."""
        hard = max((one.end() for one in self._breaks if not one["soft"] and one.end() <= form.start), default=0)
        ends = [hard, *(one.end for one in self._values if hard <= one.end <= form.start)]
        start = max(ends)
        if form.kind not in VALUE_KINDS:  # "1일당 3만원을 180일 한도로": a length says how long its value is paid
            start = next((end for end in sorted(ends, reverse=True) if words_of(self._text[end : form.start])), hard)
        commas = (one.end() for one in reversed(self._breaks) if one["soft"] and start <= one.start() < form.start)
        return next((end for end in commas if words_of(self._text[end : form.start])), start)

    def _start_before(self, opened: int) -> int:
        return max((match.end() for match in self._breaks if match.end() <= opened), default=0)

    def _opened(self, start: int, end: int) -> int:
        """Where the bracket opens in which the figure stands, -1 where it stands in none."""
        opened = max(self._text.rfind(char, start, end) for char in _OPEN)
        return -1 if opened < 0 or any(char in self._text[opened:end] for char in _CLOSE) else opened

    def _behind(self, number: int) -> str:
        """The words behind a figure up to the next one, with all of a bracket there ("5% 할인 (건강체)")."""
        end = self._forms[number].end
        stops = [one.start for one in self._forms[number + 1 :]]
        stops += [match.start() for match in self._breaks if match.start() >= end]
        stops += [at for at in (self._text.find(char, end) for char in _OPEN + _CLOSE) if at >= 0]
        stop = min(stops, default=len(self._text))
        bracket = _BRACKET.match(self._text, stop)
        told = self._words(end, stop)
        return f"{told} {self._words(*bracket.span(1))}".strip() if bracket else told

    def _sentence(self, form: Form) -> tuple[int, int]:
        hard = [match for match in self._breaks if not match["soft"]]
        start = max((match.end() for match in hard if match.end() <= form.start), default=0)
        return start, min((match.start() for match in hard if match.start() >= form.end), default=len(self._text))

    def _has_value(self, form: Form) -> bool:
        start, end = self._sentence(form)
        return any(start <= one.start and one.end <= end for one in self._values)

    def _beside(self, form: Form, *, ended: bool) -> tuple[str, ...]:
        """Conditions between the values before and behind a figure, in its sentence."""
        start, end = self._sentence(form)
        start = max([start, *(one.end for one in self._values if one.end <= form.start)])
        end = min([end, *(one.start for one in self._values if one.start >= form.end)])
        others = (one for one in self._conditions if one is not form and start <= one.start and one.end <= end)
        told = (one for one in others if not (ended and _ENDING.match(self._text, one.end)))
        return tuple(condition(one) for one in itertools.islice(told, MAX_CONDITIONS))

    def _words(self, start: int, end: int) -> str:
        nearest_last = bool(self._forms) and self._forms[-1].start >= end
        start, end = (max(start, end - MAX_CHARS), end) if nearest_last else (start, min(end, start + MAX_CHARS))
        among = [form for form in self._forms if start <= form.start and form.end <= end]
        words = _said(self._text, among, start, end, values=self._values).split()
        return " ".join(words[-MAX_WORDS:] if nearest_last else words[:MAX_WORDS])


def _is_condition(form: Form, text: str) -> bool:
    return form.kind not in VALUE_KINDS or form.bound in _CONDITIONS or bool(_GIVEN.match(text, form.end))


def _said(text: str, forms: Sequence[Form], start: int, end: int, *, values: Sequence[Form] = ()) -> str:
    """A stretch of a line, its conditions in one form ("1년" and "12개월" alike) and without its values."""
    parts: list[str] = []
    at = start
    left_out = {id(form) for form in values}
    for form in forms:
        parts += [text[at : form.start], " " if id(form) in left_out else f" {condition(form)} "]
        at = form.end
    return " ".join("".join([*parts, text[at:end]]).split())
