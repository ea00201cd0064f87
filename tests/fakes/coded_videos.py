"""Videos of every kind whose frames carry their number: what is read of them can be compared with what they are.

clip = CODED["MPEG-TS that starts at 1.5 s"](tmp_path)      # clip.times_s; read_index(rgb) gives the place in it
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate, pairwise
from pathlib import Path

from av.video.reformatter import Colorspace
from PIL import Image
from tests.fakes.videos import Clip, index_clip, index_picture, uneven_times

MS = Fraction(1, 1000)
CS = Fraction(1, 100)


def webp_clip(path: Path, frames: int = 30, size_px: tuple[int, int] = (160, 96)) -> Clip:
    """An animated WebP of uneven rate."""
    times = uneven_times(frames + 1)
    pictures = [Image.fromarray(index_picture(index, size_px)) for index in range(frames)]
    lengths_ms = [int((end - start) * 1000) for start, end in pairwise(times)]
    pictures[0].save(path, "WEBP", save_all=True, append_images=pictures[1:], duration=lengths_ms, lossless=True)
    starts_ms = list(accumulate(lengths_ms, initial=0))[:-1]
    return Clip(path, tuple(start_ms / 1000 for start_ms in starts_ms), size_px)


CODED: dict[str, Callable[[Path], Clip]] = {
    "MP4": lambda d: index_clip(d / "a.mp4", audio=True),
    "MP4 of uneven rate": lambda d: index_clip(d / "a.mp4", times=uneven_times(60)),
    "MP4 that starts at 1.5 s": lambda d: index_clip(d / "a.mp4", times=uneven_times(60), start_s=1.5),
    "MKV of uneven rate": lambda d: index_clip(d / "a.mkv", times=uneven_times(60), time_base=MS),
    "WebM": lambda d: index_clip(
        d / "a.webm", codec="libvpx-vp9", time_base=MS, times=uneven_times(40), audio=True, audio_codec="libopus"
    ),
    "MPEG-TS that starts at 1.5 s": lambda d: index_clip(
        d / "a.ts", container="mpegts", start_s=1.5, audio=True, frames=96
    ),
    "AVI": lambda d: index_clip(d / "a.avi", codec="mpeg4", time_base=Fraction(1, 24), b_frames=0),
    "AVI with reordered frames": lambda d: index_clip(d / "a.avi", time_base=Fraction(1, 24)),
    "FLV": lambda d: index_clip(d / "a.flv", time_base=MS),
    "MPEG": lambda d: index_clip(d / "a.mpg", codec="mpeg2video", container="mpeg", time_base=Fraction(1, 24)),
    "GIF": lambda d: index_clip(
        d / "a.gif", codec="gif", pix_fmt="rgb8", time_base=Fraction(1, 100), times=[Fraction(i, 10) for i in range(30)]
    ),
    "H.264 without a container": lambda d: index_clip(d / "a.h264", container="h264", fps=25),
    "turned by 90 degrees": lambda d: index_clip(d / "a.mp4", rotation_ccw_deg=90),
    "turned by 180 degrees": lambda d: index_clip(d / "a.mp4", rotation_ccw_deg=180),
    "turned by 270 degrees": lambda d: index_clip(d / "a.mp4", rotation_ccw_deg=270),
    "odd size": lambda d: index_clip(d / "a.mp4", size_px=(161, 97), pix_fmt="yuv444p"),
    "10 bits": lambda d: index_clip(d / "a.mkv", pix_fmt="yuv420p10le", time_base=MS),
    "full range": lambda d: index_clip(d / "a.mp4", full_range=True, matrix=Colorspace.ITU709),
    "HEVC": lambda d: index_clip(d / "a.mp4", codec="libx265", options={"x265-params": "log-level=none"}),
    "APNG": lambda d: index_clip(d / "a.png", codec="apng", container="apng", pix_fmt="rgb24", time_base=MS),
    "animated WebP": lambda d: webp_clip(d / "a.webp"),
    "one keyframe for all": lambda d: index_clip(d / "a.mp4", gop=999),
    "1 frame a second": lambda d: index_clip(d / "a.mp4", frames=12, fps=1),
    "1000 frames a second": lambda d: index_clip(d / "a.mp4", frames=200, fps=1000),
}
