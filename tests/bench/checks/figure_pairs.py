"""Advertisements and their evidence with the truth about every figure, made from a seed.

Owns made-up insurance products: benefits with their siblings (암, 소액암, 갑상선암), premiums by age and sex,
conditions, rates and dates, how an advertisement says them, and what the filed documents say. A share of the figures
is altered (ten times as much, a sibling's value, another limit). `truth` is `backed` (the evidence says the same),
`wrong` (it says another value for the same thing) or `silent` (it says nothing about it).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from sam2_mcp_worker.checks.figure_compare import Evidence, FigureFinding, compare_figures
from sam2_mcp_worker.checks.figures import figures_of, figures_of_table
from sam2_mcp_worker.checks.reading import Reading, ReadLine, ReadPage
from sam2_mcp_worker.checks.tables import Table

Truth = Literal["backed", "wrong", "silent"]
WRONG_SHARE = 0.3
PAIRS = 20
_BENEFITS = (
    ("암진단비", "일반암진단비", "소액암진단비", "갑상선암진단비", "유사암진단비"),
    ("뇌출혈진단비", "뇌졸중진단비", "뇌혈관질환진단비"),
    ("급성심근경색증진단비", "허혈성심장질환진단비"),
    ("질병수술비", "상해수술비", "암수술비"),
    ("상해사망", "질병사망"),
    ("골절진단비", "화상진단비"),
)
_PRAISE = ("", "", "든든하게 보장하는 ", "지금 가입하면 ", "걱정없이 ", "누구나 ")
_PRODUCTS = ("무배당 다온 건강보험 2601", "무배당 이음 암보험(2603)", "새봄 간편보험 2512", "한결 어린이보험 2605")


@dataclass(frozen=True, slots=True)
class Pair:
    """An advertisement line by line, its evidence, and the truth about each of its figures in order."""

    seed: int
    lines: tuple[str, ...]
    tables: tuple[Table, ...]
    texts: dict[str, tuple[str, ...]]
    truth: tuple[Truth, ...]

    @property
    def advertisement(self) -> Reading:
        return reading_of(self.lines)

    def evidence(self) -> list[Evidence]:
        found = [Evidence(table.name, figures_of_table(table)) for table in self.tables]
        return [*found, *(Evidence(name, figures_of(reading_of(lines))) for name, lines in self.texts.items())]

    def judged(self) -> tuple[FigureFinding, ...]:
        return compare_figures(figures_of(self.advertisement), self.evidence())


def reading_of(lines: Sequence[str]) -> Reading:
    """A text as it is read: one page of lines without boxes."""
    return Reading("text", "line", (ReadPage(1, "done", tuple(ReadLine(line, "text") for line in lines)),))


@dataclass
class _Making:
    chance: Random
    lines: list[str] = field(default_factory=list)
    truth: list[Truth] = field(default_factory=list)
    terms: list[str] = field(default_factory=list)

    def say(self, line: str, *truth: Truth) -> None:
        self.lines.append(line)
        self.truth += truth

    def altered(self) -> bool:
        return self.chance.random() < WRONG_SHARE

    def pick(self, *options: str) -> str:
        return self.chance.choice(options)


def pair(seed: int) -> Pair:
    """One advertisement with its evidence."""
    making = _Making(Random(seed))
    making.say(making.pick(*_PRODUCTS))
    parts: list[Callable[[_Making], list[Table]]] = [_benefits, _premiums, _conditions, _rates, _daily, _silent]
    making.chance.shuffle(parts)
    tables = [table for part in parts for table in part(making)]
    making.say("준법감시인 심의필 제2026-1179호", *())
    making.say("고객센터 1588-1234, 보험업법 제95조의2에 따른 안내")
    return Pair(seed, tuple(making.lines), tuple(tables), {"약관.txt": tuple(making.terms)}, tuple(making.truth))


def pairs(count: int = PAIRS) -> list[Pair]:
    return [pair(seed) for seed in range(count)]


def won(chance: Random, ten_thousands: int) -> str:
    """An amount of so many 만원 in one of the ways it is written."""
    millions, rest = divmod(ten_thousands, 10000)
    forms = [f"{ten_thousands:,}만원", f"{ten_thousands}만 원", f"{ten_thousands * 10000:,}원"]
    if ten_thousands % 1000 == 0 and ten_thousands < 10000:
        forms += [f"{ten_thousands // 1000}천만원", f"{ten_thousands // 1000}천만 원"]
    if millions and rest % 1000 == 0:
        forms += [f"{millions}억 {rest // 1000}천만원" if rest else f"{millions}억원"]
    if millions and rest:
        forms += [f"{millions}억 {rest:,}만원"]
    return chance.choice(forms)


def _benefits(making: _Making) -> list[Table]:
    chance = making.chance
    family = [name for group in chance.sample(_BENEFITS, 3) for name in chance.sample(group, 2)]
    values = {name: chance.choice((100, 300, 500, 1000, 2000, 3000, 5000, 10000, 15000)) for name in family}
    plans = chance.random() < 0.35
    rows = [("담보명", "지급사유", "실속형", "고급형") if plans else ("담보명", "지급사유", "가입금액(만원)")]
    for name, value in values.items():
        reason = f"{name.removesuffix('진단비')} 관련 사유가 생긴 경우 (최초 1회한)"
        rows.append(
            (name, reason, won(chance, value), won(chance, value * 2)) if plans else (name, reason, f"{value:,}")
        )
    for name, value in values.items():
        _benefit(making, name, value, values, plans=plans)
    return [Table("보장내용.xlsx", tuple(rows), sheet="보장")]


def _benefit(making: _Making, name: str, value: int, values: dict[str, int], *, plans: bool) -> None:
    chance = making.chance
    said, truth = value, "backed"
    if making.altered():
        others = {value * 10, value + 1000 if value >= 1000 else value + 50, *values.values()}
        said = chance.choice(sorted(others - {value, value * 2 if plans else value}))
        truth = "wrong"
    shown = name.replace("진단비", making.pick("진단비", " 진단비")).replace("수술비", making.pick("수술비", " 수술비"))
    plan = making.pick("실속형 ", "") if plans else ""
    line = f"{making.pick(*_PRAISE)}{plan}{shown}{making.pick(' ', ': ', ' 최대 ')}{won(chance, said)}"
    making.say(line + making.pick("", " 지급", "을 드립니다", "!"), "wrong" if truth == "wrong" else "backed")


def _premiums(making: _Making) -> list[Table]:
    chance = making.chance
    ages = chance.sample((20, 25, 30, 35, 40, 45, 50, 55, 60), 3)
    money = {
        (age, sex): chance.randrange(50, 400) * 100 + chance.randrange(10) * 10
        for age in ages
        for sex in ("남성", "여성")
    }
    header = ("나이", "남성 월보험료(원)", "여성 월보험료(원)")
    rows = [header, *((f"{age}세", f"{money[age, '남성']:,}", f"{money[age, '여성']:,}") for age in sorted(ages))]
    for age in ages[:2]:
        sex = chance.choice(("남성", "여성"))
        said, truth = money[age, sex], "backed"
        if making.altered():
            said = chance.choice(
                [said + 1000, said * 10, *(other for key, other in money.items() if key != (age, sex))]
            )
            truth = "wrong" if said != money[age, sex] else "backed"
        line = making.pick(
            f"{age}세 {sex} 월 보험료 {said:,}원",
            f"{age}세 {sex} 기준 월 {said:,}원",
            f"월보험료 {said:,}원 ({age}세 {sex})",
        )
        words: tuple[Truth, ...] = ("backed", "wrong" if truth == "wrong" else "backed")
        making.say(line, *(reversed(words) if line.startswith("월보험료") else words))
    return [Table("보험료.csv", tuple(rows))]


def _conditions(making: _Making) -> list[Table]:
    chance = making.chance
    low, high = chance.choice((15, 19, 20, 30)), chance.choice((55, 60, 65, 70, 80))
    pay, until = chance.choice((10, 15, 20, 30)), chance.choice((80, 90, 100))
    rows = (
        ("구분", "내용"),
        ("가입나이", f"만 {low}세 ~ {high}세"),
        ("납입기간", f"{pay}년"),
        ("보험기간", f"{until}세 만기"),
        ("보장개시일", "계약일부터 90일이 지난 날"),
        ("판매기간", "2026.01.02 ~ 2026.12.31"),
    )
    said_high = high + 5 if making.altered() else high
    truth: Truth = "wrong" if said_high != high else "backed"
    making.say(
        making.pick(
            f"가입나이 {low}~{said_high}세",
            f"만 {low}세부터 {said_high}세까지 가입 가능",
            f"가입연령: 만 {low}세 이상 {said_high}세 이하",
        ),
        truth,
    )
    said_pay = pay + 10 if making.altered() else pay
    making.say(f"{said_pay}년납 {until}세만기", "wrong" if said_pay != pay else "backed", "backed")
    making.say(making.pick("판매기간 2026년 1월 2일~2026년 12월 31일", "판매기간: 2026.1.2~12.31"), "backed")
    if making.altered():
        making.say("보장개시일은 계약일부터 30일이 지난 날", "wrong")
    return [Table("상품요약.csv", rows)]


def _rates(making: _Making) -> list[Table]:
    chance = making.chance
    rate, least = chance.choice(("2.25", "2.5", "2.75", "3.1")), chance.choice(("0.5", "0.75", "1.0"))
    rows = (("이율", "공시이율(%)", "최저보증이율(%)"), ("적용", rate, least))
    said = f"{float(rate) + 1:g}" if making.altered() else rate
    making.say(f"공시이율 {making.pick('연 ', '')}{said}%", "wrong" if said != rate else "backed")
    making.say(f"최저보증이율 {least}%, 공시이율은 매월 바뀝니다", "backed")
    cut = chance.choice((30, 50))
    making.terms.append(f"암진단비는 계약일부터 1년 이내에 진단확정된 경우 가입금액의 {cut}%를 지급합니다.")
    said_cut = 80 if making.altered() else cut
    making.say(f"암진단비 1년 이내 진단 시 {said_cut}%", "backed", "wrong" if said_cut != cut else "backed")
    return [Table("이율.csv", rows)]


def _daily(making: _Making) -> list[Table]:
    daily = making.chance.choice((2, 3, 5))
    making.terms.append(f"질병입원일당은 입원 1일당 {daily}만원을 180일 한도로 지급합니다.")
    said = daily + 5 if making.altered() else daily
    making.say(f"질병입원일당 1일당 {said}만원 (180일 한도)", "wrong" if said != daily else "backed", "backed")
    return []


def _silent(making: _Making) -> list[Table]:
    making.say("고객만족도 3년 연속 1위", "silent", "silent")
    making.say("해약환급금은 1인당 1억원까지 보호됩니다", "silent")
    making.say(making.pick("가입자 10만 명 돌파", "5분이면 가입 끝"), "silent")
    making.say("치매진단비 1,000만원", "silent")
    return []


def counts(made: Sequence[Pair]) -> Counter[tuple[Truth, str]]:
    """How many figures of each truth were judged how."""
    found: Counter[tuple[Truth, str]] = Counter()
    for one in made:
        judged = one.judged()
        if len(judged) != len(one.truth):
            raise ValueError(f"pair {one.seed}: {len(judged)} figures read, {len(one.truth)} said")
        found.update((truth, finding.state) for truth, finding in zip(one.truth, judged, strict=True))
    return found
