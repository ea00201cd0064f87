"""Recordings and videos as documents that can be read: what was heard or shown becomes a `Reading` of one page.

Owns what of them counts as not read: words of an engine that may be wrong throughout, spans that nobody heard, frames
that failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

from sam2_mcp_worker.checks.reading import Kind, ReadLine, ReadPage, Unread
from sam2_mcp_worker.checks.reading import Reading as DocumentReading
from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.jobs import Progress
from sam2_mcp_worker.media.video import VideoFacts
from sam2_mcp_worker.pipelines.look_moments import LookMoments
from sam2_mcp_worker.pipelines.page_readers import provider_identity
from sam2_mcp_worker.pipelines.read_documents import NOT_REACHED, UNREAD_INK, ReadDocument, VideoReading, settled_parts
from sam2_mcp_worker.pipelines.reading_choice import Mode
from sam2_mcp_worker.pipelines.recording import Recording
from sam2_mcp_worker.pipelines.sound_job import SoundJob, heard_pieces
from sam2_mcp_worker.pipelines.speech_notes import engine_notes, file_notes, loading_notes
from sam2_mcp_worker.pipelines.text_tracks import TextTrack, text_tracks
from sam2_mcp_worker.pipelines.transcript import Transcript
from sam2_mcp_worker.pipelines.video_coverage import cover
from sam2_mcp_worker.pipelines.video_job import VideoJob, range_key, reading_notes, video_job, wait_for_looks
from sam2_mcp_worker.pipelines.video_range import plan_range
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.uploads import StoredFile

# As inspect_video samples by default: what it has read costs nothing here.
FRAME_INTERVAL_S = 0.5
LOW_QUALITY = "the local speech engine's words may be wrong: what was not heard may have been said"
GOES_ON = "sound goes on behind the end that the file states"


@dataclass(frozen=True, slots=True)
class SoundDocument:
    """The sound of a file; lines are what was said, with times."""

    services: Services
    recording: Recording

    @property
    def name(self) -> str:
        """Of the file."""
        return self.recording.stored.name

    @property
    def kind(self) -> Kind:
        """Sound."""
        return "sound"

    @property
    def file(self) -> StoredFile:
        """The file."""
        return self.recording.stored

    @property
    def key(self) -> str:
        """As `Document`."""
        return self._job.key

    @property
    def _job(self) -> SoundJob:
        """All of it, as transcribe_audio hears it by default."""
        facts = self.recording.facts
        end_s = max(facts.end_s, facts.stated_end_s or facts.end_s)
        return SoundJob(self.services, self.recording, facts.begins_s, end_s, None)

    async def read(
        self, deadline: Deadline, *, began_with: str = "", retry: bool = True, progress: Progress | None = None
    ) -> ReadDocument:
        """As `Document`."""
        listens = self._job
        async with listens.join(retry=retry) as job:
            await job.wait_telling(deadline, progress)
            job.raise_error()
            listening, transcript = listens.listening(job), listens.transcript(job)
            coverage, spent = settled_parts(job), job.spent.take()
            notes = (
                *file_notes(None, listening),
                *engine_notes(heard_pieces(listening, job)),
                *loading_notes(self.services, job),
            )
        unread = (*_unheard(transcript), *([Unread(GOES_ON)] if listening.goes_on else []))
        said = tuple(
            ReadLine(one.text, "speech", confidence=one.confidence, start_s=one.start_s, end_s=one.end_s)
            for one in transcript.said
        )
        reading = DocumentReading("sound", "s", (ReadPage(1, "done", said, unread),))
        return ReadDocument(
            self, reading, coverage, transcript.engine, notes, spent=spent, unit="piece", transcript=transcript
        )


def _unheard(transcript: Transcript) -> Iterator[Unread]:
    for span in transcript.spans:
        if span.became not in ("heard", "silent"):
            reason = span.reason or NOT_REACHED
            yield Unread(reason, start_s=span.start_s, end_s=span.end_s)
    if transcript.low_quality and transcript.of("heard"):
        yield Unread(LOW_QUALITY)


@dataclass(frozen=True, slots=True)
class VideoDocument:
    """What the frames of a video show; lines are texts over time, in pixels of the upright frame.

    Its `sound`, where there is some, is another document; None with `sound_trouble` where it cannot be opened.
    """

    services: Services
    stored: StoredFile
    facts: VideoFacts
    mode: Mode
    sound: SoundDocument | None = None
    sound_trouble: str = ""

    @property
    def name(self) -> str:
        """Of the file."""
        return self.stored.name

    @property
    def kind(self) -> Kind:
        """A video."""
        return "video"

    @property
    def file(self) -> StoredFile:
        """The file."""
        return self.stored

    @property
    def key(self) -> str:
        """As `Document`."""
        identities = [self.services.reader.identity, provider_identity(self.services)]
        return cache_key(*range_key(self.stored, self._job().video.asked), self.mode, identities)

    def _job(self) -> VideoJob:
        """All of it, as inspect_video looks at it by default."""
        asked = plan_range(0.0, None, FRAME_INTERVAL_S, cuts=True, duration_s=self.facts.duration_s)
        return video_job(self.services, self.stored, self.facts, asked, self.mode, ())

    async def read(
        self, deadline: Deadline, *, began_with: str = "", retry: bool = True, progress: Progress | None = None
    ) -> ReadDocument:
        """As `Document`."""
        work = self._job()
        async with work.join(retry=retry) as job:
            await wait_for_looks(job, deadline, progress)
            job.raise_error()
            choice, looks = work.choice(job), work.looks(job)
            notes = (*choice.notes, *reading_notes(job))
            coverage, spent = settled_parts(job), job.spent.take()
        seen = VideoReading(self.facts, looks)
        page = await asyncio.to_thread(_video_page, seen)
        return ReadDocument(
            self,
            DocumentReading("video", "px", (page,)),
            coverage,
            choice.engine,
            notes,
            spent=spent,
            unit="frame",
            video=seen,
        )


def _video_page(seen: VideoReading) -> ReadPage:
    looks = seen.looks
    tracks = sorted(text_tracks(looks, LookMoments(looks)), key=lambda track: (track.first_s, track.box_xyxy_px[1]))
    size = float(looks.width_px), float(looks.height_px)
    return ReadPage(1, "done", tuple(_video_line(track) for track in tracks), tuple(_unseen(seen)), size)


def _video_line(track: TextTrack) -> ReadLine:
    x0, y0, x1, y1 = track.box_xyxy_px
    return ReadLine(
        track.text, "ocr", (x0, y0, x1, y1), track.height_px or None, track.confidence, track.first_s, track.last_s
    )


def _unseen(seen: VideoReading) -> Iterator[Unread]:
    looks = seen.looks
    account = cover(looks)
    for span in (*account.failed, *account.unreached):
        yield Unread(span.reason or "not read", start_s=span.start_s, end_s=span.end_s)
    for look in looks.looks:
        if look.partly and not look.failed:
            yield Unread(look.partly, start_s=look.time_s, end_s=look.until_s)
        for x0, y0, x1, y1 in look.undetected_ink if look.same_as_s is None else ():
            yield Unread(
                UNREAD_INK,
                (x0, y0, x1, y1),
                start_s=look.time_s,
                end_s=look.until_s,
            )
