"""Sound as the server sees it: found, decoded and cut in the scan child. Nothing here parses a byte of it.

One clock: seconds since the first frame of the picture track, as for frames; in a file without pictures since the
beginning of the sound. Sound that begins before the first frame has negative times.

A file is scanned in stretches on a fixed grid, like the pages of a document. Each really begins and ends at a pause
near its place in the grid, and where is a property of the file alone: stretch k ends exactly where k + 1 begins,
whichever is scanned first, and scanning one again gives the same samples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sam2_mcp_worker.execution.port import TaskRunner

# Part of every cache key: raise it when the same file gives other stretches or pieces.
SOUND_VERSION = 2
# Voice activity costs 43 ms of processor time for a second of sound: a stretch takes the one scan child 3 s, after
# which other jobs get their turn.
STRETCH_S = 60.0
# How far behind its place in the grid a stretch may begin, in search of a pause.
EDGE_S = 20.0
SAMPLE_RATE_HZ = 16_000
# Containers without time stamps (AVI counts bytes): time is counted from what was found.
UNTIMED = ("mp3", "aac", "ac3", "eac3", "amr", "dts", "avi")
# Of each of these a piece tells the level, so that the loudness of a part of it is known without the samples.
LEVEL_S = 0.1


@dataclass(frozen=True, slots=True)
class SoundFacts:
    """What the sound of a file is.

    `start_s` and `end_s` are where the sound begins and ends. `track` (from 1) is the one that is listened to of
    `tracks`; `language` what the file says of it (ISO 639, None if nothing). `stated_end_s` is set when the file claims
    to be longer than it is: it was cut off.
    """

    start_s: float
    end_s: float
    codec: str
    container: str
    channels: int
    sample_rate_hz: int
    language: str | None
    track: int
    tracks: int
    has_video: bool
    stated_end_s: float | None

    @property
    def begins_s(self) -> float:
        """Where scanning begins: at the first frame, or with the sound if that is earlier."""
        return min(0.0, self.start_s)


@dataclass(frozen=True, slots=True)
class SoundPiece:
    """Speech, with a little quiet around it: a 16 kHz mono WAV (16 bit) of at most 30 s.

    `loudness_dbfs` is its mean level (RMS, 0 = full scale of a square wave), `levels_dbfs` that of each `LEVEL_S`.
    `sha256` is that of its samples.
    """

    start_s: float
    duration_s: float
    path: Path
    loudness_dbfs: float
    levels_dbfs: tuple[float, ...]
    sha256: str


@dataclass(frozen=True, slots=True)
class SilentSpan:
    """Nobody speaks here: quiet, noise or music, `loudness_dbfs` tells how loud. None: the track has no sound here."""

    start_s: float
    end_s: float
    loudness_dbfs: float | None


@dataclass(frozen=True, slots=True)
class DamagedSpan:
    """What cannot be decoded, and why. Nothing may be concluded about it."""

    start_s: float
    end_s: float
    reason: str


@dataclass(frozen=True, slots=True)
class SoundStretch:
    """What became of `start_s` to `end_s`: pieces, silent and damaged spans are all of it, without overlap.

    `goes_on` is only true of the last one: more sound lies behind the end that was expected, and nobody listened to it.
    """

    number: int
    start_s: float
    end_s: float
    pieces: tuple[SoundPiece, ...]
    silent: tuple[SilentSpan, ...]
    damaged: tuple[DamagedSpan, ...]
    goes_on: bool = False


def stretch_count(facts: SoundFacts) -> int:
    """How many stretches the file has; a remainder of no more than EDGE_S belongs to the last one."""
    return max(1, math.ceil((facts.end_s - facts.begins_s - EDGE_S) / STRETCH_S))


def stretches_of(facts: SoundFacts, start_s: float, end_s: float) -> range:
    """Numbers of the stretches that may hold some of `start_s` to `end_s`; at least one."""
    count = stretch_count(facts)
    first = math.floor((start_s - EDGE_S - facts.begins_s) / STRETCH_S)
    last = math.ceil((end_s - facts.begins_s) / STRETCH_S) - 1
    first = min(max(first, 0), count - 1)
    return range(first, min(max(last, first), count - 1) + 1)


async def probe_sound(scanner: TaskRunner, path: Path, *, max_s: float, timeout_s: float, job: str) -> SoundFacts:
    """Find the best sound track, decode its beginning and look through its packets.

    Raises:
        WorkerError: no_audio_stream, sound_damaged (also an empty file), unsupported_sound, sound_encrypted,
            sound_too_long, or one of the runner's own.
    """
    params = {"path": str(path), "max_s": max_s}
    return SoundFacts(**await scanner.run("sound_probe", params, timeout_s=timeout_s, job=job))


async def scan_sound(
    scanner: TaskRunner, path: Path, facts: SoundFacts, number: int, out_dir: Path, *, timeout_s: float, job: str
) -> SoundStretch:
    """Decode one stretch, find who speaks when, and cut what is spoken into pieces.

    Going on with the next number is cheapest; any other is found by looking through the packets before it. The pieces
    lie in `out_dir`, which is the caller's, under names that no other stretch uses.

    Raises:
        WorkerError: the file cannot be opened any more, or one of the runner's own. Damage is no error: it is told.
    """
    params = stretch_params(path, facts, number, out_dir)
    while "passing" in (result := await scanner.run("sound_stretch", params, timeout_s=timeout_s, job=job)):
        pass  # the child goes on where it was, after others had their turn
    return _stretch(number, out_dir, result)


def stretch_params(path: Path, facts: SoundFacts, number: int, out_dir: Path) -> dict[str, Any]:
    """What the task is told."""
    return {
        "path": str(path),
        "begins_s": facts.begins_s,
        "end_s": facts.end_s,
        "number": number,
        "count": stretch_count(facts),
        "stretch_s": STRETCH_S,
        "edge_s": EDGE_S,
        "out_dir": str(out_dir),
    }


def _stretch(number: int, out_dir: Path, result: dict[str, Any]) -> SoundStretch:
    return SoundStretch(
        number,
        result["start_s"],
        result["end_s"],
        tuple(_piece(out_dir, fields) for fields in result["pieces"]),
        tuple(SilentSpan(**fields) for fields in result["silent"]),
        tuple(DamagedSpan(**fields) for fields in result["damaged"]),
        result["goes_on"],
    )


def _piece(out_dir: Path, fields: dict[str, Any]) -> SoundPiece:
    return SoundPiece(
        fields["start_s"],
        fields["duration_s"],
        out_dir / fields["name"],
        fields["loudness_dbfs"],
        tuple(fields["levels_dbfs"]),
        fields["sha256"],
    )
