"""inspect_video's checks of texts and phrases as findings, so that a verdict can follow from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sam2_mcp_worker.checks.exposure import Check
from sam2_mcp_worker.checks.findings import Finding, FindingKind
from sam2_mcp_worker.checks.rule_packs import VideoRules
from sam2_mcp_worker.engines.ports import Box
from sam2_mcp_worker.pipelines.text_tracks import TextTrack
from sam2_mcp_worker.pipelines.video_finding_types import PhraseFinding, VideoFindings

_KINDS: dict[str, tuple[FindingKind, str]] = {
    "min_exposure_s": ("exposure_too_short", "s"),
    "min_text_height_px": ("text_too_small", "px"),
    "min_text_height_share": ("text_too_small", ""),
}
# Of a text that stands in the frame, what names it in a sentence.
_TEXT_CHARS = 40


def video_findings(
    found: VideoFindings, rules: VideoRules | None, phrases: Mapping[str, str] | None = None
) -> tuple[Finding, ...]:
    """The checks of phrases (`phrases`: text of each with its name), or of every text when none are given."""
    if rules is None:
        return ()
    if phrases:
        return tuple(
            finding
            for phrase in found.phrases
            if phrase.phrase in phrases
            for finding in _of_phrase(rules, phrase, phrases[phrase.phrase])
        )
    return tuple(finding for track in found.texts for finding in _of_text(rules, track))


def _of_phrase(rules: VideoRules, phrase: PhraseFinding, name: str) -> Iterator[Finding]:
    for check in phrase.checks:
        place = phrase.place if check.rule == "min_exposure_s" else phrase.smallest or phrase.place
        box = place.box_xyxy_px if place else None
        yield _finding(rules, check, name, box, phrase.first_s, phrase.last_s)


def _of_text(rules: VideoRules, track: TextTrack) -> Iterator[Finding]:
    for check in track.checks:
        name = repr(track.text[:_TEXT_CHARS])
        yield _finding(rules, check, name, track.box_xyxy_px, track.first_s, track.last_s)


def _finding(
    rules: VideoRules, check: Check, name: str, box: Box | None, start_s: float | None, end_s: float | None
) -> Finding:
    kind, unit = _KINDS[check.rule]
    share = check.rule == "min_text_height_share"
    told = "not measured" if check.measured is None else f"{check.measured:.4f}" if share else f"{check.measured:.2f}"
    of = " of the frame's height" if share else f" {unit}"
    why = f": {check.reason}" if check.reason else ""
    surely = "surely on the screen for " if kind == "exposure_too_short" else ""
    return Finding(
        kind=kind,
        rule=f"video.{check.rule}",
        verdict=check.verdict,
        what=f"{name}: {surely}{told}{of}, the minimum is {check.minimum:g}{why}",
        basis=rules.basis,
        measured=check.measured,
        limit=check.minimum,
        unit=unit,
        page=1,
        box_xyxy=(box[0], box[1], box[2], box[3]) if box else None,
        start_s=start_s,
        end_s=end_s,
    )
