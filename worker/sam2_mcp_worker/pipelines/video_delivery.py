"""What of a video inspection goes into which call's result. Pure: findings in, short facts and a cursor out.

Findings of labels and phrases are about the whole range and are told as they are by now, in every call. Lines of text
are told once each over the calls of a request: those that no later look can change first.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sam2_mcp_worker.checks.exposure import Check, Exposures
from sam2_mcp_worker.cursors import decode_cursor, encode_cursor, number_ranges, parse_ranges
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.pipelines.frame_looks import Span
from sam2_mcp_worker.pipelines.text_tracks import TextTrack
from sam2_mcp_worker.pipelines.video_findings import LabelFinding, PhraseFinding, Place, SmallestText, VideoFindings
from sam2_mcp_worker.pipelines.video_rows import numbered

# How many showings of one label or phrase are told, the fullest that fit; the report has all.
SHOWINGS_TOLD = (12, 4, 1)
# Of a result, what labels and phrases may take: the rest is for the text that was read.
FINDINGS_SHARE = 0.5
# Spans and cuts of a broken or restless video; their number and seconds are always told.
MAX_SPANS = 20
MAX_CUTS = 60
# Everything of a result but findings, texts, notes, spans and cuts: facts of the video, addresses, cursor.
FRAME_CHARS = 1500
# What is left of forty findings where not even one showing of each has room: the report has the rest.
BRIEF = ("number", "label", "phrase", "state", "reason", "frames", "surely_s", "at_most_s")
# JSON around one text, beside its fields: a comma.
BETWEEN_CHARS = 1
REASON_CHARS = 160


@dataclass(frozen=True, slots=True)
class Told:
    """What earlier calls of a request told: so many texts, which `mark` knows again, and these segments as failed."""

    texts: int = 0
    failed: frozenset[int] = frozenset()
    mark: str = ""


def from_cursor(cursor: str, tool: str, key: str, segment_count: int) -> Told:
    """What the cursor says; nothing for no cursor.

    Raises:
        WorkerError: `cursor_invalid`.
    """
    if not cursor.strip():
        return Told()
    state = decode_cursor(cursor, tool, key)
    try:
        failed = parse_ranges(state["f"], limit=segment_count) if state.get("f") else []
        return Told(max(0, int(state["n"])), frozenset(failed), str(state.get("m", "")))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise WorkerError(
            "cursor_invalid", "the cursor is damaged", next_step="repeat the call without cursor to start again"
        ) from error


def to_cursor(tool: str, key: str, told: Told) -> str:
    """A cursor that goes on behind what was told."""
    state: dict[str, Any] = {"n": told.texts}
    if told.mark:
        state["m"] = told.mark
    if told.failed:
        state["f"] = number_ranges(sorted(told.failed))
    return encode_cursor(tool, key, state)


def tellable(findings: VideoFindings, *, complete: bool) -> Sequence[TextTrack]:
    """The texts that may be told now: all of a complete range, else those that are over."""
    if complete:
        return findings.texts
    return [track for track in findings.texts if track.closed]


def next_texts(
    tracks: Sequence[TextTrack], told: int, budget_chars: int, numbered_before: int = 0
) -> list[dict[str, Any]]:
    """The texts behind those told before, as many as fit; one at least, so that every call gets on.

    Args:
        numbered_before: labels and phrases, which have the first numbers in pictures and report (video_rows.numbered).
    """
    found: list[dict[str, Any]] = []
    for number, track in enumerate(tracks[told:], start=numbered_before + told + 1):
        facts = told_text(number, track)
        budget_chars -= chars(facts) + BETWEEN_CHARS
        if found and budget_chars < 0:
            break
        found.append(facts)
    return found


def chars(facts: Any) -> int:
    """What something takes of a result."""
    return len(json.dumps(facts, ensure_ascii=False, separators=(",", ":")))


@dataclass(frozen=True, slots=True)
class ToldFindings:
    """Labels and phrases as they are sent."""

    labels: list[dict[str, Any]]
    phrases: list[dict[str, Any]]

    @property
    def chars(self) -> int:
        """What they take of a result."""
        return chars([self.labels, self.phrases])


def told_findings(findings: VideoFindings, max_chars: int) -> ToldFindings:
    """Labels and phrases with as many of their showings as fit into their share of a result, or in brief."""
    named = numbered(findings)
    for showings in SHOWINGS_TOLD:
        told = ToldFindings(
            [_told_label(number, finding, showings) for number, finding in named.labels],
            [_told_phrase(number, finding, showings) for number, finding in named.phrases],
        )
        if told.chars <= FINDINGS_SHARE * max_chars:
            return told
    return ToldFindings([_brief(facts) for facts in told.labels], [_brief(facts) for facts in told.phrases])


def _brief(facts: dict[str, Any]) -> dict[str, Any]:
    verdicts = {check["rule"]: check["verdict"] for check in facts.get("checks", ())}
    return {name: facts[name] for name in BRIEF if name in facts} | ({"verdicts": verdicts} if verdicts else {})


@dataclass(frozen=True, slots=True)
class Delivery:
    """What one call tells: `texts_waiting` more are known; `after` is what was told then, by this call or earlier.

    `anew` says that texts are told from the first one again: frames that had failed were read since, and what was told
    before is not the beginning of what is known now.
    """

    findings: ToldFindings
    texts: list[dict[str, Any]]
    texts_waiting: int
    after: Told
    anew: bool = False


def deliver(
    findings: VideoFindings, before: Told, *, complete: bool, max_chars: int, beside: Sequence[Any]
) -> Delivery:
    """Findings as they are, and the next texts as far as they fit into a result.

    Args:
        complete: whether nothing of the range is to come any more.
        beside: what else of variable length the result has: notes, spans, cuts.
    """
    told = told_findings(findings, max_chars)
    tracks = tellable(findings, complete=complete)
    room = max_chars - told.chars - chars(beside) - FRAME_CHARS
    anew = bool(before.mark) and before.mark != _mark(tracks[: before.texts])
    start = 0 if anew else before.texts
    texts = next_texts(tracks, start, room, len(findings.labels) + len(findings.phrases))
    count = start + len(texts)
    after = replace(before, texts=count, mark=_mark(tracks[:count]))
    return Delivery(told, texts, max(0, len(tracks) - count), after, anew)


def _mark(tracks: Sequence[TextTrack]) -> str:
    """What these texts are known by in a cursor; empty for none."""
    keys = " ".join(track.key for track in tracks)
    return hashlib.blake2s(keys.encode("ascii"), digest_size=6).hexdigest() if keys else ""


def told_text(number: int, track: TextTrack) -> dict[str, Any]:
    """A line of text over time; `number` is its place in pictures and report."""
    verdicts = {check.rule: check.verdict for check in track.checks}
    moved = track.end_box_xyxy_px != track.box_xyxy_px
    return _without_none(
        number=number,
        text=track.text,
        box_xyxy_px=list(track.box_xyxy_px),
        end_box_xyxy_px=list(track.end_box_xyxy_px) if moved else None,
        height_px=round(track.height_px, 1),
        confidence=round(track.confidence, 2),
        frames=track.frames,
        **_told_exposures(track.exposures, SHOWINGS_TOLD[0]),
        verdicts=verdicts or None,
    )


def _told_label(number: int, finding: LabelFinding, showings: int) -> dict[str, Any]:
    return _without_none(
        number=number,
        label=finding.label,
        state=finding.state,
        reason=finding.reason[:REASON_CHARS] or None,
        frames=finding.frames or None,
        first_s=_ms(finding.first_s),
        last_s=_ms(finding.last_s),
        **_told_exposures(finding.exposures, showings),
        most_at_once=finding.most_at_once or None,
        greatest=_told_place(finding.greatest, finding.greatest_share),
        smallest_text=_told_place(finding.smallest_text, finding.smallest_text_share),
        checks=told_checks(finding.checks),
    )


def _told_phrase(number: int, finding: PhraseFinding, showings: int) -> dict[str, Any]:
    # What was read word for word is no news.
    read_as = finding.read_as if finding.read_as != finding.phrase else ""
    return _without_none(
        number=number,
        phrase=finding.phrase,
        state=finding.state,
        reason=finding.reason[:REASON_CHARS] or None,
        score=round(finding.score, 2) or None,
        read_as=read_as or None,
        differences=list(finding.differences) or None,
        frames=finding.frames or None,
        first_s=_ms(finding.first_s),
        last_s=_ms(finding.last_s),
        **_told_exposures(finding.exposures, showings),
        place=_told_place(finding.place, None),
        smallest_text=_told_place(finding.smallest, finding.smallest_share),
        checks=told_checks(finding.checks),
    )


def _told_exposures(exposures: Exposures, showings: int) -> dict[str, Any]:
    """Rows of earliest, first, last and latest time, and the seconds of all showings together."""
    shown = exposures.shown
    rows = [[_ms(one.earliest_s), _ms(one.first_s), _ms(one.last_s), _ms(one.latest_s)] for one in shown[:showings]]
    if not shown:
        return {}
    return {
        "exposures_s": rows or None,
        "more_exposures": len(shown) - len(rows) or None,
        "surely_s": _ms(exposures.surely_s),
        "at_most_s": _ms(exposures.at_most_s),
    }


def told_smallest(smallest: SmallestText | None) -> dict[str, Any] | None:
    """The smallest text of all."""
    if smallest is None:
        return None
    return {"text": smallest.text, **(_told_place(smallest.place, smallest.share) or {})}


def _told_place(place: Place | None, share: float | None) -> dict[str, Any] | None:
    if place is None:
        return None
    return _without_none(
        time_s=_ms(place.time_s),
        box_xyxy_px=list(place.box_xyxy_px),
        height_px=round(place.height_px, 1),
        share=None if share is None else round(share, 4),
    )


def told_checks(checks: Sequence[Check]) -> list[dict[str, Any]] | None:
    """Verdicts against the rule pack, each with what it rests on; None for none."""
    return [
        _without_none(
            rule=check.rule,
            minimum=check.minimum,
            measured=_rounded(check.measured),
            possible=_rounded(check.possible),
            verdict=check.verdict,
            reason=check.reason[:REASON_CHARS] or None,
        )
        for check in checks
    ] or None


def told_spans(spans: Sequence[Span]) -> list[dict[str, Any]] | None:
    """The first of these spans; None for none."""
    return [
        _without_none(start_s=_ms(span.start_s), end_s=_ms(span.end_s), reason=span.reason[:REASON_CHARS] or None)
        for span in spans[:MAX_SPANS]
    ] or None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _ms(time_s: float | None) -> float | None:
    return None if time_s is None else round(time_s, 3)


def _without_none(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
