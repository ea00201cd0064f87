"""Phrases that a file holds as text and that nobody sees are for a person; a place that can be seen is told before."""

from __future__ import annotations

import pytest

from sam2_mcp_worker.checks.contrast import ContrastRange
from sam2_mcp_worker.checks.findings import Finding
from sam2_mcp_worker.checks.phrase_decoys import judged_phrases
from sam2_mcp_worker.checks.phrase_judge import judge_phrases
from sam2_mcp_worker.checks.reading import Reading, ReadLine, ReadPage
from sam2_mcp_worker.pipelines.phrase_judging import JudgedRow, Judgement
from sam2_mcp_worker.pipelines.phrase_visibility import UNSEEN, lines_to_see, seen_only
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
    (seen,) = seen_only(Judgement((row,)), checks, reading).rows
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


SEAL = "준법감시인 심의필 제2026-1호"


def others_judged(*measures: LineMeasure) -> tuple[Finding, Finding, JudgedRow]:
    """A mark and an old wording, each on a line for each measure, and the row of the phrase that holds instead."""
    lines = [
        ReadLine(text, "text_layer", (x, 20.0 * n, x + 90, 20.0 * n + 9), 9.0)
        for n in range(len(measures))
        for x, text in ((0.0, SEAL), (100.0, NOTICE))
    ]
    reading = Reading("pdf", "pt", (ReadPage(1, "done", tuple(lines)),))
    (became,) = judge_phrases(judged_phrases([NOTICE]), reading)
    mark = Finding("review_seal", "seal", "met", "it stands there", "law", page=1, box_xyxy=lines[0].box_xyxy)
    old = Finding("phrase_stale", "old", "not_met", "it was right", "law", page=1, box_xyxy=lines[1].box_xyxy)
    missing = Finding("review_seal", "seal.number", "not_met", "nowhere", "law")
    (none,) = judge_phrases(judged_phrases(["something else that is nowhere to be found"]), reading)
    row = JudgedRow(none.phrase, none, None, None, stale=old)
    judgement = Judgement((row,), (mark, old, missing), old={"old": became})
    assert lines_to_see(judgement, reading) == {(1, n) for n in range(len(lines))}
    checks = RuleChecks((), {(1, n): measures[n // 2] for n in range(len(lines))})
    seen = seen_only(judgement, checks, reading)
    assert seen.others[2] == missing
    return seen.others[0], seen.others[1], seen.rows[0]


def test_marks_and_old_wordings_without_ink_are_for_a_person() -> None:
    mark, old, row = others_judged(HIDDEN, HIDDEN)
    assert (mark.verdict, mark.what, old.verdict, old.what) == ("review", UNSEEN, "review", UNSEEN)
    assert row.stale == old


def test_marks_and_old_wordings_count_by_a_place_that_can_be_seen() -> None:
    mark, old, row = others_judged(HIDDEN, SHOWN)
    assert (mark.verdict, mark.box_xyxy) == ("met", (0.0, 20.0, 90.0, 29.0))
    assert (old.verdict, old.box_xyxy) == ("not_met", (100.0, 20.0, 190.0, 29.0))
    assert row.stale == old
    mark, old, _ = others_judged(SHOWN, HIDDEN)
    assert (mark.verdict, mark.box_xyxy, old.verdict) == ("met", (0.0, 0.0, 90.0, 9.0), "not_met")
