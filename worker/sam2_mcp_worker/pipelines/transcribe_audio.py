"""Transcribes a recording in one call: as many pieces of speech as the budget allows, the rest over the cursor.

Owns the order of work for a recording; what of it goes into which call's result is speech_delivery.py's.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sam2_mcp_worker.artifacts import Artifact
from sam2_mcp_worker.deadline import Deadline, current_deadline
from sam2_mcp_worker.engines.speech_languages import LANGUAGES, language_code
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.fanout import fan_out
from sam2_mcp_worker.jobs import JOB_LIMIT_S, Job, Progress
from sam2_mcp_worker.media.audio import SoundFacts, stretches_of
from sam2_mcp_worker.pipelines.hear_piece import HeardPiece, Listener, hear_all
from sam2_mcp_worker.pipelines.listening import Listening, piece_unit
from sam2_mcp_worker.pipelines.recording import Recording, StretchSound, describe_sound
from sam2_mcp_worker.pipelines.speech_delivery import deliver, fills_a_result, from_cursor, to_cursor
from sam2_mcp_worker.pipelines.speech_notes import engine_notes, file_notes, languages_of, loading_notes
from sam2_mcp_worker.pipelines.transcript import Became, Said, SoundSpan, Transcript, listed
from sam2_mcp_worker.pipelines.transcript_artifacts import write_transcript
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.spending import Usage
from sam2_mcp_worker.uploads import StoredFile

TOOL = "transcribe_audio"
# Raise it whenever cursors or the results that they go on from mean something else.
RESULT_VERSION = 1
# Of a result's characters, what everything but the segments and the listed spans may take; and keys and numbers of a
# listed span.
REST_CHARS = 3000
SPAN_CHARS = 60


@dataclass(frozen=True, slots=True)
class Request:
    """The arguments of one call. `language` is an ISO 639-1 code, empty to detect it; times None: all of the sound."""

    source: str
    language: str = ""
    start_s: float | None = None
    end_s: float | None = None
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class Transcription:
    """What one call delivers. `transcript` is all that is known by now, `segments` what is new in this call.

    `not_available` says why nobody can hear at all, `goes_on` that the file has sound behind its stated end. `spent` is
    by the second in which a piece begins.
    """

    file: StoredFile
    facts: SoundFacts
    transcript: Transcript
    segments: tuple[Said, ...]
    languages: tuple[str, ...]
    notes: tuple[str, ...]
    not_available: WorkerError | None
    goes_on: bool
    files: tuple[Artifact, ...]
    spent: dict[int, Usage]
    cursor: str | None


async def transcribe_audio(services: Services, request: Request, progress: Progress | None = None) -> Transcription:
    """Run or continue a transcription until the current deadline.

    Raises:
        WorkerError: the source, the range or the cursor is wrong, or the file holds no sound that can be decoded.
    """
    deadline = current_deadline()
    stored = await services.sources.resolve(request.source)
    recording = await describe_sound(services, stored)
    start_s, end_s = _range(request, recording.facts)
    numbers = stretches_of(recording.facts, start_s, end_s)
    language = _language(request.language)
    engines = [engine.identity for engine in services.transcribers]
    key = cache_key(TOOL, RESULT_VERSION, stored.sha256, start_s, end_s, language, engines)
    before = from_cursor(request.cursor, TOOL, key, numbers.stop)

    def listening_of(job: Job) -> Listening:
        listening: Listening = job.notes.setdefault("listening", Listening(recording.facts, start_s, end_s, numbers))
        return listening

    async def start(job: Job) -> None:
        await _listen(services, job, listening_of(job), recording, language)

    # A call with a cursor goes on with what the one before it reported; one without tries again what failed.
    async with services.jobs.join(key, tuple(numbers), start, retry=not request.cursor.strip()) as job:
        listening = listening_of(job)

        def room() -> int:
            return services.settings.result_max_chars - REST_CHARS - _listed_chars(listening.spans(job.coverage))

        await job.wait_telling(
            deadline, progress, lambda: fills_a_result(list(listening.units(job.coverage)), before, room())
        )
        job.raise_error()
        units = list(listening.units(job.coverage))
        delivery = deliver(units, before, room())
        heard = [unit.heard for unit in units if unit.heard is not None]
        transcript = _transcript(services, stored, listening, heard, listening.spans(job.coverage))
        return Transcription(
            stored,
            recording.facts,
            transcript,
            _inside([said for piece in delivery.pieces for said in piece.said], listening),
            languages_of(heard),
            (*file_notes(request.end_s, listening), *engine_notes(heard), *loading_notes(services, job)),
            None if services.transcribers else services.speech_missing,
            listening.goes_on,
            await write_transcript(services, transcript, key, deadline),
            job.spent.take(),
            # Without an engine nothing is won by going on: what was not come to is told as unreached.
            to_cursor(TOOL, key, delivery) if services.transcribers else None,
        )


def _language(asked: str) -> str | None:
    """The code to force, None to detect the language.

    Raises:
        WorkerError: `language_unknown`.
    """
    if not asked.strip():
        return None
    code = language_code(asked)
    if code is not None:
        return code
    close = difflib.get_close_matches(asked.strip().title(), list(LANGUAGES.values()), n=1)
    raise WorkerError(
        "language_unknown",
        f"language={asked[:40]!r} is not known",
        rule="a language is named by its code of ISO 639, such as 'ko' or 'en'",
        next_step=f"did you mean {language_code(close[0])!r}" if close else "leave language out to have it detected",
    )


def _range(request: Request, facts: SoundFacts) -> tuple[float, float]:
    """The asked part of the sound, which ends where the file says so though it was cut off before.

    Raises:
        WorkerError: `time_outside`.
    """
    ends_s = max(facts.end_s, facts.stated_end_s or facts.end_s)
    start_s = facts.begins_s if request.start_s is None else max(request.start_s, facts.begins_s)
    end_s = ends_s if request.end_s is None else min(request.end_s, ends_s)
    if round(start_s, 3) < round(end_s, 3):  # of less than a millisecond nothing would be told, not even silence
        return start_s, end_s
    asked = (
        f"{name}={value:g}"
        for name, value in (("start_s", request.start_s), ("end_s", request.end_s))
        if value is not None
    )
    raise WorkerError(
        "time_outside",
        f"there is no sound in the range {' '.join(asked)}",
        rule=f"the sound lasts from {facts.begins_s:.3f} s to {ends_s:.3f} s; start_s < end_s",
        next_step="give times of this recording in seconds",
    )


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


def _transcript(
    services: Services,
    stored: StoredFile,
    listening: Listening,
    heard: Sequence[HeardPiece],
    spans: tuple[SoundSpan, ...],
) -> Transcript:
    """All that is known by now."""
    engines = list(dict.fromkeys(piece.engine for piece in heard if piece.engine))
    first = services.transcribers[0] if services.transcribers else None
    languages = languages_of(heard)
    return Transcript(
        stored.name,
        listening.start_s,
        listening.end_s,
        ", ".join(engines) or (first.name if first else "none"),
        any(piece.low_quality for piece in heard) or (not engines and first is not None and first.quality == "low"),
        languages[0] if languages else None,
        _inside([said for piece in heard for said in piece.said], listening),
        spans,
    )


def _inside(said: Iterable[Said], listening: Listening) -> tuple[Said, ...]:
    """What was said inside the range, at least in part, in order: a piece may go on beyond it.

    Words may have no length: those at a border belong to the range that begins there.
    """
    begin_s, end_s = listening.start_s, listening.end_s
    found = (one for one in said if one.start_s < end_s and (one.end_s > begin_s or one.start_s >= begin_s))
    return tuple(sorted(found, key=lambda one: one.start_s))


def _listed_chars(spans: Sequence[SoundSpan]) -> int:
    """What the spans that are named one by one take of a result."""
    kinds: tuple[Became, ...] = ("unheard", "failed", "unreached")
    named = [span for kind in kinds for span in listed([span for span in spans if span.became == kind])]
    return sum(SPAN_CHARS + len(span.reason) for span in named)
