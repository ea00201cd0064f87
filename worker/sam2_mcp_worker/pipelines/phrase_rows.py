"""What a result of check_phrases tells of each phrase and of each finding, as JSON: rounded, each fact once, no blanks.

Owns the words and numbers of rows. Which rows go into which call's result is told by check_phrases.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sam2_mcp_worker.checks.findings import Finding, Verdict
from sam2_mcp_worker.checks.phrase_judge import PhraseFinding
from sam2_mcp_worker.checks.reading import Box, Reading
from sam2_mcp_worker.checks.rule_packs import RulePack, Sourced
from sam2_mcp_worker.checks.text_size import LineRef
from sam2_mcp_worker.cursors import number_ranges
from sam2_mcp_worker.pipelines.finding_pictures import Mark
from sam2_mcp_worker.pipelines.findings_report import ReportRow
from sam2_mcp_worker.pipelines.phrase_judging import JudgedRow
from sam2_mcp_worker.pipelines.rule_checks import LineMeasure, worst_first

# Of a wording of the pack so much is told, since its rule names it; what a caller asks for is told whole.
RULE_PHRASE_CHARS = 80
READ_CHARS = 300
REASON_CHARS = 300
# A place in a video is told by the frame in which the phrase was seen first.
VERDICT_MARKS: dict[Verdict, Any] = {"met": "met", "not_met": "not_met", "review": "review", "cannot_tell": "review"}
STATE_VERDICTS: dict[str, Verdict] = {
    "present": "met",
    "altered": "not_met",
    "missing": "not_met",
    "review": "review",
    "cannot_tell": "cannot_tell",
}


@dataclass(frozen=True, slots=True)
class Row:
    """A phrase or another finding, with its number in result, pictures and report."""

    number: int
    phrase: JudgedRow | None = None
    finding: Finding | None = None

    @property
    def verdict(self) -> Verdict:
        """What is to be said of it; a phrase that is not needed and not there is as it should be."""
        if self.finding is not None:
            return self.finding.verdict
        assert self.phrase is not None
        counts = counts_of(self.phrase)
        return counts.verdict if counts is not None else "met"


def counts_of(judged: JudgedRow) -> Finding | None:
    """The finding that says of a phrase what counts: its own, or that of an old wording in its place."""
    return judged.finding or (judged.stale if judged.became.state != "present" else None)


def numbered_rows(phrases: Sequence[JudgedRow], findings: Sequence[Finding]) -> list[Row]:
    """Phrases in their order, then what else is not met or not known, the worst first."""
    rows = [Row(number, phrase=one) for number, one in enumerate(phrases, start=1)]
    rest = [one for one in worst_first(findings) if one.verdict != "met"]
    return rows + [Row(number, finding=one) for number, one in enumerate(rest, start=len(rows) + 1)]


def told_row(row: Row, pack: RulePack, reading: Reading, measures: Mapping[LineRef, LineMeasure]) -> dict[str, Any]:
    """The row as it is sent."""
    told = _phrase(row, pack, reading, measures) if row.phrase is not None else _finding(row, pack, reading)
    return {name: value for name, value in told.items() if value not in (None, "", [], ())}


def row_chars(told: Mapping[str, Any]) -> int:
    """What it takes of a result."""
    return len(json.dumps(told, ensure_ascii=False, separators=(",", ":")))


def _phrase(row: Row, pack: RulePack, reading: Reading, measures: Mapping[LineRef, LineMeasure]) -> dict[str, Any]:
    judged = row.phrase
    assert judged is not None
    became, rule, finding = judged.became, judged.rule, counts_of(judged)
    plain = became.state == "present" and not became.reason
    return {
        "number": row.number,
        "rule": rule.id if rule is not None else None,
        "phrase": judged.phrase if judged.asked else _short(judged.phrase, RULE_PHRASE_CHARS),
        "state": became.state,
        "verdict": finding.verdict if finding is not None else None,
        "basis": finding.basis if finding is not None and rule is not None else None,
        "law": _source(pack, rule) if row.verdict != "met" else None,
        "source": became.source,
        **_place(became, reading),
        "score": round(became.score, 2),
        "coverage": round(became.coverage, 2),
        "read_as": None if plain and became.score >= 1.0 else _short(became.read_as, READ_CHARS),
        "differences": list(became.differences),
        "reason": _short(_reason(judged), REASON_CHARS),
        "rests_on": number_ranges(became.rests_on) if reading.kind == "pdf" else None,
        "further_places": became.further_places or None,
        **_measured(became, measures),
    }


def _reason(judged: JudgedRow) -> str:
    finding, became = judged.finding, judged.became
    if finding is None and judged.stale is not None:
        return judged.stale.what
    if finding is None and became.state in ("missing", "review"):
        return f"nothing says that it is needed; {became.reason}"
    told = finding.what if judged.rule is not None and finding is not None and became.state == "missing" else ""
    return told or became.reason


def _place(became: PhraseFinding, reading: Reading) -> dict[str, Any]:
    if not became.lines:
        return {}
    if became.source == "speech" or reading.kind == "video":
        times = {"start_s": _s(became.start_s), "end_s": _s(became.end_s)}
    else:
        times = {}
    page = became.page_number if reading.kind == "pdf" else None
    line = became.lines[0].index + 1 if reading.kind == "text" else None
    boxes = [box for number, box in became.boxes if number == became.page_number]
    return {"page_number": page, "line_number": line, **_box(boxes, reading), **times}


def _box(boxes: Sequence[Box], reading: Reading) -> dict[str, Any]:
    """One box around all lines, in the unit of the reading."""
    if not boxes:
        return {}
    corners = [min(box[0] for box in boxes), min(box[1] for box in boxes)]
    corners += [max(box[2] for box in boxes), max(box[3] for box in boxes)]
    if reading.unit == "pt":
        return {"box_xyxy_pt": [round(value, 1) for value in corners]}
    return {"box_xyxy_px": [round(value) for value in corners]}


def _measured(became: PhraseFinding, measures: Mapping[LineRef, LineMeasure]) -> dict[str, Any]:
    """Of the smallest and of the faintest line of a phrase."""
    lines = [measures[ref] for one in became.lines if (ref := (one.page_number, one.index)) in measures]
    sizes = [one.size for one in lines if one.size is not None]
    contrasts = [one.contrast for one in lines if one.contrast is not None and not one.contrast.reason]
    told: dict[str, Any] = {}
    if sizes:
        least = min(sizes, key=lambda one: one.size)
        told[f"text_height_{least.unit}"] = round(least.size, 1)
        told["height_uncertainty"] = round(least.uncertainty, 1) or None
        told["share_of_largest"] = None if least.share_of_largest is None else round(least.share_of_largest, 2)
    if contrasts:
        faintest = min(contrasts, key=lambda one: one.low)
        told["contrast"] = [round(faintest.low, 1), round(faintest.high, 1)]
    return told


def _finding(row: Row, pack: RulePack, reading: Reading) -> dict[str, Any]:
    finding = row.finding
    assert finding is not None
    in_page = reading.kind == "pdf"
    return {
        "number": row.number,
        "kind": finding.kind,
        "rule": finding.rule,
        "verdict": finding.verdict,
        "what": _short(finding.what, REASON_CHARS),
        "basis": finding.basis,
        "law": _source(pack, pack.rule(finding.rule)),
        "measured": None if finding.measured is None else round(finding.measured, 3),
        "limit": finding.limit,
        "uncertainty": None if not finding.uncertainty else round(finding.uncertainty, 2),
        "unit": finding.unit,
        "page_number": finding.page if in_page else None,
        **(_box([finding.box_xyxy], reading) if finding.box_xyxy is not None else {}),
        "start_s": _s(finding.start_s),
        "end_s": _s(finding.end_s),
    }


def _source(pack: RulePack, rule: Sourced | None) -> str | None:
    return pack.source_of(rule) if rule is not None and rule.basis == "law" else None


def _s(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def marks_of(rows: Sequence[Row], reading: Reading) -> list[Mark]:
    """Where to draw them: a box for each line of a phrase, one for a finding."""
    marks: list[Mark] = []
    for row in rows:
        kind = VERDICT_MARKS[row.verdict]
        if row.phrase is not None and row.phrase.became.source != "speech":
            became = row.phrase.became
            kind = VERDICT_MARKS[STATE_VERDICTS[became.state]]
            times = became.start_s if reading.kind == "video" else None
            marks += [Mark(row.number, kind, page, box, times) for page, box in became.boxes]
        elif row.finding is not None and row.finding.box_xyxy is not None and row.finding.page is not None:
            times = row.finding.start_s if reading.kind == "video" else None
            marks.append(Mark(row.number, kind, row.finding.page, row.finding.box_xyxy, times))
    return marks


def report_row(row: Row, told: Mapping[str, Any]) -> ReportRow:
    """The row of the report's table: rule or phrase, what became of it, where, and why."""
    if row.phrase is not None:
        named = row.phrase.phrase if row.phrase.rule is None else f"{row.phrase.rule.id}: {row.phrase.phrase}"
        state, why = told["state"], "; ".join([*told.get("differences", []), told.get("reason", "")]).strip("; ")
    else:
        named, state, why = str(told["rule"]), str(told["kind"]), str(told["what"])
    if told.get("law"):
        why = f"{why} ({told['law']})"
    return ReportRow(row.number, row.verdict, (named, state, where(told), str(told.get("read_as", "")), why))


def where(told: Mapping[str, Any]) -> str:
    """The place of a row in words."""
    if "page_number" in told:
        return f"page {told['page_number']}"
    if "line_number" in told:
        return f"line {told['line_number']}"
    if "start_s" in told:
        return f"{told['start_s']:.1f} s" + (f" to {told['end_s']:.1f} s" if "end_s" in told else "")
    return ""
