"""Findings held against the minimums of a rule pack, and the place of the smallest text they are held against."""

from __future__ import annotations

import bisect
from collections.abc import Container, Sequence
from dataclasses import replace

from sam2_mcp_worker.checks.exposure import Check, Exposures, minimum_height, minimum_height_share, minimum_time
from sam2_mcp_worker.checks.rule_packs import VideoRules
from sam2_mcp_worker.pipelines.frame_looks import VideoLooks
from sam2_mcp_worker.pipelines.video_finding_types import Place


def height_checks(rules: VideoRules | None, height_px: float | None, frame_height_px: int) -> tuple[Check, ...]:
    """A measured height against the minimums; none without rules or a measurement."""
    if rules is None or not height_px:
        return ()
    checks: list[Check] = []
    if rules.min_text_height_px is not None:
        checks.append(minimum_height(height_px, rules.min_text_height_px))
    if rules.min_text_height_share is not None:
        checks.append(minimum_height_share(height_px, frame_height_px, rules.min_text_height_share))
    return tuple(checks)


def time_checks(rules: VideoRules | None, exposures: Exposures, looks: VideoLooks) -> tuple[Check, ...]:
    """Exposures against the minimum; none without a rule or any showing."""
    if rules is None or rules.min_exposure_s is None or not exposures.shown:
        return ()
    check = minimum_time(exposures, rules.min_exposure_s)
    goes_on = (looks.more_before and exposures.shown[0].from_edge) or (
        looks.more_behind and exposures.shown[-1].to_edge
    )
    return doubted((check,), ("not_met",), "it may go on outside of the asked range") if goes_on else (check,)


def doubted(checks: Sequence[Check], verdicts: Container[str], reason: str) -> tuple[Check, ...]:
    """The checks with those of these verdicts taken back: what they rest on is not sure."""
    return tuple(
        replace(check, verdict="cannot_tell", reason=reason) if check.verdict in verdicts else check for check in checks
    )


def smallest_place(places: Sequence[Place], exposures: Exposures) -> Place | None:
    """The smallest of the showings' medians. Places rise by time; those without a height do not count."""
    measured = [place for place in places if place.height_px > 0]
    times = [place.time_s for place in measured]
    medians: list[Place] = []
    for index, _ in enumerate(exposures.shown):
        first = bisect.bisect_left(times, exposures.shown[index].earliest_s) if index else 0
        last = exposures.shown[index + 1].earliest_s if index + 1 < len(exposures.shown) else float("inf")
        shown = sorted(measured[first : bisect.bisect_left(times, last)], key=lambda place: place.height_px)
        medians += shown[(len(shown) - 1) // 2 :][:1]
    return min(medians, key=lambda place: place.height_px, default=None)
