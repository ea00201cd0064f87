"""Writes a video anew in a decoder child: segments of painted frames, then one MP4 of them and the sound.

H.264 (x264) with the time stamps of the source, frame by frame. No reordered frames: their decoding order would have
to be joined across segments, and what they save is about a tenth of the bytes. Nothing of the source but pictures and
one sound track is taken over: no metadata, chapters, subtitles, attachments, cover pictures or data streams.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from fractions import Fraction
from heapq import merge
from pathlib import Path
from typing import Any

import av
from av import Packet
from av.audio.stream import AudioStream
from av.codec.context import Flags
from av.container import InputContainer, OutputContainer
from av.stream import Disposition
from av.video.reformatter import ColorRange, Colorspace
from av.video.stream import VideoStream

from sam2_mcp_worker.disk import storage_errors
from sam2_mcp_worker.media.video_file import DECODER_THREADS
from sam2_mcp_worker.media.video_painter import Painter, make_painter
from sam2_mcp_worker.media.video_pixels import QUICK, Rgb, Turn, matrix_of, to_rgb
from sam2_mcp_worker.media.video_reader import Decoded, VideoReader

# x264: `veryfast` encodes 1080p at about the pace of decoding it on two cores; CRF 20 shows no loss to the eye.
OPTIONS = {"preset": "veryfast", "crf": "20", "bf": "0"}
# A keyframe at least every so many seconds, so that players can jump.
KEYFRAME_S = 4
# Sound that MP4 holds as it is. Everything else is encoded to AAC.
COPIED_AUDIO = ("aac", "mp3", "ac3", "eac3", "opus", "alac", "flac")
AAC_BITS_PER_S = 160_000
_MAX_AAC_RATE = 48_000
# AVColorSpace for what swscale used where the source states none.
_STATED = {Colorspace.ITU709: 1, Colorspace.ITU601: 6}
_RGB, _UNSPECIFIED = 0, 2


def video_segment(params: dict[str, Any]) -> dict[str, Any]:
    """Paint and encode the next stretch of frames into one file.

    Args:
        params: `path`, `max_pixels`, `size_px` (upright), `painter` (`{kind, params}`), `out_path`, `after_s` (time of
            the last frame that is written already, None at the beginning), `first_index`, `budget_s`.

    Returns:
        `frames` (0: the video ended before), `last_s`, `finished`, `damaged_s` (spans of frames that could not be
        decoded whole), and `pixel_format`.
    """
    ends_s = time.monotonic() + params["budget_s"]
    out_path, index = Path(params["out_path"]), params["first_index"]
    painter = make_painter(params["painter"]["kind"], params["painter"]["params"])
    spans: list[list[float]] = []
    last_s, finished = params["after_s"], True
    part = out_path.with_name(f"{out_path.name}.{os.getpid()}.part")
    with storage_errors(), VideoReader(Path(params["path"]), params["max_pixels"]) as reader:
        segment = _Segment(part, reader, tuple(params["size_px"]), painter)
        try:
            for decoded in reader.frames_after(params["after_s"]):
                if segment.frames and time.monotonic() >= ends_s:
                    finished = False
                    break
                segment.add(decoded, index + segment.frames)
                _note_damage(spans, decoded, last_s)
                last_s = decoded.time_s
            if finished and reader.ends_damaged and last_s is not None:
                spans.append([last_s, last_s])
            segment.close()
        except BaseException:
            segment.abandon()
            raise
    if segment.frames:
        part.replace(out_path)
    return {
        "frames": segment.frames,
        "last_s": last_s,
        "finished": finished,
        "damaged_s": spans,
        "pixel_format": segment.pixel_format,
    }


def _note_damage(spans: list[list[float]], decoded: Decoded, before_s: float | None) -> None:
    if not (decoded.damaged or decoded.after_gap):
        return
    start_s = decoded.time_s if before_s is None or not decoded.after_gap else before_s
    if spans and start_s <= spans[-1][1] + 1.0:
        spans[-1][1] = decoded.time_s
    else:
        spans.append([start_s, decoded.time_s])


class _Segment:
    """One file of encoded frames. The encoder is made with the first frame, whose colours it takes over."""

    def __init__(self, path: Path, reader: VideoReader, size_px: tuple[int, int], painter: Painter) -> None:
        self._path = path
        self._reader = reader
        self._size = size_px
        self._painter = painter
        self._out: OutputContainer | None = None
        self.frames = 0
        # 4:2:0 has no odd sizes. Rather a format that fewer players know than a picture of another size.
        self.pixel_format = "yuv420p" if size_px[0] % 2 == 0 and size_px[1] % 2 == 0 else "yuv444p"

    def add(self, decoded: Decoded, index: int) -> None:
        """Paint and encode one frame."""
        if self._out is None:
            self._open(decoded)
        rgb = to_rgb(decoded.frame, self._size, Turn.of(decoded.frame), QUICK)
        painted = self._painter.paint(rgb, index, decoded.time_s)
        assert painted.shape == rgb.shape, "painters keep the size"
        self._mux(self._frame(painted, decoded.time_s))
        self.frames += 1

    def close(self) -> None:
        """Finish the file."""
        if self._out is not None:
            self._mux(None)
            self._out.close()

    def abandon(self) -> None:
        """Throw the file away."""
        if self._out is not None:
            self._out.close()
        self._path.unlink(missing_ok=True)

    def _open(self, decoded: Decoded) -> None:
        frame, turn = decoded.frame, Turn.of(decoded.frame)
        self._matrix = matrix_of(frame)
        # NUT keeps any time base exactly.
        self._out = av.open(str(self._path), "w", format="nut")
        stream = self._out.add_stream("libx264", rate=self._reader.rate, options=dict(OPTIONS))
        codec = stream.codec_context
        codec.width, codec.height, codec.pix_fmt = *self._size, self.pixel_format
        codec.time_base = stream.time_base = self._reader.time_base
        codec.thread_count = DECODER_THREADS
        codec.gop_size = max(1, round(self._reader.rate * KEYFRAME_S))
        codec.flags |= Flags.global_header
        stated = int(frame.colorspace) not in (_RGB, _UNSPECIFIED)
        codec.colorspace = int(frame.colorspace) if stated else _STATED[self._matrix]
        codec.color_range = int(ColorRange.MPEG)
        codec.color_primaries, codec.color_trc = int(frame.color_primaries), int(frame.color_trc)
        aspect = self._reader.stream.sample_aspect_ratio
        if aspect:
            codec.sample_aspect_ratio = 1 / aspect if turn.transpose else aspect
        self._stream = stream

    def _frame(self, rgb: Rgb, time_s: float) -> av.VideoFrame:
        picture = av.VideoFrame.from_ndarray(rgb, format="rgb24").reformat(
            format=self.pixel_format,
            src_colorspace=self._matrix,
            dst_colorspace=self._matrix,
            dst_color_range=ColorRange.MPEG,
            interpolation=QUICK,
            threads=1,
        )
        picture.time_base = self._reader.time_base
        picture.pts = round(time_s / self._reader.time_base)
        return picture

    def _mux(self, frame: av.VideoFrame | None) -> None:
        assert self._out is not None
        for packet in self._stream.encode(frame):
            self._out.mux(packet)


def video_join(params: dict[str, Any]) -> dict[str, Any]:
    """Put the segments and the sound of the source into one MP4.

    Args:
        params: `path` (the source), `segments` (paths, in order), `out_path`, `audio` (`keep | drop`), `end_s` (when
            the last frame leaves the screen).

    Returns:
        `bytes`, `audio` (`copied | encoded | dropped | none`) and `audio_codec`.
    """
    out_path = Path(params["out_path"])
    part = out_path.with_name(f"{out_path.name}.{os.getpid()}.part")
    with storage_errors():
        try:
            sound = _join_either_way(params, part)
            part.replace(out_path)
        finally:
            part.unlink(missing_ok=True)
    return {"bytes": out_path.stat().st_size, **sound}


def _join_either_way(params: dict[str, Any], part: Path) -> dict[str, Any]:
    try:
        with VideoReader(Path(params["path"])) as reader:
            return _join(reader, params, part, COPIED_AUDIO)
    except (av.ArgumentError, av.InvalidDataError, ValueError):  # the muxer does not take the sound as it is
        with VideoReader(Path(params["path"])) as reader:
            return _join(reader, params, part, ())


def _join(reader: VideoReader, params: dict[str, Any], part: Path, copied: tuple[str, ...]) -> dict[str, Any]:
    source = reader.video.container
    audio = _sound_track(source) if params["audio"] == "keep" else None
    # Both tracks move by the same, so that neither begins before 0 and they stay together.
    video_start = (reader.stream.start_time or 0) * reader.time_base
    origin = min([video_start, *([_start(audio)] if audio else [])])
    with ExitStack() as files:
        out = files.enter_context(av.open(str(part), "w", format="mp4", options={"movflags": "+faststart"}))
        first = files.enter_context(_segment(params["segments"][0]))
        pictures = out.add_stream_from_template(first.streams.video[0])
        pictures.metadata.clear()
        packets = [_pictures(params, pictures, reader.time_base, video_start - origin)]
        track = _Sound(out, audio, origin, copied) if audio is not None else None
        if track is not None:
            packets.append(track.packets(source))
        for packet in merge(*packets, key=_decoded_at):
            out.mux(packet)
    if track is None:
        return {"audio": "dropped" if source.streams.audio else "none", "audio_codec": None}
    return {"audio": "copied" if track.copied else "encoded", "audio_codec": track.codec}


def _decoded_at(packet: Packet[Any]) -> Fraction:
    return Fraction(packet.dts or 0) * packet.time_base


def _segment(path: str) -> InputContainer:
    return av.open(path, "r", format="nut")


def _pictures(
    params: dict[str, Any], stream: VideoStream, time_base: Fraction, shift_s: Fraction
) -> Iterator[Packet[Any]]:
    """The packets of all segments, each as long as the frame is on screen."""
    shift = round(shift_s / time_base)
    waiting: Packet[Any] | None = None
    last = 0
    for path in params["segments"]:
        with _segment(path) as segment:
            for packet in segment.demux(segment.streams.video[0]):
                if packet.pts is None:
                    continue
                at = round(packet.pts * packet.time_base / time_base) + shift
                packet.pts = packet.dts = at
                packet.time_base, packet.stream = time_base, stream
                if waiting is not None:
                    waiting.duration = at - last
                    yield waiting
                waiting, last = packet, at
    if waiting is not None:
        waiting.duration = max(1, round(params["end_s"] / time_base) + shift - last)
        yield waiting


def _sound_track(container: InputContainer) -> AudioStream | None:
    """The track that players choose: the default one, else the first."""
    tracks = [track for track in container.streams.audio if track.codec_context is not None]
    return next((t for t in tracks if t.disposition & Disposition.default), tracks[0] if tracks else None)


def _start(audio: AudioStream) -> Fraction:
    return (audio.start_time or 0) * (audio.time_base or Fraction(1, 1000))


class _Sound:
    """The sound track in the new file: copied where MP4 can hold it, else encoded to AAC."""

    def __init__(self, out: OutputContainer, audio: AudioStream, origin_s: Fraction, copied: tuple[str, ...]) -> None:
        self._audio = audio
        self._origin_s = origin_s
        name = audio.codec_context.codec.canonical_name
        self.copied = name in copied
        self.codec = name if self.copied else "aac"
        if self.copied:
            self._stream: AudioStream = out.add_stream_from_template(audio)
        else:
            rate = min(audio.codec_context.sample_rate or _MAX_AAC_RATE, _MAX_AAC_RATE)
            self._stream = out.add_stream("aac", rate=rate)
            self._stream.codec_context.layout = "mono" if audio.codec_context.channels == 1 else "stereo"
            self._stream.codec_context.bit_rate = AAC_BITS_PER_S
        self._stream.metadata.clear()

    def packets(self, source: InputContainer) -> Iterator[Packet[Any]]:
        """The packets of the new track. What cannot be decoded is left out."""
        return self._copied(source) if self.copied else self._encoded(source)

    def _copied(self, source: InputContainer) -> Iterator[Packet[Any]]:
        time_base = self._audio.time_base or Fraction(1, 1000)
        shift = round(self._origin_s / time_base)
        last: int | None = None
        for packet in source.demux(self._audio):
            if packet.pts is None or packet.dts is None:
                continue
            packet.pts, packet.dts = packet.pts - shift, packet.dts - shift
            if last is None or packet.dts > last:  # two packets of one time would not be accepted
                last = packet.dts
                packet.stream = self._stream
                yield packet

    def _encoded(self, source: InputContainer) -> Iterator[Packet[Any]]:
        codec = self._stream.codec_context
        resampler = av.AudioResampler(format="fltp", layout=codec.layout, rate=codec.sample_rate)
        for frame in _audio_frames(source, self._audio):
            if frame.pts is not None and frame.time_base is not None:
                frame.pts -= round(self._origin_s / frame.time_base)
            for piece in resampler.resample(frame):
                yield from self._stream.encode(piece)
        for piece in resampler.resample(None):
            yield from self._stream.encode(piece)
        yield from self._stream.encode(None)


def _audio_frames(source: InputContainer, audio: AudioStream) -> Iterator[av.AudioFrame]:
    for packet in source.demux(audio):
        try:
            frames = packet.decode()
        except av.FFmpegError:
            continue
        for frame in frames:
            if isinstance(frame, av.AudioFrame):
                yield frame


TASKS = {"video_segment": video_segment, "video_join": video_join}
