"""When the place of a tracked object is known, and when it is not. Pure; imports nothing heavy.

At a tracked frame an object is seen or lost. Between two frames in both of which it is seen its place is taken as
known: somewhere between its two places. Everywhere else nothing is known: beside a frame in which it is lost, before
the first frame and behind the last.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from sam2_mcp_worker.media.tracks_file import TrackedFrame, Tracks

Span = tuple[float, float]
# Times are told with six decimals: shorter spans hold no frame.
LEAST_S = 2e-6


@dataclass(frozen=True, slots=True)
class Unknown:
    """A span in which it is not known where an object is."""

    object_number: int
    start_s: float
    end_s: float


def known_spans(tracks: Tracks, object_number: int) -> list[Span]:
    """Spans in which the object's place is known, first and last frame included.

    The end of the video counts as known when the tracking is complete and the end is no further from the last frame
    than frames are from each other.
    """
    spans: list[Span] = []
    for seen, run in itertools.groupby(tracks.frames, key=lambda frame: _is_seen(frame, object_number)):
        if seen:
            times = [frame.time_s for frame in run]
            spans.append((times[0], times[-1]))
    at_the_end = bool(spans) and spans[-1][1] == tracks.frames[-1].time_s
    if at_the_end and tracks.complete and tail_s(tracks) <= largest_step_s(tracks):
        spans[-1] = spans[-1][0], max(tracks.duration_s, spans[-1][1])
    return spans


def tail_s(tracks: Tracks) -> float:
    """Seconds of the video behind the last tracked frame."""
    return tracks.duration_s - tracks.frames[-1].time_s if tracks.frames else tracks.duration_s


def largest_step_s(tracks: Tracks) -> float:
    """The longest time between two tracked frames; 0 with fewer than two."""
    times = [frame.time_s for frame in tracks.frames]
    return max((after - before for before, after in itertools.pairwise(times)), default=0.0)


def unknown_spans(tracks: Tracks, wanted: Span, elsewhere: Iterable[Span] = ()) -> list[Unknown]:
    """Parts of the `wanted` span in which an object's place is unknown, but for those within a span `elsewhere`."""
    covered = list(elsewhere)
    found = []
    for number in range(1, tracks.object_count + 1):
        for start, end in without(wanted, known_spans(tracks, number)):
            if not any(first <= start and end <= last for first, last in covered):
                found.append(Unknown(number, start, end))
    return found


def without(whole: Span, parts: Iterable[Span]) -> list[Span]:
    """What of a span lies in none of the parts; specks are left out."""
    rest, at = [], whole[0]
    for start, end in sorted(parts):
        if start > at:
            rest.append((at, min(start, whole[1])))
        at = max(at, end)
    rest.append((at, whole[1]))
    return [(start, end) for start, end in rest if end - start > LEAST_S]


def _is_seen(frame: TrackedFrame, object_number: int) -> bool:
    return not frame.objects[object_number - 1].lost
