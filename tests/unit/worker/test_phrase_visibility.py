"""Phrases that a file holds as text and that nobody sees are for a person; a place that can be seen is told before."""

from __future__ import annotations

import pytest

from sam2_mcp_worker.checks.contrast import ContrastRange
from sam2_mcp_worker.checks.findings import Finding
from sam2_mcp_worker.checks.phrase_decoys import judged_phrases
from sam2_mcp_worker.checks.phrase_judge import judge_phrases
from sam2_mcp_worker.checks.reading import Reading, ReadLine, ReadPage
from sam2_mcp_worker.pipelines.phrase_judging import JudgedRow, Judgement
from sam2_mcp_worker.pipelines.phrase_visibility import UNSEEN, seen_only
from sam2_mcp_worker.pipelines.rule_checks import LineMeasure, RuleChecks

NOTICE = "보험금 지급이 제한될 수 있습니다"
HIDDEN = LineMeasure(None, ContrastRange(1.0, 21.0, reason="no ink", unseen=True))
SHOWN = LineMeasure(None, ContrastRange(9.0, 9.0))
FAILED = LineMeasure(None, ContrastRange(1.0, 21.0, reason="it could not be measured"))


def judged(*measures: LineMeasure) -> JudgedRow:
    """One line with the phrase for each measure, one below the other."""
    lines = [ReadLine(NOTICE, "text_layer", (0.0, 20.0 * n, 99.0, 20.0 * n + 9), 9.0) for n in range(len(measures))]
    reading = Reading("pdf", "pt", (ReadPage(1, "done", tuple(lines)),))
    (became,) = judge_phrases(judged_phrases([NOTICE]), reading)
    finding = Finding("phrase_missing", "limits", "met", "it stands there", "law", page=1, box_xyxy=(0, 0, 99, 9))
    row = JudgedRow(NOTICE, became, None, finding)
    checks = RuleChecks((), {(1, n): measure for n, measure in enumerate(measures)})
    (seen,) = seen_only(Judgement((row,)), checks).rows
    return seen


def test_a_phrase_without_ink_is_for_a_person() -> None:
    row = judged(HIDDEN)
    assert row.finding is not None
    assert (row.became.state, row.became.reason) == ("review", UNSEEN)
    assert (row.finding.verdict, row.finding.what) == ("review", UNSEEN)


def test_a_place_that_can_be_seen_is_told_instead() -> None:
    row = judged(HIDDEN, SHOWN, HIDDEN)
    assert row.finding is not None
    assert (row.became.state, [one.index for one in row.became.lines]) == ("present", [1])
    assert len(row.became.elsewhere) == 2 and row.finding.verdict == "met"
    assert row.finding.box_xyxy == (0.0, 20.0, 99.0, 29.0)


@pytest.mark.parametrize("measure", [SHOWN, FAILED, LineMeasure(None, None)])
def test_what_was_seen_or_could_not_be_measured_stays_as_it_was_judged(measure: LineMeasure) -> None:
    row = judged(measure)
    assert row.became.state == "present" and row.finding is not None and row.finding.verdict == "met"
