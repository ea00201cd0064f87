"""The HTML report of a check: every row, nothing hostile, and what was not read."""

from __future__ import annotations

import dataclasses

import pytest

from sam2_mcp_worker.pipelines import findings_report
from sam2_mcp_worker.pipelines.findings_report import FindingsReport, ReportRow, render_findings

JPEG = b"\xff\xd8\xff\xe0 a picture"
REPORT = FindingsReport(
    name="광고.pdf",
    created_at="2026-11-30T10:00:00+00:00",
    engine="local OCR",
    caption=("Phrases and rules", "문구와 규칙"),
    columns=(("Phrase", "문구"), ("Why", "사유")),
    rows=[
        ReportRow(1, "met", ("read_terms", "")),
        ReportRow(2, "not_met", ("<script>alert(1)</script>", '"1억 -> 5천만" & more')),
        ReportRow(3, "review", ("seal", "perhaps")),
        ReportRow(4, "cannot_tell", ("renewal", "page 2 failed")),
    ],
    label="reject",
    because=("phrase_altered not_met: 1 (<b>x</b>)",),
    pictures=[("Page 1", JPEG), ("Page 2", b"no picture")],
    unread=["page 2: failed (<i>)"],
    notes=["read by <u>"],
)


def test_every_row_stands_there_with_its_number_verdict_and_words() -> None:
    html = render_findings(REPORT)
    assert html.count("<tr>") == 1 + len(REPORT.rows)
    for words in (
        "read_terms",
        "&quot;1억 -&gt; 5천만&quot; &amp; more",
        "not met",
        "사람이 확인",
        "page 2 failed",
        "Reject.",
    ):
        assert words in html
    assert "Check report" in html and "광고.pdf" in html


def test_nothing_from_a_document_becomes_markup() -> None:
    html = render_findings(REPORT)
    assert not any(markup in html for markup in ("<script", "<b>x", "<i>", "<u>"))


def test_pictures_are_inlined_and_those_that_are_none_are_told() -> None:
    html = render_findings(REPORT)
    assert html.count("data:image/jpeg;base64,") == 1
    assert html.count("was left out to keep the file small") == 1
    assert "for a person to look at" in html, "the legend"
    without = render_findings(dataclasses.replace(REPORT, pictures=()))
    assert "How to read the pictures" not in without


def test_what_was_not_read_is_a_warning_of_its_own_and_absent_where_all_was_read() -> None:
    assert "what is not found may stand here" in render_findings(REPORT)
    assert "what is not found may stand here" not in render_findings(dataclasses.replace(REPORT, unread=()))


def test_a_hostile_number_of_rows_and_letters_is_bounded_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings_report, "MAX_ROWS", 2)
    monkeypatch.setattr(findings_report, "MAX_CELL_CHARS", 10)
    many = dataclasses.replace(REPORT, rows=[ReportRow(n, "met", ("y" * 50, "")) for n in range(5)])
    html = render_findings(many)
    assert "3 more rows are left out" in html and "y" * 10 not in html


def test_an_approval_looks_like_one_and_everything_else_does_not() -> None:
    assert 'class="card verdict"' in render_findings(dataclasses.replace(REPORT, label="approve"))
    for label in ("conditional", "reject", "none", "unheard of"):
        assert 'class="card verdict incomplete"' in render_findings(dataclasses.replace(REPORT, label=label))
