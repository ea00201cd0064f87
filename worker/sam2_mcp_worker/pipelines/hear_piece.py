"""One piece of speech heard by the first engine that can; what was heard once is not asked again.

Owns the order of engines and what is said of the one that stood in. Knows nothing of files, stretches or results.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sam2_mcp_worker.checks.spoken import Spoken, speech_rate
from sam2_mcp_worker.deadline import Deadline, current_deadline
from sam2_mcp_worker.engines.speech_ports import AudioPiece, Hearing, SpokenSegment, Transcriber, Unheard
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.jobs import JOB_LIMIT_S
from sam2_mcp_worker.media.audio import LEVEL_S, SoundPiece
from sam2_mcp_worker.pipelines.transcript import Said, SoundSpan
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.spending import SpendBook, spend_scope

# Raise it whenever what is kept of a piece means something else.
HEARING_VERSION = 1
# Where nothing goes on in the background, an answer has to be there so long before the call's end.
SETTLE_S = 0.5
# A local engine hears one piece after the other, on a busy machine several times slower than alone; what it has begun
# is worth waiting for, since a further try would take as long.
LOCAL_PATIENCE = 4.0
# What a level of digital silence is taken for; 16 bits tell nothing below.
FLOOR_DBFS = -96.0


@dataclass(frozen=True, slots=True)
class HeardPiece:
    """What became of a piece: `said` and `spans` in seconds of the file, the spans dividing all of it.

    `stood_in` says why another engine than the first heard it, `again` that a later attempt may give more. `timed` is
    False where the engine told no times within the piece. One that nobody could hear has a single span with the reason.
    """

    said: tuple[Said, ...]
    spans: tuple[SoundSpan, ...]
    engine: str = ""
    low_quality: bool = False
    language: str | None = None
    stood_in: str = ""
    again: bool = False
    timed: bool = True

    @property
    def failed(self) -> bool:
        """Whether all engines failed on it."""
        return any(span.became == "failed" for span in self.spans)


class Listener:
    """Hears pieces for one job."""

    def __init__(self, services: Services, language: str | None, job: str) -> None:
        self._services = services
        self._language = language
        self._job = job

    async def hear(self, piece: SoundPiece, sound: Callable[[], Awaitable[Path]]) -> HeardPiece:
        """What is said in the piece, by the first engine that is there and can; `sound` brings its WAV when needed.

        Never raises a WorkerError: that nobody could hear it is a result.
        """
        trouble: WorkerError | None = None
        for engine in self._services.transcribers:
            try:
                hearing = await self._hear_by(engine, piece, sound)
            except WorkerError as error:
                trouble = trouble or error
            else:
                return _heard(piece, engine, hearing, stood_in=trouble.reason if trouble else "")
        if trouble is not None:
            return HeardPiece((), (_whole(piece, "failed", trouble.reason),), again=True)
        return HeardPiece((), (_whole(piece, "unheard", "no speech engine is set up"),))

    async def _hear_by(self, engine: Transcriber, piece: SoundPiece, sound: Callable[[], Awaitable[Path]]) -> Hearing:
        """Raises what the engine has against hearing now, though not where it heard this before."""

        async def compute() -> dict[str, Any]:
            if (trouble := engine.trouble) is not None:
                raise trouble
            return asdict(await self._ask(engine, AudioPiece(await sound(), piece.duration_s)))

        key = cache_key("hearing", HEARING_VERSION, piece.sha256, engine.identity, self._language)
        found = await self._services.cache.get_or_compute(key, compute, fresh=lambda value: not value["again"])
        return Hearing(
            **found
            | {
                "segments": tuple(SpokenSegment(**fields) for fields in found["segments"]),
                "unheard": tuple(Unheard(**fields) for fields in found["unheard"]),
            }
        )

    async def _ask(self, engine: Transcriber, piece: AudioPiece) -> Hearing:
        turns = self._services.hearing_turns[engine.identity]
        try:
            async with turns.slot(self._job, self._turn_deadline(), again=False):
                deadline = self._deadline(1.0 if engine.costs_money else LOCAL_PATIENCE)
                return await engine.transcribe(piece, language=self._language, job=self._job, deadline=deadline)
        except TimeoutError as error:
            raise WorkerError("deadline", "no turn came before the deadline", next_step="call again") from error

    def _turn_deadline(self) -> Deadline:
        """Until when to wait for a turn: as long as the job lives, where it may go on in the background."""
        return Deadline.after(JOB_LIMIT_S) if self._services.settings.background_limit_s > 0 else self._deadline()

    def _deadline(self, patience: float = 1.0) -> Deadline:
        """When a question that is asked now must be answered."""
        settings = self._services.settings
        limit_s = settings.speech_piece_limit_s * patience
        if settings.background_limit_s > 0:
            return Deadline.after(limit_s)
        return Deadline.after(min(limit_s, current_deadline().remaining_s() - SETTLE_S))


def _heard(piece: SoundPiece, engine: Transcriber, hearing: Hearing, *, stood_in: str) -> HeardPiece:
    timed = hearing.times == "segments"
    return HeardPiece(
        tuple(_said(piece, segment, timed=timed) for segment in hearing.segments if segment.text.strip()),
        _spans(piece, hearing.unheard),
        engine.name,
        engine.quality == "low",
        hearing.language,
        stood_in,
        bool(hearing.again or stood_in),
        timed,
    )


def _said(piece: SoundPiece, segment: SpokenSegment, *, timed: bool) -> Said:
    text = " ".join(segment.text.split())
    rate = speech_rate([Spoken(segment.start_s, segment.end_s, text)]) if timed else None
    return Said(
        piece.start_s + segment.start_s,
        piece.start_s + segment.end_s,
        text,
        segment.confidence,
        syllables_per_s=round(rate, 1) if rate else None,  # 0: nobody counts the syllables of this script
        loudness_dbfs=loudness_dbfs(piece.levels_dbfs, segment.start_s, segment.end_s),
    )


def loudness_dbfs(levels_dbfs: tuple[float, ...], start_s: float, end_s: float) -> float | None:
    """The mean level (RMS) from `start_s` to `end_s` of a piece, from the levels of its tenths of a second."""
    first = max(0, math.floor(start_s / LEVEL_S))
    levels = levels_dbfs[first : max(first + 1, math.ceil(end_s / LEVEL_S))]
    if not levels:
        return None
    power = sum(10 ** (max(level, FLOOR_DBFS) / 10) for level in levels) / len(levels)
    return round(10 * math.log10(power), 1)


def _spans(piece: SoundPiece, unheard: tuple[Unheard, ...]) -> tuple[SoundSpan, ...]:
    """The piece divided into what was heard and what was not; what an engine says beyond its ends is cut off."""
    spans, done_s = [], 0.0
    for one in sorted(unheard, key=lambda span: span.start_s):
        start_s, end_s = max(done_s, one.start_s), min(one.end_s, piece.duration_s)
        if end_s <= start_s:
            continue
        if start_s > done_s:
            spans.append(SoundSpan(piece.start_s + done_s, piece.start_s + start_s, "heard"))
        spans.append(SoundSpan(piece.start_s + start_s, piece.start_s + end_s, "unheard", one.reason))
        done_s = end_s
    if done_s < piece.duration_s:
        spans.append(SoundSpan(piece.start_s + done_s, piece.start_s + piece.duration_s, "heard"))
    return tuple(spans)


def _whole(piece: SoundPiece, became: Any, reason: str) -> SoundSpan:
    return SoundSpan(piece.start_s, piece.start_s + piece.duration_s, became, reason)


async def hear_all(
    listener: Listener,
    pieces: dict[int, SoundPiece],
    sound: Callable[[int], Awaitable[Path]],
    done: Callable[[int, HeardPiece], None],
    book: SpendBook,
) -> None:
    """Hear pieces beside one another; `done` is told each as it comes, costs are booked on the second it begins in."""

    async def one(index: int, piece: SoundPiece) -> None:
        with spend_scope(book, math.floor(piece.start_s)):
            done(index, await listener.hear(piece, lambda: sound(index)))

    async with asyncio.TaskGroup() as group:
        for index, piece in pieces.items():
            group.create_task(one(index, piece))
