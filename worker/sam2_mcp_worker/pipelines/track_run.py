"""Carries out one propagation: reads frames, steps the tracker, keeps its memory safe, and survives its loss.

Owns the order of work and what is done again after a failure. Which frames are taken is frame_plan's business, what a
call reports of them track_report's.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.disk import remove, storage_errors
from sam2_mcp_worker.engines.ports import ObjectMask, Tracker
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.fanout import Coverage
from sam2_mcp_worker.media.tracks_file import TrackedFrame, TrackedObject
from sam2_mcp_worker.media.video import LostFrame, VideoFrame, read_frames
from sam2_mcp_worker.pipelines.frame_feed import Found, FrameFeed
from sam2_mcp_worker.pipelines.frame_plan import Pace, Plan
from sam2_mcp_worker.pipelines.track_course import Course
from sam2_mcp_worker.pipelines.track_state import TrackState
from sam2_mcp_worker.services import Services

# Saving takes about 0.1 s; what was tracked since then is tracked again when the engine is lost.
SAVE_EVERY_S = 8.0
# The engine is taken up again after this many losses in a run; a frame that ends it twice counts as failed.
MAX_LOSSES = 4
FRAME_ATTEMPTS = 2
# Losses of the engine's memory; everything else that it says is final.
_LOSSES = ("track_state_lost", "decoder_timeout", "decoder_crashed", "out_of_memory", "internal")
# Of storage_errors: the tracking itself can go on.
_DISK_REFUSES = ("no_space", "storage_failed")
# A step with so many objects may take the time of one picture step; more objects get more (reference/sam.md 3a).
OBJECTS_PER_TIMEOUT = 4
# The worker waits for this when it stops.
DROP_PATIENCE_S = 3.0
# Steps vary: without this share of a frame kept back, every second call would end before its last frame.
SPARE_FRAMES = 0.5
# Longer side of the pictures on the contact sheet.
THUMBNAIL_PX = 320
# Memories that a step looks at, itself included, and how much longer a step takes with all of them than with the
# first one: for one object, and more for each further one. From the split of `tests.bench.sam.track_split`: 1.25 s of
# CPU for an accurate frame, of which 0.41 s look back; 0.53 and 0.22 s for a fast one.
_MEMORIES = {"accurate": 7, "balanced": 7, "fast": 4}
_GROWTH = {"accurate": (1.05, 0.25), "balanced": (1.05, 0.25), "fast": (1.05, 0.15)}

Value = TypeVar("Value")

logger = logging.getLogger(__name__)


class Propagation:
    """One run over the frames of the current propagation of `state`, as far as `budget` allows (None: to the end).

    `coverage` is filled frame by frame; its items are the frames that are done, failed, or still planned.
    """

    def __init__(
        self,
        services: Services,
        tracker: Tracker,
        course: Course,
        state: TrackState,
        coverage: Coverage[int, TrackedFrame],
        budget: Deadline | None,
    ) -> None:
        self._services = services
        self._tracker = tracker
        self._course = course
        self._state = state
        self._coverage = coverage
        self._budget = budget
        self._clock = budget.clock if budget is not None else time.monotonic
        self._session = f"{course.key}-{state.propagation}"
        self._folder = services.tracks.folder(course.key)
        self._pace = Pace()
        self._working_on = course.span[0]
        self._handled_before = len(state.frames) + len(state.failed)
        self._losses: Counter[int] = Counter()
        self.again = 0
        """Frames that had to be tracked again because the engine had lost its memory."""
        self._last_s = -1.0
        self._saved_at_s = self._clock()

    def prolong(self, budget: Deadline | None) -> None:
        """A further call waits for this run: the time of the one that stays longest counts."""
        if self._budget is not None and budget is not None and budget.at_s > self._budget.at_s:
            self._budget = budget

    async def run(self) -> None:
        """Track until nothing is left or nothing fits; the state is on disk then.

        Raises:
            WorkerError: the video cannot be read, or the engine was lost too often.
        """
        with self._services.work_directory("track") as work:
            try:
                while not await self._attempt(work):
                    logger.warning("a tracking is taken up again at its last saved memory")
            finally:
                self._services.in_background(self._drop())

    async def _attempt(self, work: Path) -> bool:
        """Whether the run came to its end; otherwise the engine's memory was lost on the way."""
        feed = FrameFeed(lambda indices: self._read(indices, work))
        try:
            await self._take_up(feed, work)
            await self._follow(feed, work)
            return True
        except _MemoryLost as lost:
            self._note_loss(lost.error)
            return False
        finally:
            await feed.close()

    async def _take_up(self, feed: FrameFeed, work: Path) -> None:
        """Bring the session to where the saved memory ends, or begin it at the prompts; then repeat what is missing."""
        if self._state.memory is not None and await self._restore(self._folder / self._state.memory):
            assert self._state.current is not None
            self._last_s = self._course.video.times_s[self._state.current]
            self._pace = Pace()
            self._pace.add(self._state.frame_s or 0.0)
        else:
            self._state.forget_memory()
            await self._begin(feed, work)
        again = [index for index in self._state.replay if index != self._course.span[0]]
        self.again += len(again)
        for place, index in enumerate(again):
            await self._track(feed, index, again[place + 1 :], work)

    async def _restore(self, path: Path) -> bool:
        """Whether the saved memory could be taken up."""
        restoring = self._tracker.restore(self._session, path, job=self._course.key, timeout_s=self._timeout_s)
        try:
            await restoring
        except WorkerError as error:
            if error.code != "track_state_lost":
                raise _MemoryLost(error) from error
            logger.warning("the saved memory of a tracking cannot be used: %s", error.what)
            return False
        return True

    async def _begin(self, feed: FrameFeed, work: Path) -> None:
        """Start the session on the first frame, which only the first propagation reports."""
        index = self._working_on = self._course.span[0]
        growth, per_object = _GROWTH[self._course.quality]
        self._pace = Pace(growth + per_object * len(self._course.prompts), _MEMORIES[self._course.quality] - 1)
        # An engine that is loading answers when it is ready: neither that nor opening its graphs is the pace of frames.
        await _engine(self._tracker.drop(self._session, job=self._course.key))
        await _engine(self._tracker.prepare(self._course.quality, job=self._course.key, timeout_s=self._timeout_s))
        began_s = self._clock()
        found = await feed.get(index, ())
        if isinstance(found, LostFrame):
            raise WorkerError(
                "start_frame_damaged",
                f"the frame on screen at {self._course.start_s:.3f} s cannot be decoded",
                next_step="give another start_s, and the prompts for the frame on screen then",
                private=found.reason,
            )
        starting = self._tracker.start(
            self._session,
            found.pixels,
            self._course.prompts,
            quality=self._course.quality,
            mask_dir=_mask_dir(work),
            job=self._course.key,
            timeout_s=self._timeout_s,
        )
        masks = await _engine(starting)
        if index in self._state.frames:
            await asyncio.to_thread(self._put_away, index, found, work)
            self._last_s = found.time_s
        else:
            await self._keep(index, found, masks, work)
        self._state.reached = max(index, self._state.reached or 0)
        self._pace.add(self._clock() - began_s)

    async def _follow(self, feed: FrameFeed, work: Path) -> None:
        """Go on behind the last frame that was handled."""
        state = self._state
        assert state.reached is not None, "the session has begun"
        pool = frames_to_come(state, self._course)
        plan = Plan(self._course.video.times_s, pool, self._course.adaptive, state.reached)
        self._announce(plan.ahead)
        while (index := plan.take(self._fitting(len(plan.ahead)))) is not None:
            self._announce([index, *plan.ahead])
            began_s = self._clock()
            await self._track(feed, index, plan.certain, work)
            self._pace.add(self._clock() - began_s)
            if plan.ahead and self._clock() - self._saved_at_s >= SAVE_EVERY_S:
                await self._save()
        self._announce(plan.ahead)
        state.complete = not plan.ahead
        logger.info("tracking: %s", self._pace)
        await self._save()

    def _fitting(self, ahead: int) -> int:
        most = min(ahead, self._services.settings.max_track_frames - len(self._state.frames))
        if self._budget is None:
            return most
        fitting = self._pace.fitting(self._budget.remaining_s() - SPARE_FRAMES * self._pace.frame_s, most)
        # A pace that was seen while the machine was busy must not end a tracking for good: a run tries one frame.
        idle = len(self._state.frames) + len(self._state.failed) == self._handled_before
        return min(most, 1) if fitting < 1 and idle and not self._budget.expired else fitting

    def _announce(self, ahead: Sequence[int]) -> None:
        handled = {*self._state.frames, *self._state.failed}
        self._coverage.items = tuple(sorted(handled.union(ahead)))

    async def _track(self, feed: FrameFeed, index: int, likely: Sequence[int], work: Path) -> None:
        """One further frame: its masks, or why there are none."""
        self._working_on = index
        found = await feed.get(index, likely)
        if isinstance(found, LostFrame):
            self._fail(index, WorkerError("frame_damaged", found.reason.removeprefix("frame_damaged: ")))
        elif found.time_s > self._last_s:
            step = self._tracker.step(
                self._session, found.pixels, mask_dir=_mask_dir(work), job=self._course.key, timeout_s=self._timeout_s
            )
            await self._keep(index, found, await _engine(step), work)
        self._state.reached = max(index, self._state.reached or 0)

    async def _keep(self, index: int, found: VideoFrame, masks: list[ObjectMask], work: Path) -> None:
        """Note what was found in a frame; its picture and masks are not needed any more."""
        facts = self._course.video.facts
        visible = [mask for mask in masks if not mask.blank]
        counts: list[str] = []
        if visible:
            params = {
                "masks": [{"path": str(mask.mask_path), "box": mask.box_xyxy_px} for mask in visible],
                "size": [facts.width_px, facts.height_px],
            }
            timeout_s = self._services.settings.step_timeout_s
            answer = await self._services.decoders.run("mask_runs", params, timeout_s=timeout_s, job=self._course.key)
            counts = answer["counts"]
        await asyncio.to_thread(self._put_away, index, found, work)
        frame = TrackedFrame(found.time_s, tuple(_objects(masks, counts)))
        self._last_s = found.time_s
        self._state.frames[index] = frame
        self._state.own.add(index)
        self._coverage.mark_done(index, frame)

    def _put_away(self, index: int, found: VideoFrame, work: Path) -> None:
        remove(_mask_dir(work))
        if found.thumbnail is not None:
            self._state.thumbnail_px = (found.thumbnail.width_px, found.thumbnail.height_px)
            with storage_errors():
                found.thumbnail.path.replace(thumbnail_path(self._folder, index))

    def _fail(self, index: int, error: WorkerError) -> None:
        self._state.own.discard(index)  # not to be repeated either
        if index not in self._state.frames:
            self._state.failed[index] = error.reason
            self._coverage.mark_failed(index, error)
        self._state.reached = max(index, self._state.reached or 0)

    def _note_loss(self, error: WorkerError) -> None:
        """Raise the error if going on makes no sense; a frame that ended the engine twice is left out."""
        index = self._working_on
        self._losses[index] += 1
        if error.code not in _LOSSES or self._losses.total() > MAX_LOSSES:
            raise error
        if self._losses[index] >= FRAME_ATTEMPTS:
            if index == self._course.span[0]:
                raise error
            self._fail(index, error)

    async def _save(self) -> None:
        """Put the state on disk and, unless it is complete, the engine's memory before it.

        A disk that refuses costs what a later call would have to do again, not this one.
        """
        state, before = self._state, self._state.memory
        state.frame_s = self._pace.frame_s or state.frame_s
        if state.complete:
            state.forget_memory()
        else:
            await self._save_memory(f"memory-{state.propagation}-{state.reached}.safetensors")
        await save_state(self._services, self._course.key, state)
        if before is not None and before != state.memory:
            (self._folder / before).unlink(missing_ok=True)
        self._saved_at_s = self._clock()

    async def _save_memory(self, name: str) -> None:
        saving = self._tracker.save(self._session, self._folder / name, job=self._course.key, timeout_s=self._timeout_s)
        try:
            await saving
        except WorkerError as error:
            if error.code not in _DISK_REFUSES:
                raise _MemoryLost(error) from error
            logger.warning("could not store the memory of a tracking: %s", error.what)
        else:
            self._state.memory, self._state.current = name, self._state.reached

    async def _drop(self) -> None:
        # An engine that is gone has forgotten it too, and one that hangs will be ended: neither is worth waiting for.
        with suppress(WorkerError, TimeoutError):
            async with asyncio.timeout(DROP_PATIENCE_S):
                await self._tracker.drop(self._session, job=self._course.key)

    def _read(self, indices: list[int], work: Path) -> AsyncGenerator[Found, None]:
        video = self._course.video
        return read_frames(
            self._services.decoders,
            video.stored.path,
            video.facts,
            [video.times_s[index] for index in indices],
            work,
            timeout_s=self._services.settings.step_timeout_s,
            job=self._course.key,
            thumbnail_px=THUMBNAIL_PX,
        )

    @property
    def _timeout_s(self) -> float:
        share = max(1.0, len(self._course.prompts) / OBJECTS_PER_TIMEOUT)
        return self._services.settings.step_timeout_s * share


