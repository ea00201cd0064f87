"""Videos written anew: the same frames at the same times, nothing of the source but pictures and sound."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import av
import numpy as np
import pytest
from av.video.reformatter import Colorspace
from tests.fakes.video_tasks import InThisProcess, paired_frames
from tests.fakes.videos import Clip, even_times, index_clip, read_index, scratched, uneven_times, write_clip

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.execution.pool import ChildPool
from sam2_mcp_worker.execution.port import TaskRunner
from sam2_mcp_worker.media import video_join, video_painter, video_write
from sam2_mcp_worker.media.video import VideoFacts, VideoFrame, probe_video, read_frames
from sam2_mcp_worker.media.video_write import Audio, PainterSpec, WrittenVideo, write_video

MS = Fraction(1, 1000)
NOTHING = PainterSpec("none")


class Desk:
    """Writes clips anew and looks at what came of it."""

    def __init__(self, decoders: TaskRunner, folder: Path) -> None:
        self.decoders = decoders
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir()
        self.out = folder / "out.mp4"
        self.progress: list[float] = []

    async def probe(self, path: Path) -> VideoFacts:
        return await probe_video(self.decoders, path, max_video_s=3600, timeout_s=100, job="t")

    async def write(self, path: Path, audio: Audio = "keep", painter: PainterSpec = NOTHING) -> WrittenVideo:
        return await write_video(
            self.decoders,
            path,
            await self.probe(path),
            painter,
            self.out,
            self.work,
            audio=audio,
            timeout_s=100,
            job="t",
            on_progress=self.progress.append,
        )

    async def frames(self, path: Path, times_s: list[float]) -> list[tuple[float, int | None]]:
        facts = await self.probe(path)
        frames = self.folder / "frames"
        frames.mkdir(exist_ok=True)
        found = []
        async for frame in read_frames(self.decoders, path, facts, times_s, frames, timeout_s=100, job="t"):
            assert isinstance(frame, VideoFrame), frame
            found.append((frame.time_s, read_index(frame.pixels.map_rgb())))
        return found


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(InThisProcess(), tmp_path)


@pytest.fixture
def child_desk(decoders: ChildPool, tmp_path: Path) -> Desk:
    return Desk(decoders, tmp_path)


Make = Callable[[Path], Clip]
# What is made of the sound, and the clip.
CLIPS: dict[str, tuple[str, Make]] = {
    "MP4 with AAC": ("copied", lambda d: index_clip(d / "a.mp4", audio=True)),
    "MP4 of uneven rate": ("none", lambda d: index_clip(d / "a.mp4", times=uneven_times(40))),
    "MP4 that starts at 1.5 s": ("copied", lambda d: index_clip(d / "a.mp4", start_s=1.5, audio=True)),
    "MKV of uneven rate with PCM": (
        "encoded",
        lambda d: index_clip(d / "a.mkv", times=uneven_times(40), time_base=MS, audio=True, audio_codec="pcm_s16le"),
    ),
    "WebM with Opus": (
        "copied",
        lambda d: index_clip(
            d / "a.webm", codec="libvpx-vp9", time_base=MS, audio=True, audio_codec="libopus", frames=30
        ),
    ),
    "MPEG-TS with AAC": ("copied", lambda d: index_clip(d / "a.ts", container="mpegts", start_s=1.5, audio=True)),
    "AVI with reordered frames": ("none", lambda d: index_clip(d / "a.avi", time_base=Fraction(1, 24))),
    "GIF": (
        "none",
        lambda d: index_clip(
            d / "a.gif",
            codec="gif",
            pix_fmt="rgb8",
            time_base=Fraction(1, 100),
            times=[Fraction(i, 10) for i in range(20)],
        ),
    ),
    "H.264 without a container": ("none", lambda d: index_clip(d / "a.h264", container="h264", fps=25)),
    "turned by 90 degrees": ("none", lambda d: index_clip(d / "a.mp4", rotation_ccw_deg=90)),
    "odd size": ("none", lambda d: index_clip(d / "a.mp4", size_px=(161, 97), pix_fmt="yuv444p")),
    "10 bits": ("none", lambda d: index_clip(d / "a.mkv", pix_fmt="yuv420p10le", time_base=MS)),
}


@pytest.mark.parametrize("budget_s", [100.0, 0.0], ids=["in one segment", "in many segments"])
@pytest.mark.parametrize("kind", CLIPS)
async def test_the_copy_has_the_same_frames_at_the_same_times(
    desk: Desk, kind: str, budget_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(video_write, "SEGMENT_BUDGET_S", budget_s)
    sound, make = CLIPS[kind]
    clip = make(desk.folder)
    written = await desk.write(clip.path)
    assert (written.frames, written.audio, written.damaged_s) == (len(clip.times_s), sound, ())
    assert written.bytes == desk.out.stat().st_size
    facts, source = await desk.probe(desk.out), await desk.probe(clip.path)
    assert (facts.width_px, facts.height_px, facts.rotation_deg) == (*clip.size_px, 0)
    assert facts.frame_count == len(clip.times_s)
    assert facts.duration_s == pytest.approx(source.duration_s, abs=0.002)
    found = await desk.frames(desk.out, [time_s + 0.002 for time_s in clip.times_s])
    assert [index for _, index in found] == list(range(len(clip.times_s)))
    assert [time_s for time_s, _ in found] == pytest.approx(list(clip.times_s), abs=6e-4)
    segments = list(desk.work.glob("*.nut"))
    assert len(segments) == (1 if budget_s else len(clip.times_s))
    assert desk.progress[-1] == pytest.approx(clip.times_s[-1], abs=6e-4)
    assert [path.name for path in desk.folder.glob("**/*.part")] == []


@pytest.mark.parametrize("kind", ["MP4 with AAC", "MKV of uneven rate with PCM", "WebM with Opus", "MPEG-TS with AAC"])
async def test_the_sound_stays_with_the_pictures(desk: Desk, kind: str) -> None:
    clip = CLIPS[kind][1](desk.folder)
    await desk.write(clip.path)
    before, after = sound_of(clip.path), sound_of(desk.out)
    assert after[0] == pytest.approx(before[0], abs=0.03)  # its start against that of the pictures
    assert after[1] == pytest.approx(before[1], abs=0.03)  # its length
    assert after[2] == pytest.approx(before[2], rel=0.1)  # its loudness


def sound_of(path: Path) -> tuple[float, float, float]:
    """Start after the pictures' and end after its own start in seconds, and loudness."""
    with av.open(str(path)) as source:
        pictures = source.streams.video[0]
        frames = list(source.decode(audio=0))
        assert pictures.start_time is not None and pictures.time_base is not None
        start_s = float(frames[0].time or 0) - float(pictures.start_time * pictures.time_base)
        wave = np.concatenate([frame.to_ndarray().ravel() for frame in frames]).astype(float)
        scale = 32768 if frames[0].format.name.startswith("s16") else 1
        end_s = float(frames[-1].time or 0) + frames[-1].samples / frames[-1].sample_rate - float(frames[0].time or 0)
        return start_s, end_s, float(np.sqrt((wave**2).mean()) / scale)


