"""Sound tasks of the scan child: facts, and stretches cut into pieces of speech. See audio.py for the server's side.

Keeps files open from one stretch to the next, with the laps around the border between them. What it keeps only saves
work: the same stretch comes out whether anything was kept or not.
"""

from __future__ import annotations

import hashlib
import os
import time
import wave
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media import sound_cuts
from sam2_mcp_worker.media.audio import LEVEL_S, SAMPLE_RATE_HZ
from sam2_mcp_worker.media.sound_cuts import FRAME_SAMPLES
from sam2_mcp_worker.media.sound_end import LARGEST_FRAME_BYTES, cut_off_at_s
from sam2_mcp_worker.media.sound_file import SOUND, OpenSound, open_sound
from sam2_mcp_worker.media.sound_packets import first_sound_s, timed_packets
from sam2_mcp_worker.media.sound_reader import Lap, LapReader
from sam2_mcp_worker.media.sound_stretch import Stretch, dbfs, levels_dbfs
from sam2_mcp_worker.media.sound_voice import Voice

# Looking through an hour of packets takes 1 s; where more time would be needed, the header is believed.
SCAN_S = 5.0
# An hour of packets is passed over in 1 s, but in some containers with all pictures between them: after this time other
# jobs get their turn.
PASS_S = 4.0
# Two calls at once each go on where they were; the third opens its file anew.
_FILES_KEPT = 2
_DECIMALS = 6


def sound_probe(params: dict[str, Any]) -> dict[str, Any]:
    """`{path, max_s}` -> the fields of `audio.SoundFacts`.

    Raises:
        WorkerError: no_audio_stream, sound_damaged, unsupported_sound, sound_encrypted, sound_too_long.
    """
    path = Path(params["path"])
    start_s = first_sound_s(path)
    if start_s is None:
        raise SOUND.damaged("nothing of this sound can be decoded: it is damaged or empty")
    with open_sound(path) as sound:
        facts = _facts(sound, start_s) | _ends(sound, path, start_s)
    length_s = facts["end_s"] - min(0.0, start_s)
    if length_s > params["max_s"]:
        raise WorkerError(
            "sound_too_long",
            f"the sound takes {length_s:.0f} s",
            rule=f"at most {params['max_s']:.0f} s",
            next_step="Cut it into parts",
        )
    return facts


def sound_stretch(params: dict[str, Any]) -> dict[str, Any]:
    """One stretch of the file.

    Args:
        params: `path`, `begins_s` and `end_s` (of all stretches), `number` (of this one), `count`, `stretch_s`,
            `edge_s`, `out_dir`.

    Returns:
        `start_s`, `end_s`, `pieces`, `silent`, `damaged`, `goes_on`: the fields of `audio.SoundStretch`. Or
        `passing`, when the packets before it are so many that others have to get their turn: ask again.
    """
    with _scan_of(params) as scan:
        if not scan.reach(params["number"]):
            return {"passing": True}
        stretch = scan.stretch(params["number"])
    pieces = [_keep(stretch, span, params, number) for number, span in enumerate(stretch.pieces())]
    return {
        "start_s": _seconds(stretch.first),
        "end_s": _seconds(stretch.end),
        "pieces": pieces,
        "silent": [
            {"start_s": _seconds(start), "end_s": _seconds(end), "loudness_dbfs": stretch.loudness(start, end)}
            for start, end in stretch.silent()
        ],
        "damaged": [{"start_s": _seconds(a), "end_s": _seconds(b), "reason": why} for a, b, why in stretch.damaged],
        "goes_on": stretch.goes_on,
    }


TASKS = {"sound_probe": sound_probe, "sound_stretch": sound_stretch}


