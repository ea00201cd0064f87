"""Decodes the sound of a file from beginning to end into laps of 16 kHz mono, with exact times and known damage.

Owns the clock of sound and what counts as damaged. It refuses to know what is spoken.

A lap is a fixed part of the time line. It comes out bit for bit the same whether the laps before it were decoded or
passed over, since nothing crosses its border: packets get their times in the order of the file, whether they are
decoded or not, and the resampler begins anew at the border. Nothing seeks: what lies before a wanted lap is passed over
packet by packet, which takes no decoding, and time stamps after a seek are wrong in half of the containers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import av
import numpy as np
from av import AudioFrame, AudioResampler, Packet
from av.audio.stream import AudioStream
from numpy.typing import NDArray

from sam2_mcp_worker.media.audio import SAMPLE_RATE_HZ
from sam2_mcp_worker.media.sound_file import OpenSound, sound_encrypted
from sam2_mcp_worker.media.video_reader import PACKET_ERRORS

Samples = NDArray[np.int16]
Damage = tuple[int, int, str]

# Decoded before a wanted lap and thrown away: decoders build on what came before (MP3 on half a second, Opus on 80 ms).
PREROLL_S = 2.0
# Time stamps of some containers are whole milliseconds, those of live recordings jump about by a frame: within a lap
# they are followed only where they leave the count of samples by more than this.
JITTER_S = 0.05
# Less than a syllable: a shorter hole in the time stamps is quiet, a longer one is something that was lost.
GAP_S = 0.1
# Time stamps that go back further than this begin anew (files that were put together); they follow on instead.
RESTART_S = 1.0
# Where two channels cancel each other in their sum, the louder one is heard alone; decided second by second.
_CANCELLED = 0.25

_GAP = "the file holds no sound here (a gap in its time stamps)"
_CUT_OFF = "the file ends before this, though it claims to be longer"
_BROKEN = "the sound is damaged here"


@dataclass(slots=True)
class Lap:
    """Samples `first` to `first + len(samples)` of the time line, which counts at 16 kHz from the file's zero.

    `damaged` are stretches [from, to) of the time line and why, in any order. The sound of the file begins at `begins`
    (somewhere, not only in this lap). `goes_on` tells of the last lap that more sound lies behind it.
    """

    first: int
    samples: Samples
    damaged: list[Damage]
    begins: int
    goes_on: bool = False


@dataclass(frozen=True, slots=True)
class TimedPacket:
    """A packet, and from when to when its sound lasts."""

    packet: Packet[AudioStream]
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class _Block:
    """Decoded sound from `start_s` on at its own rate (channels x samples, one or two channels), or the lack of it."""

    start_s: float
    rate_hz: int
    native: Samples | None
    end_s: float

    def split(self, at_s: float) -> tuple[_Block, _Block]:
        """The samples before a time and those from it on."""
        assert self.native is not None
        index = min(max(math.ceil((at_s - self.start_s) * self.rate_hz), 0), self.native.shape[1])
        border_s = self.start_s + index / self.rate_hz
        return (
            _Block(self.start_s, self.rate_hz, self.native[:, :index], border_s),
            _Block(border_s, self.rate_hz, self.native[:, index:], self.end_s),
        )


def timed_packets(sound: OpenSound) -> Iterator[TimedPacket]:
    """All packets of the track with times on our clock, ascending; what cannot be read ends them.

    Raises:
        WorkerError: sound_encrypted.
    """
    base = sound.stream.time_base or Fraction(1, 90_000)
    context = sound.stream.codec_context
    usual_s = (context.frame_size or 1024) / (context.sample_rate or 48_000)
    shift_s, follows_s = 0.0, 0.0
    packets = sound.container.demux(sound.stream)
    while True:
        try:
            packet = next(packets)
        except (StopIteration, av.FFmpegError, OSError):
            return
        if packet.has_sidedata("encryption_info"):
            raise sound_encrypted()
        if not packet.size:
            continue  # the last one is, and decoding it would end the decoder for good
        stamped_s = follows_s if packet.pts is None else float(packet.pts * base - sound.zero_s) + shift_s
        if stamped_s < follows_s - RESTART_S:
            shift_s += follows_s - stamped_s
            stamped_s = follows_s
        follows_s = stamped_s + (float((packet.duration or 0) * base) or usual_s)
        packet.pts = round(stamped_s / base)
        yield TimedPacket(packet, stamped_s, follows_s)


def first_sound_s(sound: OpenSound) -> float | None:
    """When the first sound begins that can be decoded; None where none can."""
    return next((block.start_s for block in _decoded(sound, lambda timed: True) if block.native is not None), None)


class LapReader:
    """Gives one lap after another, each `lap` samples long; `skip_to` passes over some."""

    def __init__(self, sound: OpenSound, first: int, lap: int, count: int, end: int) -> None:
        """Lap 0 begins at sample `first`; there are `count` laps, of which the last one ends at sample `end`."""
        self._sound = sound
        self._borders = [*(first + lap * number for number in range(count)), end]
        self._begins = end
        self._decode_from_s = float("-inf")
        self._blocks = _decoded(sound, self._wants)
        self._held: _Block | None = None
        self.next = 0
        """Number of the lap that comes next."""

    def skip_to(self, number: int) -> None:
        """Let lap `number` come next; it must not lie behind."""
        if number > self.next:
            self._decode_from_s = self._borders[number] / SAMPLE_RATE_HZ - PREROLL_S
            self._sound.stream.codec_context.flush_buffers()
            self.next = number

    def read(self) -> Lap:
        """The next lap, decoded."""
        first, end = self._borders[self.next : self.next + 2]
        canvas = _Canvas(first, end)
        for block in self._until(end / SAMPLE_RATE_HZ):
            canvas.add(block, self._begins)
        canvas.finish(self._begins, sound_ended=self._held is None)
        self.next += 1
        last = self.next == len(self._borders) - 1
        goes_on = last and self._held is not None and self._held.end_s > end / SAMPLE_RATE_HZ + GAP_S
        return Lap(first, _one_channel(canvas.samples), canvas.damaged, self._begins, goes_on)

    def _until(self, end_s: float) -> Iterator[_Block]:
        """The blocks of this lap; the one that reaches over its border is split, and its rest begins the next lap."""
        begin_s = self._borders[self.next] / SAMPLE_RATE_HZ
        while True:
            block, self._held = self._held or next(self._blocks, None), None
            if block is None:
                return
            if block.start_s >= end_s:
                self._held = block
                return
            if block.native is not None and block.start_s < begin_s:  # after a skip
                block = block.split(begin_s)[1]
            if block.native is not None and block.end_s > end_s:
                block, self._held = block.split(end_s)
                yield block
                return
            yield block

    def _wants(self, timed: TimedPacket) -> bool:
        self._begins = min(self._begins, round(timed.start_s * SAMPLE_RATE_HZ))
        return timed.end_s >= self._decode_from_s


def _decoded(sound: OpenSound, wants: Callable[[TimedPacket], bool]) -> Iterator[_Block]:
    """The sound of all packets that are wanted when they come."""
    stream = sound.stream
    for timed in timed_packets(sound):
        if not wants(timed):
            continue
        lost = _Block(timed.start_s, 0, None, timed.end_s)
        if timed.packet.is_corrupt:
            yield lost
        try:
            frames = stream.decode(timed.packet)
        except PACKET_ERRORS:
            yield lost
            continue
        except av.MemoryError as error:
            raise MemoryError from error
        for frame in frames:
            yield _block(frame, timed.start_s)
    for frame in stream.decode(None):
        yield _block(frame, 0.0)


def _block(frame: AudioFrame, packet_s: float) -> _Block:
    start_s = packet_s if frame.pts is None else float(frame.pts * (frame.time_base or 0))
    native = _native(frame)
    return _Block(start_s, frame.sample_rate, native, start_s + native.shape[1] / frame.sample_rate)


def _native(frame: AudioFrame) -> Samples:
    """One or two channels of 16 bits at the frame's own rate: more than two are mixed into one."""
    layout = "stereo" if frame.layout.nb_channels == 2 else "mono"
    same = AudioResampler(format="s16p", layout=layout, rate=frame.sample_rate)
    parts = [part.to_ndarray() for part in same.resample(frame)]
    return np.concatenate(parts, axis=1) if parts else np.zeros((1, 0), np.int16)


