"""Puts encoded segments and the sound of their source into one MP4, in a decoder child.

Pictures are copied; sound is, where MP4 can hold it, and encoded to AAC elsewhere. Nothing else of the source is
taken over: no metadata, chapters, subtitles, attachments, cover pictures, further sound tracks or data streams.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from fractions import Fraction
from heapq import merge
from pathlib import Path
from typing import Any

import av
from av import Packet
from av.audio.stream import AudioStream
from av.container import InputContainer, OutputContainer
from av.stream import Disposition
from av.video.stream import VideoStream

from sam2_mcp_worker.disk import storage_errors
from sam2_mcp_worker.media.video_reader import VideoReader

# Sound that MP4 holds as it is. Everything else is encoded to AAC.
COPIED_AUDIO = ("aac", "mp3", "ac3", "eac3", "opus", "alac", "flac")
AAC_BITS_PER_S = 160_000
_MAX_AAC_RATE = 48_000


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
        for packet in _heard(source.demux(self._audio)):
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


def _heard(packets: Iterable[Packet[Any]]) -> Iterator[Packet[Any]]:
    """Without what an edit list cuts off, which would come along unheard; one packet stays for the decoder's run-up."""
    run_up: Packet[Any] | None = None
    for packet in packets:
        if packet.is_discard:
            run_up = packet
            continue
        if run_up is not None:
            yield run_up
            run_up = None
        yield packet


def _audio_frames(source: InputContainer, audio: AudioStream) -> Iterator[av.AudioFrame]:
    for packet in source.demux(audio):
        try:
            frames = packet.decode()
        except av.FFmpegError:
            continue
        for frame in frames:
            if isinstance(frame, av.AudioFrame):
                yield frame


TASKS = {"video_join": video_join}
