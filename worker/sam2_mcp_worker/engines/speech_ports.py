"""What a pipeline may ask of an engine that hears; see ports.py for those that see."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.errors import WorkerError


@dataclass(frozen=True, slots=True)
class AudioPiece:
    """A stretch of sound with speech in it, cut at silence: a 16 kHz mono WAV (16 bit). Times inside start at 0."""

    path: Path
    duration_s: float


@dataclass(frozen=True, slots=True)
class SpokenSegment:
    """What was said, and when, in seconds since the beginning of the piece; `confidence` 0-1 where the engine tells."""

    start_s: float
    end_s: float
    text: str
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Unheard:
    """A span of a piece whose words were thrown away or never came, and why. Nothing may be concluded about it."""

    start_s: float
    end_s: float
    reason: str


@dataclass(frozen=True, slots=True)
class Hearing:
    """What an engine heard in a piece. `language` is the one forced or detected (ISO 639-1), None if it tells none.

    `again` says why another attempt may give more, as in `TileReading`. `times` is `piece` where the engine tells no
    times, so that the one segment spans the piece.
    """

    segments: tuple[SpokenSegment, ...]
    unheard: tuple[Unheard, ...] = ()
    language: str | None = None
    again: str = ""
    times: Literal["segments", "piece"] = "segments"


class Transcriber(Protocol):
    """Turns speech into text with times."""

    @property
    def name(self) -> str:
        """The engine for people, e.g. "whisper base (local)"."""
        ...

    @property
    def identity(self) -> str:
        """Engine, model, version: part of every cache key."""
        ...

    @property
    def quality(self) -> Literal["provider", "low"]:
        """`low`: good for finding places, not for verdicts about words (reference/vision.md 5)."""
        ...

    @property
    def costs_money(self) -> bool:
        """Whether each piece is paid for, and sound leaves this machine."""
        ...

    @property
    def where(self) -> str:
        """The host that sound is sent to; empty for a local engine."""
        ...

    @property
    def pieces_in_flight(self) -> int:
        """How many pieces may be under way at once."""
        ...

    @property
    def trouble(self) -> WorkerError | None:
        """Why asking is useless now, None when it is not."""
        ...

    def status(self) -> dict[str, Any]:
        """What get_status tells. Reads no disk, asks nobody."""
        ...

    async def start(self) -> None:
        """Before the first call; does not wait for the network."""
        ...

    async def close(self) -> None:
        """After the last."""
        ...

    async def transcribe(self, piece: AudioPiece, *, language: str | None, job: str, deadline: Deadline) -> Hearing:
        """The words of one piece, with retries that fit before the deadline. Costs are told to `spending.spend`.

        Args:
            language: ISO 639-1 code to force; None lets the engine detect it.

        Raises:
            WorkerError: refused, overloaded, cap reached, unreachable, crashed, no usable answer.
        """
        ...
