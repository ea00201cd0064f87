"""Animated WebP, which libavformat cannot read, as a lossless film in memory that it can.

So everything that reads videos reads these as well: times are the sums of the frames' durations, pictures what Pillow
composes, and the last frame keeps its length.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import av
import numpy as np
from PIL import Image

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.image_child import CODEC_ERRORS
from sam2_mcp_worker.media.pixel_writer import check_pixels

# Durations of WebP are whole milliseconds.
_TICK = Fraction(1, 1000)
# Frames of no length are shown all the same; browsers give them this long.
_LEAST_MS = 10
# Pixels of all frames: 72 of 1080p, 600 of 500 x 500. They take up to 10 s and 270 MB.
MOST_PIXELS = 150_000_000


def is_animated_webp(head: bytes) -> bool:
    """Whether a file that begins like this (21 bytes) says so."""
    return head[:4] == b"RIFF" and head[8:16] == b"WEBPVP8X" and len(head) > 20 and bool(head[20] & 0b10)


def as_film(path: Path, max_pixels: int) -> io.BufferedReader:
    """The same pictures at the same times as PNG in a QuickTime file.

    Raises:
        WorkerError: video_damaged, video_too_large.
    """
    status = path.stat()
    film = _film(path, (status.st_ino, status.st_size, status.st_mtime_ns), max_pixels)
    return io.BufferedReader(io.BytesIO(film))


@lru_cache(maxsize=1)  # files are opened for each step
def _film(path: Path, version: tuple[int, ...], max_pixels: int) -> bytes:
    film = io.BytesIO()
    with path.open("rb") as file:
        check_pixels("video_too_large", "a frame", *_canvas(file.read(30)), max_pixels)
    try:
        with Image.open(path, formats=["WEBP"]) as image, av.open(film, "w", format="mov") as out:
            check_pixels("video_too_large", "all frames", image.width, image.height * _frames(image), MOST_PIXELS)
            stream: Any = out.add_stream("png", rate=1 / _TICK)
            stream.width, stream.height = image.size
            stream.pix_fmt, stream.options = "rgba", {"compression_level": "1"}
            stream.codec_context.time_base = stream.time_base = _TICK
            for packet in _packets(image, stream):
                out.mux(packet)
    except CODEC_ERRORS as error:
        raise WorkerError(
            "video_damaged",
            "a frame of this animated WebP cannot be decoded",
            next_step="Upload the file again, or convert it to MP4",
            private=repr(error),
        ) from error
    return film.getvalue()


def _canvas(head: bytes) -> tuple[int, int]:
    """Width and height that the header states, before Pillow allocates them."""
    return 1 + int.from_bytes(head[24:27], "little"), 1 + int.from_bytes(head[27:30], "little")


def _packets(image: Any, stream: Any) -> Iterator[Any]:
    at_ms = 0
    for number in range(_frames(image)):
        image.seek(number)
        frame = av.VideoFrame.from_ndarray(np.asarray(image.convert("RGBA")), format="rgba")
        frame.pts, frame.time_base = at_ms, _TICK
        length_ms = max(_LEAST_MS, int(image.info.get("duration", 0)))
        at_ms += length_ms
        for packet in stream.encode(frame):
            packet.duration = length_ms
            yield packet
    yield from stream.encode(None)


def _frames(image: Any) -> int:
    return int(image.n_frames)
