"""The units of figures: how they are written, what kind of figure they make, and when two of them measure the same.

A unit of one syllable also begins other words ("3 인상", "1 세트"); what may not follow it is named with it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from sam2_mcp_worker.checks.figures.form import FigureKind

WON = "원"


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit under the name that results use."""

    name: str
    kind: FigureKind


_WRITTEN: tuple[tuple[FigureKind, str, str], ...] = (
    ("percent", "%p", r"%\s?(?:[pP]|포인트)|퍼센트\s?포인트|%P"),
    ("percent", "%", r"%|퍼센트|프로(?![가-힣]{2})"),
    ("amount", WON, r"원(?!금|칙|인|래|천|형)|KRW"),
    ("amount", "달러", r"달러|불(?=[\s,.)]|$)|USD|US\$"),
    ("amount", "유로", r"유로|EUR"),
    ("amount", "엔", r"엔(?![가-힣진])|JPY"),
    ("amount", "위안", r"위안|CNY"),
    ("count", "세대", r"세대"),
    ("age", "세", r"세(?!트|계|무|금|액|부(?!터)|심|차|척|포|탁)|살(?![가-힣]{2})"),
    ("period", "개월", r"개월|달(?=[\s,.)~간에]|$)"),
    ("count", "개년도", r"개년도"),
    ("count", "주년", r"주년"),
    ("period", "년", r"개년|년"),
    ("period", "주", r"주(?=[\s,.)~간차]|일|이[내상하후]|$)일?"),
    ("period", "일", r"일(?!반|시|정|괄|체|원|단|상|등|부(?!터)|자리|본|종)|영업일"),
    ("period", "시간", r"시간"),
    ("count", "명", r"명(?!시|령|확|세|칭|목|품|절)|분(?=께|들|에게|이나|의\s?고객)"),
    ("period", "분", r"분(?!기|야|류|배|할|석|리|실|쟁|담|만|양|납)"),
    ("period", "초", r"초(?!과|기|회|년|음|대|진|보)"),
    ("count", "분기", r"분기"),
    ("count", "개사", r"개\s?사(?![가-힣])"),
    ("count", "개국", r"개국"),
    ("count", "개", r"개(?!월|년|인|시|정|선|별|요|설|발|편|혁|념|최|통|방|사|국)소?"),
    ("count", "인", r"인(?!상|하|정|증|터|플|원|간|출|보|지|생|적|수|구)실?"),
    ("count", "건", r"건(?!강|물|축|보|의|설|전|조)"),
    ("count", "회", r"회(?!사|원|복|의|피|계|선)"),
    ("count", "번", r"번(?!호|지|째|역|길)"),
    ("count", "번째", r"번째"),
    ("count", "가지", r"가지"),
    ("count", "종", r"종(?!신|합|료|류|목|교|사|결|속|전|일|양)"),
    ("count", "대", r"대(?!상|표|출|비|형|해|한|로|부|리|신|안|략|응|중(?!대)|학|체|기|여|금|피|인|행|장)"),
    ("count", "위", r"위(?!험|하|해|한|반|원|암|탁|임|장|염|궤|치|로|기)"),
    ("count", "배", r"배(?!당|상|우|송|정|너|려|타|서|제|분|뇨|변)"),
    ("count", "등급", r"등급"),
    ("count", "등", r"등(?!록|급|기|본|의|에|을|은|산)"),
    ("count", "급", r"급(?!여|부|성|격|식|증|수|히|락|전|등)"),
    ("count", "단계", r"단계"),
    ("count", "항목", r"항목"),
    ("count", "부위", r"부위"),
    ("count", "점", r"점(?!검|유|수|포|차|심|막)"),
    ("count", "차", r"차(?!량|액|이|감|별|등|트|단|주|용|종|남|녀|도|입)"),
    ("count", "매", r"매(?!월|년|일|주|출|우|입|도|각|수|회|달)"),
    ("count", "장", r"장(?!해|기|애|점|려|래|소|치|착|학|수|의|염|암|비|년)"),
    ("count", "기", r"기(?!간|존|준|타|본|초|록|능|관|금|재|업|술|다|납|본형|부|여)"),
    ("count", "형", r"형(?!태|식|사|성|법)"),
    ("count", "곳", r"곳"),
    ("count", "구좌", r"구좌|계좌|좌(?![가-힣])"),
    ("count", "학년", r"학년"),
    ("count", "포인트", r"포인트|[pP](?![A-Za-z])"),
    ("count", "평", r"평(?!균|생|가|일|소|점)"),
    ("count", "제곱미터", r"제곱미터|m²|m2"),
    ("count", "km", r"km|킬로미터"),
    ("count", "cm", r"cm|센티미터"),
    ("count", "mm", r"mm"),
    ("count", "m", r"m(?![A-Za-z²])|미터"),
    ("count", "kg", r"kg|킬로그램"),
    ("count", "g", r"g(?![A-Za-z])|그램"),
    ("count", "ml", r"ml|mL"),
    ("count", "cc", r"cc"),
)
# Groups of a regular expression must be named, so a unit is known by the number of its row.
UNIT_PATTERN = "|".join(f"(?P<u{index}>{pattern})" for index, (_, _, pattern) in enumerate(_WRITTEN))
_UNITS = {f"u{index}": Unit(name, kind) for index, (kind, name, _) in enumerate(_WRITTEN)}
BEFORE = {"₩": Unit(WON, "amount"), "KRW": Unit(WON, "amount"), "$": Unit("달러", "amount")}
BEFORE |= {"US$": BEFORE["$"], "USD": BEFORE["$"], "미화": BEFORE["$"], "€": Unit("유로", "amount")}
BEFORE |= {"EUR": BEFORE["€"], "¥": Unit("엔", "amount"), "JPY": Unit("엔", "amount")}
_ALONE = re.compile(rf"(?P<scale>[십백천만억]*)\s?(?:{UNIT_PATTERN})")
# Lengths of time in the shortest unit that divides them exactly; a month has no fixed number of days.
_LENGTHS = {
    "년": ("개월", 12),
    "개월": ("개월", 1),
    "주": ("일", 7),
    "일": ("일", 1),
    "시간": ("초", 3600),
    "분": ("초", 60),
    "초": ("초", 1),
}


def unit_of(groups: dict[str, str | None]) -> Unit | None:
    """The unit that a match of UNIT_PATTERN found."""
    return next((_UNITS[name] for name, text in groups.items() if text is not None and name in _UNITS), None)


def scaled_unit(text: str) -> tuple[str, Unit] | None:
    """A text that is a unit and nothing else, as headers of tables name it ("만원", "%"): its power of ten and unit."""
    match = _ALONE.fullmatch(text.strip())
    unit = unit_of(match.groupdict()) if match else None
    return (match["scale"], unit) if match and unit else None


def comparable(low: Decimal, high: Decimal, unit: str) -> tuple[Decimal, Decimal, str]:
    """The same value in the unit in which it is compared: 1년 and 12개월 are one length."""
    name, factor = _LENGTHS.get(unit, (unit, 1))
    return low * factor, high * factor, name
