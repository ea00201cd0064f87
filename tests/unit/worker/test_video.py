"""Videos read through real decoder children: facts, exact frames, and what is said of files that are none."""

from __future__ import annotations

import bisect
from collections.abc import AsyncIterator, Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from av.video.reformatter import Colorspace
from tests.fakes.videos import Clip, index_clip, read_index, uneven_times

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.execution.pool import ChildPool
from sam2_mcp_worker.media.decoder import DECODER_MEMORY_LIMIT_BYTES, DECODER_MODULE
from sam2_mcp_worker.media.video import LostFrame, VideoFacts, VideoFrame, probe_video, read_frames

MS = Fraction(1, 1000)


@pytest.fixture(scope="module")
async def decoders() -> AsyncIterator[ChildPool]:
    async with ChildPool(
        "decoder", DECODER_MODULE, size=1, config={}, memory_limit_bytes=DECODER_MEMORY_LIMIT_BYTES
    ) as pool:
        yield pool


class Desk:
    """Sends files through the decoders."""

    def __init__(self, decoders: ChildPool, folder: Path) -> None:
        self.decoders = decoders
        self.folder = folder

    async def probe(self, path: Path, **limits: Any) -> VideoFacts:
        limits = {"max_video_s": 3600, **limits}
        return await probe_video(self.decoders, path, timeout_s=100, job="t", **limits)

    async def refused(self, data: bytes | Path, **limits: Any) -> WorkerError:
        path = data if isinstance(data, Path) else self.folder / "video.mp4"
        if isinstance(data, bytes):
            path.write_bytes(data)
        with pytest.raises(WorkerError) as caught:
            await self.probe(path, **limits)
        return caught.value

    async def read(self, path: Path, times_s: list[float]) -> list[tuple[float, int | None] | LostFrame]:
        """The own time and the shown index of each frame, or why it is lost."""
        facts = await self.probe(path)
        out = self.folder / "frames"
        out.mkdir(exist_ok=True)
        found: list[tuple[float, int | None] | LostFrame] = []
        async for frame in read_frames(self.decoders, path, facts, times_s, out, timeout_s=100, job="t"):
            assert frame.index == len(found)
            assert frame.wanted_s == times_s[frame.index]
            if isinstance(frame, VideoFrame):
                found.append((frame.time_s, read_index(frame.pixels.map_rgb())))
            else:
                found.append(frame)
        assert list(out.iterdir()) == []
        return found


@pytest.fixture
def desk(decoders: ChildPool, tmp_path: Path) -> Desk:
    return Desk(decoders, tmp_path)


CLIPS: dict[str, Callable[[Path], Clip]] = {
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
}


@pytest.mark.parametrize("kind", CLIPS)
async def test_the_frame_on_screen_at_any_time_is_the_right_one(desk: Desk, kind: str) -> None:
    clip = CLIPS[kind](desk.folder)
    facts = await desk.probe(clip.path)
    assert (facts.width_px, facts.height_px) == clip.size_px
    assert facts.frame_count == len(clip.times_s)
    assert clip.times_s[-1] <= facts.duration_s <= clip.times_s[-1] + 0.5
    # In the middle of what each frame takes on screen, and in one go as well as by a seek.
    ends = [*clip.times_s[1:], clip.times_s[-1] + 0.02]
    wanted = [(start + end) / 2 for start, end in zip(clip.times_s, ends, strict=True)]
    for times_s in (wanted, wanted[-1:], wanted[len(wanted) // 2 :: 7], wanted[::19]):
        for wanted_s, found in zip(times_s, await desk.read(clip.path, times_s), strict=True):
            index = bisect.bisect_right(clip.times_s, wanted_s) - 1
            assert isinstance(found, tuple), found
            assert found[0] == pytest.approx(clip.times_s[index], abs=6e-4)
            assert found[1] == index
