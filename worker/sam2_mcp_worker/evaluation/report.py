"""One HTML file about an evaluation: first what does not count, then the figures with their intervals, then each case.

A pure function of its input, set like every report of the worker: complete in itself, nothing runs, all foreign text
escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from string import Template

from sam2_mcp_worker.evaluation.runs import RunRecord
from sam2_mcp_worker.evaluation.scoring import NO_LABEL, CaseScore, FindingScore, Rate, Score
from sam2_mcp_worker.pipelines.report_document import column_heads, document, figures_html, say
from sam2_mcp_worker.pipelines.report_html import both, text_html

KIND = ("Evaluation report", "평가 보고서")
FOOTER = (
    "Intervals are those of 95 % confidence: on each side the wider of Wilson's over all counts and a bootstrap over "
    "cases and their repeats. Refused runs are in no figure."
)
LABELS = {
    "approve": ("approve", "승인"),
    "conditional": ("conditional", "조건부 승인"),
    "reject": ("reject", "반려"),
    "none": ("none", "판정 불가"),
    NO_LABEL: ("no label", "판정 없음"),
}
CASE_COLUMNS = (
    ("Case", "사례", ""),
    ("Runs that count", "유효 실행", "n"),
    ("Expected", "기대 판정", ""),
    ("Given", "나온 판정", ""),
    ("Agreement", "판정 일치", "n"),
    ("Recall", "재현율", "n"),
    ("Precision", "정밀도", "n"),
)
FINDING_COLUMNS = (("Kind", "종류", ""), ("About", "대상", "quote"), ("Found", "찾음", "n"))
RUN_COLUMNS = (
    ("Run", "실행", ""),
    ("Status", "상태", ""),
    ("Label", "판정", ""),
    ("Findings", "지적", "n"),
    ("Calls", "호출", "n"),
    ("Time", "시간", "n"),
    ("Reason and notes", "사유와 참고", "why"),
)
CASE = Template("""<section class="card page" id="case-$id" aria-labelledby="title-$id">
<div class="top"><h2 id="title-$id">$id</h2> $chip <span class="meta">$meta</span>
<a class="up" href="#cases">to the table</a></div>
$findings
<div class="wide"><table><caption>Runs <span class="ko" lang="ko">실행</span></caption>
<thead><tr>$heads</tr></thead><tbody>
$runs
</tbody></table></div>
</section>""")


def evaluation_report(
    title: str, created_at: str, target: str, score: Score, runs: Mapping[str, Sequence[RunRecord]]
) -> str:
    """The whole report.

    Args:
        title: of the case files.
        created_at: ISO 8601.
        target: what was evaluated, in words.
        score: of all runs.
        runs: by case id, in order of repeats.
    """
    rows = "\n".join(_case_row(case) for case in score.cases)
    table = _table("cases", "Cases", "사례별 결과", CASE_COLUMNS, rows)
    cases = "\n".join(_case(case, runs.get(case.id, ())) for case in score.cases)
    return document(
        name=title,
        created_at=created_at,
        engine=target,
        main=f"{_verdict(score)}\n{_confusion(score)}\n{table}\n{cases}",
        footer=FOOTER,
        kind=KIND,
        how="asked:",
    )


def _verdict(score: Score) -> str:
    refused = score.attempts - score.scored
    if score.whole:
        sentences = say(f"All {score.attempts} runs count.", f"실행 {score.attempts}건이 모두 유효합니다.")
    else:
        sentences = say(
            f"{refused} of {score.attempts} runs were refused and are in no figure.",
            f"실행 {score.attempts}건 가운데 {refused}건은 무효이며 수치에 넣지 않았습니다.",
        )
        reasons = ", ".join(f"{code} {count}" for code, count in sorted(score.refused.items()))
        sentences += f'<p class="warn">{text_html(reasons)}</p>\n'
    figures = (
        (score.scored, "runs that count", "유효 실행"),
        (refused, "refused", "무효"),
        (_rate_text(score.agreement), "label agreement", "판정 일치"),
        (_rate_text(score.recall), "recall of findings", "재현율"),
        (_rate_text(score.precision), "precision of findings", "정밀도"),
    )
    css_class = "card verdict" if score.whole else "card verdict incomplete"
    return f'<section class="{css_class}" aria-label="Result">\n{sentences}{figures_html(figures)}\n</section>'


def _confusion(score: Score) -> str:
    if not score.confusion:
        return ""
    counts = {(one.expected, one.given): one.runs for one in score.confusion}
    labels = [*LABELS, *sorted({one.given for one in score.confusion} - LABELS.keys())]
    given = [label for label in labels if any(one.given == label for one in score.confusion)]
    columns = [("Expected \\ given", "기대 \\ 결과", ""), *((*_label_words(label), "n") for label in given)]
    rows = "\n".join(
        _row((("", both(*_label_words(one))), *(("n", str(counts.get((one, label), 0))) for label in given)))
        for one in labels
        if any(one == pair[0] for pair in counts)
    )
    return _table("confusion", "Labels, expected and given", "기대 판정과 나온 판정", columns, rows)


def _table(name: str, english: str, korean: str, columns: Iterable[tuple[str, str, str]], rows: str) -> str:
    return (
        f'<section class="card wide" id="{name}" aria-label="{english}">\n<table>\n'
        f"<caption>{both(english, korean)}</caption>\n<thead><tr>{column_heads(columns)}</tr></thead>\n"
        f"<tbody>\n{rows}\n</tbody>\n</table>\n</section>"
    )


def _case_row(case: CaseScore) -> str:
    expected = "–" if case.expected is None else both(*_label_words(case.expected))
    given = ", ".join(f"{label} {count}" for label, count in sorted(case.labels.items()))
    cells = (
        ("", f'<a href="#case-{text_html(case.id)}">{text_html(case.id)}</a>'),
        ("n", f"{case.scored} / {case.attempts}"),
        ("", expected),
        ("", text_html(given or "–")),
        ("n", text_html(_rate_text(case.agreement))),
        ("n", text_html(_rate_text(case.recall))),
        ("n", text_html(_rate_text(case.precision))),
    )
    return _row(cells)


def _case(case: CaseScore, runs: Sequence[RunRecord]) -> str:
    good = case.scored == case.attempts and case.attempts > 0
    meta = [] if case.steady is None else [f"most frequent label in {case.steady:.0%} of the runs"]
    meta += [f"{case.undone} runs with work undone"] if case.undone else []
    meta += [f"{case.unlisted} runs that list no findings and are in no figure about them"] if case.unlisted else []
    return CASE.substitute(
        id=text_html(case.id),
        chip=f'<span class="chip {"done" if good else "failed"}">{case.scored} / {case.attempts}</span>',
        meta=text_html(" · ".join(meta)),
        findings=_findings(case),
        heads=column_heads(RUN_COLUMNS),
        runs="\n".join(_run_row(run) for run in runs),
    )


def _findings(case: CaseScore) -> str:
    rows = [_row((("", _kind(one)), ("quote", text_html(one.about)), ("n", _found(one)))) for one in case.findings]
    rows += [
        _row((("", f"{text_html(one.kind)} (not expected)"), ("quote", text_html(one.about)), ("n", str(one.runs))))
        for one in case.false
    ]
    if not rows:
        return ""
    caption = f"<caption>{both('Findings', '지적 사항')}</caption>"
    heads = f"<thead><tr>{column_heads(FINDING_COLUMNS)}</tr></thead>"
    return f'<div class="wide"><table>{caption}{heads}<tbody>\n' + "\n".join(rows) + "\n</tbody></table></div>"


def _kind(one: FindingScore) -> str:
    return text_html(one.kind + (" (optional)" if one.optional else ""))


def _found(one: FindingScore) -> str:
    return "–" if one.found is None else f"{one.found.hits} / {one.found.total}"


def _run_row(run: RunRecord) -> str:
    chip = '<span class="chip done">counts</span>' if run.counts else '<span class="chip failed">refused</span>'
    remarks = [f"{run.code}: {run.detail}"] if run.code else []
    remarks += [*run.undone, *run.notes]
    cells = (
        ("", text_html(run.run_id)),
        ("", chip),
        ("", text_html(run.label or "–")),
        ("n", "–" if run.findings is None else str(len(run.findings))),
        ("n", str(run.calls)),
        ("n", f"{run.elapsed_s:.1f} s"),
        ("why", "<br>".join(map(text_html, remarks))),
    )
    return _row(cells)


def _row(cells: Iterable[tuple[str, str]]) -> str:
    return "<tr>" + "".join(f'<td class="{kind}">{cell}</td>' for kind, cell in cells) + "</tr>"


def _label_words(label: str) -> tuple[str, str]:
    return LABELS.get(label, (label, ""))


def _rate_text(rate: Rate | None) -> str:
    return "–" if rate is None else f"{rate.share:.0%} ({rate.low:.0%}–{rate.high:.0%})"
