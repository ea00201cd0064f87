"""Writes a video anew in a decoder child: one segment of painted frames at a time (video_join.py puts them together).

H.264 (x264) with the time stamps of the source, frame by frame. No reordered frames: their decoding order would have
to be joined across segments, and what they save is about a tenth of the bytes.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import av
from av.codec.context import Flags
from av.container import OutputContainer
from av.video.reformatter import ColorRange, Colorspace

from sam2_mcp_worker.disk import storage_errors
from sam2_mcp_worker.media.video_file import DECODER_THREADS
from sam2_mcp_worker.media.video_painter import Painter, make_painter
from sam2_mcp_worker.media.video_pixels import QUICK, Rgb, Turn, matrix_of, to_rgb
from sam2_mcp_worker.media.video_reader import Decoded, VideoReader

# x264: `veryfast` takes about 20 ms of one core for a quiet frame of 1080p, most of what a frame costs; slower presets
# multiply that for a few per cent of the bytes. CRF 20 shows no loss to the eye.
OPTIONS = {"preset": "veryfast", "crf": "20", "bf": "0"}
# A keyframe at least every so many seconds, so that players can jump.
KEYFRAME_S = 4
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


TASKS = {"video_segment": video_segment}
