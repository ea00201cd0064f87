"""What the HTML report of check_figures says: a row for each figure, and their boxes on the advertisement's pages."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from typing import Any

from sam2_mcp_worker.artifacts import Artifact
from sam2_mcp_worker.checks.figure_compare import FigureFinding, FigureState
from sam2_mcp_worker.checks.findings import Verdict
from sam2_mcp_worker.checks.verdict import VerdictLabel
from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.media.box_styles import FindingKind
from sam2_mcp_worker.pipelines.check_report import write_report
from sam2_mcp_worker.pipelines.figure_rows import figure_facts
from sam2_mcp_worker.pipelines.figure_sources import FailedFile, ReadFile
from sam2_mcp_worker.pipelines.finding_pictures import Mark
from sam2_mcp_worker.pipelines.findings_report import FindingsReport, ReportRow
from sam2_mcp_worker.services import Services

CAPTION = ("Figures and their evidence", "수치와 근거")
COLUMNS = (
    ("In the advertisement", "광고의 수치"),
    ("About", "내용"),
    ("In the evidence", "근거 자료의 수치"),
    ("Reason", "사유"),
)
VERDICTS: dict[FigureState, Verdict] = {"match": "met", "mismatch": "not_met", "cannot_compare": "cannot_tell"}
MARKS: dict[FigureState, FindingKind] = {"match": "met", "mismatch": "not_met", "cannot_compare": "review"}


async def write_figure_report(
    services: Services,
    advertisement: ReadFile,
    evidence: Sequence[ReadFile | FailedFile],
    findings: Sequence[FigureFinding],
    label: VerdictLabel,
    deadline: Deadline,
) -> Artifact | None:
    """The report of all findings, in their order; None for an advertisement that nothing was read of."""
    read = advertisement.document
    if read is None:
        return None
    report = FindingsReport(
        name=advertisement.name,
        created_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        engine=read.engine,
        caption=CAPTION,
        columns=COLUMNS,
        rows=[_row(number, one) for number, one in enumerate(findings, start=1)],
        label=label.label,
        because=label.said,
        unread=list(_unread([advertisement, *evidence])),
        notes=[f"{one.name}: {note}" for one in [advertisement, *evidence] for note in _notes(one)],
    )
    marks = [
        Mark(number, MARKS[one.state], one.figure.place.page, one.figure.place.box_xyxy, one.figure.place.start_s)
        for number, one in enumerate(findings, start=1)
        if one.figure.place.page is not None and one.figure.place.box_xyxy is not None
    ]
    return await write_report(services, read, marks, report, deadline)


def _row(number: int, one: FigureFinding) -> ReportRow:
    figure = figure_facts(one.figure)
    evidence = figure_facts(one.evidence) if one.evidence is not None else {}
    cells = (
        f"{figure['text']} ({_where(figure)})",
        str(figure.get("label", "")),
        f"{evidence['text']} ({one.evidence_name}, {_where(evidence)})" if evidence else "",
        one.reason,
    )
    return ReportRow(number, VERDICTS[one.state], cells)


def _where(facts: dict[str, Any]) -> str:
    """The place in words."""
    named = {"sheet": "sheet {}", "cell": "cell {}", "page": "page {}", "line": "line {}", "start_s": "{} s"}
    return ", ".join(words.format(facts[key]) for key, words in named.items() if key in facts)


def _unread(files: Sequence[ReadFile | FailedFile]) -> Iterator[str]:
    for one in files:
        what = one.error.reason if isinstance(one, FailedFile) else one.unread
        if what:
            yield f"{one.name}: {what}"


def _notes(one: ReadFile | FailedFile) -> tuple[str, ...]:
    return one.notes if isinstance(one, ReadFile) else ()
