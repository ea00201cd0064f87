"""What there is to say of a transcription beside its words: of the file, of who heard it, of its languages."""

from __future__ import annotations

from collections.abc import Sequence

from sam2_mcp_worker.jobs import Job
from sam2_mcp_worker.media.audio import UNTIMED
from sam2_mcp_worker.pipelines.frame_plan import TIME_TOLERANCE_S
from sam2_mcp_worker.pipelines.hear_piece import HeardPiece
from sam2_mcp_worker.pipelines.listening import Listening
from sam2_mcp_worker.services import Services


def languages_of(heard: Sequence[HeardPiece]) -> tuple[str, ...]:
    """Those that were spoken, the longest heard first."""
    lasting: dict[str, float] = {}
    for piece in heard:
        if piece.language is not None:
            spoken_s = sum(said.end_s - said.start_s for said in piece.said)
            lasting[piece.language] = lasting.get(piece.language, 0.0) + spoken_s
    return tuple(sorted(lasting, key=lambda language: (-lasting[language], language)))


def engine_notes(heard: Sequence[HeardPiece]) -> tuple[str, ...]:
    """Who heard in place of the first engine, and that times are those of whole pieces."""
    stood_in: dict[tuple[str, str], list[HeardPiece]] = {}
    for piece in heard:
        if piece.stood_in:
            stood_in.setdefault((piece.engine, piece.stood_in), []).append(piece)
    notes = [
        f"{engine} heard {len(pieces)} of the pieces from {pieces[0].spans[0].start_s:.1f} s to "
        f"{pieces[-1].spans[-1].end_s:.1f} s in place of the first engine ({reason})"
        for (engine, reason), pieces in stood_in.items()
    ]
    if not all(piece.timed for piece in heard):
        notes.append("the endpoint tells no times within a piece: such a segment spans the whole piece")
    return tuple(notes)


def loading_notes(services: Services, job: Job) -> tuple[str, ...]:
    """Why a first call may have heard nothing yet."""
    pool = services.speech_pool
    loading = pool is not None and not pool.stats().ready and not job.coverage.complete
    return ("local Whisper is still being loaded",) if loading else ()


def file_notes(asked_end_s: float | None, listening: Listening) -> tuple[str, ...]:
    """What the file is otherwise than it says, or than was asked for."""
    facts, notes = listening.facts, []
    if facts.tracks > 1:
        notes.append(f"the file has {facts.tracks} sound tracks; track {facts.track} was listened to")
    if facts.stated_end_s is not None:
        notes.append(
            f"the file says that its sound lasts until {facts.stated_end_s:.1f} s, but it ends at {facts.end_s:.1f} s: "
            "it was cut off"
            + (", or damaged before, and then the times behind the damage are off" * (facts.container in UNTIMED))
        )
    elif listening.goes_on:
        notes.append(f"sound goes on behind {facts.end_s:.1f} s, where the file says that it ends: that was not heard")
    elif asked_end_s is not None and asked_end_s > facts.end_s + TIME_TOLERANCE_S:
        notes.append(f"the sound ends at {facts.end_s:.3f} s, before end_s")
    return tuple(notes)
