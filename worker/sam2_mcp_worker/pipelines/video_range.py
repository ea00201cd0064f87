"""The asked range of a video and the segments that are worked on as a whole. Pure: numbers only.

Segments are known before anything is decoded, so they are for a video what pages are for a PDF: the items of a job's
coverage. The same range always gives the same segments, whatever calls they are read in.
"""

from __future__ import annotations

from dataclasses import dataclass

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.video import VideoFacts
from sam2_mcp_worker.media.video_scan import ScanPlan
from sam2_mcp_worker.pipelines.frame_plan import TIME_TOLERANCE_S

# Long enough that frames which look the same are read once, short enough that a call settles several.
SEGMENT_S = 8.0
# With a dense grid a segment is shorter: a job that is stopped loses at most the frames of those under way.
MAX_SEGMENT_FRAMES = 16
# Four hours at the default of two frames a second; what is known of a frame stays in memory while a job lives.
MAX_GRID_FRAMES = 30_000


@dataclass(frozen=True, slots=True)
class Segment:
    """One piece of the range: `count` times of the grid from number `first` (from 0) on, `start_s` to `end_s`.

    `number` counts segments from 1.
    """

    number: int
    first: int
    count: int
    start_s: float
    end_s: float


def segment_numbers(asked: ScanPlan) -> tuple[int, ...]:
    """The numbers of all segments of a range, from 1."""
    return tuple(range(1, -(-asked.grid_count // _segment_frames(asked)) + 1))


def segment_of(asked: ScanPlan, number: int) -> Segment:
    """One of them."""
    frames = _segment_frames(asked)
    first = (number - 1) * frames
    count = min(frames, asked.grid_count - first)
    return Segment(number, first, count, *asked.span_s(first, count))


def _segment_frames(asked: ScanPlan) -> int:
    """How many times of the grid a segment has, but for the last one."""
    return max(1, min(MAX_SEGMENT_FRAMES, round(SEGMENT_S / asked.interval_s)))


def plan_range(start_s: float, end_s: float | None, interval_s: float, *, cuts: bool, duration_s: float) -> ScanPlan:
    """The range that a call asks for, checked against the video; `end_s` None or behind the end: to its end.

    Raises:
        WorkerError: time_outside, too_many_frames.
    """
    wanted_end_s = duration_s if end_s is None else end_s
    check_times(start_s, wanted_end_s, duration_s)
    asked = ScanPlan(min(start_s, duration_s), min(wanted_end_s, duration_s), interval_s, cuts)
    if asked.grid_count > MAX_GRID_FRAMES:
        length_s = asked.end_s - asked.start_s
        raise WorkerError(
            "too_many_frames",
            f"interval_s={interval_s:g} over {length_s:.3f} s are {asked.grid_count} frames",
            rule=f"one request looks at most at {MAX_GRID_FRAMES}",
            next_step=f"give interval_s of at least {length_s / MAX_GRID_FRAMES + 0.0005:.3f}, or a shorter range",
        )
    return asked


def check_times(start_s: float, end_s: float, duration_s: float) -> None:
    """Refuse a range that is not in the video.

    Raises:
        WorkerError: time_outside.
    """
    if start_s > duration_s + TIME_TOLERANCE_S:
        wrong = f"start_s={start_s:g} lies behind the end of the video"
    elif end_s < start_s:
        wrong = f"end_s={end_s:g} lies before start_s={start_s:g}"
    else:
        return
    raise WorkerError(
        "time_outside",
        wrong,
        rule=f"the video lasts {duration_s:.3f} s; 0 <= start_s <= end_s",
        next_step="give times of this video in seconds",
    )


def range_notes(facts: VideoFacts, end_s: float | None) -> list[str]:
    """What an agent should know of a range that is shorter than it, or the file, says."""
    notes = []
    if end_s is not None and end_s > facts.duration_s + TIME_TOLERANCE_S:
        notes.append(f"the video ends at {facts.duration_s:.3f} s, before end_s")
    if facts.stated_duration_s is not None:
        notes.append(
            f"the file says that it lasts {facts.stated_duration_s:.1f} s, but ends at {facts.duration_s:.1f} s: "
            "it was cut off"
        )
    return notes
