"""A finding of a figure as plain values: what results, reports and the room in a result are made of. Pure."""

from __future__ import annotations

import json
from typing import Any

from sam2_mcp_worker.checks.figure_compare import FigureFinding
from sam2_mcp_worker.checks.figures import Figure, Place

# Of the words that name a figure, and of a text: a heading may be a paragraph.
MAX_WORDS_CHARS = 80
# As wide as a number of a finding may become.
MAX_NUMBER = 99_999


def figure_row(number: int, finding: FigureFinding) -> dict[str, Any]:
    """The figure with its place, what became of it, and what the evidence says, if that says something."""
    row = {"number": number} | figure_facts(finding.figure) | {"state": finding.state, "reason": finding.reason}
    if finding.evidence is not None:
        facts = figure_facts(finding.evidence)
        row["evidence"] = {"file": finding.evidence_name} | facts
    return row


def figure_facts(figure: Figure) -> dict[str, Any]:
    """What it says and where it stands; without what is not known."""
    facts = {
        "text": figure.text[:MAX_WORDS_CHARS],
        "kind": figure.kind,
        "value": figure.value,
        "unit": figure.unit,
        "label": " ".join(figure.label)[:MAX_WORDS_CHARS],
        "doubt": figure.doubt,
    }
    return {key: value for key, value in (facts | place_facts(figure.place)).items() if value not in ("", None)}


def place_facts(place: Place) -> dict[str, Any]:
    """Page and box, sheet and cell, line, or times."""
    return {
        "page": place.page,
        "box_xyxy": [round(value, 1) for value in place.box_xyxy] if place.box_xyxy is not None else None,
        "sheet": place.sheet,
        # A box says it better than a row of a page's table, or a line.
        "cell": place.cell if place.box_xyxy is None else None,
        "line": place.line if place.box_xyxy is None else None,
        "start_s": place.start_s,
        "end_s": place.end_s,
        "source": place.source,
    }


def finding_chars(finding: FigureFinding) -> int:
    """What it takes in a result."""
    return len(json.dumps(figure_row(MAX_NUMBER, finding), ensure_ascii=False, separators=(",", ":"))) + 1
