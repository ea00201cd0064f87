"""Videos read through decoder tasks: facts, exact frames, damage, and what is said of files that are no videos.

Most run the tasks in this process; what is about processes runs in real decoder children.
"""

from __future__ import annotations

import asyncio
import bisect
import socket
import struct
from contextlib import aclosing
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from av.video.reformatter import Colorspace
from PIL import Image
from tests.fakes.coded_videos import CODED, MS
from tests.fakes.video_tasks import InThisProcess
from tests.fakes.videos import (
    Clip,
    even_times,
    index_clip,
    index_picture,
    read_index,
    scratched,
    sound_file,
    truncated,
    write_clip,
)

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.execution.pool import ChildPool
from sam2_mcp_worker.execution.port import TaskRunner
from sam2_mcp_worker.media import video, video_child, video_file
from sam2_mcp_worker.media.video import LostFrame, VideoFacts, VideoFrame, list_times, probe_video, read_frames


class Desk:
    """Sends files through the decoders."""

    def __init__(self, decoders: TaskRunner, folder: Path) -> None:
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
def desk(tmp_path: Path) -> Desk:
    return Desk(InThisProcess(), tmp_path)


@pytest.fixture
def child_desk(decoders: ChildPool, tmp_path: Path) -> Desk:
    return Desk(decoders, tmp_path)


@pytest.mark.parametrize("kind", CODED)
async def test_the_frame_on_screen_at_any_time_is_the_right_one(desk: Desk, kind: str) -> None:
    clip = CODED[kind](desk.folder)
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


async def test_times_that_were_told_give_their_own_frames(desk: Desk) -> None:
    clip = index_clip(desk.folder / "a.mp4", frames=30, times=even_times(30, 29.97))
    times_s = await list_times(desk.decoders, clip.path, timeout_s=100, job="t")
    assert times_s == pytest.approx(clip.times_s, abs=1e-5)
    assert [found[1] for found in await desk.read(clip.path, times_s) if isinstance(found, tuple)] == list(range(30))


async def test_frames_come_in_steps_with_small_pictures(desk: Desk) -> None:
    await check_steps(desk)


async def test_frames_come_in_steps_from_a_real_child(child_desk: Desk) -> None:
    await check_steps(child_desk)


async def check_steps(chosen: Desk) -> None:
    clip = index_clip(chosen.folder / "a.mp4", frames=40)
    facts = await chosen.probe(clip.path)
    kept = chosen.folder / "kept"
    kept.mkdir()
    shown = []
    frames = read_frames(
        chosen.decoders, clip.path, facts, clip.times_s, kept, timeout_s=100, job="t", keep=True, thumbnail_px=80
    )
    async for frame in frames:
        assert isinstance(frame, VideoFrame)
        assert frame.thumbnail is not None
        assert (frame.thumbnail.width_px, frame.thumbnail.height_px) == (80, 48)
        shown.append((read_index(frame.pixels.map_rgb()), read_index(frame.thumbnail.map_rgb())))
    assert shown == [(index, index) for index in range(40)]
    assert len(list(kept.iterdir())) == 80


async def test_behind_the_end_the_last_frame_stays_on_screen(desk: Desk) -> None:
    clip = index_clip(desk.folder / "a.mp4")
    found = await desk.read(clip.path, [1.9, 50.0, 50.0])
    assert [one[1] for one in found if isinstance(one, tuple)] == [45, 47, 47]


async def test_no_wanted_time_is_no_frame(desk: Desk) -> None:
    assert await desk.read(index_clip(desk.folder / "a.mp4").path, []) == []


