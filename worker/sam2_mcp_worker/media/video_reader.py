"""Decodes a video in presentation order, with exact times and with every damaged stretch known.

Owns the clock (seconds since the first frame of the track), how decoding starts in the middle, and what counts as
damaged. It refuses to know what happens to the frames.

Times come from the frames themselves, never from a frame rate. Decoding is linear; to begin in the middle it goes to a
keyframe before the wanted time and checks that it really came out before it (in MPEG-TS it often does not: all of 17
seeks landed late, reference/vision.md 4), else it begins earlier, at last at the beginning.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Self, cast

import av
from av import Packet, VideoFrame
from av.video.stream import VideoStream

from sam2_mcp_worker.media.byte_holes import WITHOUT_HOLES, ByteHoles
from sam2_mcp_worker.media.frame_skip import GridSkip
from sam2_mcp_worker.media.video_file import MAX_FRAME_PIXELS, OpenVideo, encrypted, open_video

# Two times that differ by less are those of one frame: times are told with six decimals.
SAME_FRAME_S = 2e-6
# Containers whose time stamps are true after a seek. The others are always decoded from the beginning.
_SEEKABLE = ("mov", "matroska", "avi", "mpegts", "flv", "asf", "mxf", "nut")
# Containers that know no presentation times: libavformat makes up wrong ones where frames are reordered.
_WITHOUT_PTS = ("avi",)
# How much earlier than wanted a seek aims, tried in order until the first frame is early enough.
_SEEK_BACK_S = (0.0, 2.0, 12.0)
# Rates that no camera has are slips of the file; 25 is then as good as any guess for frames without a time.
_RATE_RANGE = (1, 1000)
_GUESSED_RATE = Fraction(25)


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded frame: what it shows is not to be trusted when it is `damaged`.

    `after_gap` says that something between the frame before and this one could not be read at all.
    """

    frame: VideoFrame
    time_s: float
    damaged: bool
    after_gap: bool


class VideoReader:
    """An open video whose frames can be read from any time on, again and again. A context manager."""

    def __init__(self, path: Path, max_pixels: int = MAX_FRAME_PIXELS) -> None:
        self._path = path
        self._max_pixels = max_pixels
        self._files = ExitStack()
        self._fresh = False
        self._seek_works = True
        self.skip: GridSkip | None = None
        """Frames that this finds not to be needed are not decoded, where no other frame builds on them."""
        self.ends_damaged = False
        """After all frames were read: whether something behind the last one could not be."""

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, t: TracebackType | None) -> None:
        self._files.close()

    def _open(self) -> None:
        self._files.close()
        self._video: OpenVideo = self._files.enter_context(open_video(self._path, self._max_pixels))
        self._fresh = True

    @property
    def stream(self) -> VideoStream:
        """The picture track."""
        return self._video.stream

    @property
    def video(self) -> OpenVideo:
        """The open file."""
        return self._video

    @property
    def time_base(self) -> Fraction:
        """Seconds per tick of the track's time stamps."""
        return self.stream.time_base or Fraction(1, 90_000)

    @property
    def rate(self) -> Fraction:
        """Frames per second on average, as the file says; a guess where it says nothing possible."""
        for rate in (self.stream.average_rate, self.stream.guessed_rate, self.stream.base_rate):
            if rate and _RATE_RANGE[0] <= rate <= _RATE_RANGE[1]:
                return rate
        return _GUESSED_RATE

    @property
    def start_s(self) -> float:
        """Time stamp of the track's beginning, which is 0 on our clock."""
        return float((self.stream.start_time or 0) * self.time_base)

    def seconds(self, ticks: int) -> float:
        """A time stamp of the track on our clock."""
        return float((ticks - (self.stream.start_time or 0)) * self.time_base)

    def frames(self, from_s: float = 0.0) -> Iterator[Decoded]:
        """All frames from the one on screen at `from_s` on, or from an earlier one. Ends an earlier iteration."""
        middle = from_s > SAME_FRAME_S
        for back_s in _SEEK_BACK_S if middle and self._seekable else ():
            if not self._seek(from_s - back_s):
                break
            decoded = self._decode(sought=True)
            first = next(decoded, None)
            if first is not None and first.time_s <= from_s and not first.damaged:
                yield first
                yield from decoded
                return
        if middle:
            self._seek_works = False  # not again for every wanted time: it would cost the square of the length
        if not self._fresh:
            self._open()
        yield from self._decode(sought=False)

    def frames_after(self, after_s: float | None) -> Iterator[Decoded]:
        """All frames later than one whose time is told; all at all for None."""
        if after_s is None:
            return self.frames()
        return (decoded for decoded in self.frames(after_s) if decoded.time_s > after_s + SAME_FRAME_S)

    def keyframe_between(self, time_s: float, wanted_s: float) -> bool:
        """Whether the index knows a keyframe after `time_s` and not after `wanted_s`, so that a seek saves work."""
        if not (self._seekable and self._seek_works):
            return False
        index = self.stream.index_entries
        entry = index.search_timestamp(self._ticks(wanted_s), backward=True)
        return entry >= 0 and self.seconds(index[entry].timestamp) > time_s

    @property
    def times_are_dts(self) -> bool:
        """Whether the container tells in which order frames are decoded, and not when they are shown (AVI)."""
        return self._is_one_of(_WITHOUT_PTS) and bool(self.stream.codec_context.has_b_frames)

    @property
    def _seekable(self) -> bool:
        return self._is_one_of(_SEEKABLE) and not self.times_are_dts

    def _is_one_of(self, names: tuple[str, ...]) -> bool:
        return any(name in names for name in self._video.container.format.name.split(","))

    def _ticks(self, time_s: float) -> int:
        # To the nearest tick: the times of frames are ticks, and none of them must be missed by a rounding.
        return (self.stream.start_time or 0) + round(time_s / self.time_base)

    def _seek(self, time_s: float) -> bool:
        if time_s <= 0:
            return False
        try:
            self._video.container.seek(self._ticks(time_s), stream=self.stream, backward=True)
        except av.FFmpegError:
            return False
        self._fresh = False
        return True

    def _decode(self, *, sought: bool) -> Iterator[Decoded]:
        self._fresh = False
        clock = _Clock(self, sought=sought)
        care = _Care(sought=sought, counts_chunks=self._is_one_of(_WITHOUT_PTS))
        for frame in self._raw_frames(care):
            care.come_to(frame)
            time_s = clock.time_of(frame)
            if time_s is not None:
                after_gap = care.lost
                yield Decoded(frame, time_s, care.judge(frame), after_gap)
        self.ends_damaged = care.lost

    def _raw_frames(self, care: _Care) -> Iterator[VideoFrame]:
        for packet in self.packets(care):
            care.see(packet)
            if self.skip is not None:
                self.stream.codec_context.skip_frame = "NONREF" if self._not_needed(self.skip, packet) else "DEFAULT"
            try:
                frames = self.stream.decode(packet)
            except av.MemoryError as error:
                raise MemoryError from error
            except av.FFmpegError:  # of any kind, it concerns this packet
                care.lost = True
                continue
            yield from frames

    def _not_needed(self, skip: GridSkip, packet: Packet[VideoStream]) -> bool:
        return packet.pts is not None and not self.times_are_dts and skip.see(self.seconds(packet.pts))

    def packets(self, care: _Care | None = None) -> Iterator[Packet[VideoStream]]:
        """The packets of the track as they are stored; the last one is empty. What cannot be read ends them.

        Raises:
            WorkerError: video_encrypted.
        """
        packets = self._stored_packets(care)
        while True:
            try:
                packet = next(packets)
            except StopIteration:
                return
            except (
                av.FFmpegError,
                OSError,
                IndexError,
            ):  # the last where a track appears that the header does not know
                if care is not None:
                    care.lost = True
                return
            if packet.has_sidedata("encryption_info"):
                raise encrypted()
            yield packet

    def _stored_packets(self, care: _Care | None) -> Iterator[Packet[VideoStream]]:
        container = self._video.container
        if care is None or not self._is_one_of(WITHOUT_HOLES):
            yield from container.demux(self.stream)
            return
        holes = ByteHoles()
        for packet in container.demux():
            holes.pass_by(packet.pos, packet.size)
            if packet.stream.index == self.stream.index:
                latest = holes.latest
                if holes.before_picture(packet.pts, packet.duration):
                    care.miss_behind(latest)
                yield cast("Packet[VideoStream]", packet)


