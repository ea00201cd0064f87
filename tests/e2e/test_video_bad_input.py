"""Odd and broken files through inspect_video and transcribe_audio: a clear error or an account of every second."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import RunningWorker
from tests.e2e.tools import Agent, ToolFailure
from tests.fakes.speech_sounds import join, said, silence, write_sound
from tests.fakes.videos import index_clip, scratched, sound_file, truncated, write_clip

Make = Callable[[Path], Path]
KEY = "00112233445566778899aabbccddeeff"
ENCRYPTION = {"encryption_scheme": "cenc-aes-ctr", "encryption_key": KEY, "encryption_kid": KEY}
TOO_LARGE = (8704, 4608)


def written(data: bytes) -> Make:
    def make(folder: Path) -> Path:
        (folder / "file.mp4").write_bytes(data)
        return folder / "file.mp4"

    return make


def without_an_index(folder: Path) -> Path:
    """An MP4 of which the end is missing, where everything stands that tells how to read it."""
    return truncated(index_clip(folder / "whole.mp4"), folder / "cut.mp4", 0.6)


REFUSED: dict[str, tuple[Make, str]] = {
    "text": (written(b"Dear reader,\n" * 99), r"^\[unsupported_video\]"),
    "a PDF": (written(b"%PDF-1.7\n" + b"x" * 999), r"^\[unsupported_video\].*PDF"),
    "an MP4 without its end": (without_an_index, r"^\[video_damaged\]"),
    "sound alone": (lambda folder: sound_file(folder / "sound.mp4"), r"^\[no_video_stream\].*transcribe_audio"),
    "encrypted": (
        lambda folder: index_clip(folder / "drm.mp4", container_options=ENCRYPTION).path,
        r"^\[video_encrypted\]",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
async def test_what_cannot_be_read_is_refused_with_its_reason(worker: RunningWorker, tmp_path: Path, kind: str) -> None:
    make, words = REFUSED[kind]
    agent = Agent(worker)
    with pytest.raises(ToolFailure, match=words):
        await agent.call("inspect_video", source=await agent.upload(make(tmp_path)))


@pytest.mark.parametrize("tool", ["inspect_video", "transcribe_audio"])
async def test_a_file_of_zero_bytes_is_said_to_be_empty(worker: RunningWorker, tool: str) -> None:
    path = Path(worker.services.settings.allowed_roots[0]) / "nothing.mp4"
    path.write_bytes(b"")
    with pytest.raises(ToolFailure, match=r"^\[upload_empty\].*0 bytes"):
        await Agent(worker).call(tool, source=str(path))


def renamed(folder: Path) -> Path:
    path = folder / "notes.txt"
    index_clip(path, container="mp4", frames=24)
    return path


def cut_matroska(folder: Path) -> Path:
    """Half of a file that can be read without its end."""
    return truncated(index_clip(folder / "whole.mkv", frames=96, gop=6), folder / "cut.mkv", 0.5)


READ: dict[str, tuple[Make, float, tuple[float, float]]] = {
    # How it is made, interval_s, and how long it lasts: how long the last frame stays is the muxer's guess.
    "the wrong extension": (renamed, 0.5, (1.0, 1.0)),
    "a frame a second": (lambda folder: index_clip(folder / "slow.mp4", frames=4, fps=1).path, 0.5, (3.0, 4.0)),
    "a thousand frames a second": (
        lambda folder: index_clip(folder / "fast.mkv", frames=300, fps=1000, size_px=(96, 64)).path,
        0.1,
        (0.299, 0.34),
    ),
    # As players do: what comes before the beginning of the edit list is not shown.
    "negative times": (lambda folder: index_clip(folder / "e.mp4", start_s=-0.5).path, 0.5, (1.49, 1.51)),
    "times from 1.5 s on": (
        lambda folder: index_clip(folder / "late.ts", frames=24, start_s=1.5).path,
        0.5,
        (1.0, 1.0),
    ),
    "one frame": (lambda folder: index_clip(folder / "one.mp4", frames=1).path, 0.5, (0.0, 0.1)),
    "a file without its end": (cut_matroska, 0.5, (1.0, 4.0)),
}


@pytest.mark.parametrize("kind", READ)
async def test_odd_videos_are_read_to_their_last_frame(worker: RunningWorker, tmp_path: Path, kind: str) -> None:
    make, interval_s, (least_s, most_s) = READ[kind]
    facts = await inspected(worker, make(tmp_path), interval_s=interval_s)
    assert least_s <= facts["duration_s"] <= most_s
    coverage = facts["coverage"]
    assert accounted(coverage)
    assert coverage["unreached_s"] == 0
    assert coverage["frames"]["sampled"] > 0


async def test_a_broken_middle_is_a_range_that_failed(worker: RunningWorker, tmp_path: Path) -> None:
    clip = index_clip(tmp_path / "whole.mp4", frames=96, gop=12, size_px=(320, 192))
    broken = scratched(clip, tmp_path / "broken.mp4", 0.4, length=600)
    facts = await inspected(worker, broken, interval_s=0.25, phrases=["이 문구는 어디에도 없습니다"])
    coverage = facts["coverage"]
    assert accounted(coverage)
    assert coverage["failed_s"] > 0
    assert all(span["reason"] for span in coverage["failed"])
    assert facts["phrases"][0]["state"] == "cannot_tell"


async def test_a_frame_that_is_too_large_is_refused_with_its_numbers(worker: RunningWorker, tmp_path: Path) -> None:
    paper = np.full((*TOO_LARGE[::-1], 3), 200, np.uint8)
    clip = write_clip(tmp_path / "large.mkv", [paper], [Fraction(0)], codec="mjpeg", pix_fmt="yuvj420p")
    with pytest.raises(ToolFailure, match=r"^\[video_too_large\].*8704 x 4608"):
        await inspected(worker, clip.path)


async def inspected(worker: RunningWorker, path: Path, **more: Any) -> dict[str, Any]:
    """The last result over all calls."""
    agent = Agent(worker)
    return (await agent.follow("inspect_video", source=await agent.upload(path), **more))[-1]


def accounted(coverage: dict[str, Any]) -> bool:
    """Whether the seconds of the range add up."""
    told_s = coverage["read_s"] + coverage["failed_s"] + coverage["unreached_s"]
    return abs(told_s - coverage["asked_s"]) < 0.005


def mute(folder: Path) -> Path:
    return index_clip(folder / "mute.mp4").path


def speech(path: Path, share: float = 1.0, **more: Any) -> Path:
    """Four seconds with words in the middle, and of that file as many bytes."""
    write_sound(path, join(silence(1), said("the premium may rise"), silence(1)), **more)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    return path


DEAF: dict[str, tuple[Make, str]] = {
    "text": (written(b"Dear reader,\n" * 99), r"^\[unsupported_sound\]"),
    "pictures alone": (mute, r"^\[no_audio_stream\].*inspect_video"),
    "an M4A without its end": (
        lambda folder: speech(folder / "cut.m4a", 0.6, codec="aac"),
        r"^\[sound_damaged\].*cut off",
    ),
    "encrypted": (
        lambda folder: index_clip(folder / "drm.mp4", audio=True, container_options=ENCRYPTION).path,
        r"^\[sound_encrypted\]",
    ),
}


@pytest.mark.parametrize("kind", DEAF)
async def test_what_cannot_be_heard_is_refused_with_its_reason(
    worker: RunningWorker, tmp_path: Path, kind: str
) -> None:
    make, words = DEAF[kind]
    agent = Agent(worker)
    with pytest.raises(ToolFailure, match=words):
        await agent.call("transcribe_audio", source=await agent.upload(make(tmp_path)))


ODD_SOUNDS: dict[str, tuple[Make, bool]] = {
    # How it is made, and whether a part of it is lost.
    "the wrong extension": (lambda folder: speech(folder / "speech.pdf", container="wav"), False),
    "an MP3 without its end": (lambda folder: speech(folder / "cut.mp3", 0.5, codec="mp3"), True),
    "times below zero": (lambda folder: index_clip(folder / "early.mp4", audio=True, start_s=-0.5).path, False),
}


@pytest.mark.parametrize("kind", ODD_SOUNDS)
async def test_every_second_of_an_odd_sound_is_accounted_for(worker: RunningWorker, tmp_path: Path, kind: str) -> None:
    """This worker has no engine that hears: silence is known all the same, and nothing is claimed of the rest."""
    make, lost = ODD_SOUNDS[kind]
    agent = Agent(worker)
    results = await agent.follow("transcribe_audio", source=await agent.upload(make(tmp_path)))
    coverage = results[-1]["coverage"]
    told_s = sum(coverage[f"{what}_s"] for what in ("heard", "silent", "unheard", "failed", "unreached"))
    assert abs(told_s - coverage["asked_s"]) < 0.005
    assert results[-1]["segments"] == []
    assert any("cut off" in span["reason"] for span in coverage["failed"]) == lost
    assert (results[-1]["speech"] == "none") == (kind == "times below zero")
