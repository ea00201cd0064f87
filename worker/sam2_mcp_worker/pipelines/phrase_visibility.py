"""Phrases and marks that a file holds as text and nobody sees: in hidden layers, clipped, covered, pale as the page.

Owns what such text is worth: something for a person to look at. Whether ink is there is told by rule_checks.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sam2_mcp_worker.checks.findings import Finding
from sam2_mcp_worker.checks.line_groups import LineRef, lines_by_ref
from sam2_mcp_worker.checks.phrase_pages import PhraseLine
from sam2_mcp_worker.checks.reading import Box, Reading
from sam2_mcp_worker.pipelines.phrase_judging import JudgedRow, Judgement
from sam2_mcp_worker.pipelines.rule_checks import RuleChecks

UNSEEN = "the file holds this text, but no ink is seen where it stands, or not all of it; a person has to look"
# Of a mark that stands on each page so many are looked at beside the first: one that can be seen is enough.
MOST_COPIES = 8


def lines_to_see(judgement: Judgement, reading: Reading) -> set[LineRef]:
    """The lines of marks and old wordings, whose ink decides what they are worth."""
    return {ref for places in _places(judgement, reading).values() for place in places for ref in place}


def seen_only(judgement: Judgement, checks: RuleChecks, reading: Reading) -> Judgement:
    """The judgement with what is told by a place that can be seen, and for review where there is none.

    Of phrases, and of marks and old wordings: what nobody sees is neither there nor out of date.
    """
    told = {one: _told(one, places, checks, reading) for one, places in _places(judgement, reading).items()}
    rows = [_seen(row, checks) for row in judgement.rows]
    rows = [replace(row, stale=told[row.stale]) if row.stale in told else row for row in rows]
    others = tuple(told.get(finding, finding) for finding in judgement.others)
    return replace(judgement, rows=tuple(rows), others=others)


def _told(finding: Finding, places: Sequence[Sequence[LineRef]], checks: RuleChecks, reading: Reading) -> Finding:
    for number, place in enumerate(places):
        if not _no_ink(place, checks):
            return finding if number == 0 else _at(finding, place[0], reading)
    return replace(finding, verdict="review", what=UNSEEN)


def _at(finding: Finding, ref: LineRef, reading: Reading) -> Finding:
    return replace(finding, page=ref[0], box_xyxy=lines_by_ref(reading)[ref].box_xyxy)


def _places(judgement: Judgement, reading: Reading) -> dict[Finding, list[list[LineRef]]]:
    """Where each mark and each old wording stands that is told as sure, the place that is told first."""
    sure = [one for one in judgement.others if one.verdict in ("met", "not_met")]
    found = _places_of_marks([one for one in sure if one.kind == "review_seal"], reading)
    for one in sure:
        became = judgement.old.get(one.rule) if one.kind == "phrase_stale" else None
        if became is not None:
            found[one] = [_refs(place) for place in (became.lines, *became.elsewhere)]
    return found


def _places_of_marks(marks: Sequence[Finding], reading: Reading) -> dict[Finding, list[list[LineRef]]]:
    """The line of each mark and lines that say the same."""
    lines = lines_by_ref(reading) if marks else {}
    refs: dict[tuple[int | None, Box | None], LineRef] = {}
    alike: dict[str, list[LineRef]] = {}
    for ref, line in lines.items():
        refs.setdefault((ref[0], line.box_xyxy), ref)
        alike.setdefault(line.text, []).append(ref)
    found: dict[Finding, list[list[LineRef]]] = {}
    for mark in marks:
        own = refs.get((mark.page, mark.box_xyxy)) if mark.box_xyxy is not None else None
        if own is not None:
            others = [ref for ref in alike[lines[own].text][: MOST_COPIES + 1] if ref != own]
            found[mark] = [[own], *([ref] for ref in others)]
    return found


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
    return _no_ink(_refs(lines), checks)


def _refs(lines: Sequence[PhraseLine]) -> list[LineRef]:
    return [(one.page_number, one.index) for one in lines]


def _no_ink(place: Sequence[LineRef], checks: RuleChecks) -> bool:
    """Whether a line of a place was measured and shows no ink."""
    measures = (checks.measures.get(ref) for ref in place)
    return any(one is not None and one.contrast is not None and one.contrast.unseen for one in measures)
