"""Small real videos whose every frame says which one it is, and one with moving shapes whose masks are known exactly.

clip = index_clip(tmp_path / "a.mp4", frames=48, gop=12)       # clip.times_s: true times since the first frame
read_index(rgb)                                                # which frame this is, from its pixels
moving_shapes(tmp_path / "s.mp4")                              # 6 s, 24 fps, with shape_mask(i, "disc", size)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from av.stream import Disposition
from av.video.reformatter import ColorRange, Colorspace
from numpy.typing import NDArray

Rgb = NDArray[np.uint8]

# 4 x 3 cells, the most significant bit top left: read the wrong way round, it is another number.
GRID = (4, 3)
BITS = GRID[0] * GRID[1]
# The number is written with a pattern added, so that no index gives a frame that is the same when turned.
_MARK = 0b1000_0000_0010
SHAPES_FPS = 24
SOUND_RATE = 48_000  # every codec takes it
SHAPES_FRAMES = 144
SHAPES_SIZE = (320, 180)


@dataclass(frozen=True, slots=True)
class Clip:
    """A video that was made, and what is true of it. `size_px` is upright."""

    path: Path
    times_s: tuple[float, ...]
    size_px: tuple[int, int]


def index_picture(index: int, size_px: tuple[int, int]) -> Rgb:
    """A frame that shows its index."""
    width, height = size_px
    bits = (index * 2 + 1) ^ _MARK
    rows = np.arange(height) * GRID[1] // height
    columns = np.arange(width) * GRID[0] // width
    place = rows[:, None] * GRID[0] + columns[None, :]
    lit = (bits >> (BITS - 1 - place)) & 1
    return np.repeat(np.where(lit, 225, 30).astype(np.uint8)[:, :, None], 3, axis=2)


def read_index(rgb: NDArray[Any]) -> int | None:
    """The index that a frame shows; None when it shows none."""
    height, width = rgb.shape[:2]
    bits = 0
    for place in range(BITS):
        row, column = divmod(place, GRID[0])
        x, y = (2 * column + 1) * width // (2 * GRID[0]), (2 * row + 1) * height // (2 * GRID[1])
        level = float(rgb[y - 2 : y + 3, x - 2 : x + 3].mean())
        if 90 < level < 165:
            return None
        bits = bits * 2 + (level >= 165)
    plain = bits ^ _MARK
    return plain // 2 if plain % 2 else None


def even_times(frames: int, fps: float) -> tuple[Fraction, ...]:
    """Presentation times of a constant frame rate."""
    rate = Fraction(fps).limit_denominator(1001)
    return tuple(Fraction(i) / rate for i in range(frames))


def uneven_times(frames: int, seed: int = 1) -> tuple[Fraction, ...]:
    """Times in whole milliseconds, 20 to 400 ms apart."""
    steps = np.random.default_rng(seed).choice([20, 33, 40, 100, 400], size=frames - 1)
    return tuple(Fraction(int(ms), 1000) for ms in np.concatenate(([0], np.cumsum(steps))))


def index_clip(
    path: Path,
    *,
    frames: int = 48,
    size_px: tuple[int, int] = (160, 96),
    times: Sequence[Fraction] | None = None,
    fps: float = 24,
    start_s: float = 0.0,
    rotation_ccw_deg: int = 0,
    audio: bool = False,
    gop: int = 12,
    b_frames: int = 2,
    **more: Any,
) -> Clip:
    """A video of numbered frames; `more` goes to `write_clip`. `size_px` is upright, after the rotation."""
    when = tuple(times) if times is not None else even_times(frames, fps)
    turns = rotation_ccw_deg // 90
    pictures = [np.rot90(index_picture(index, size_px), -turns) for index in range(len(when))]
    return write_clip(
        path,
        pictures,
        when,
        start_s=start_s,
        rotation_ccw_deg=rotation_ccw_deg,
        audio=audio,
        options={"g": str(gop), "bf": str(b_frames), **more.pop("options", {})},
        **more,
    )


def write_clip(
    path: Path,
    pictures: Sequence[Rgb],
    times: Sequence[Fraction],
    *,
    codec: str = "libx264",
    container: str | None = None,
    pix_fmt: str = "yuv420p",
    time_base: Fraction = Fraction(1, 90_000),
    start_s: float = 0.0,
    rotation_ccw_deg: int = 0,
    audio: bool = False,
    audio_codec: str = "aac",
    options: dict[str, str] | None = None,
    matrix: Colorspace = Colorspace.ITU601,
    full_range: bool = False,
    metadata: dict[str, str] | None = None,
    container_options: dict[str, str] | None = None,
    track_metadata: dict[str, str] | None = None,
    chapter: str = "",
    attachment: bytes = b"",
) -> Clip:
    """Encode pictures with exactly these times."""
    height, width = pictures[0].shape[:2]
    color_range = ColorRange.JPEG if full_range else ColorRange.MPEG
    with av.open(str(path), "w", format=container, options=container_options or {}) as out:
        out.metadata.update(metadata or {})
        stream: Any = out.add_stream(codec, rate=25)
        stream.width, stream.height, stream.pix_fmt = width, height, pix_fmt
        stream.codec_context.time_base = stream.time_base = time_base
        stream.options = options or {}
        stream.metadata.update(track_metadata or {})
        if pix_fmt.startswith("yuv"):
            stream.codec_context.color_range = int(color_range)
            stream.codec_context.colorspace = 1 if matrix == Colorspace.ITU709 else 6
        if rotation_ccw_deg:
            stream.set_display_rotation(rotation_ccw_deg)
        sound: Any = out.add_stream(audio_codec, rate=SOUND_RATE) if audio else None
        if chapter:
            out.set_chapters(
                [{"id": 1, "start": 0, "end": 9, "time_base": Fraction(1), "metadata": {"title": chapter}}]
            )
        if attachment:
            out.add_attachment("notes.txt", "text/plain", attachment)
        packets = _sound(sound, float(times[-1] - times[0]) + 0.04, start_s) if audio else []
        for picture, time in zip(pictures, times, strict=True):
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
            if pix_fmt.startswith("yuv"):
                frame = frame.reformat(format=pix_fmt, dst_colorspace=matrix, dst_color_range=color_range)
            frame.pts = round((time + Fraction(start_s)) / time_base)
            frame.time_base = time_base
            packets += stream.encode(frame)
        packets += stream.encode(None)
        for packet in sorted(packets, key=lambda p: p.dts * p.time_base):
            out.mux(packet)
    turned = rotation_ccw_deg % 180 == 90
    return Clip(path, tuple(float(t - times[0]) for t in times), (height, width) if turned else (width, height))


def sound_file(path: Path, *, cover: Path | None = None) -> Path:
    """A second of sound in an M4A, with or without a cover picture (JPEG)."""
    with av.open(str(path), "w", format="mp4") as out:
        stream = out.add_stream("aac", rate=SOUND_RATE)
        packets = _sound(stream, 1.0, 0.0)
        if cover is not None:
            source = av.open(str(cover))
            picture: Any = out.add_stream_from_template(source.streams.video[0])
            picture.disposition = Disposition.attached_pic
            packet = next(source.demux())
            packet.stream = picture
            packet.pts = packet.dts = 0
            out.mux(packet)
        for sound in packets:
            out.mux(sound)
    return path


def _sound(stream: Any, duration_s: float, start_s: float) -> list[Any]:
    """A sine tone of 440 Hz."""
    stream.layout = "mono"
    rate, chunk = SOUND_RATE, 960
    packets: list[Any] = []
    fmt = stream.codec_context.codec.audio_formats[0].name
    for start in range(0, int(duration_s * rate), chunk):
        wave = np.sin(2 * math.pi * 440 * np.arange(start, start + chunk) / rate) * 0.3
        samples = wave.astype(np.float32) if fmt.startswith("flt") else (wave * 32767).astype(np.int16)
        frame = av.AudioFrame.from_ndarray(samples[None, :], format=fmt, layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = rate, start + int(start_s * rate), Fraction(1, rate)
        packets += stream.encode(frame)
    return packets + stream.encode(None)


def shape_place(index: int, name: str, size_px: tuple[int, int] = SHAPES_SIZE) -> tuple[float, float, float]:
    """Centre x, y and radius (disc) or half side (square) of a shape in a frame."""
    width, height = size_px
    share = index / (SHAPES_FRAMES - 1)
    if name == "disc":
        return width * (0.2 + 0.6 * share), height * (0.5 + 0.25 * math.sin(2 * math.pi * share)), height * 0.13
    return width * (0.8 - 0.5 * share), height * 0.22, height * 0.1


def shape_mask(index: int, name: str, size_px: tuple[int, int] = SHAPES_SIZE) -> NDArray[np.bool_]:
    """The exact mask of the disc or the square; the disc lies above the square where they meet."""
    width, height = size_px
    y, x = np.mgrid[:height, :width]
    disc_x, disc_y, radius = shape_place(index, "disc", size_px)
    disc = (x - disc_x) ** 2 + (y - disc_y) ** 2 <= radius**2
    if name == "disc":
        return np.asarray(disc)
    square_x, square_y, half = shape_place(index, "square", size_px)
    return np.asarray((abs(x - square_x) <= half) & (abs(y - square_y) <= half) & ~disc)


def shapes_picture(index: int, size_px: tuple[int, int] = SHAPES_SIZE) -> Rgb:
    """A disc and a square on a quiet, textured ground."""
    width, height = size_px
    ground = np.random.default_rng(7).integers(0, 24, size=(height // 4 + 1, width // 4 + 1, 3))
    picture = ground.repeat(4, axis=0).repeat(4, axis=1)[:height, :width].astype(np.uint8)
    picture += np.linspace(90, 150, width).astype(np.uint8)[None, :, None]
    picture[shape_mask(index, "square", size_px)] = (40, 90, 210)
    picture[shape_mask(index, "disc", size_px)] = (235, 190, 40)
    return picture


def moving_shapes(
    path: Path, *, frames: int = SHAPES_FRAMES, size_px: tuple[int, int] = SHAPES_SIZE, **more: Any
) -> Clip:
    """24 fps; 144 frames are 6 s. Frame i shows exactly `shape_mask(i, "disc" | "square", size_px)`."""
    pictures = [shapes_picture(index, size_px) for index in range(frames)]
    options = {"g": "48", "crf": "12", **more.pop("options", {})}
    return write_clip(path, pictures, even_times(frames, SHAPES_FPS), options=options, **more)


def truncated(clip: Clip, path: Path, share: float) -> Path:
    """A copy that ends after this share of its bytes."""
    data = clip.path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    return path


def scratched(clip: Clip, path: Path, at_share: float, length: int = 400, seed: int = 3) -> Path:
    """A copy with some bytes overwritten."""
    data = bytearray(clip.path.read_bytes())
    at = int(len(data) * at_share)
    data[at : at + length] = np.random.default_rng(seed).bytes(min(length, len(data) - at))
    path.write_bytes(bytes(data))
    return path
