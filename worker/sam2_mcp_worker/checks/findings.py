"""What a check says, in one shape for all checks, so that a verdict can follow from kinds and numbers of findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sam2_mcp_worker.checks.reading import Box

Verdict = Literal["met", "not_met", "review", "cannot_tell"]
"""`review` is for a person: measured, but too near the border or too unlike to decide. `cannot_tell`: not measured."""

FindingKind = Literal[
    "phrase_missing",
    "phrase_altered",
    "phrase_stale",
    "forbidden_wording",
    "review_seal",
    "figure_mismatch",
    "text_too_small",
    "contrast_too_low",
    "exposure_too_short",
    "speech_unbalanced",
    "file_defect",
]
"""The closed list of what can be wrong. A kind belongs to one tool, so that labels of tools can be combined."""

Basis = Literal["law", "practice", "house"]
"""Whose rule it is: `law` with its article, `practice` as the associations ask for it, `house` the operator's own."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule held against one place.

    `rule` is its id in the rule pack; `what` says it in a sentence with the actual values. Measures carry their unit in
    `unit`. `page` counts from 1; `box_xyxy` is in the unit of the reading; times are seconds.
    """

    kind: FindingKind
    rule: str
    verdict: Verdict
    what: str
    basis: Basis
    measured: float | None = None
    limit: float | None = None
    uncertainty: float | None = None
    unit: str = ""
    page: int | None = None
    box_xyxy: Box | None = None
    start_s: float | None = None
    end_s: float | None = None