async def test_sound_that_an_edit_list_hides_does_not_come_along(desk: Desk) -> None:
    clip = index_clip(desk.folder / "clip.mp4", frames=24, fps=12, audio=True)
    data = bytearray(clip.path.read_bytes())
    media_time = data.rindex(b"elst") + 16  # of the track of sound: its first second is cut off
    data[media_time : media_time + 4] = (48_000).to_bytes(4, "big")
    clip.path.write_bytes(data)
    assert (await desk.write(clip.path)).audio == "copied"
    sizes = [_sound_sizes(path) for path in (clip.path, desk.out)]
    assert 0.4 * len(sizes[0]) < len(sizes[1]) < 0.6 * len(sizes[0])
    assert sizes[1][-1] == sizes[0][-1]


def _sound_sizes(path: Path) -> list[int]:
    with av.open(str(path)) as container:
        return [packet.size for packet in container.demux(audio=0) if packet.dts is not None]


async def test_sound_that_the_new_file_does_not_take_is_encoded(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(video_join, "COPIED_AUDIO", ("pcm_mulaw",))
    clip = index_clip(desk.folder / "a.mov", audio=True, audio_codec="pcm_mulaw")
    written = await desk.write(clip.path)
    assert (written.audio, written.audio_codec) == ("encoded", "aac")
    assert sound_of(desk.out)[2] == pytest.approx(sound_of(clip.path)[2], rel=0.1)


async def test_damaged_sound_is_passed_over(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(video_join, "COPIED_AUDIO", ())
    clip = index_clip(desk.folder / "a.mkv", time_base=MS, audio=True, audio_codec="flac", frames=96)
    data = bytearray(clip.path.read_bytes())
    with av.open(str(clip.path)) as source:
        for packet in list(source.demux(audio=0))[10:20]:
            assert packet.pos is not None
            data[packet.pos + 12 : packet.pos + packet.size] = b"\xff" * (packet.size - 12)
    clip.path.write_bytes(bytes(data))
    assert (await desk.write(clip.path)).audio == "encoded"
    assert sound_of(desk.out)[1] == pytest.approx(4, abs=0.1)  # what follows the gap is not early


async def test_dropped_sound_is_gone(desk: Desk) -> None:
    clip = index_clip(desk.folder / "a.mp4", audio=True)
    written = await desk.write(clip.path, audio="drop")
    assert (written.audio, written.audio_codec) == ("dropped", None)
    assert not (await desk.probe(desk.out)).has_audio


async def test_nothing_of_the_source_but_pictures_and_sound_is_taken_over(desk: Desk) -> None:
    secrets = {"title": "Secret-1", "comment": "Secret-2", "location": "+37.5665+126.9780/"}
    clip = index_clip(
        desk.folder / "a.mkv",
        time_base=MS,
        audio=True,
        metadata=secrets,
        track_metadata={"title": "Secret-3", "handler_name": "Secret-4"},
        chapter="Secret-5",
        attachment=b"Secret-6" * 9,
    )
    for word in ("Secret-1", "Secret-3", "Secret-5", "Secret-6"):
        assert word.encode() in clip.path.read_bytes()
    await desk.write(clip.path)
    data = desk.out.read_bytes()
    assert b"Secret" not in data
    assert b"+37.5665" not in data
    with av.open(str(desk.out)) as copy:
        assert [stream.type for stream in copy.streams] == ["video", "audio"]
        assert copy.chapters() == []


async def test_a_cancelled_writing_is_taken_up_behind_its_last_segment(
    child_desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(video_write, "SEGMENT_BUDGET_S", 0.0)
    clip = index_clip(child_desk.folder / "a.mp4", frames=96)
    begun = asyncio.Event()

    class Progress(list[float]):
        def append(self, time_s: float) -> None:
            super().append(time_s)
            if len(self) == 2:
                begun.set()

    child_desk.progress = Progress()
    task = asyncio.create_task(child_desk.write(clip.path))
    await begun.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert not child_desk.out.exists()
    done = json.loads((child_desk.work / "plan.json").read_bytes())
    child_desk.progress = []
    written = await child_desk.write(clip.path)
    assert written.frames == 96
    assert child_desk.progress[0] > done["last_s"]
    found = await child_desk.frames(child_desk.out, list(clip.times_s))
    assert [index for _, index in found] == list(range(96))


async def test_a_lost_segment_begins_the_work_anew(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    clip = index_clip(desk.folder / "a.mp4")
    await desk.write(clip.path)
    for segment in desk.work.glob("*.nut"):
        segment.unlink()
    assert (await desk.write(clip.path)).frames == 48
    (desk.work / "plan.json").write_text("{", encoding="utf-8")
    assert (await desk.write(clip.path)).frames == 48


async def test_a_painter_that_fails_leaves_nothing_half_written(desk: Desk) -> None:
    clip = index_clip(desk.folder / "a.mp4")
    tracks = desk.folder / "none.json"
    with pytest.raises(WorkerError) as caught:
        await desk.write(clip.path, painter=PainterSpec("outline", {"tracks_path": str(tracks)}))
    assert caught.value.code == "tracks_invalid"
    assert list(desk.work.iterdir()) == []


class FallingPainter:
    """Falls over in the third frame."""

    def __init__(self, params: dict[str, Any]) -> None:
        pass

    def paint(self, rgb: Any, index: int, time_s: float) -> Any:
        """See `Painter`."""
        if index == 2:
            raise WorkerError("fell_over", "in the third frame")
        return rgb


async def test_a_segment_that_fails_half_way_is_removed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(video_painter.PAINTERS, "falling", f"{__name__}:FallingPainter")
    monkeypatch.setitem(sys.modules, __name__, sys.modules.get(__name__) or _this_module())
    clip = index_clip(desk.folder / "a.mp4")
    with pytest.raises(WorkerError) as caught:
        await desk.write(clip.path, painter=PainterSpec("falling"))
    assert caught.value.code == "fell_over"
    assert list(desk.work.iterdir()) == []


def _this_module() -> ModuleType:
    module = ModuleType(__name__)
    module.__dict__.update(globals())
    return module


async def test_damaged_stretches_of_the_source_are_told(desk: Desk) -> None:
    grain = np.random.default_rng(5).integers(0, 200, size=(48, 96, 160, 3)).astype(np.uint8)
    clip = write_clip(desk.folder / "a.ts", list(grain), even_times(48, 24), container="mpegts", options={"g": "12"})
    written = await desk.write(scratched(clip, desk.folder / "b.ts", 0.5))
    assert written.damaged_s
    assert all(0.5 < start <= end < 1.6 for start, end in written.damaged_s)


async def test_a_video_without_frames_is_no_copy(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    clip = index_clip(desk.folder / "a.mp4", frames=6)
    facts = await desk.probe(clip.path)
    data = bytearray(clip.path.read_bytes())
    start, end = data.index(b"mdat") + 4, data.rindex(b"moov") - 4
    data[start:end] = bytes(end - start)
    clip.path.write_bytes(bytes(data))
    with pytest.raises(WorkerError) as caught:
        await write_video(desk.decoders, clip.path, facts, NOTHING, desk.out, desk.work, timeout_s=100, job="t")
    assert caught.value.code == "video_damaged"
    assert not desk.out.exists()


@pytest.mark.parametrize("matrix", [Colorspace.ITU601, Colorspace.ITU709])
@pytest.mark.parametrize("full_range", [False, True])
async def test_colours_survive_the_writing(desk: Desk, matrix: Colorspace, full_range: bool) -> None:
    picture = np.zeros((96, 160, 3), np.uint8)
    picture[:, :80], picture[:, 80:] = (200, 40, 60), (30, 90, 210)
    clip = write_clip(
        desk.folder / "a.mkv",
        [picture] * 8,
        even_times(8, 25),
        time_base=MS,
        matrix=matrix,
        full_range=full_range,
        options={"crf": "4"},
    )
    await desk.write(clip.path)
    pairs = list(paired_frames(clip.path, desk.out, (160, 96)))
    assert len(pairs) == 8
    for pair in pairs:
        assert pair.before is not None and pair.after is not None
        assert np.abs(pair.before[48, 20:60].astype(int) - pair.after[48, 20:60]).max() <= 4
        assert np.abs(pair.after[48, 100:140].astype(int) - (30, 90, 210)).max() <= 6


def test_pairs_name_frames_that_only_one_of_the_videos_has(tmp_path: Path) -> None:
    whole = index_clip(tmp_path / "a.mp4", times=[Fraction(i, 10) for i in range(6)])
    gaps = index_clip(tmp_path / "b.mp4", times=[Fraction(i, 10) for i in (0, 2, 3, 7)])
    pairs = list(paired_frames(whole.path, gaps.path, (160, 96)))
    assert [round(pair.time_s, 3) for pair in pairs] == [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7]
    assert [pair.after is None for pair in pairs] == [False, True, False, False, True, True, False]
    assert [pair.before is None for pair in pairs] == [False] * 6 + [True]
    later = list(paired_frames(whole.path, gaps.path, (160, 96), after_s=pairs[2].time_s))
    assert [pair.time_s for pair in later] == [pair.time_s for pair in pairs[3:]]


def test_every_painter_of_ours_is_found() -> None:
    from sam2_mcp_worker.media.video_painter import make_painter

    rgb: Any = np.zeros((4, 4, 3), np.uint8)
    assert make_painter("none", {}).paint(rgb, 0, 0.0) is rgb
