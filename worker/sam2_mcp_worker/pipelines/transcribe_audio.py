"""Transcribes a recording in one call: as many pieces of speech as the budget allows, the rest over the cursor.

Owns the order of work for a recording; what of it goes into which call's result is speech_delivery.py's.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from sam2_mcp_worker.artifacts import Artifact
from sam2_mcp_worker.deadline import current_deadline
from sam2_mcp_worker.engines.speech_languages import LANGUAGES, language_code
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.jobs import Progress
from sam2_mcp_worker.media.audio import SoundFacts
from sam2_mcp_worker.pipelines.recording import describe_sound
from sam2_mcp_worker.pipelines.sound_job import SoundJob, heard_pieces, said_inside
from sam2_mcp_worker.pipelines.speech_delivery import deliver, fills_a_result, from_cursor, to_cursor
from sam2_mcp_worker.pipelines.speech_notes import engine_notes, file_notes, languages_of, loading_notes
from sam2_mcp_worker.pipelines.transcript import Became, Said, SoundSpan, Transcript, listed
from sam2_mcp_worker.pipelines.transcript_artifacts import write_transcript
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.spending import Usage
from sam2_mcp_worker.uploads import StoredFile

TOOL = "transcribe_audio"
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
    listens = SoundJob(services, recording, start_s, end_s, _language(request.language))
    before = from_cursor(request.cursor, TOOL, listens.key, listens.numbers.stop)
    # A call with a cursor goes on with what the one before it reported; one without tries again what failed.
    async with listens.join(retry=not request.cursor.strip()) as job:
        listening = listens.listening(job)

        def room() -> int:
            return services.settings.result_max_chars - REST_CHARS - _listed_chars(listening.spans(job.coverage))

        await job.wait_telling(
            deadline, progress, lambda: fills_a_result(list(listening.units(job.coverage)), before, room())
        )
        job.raise_error()
        units = list(listening.units(job.coverage))
        delivery = deliver(units, before, room())
        heard = heard_pieces(listening, job)
        transcript = listens.transcript(job)
        return Transcription(
            stored,
            recording.facts,
            transcript,
            said_inside([said for piece in delivery.pieces for said in piece.said], listening),
            languages_of(heard),
            (*file_notes(request.end_s, listening), *engine_notes(heard), *loading_notes(services, job)),
            None if services.transcribers else services.speech_missing,
            listening.goes_on,
            await write_transcript(services, stored, transcript, listens.key, deadline),
            job.spent.take(),
            # Without an engine nothing is won by going on: what was not come to is told as unreached.
            to_cursor(TOOL, listens.key, delivery) if services.transcribers else None,
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


def _listed_chars(spans: Sequence[SoundSpan]) -> int:
    """What the spans that are named one by one take of a result."""
    kinds: tuple[Became, ...] = ("unheard", "failed", "unreached")
    named = [span for kind in kinds for span in listed([span for span in spans if span.became == kind])]
    return sum(SPAN_CHARS + len(span.reason) for span in named)
