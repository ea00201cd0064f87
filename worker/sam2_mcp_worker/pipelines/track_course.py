"""What a call to track_video asks for, checked against the video. Pure but for the facts it is given.

A course is the same for all calls of a request: its key decides what is taken up again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sam2_mcp_worker.engines.ports import ObjectPrompt, Quality
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.pipelines.frame_plan import choose_spaced, frames_between
from sam2_mcp_worker.pipelines.prompts import MarkedPoint, PictureSize, object_prompts
from sam2_mcp_worker.pipelines.video_facts import Video
from sam2_mcp_worker.pipelines.video_range import check_times, range_notes
from sam2_mcp_worker.result_cache import cache_key

TOOL = "track_video"
# Each object costs 0.2-0.45 s a frame beside the 0.3-0.65 s of the picture (reference/sam.md 3a): with ten of them a
# call gets through about eight frames, with more there is nothing left to follow.
MAX_TRACKED_OBJECTS = 10


@dataclass(frozen=True, slots=True)
class TrackRequest:
    """The arguments of one call. `end_s` None: to the end; `every_s` None: as dense as fits the call."""

    source: str
    boxes: Sequence[Sequence[int]] = ()
    points: Sequence[MarkedPoint] = ()
    start_s: float = 0.0
    end_s: float | None = None
    every_s: float | None = None
    quality: Quality = "balanced"
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class Course:
    """A checked request. `span` are the frames of the asked range, its first one is where the prompts hold."""

    key: str
    video: Video
    prompts: tuple[ObjectPrompt, ...]
    quality: Quality
    span: range
    every_s: float | None
    notes: tuple[str, ...]

    @property
    def adaptive(self) -> bool:
        """Whether the spacing follows from the time that a call has."""
        return self.every_s is None

    @property
    def first_pool(self) -> Sequence[int]:
        """The frames behind the first one that the first propagation may take, or, with a given spacing, takes."""
        if self.every_s is None:
            return self.span[1:]
        return choose_spaced(self.video.times_s, self.span, self.every_s)[1:]

    @property
    def start_s(self) -> float:
        """Time of the first frame."""
        return self.video.times_s[self.span[0]]

    @property
    def end_s(self) -> float:
        """Time of the last frame of the range."""
        return self.video.times_s[self.span[-1]]


def plan_course(request: TrackRequest, video: Video, engine: str, max_frames: int) -> Course:
    """Check a request against the video.

    Args:
        engine: identity of the tracker, part of the key.
        max_frames: most frames that one tracking may follow.

    Raises:
        WorkerError: time_outside, too_many_objects, too_many_frames, and those of `object_prompts`.
    """
    facts = video.facts
    end_s = facts.duration_s if request.end_s is None else request.end_s
    check_times(request.start_s, end_s, facts.duration_s)
    size = PictureSize(facts.width_px, facts.height_px, "video")
    prompts = object_prompts(request.boxes, request.points, size)
    _check_objects(len(prompts.objects))
    span = frames_between(video.times_s, request.start_s, end_s)
    notes = [*prompts.notes, *range_notes(facts, request.end_s)]
    key = cache_key(
        TOOL,
        engine,
        video.stored.sha256,
        [prompt.to_params() for prompt in prompts.objects],
        [span[0], span[-1], request.every_s, request.quality],
    )
    course = Course(key, video, prompts.objects, request.quality, span, request.every_s, tuple(notes))
    _check_frames(course, max_frames)
    return course


def _check_objects(count: int) -> None:
    if count > MAX_TRACKED_OBJECTS:
        raise WorkerError(
            "too_many_objects",
            f"{count} objects were asked for",
            rule=f"track_video follows at most {MAX_TRACKED_OBJECTS} at once",
            next_step="track the rest in a further call",
        )


def _check_frames(course: Course, max_frames: int) -> None:
    if course.every_s is None or (frames := len(course.first_pool) + 1) <= max_frames:
        return
    length_s = course.end_s - course.start_s
    raise WorkerError(
        "too_many_frames",
        f"every_s={course.every_s:g} from {course.start_s:.3f} s to {course.end_s:.3f} s are {frames} frames",
        rule=f"one tracking follows at most {max_frames} (SAM2_MCP_MAX_TRACK_FRAMES)",
        next_step=f"give every_s of at least {length_s / max(1, max_frames - 1):.3f}, or a shorter range",
    )