class _Care:
    """Knows from where to where the picture cannot be trusted: from a loss to the next whole keyframe."""

    def __init__(self, *, sought: bool, counts_chunks: bool) -> None:
        self._counts_chunks = counts_chunks
        self.lost = False
        """Whether something was lost since the last frame."""
        self._missing_behind: list[int] = []
        self._until_key = sought  # whatever comes out before a keyframe builds on frames that were not decoded

    def see(self, packet: Packet[VideoStream]) -> None:
        """Note what the container says of a packet."""
        if packet.is_corrupt:
            self.lost = True

    def miss_behind(self, ticks: int | None) -> None:
        """Packets are missing behind the frame shown at this time. A decoder still holds frames from before it; they
        count as damaged, for those shown between them may be missing too.
        """
        self.lost = True
        self._missing_behind += [] if ticks is None else [ticks]

    def come_to(self, frame: VideoFrame) -> None:
        """Note what is missing right before a frame that comes out."""
        while self._missing_behind and frame.pts is not None and frame.pts > self._missing_behind[0]:
            self.lost = True
            self._missing_behind.pop(0)

    def judge(self, frame: VideoFrame) -> bool:
        """Whether the frame is damaged."""
        after_loss = self.lost
        # Where times are counted from the chunks of the file, nobody knows how many were lost: all later times are off.
        self.lost = self._counts_chunks and (after_loss or frame.is_corrupt)
        if self.lost:
            return True
        if frame.is_corrupt:
            self._until_key = True
        elif frame.key_frame:
            self._until_key = False
        else:
            self._until_key |= after_loss
        return self._until_key


class _Clock:
    """Gives every frame its time; frames without one follow their predecessor by one frame length."""

    def __init__(self, reader: VideoReader, *, sought: bool) -> None:
        self._reader = reader
        self._sought = sought
        self._first_dts: int | None = None
        self.last_s: float | None = None

    def time_of(self, frame: VideoFrame) -> float | None:
        """Seconds since the start, ascending; None for a frame after a seek whose time nobody knows."""
        ticks = self._ticks(frame)
        if ticks is not None:
            time_s = self._reader.seconds(ticks)
        elif self.last_s is not None:
            time_s = self.last_s + float(1 / self._reader.rate)
        elif self._sought:
            return None
        else:
            time_s = 0.0
        if self.last_s is not None and time_s <= self.last_s:
            time_s = self.last_s + float(self._reader.time_base)
        self.last_s = time_s
        return time_s

    def _ticks(self, frame: VideoFrame) -> int | None:
        if not self._reader.times_are_dts:
            return frame.pts
        if frame.dts is None:
            return None
        if self._first_dts is None:  # that of the packet which let the frame out: later by the decoder's delay
            self._first_dts = frame.dts
        return frame.dts - self._first_dts + (self._reader.stream.start_time or 0)
