"""The sound of a file heard under one job, for every tool that listens: which range, which language, what so far.

Owns the way from a recording to a transcript that grows. What of it goes into which call's result is the tools' own
matter.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.fanout import fan_out
from sam2_mcp_worker.jobs import JOB_LIMIT_S, Job, JobVisit
from sam2_mcp_worker.media.audio import stretches_of
from sam2_mcp_worker.pipelines.hear_piece import HeardPiece, Listener, hear_all
from sam2_mcp_worker.pipelines.listening import Listening, piece_unit
from sam2_mcp_worker.pipelines.recording import Recording, StretchSound
from sam2_mcp_worker.pipelines.speech_notes import languages_of
from sam2_mcp_worker.pipelines.transcript import Said, Transcript
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services

# Raise it whenever cursors or the results that they go on from mean something else.
RESULT_VERSION = 1


@dataclass(frozen=True, slots=True)
class SoundJob:
    """One request for a range of one recording; `language` None has it detected. Stretches are numbered from 0."""

    services: Services
    recording: Recording
    start_s: float
    end_s: float
    language: str | None

    @property
    def numbers(self) -> range:
        """Those of the stretches that hold the range."""
        return stretches_of(self.recording.facts, self.start_s, self.end_s)

    @property
    def key(self) -> str:
        """What identifies it in cursors."""
        engines = [engine.identity for engine in self.services.transcribers]
        sha256 = self.recording.stored.sha256
        return cache_key("transcribe_audio", RESULT_VERSION, sha256, self.start_s, self.end_s, self.language, engines)

    def join(self, *, retry: bool) -> JobVisit:
        """Take part in the listening. With `retry` what failed, or may be heard better now, is heard again."""

        async def start(job: Job) -> None:
            await _listen(self.services, job, self.listening(job), self.recording, self.language)

        return self.services.jobs.join(self.key, tuple(self.numbers), start, retry=retry)

    def listening(self, job: Job) -> Listening:
        """What is known by now."""
        begun = Listening(self.recording.facts, self.start_s, self.end_s, self.numbers)
        listening: Listening = job.notes.setdefault("listening", begun)
        return listening

    def transcript(self, job: Job) -> Transcript:
        """All that is known by now, as people read it."""
        listening, services = self.listening(job), self.services
        heard = heard_pieces(listening, job)
        engines = list(dict.fromkeys(piece.engine for piece in heard if piece.engine))
        first = services.transcribers[0] if services.transcribers else None
        languages = languages_of(heard)
        return Transcript(
            self.recording.stored.name,
            self.start_s,
            self.end_s,
            ", ".join(engines) or (first.name if first else "none"),
            any(piece.low_quality for piece in heard) or (not engines and first is not None and first.quality == "low"),
            languages[0] if languages else None,
            said_inside([said for piece in heard for said in piece.said], listening),
            listening.spans(job.coverage),
        )


def heard_pieces(listening: Listening, job: Job) -> list[HeardPiece]:
    """Every piece that is settled, in order."""
    return [unit.heard for unit in listening.units(job.coverage) if unit.heard is not None]


async def _listen(
    services: Services, job: Job, listening: Listening, recording: Recording, language: str | None
) -> None:
    listener = Listener(services, language, job.key)

    async def work(number: int) -> None:
        with services.work_directory("sound") as folder:
            sound = StretchSound(services, recording, number, folder, job.key)
            listening.stretches[number] = await sound.cuts()

            def done(index: int, heard: HeardPiece) -> None:
                listening.heard[piece_unit(number, index)] = heard
                job.again |= heard.again

            await hear_all(listener, listening.pieces(number), sound.piece, done, job.spent)

    # One stretch more than pieces, so that the next is decoded while all requests are under way.
    limit = 1 + max((engine.pieces_in_flight for engine in services.transcribers), default=1)
    await fan_out(job.coverage, work, deadline=Deadline.after(JOB_LIMIT_S), limit=limit)


def said_inside(said: Iterable[Said], listening: Listening) -> tuple[Said, ...]:
    """What was said inside the range, at least in part, in order: a piece may go on beyond it.

    Words may have no length: those at a border belong to the range that begins there.
    """
    begin_s, end_s = listening.start_s, listening.end_s
    found = (one for one in said if one.start_s < end_s and (one.end_s > begin_s or one.start_s >= begin_s))
    return tuple(sorted(found, key=lambda one: one.start_s))