class _Canvas:
    """The lap that is being filled, two channels wide."""

    def __init__(self, first: int, end: int) -> None:
        self._first = first
        self._end = end
        self.samples = np.zeros((2, end - first), np.int16)
        self.damaged: list[Damage] = []
        self._run: list[Samples] = []
        self._run_s = (0.0, 0.0)
        self._run_rate_hz = 0
        self._reached = first

    def add(self, block: _Block, begins: int) -> None:
        """Append sound to the run that it continues, or begin a new run at its place."""
        if block.native is None:
            self._spoil(round(block.start_s * SAMPLE_RATE_HZ), round(block.end_s * SAMPLE_RATE_HZ), _BROKEN)
            return
        if self._run and not self._continues(block.native, block):
            self._write_run(begins)
        if not self._run:
            self._run_s, self._run_rate_hz = (block.start_s, block.start_s), block.rate_hz
        self._run.append(block.native)
        self._run_s = (self._run_s[0], self._run_s[1] + block.native.shape[1] / block.rate_hz)

    def finish(self, begins: int, *, sound_ended: bool) -> None:
        """Write what is left, and note what is missing at the end."""
        self._write_run(begins)
        self._note_hole(self._end, begins, _CUT_OFF if sound_ended else _GAP)

    def _continues(self, native: Samples, block: _Block) -> bool:
        alike = (self._run_rate_hz, len(self._run[0])) == (block.rate_hz, len(native))
        return alike and abs(block.start_s - self._run_s[1]) <= JITTER_S

    def _write_run(self, begins: int) -> None:
        """Put the run in its place, resampled. Nothing is missing before the sound of the file begins."""
        if not self._run:
            return
        samples = _resampled(np.concatenate(self._run, axis=1), self._run_rate_hz)
        self._run = []
        at = round(self._run_s[0] * SAMPLE_RATE_HZ)
        self._note_hole(at, begins, _GAP)
        start, end = max(at, self._first), min(at + samples.shape[1], self._end)
        if start < end:
            self.samples[:, start - self._first : end - self._first] = samples[:, start - at : end - at]
            self._reached = max(self._reached, end)

    def _note_hole(self, until: int, begins: int, reason: str) -> None:
        reached = max(self._reached, begins)
        if until - reached > GAP_S * SAMPLE_RATE_HZ:
            self._spoil(reached, until, reason)

    def _spoil(self, start: int, end: int, reason: str) -> None:
        start, end = max(start, self._first), min(end, self._end)
        if start < end:
            self.damaged.append((start, end, reason))


def _resampled(native: Samples, rate_hz: int) -> Samples:
    """The same sound at 16 kHz, with the tail of the filter."""
    layout = "stereo" if len(native) == 2 else "mono"
    frame = AudioFrame.from_ndarray(np.ascontiguousarray(native), format="s16p", layout=layout)
    frame.sample_rate = rate_hz
    resampler = AudioResampler(format="s16p", layout=layout, rate=SAMPLE_RATE_HZ)
    parts = [part.to_ndarray() for part in (*resampler.resample(frame), *resampler.resample(None))]
    samples: Samples = np.concatenate(parts, axis=1)
    return samples


def _one_channel(stereo: Samples) -> Samples:
    """The mean of both channels; the louder one alone in seconds in which they cancel each other."""
    mono = (stereo.astype(np.int32).sum(axis=0) // 2).astype(np.int16)
    for start in range(0, len(mono), SAMPLE_RATE_HZ):
        second = slice(start, start + SAMPLE_RATE_HZ)
        power = np.square(stereo[:, second].astype(np.float32)).mean(axis=1)
        if np.square(mono[second].astype(np.float32)).mean() < _CANCELLED**2 * power.max():
            mono[second] = stereo[int(power.argmax()), second]
    return mono
