"""Decodes the packets of a sound track into blocks with exact times.

Owns the clock of sound: packets get their times in the order of the file, whether they are decoded or not. It refuses
to know what the blocks are for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import av
import numpy as np
from av import AudioFrame, AudioResampler, Packet
from av.audio.stream import AudioStream
from numpy.typing import NDArray

from sam2_mcp_worker.media.sound_file import OpenSound, open_sound, sound_encrypted

Samples = NDArray[np.int16]

# Time stamps that go back further than this begin anew (files that were put together): they follow on instead. One
# that leaps further ahead is looked at twice.
RESTART_S = 1.0
# Telephones have 8,000 and the best converters 384,000; others are slips of a damaged file, and some need gigabytes.
_RATES_HZ = (2_000, 384_000)


class TimedPacket(NamedTuple):  # a tuple, since an hour has 150,000 and a frozen dataclass is slow to make
    """A packet, and from when to when its sound lasts."""

    packet: Packet[AudioStream]
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Block:
    """Decoded sound from `start_s` on at its own rate (channels x samples, one or two channels), or the lack of it."""

    start_s: float
    rate_hz: int
    native: Samples | None
    end_s: float

    def within(self, start_s: float, end_s: float) -> Block:
        """The samples from one time to before another."""
        if self.native is None:
            return self
        # Rounded, since seconds are floats: a border that is a sample must not be taken for a little more.
        first, last = (math.ceil(round((at_s - self.start_s) * self.rate_hz, 3)) for at_s in (start_s, end_s))
        first = min(max(first, 0), self.native.shape[1])
        native = self.native[:, first : max(first, last)]
        begins_s = self.start_s + first / self.rate_hz
        return Block(begins_s, self.rate_hz, native, begins_s + native.shape[1] / self.rate_hz)


def timed_packets(sound: OpenSound) -> Iterator[TimedPacket]:
    """All packets of the track with times on our clock, ascending but for jitter; what cannot be read ends them.

    Raises:
        WorkerError: sound_encrypted.
    """
    base_s = float(sound.stream.time_base or Fraction(1, 90_000))
    zero_s = float(sound.zero_s)
    context = sound.stream.codec_context
    usual_s = (context.frame_size or 1024) / (context.sample_rate or 48_000)
    shift_s = follows_s = 0.0
    leap: TimedPacket | None = None
    for number, packet in enumerate(_packets(sound)):
        if number == 0 and packet.pts is not None:  # sound may begin long before the first frame
            follows_s = min(0.0, packet.pts * base_s - zero_s)
        stamped_s = follows_s if packet.pts is None else packet.pts * base_s - zero_s + shift_s
        length_s = (packet.duration or 0) * base_s or usual_s
        if leap is not None:
            # Where time goes on behind a leap it was a gap; where it comes back, one stamp was wrong.
            at_s = leap.start_s if stamped_s > leap.start_s - RESTART_S else follows_s
            follows_s = at_s + leap.end_s - leap.start_s
            yield TimedPacket(leap.packet, at_s, follows_s)
            leap = None
        if stamped_s > follows_s + RESTART_S:
            leap = TimedPacket(packet, stamped_s, stamped_s + length_s)
            continue
        if stamped_s < follows_s - RESTART_S:
            shift_s += follows_s - stamped_s
            stamped_s = follows_s
        follows_s = stamped_s + length_s
        yield TimedPacket(packet, stamped_s, follows_s)
    if leap is not None:
        yield leap


def _packets(sound: OpenSound) -> Iterator[Packet[AudioStream]]:
    packets = sound.container.demux(sound.stream)
    while True:
        try:
            packet = next(packets)
        except (
            StopIteration,
            av.FFmpegError,
            OSError,
            IndexError,
        ):  # the last: PyAV, of a track that was not announced
            return
        if packet.has_sidedata("encryption_info"):
            raise sound_encrypted()
        if packet.size:  # the last one has none, and decoding it would end the decoder for good
            yield packet


class Decoder:
    """A decoder that has seen nothing yet.

    Some decoders (AAC, AC-3) fill in noise that depends on all they have decoded, and cannot be set back: the same
    blocks only come out of the same packets given to a new one. Close it.
    """

    def __init__(self, path: Path) -> None:
        self._files = ExitStack()
        self._stream = self._files.enter_context(open_sound(path)).stream
        self._base = self._stream.time_base or Fraction(1, 90_000)
        self._leveller = _Leveller()

    def close(self) -> None:
        """Free it."""
        self._files.close()

    def blocks(self, packets: Iterable[TimedPacket]) -> Iterator[Block]:
        """The sound of these packets and of no more; what cannot be decoded comes without samples."""
        for timed in packets:
            lost = Block(timed.start_s, 0, None, timed.end_s)
            if timed.packet.is_corrupt:
                yield lost
            timed.packet.pts = round(timed.start_s / self._base)  # the decoder hands it on to the frames
            frames = self._decode(timed.packet)
            if frames is None:
                yield lost
            for frame in frames or ():
                yield self._leveller.block(frame, timed.start_s)
        for frame in self._decode(None) or ():
            yield self._leveller.block(frame, 0.0)

    def _decode(self, packet: Packet[AudioStream] | None) -> list[AudioFrame] | None:
        try:
            return self._stream.codec_context.decode(packet)
        except av.MemoryError as error:
            raise MemoryError from error
        except av.FFmpegError:  # of any kind: random bytes have been seen to be "not permitted"
            return None


def first_sound_s(path: Path) -> float | None:
    """When the first sound begins that can be decoded; None where none can."""
    with open_sound(path) as sound, closing(Decoder(path)) as decoder:
        blocks = decoder.blocks(timed_packets(sound))
        return next((block.start_s for block in blocks if block.native is not None), None)


class _Leveller:
    """Makes frames blocks of one or two channels of 16 bits at their own rate; more channels are mixed into one."""

    def __init__(self) -> None:
        self._kind: tuple[object, ...] = ()
        self._same: AudioResampler | None = None

    def block(self, frame: AudioFrame, packet_s: float) -> Block:
        """The frame's sound at its time, or at that of its packet when it has none."""
        start_s = packet_s if frame.pts is None else float(frame.pts * (frame.time_base or 0))
        if not _RATES_HZ[0] <= frame.sample_rate <= _RATES_HZ[1]:
            return Block(start_s, 0, None, start_s)
        try:
            native = self._native(frame)
        except av.MemoryError as error:
            raise MemoryError from error
        except av.FFmpegError:  # 64 channels and more are not mixed
            self._same = None
            return Block(start_s, 0, None, start_s + frame.samples / frame.sample_rate)
        return Block(start_s, frame.sample_rate, native, start_s + native.shape[1] / frame.sample_rate)

    def _native(self, frame: AudioFrame) -> Samples:
        layout = "stereo" if frame.layout.nb_channels == 2 else "mono"
        kind = (frame.format.name, frame.layout.name, frame.sample_rate)
        if self._same is None or kind != self._kind:
            self._same = AudioResampler(format="s16p", layout=layout, rate=frame.sample_rate)
            self._kind = kind
        return side_by_side(self._same.resample(frame), 1 + (layout == "stereo"))


def side_by_side(frames: list[AudioFrame], channels: int) -> Samples:
    """The samples of planar frames of 16 bits, one after the other."""
    parts = [frame.to_ndarray().astype(np.int16, copy=False) for frame in frames]
    return np.concatenate(parts, axis=1) if parts else np.zeros((channels, 0), np.int16)