class _Scan:
    """An open file, and the laps between which the last edge lies."""

    def __init__(self, params: dict[str, Any]) -> None:
        self._files = ExitStack()
        path = Path(params["path"])
        sound = self._files.enter_context(open_sound(path))
        first, end = _samples(params["begins_s"]), _samples(params["end_s"])
        self._count: int = params["count"]
        self._edge_frames = _samples(params["edge_s"]) // FRAME_SAMPLES
        self._reader = LapReader(sound, path, first, _samples(params["stretch_s"]), self._count, end)
        self._laps: dict[int, tuple[Lap, Voice]] = {}

    def close(self) -> None:
        self._files.close()

    def can_reach(self, number: int) -> bool:
        """Whether lap `number` is at hand or lies ahead."""
        return number in self._laps or number >= self._reader.next

    def reach(self, number: int) -> bool:
        """Go as far as a lap, for some seconds at most; whether it is reached."""
        return number in self._laps or self._reader.skip_to(number, time.monotonic() + PASS_S)

    def stretch(self, number: int) -> Stretch:
        """What lies between the edges in lap `number` and in the next one."""
        lap, voice = self._lap(number)
        start = self._edge(number)
        samples, speech, damaged = lap.samples, voice.probabilities(), lap.damaged
        if number + 1 < self._count:
            after, after_voice = self._lap(number + 1)
            edge = self._edge(number + 1)
            samples = np.concatenate([samples, after.samples[: edge * FRAME_SAMPLES]])
            speech = speech + after_voice.probabilities(edge)
            damaged = damaged + after.damaged
        skipped = start * FRAME_SAMPLES
        stretch = Stretch(lap.first + skipped, samples[skipped:], speech[start:], damaged, lap.begins)
        stretch.goes_on = lap.goes_on
        return stretch

    def _lap(self, number: int) -> tuple[Lap, Voice]:
        if number not in self._laps:
            lap = self._reader.read()
            self._laps = {known: kept for known, kept in self._laps.items() if known == number - 1}
            self._laps[number] = (lap, Voice(lap.samples, lap.before))
        return self._laps[number]

    def _edge(self, number: int) -> int:
        """The frame of a lap at which its stretch begins."""
        if number == 0:
            return 0
        lap, voice = self._lap(number)
        levels = levels_dbfs(lap.samples[: self._edge_frames * FRAME_SAMPLES], FRAME_SAMPLES)
        return sound_cuts.best_pause(voice.probabilities(self._edge_frames), levels)


_scans: OrderedDict[tuple[Any, ...], _Scan] = OrderedDict()


@contextmanager
def _scan_of(params: dict[str, Any]) -> Iterator[_Scan]:
    """The scan of this file that is kept, if it has not gone past the wanted stretch, else a new one; kept if all
    went well."""
    stat = Path(params["path"]).stat()
    names = ("path", "begins_s", "end_s", "count", "stretch_s", "edge_s")
    key = (stat.st_ino, stat.st_size, stat.st_mtime_ns, *(params[name] for name in names))
    scan = _scans.pop(key, None)
    if scan is not None and not scan.can_reach(params["number"]):
        scan.close()
        scan = None
    while scan is None and len(_scans) >= _FILES_KEPT:
        _scans.popitem(last=False)[1].close()
    scan = scan or _Scan(params)
    try:
        yield scan
    except BaseException:
        scan.close()
        raise
    _scans[key] = scan


def close_scans() -> None:
    """Close all files that are kept."""
    while _scans:
        _scans.popitem()[1].close()


def _keep(stretch: Stretch, span: tuple[int, int], params: dict[str, Any], number: int) -> dict[str, Any]:
    samples = stretch.samples(*span)
    name = f"piece-{params['number']:05d}-{number:03d}.wav"
    path = Path(params["out_dir"]) / name
    part = path.with_name(f"{name}.{os.getpid()}.part")
    with wave.open(str(part), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(SAMPLE_RATE_HZ)
        out.writeframes(samples.astype("<i2").tobytes())
    part.replace(path)
    return {
        "start_s": _seconds(span[0]),
        "duration_s": _seconds(span[1] - span[0]),
        "name": name,
        "loudness_dbfs": dbfs(samples),
        "levels_dbfs": levels_dbfs(samples, _samples(LEVEL_S)),
        "sha256": hashlib.sha256(samples.astype("<i2").tobytes()).hexdigest(),
    }


def _samples(seconds: float) -> int:
    return round(seconds * SAMPLE_RATE_HZ)


def _seconds(samples: int) -> float:
    return round(samples / SAMPLE_RATE_HZ, _DECIMALS)


def _facts(sound: OpenSound, start_s: float) -> dict[str, Any]:
    context, container = sound.stream.codec_context, sound.container
    language = sound.stream.metadata.get("language", "und")
    return {
        "start_s": round(start_s, _DECIMALS),
        "codec": context.codec.canonical_name,
        "container": sound.container_name,
        "channels": context.channels,
        "sample_rate_hz": context.sample_rate,
        "language": None if language == "und" else language,
        "track": sound.number,
        "tracks": len(container.streams.audio),
        "has_video": sound.has_video,
    }


def _ends(sound: OpenSound, path: Path, start_s: float) -> dict[str, Any]:
    """Where the sound ends, by its packets or, where they are too many to be looked through, by the header."""
    stops_s = time.monotonic() + SCAN_S
    end_s, sound_bytes, first_byte = start_s, 0, None
    for timed in timed_packets(sound):
        end_s = max(end_s, timed.end_s)
        sound_bytes += timed.packet.size if timed.packet.size <= LARGEST_FRAME_BYTES else 0
        first_byte = timed.packet.pos if first_byte is None else first_byte
        if time.monotonic() > stops_s:
            return {"end_s": round(max(end_s, sound.stated_end_s or start_s), _DECIMALS), "stated_end_s": None}
    claimed_s = cut_off_at_s(sound, path, end_s, sound_bytes, first_byte or 0)
    return {"end_s": round(end_s, _DECIMALS), "stated_end_s": None if claimed_s is None else round(claimed_s, 3)}
