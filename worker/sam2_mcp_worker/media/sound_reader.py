"""Decodes the sound of a file from beginning to end into laps of 16 kHz mono, with exact times and known damage.

Owns the time line and what counts as damaged. It refuses to know what is spoken.

A lap is a fixed part of the time line. It comes out bit for bit the same whether the laps before it were decoded or
passed over, since nothing crosses its border: it has its own decoder and resampler. Nothing seeks: what lies before a
wanted lap is passed over packet by packet, which takes no decoding, and time stamps after a seek are wrong in half of
the containers.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from av import AudioFrame, AudioResampler

from sam2_mcp_worker.media.audio import SAMPLE_RATE_HZ
from sam2_mcp_worker.media.sound_file import OpenSound
from sam2_mcp_worker.media.sound_packets import Block, Decoder, Samples, TimedPacket, side_by_side, timed_packets

Damage = tuple[int, int, str]

# Decoded before a wanted lap and thrown away: decoders build on what came before (MP3 on half a second, Opus on 80 ms).
PREROLL_S = 2.0
# 1 s before the lap is given with it: whoever listens for a voice has to hear what came before its first word.
BEFORE_SAMPLES = 16_384
# Time stamps of some containers are whole milliseconds, those of live recordings jump about by a frame: within a lap
# they are followed only where they leave the count of samples by more than this.
JITTER_S = 0.05
# Less than a syllable: a shorter hole in the time stamps is quiet, a longer one is something that was lost.
GAP_S = 0.1
# Where two channels cancel each other in their sum, the louder one is heard alone; decided second by second.
_CANCELLED = 0.25

_GAP = "the file holds no sound here (a gap in its time stamps)"
_CUT_OFF = "the file ends before this, though it claims to be longer"
_BROKEN = "the sound is damaged here"
_UNTIMED = "the sound is damaged here, and all later times may be off, since files of this kind store none"


@dataclass(slots=True)
class Lap:
    """Samples `first` to `first + len(samples)` of the time line, which counts at 16 kHz from the file's zero.

    `before` are the BEFORE_SAMPLES samples in front of them, zeros in front of the file.

    `damaged` are stretches [from, to) of the time line and why, in any order. The sound of the file begins at `begins`
    (somewhere, not only in this lap). `goes_on` tells of the last lap that more sound lies behind it.
    """

    first: int
    samples: Samples
    before: Samples
    damaged: list[Damage]
    begins: int
    goes_on: bool = False


class LapReader:
    """Gives one lap after another, each `lap` samples long; `skip_to` passes over some."""

    def __init__(self, sound: OpenSound, path: Path, first: int, lap: int, count: int, end: int) -> None:
        """Lap 0 begins at sample `first`; there are `count` laps, of which the last one ends at sample `end`.

        `path` is where the sound was opened from: each lap takes a new decoder.
        """
        self._path = path
        self._untimed = sound.untimed
        self._borders = [*(first + lap * number for number in range(count)), end]
        self._begins = end
        self._coming = timed_packets(sound)
        self._seen: deque[TimedPacket] = deque()
        self.next = 0
        """Number of the lap that comes next."""

    def skip_to(self, number: int, until_s: float) -> bool:
        """Let lap `number` come next, which must not lie behind; False when the time (monotonic) came first.

        The next attempt goes on where this one stopped.
        """
        self.next = number
        from_s = self._from_s
        while not (self._seen and self._seen[-1].end_s >= from_s):
            timed = next(self._coming, None)
            if timed is None:
                return True
            self._see(timed, from_s)
            if time.monotonic() > until_s:
                return False
        return True

    def read(self) -> Lap:
        """The next lap, decoded."""
        first, end = self._borders[self.next : self.next + 2]
        canvas = _Canvas(first - BEFORE_SAMPLES, end, _UNTIMED if self._untimed else _BROKEN)
        first_s, end_s = (first - BEFORE_SAMPLES) / SAMPLE_RATE_HZ, end / SAMPLE_RATE_HZ
        with closing(Decoder(self._path)) as decoder:
            for block in decoder.blocks(self._packets(self._from_s)):
                if block.start_s >= end_s:
                    canvas.finish(self._begins, sound_ended=False)
                    break
                canvas.add(block.within(first_s, end_s), self._begins)
            else:
                canvas.finish(self._begins, sound_ended=True)
        self.next += 1
        while self._seen and self._seen[0].end_s < self._from_s:
            self._seen.popleft()
        goes_on = self.next == len(self._borders) - 1 and self._goes_on(end_s + GAP_S)
        samples = _one_channel(canvas.samples)
        damaged = [(max(start, first), stop, reason) for start, stop, reason in canvas.damaged if stop > first]
        return Lap(first, samples[BEFORE_SAMPLES:], samples[:BEFORE_SAMPLES], damaged, self._begins, goes_on)

    @property
    def _from_s(self) -> float:
        """From when on the next lap is decoded."""
        return (self._borders[self.next] - BEFORE_SAMPLES) / SAMPLE_RATE_HZ - PREROLL_S

    def _packets(self, from_s: float) -> Iterator[TimedPacket]:
        """Packets from a time on: first those that an earlier lap has seen, which are kept for the next one too."""
        yield from [timed for timed in self._seen if timed.end_s >= from_s]
        for timed in self._coming:
            if self._see(timed, from_s):
                yield timed

    def _see(self, timed: TimedPacket, from_s: float) -> bool:
        self._begins = min(self._begins, round(timed.start_s * SAMPLE_RATE_HZ))
        if wanted := timed.end_s >= from_s:
            self._seen.append(timed)
        return wanted

    def _goes_on(self, behind_s: float) -> bool:
        return any(timed.end_s > behind_s for timed in chain(self._seen, self._coming))


class _Canvas:
    """The lap that is being filled, two channels wide."""

    def __init__(self, first: int, end: int, broken: str) -> None:
        self._first = first
        self._end = end
        self._broken = broken
        self.samples = np.zeros((2, end - first), np.int16)
        self.damaged: list[Damage] = []
        self._run: list[Samples] = []
        self._run_s = (0.0, 0.0)
        self._run_rate_hz = 0
        self._reached = first

    def add(self, block: Block, begins: int) -> None:
        """Append sound to the run that it continues, or begin a new run at its place."""
        if block.native is None:
            self._spoil(round(block.start_s * SAMPLE_RATE_HZ), round(block.end_s * SAMPLE_RATE_HZ), self._broken)
            return
        if not block.native.shape[1]:
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

    def _continues(self, native: Samples, block: Block) -> bool:
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
    return side_by_side([*resampler.resample(frame), *resampler.resample(None)], len(native))


def _one_channel(stereo: Samples) -> Samples:
    """The mean of both channels; the louder one alone in seconds in which they cancel each other."""
    mono: Samples = (stereo.astype(np.int32).sum(axis=0) // 2).astype(np.int16)
    for start in range(0, len(mono), SAMPLE_RATE_HZ):
        second = slice(start, start + SAMPLE_RATE_HZ)
        power = np.square(stereo[:, second].astype(np.float32)).mean(axis=1)
        if np.square(mono[second].astype(np.float32)).mean() < _CANCELLED**2 * power.max():
            mono[second] = stereo[int(power.argmax()), second]
    return mono