async def test_steps_are_bounded_by_the_bytes_they_write(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    clip = index_clip(desk.folder / "a.mp4")
    monkeypatch.setattr(video, "STEP_BYTES", 160 * 96 * 3 * 5)
    sizes: list[int] = []
    run = desk.decoders.run

    async def counting(task: str, params: dict[str, Any], **more: Any) -> dict[str, Any]:
        sizes.append(len(params.get("times_s", ())))
        return await run(task, params, **more)

    monkeypatch.setattr(desk.decoders, "run", counting)
    assert len(await desk.read(clip.path, list(clip.times_s))) == 48
    assert sizes[1:4] == [2, 4, 5]
    assert max(sizes) == 5


async def test_a_step_ends_after_its_budget_with_one_frame_at_least(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    clip = index_clip(desk.folder / "a.mp4")
    monkeypatch.setattr(video, "STEP_BUDGET_S", 0.0)
    found = await desk.read(clip.path, list(clip.times_s[::6]))
    assert [one[1] for one in found if isinstance(one, tuple)] == list(range(0, 48, 6))


async def test_an_abandoned_reading_leaves_the_decoder_to_others(child_desk: Desk) -> None:
    clip = index_clip(child_desk.folder / "a.mp4")
    facts = await child_desk.probe(clip.path)
    out = child_desk.folder / "frames"
    out.mkdir()
    frames = read_frames(child_desk.decoders, clip.path, facts, clip.times_s, out, timeout_s=100, job="t")
    async with aclosing(frames):
        async for frame in frames:
            assert frame.index == 0
            break
    assert not [task for task in asyncio.all_tasks() if "_Steps" in repr(task)]
    assert all(path.stat().st_size == 160 * 96 * 3 for path in out.glob("*.rgb"))
    assert await child_desk.probe(clip.path) == facts


async def test_a_cancelled_reading_leaves_no_half_frame(child_desk: Desk) -> None:
    clip = index_clip(child_desk.folder / "a.mp4")
    facts = await child_desk.probe(clip.path)
    out = child_desk.folder / "frames"
    out.mkdir()
    arrived = asyncio.Event()

    async def consume() -> None:
        async for _ in read_frames(
            child_desk.decoders, clip.path, facts, clip.times_s, out, timeout_s=100, job="t", keep=True
        ):
            arrived.set()

    task = asyncio.create_task(consume())
    await arrived.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert all(path.stat().st_size == 160 * 96 * 3 for path in out.glob("*.rgb"))
    assert (await child_desk.probe(clip.path)).frame_count == 48


NOISY = (240, 144)


def noisy_clip(path: Path, **more: Any) -> Clip:
    """A clip with enough bytes a frame that a scratch hits some of them and not their container."""
    grain = np.random.default_rng(5).integers(-20, 20, size=(60, NOISY[1], NOISY[0], 3))
    pictures = [
        (index_picture(index, NOISY).astype(int) + grain[index]).clip(0, 255).astype(np.uint8) for index in range(60)
    ]
    return write_clip(path, pictures, even_times(60, 24), options={"g": "12", "bf": "2"}, **more)


@pytest.mark.parametrize(("name", "more"), [("a.mp4", {}), ("a.ts", {"container": "mpegts"})])
async def test_damage_costs_the_frames_it_touches_and_is_named(desk: Desk, name: str, more: dict[str, Any]) -> None:
    clip = noisy_clip(desk.folder / name, **more)
    lost = right = 0
    for share in (0.3, 0.5, 0.6):
        path = scratched(clip, desk.folder / f"scratched-{name}", share)
        for index, found in enumerate(await desk.read(path, [time_s + 0.002 for time_s in clip.times_s])):
            if isinstance(found, LostFrame):
                assert found.reason.startswith("frame_damaged: ")
                lost += 1
            else:
                # What the decoder takes for whole may show rubbish, but never another frame.
                assert found[1] in (index, None)
                right += found[1] == index
    assert lost >= 3
    assert right >= 120


async def test_what_follows_damage_in_an_avi_has_no_time_any_more(desk: Desk) -> None:
    clip = noisy_clip(desk.folder / "a.avi", codec="mpeg4", time_base=Fraction(1, 24))
    path = scratched(clip, desk.folder / "b.avi", 0.5, length=4000)
    found = await desk.read(path, list(clip.times_s))
    first_lost = next(index for index, one in enumerate(found) if isinstance(one, LostFrame))
    right = [index for index, one in enumerate(found) if isinstance(one, tuple) and one[1] == index]
    assert right == list(range(first_lost))


async def test_a_cut_off_recording_says_so(desk: Desk) -> None:
    clip = noisy_clip(desk.folder / "a.mkv", time_base=MS)
    facts = await desk.probe(truncated(clip, desk.folder / "b.mkv", 0.5))
    assert facts.stated_duration_s == pytest.approx(2.5, abs=0.1)
    assert 0.5 < facts.duration_s < 2
    found = await desk.read(desk.folder / "b.mkv", [0.5, 2.4])
    assert isinstance(found[0], tuple)


async def test_an_mp4_without_its_index_is_damaged(desk: Desk) -> None:
    clip = index_clip(desk.folder / "a.mp4")
    error = await desk.refused(truncated(clip, desk.folder / "b.mp4", 0.6))
    assert error.code == "video_damaged"
    assert "cut off" in error.what


async def test_a_video_without_a_whole_frame_is_damaged(desk: Desk) -> None:
    clip = index_clip(desk.folder / "a.mp4", frames=6)
    data = bytearray(clip.path.read_bytes())
    start, end = data.index(b"mdat") + 4, data.rindex(b"moov") - 4
    data[start:end] = bytes(end - start)
    assert (await desk.refused(bytes(data))).code == "video_damaged"


SDP = (
    "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video {port} RTP/AVP 96\na=rtpmap:96 H264/90000\n"
)
MPD = (
    '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT1S">'
    '<Period><AdaptationSet><Representation id="1" bandwidth="1"><BaseURL>{url}</BaseURL></Representation>'
    "</AdaptationSet></Period></MPD>"
)
HOSTILE = {
    "an HLS playlist": "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n{url}\n#EXTINF:1,\n{path}\n#EXT-X-ENDLIST\n",
    "a list of other files": "ffconcat version 1.0\nfile '{path}'\nfile '{url}'\n",
    "a session description": SDP,
    "an XML file": MPD,
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("suffix", ["mp4", "m3u8", "ffconcat", "sdp", "mpd"])
async def test_files_that_name_others_open_neither_file_nor_socket(desk: Desk, kind: str, suffix: str) -> None:
    other = index_clip(desk.folder / "other.ts", container="mpegts")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        port = server.getsockname()[1]
        text = HOSTILE[kind].format(path=other.path, url=f"http://127.0.0.1:{port}/a.ts", port=port)
        path = desk.folder / f"video.{suffix}"
        path.write_text(text, encoding="utf-8")
        error = await desk.refused(path)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert error.code == "unsupported_video"
    assert kind in error.what


@pytest.mark.parametrize(
    ("data", "code", "words"),
    [
        (b"", "video_damaged", "0 bytes"),
        (b"Dear reader,\n" * 99, "unsupported_video", "not a video"),
        (b"%PDF-1.7\n" + b"x" * 999, "unsupported_video", "a PDF"),
        (b"PK\x03\x04" + bytes(999), "unsupported_video", "ZIP"),
        (bytes(9999), "unsupported_video", "not a video"),
        (np.random.default_rng(0).bytes(99_999), "unsupported_video", "not a video"),
        (b"\x1a\x45\xdf\xa3" + bytes(999), "video_damaged", "beginning"),
        (b"\0\0\0\x18ftypavif" + bytes(99), "unsupported_video", "a picture"),
    ],
)
async def test_files_that_are_no_videos_are_named(desk: Desk, data: bytes, code: str, words: str) -> None:
    error = await desk.refused(data)
    assert (error.code, words in error.what) == (code, True), error.public_text


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "BMP"])
async def test_pictures_are_no_videos(desk: Desk, kind: str) -> None:
    Image.new("RGB", (64, 64), (9, 99, 9)).save(desk.folder / "picture", kind)
    assert (await desk.refused(desk.folder / "picture")).code == "unsupported_video"


async def test_sound_alone_is_no_video(desk: Desk) -> None:
    error = await desk.refused(sound_file(desk.folder / "a.m4a"))
    assert error.code == "no_video_stream"
    assert "only sound" in error.what


async def test_the_cover_of_a_song_is_no_video(desk: Desk) -> None:
    Image.new("RGB", (64, 64), (9, 99, 9)).save(desk.folder / "cover.jpg")
    path = sound_file(desk.folder / "a.m4a", cover=desk.folder / "cover.jpg")
    assert (await desk.refused(path)).code == "no_video_stream"


async def test_encrypted_pictures_are_named(desk: Desk) -> None:
    key = "00112233445566778899aabbccddeeff"
    encryption = {"encryption_scheme": "cenc-aes-ctr", "encryption_key": key, "encryption_kid": key}
    clip = index_clip(desk.folder / "a.mp4", container_options=encryption)
    assert (await desk.refused(clip.path)).code == "video_encrypted"


async def test_pictures_that_nothing_decodes_are_named(desk: Desk) -> None:
    clip = index_clip(desk.folder / "a.mp4")
    error = await desk.refused(clip.path.read_bytes().replace(b"avc1\0\0", b"zzz1\0\0"))
    assert (error.code, "nothing here decodes" in error.what) == ("unsupported_video", True)


async def test_sound_that_nothing_decodes_is_sound_all_the_same(desk: Desk) -> None:
    clip = index_clip(desk.folder / "a.mp4", audio=True)
    clip.path.write_bytes(clip.path.read_bytes().replace(b"mp4a\0\0", b"zz4a\0\0").replace(b"esds", b"zsds"))
    assert (await desk.probe(clip.path)).audio_codec == "unknown"


@pytest.mark.parametrize("kind", ["MP4", "MKV of uneven rate", "MPEG-TS that starts at 1.5 s", "AVI", "WebM"])
async def test_whatever_is_changed_in_a_file_ends_in_frames_or_in_an_error_for_agents(
    child_desk: Desk, kind: str
) -> None:
    whole = CODED[kind](child_desk.folder).path.read_bytes()
    path = child_desk.folder / "changed"
    for seed in range(12):
        rng = np.random.default_rng(seed)
        data = bytearray(whole)
        for at in rng.integers(0, len(data), size=4):
            length = int(rng.choice([1, 4, 40]))
            data[at : at + length] = b"" if rng.random() < 0.3 else rng.bytes(len(data[at : at + length]))
        path.write_bytes(bytes(data))
        try:
            found = await child_desk.read(path, [0.0, 0.5, 1.2])
        except WorkerError as error:
            assert error.code != "internal"
        else:
            assert len(found) == 3


async def test_limits_are_told_with_their_numbers(desk: Desk) -> None:
    clip = index_clip(desk.folder / "a.mp4")
    error = await desk.refused(clip.path, max_video_s=1.0)
    assert (error.code, error.rule) == ("video_too_long", "at most 1 s")
    error = await desk.refused(clip.path, max_pixels=10_000)
    assert (error.code, "160 x 96 px" in error.what) == ("video_too_large", True)


async def test_facts_of_a_turned_video_with_sound(desk: Desk) -> None:
    clip = index_clip(desk.folder / "a.mp4", rotation_ccw_deg=270, audio=True, start_s=1.5)
    facts = await desk.probe(clip.path)
    assert facts.duration_s == pytest.approx(2, abs=0.01)
    assert facts.has_audio
    assert facts == VideoFacts(
        width_px=160,
        height_px=96,
        duration_s=facts.duration_s,
        frame_count=48,
        fps=24.0,
        rotation_deg=90,
        start_s=1.5,
        codec="h264",
        container="mov",
        audio_codec="aac",
        interlaced=False,
        stated_duration_s=None,
    )


async def test_a_file_too_large_to_be_looked_through_has_its_header_believed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    clip = index_clip(desk.folder / "a.mp4")
    monkeypatch.setattr(video_child, "SCAN_S", -1.0)
    facts = await desk.probe(clip.path)
    assert facts.frame_count is None
    assert facts.duration_s == pytest.approx(2, abs=0.01)


@pytest.mark.parametrize("matrix", [Colorspace.ITU601, Colorspace.ITU709])
@pytest.mark.parametrize("full_range", [False, True])
@pytest.mark.parametrize("pix_fmt", ["yuv420p", "yuv444p", "yuv444p10le"])
async def test_colours_are_those_of_the_picture(desk: Desk, matrix: Colorspace, full_range: bool, pix_fmt: str) -> None:
    picture = np.zeros((96, 160, 3), np.uint8)
    colours = [(200, 30, 30), (30, 200, 30), (30, 30, 200), (240, 240, 240), (120, 120, 120)]
    for column, colour in enumerate(colours):
        picture[:, column * 32 : column * 32 + 32] = colour
    clip = write_clip(
        desk.folder / "a.mkv",
        [picture] * 3,
        even_times(3, 25),
        time_base=MS,
        matrix=matrix,
        full_range=full_range,
        pix_fmt=pix_fmt,
        options={"crf": "4"},
    )
    facts = await desk.probe(clip.path)
    async for frame in read_frames(desk.decoders, clip.path, facts, [0.0], desk.folder, timeout_s=100, job="t"):
        assert isinstance(frame, VideoFrame)
        for column, colour in enumerate(colours):
            seen = frame.pixels.map_rgb()[48, column * 32 + 16].astype(int)
            assert np.abs(seen - colour).max() <= 6


async def test_transparent_pictures_lie_on_white(desk: Desk) -> None:
    half = Image.new("RGBA", (64, 48), (0, 0, 0, 0))
    half.paste((200, 0, 0, 255), (0, 0, 32, 48))
    other = Image.new("RGBA", (64, 48), (0, 90, 0, 255))
    half.save(desk.folder / "a.png", "PNG", save_all=True, append_images=[other], duration=100)
    facts = await desk.probe(desk.folder / "a.png")
    async for frame in read_frames(
        desk.decoders, desk.folder / "a.png", facts, [0.0], desk.folder, timeout_s=100, job="t"
    ):
        assert isinstance(frame, VideoFrame)
        assert frame.pixels.map_rgb()[20, 10].tolist() == [200, 0, 0]
        assert frame.pixels.map_rgb()[20, 50].tolist() == [255, 255, 255]


async def test_a_stream_that_changes_its_size_keeps_the_coordinates_of_its_first_frame(desk: Desk) -> None:
    parts = [
        index_clip(desk.folder / f"{size[0]}.ts", container="mpegts", frames=24, size_px=size, start_s=start).path
        for size, start in (((160, 96), 1.0), ((320, 192), 2.0))
    ]
    path = desk.folder / "both.ts"
    path.write_bytes(b"".join(part.read_bytes() for part in parts))
    facts = await desk.probe(path)
    assert (facts.width_px, facts.height_px) == (160, 96)
    found = await desk.read(path, [0.51, 1.6])
    assert [one[1] for one in found if isinstance(one, tuple)] == [12, 14]


async def test_a_bomb_of_a_frame_is_refused_and_the_next_file_is_read(child_desk: Desk) -> None:
    """A GIF of 60,000 x 60,000 px in 40 bytes."""
    screen = struct.pack("<HHBBB", 60_000, 60_000, 0x80, 0, 0) + bytes(6)
    frame = b"," + struct.pack("<HHHHB", 0, 0, 60_000, 60_000, 0) + b"\x02\x02\x44\x01\x00"
    error = await child_desk.refused(b"GIF89a" + screen + frame + b";")
    assert (error.code, "larger than 35 MP" in error.what) == ("video_damaged", True)
    assert (await child_desk.probe(index_clip(child_desk.folder / "b.mp4").path)).frame_count == 48


@pytest.mark.parametrize("demuxer", ["hls", "concat"])
def test_a_demuxer_that_opens_other_files_would_be_refused_them(tmp_path: Path, demuxer: str) -> None:
    """The locks behind the list of demuxers."""
    other = index_clip(tmp_path / "other.ts", container="mpegts")
    kind = "an HLS playlist" if demuxer == "hls" else "a list of other files"
    path = tmp_path / "list.mp4"
    path.write_text(HOSTILE[kind].format(path=other.path, url=other.path), encoding="utf-8")
    options = {"safe": "0", "extension_picky": "0", "protocol_whitelist": "none"}
    with path.open("rb") as file, pytest.raises((av.FFmpegError, PermissionError)):
        av.open(video_file._OwnBytes(file), format=demuxer, io_open=video_file._refuse, container_options=options)


async def test_a_video_that_was_replaced_by_rubbish_has_no_frame_any_more(desk: Desk) -> None:
    clip = index_clip(desk.folder / "a.mp4", frames=6)
    facts = await desk.probe(clip.path)
    data = bytearray(clip.path.read_bytes())
    start, end = data.index(b"mdat") + 4, data.rindex(b"moov") - 4
    data[start:end] = bytes(end - start)
    clip.path.write_bytes(bytes(data))
    frames = read_frames(desk.decoders, clip.path, facts, [0.0, 0.1], desk.folder, timeout_s=100, job="t")
    found = [frame async for frame in frames]
    assert [type(frame) for frame in found] == [LostFrame, LostFrame]


async def test_a_step_without_an_answer_is_an_error_and_no_endless_loop(desk: Desk) -> None:
    clip = index_clip(desk.folder / "a.mp4", frames=6)
    facts = await desk.probe(clip.path)

    class Mute:
        async def run(self, task: str, params: dict[str, Any], *, timeout_s: float, job: str) -> dict[str, Any]:
            return {"frames": []}

    with pytest.raises(WorkerError):
        async for _ in read_frames(Mute(), clip.path, facts, [0.0], desk.folder, timeout_s=100, job="t"):
            raise AssertionError("nothing was read")


def test_every_demuxer_on_the_list_exists() -> None:
    known = {name for names in av.formats_available for name in names.split(",")}
    assert set(video_file.CONTAINERS) <= known
    assert set(video_file.CONTAINERS).isdisjoint(
        {"hls", "concat", "dash", "sdp", "rtsp", "rtp", "lavfi", "image2", "tty"}
    )
