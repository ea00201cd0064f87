"""The HTML report of a check: its label, a table of what was judged, the pages with numbered findings, and what was not
read. A pure function of its input; report_document.py says what the file is made of.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from string import Template

from sam2_mcp_worker.checks.findings import Verdict
from sam2_mcp_worker.media.box_styles import FINDING_STYLES
from sam2_mcp_worker.pipelines.report_document import (
    JPEG_SIGNATURE,
    column_heads,
    document,
    figures_html,
    inlined,
    say,
)
from sam2_mcp_worker.pipelines.report_html import both, language_attribute, text_html

# As pipelines/report.py: what browsers open at once.
MAX_PICTURE_BYTES = 24_000_000
# A hostile document could make a table that freezes the tab; the result counts the rest.
MAX_ROWS = 2000
MAX_CELL_CHARS = 2000
VERDICT_WORDS: dict[Verdict, tuple[str, str, str]] = {
    "met": ("met", "충족", "done"),
    "not_met": ("not met", "미충족", "failed"),
    "review": ("for a person", "사람이 확인", "unreached"),
    "cannot_tell": ("cannot tell", "판단 불가", "unreached"),
}
FINDING_KOREAN = {"met": "충족", "not_met": "미충족", "review": "사람이 확인"}
LABEL_WORDS = {
    "approve": ("Approve: everything that was judged is as it should be.", "승인: 판단한 항목이 모두 충족되었습니다."),
    "conditional": ("Conditional: there is something to mend or to look at.", "조건부: 고치거나 확인할 것이 있습니다."),
    "reject": ("Reject.", "반려"),
    "none": ("No label: not everything is known.", "판정 없음: 아직 알 수 없는 것이 있습니다."),
}

MAIN = Template("""<section class="card verdict$incomplete" aria-label="Label">
$says$because$figures
</section>
<section class="card wide" id="findings" aria-label="Findings">
<table>
<caption>$caption</caption>
<thead><tr>$columns</tr></thead>
<tbody>
$rows
</tbody>
</table>$left_out
</section>
$legend
$pictures
$notes""")

PICTURE = Template("""<section class="card page" aria-label="$title">
<div class="top"><h2>$title</h2> <a class="up" href="#findings">to the table</a></div>
<figure class="fit">$picture</figure>
</section>""")


@dataclass(frozen=True, slots=True)
class ReportRow:
    """One judged thing: its number in pictures and result, what became of it, and a cell for each column behind."""

    number: int
    verdict: Verdict
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FindingsReport:
    """What the report tells. `columns` are English and Korean heads of the cells; `pictures` title and JPEG.

    `label` is one of approve, conditional, reject and none, `because` the sentences it follows from. `unread` says what
    was not read: nothing that is not found may be missed over it. `created_at` is ISO 8601.
    """

    name: str
    created_at: str
    engine: str
    caption: tuple[str, str]
    columns: tuple[tuple[str, str], ...]
    rows: Sequence[ReportRow]
    label: str
    because: Sequence[str] = ()
    pictures: Sequence[tuple[str, bytes]] = ()
    unread: Sequence[str] = ()
    notes: Sequence[str] = ()


def render_findings(report: FindingsReport) -> str:
    """The whole file; it can be encoded as UTF-8 whatever the document held."""
    classes = _column_classes(report.columns)
    columns = ((english, korean, kind) for (english, korean), kind in zip(report.columns, classes, strict=True))
    heads = [("No.", "번호", "n"), ("Verdict", "판단", ""), *columns]
    left_out = len(report.rows) - MAX_ROWS
    main = MAIN.substitute(
        incomplete="" if report.label == "approve" else " incomplete",
        says=say(*LABEL_WORDS.get(report.label, (report.label, ""))),
        because="".join(f"<p>{text_html(reason)}</p>\n" for reason in report.because),
        figures=figures_html(_counts(report.rows)),
        caption=both(*report.caption),
        columns=column_heads(heads),
        rows="\n".join(_row(row, classes) for row in report.rows[:MAX_ROWS]),
        left_out=f"\n<p>{left_out:,} more rows are left out here.</p>" if left_out > 0 else "",
        legend=_legend() if report.pictures else "",
        pictures="\n".join(_pictures(report.pictures)),
        notes=_notes(report),
    )
    return document(
        name=report.name,
        created_at=report.created_at,
        engine=report.engine,
        main=main,
        kind=("Check report", "점검 보고서"),
        footer="It was made by rules in code, from what was read; a person decides.",
    )


def _counts(rows: Sequence[ReportRow]) -> Iterable[tuple[int, str, str]]:
    for verdict, (english, korean, _) in VERDICT_WORDS.items():
        yield sum(row.verdict == verdict for row in rows), english, korean


def _column_classes(columns: Sequence[object]) -> list[str]:
    """The last column holds sentences and is the widest."""
    return [*("quote" for _ in columns[1:]), "why"]


def _row(row: ReportRow, classes: Sequence[str]) -> str:
    english, korean, kind = VERDICT_WORDS[row.verdict]
    chip = f'<span class="chip {kind}">{both(english, korean)}</span>'
    cells = "".join(_cell(cell, kind) for cell, kind in zip(row.cells, classes, strict=True))
    return f'<tr><td class="n">{row.number}</td><td>{chip}</td>{cells}</tr>'


def _cell(text: str, kind: str) -> str:
    shown = text if len(text) <= MAX_CELL_CHARS else text[: MAX_CELL_CHARS - 1] + "…"
    return f'<td class="{kind}" dir="auto"{language_attribute(shown)}>{text_html(shown) or "–"}</td>'


def _legend() -> str:
    marks = {"met": "text_layer", "not_met": "region", "review": "ink"}
    items = "".join(
        f'<li><span class="mark {marks[kind]} {kind}" aria-hidden="true"></span>'
        f"{both(style.words, FINDING_KOREAN[kind])}</li>"
        for kind, style in FINDING_STYLES.items()
    )
    return f'<section class="card" aria-label="How to read the pictures">\n<ul class="legend">{items}</ul>\n</section>'


def _pictures(pictures: Sequence[tuple[str, bytes]]) -> Iterable[str]:
    room = MAX_PICTURE_BYTES
    for title, jpeg in pictures:
        room -= len(jpeg)
        if room < 0 or not jpeg.startswith(JPEG_SIGNATURE):
            shown = '<p class="left-out">This picture was left out to keep the file small: see its artifact.</p>'
        else:
            shown = inlined(jpeg, f"{title} with a numbered box around every finding")
        yield PICTURE.substitute(title=text_html(title), picture=shown)


def _notes(report: FindingsReport) -> str:
    parts = []
    if report.unread:
        words = both(
            "Not read: what is not found may stand here.", "읽지 못한 곳: 찾지 못한 것이 여기 있을 수 있습니다."
        )
        items = "".join(f"<li>{text_html(one)}</li>" for one in report.unread)
        parts.append(f'<div class="trouble unreached">{words}<ul>{items}</ul></div>')
    if report.notes:
        parts.append('<ul class="notes">' + "".join(f"<li>{text_html(one)}</li>" for one in report.notes) + "</ul>")
    inside = "\n".join(parts)
    return f'<section class="card" aria-label="Notes">\n{inside}\n</section>' if parts else ""