class _MemoryLost(Exception):
    """The engine did not do a step, so its memory of the session cannot be relied on."""

    def __init__(self, error: WorkerError) -> None:
        super().__init__(str(error))
        self.error = error


async def _engine(work: Awaitable[Value]) -> Value:
    try:
        return await work
    except WorkerError as error:
        raise _MemoryLost(error) from error


def frames_to_come(state: TrackState, course: Course) -> list[int]:
    """What the current propagation may still take, behind what it has handled."""
    pool = course.first_pool if state.pool is None else state.pool
    return [index for index in pool if state.reached is None or index > state.reached]


async def save_state(services: Services, key: str, state: TrackState) -> None:
    """Put a state on disk; a disk that refuses costs going on later, not the call."""
    snapshot = state.snapshot()
    try:
        await asyncio.to_thread(lambda: services.tracks.save(key, snapshot.to_record()))
    except OSError as error:
        logger.warning("could not store the progress of a tracking: %s", error.strerror)


def thumbnail_path(folder: Path, index: int) -> Path:
    """Where the small picture of a frame lies, as raw RGB."""
    return folder / f"frame-{index}.rgb"


def _mask_dir(work: Path) -> Path:
    folder = work / "masks"
    folder.mkdir(exist_ok=True)
    return folder


def _objects(masks: list[ObjectMask], counts: list[str]) -> Iterator[TrackedObject]:
    runs = iter(counts)
    for number, mask in enumerate(masks, 1):
        found = next(runs) if not mask.blank else None
        yield TrackedObject(number, mask.box_xyxy_px, mask.area_px, round(mask.predicted_iou, 3), found)
