"""Phrases that a file holds as text and that nobody sees: in hidden layers, clipped, covered, or as pale as the page.

Owns what such a phrase is worth: something for a person to look at. Whether ink is there is told by rule_checks.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sam2_mcp_worker.checks.phrase_pages import PhraseLine
from sam2_mcp_worker.pipelines.phrase_judging import JudgedRow, Judgement
from sam2_mcp_worker.pipelines.rule_checks import RuleChecks

UNSEEN = "the file holds this text, but no ink is seen where it stands, or not all of it; a person has to look"


def seen_only(judgement: Judgement, checks: RuleChecks) -> Judgement:
    """The judgement with phrases told by a place that can be seen, and for review where there is none."""
    return replace(judgement, rows=tuple(_seen(row, checks) for row in judgement.rows))


def _seen(row: JudgedRow, checks: RuleChecks) -> JudgedRow:
    became = row.became
    if became.state not in ("present", "altered") or not _hidden(became.lines, checks):
        return row
    for place in became.elsewhere:
        if not _hidden(place, checks):
            others = tuple(one for one in (became.lines, *became.elsewhere) if one != place)
            moved = replace(became, lines=place, source=place[0].line.source, elsewhere=others)
            finding = row.finding
            if finding is not None:
                box = moved.boxes[0][1] if moved.boxes else None
                finding = replace(finding, page=moved.page_number, box_xyxy=box)
            return replace(row, became=moved, finding=finding)
    finding = replace(row.finding, verdict="review", what=UNSEEN) if row.finding is not None else None
    return replace(row, became=replace(became, state="review", reason=UNSEEN), finding=finding)


def _hidden(lines: Sequence[PhraseLine], checks: RuleChecks) -> bool:
    """Whether a line of a place was measured and shows no ink."""
    measures = (checks.measures.get((one.page_number, one.index)) for one in lines)
    return any(one is not None and one.contrast is not None and one.contrast.unseen for one in measures)
