"""The tables of a video's report: labels, phrases and lines of text with their times, sizes and verdicts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sam2_mcp_worker.checks.exposure import Check, Exposures
from sam2_mcp_worker.checks.rule_packs import VideoRules
from sam2_mcp_worker.pipelines.report_document import column_heads
from sam2_mcp_worker.pipelines.report_html import both, language_attribute, text_html, words_for
from sam2_mcp_worker.pipelines.text_tracks import TextTrack
from sam2_mcp_worker.pipelines.video_finding_types import LabelFinding, PhraseFinding, Place, VideoFindings
from sam2_mcp_worker.pipelines.video_rows import numbered, shown_s

# More lines of text make a page that nobody reads to its end; the result lists them all.
MAX_TEXTS = 500
MAX_EXPOSURES = 12  # in one cell
STATE_WORDS = {
    "shown": ("shown", "나옴"),
    "altered": ("altered", "숫자·날짜가 다름"),
    "review": ("to be looked at", "확인 필요"),
    "not_shown": ("not shown", "나오지 않음"),
    "cannot_tell": ("cannot tell", "판단할 수 없음"),
}
STATE_CHIPS = {"shown": "done", "not_shown": "none", "altered": "failed"}
VERDICT_WORDS = {
    "met": ("met", "충족"),
    "not_met": ("not met", "미달"),
    "cannot_tell": ("cannot tell", "판단할 수 없음"),
}
VERDICT_CHIPS = {"met": "done", "not_met": "failed"}
RULE_WORDS = {
    "min_exposure_s": ("time", "시간", "s"),
    "min_text_height_px": ("height", "높이", "px"),
    "min_text_height_share": ("height", "높이", "%"),
}
BASIS_WORDS = {"house": ("The operator's own values, not those of a law", "운영자가 정한 값이며 법령의 값이 아님")}

Column = tuple[str, str, str]
NUMBER: Column = ("No.", "번호", "n")
SHOWN: tuple[Column, ...] = (
    ("On screen (sure, possible)", "노출 시간(확실·가능)", "n"),
    ("From–to", "시각", ""),
    ("Frames", "화면 수", "n"),
)
CHECKS: Column = ("Rules", "기준", "quote")


def clock(time_s: float) -> str:
    """`1:02.50`, with hours where there are any."""
    hundredths = round(max(0.0, time_s) * 100)
    minutes, seconds = divmod(hundredths, 6000)
    hours, minutes = divmod(minutes, 60)
    ahead = f"{hours}:{minutes:02d}" if hours else f"{minutes}"
    return f"{ahead}:{seconds // 100:02d}.{seconds % 100:02d}"


def rules_card(rules: VideoRules | None, findings: VideoFindings) -> str:
    """The minimums that were held against, whose they are, and how the smallest text of all stands to them."""
    smallest = findings.smallest_text
    parts = []
    if rules is not None:
        minimums = [
            *([f"{rules.min_text_height_px:g} px"] if rules.min_text_height_px is not None else []),
            *([f"{rules.min_text_height_share:.2%}"] if rules.min_text_height_share is not None else []),
            *([f"{rules.min_exposure_s:g} s"] if rules.min_exposure_s is not None else []),
        ]
        words = f"Minimums: {', '.join(minimums)}. {words_for(BASIS_WORDS, rules.basis)[0]}. {rules.note}"
        parts.append(f"<p>{both(words, words_for(BASIS_WORDS, rules.basis)[1])}</p>")
    if smallest is not None:
        place = f"{smallest.place.height_px:.1f} px ({smallest.share:.2%}), {clock(smallest.place.time_s)}"
        label = both(f"Smallest text: {place}", "가장 작은 글자")
        parts.append(f"<p>{label} {_quoted(smallest.text)} {_checks(findings.checks)}</p>")
    if not parts:
        return ""
    return f'<section class="card"><h2>{both("Rules", "기준")}</h2>\n{"".join(parts)}</section>'


def finding_tables(findings: VideoFindings, not_looked: str) -> str:
    """A table each for labels, phrases and texts; `not_looked` says why nobody looked for regions."""
    named = numbered(findings)
    parts = []
    if named.labels:
        trouble = f'<p class="trouble unreached">{text_html(not_looked)}</p>' if not_looked else ""
        columns = (
            NUMBER,
            ("Label", "찾은 것", ""),
            ("State", "상태", ""),
            *SHOWN,
            ("Greatest height", "가장 큰 높이", "n"),
            ("Smallest text in it", "안의 가장 작은 글자", "n"),
            CHECKS,
        )
        rows = (_label_row(number, one) for number, one in named.labels)
        parts.append(_table("Labels", "찾은 영역", columns, rows, trouble))
    if named.phrases:
        columns = (
            NUMBER,
            ("Phrase", "문구", "quote"),
            ("State", "상태", ""),
            *SHOWN,
            ("Smallest height", "가장 작은 높이", "n"),
            ("Read as", "읽은 글", "quote"),
            CHECKS,
        )
        parts.append(_table("Phrases", "문구", columns, (_phrase_row(number, one) for number, one in named.phrases)))
    if named.texts:
        columns = (NUMBER, ("Text", "글", "quote"), *SHOWN, ("Height", "높이", "n"), CHECKS)
        shown = named.texts[:MAX_TEXTS]
        left = len(named.texts) - len(shown)
        more = f"<p>{left:,} more lines are left out here; the inspection's result holds them.</p>" if left else ""
        parts.append(_table("Lines of text", "화면의 글", columns, (_text_row(n, one) for n, one in shown), more))
    return "\n".join(parts)


def _table(english: str, korean: str, columns: Sequence[Column], rows: Iterable[Sequence[str]], also: str = "") -> str:
    kinds = [kind for _, _, kind in columns]
    lines = "\n".join(
        "<tr>" + "".join(f'<td class="{kind}">{cell}</td>' for kind, cell in zip(kinds, row, strict=True)) + "</tr>"
        for row in rows
    )
    return (
        f'<section class="card wide"><table>\n<caption>{both(english, korean)}</caption>\n'
        f"<thead><tr>{column_heads(columns)}</tr></thead>\n<tbody>\n{lines}\n</tbody>\n</table>{also}</section>"
    )


def _label_row(number: int, one: LabelFinding) -> Sequence[str]:
    return (
        str(number),
        _quoted(one.label),
        _state(one.state, one.reason),
        *_shown(one.exposures, one.frames),
        _height(one.greatest, one.greatest_share),
        _height(one.smallest_text, one.smallest_text_share),
        _checks(one.checks),
    )


def _phrase_row(number: int, one: PhraseFinding) -> Sequence[str]:
    differences = "".join(f"<br>{text_html(each)}" for each in one.differences)
    score = f" ({one.score:.2f})" if one.read_as else ""
    return (
        str(number),
        _quoted(one.phrase),
        _state(one.state, one.reason),
        *_shown(one.exposures, one.frames),
        _height(one.smallest, one.smallest_share),
        (_quoted(one.read_as) + score if one.read_as else "–") + differences,
        _checks(one.checks),
    )


def _text_row(number: int, one: TextTrack) -> Sequence[str]:
    return (
        str(number),
        _quoted(one.text),
        *_shown(one.exposures, one.frames),
        f"{one.height_px:.1f} px ({one.height_share:.2%})",
        _checks(one.checks),
    )


def _shown(exposures: Exposures, frames: int) -> tuple[str, str, str]:
    if not exposures.shown:
        return "–", "–", f"{frames:,}"
    times = [f"{clock(one.earliest_s)}–{clock(one.latest_s)}" for one in exposures.shown[:MAX_EXPOSURES]]
    more = len(exposures.shown) - len(times)
    return shown_s(exposures), "<br>".join([*times, *([f"+{more:,}"] if more else [])]), f"{frames:,}"


def _height(place: Place | None, share: float | None) -> str:
    if place is None:
        return "–"
    of_frame = f" ({share:.2%})" if share is not None else ""
    return f"{place.height_px:.1f} px{of_frame}<br>{clock(place.time_s)}"


def _state(state: str, reason: str) -> str:
    chip = f'<span class="chip {STATE_CHIPS.get(state, "unreached")}">{both(*words_for(STATE_WORDS, state))}</span>'
    return chip + (f"<br>{text_html(reason)}" if reason else "")


def _checks(checks: Sequence[Check]) -> str:
    return "<br>".join(_check(check) for check in checks) or "–"


def _check(check: Check) -> str:
    english, korean, unit = RULE_WORDS[check.rule]
    measured = "–" if check.measured is None else _value(check.measured, unit)
    most = None if check.possible is None else _value(check.possible, unit)
    possible = f"–{most}" if most not in (None, measured) else ""
    chip = f'<span class="chip {VERDICT_CHIPS.get(check.verdict, "unreached")}">{_verdict_words(check.verdict)}</span>'
    words = text_html(f"{measured}{possible} (minimum {_value(check.minimum, unit)})")
    return f"{chip} {both(english, korean)} {words}" + (f"<br>{text_html(check.reason)}" if check.reason else "")


def _verdict_words(verdict: str) -> str:
    return both(*words_for(VERDICT_WORDS, verdict))


def _value(value: float, unit: str) -> str:
    return f"{value:.2%}" if unit == "%" else f"{value:.2f} {unit}".replace(".00 ", " ")


def _quoted(text: str) -> str:
    return f'<span dir="auto"{language_attribute(text)}>{text_html(text)}</span>'
