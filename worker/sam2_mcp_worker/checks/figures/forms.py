"""Every figure in a line of Korean text: number, unit and what limits it, as exact values.

Owns how numbers and units stand together: ranges that share a unit ("3~5만원"), "월 12,300원", "만 20세 이상". Refuses
to guess: a form that may be a slip of reading or may mean two things carries its doubt. Knows one line and no context.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import replace

from sam2_mcp_worker.checks.amounts import AMOUNT, SPELLED, UNIT, amount_value, letters_as_digits, plain_number
from sam2_mcp_worker.checks.figures.dates import dates_of
from sam2_mcp_worker.checks.figures.form import VALUE_KINDS, Bound, FigureKind, Form
from sam2_mcp_worker.checks.figures.identifiers import without_identifiers
from sam2_mcp_worker.checks.figures.units import BEFORE, UNIT_PATTERN, WON, Unit, comparable, unit_of

# What is longer is no line of print but a paragraph or a file without line ends. It is read in pieces, since the time
# of some patterns and of clauses grows with the square of the length.
MAX_LINE_CHARS = 400
_OF_NUMBERS = frozenset("0123456789,.~-%십백천만억조원")
_SAME_LENGTH = str.maketrans(
    {"∼": "~", "〜": "~", "–": "-", "—": "-", "−": "-", "‐": "-", "‑": "-", "’": "'", "‘": "'"}
)
_CIRCLED = re.compile("[①-⓿❶-➓㉠-㉿⁰-₟¹²³]")
_SPELLED_MORE = r"(?<![가-힣\d])[이삼사오육칠팔구]?[십백천]?[만억](?=\s?(?:명|건|달러|개)(?![가-힣]))"
_NUMBER = re.compile(
    rf"(?P<before>US\$|USD|KRW|EUR|JPY|미화|[₩$€¥])?\s?(?P<sign>(?<![\w.,%)\]~])[-△▲]\s?)?"
    rf"(?P<core>(?<![\d.]){AMOUNT}|{SPELLED}|{_SPELLED_MORE})(?P<more>\s?여\s?(?:{UNIT}+)?)?"
    rf"\s?(?:{UNIT_PATTERN})?"
)
_COUNTED = re.compile(rf"(?P<digits>\d[\d,.]*)\s?(?P<units>{UNIT}*)")
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")
_LIST = re.compile(r"[1-9]\d{0,2}(?:,[1-9]\d{0,2})+")
_WRITTEN = re.compile(r"\d[\d,.]*")
_POINT_FOR_COMMA = re.compile(r"\.\d{3}$")
# Digits in which readers leave letters: the whole run is looked at where a unit follows.
_SLIPPED = re.compile(r"(?<![A-Za-z\d])(?=[OolI|,.]*\d)[\dOolI|,.]+(?=\s?(?:[십백천만억원%세년월일회]|개월))")
_SLIPS = str.maketrans("OolI|", "00111")
_JOIN = re.compile(r"\s*(?:~|-|에서|부터)\s*(?:만\s?|최대\s?|최고\s?|약\s?)?")
_RANGE_SIGN = re.compile("~|-|에서|부터")
_AFTER = re.compile(
    r"\s?(?:(?P<at_least>이상|이후|부터)|(?P<more_than>초과)|(?P<at_most>이하|이내|까지|한도|이전)|(?P<less_than>미만)"
    r"|(?P<about>내외|정도|가량|안팎|대(?![가-힣])))"
)
_BEFORE = re.compile(r"(?:(?P<at_most>최대|최고)|(?P<at_least>최소|최저)|(?P<about>(?<![가-힣])약|대략|평균))\s?$")
_PER = re.compile(
    r"(?<![가-힣\d])(?:(?P<월>매월|월간|월납|월|매달)|(?P<연>매년|연간|연|年)|(?P<일>매일|하루|일)|(?P<주>매주))"
    r"\s?(?:복리|단리|평균)?\s?$"
)
_ALSO_PER = {("1", "일"): "일", ("1", "개월"): "월", ("1", "년"): "연"}
# Between "1인당" and its amount stand a few words at most ("1인당 보험금 1억원").
_PER_REACH = 20
# "40대" is an age, "3대 질병" a count, "30대 질병" as well.
_DECADE = re.compile(r"[1-9]0")
_DECADE_NOT = re.compile(r"\s?(?:질병|질환|암|보장|특약|골절|수술|성인|중대|뇌|생활|법정|감염|기업|그룹)")


def normalised(text: str) -> str:
    """The line as figures are read: NFKC, one sign for ranges, no circled or raised digits (these are marks)."""
    plain = _CIRCLED.sub(" ", unicodedata.normalize("NFC", text).replace("㎡", "제곱미터"))
    return unicodedata.normalize("NFKC", plain.translate(_SAME_LENGTH)).translate(_SAME_LENGTH)


def pieces_of(text: str) -> list[str]:
    """A text in pieces that are short enough to be read; they end at spaces, and never inside a number."""
    pieces: list[str] = []
    while len(text) > MAX_LINE_CHARS:
        end = text.rfind(" ", MAX_LINE_CHARS // 2, MAX_LINE_CHARS)
        if end < 0:
            whole = (at for at in range(MAX_LINE_CHARS, 0, -1) if not _OF_NUMBERS & {text[at - 1], text[at]})
            end = next(whole, MAX_LINE_CHARS)
        pieces.append(text[:end])
        text = text[end:]
    return [*pieces, text]


def forms_of(text: str) -> list[Form]:
    """The figures of a line that `normalised` made, in order; identifiers are none."""
    if not any(char.isdigit() or char in "십백천만억" for char in text):
        return []
    dates = dates_of(text)
    masked = without_identifiers(_masked(text, dates))
    read = letters_as_digits(_SLIPPED.sub(lambda match: match[0].translate(_SLIPS), masked))
    numbers = [_doubted(form, text) for match in _NUMBER.finditer(read) for form in _numbers(match, read)]
    forms = sorted([*dates, *numbers], key=lambda form: form.start)
    return _limited(_counted_by(_joined(_lengths(forms, text), text), text), text)


def bare_number(form: Form, scale: str, unit: Unit) -> Form:
    """A number without a unit under a header that names one ("만원", "%")."""
    factor = amount_value(f"1{scale}")
    return replace(form, kind=unit.kind, unit=unit.name, low=form.low * factor, high=form.high * factor)


def _masked(text: str, dates: list[Form]) -> str:
    for form in dates:
        text = text[: form.start] + "\0" * (form.end - form.start) + text[form.end :]
    return text


def _numbers(match: re.Match[str], text: str) -> Iterator[Form]:
    core = match["core"]
    unit = unit_of(match.groupdict())
    name, kind = _unit_and_kind(match, unit)
    if kind == "amount" and core.rstrip().endswith("조") and unit is None:
        return  # "22조" is an article
    digits = _COUNTED.fullmatch(core)
    start = match.start("sign") if match["sign"] else match.start("core")
    start = match.start("before") if match["before"] else start
    if digits and _LIST.fullmatch(digits["digits"]) and not _GROUPED.fullmatch(digits["digits"]):
        for part in re.finditer(r"\d+", core):
            value = amount_value(part[0] + digits["units"])
            at = match.start("core") + part.start()
            yield Form(text[at : at + len(part[0])], at, at + len(part[0]), kind, value, value, name)
        return
    value = amount_value(core + re.sub(r"[여\s]", "", match["more"] or ""))
    if kind == "age" and value >= 200:  # no age; years of people end before
        kind, name = "count", "세"
    doubt = _doubt(core, kind)
    if match["sign"]:
        doubt = doubt or ("" if match["sign"].strip() == "-" else "the sign before it may mean less or more")
        value = -value
    bound: Bound = "about" if match["more"] else ""
    end = match.end() - (len(match[0]) - len(match[0].rstrip()))
    form = Form(text[start:end], start, end, kind, value, value, name, bound, doubt=doubt)
    yield _decade(form, core, text)


def _unit_and_kind(match: re.Match[str], unit: Unit | None) -> tuple[str, FigureKind]:
    unit = unit or BEFORE.get(match["before"] or "")
    if unit is not None:
        return unit.name, unit.kind
    large = bool(set("만억조") & set(match["core"] + (match["more"] or "")))
    return (WON, "amount") if large else ("", "number")


def _doubt(core: str, kind: FigureKind) -> str:
    written = _WRITTEN.findall(core)
    if not all(_GROUPED.fullmatch(digits) for digits in written):
        return "its digits are not grouped by three"
    if kind == "amount" and any(_POINT_FOR_COMMA.search(digits) for digits in written):
        return "its point may be a comma"
    return ""


def _doubted(form: Form, text: str) -> Form:
    """The form with the text as it was read; letters that were taken for digits are a doubt."""
    written = text[form.start : form.end]
    if written == form.text:
        return form
    return replace(form, text=written, doubt=f"letters were read where digits belong, perhaps {form.text}")


def _decade(form: Form, core: str, text: str) -> Form:
    if form.unit == "대" and _DECADE.fullmatch(core) and not _DECADE_NOT.match(text, form.end):
        return replace(form, kind="age", unit="세", high=form.low + 9)
    return form


def _lengths(forms: list[Form], text: str) -> list[Form]:
    """ "1년 6개월" as one length of 18 months."""
    found: list[Form] = []
    for form in forms:
        last = found[-1] if found else None
        if last and last.unit == "년" and form.unit == "개월" and not text[last.end : form.start].strip():
            months = last.low * 12 + form.low
            found[-1] = replace(form, text=text[last.start : form.end], start=last.start, low=months, high=months)
        else:
            found.append(form)
    return found


def _joined(forms: list[Form], text: str) -> list[Form]:
    """Ranges as one form each."""
    found: list[Form] = []
    for form in forms:
        last = found[-1] if found else None
        joined = _range(last, form, text) if last and _JOIN.fullmatch(text, last.end, form.start) else None
        if joined:
            found[-1] = joined
        else:
            found.append(form)
    return found


def _range(first: Form, last: Form, text: str) -> Form | None:
    first, doubt = _with_unit_of(first, last)
    if first.kind != last.kind or "~" in first.text:
        return None
    low, _, unit = comparable(first.low, first.high, first.unit)
    _, high, other = comparable(last.low, last.high, last.unit)
    if unit != other:
        return None
    if first.unit == last.unit:
        low, high, unit = first.low, last.high, last.unit
    doubt = doubt or first.doubt or last.doubt or ("" if low <= high else "it runs from more to less")
    written = text[first.start : last.end]
    return replace(
        last, text=written, start=first.start, low=min(low, high), high=max(low, high), unit=unit, doubt=doubt
    )


def _with_unit_of(first: Form, last: Form) -> tuple[Form, str]:
    """The first number of a range in the unit of the last, where it has none itself: "3~5만원", "5천~6천만원"."""
    if first.unit or not last.unit:
        return first, ""
    parts = _COUNTED.match(last.text.lstrip("₩$€¥- ")), _COUNTED.fullmatch(first.text)
    if not all(parts):
        return first, ""
    scale, own = parts[0]["units"], parts[1]["units"]  # type: ignore[index]
    if not scale.startswith(own):
        return replace(first, unit=last.unit, kind=last.kind), "its first number may stand for thousands or more"
    factor = amount_value(f"1{scale.removeprefix(own)}")
    return bare_number(
        replace(first, low=first.low * factor, high=first.high * factor), "", Unit(last.unit, last.kind)
    ), ""


def _counted_by(forms: list[Form], text: str) -> list[Form]:
    """ "1인당" and "월" as what the figure behind them is counted by."""
    found: list[Form] = []
    waiting: Form | None = None
    for form, following in itertools.zip_longest(forms, forms[1:]):
        if following is not None and _counts(form, following, text):
            waiting = form
            continue
        per = [] if waiting is None else [_per_name(waiting)]
        start = form.start
        if waiting and not text[waiting.end : start].removeprefix("당").strip():
            start = waiting.start
        word = _PER.search(text, max(0, start - 12), start)
        if word and form.kind in (*VALUE_KINDS, "count") and word.lastgroup:
            per.append(word.lastgroup)
            start = word.start()
        found.append(replace(form, start=start, text=text[start : form.end], per=tuple(per)))
        waiting = None
    return found


def _counts(form: Form, following: Form, text: str) -> bool:
    between = text[form.end : following.start]
    if following.kind not in (*VALUE_KINDS, "count"):
        return False
    if between.startswith("당") and form.low == form.high:
        return len(between) <= _PER_REACH and not set(",.;/|") & set(between)
    return not between.strip() and following.kind == "amount" and (plain_number(form.low), form.unit) in _ALSO_PER


def _per_name(form: Form) -> str:
    digits = plain_number(form.low)
    return _ALSO_PER.get((digits, form.unit), f"{digits}{form.unit}")


def _limited(forms: list[Form], text: str) -> list[Form]:
    """Words that limit a figure, behind and before it; "20세 이상 60세 이하" is one range then."""
    found: list[Form] = []
    for form in forms:
        form = _bounded(form, text)
        last = found[-1] if found else None
        if last and _closes(last, form, text):
            words = text[last.start : form.end]
            found[-1] = replace(
                form, text=words, start=last.start, low=last.low, bound="", doubt=last.doubt or form.doubt
            )
        else:
            found.append(form)
    return found


def _bounded(form: Form, text: str) -> Form:
    after = _AFTER.match(text, form.end)
    before = _BEFORE.search(text, max(0, form.start - 4), form.start)
    start, end, bound = form.start, form.end, form.bound
    if before and before.lastgroup:
        start, bound = before.start(), _as_bound(before.lastgroup)
    if after and after.lastgroup:
        end, bound = after.end(), _as_bound(after.lastgroup)
    if form.low != form.high and _RANGE_SIGN.search(form.text):
        bound = ""  # "20세부터 60세까지": its ends are its limits
    return replace(form, text=text[start:end], start=start, end=end, bound=bound)


def _as_bound(name: str) -> Bound:
    bounds: tuple[Bound, ...] = ("at_least", "more_than", "at_most", "less_than", "about")
    return next(bound for bound in bounds if bound == name)


def _closes(first: Form, last: Form, text: str) -> bool:
    """Whether two limits that stand side by side are the ends of one range."""
    return (
        first.bound == "at_least"
        and last.bound in ("at_most", "less_than")
        and (first.kind, first.unit) == (last.kind, last.unit)
        and first.low == first.high <= last.low == last.high
        and not text[first.end : last.start].replace("만", "").strip()
    )
