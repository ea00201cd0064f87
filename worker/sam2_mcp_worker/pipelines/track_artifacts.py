"""What a tracking leaves for people and other tools: all masks as JSON, a contact sheet, a time line, the video with
outlines.

The tracks are always there. The pictures and the video are made in jobs of their own, which the call waits for as long
as it can: what is not ready by then is said to be missing, and comes with a later call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sam2_mcp_worker.artifacts import Artifact
from sam2_mcp_worker.deadline import Deadline, current_deadline
from sam2_mcp_worker.disk import storage_errors
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.jobs import Job
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.tracks_file import MIME_TYPE, TrackedFrame
from sam2_mcp_worker.media.video_pictures import draw_contact_sheet, draw_time_line
from sam2_mcp_worker.media.video_write import PainterSpec, write_video
from sam2_mcp_worker.pipelines.artifact_keeping import kept_artifact
from sam2_mcp_worker.pipelines.frame_plan import choose_even
from sam2_mcp_worker.pipelines.track_course import Course
from sam2_mcp_worker.pipelines.track_report import tracks_of
from sam2_mcp_worker.pipelines.track_run import thumbnail_path
from sam2_mcp_worker.pipelines.track_state import TrackState
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services

# Encoding a minute of 1080p takes about a minute of both cores: longer videos would only keep other calls waiting.
MAX_ANNOTATED_S = 180.0
# A call that has its result does not wait longer than this for the video; a short clip is written within it.
VIDEO_PATIENCE_S = 4.0
# The contact sheet shows no more (media/video_sheet.py).
MAX_CELLS = 48

Make = Callable[[Path], Awaitable[Path]]
"""Makes a file in the given work directory."""


@dataclass(frozen=True, slots=True)
class TrackPictures:
    """The artifacts that are ready; `notes` say why others are not."""

    tracks: Artifact
    contact_sheet: Artifact | None
    time_line: Artifact | None
    annotated_video: Artifact | None
    notes: tuple[str, ...] = ()

    @property
    def ready(self) -> list[Artifact]:
        """All that are there."""
        return [one for one in (self.tracks, self.contact_sheet, self.time_line, self.annotated_video) if one]


async def make_artifacts(
    services: Services, course: Course, state: TrackState, done: Mapping[int, TrackedFrame]
) -> TrackPictures:
    """Store the tracks, and make what else the current deadline allows; the rest goes on behind it.

    Args:
        state: as it is now; `done` are the frames that the call tells of.
    """
    made = _Artifacts(services, course, state, done, current_deadline())
    tracks = await made.tracks()
    if not done:
        return TrackPictures(tracks, None, None, None)
    sheet, line, video = await asyncio.gather(
        made.picture("contact_sheet", "image/jpeg", "jpg", made.draw_sheet),
        made.picture("time_line", "image/jpeg", "jpg", made.draw_line),
        made.video(),
    )
    return TrackPictures(tracks, sheet, line, video, tuple(made.notes))


class _Artifacts:
    def __init__(
        self,
        services: Services,
        course: Course,
        state: TrackState,
        done: Mapping[int, TrackedFrame],
        deadline: Deadline,
    ) -> None:
        self._services = services
        self._course = course
        self._state = state
        self._done = done
        self._deadline = deadline
        self._key = cache_key("tracks", course.key, sorted(done), sorted(state.failed), state.complete)
        self._tracks = Path()
        self.notes: list[str] = []

    async def tracks(self) -> Artifact:
        """The tracks as they are now; the same handle as long as nothing is added."""

        def store() -> Artifact:
            tracks = tracks_of(self._course, self._done, self._state.failed, complete=self._state.complete)
            with storage_errors():
                return self._services.artifacts.put(
                    tracks.to_bytes(), name=f"{self._stem}-tracks.json", mime_type=MIME_TYPE, facts=tracks.facts
                )

        artifact = await self._kept("tracks", lambda: asyncio.to_thread(store))
        _, self._tracks = await asyncio.to_thread(self._services.artifacts.get, artifact.handle)
        return artifact

    async def video(self) -> Artifact | None:
        """The video with outlines, once nothing is added to the tracks any more."""
        if not self._state.complete:
            return None
        if self._course.video.facts.duration_s > MAX_ANNOTATED_S:
            self.notes.append(f"no annotated video is made of videos longer than {MAX_ANNOTATED_S:g} s")
            return None
        until = Deadline.after(min(VIDEO_PATIENCE_S, self._deadline.remaining_s()), self._deadline.clock)
        return await self.picture("annotated_video", "video/mp4", "mp4", self._write_video, until)

    async def picture(
        self, kind: str, mime_type: str, suffix: str, make: Make, until: Deadline | None = None
    ) -> Artifact | None:
        """The artifact of this kind if it is ready by then or before the deadline; its job goes on."""
        name = f"{self._stem}-{kind.replace('_', '-')}.{suffix}"

        async def make_one() -> Artifact:
            with self._services.work_directory(kind) as work:
                path = await make(work)
                return await asyncio.to_thread(self._services.artifacts.adopt, path, name=name, mime_type=mime_type)

        async def start(job: Job) -> None:
            job.coverage.mark_done(1, await self._kept(kind, make_one))

        words = kind.replace("_", " ")
        async with self._services.jobs.join(cache_key(kind, self._key), (1,), start) as job:
            await job.wait(until or self._deadline)
            try:
                job.raise_error()
            except WorkerError as error:
                self.notes.append(f"the {words} could not be made ({error.reason})")
                return None
            ready: Artifact | None = job.coverage.done.get(1)
        if ready is None:
            self.notes.append(f"the {words} is still being made: the same call will have it")
        return ready

    async def draw_sheet(self, work: Path) -> Path:
        """See draw_contact_sheet."""
        out_path, size = work / "sheet.jpg", self._state.thumbnail_px
        assert size is not None, "a frame was tracked, so there is a small picture of it"
        folder = self._services.tracks.folder(self._course.key)
        shown = choose_even(self._course.video.times_s, sorted(self._done), MAX_CELLS)
        cells = [(self._done[i].time_s, PixelFile(thumbnail_path(folder, i), *size)) for i in shown]
        await draw_contact_sheet(
            self._services.decoders, self._tracks, cells, out_path, timeout_s=self._timeout_s, job=self._key
        )
        return out_path

    async def draw_line(self, work: Path) -> Path:
        """See draw_time_line."""
        out_path = work / "line.jpg"
        await draw_time_line(self._services.decoders, self._tracks, out_path, timeout_s=self._timeout_s, job=self._key)
        return out_path

    async def _write_video(self, work: Path) -> Path:
        video = self._course.video
        written = await write_video(
            self._services.decoders,
            video.stored.path,
            video.facts,
            PainterSpec("outline", {"tracks_path": str(self._tracks)}),
            work / "annotated.mp4",
            work,
            timeout_s=self._timeout_s,
            job=self._key,
        )
        return written.path

    async def _kept(self, kind: str, make: Callable[[], Awaitable[Artifact]]) -> Artifact:
        """The artifact of this kind that is there already, else a new one."""
        return await kept_artifact(self._services, cache_key(kind, self._key), make)

    @property
    def _timeout_s(self) -> float:
        return self._services.settings.step_timeout_s

    @property
    def _stem(self) -> str:
        return Path(self._course.video.stored.name).stem[:80] or "video"
