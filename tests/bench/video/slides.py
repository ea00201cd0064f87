"""A minute of 1080p as films of insurers look: slides with print, then moving pictures without. Its truth is known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from tests.bench.ocr.leaflet_text import BODY
from tests.fakes.claude_pages import load_font

SIZE_PX, FPS = (1920, 1080), 30
LENGTH_S = 60
SLIDE_S = 14
# The last seconds of each minute move, so that no two frames are the same.
MOVING_S = 4
TITLE_PX, LINE_PX, SMALL_PX = 72, 40, 20
_INK, _SOFT_INK = (30, 30, 40), (90, 90, 90)


@dataclass(frozen=True)
class Slide:
    """What is printed on it, and when it is shown, in seconds of the minute."""

    lines: tuple[str, ...]
    start_s: int
    end_s: int


def slides() -> list[Slide]:
    """Those of one minute."""
    starts = range(0, LENGTH_S - MOVING_S, SLIDE_S)
    return [Slide(_lines(number), start_s, start_s + SLIDE_S) for number, start_s in enumerate(starts)]


def _lines(number: int) -> tuple[str, ...]:
    """A title, a line and small print, all of which fit the width."""
    return f"보장 안내 {number + 1}", BODY[2 * number][:34], f"※ {BODY[2 * number + 1][:60]}"


@cache
def _slide_picture(number: int) -> NDArray[np.uint8]:
    width, height = SIZE_PX
    shade = np.linspace(235, 255, height).astype(np.uint8)
    picture = Image.fromarray(np.repeat(np.repeat(shade[:, None, None], width, axis=1), 3, axis=2))
    draw = ImageDraw.Draw(picture)
    title, line, small = _lines(number)
    draw.text((140, 260), title, _INK, load_font(TITLE_PX), anchor="ls")
    draw.text((140, 520), line, _INK, load_font(LINE_PX), anchor="ls")
    draw.text((140, 980), small, _SOFT_INK, load_font(SMALL_PX), anchor="ls")
    return np.array(picture)


@cache
def _texture() -> NDArray[np.uint8]:
    """Soft blobs, wider than the picture, so that it can pan over them."""
    noise = np.random.default_rng(5).integers(60, 200, (20, 60, 3)).astype(np.uint8)
    soft = Image.fromarray(noise).resize((SIZE_PX[0] + 1200, SIZE_PX[1]), Image.Resampling.BICUBIC)
    return np.array(soft)


def pictures() -> Iterator[NDArray[np.uint8]]:
    """All frames of the minute."""
    for index in range(LENGTH_S * FPS):
        time_s = index // FPS
        if time_s < LENGTH_S - MOVING_S:
            yield _slide_picture(time_s // SLIDE_S)
        else:
            pan = (index - (LENGTH_S - MOVING_S) * FPS) * 4
            yield np.ascontiguousarray(_texture()[:, pan : pan + SIZE_PX[0]])


def write_minute(path: Path) -> Path:
    """Encode it as H.264 with B-frames and a keyframe every 8 s, frame by frame."""
    time_base = Fraction(1, FPS * 512)
    with av.open(str(path), "w") as out:
        stream: Any = out.add_stream("libx264", rate=FPS)
        stream.width, stream.height, stream.pix_fmt = *SIZE_PX, "yuv420p"
        stream.codec_context.time_base = stream.time_base = time_base
        stream.options = {"g": "240", "bf": "2", "preset": "veryfast", "crf": "23"}
        for index, picture in enumerate(pictures()):
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.pts, frame.time_base = index * 512, time_base
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return path
