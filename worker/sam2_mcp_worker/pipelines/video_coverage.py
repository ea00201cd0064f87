"""What of the asked range is known by now, and that every second of it is read, failed or unreached. Pure.

Owns how segments that are done, failed, under way or not begun become the looks of the whole range.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.video_scan import MOST_CUTS, ScanPlan
from sam2_mcp_worker.pipelines.frame_looks import FrameLook, Span, VideoLooks
from sam2_mcp_worker.pipelines.segment_looks import SegmentLooks
from sam2_mcp_worker.pipelines.video_range import segment_numbers, segment_of

# Times are told with six decimals: what differs by less is one frame, and one moment.
SAME_TIME_S = 2e-6
NOT_BEGUN = "not reached yet"


@dataclass(frozen=True, slots=True)
class BegunSegment:
    """A segment under way: the looks known without a gap from its beginning on, which reach to `known_to_s`."""

    looks: tuple[FrameLook, ...]
    known_to_s: float


@dataclass(frozen=True, slots=True)
class VideoCoverage:
    """Seconds of the range by what became of them: the three add up to `asked_s`. Frames are those sampled by now.

    `frames_same` share the reading of one that looks the same, `frames_read` were read by themselves.
    """

    asked_s: float
    read_s: float
    failed: tuple[Span, ...]
    unreached: tuple[Span, ...]
    frames_read: int
    frames_same: int
    frames_failed: int

    @property
    def failed_s(self) -> float:
        """Seconds that could not be decoded or read."""
        return total_s(self.failed)

    @property
    def unreached_s(self) -> float:
        """Seconds not come to yet."""
        return total_s(self.unreached)


def all_looks(
    asked: ScanPlan,
    size_px: tuple[int, int],
    done: Mapping[int, SegmentLooks],
    failed: Mapping[int, WorkerError],
    begun: Mapping[int, BegunSegment],
) -> VideoLooks:
    """The looks of the whole range from its segments, which are named by their numbers."""
    looks: list[FrameLook] = []
    lost: list[Span] = []
    missing: list[Span] = []
    restless: list[Span] = []
    settled_to_s: float | None = None
    for number in segment_numbers(asked):
        segment = segment_of(asked, number)
        if number in failed:
            lost.append(Span(segment.start_s, segment.end_s, failed[number].reason))
        elif number in done:
            looks += done[number].looks
            lost += done[number].failed
            restless += _restless(done[number].looks, segment.end_s)
        else:
            part = begun.get(number, BegunSegment((), segment.start_s))
            looks += part.looks
            restless += _restless(part.looks, segment.end_s)
            settled_to_s = segment.start_s if settled_to_s is None else settled_to_s
            known_to_s = min(max(part.known_to_s, segment.start_s), segment.end_s)
            missing.append(Span(known_to_s, segment.end_s, NOT_BEGUN))
    within = Span(asked.start_s, asked.end_s)
    return VideoLooks(
        within,
        asked.interval_s,
        asked.cuts,
        *size_px,
        tuple(_once_each(looks)),
        joined(clipped(lost, within)),
        joined(missing),
        joined(clipped(restless, within)),
        settled_to_s,
    )


def _restless(looks: Sequence[FrameLook], end_s: float) -> list[Span]:
    """What is left of a segment behind the last cut that it has samples of; further cuts there may have none."""
    cuts_s = [look.time_s for look in looks if look.kind == "after_cut"]
    return [Span(cuts_s[-1], end_s)] if len(cuts_s) >= MOST_CUTS else []


def _once_each(looks: Iterable[FrameLook]) -> list[FrameLook]:
    """Rising by time; two looks at one frame, on which two segments meet, become one."""
    kept: list[FrameLook] = []
    for look in sorted(looks, key=lambda one: one.time_s):
        if not kept or look.time_s - kept[-1].time_s > SAME_TIME_S:
            kept.append(look)
        else:
            kept[-1] = _better(kept[-1], look)
    return kept


def _better(first: FrameLook, second: FrameLook) -> FrameLook:
    """The look that knows more; that the frame stands at a cut is known to one of them only."""
    better = min(first, second, key=lambda one: (bool(one.failed), bool(one.partly)))
    kinds = [one.kind for one in (first, second) if one.kind != "grid"]
    return replace(better, kind=kinds[0]) if kinds else better


def cover(looks: VideoLooks) -> VideoCoverage:
    """The account of the range: a frame that could not be read stands for the time until the next one."""
    unreached = looks.unreached
    failed = _without(joined([*looks.failed, *_unread(looks)]), unreached)
    asked_s = looks.asked.end_s - looks.asked.start_s
    return VideoCoverage(
        asked_s=asked_s,
        read_s=max(0.0, asked_s - total_s(failed) - total_s(unreached)),
        failed=failed,
        unreached=unreached,
        frames_read=sum(not look.failed and look.same_as_s is None for look in looks.looks),
        frames_same=sum(not look.failed and look.same_as_s is not None for look in looks.looks),
        frames_failed=sum(bool(look.failed) for look in looks.looks),
    )


def _unread(looks: VideoLooks) -> list[Span]:
    """The time of frames that could not be read."""
    nexts = itertools.chain((look.time_s for look in looks.looks[1:]), [looks.asked.end_s])
    # Without a single look there is no end either.
    pairs = zip(looks.looks, nexts, strict=False)
    spans = [Span(look.time_s, end_s, look.failed) for look, end_s in pairs if look.failed]
    return clipped(spans, looks.asked)


def clipped(spans: Iterable[Span], within: Span) -> list[Span]:
    """What of the spans lies within another."""
    parts = [Span(max(one.start_s, within.start_s), min(one.end_s, within.end_s), one.reason) for one in spans]
    return [part for part in parts if part.end_s > part.start_s]


def joined(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Rising and without overlaps; neighbours of one reason become one."""
    found: list[Span] = []
    for span in sorted(spans, key=lambda one: (one.start_s, one.end_s)):
        last = found[-1] if found else None
        if last is None or span.start_s > last.end_s + SAME_TIME_S or span.reason != last.reason:
            start_s = span.start_s if last is None else max(span.start_s, last.end_s)
            if span.end_s > start_s:
                found.append(Span(start_s, span.end_s, span.reason))
        elif span.end_s > last.end_s:
            found[-1] = Span(last.start_s, span.end_s, last.reason)
    return tuple(found)


def _without(spans: Sequence[Span], taken: Sequence[Span]) -> tuple[Span, ...]:
    """The spans but for what others have taken, so that no second counts twice."""
    parts = list(spans)
    for hole in taken:
        parts = [
            piece
            for span in parts
            for piece in (
                Span(span.start_s, min(span.end_s, hole.start_s), span.reason),
                Span(max(span.start_s, hole.end_s), span.end_s, span.reason),
            )
            if piece.end_s > piece.start_s
        ]
    return tuple(parts)


def total_s(spans: Iterable[Span]) -> float:
    """Seconds of all spans together."""
    return sum(span.end_s - span.start_s for span in spans)
