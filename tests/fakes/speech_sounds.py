"""English speech by espeak-ng whose words and times are known, between silence, noise and tones.

sound = join(said("insurance covers accidents"), silence(3), noise(2))      # int16 at 16 kHz, and sound.spoken
write_sound(tmp_path / "a.mp3", sound)                                      # any container and codec of libav
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import av
import espeakng_loader
import numpy as np
from av.audio.stream import AudioStream
from numpy.typing import NDArray

Samples = NDArray[np.int16]
RATE_HZ = 16_000

# Of speak_lib.h.
_SYNCHRONOUS, _UTF8, _SPEED = 2, 1, 1
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)
# 40 words a minute less than usual: what a recogniser that is not to be tested itself gets right.
_WORDS_PER_MINUTE = 135


@dataclass(frozen=True, slots=True)
class Spoken:
    """Words, and from when to when they sound."""

    start_s: float
    end_s: float
    text: str


@dataclass(frozen=True, slots=True)
class Sound:
    """Samples of 16 bit at 16 kHz, and what is spoken in them."""

    samples: Samples
    spoken: tuple[Spoken, ...] = ()

    @property
    def length_s(self) -> float:
        """How long it lasts."""
        return len(self.samples) / RATE_HZ


class _Espeak:
    """The library, of which a process can hold only one."""

    def __init__(self) -> None:
        self._lib = ctypes.CDLL(espeakng_loader.get_library_path())
        self._lib.espeak_Synth.argtypes = (
            *(ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint, ctypes.c_int, ctypes.c_uint, ctypes.c_uint),
            *(ctypes.c_void_p, ctypes.c_void_p),
        )
        data = str(espeakng_loader.get_data_path()).encode()
        self._rate_hz = self._lib.espeak_Initialize(_SYNCHRONOUS, 0, data, 0)
        self._lib.espeak_SetParameter(_SPEED, _WORDS_PER_MINUTE, 0)
        self._parts: list[Samples] = []
        self._callback = _CALLBACK(self._receive)  # kept: the library does not
        self._lib.espeak_SetSynthCallback(self._callback)

    def _receive(self, wave: ctypes._Pointer[ctypes.c_short], count: int, events: int | None) -> int:
        if wave and count:
            self._parts.append(np.ctypeslib.as_array(wave, (count,)).copy())
        return 0

    def say(self, text: str, voice: str) -> Samples:
        """The samples at RATE_HZ, without the quiet before and behind."""
        self._parts = []
        self._lib.espeak_SetVoiceByName(voice.encode())
        raw = text.encode()
        self._lib.espeak_Synth(raw, len(raw) + 1, 0, 0, 0, _UTF8, None, None)
        whole = np.concatenate(self._parts)
        loud = np.flatnonzero(np.abs(whole.astype(np.int32)) > 200)
        return _at_rate(whole[loud[0] : loud[-1] + 1], self._rate_hz)


_espeak = cache(_Espeak)
# Two threads in the library at once end the process.
_one_at_a_time = threading.Lock()


def said(text: str, *, voice: str = "en-us") -> Sound:
    """The text, spoken without quiet around it."""
    with _one_at_a_time:
        return _said(text, voice)


@cache
def _said(text: str, voice: str) -> Sound:
    samples = _espeak().say(text, voice)
    return Sound(samples, (Spoken(0.0, len(samples) / RATE_HZ, text),))


def silence(length_s: float) -> Sound:
    """Nothing at all."""
    return Sound(np.zeros(round(length_s * RATE_HZ), np.int16))


def noise(length_s: float, *, level_dbfs: float = -30.0, seed: int = 1) -> Sound:
    """White noise of that RMS level."""
    length = round(length_s * RATE_HZ)
    wave = np.random.default_rng(seed).standard_normal(length) * 10 ** (level_dbfs / 20) * 32768
    return Sound(np.clip(wave, -32768, 32767).astype(np.int16))


def music(length_s: float, *, level: float = 0.2) -> Sound:
    """Chords of plucked strings, four a bar, with a bass drum."""
    beat = RATE_HZ // 2
    wave = np.zeros(round(length_s * RATE_HZ) + beat)
    at = np.arange(beat) / RATE_HZ
    chords = ((220.0, 277.2, 329.6), (246.9, 311.1, 370.0), (196.0, 246.9, 293.7), (174.6, 220.0, 261.6))
    for number in range(len(wave) // beat):
        tones = [np.sin(2 * np.pi * pitch * k * at) / k for pitch in chords[number // 4 % 4] for k in (1, 2, 3)]
        drum = np.sin(2 * np.pi * 55 * at) * np.exp(-at * 12)
        wave[number * beat : (number + 1) * beat] = np.sum(tones, axis=0) * np.exp(-at * 3) / 6 + drum
    wave = wave[: round(length_s * RATE_HZ)]
    return Sound((wave / max(1e-9, float(np.abs(wave).max())) * level * 32767).astype(np.int16))


def join(*sounds: Sound) -> Sound:
    """One after the other, with the times of what is spoken."""
    spoken: list[Spoken] = []
    at_s = 0.0
    for sound in sounds:
        spoken += [Spoken(s.start_s + at_s, s.end_s + at_s, s.text) for s in sound.spoken]
        at_s += sound.length_s
    return Sound(np.concatenate([sound.samples for sound in sounds]), tuple(spoken))


def mix(sound: Sound, behind: Sound) -> Sound:
    """Both at once, as long as the first."""
    added = sound.samples.astype(np.int32) + np.resize(behind.samples, len(sound.samples))
    return Sound(np.clip(added, -32768, 32767).astype(np.int16), sound.spoken)


def write_sound(
    path: Path,
    sound: Sound,
    *,
    codec: str = "pcm_s16le",
    rate_hz: int = RATE_HZ,
    container: str | None = None,
    channels: Sequence[float] = (1.0,),
    begins_s: float = 0.0,
) -> Path:
    """Encode it.

    `channels` are the factors with which it goes into each of one or two channels; `begins_s` is the time stamp of its
    first sample.
    """
    with av.open(path, "w", format=container) as out:
        layout = "mono" if len(channels) == 1 else "stereo"
        stream = out.add_stream(codec, rate=rate_hz, layout=layout)
        assert isinstance(stream, AudioStream)
        rows = np.stack([(sound.samples * factor).astype(np.int16) for factor in channels])
        for frame in sound_frames(rows, round(begins_s * RATE_HZ)):
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return path


def sound_frames(rows: Samples, first: int = 0) -> Iterator[av.AudioFrame]:
    """Frames of a second each of one or two channels; `first` is the time stamp of the first sample."""
    for start in range(0, rows.shape[1], RATE_HZ):
        block = np.ascontiguousarray(rows[:, start : start + RATE_HZ])
        frame = av.AudioFrame.from_ndarray(block, format="s16p", layout="mono" if len(rows) == 1 else "stereo")
        frame.sample_rate, frame.time_base, frame.pts = RATE_HZ, Fraction(1, RATE_HZ), first + start
        yield frame


def repeat_sound(source: Path, path: Path, copies: int) -> float:
    """The packets of the sound of `source`, `copies` times one after another; returns the seconds from one to the next.

    Nothing is decoded or encoded, so that three hours take seconds. Not for FLAC, whose frames are numbered.
    """
    with av.open(source) as given, av.open(path, "w") as out:
        track = given.streams.audio[0]
        stream: Any = out.add_stream_from_template(track)
        packets = [(bytes(p), p.pts, p.duration or 0) for p in given.demux(track) if p.size and p.pts is not None]
        period = packets[-1][1] + packets[-1][2] - packets[0][1]
        for number in range(copies):
            for data, pts, duration in packets:
                packet = av.Packet(data)
                packet.stream, packet.duration = stream, duration
                packet.time_base = track.time_base or Fraction(0)
                packet.pts = packet.dts = pts - packets[0][1] + number * period
                out.mux(packet)
        return float(period * (track.time_base or 0))


def _at_rate(samples: Samples, rate_hz: int) -> Samples:
    frame = av.AudioFrame.from_ndarray(samples[None, :], format="s16", layout="mono")
    frame.sample_rate = rate_hz
    resampler = av.AudioResampler(format="s16", layout="mono", rate=RATE_HZ)
    parts = [part.to_ndarray() for part in (*resampler.resample(frame), *resampler.resample(None))]
    whole: Samples = np.concatenate(parts, axis=1)[0]
    return whole


def write_film(path: Path, sound: Sound, *, picture_begins_s: float = 0.0, sound_begins_s: float = 0.0) -> Path:
    """Grey pictures at 10 fps as long as the sound, each track with its own beginning."""
    with av.open(path, "w") as out:
        pictures: Any = out.add_stream("mpeg4", rate=10)
        pictures.width, pictures.height, pictures.pix_fmt = 64, 48, "yuv420p"
        track: Any = out.add_stream("aac", rate=48_000, layout="mono")
        packets = []
        for number in range(max(1, round(sound.length_s * 10))):
            frame = av.VideoFrame.from_ndarray(np.full((48, 64, 3), 90, np.uint8), format="rgb24")
            frame.pts, frame.time_base = number + round(picture_begins_s * 10), Fraction(1, 10)
            packets += pictures.encode(frame)
        for heard in sound_frames(sound.samples[None, :], round(sound_begins_s * RATE_HZ)):
            packets += track.encode(heard)
        packets += [*pictures.encode(None), *track.encode(None)]
        for packet in sorted(packets, key=lambda one: one.dts * one.time_base):
            out.mux(packet)
    return path
