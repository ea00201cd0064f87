"""Memories of a tracking: what is kept, and files that are whole, of the same weights, or refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.engines import sam2_memory
from sam2_mcp_worker.engines.ports import Quality
from sam2_mcp_worker.engines.sam2_memory import (
    HEADER_KEY,
    FrameMemory,
    MemoryShape,
    ObjectMemory,
    TrackSession,
    load_session,
    save_session,
)
from sam2_mcp_worker.errors import WorkerError

TOKENS = 4
IDENTITY = "sam2 tiny 01234567"
SHAPES: dict[Quality, MemoryShape] = {"accurate": MemoryShape(TOKENS, 6), "fast": MemoryShape(TOKENS, 3)}


def frame(number: int) -> FrameMemory:
    return FrameMemory(np.full((TOKENS, 64), number, np.float32), np.full(256, number, np.float32))


def session_after(frames: int, quality: Quality = "accurate", objects: int = 2) -> TrackSession:
    memories = [ObjectMemory(frame(0)) for _ in range(objects)]
    for number in range(1, frames):
        for memory in memories:
            memory.remember(frame(number), SHAPES[quality].past_memories)
    return TrackSession(quality, memories, frames)


def numbers(session: TrackSession) -> list[tuple[list[int], list[int]]]:
    """Which frames each object remembers, by features and by pointers."""
    return [
        ([int(f[0, 0]) for f in memory.features()], [int(p[0]) for p in memory.pointers()])
        for memory in session.objects
    ]


def test_the_prompt_and_the_newest_frames_are_kept() -> None:
    [(features, pointers)] = numbers(session_after(30, objects=1))
    assert features == [0, 29, 28, 27, 26, 25, 24]
    assert pointers == [0, *range(29, 14, -1)]


@pytest.mark.parametrize("quality", ["accurate", "fast"])
@pytest.mark.parametrize("frames", [1, 2, 5, 40])
def test_a_saved_session_comes_back_as_it_was(tmp_path: Path, frames: int, quality: Quality) -> None:
    session = session_after(frames, quality)
    save_session(session, tmp_path / "memory", identity=IDENTITY)
    loaded = load_session(tmp_path / "memory", IDENTITY, SHAPES)
    assert (loaded.quality, loaded.frames, loaded.nbytes) == (quality, frames, session.nbytes)
    assert numbers(loaded) == numbers(session)
    for memories in (session, loaded):
        memories.objects[0].remember(frame(99), SHAPES[quality].past_memories)
    assert numbers(loaded) == numbers(session)


@given(data=st.data())
def test_a_changed_file_is_refused_or_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("memory") / "memory"
    session = session_after(3, objects=1)
    save_session(session, path, identity=IDENTITY)
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content[place] ^= data.draw(st.integers(1, 255))
    else:
        del content[place:]
    path.write_bytes(content)
    try:
        loaded = load_session(path, IDENTITY, SHAPES)
    except WorkerError as error:
        assert error.code == "track_state_lost"
    else:
        assert (numbers(loaded), loaded.frames, loaded.quality) == (numbers(session), 3, "accurate")


def test_missing_and_foreign_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "memory"
    for content in (None, b"", b"\xff" * 64, safetensors.numpy.save({"0.features": np.zeros((1, 4, 64), np.float32)})):
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(WorkerError, match="track_state_lost"):
            load_session(path, IDENTITY, SHAPES)


def test_memories_of_other_weights_or_another_version_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_session(session_after(3), tmp_path / "memory", identity=IDENTITY)
    with pytest.raises(WorkerError, match="other weights"):
        load_session(tmp_path / "memory", "sam2 tiny 89abcdef", SHAPES)
    monkeypatch.setattr(sam2_memory, "FORMAT_VERSION", sam2_memory.FORMAT_VERSION + 1)
    with pytest.raises(WorkerError, match="another version"):
        load_session(tmp_path / "memory", IDENTITY, SHAPES)


def test_a_file_of_frames_of_another_size_is_refused(tmp_path: Path) -> None:
    save_session(session_after(3), tmp_path / "memory", identity=IDENTITY)
    with pytest.raises(WorkerError, match="track_state_lost"):
        load_session(tmp_path / "memory", IDENTITY, {"accurate": MemoryShape(TOKENS + 1, 6)})


def test_a_file_far_beyond_any_tracking_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_session(session_after(3), tmp_path / "memory", identity=IDENTITY)
    monkeypatch.setattr(sam2_memory, "MAX_FILE_BYTES", 100)
    with pytest.raises(WorkerError, match="track_state_lost"):
        load_session(tmp_path / "memory", IDENTITY, SHAPES)


def test_the_header_says_what_the_file_is(tmp_path: Path) -> None:
    save_session(session_after(3), tmp_path / "memory", identity=IDENTITY)
    with safetensors.safe_open(tmp_path / "memory", framework="numpy") as file:
        header = json.loads(file.metadata()[HEADER_KEY])
    assert {key: header[key] for key in ("version", "identity", "quality", "frames", "objects")} == {
        "version": 1,
        "identity": IDENTITY,
        "quality": "accurate",
        "frames": 3,
        "objects": 2,
    }
