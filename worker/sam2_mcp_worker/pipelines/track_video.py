"""Follows objects through a video: one job per request, and what a call that has waited for it delivers.

Without a given spacing the job ends with the time of the call that began it, after frames spread evenly over the
range. With one it goes on in the background, for as long as other unfinished work does, and the cursor asks how far it
is. Either way the next call goes on where the last one stopped, also after a restart of the worker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sam2_mcp_worker.cursors import decode_cursor, encode_cursor
from sam2_mcp_worker.deadline import Deadline, current_deadline
from sam2_mcp_worker.engines.ports import Tracker
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.fanout import Coverage
from sam2_mcp_worker.jobs import Job
from sam2_mcp_worker.media.tracks_file import TrackedFrame
from sam2_mcp_worker.pipelines.frame_plan import between
from sam2_mcp_worker.pipelines.track_artifacts import TrackPictures, make_artifacts
from sam2_mcp_worker.pipelines.track_course import TOOL, Course, TrackRequest, plan_course
from sam2_mcp_worker.pipelines.track_report import TrackCoverage, cover
from sam2_mcp_worker.pipelines.track_run import Propagation, frames_to_come
from sam2_mcp_worker.pipelines.track_state import TrackState
from sam2_mcp_worker.pipelines.video_facts import describe_video
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services

# Kept free at the end of a call for the contact sheet and the tracks: together 0.3 s, on two busy cores four times as
# long. Of a short budget never more than this share.
FINISH_S = 2.0
FINISH_SHARE = 0.2

Progress = Callable[[int, int], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Tracking:
    """What one call delivers: all tracked `frames` of the request so far, of which `new` were not told before."""

    course: Course
    frames: tuple[TrackedFrame, ...]
    new: tuple[TrackedFrame, ...]
    coverage: TrackCoverage
    pictures: TrackPictures
    notes: tuple[str, ...]
    cursor: str | None
    denser_cursor: str | None


@dataclass(frozen=True, slots=True)
class Place:
    """What a cursor says: which propagation is asked for, and up to which of its frames all was told."""

    propagation: int = 0
    told: int = -1


async def track_video(services: Services, request: TrackRequest, progress: Progress | None = None) -> Tracking:
    """Begin or go on with a tracking until the current deadline.

    Raises:
        WorkerError: the source, a prompt, a time or the cursor is wrong, the video cannot be read, there is no engine
            that tracks, or nothing at all could be tracked.
    """
    deadline = current_deadline()
    tracker = _tracker(services)
    stored = await services.sources.resolve(request.source)
    video = await describe_video(services, stored)
    course = plan_course(request, video, tracker.identity, services.settings.max_track_frames)
    place = _place(request.cursor, course.key)
    known = await _load(services, course)
    propagation, notes = _wanted(place, known, course)
    work_until = _work_until(deadline)
    budget = _budget(services, course, work_until)

    async def start(job: Job) -> None:
        state = await _load(services, course) or TrackState()
        if state.complete and propagation > state.propagation:
            state.begin_propagation(middle_frames(course, state))
        job.notes["state"] = state
        _fill(job.coverage, state, course)
        if not state.complete:
            run = job.notes["run"] = Propagation(services, tracker, course, state, job.coverage, budget)
            await run.run()

    async with services.jobs.join(cache_key(course.key, propagation), (course.span[0],), start) as job:
        if (running := job.notes.get("run")) is not None:
            running.prolong(budget)
        await _wait(job, work_until, progress)
        error = _error(job)
        state: TrackState = job.notes.get("state") or TrackState()
        if error is not None and not job.coverage.done:
            raise error
        notes += _troubles(job, error)
        notes += services.loading_notes() if job.coverage.unreached else []
        return await _deliver(services, course, job, state.snapshot(), place, notes)


def _tracker(services: Services) -> Tracker:
    if services.tracker is not None:
        return services.tracker
    missing = services.tracker_missing
    assert missing is not None, "either a tracker or the reason why there is none"
    raise WorkerError(missing.code, missing.what, rule=missing.rule, next_step=missing.next_step)


def _place(cursor: str, key: str) -> Place:
    if not cursor.strip():
        return Place()
    state = decode_cursor(cursor, TOOL, key)
    try:
        return Place(max(1, int(state["p"])), int(state["n"]))
    except (KeyError, TypeError, ValueError) as error:
        raise WorkerError(
            "cursor_invalid", "the cursor is damaged", next_step="repeat the call without cursor to start again"
        ) from error


async def _load(services: Services, course: Course) -> TrackState | None:
    return TrackState.from_record(await asyncio.to_thread(services.tracks.load, course.key))


def _wanted(place: Place, known: TrackState | None, course: Course) -> tuple[int, list[str]]:
    """Which propagation this call takes part in, and what has to be said about it."""
    notes = list(course.notes)
    at = known.propagation if known is not None else 1
    if known is None and place.propagation:
        notes.append("what earlier calls tracked is not kept any more: the tracking began again")
    if place.propagation <= at or known is None or not known.complete:
        return at, notes
    return at + 1, notes


def middle_frames(course: Course, state: TrackState) -> list[int]:
    """One frame of the range in each gap between tracked frames, as far as there is one."""
    handled = {*state.frames, *state.failed}
    free = [index for index in course.span if index not in handled]
    return between(course.video.times_s, free, sorted(state.frames))


def _work_until(deadline: Deadline) -> Deadline:
    kept_s = min(FINISH_S, FINISH_SHARE * deadline.remaining_s())
    return Deadline(deadline.at_s - kept_s, deadline.clock)


def _budget(services: Services, course: Course, work_until: Deadline) -> Deadline | None:
    in_background = not course.adaptive and services.settings.background_limit_s > 0
    return None if in_background else work_until


def _fill(coverage: Coverage[int, Any], state: TrackState, course: Course) -> None:
    """Begin with what is known already."""
    coverage.items = tuple(sorted({course.span[0], *state.frames, *state.failed, *_still_planned(state, course)}))
    for index, frame in state.frames.items():
        coverage.mark_done(index, frame)
    for index, reason in state.failed.items():
        code, _, what = reason.partition(": ")
        coverage.mark_failed(index, WorkerError(code, what))


def _still_planned(state: TrackState, course: Course) -> Sequence[int]:
    """What is to come for certain: with a given spacing all of it, otherwise the end of the range at least."""
    coming = [] if state.complete else frames_to_come(state, course)
    return coming[-1:] if course.adaptive else coming


async def _wait(job: Job, until: Deadline, progress: Progress | None) -> None:
    while not (job.finished or until.expired):
        settled = job.coverage.settled
        if progress is not None:
            await progress(settled, max(settled, len(job.coverage.items)))
        await job.wait_beyond(settled, until)


def _error(job: Job) -> WorkerError | None:
    """What ended the job early; the next call begins it anew."""
    try:
        job.raise_error()
    except WorkerError as error:
        return error
    return None


def _troubles(job: Job, error: WorkerError | None) -> list[str]:
    """What went wrong on the way, if it concerns whoever reads the result."""
    notes = []
    run: Propagation | None = job.notes.get("run")
    if run is not None and run.again:
        notes.append(f"the engine lost its memory of this tracking: {run.again} frames were tracked again")
    if error is not None:
        notes.append(f"the tracking was interrupted ({error.reason}); call again to go on")
    return notes


async def _deliver(
    services: Services, course: Course, job: Job, state: TrackState, place: Place, notes: list[str]
) -> Tracking:
    done: dict[int, TrackedFrame] = dict(job.coverage.done)
    coverage = Coverage(job.coverage.items, done, dict(job.coverage.failed))
    continues = place.propagation == state.propagation
    told = place.told if continues else -1
    new = [index for index in sorted(done) if not continues or (index in state.own and index > told)]
    pictures = await make_artifacts(services, course, state, done)
    last = max([*state.own, told])
    denser = state.complete and course.adaptive and _room(services, state) and bool(middle_frames(course, state))
    return Tracking(
        course=course,
        frames=tuple(done[index] for index in sorted(done)),
        new=tuple(done[index] for index in new),
        coverage=cover(coverage, course.video.times_s),
        pictures=pictures,
        notes=(*notes, *pictures.notes),
        cursor=None if state.complete else encode_cursor(TOOL, course.key, {"p": state.propagation, "n": last}),
        denser_cursor=encode_cursor(TOOL, course.key, {"p": state.propagation + 1, "n": -1}) if denser else None,
    )


def _room(services: Services, state: TrackState) -> bool:
    return len(state.frames) < services.settings.max_track_frames
