"""What one call to track_video says. Pure: state in, facts out.

Nothing is said of frames that were not tracked: shares are of the tracked frames, gaps are stated, and what failed or
was not reached is named by its time.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from sam2_mcp_worker.fanout import Coverage
from sam2_mcp_worker.media.tracks_file import TrackedFrame, Tracks
from sam2_mcp_worker.pipelines.frame_plan import choose_even
from sam2_mcp_worker.pipelines.track_course import Course


@dataclass(frozen=True, slots=True)
class ObjectSummary:
    """One object over all tracked frames; the times are None when it was never seen."""

    number: int
    first_visible_s: float | None
    last_visible_s: float | None
    visible_share: float


@dataclass(frozen=True, slots=True)
class TrackCoverage:
    """What became of the planned frames. `unreached_from_s` is the time of the first that was not reached."""

    planned: int
    done: int
    failed_times_s: tuple[float, ...]
    unreached: int
    unreached_from_s: float | None


@dataclass(frozen=True, slots=True)
class Spacing:
    """Shortest and longest time between neighbouring tracked frames, seconds."""

    shortest_s: float
    longest_s: float


def summarise(frames: Sequence[TrackedFrame], objects: int) -> list[ObjectSummary]:
    """Every object over the tracked frames, which rise in time."""
    summaries = []
    for number in range(1, objects + 1):
        seen = [frame.time_s for frame in frames if not frame.objects[number - 1].lost]
        share = len(seen) / len(frames) if frames else 0.0
        summaries.append(ObjectSummary(number, seen[0] if seen else None, seen[-1] if seen else None, share))
    return summaries


def cover(coverage: Coverage[int, TrackedFrame], times_s: Sequence[float]) -> TrackCoverage:
    """The coverage with times in place of indices."""
    unreached = coverage.unreached
    return TrackCoverage(
        planned=len(coverage.items),
        done=len(coverage.done),
        failed_times_s=tuple(times_s[index] for index in sorted(coverage.failed)),
        unreached=len(unreached),
        unreached_from_s=times_s[unreached[0]] if unreached else None,
    )


def spacing_of(frames: Sequence[TrackedFrame]) -> Spacing | None:
    """The gaps between tracked frames; None for fewer than two."""
    gaps = [after.time_s - before.time_s for before, after in itertools.pairwise(frames)]
    return Spacing(min(gaps), max(gaps)) if gaps else None


def tracks_of(course: Course, done: Mapping[int, TrackedFrame], failed: Collection[int], *, complete: bool) -> Tracks:
    """The content of the tracks artifact."""
    facts, times_s = course.video.facts, course.video.times_s
    return Tracks(
        source_sha256=course.video.stored.sha256,
        width_px=facts.width_px,
        height_px=facts.height_px,
        duration_s=facts.duration_s,
        start_s=course.start_s,
        end_s=course.end_s,
        quality=course.quality,
        object_count=len(course.prompts),
        complete=complete,
        frames=tuple(frame for _, frame in sorted(done.items())),
        failed_times_s=tuple(times_s[index] for index in sorted(failed)),
    )


def fitting_frames(
    frames: Sequence[TrackedFrame], max_chars: int, size_of: Callable[[TrackedFrame], int]
) -> list[TrackedFrame]:
    """As many of the frames, evenly chosen, as a result has room for; at least one if there is one."""
    sizes = [size_of(frame) for frame in frames]
    if sum(sizes) <= max_chars:
        return list(frames)
    most = max(1, max_chars // max(sizes))
    return [frames[place] for place in choose_even([frame.time_s for frame in frames], range(len(frames)), most)]
