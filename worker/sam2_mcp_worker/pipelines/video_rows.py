"""What the time line of a video's inspection shows: its rows in order, each with its number and a word on it.

Pure. The number of a finding is the same in the time line, on the contact sheet and in the report: labels count from 1,
then phrases, then lines of text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sam2_mcp_worker.checks.exposure import Check, Exposures
from sam2_mcp_worker.media.exposure_sheets import MAX_ROWS, RowKind, Seconds, TimeLine, TimeLineRow
from sam2_mcp_worker.pipelines.frame_looks import Span, VideoLooks
from sam2_mcp_worker.pipelines.text_tracks import TextTrack
from sam2_mcp_worker.pipelines.video_finding_types import LabelFinding, PhraseFinding, VideoFindings

# Lines of text that have rows of their own at least, however many labels and phrases there are.
TEXT_ROWS = 8
# No time line is wider; what is shorter than one of its pixels cannot be told apart.
FINEST_PX = 1600
SHORT = {"min_exposure_s": "too short", "min_text_height_px": "too small", "min_text_height_share": "too small"}


@dataclass(frozen=True, slots=True)
class Numbered:
    """The findings with their numbers."""

    labels: tuple[tuple[int, LabelFinding], ...]
    phrases: tuple[tuple[int, PhraseFinding], ...]
    texts: tuple[tuple[int, TextTrack], ...]


def numbered(findings: VideoFindings) -> Numbered:
    """Labels from 1, then phrases, then texts."""
    phrases_from = 1 + len(findings.labels)
    texts_from = phrases_from + len(findings.phrases)
    return Numbered(
        tuple(enumerate(findings.labels, start=1)),
        tuple(enumerate(findings.phrases, start=phrases_from)),
        tuple(enumerate(findings.texts, start=texts_from)),
    )


def time_line(looks: VideoLooks, findings: VideoFindings) -> TimeLine:
    """The whole time line, `MAX_ROWS` rows at most: of the texts those that break a rule, then the longest."""
    named = numbered(findings)
    asked = [_label_row(number, one) for number, one in named.labels]
    asked += [_phrase_row(number, one) for number, one in named.phrases]
    asked = asked[: MAX_ROWS - min(TEXT_ROWS, len(named.texts))]
    texts = notable(named.texts, MAX_ROWS - len(asked))
    pixel_s = (looks.asked.end_s - looks.asked.start_s) / FINEST_PX
    total = len(findings.labels) + len(findings.phrases) + len(findings.texts)
    return TimeLine(
        looks.asked.start_s,
        looks.asked.end_s,
        _headline(looks),
        tuple(_drawable(row, pixel_s) for row in (*asked, *(_text_row(number, one) for number, one in texts))),
        total - len(asked) - len(texts),
        findings.cuts_s,
        _seconds(looks.failed),
        _seconds(looks.unreached),
    )


def notable(texts: Sequence[tuple[int, TextTrack]], most: int) -> list[tuple[int, TextTrack]]:
    """At most so many lines of text, by time: those that break a rule before the others, the longest first."""

    def rank(item: tuple[int, TextTrack]) -> tuple[bool, float, int]:
        number, one = item
        return not broken(one.checks), -one.exposures.at_most_s, number

    return sorted(sorted(texts, key=rank)[:most], key=lambda item: (item[1].first_s, item[0]))


def broken(checks: Iterable[Check]) -> list[Check]:
    """The checks that are surely not met."""
    return [check for check in checks if check.verdict == "not_met"]


def _drawable(row: TimeLineRow, pixel_s: float) -> TimeLineRow:
    """The row without gaps that nobody could see: of an hour it may have thousands."""
    sure, possible, unknown = (fused(spans, pixel_s) for spans in (row.sure, row.possible, row.unknown))
    return replace(row, sure=sure, possible=possible, unknown=unknown)


def fused(spans: Sequence[Seconds], gap_s: float) -> tuple[Seconds, ...]:
    """The spans, which rise, with those that lie nearer than this joined."""
    joined: list[Seconds] = []
    for start_s, end_s in spans:
        if joined and start_s - joined[-1][1] < gap_s:
            joined[-1] = joined[-1][0], max(joined[-1][1], end_s)
        else:
            joined.append((start_s, end_s))
    return tuple(joined)


def _label_row(number: int, one: LabelFinding) -> TimeLineRow:
    return _row("label", number, one.label, one.exposures, "" if one.state == "shown" else one.state, one.checks)


def _phrase_row(number: int, one: PhraseFinding) -> TimeLineRow:
    return _row("phrase", number, one.phrase, one.exposures, "" if one.state == "shown" else one.state, one.checks)


def _text_row(number: int, one: TextTrack) -> TimeLineRow:
    return _row("text", number, one.text, one.exposures, "", one.checks)


def _row(
    kind: RowKind, number: int, name: str, exposures: Exposures, state: str, checks: Sequence[Check]
) -> TimeLineRow:
    remarks = [state.replace("_", " ")] if state else []
    if exposures.shown:
        remarks.append(shown_s(exposures))
    remarks += dict.fromkeys(SHORT[check.rule] for check in broken(checks))
    return TimeLineRow(
        kind,
        number,
        name,
        tuple((part.start_s, part.end_s) for one in exposures.shown for part in one.surely),
        tuple((one.earliest_s, one.latest_s) for one in exposures.shown),
        tuple((stretch.start_s, stretch.end_s) for stretch in exposures.possible),
        ", ".join(remarks),
    )


def shown_s(exposures: Exposures) -> str:
    """How long it was shown: `1.5-2.0 s` from what is sure to what is possible, one number where both are equal."""
    sure, possible = f"{exposures.surely_s:.2f}", f"{exposures.at_most_s:.2f}"
    return f"{sure} s" if sure == possible else f"{sure}-{possible} s"


def _headline(looks: VideoLooks) -> str:
    failed = sum(bool(look.failed) for look in looks.looks)
    words = [f"{len(looks.looks) - failed} frames looked at, one every {looks.interval_s:g} s"]
    words[0] += " and at cuts" if looks.cuts else ""
    words += [f"{failed} failed"] if failed else []
    for spans, said in ((looks.failed, "cannot be read"), (looks.unreached, "not read yet")):
        if spans:
            words.append(f"{length_s(spans):.2f} s {said}")
    return "; ".join(words)


def length_s(spans: Iterable[Span]) -> float:
    """Their length together."""
    return sum(span.end_s - span.start_s for span in spans)


def _seconds(spans: Iterable[Span]) -> tuple[Seconds, ...]:
    return tuple((span.start_s, span.end_s) for span in spans)
