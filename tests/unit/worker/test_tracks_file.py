"""The tracks artifact: what is written is read again, and nothing else is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media import tracks_file
from sam2_mcp_worker.media.tracks_file import TrackedFrame, TrackedObject, Tracks, parse_tracks, read_tracks

SIZE = (64, 48)


@st.composite
def objects(draw: st.DrawFn, number: int) -> TrackedObject:
    if draw(st.booleans()):
        return TrackedObject(number, None, 0, 0.0, None)
    x0, y0 = draw(st.integers(0, SIZE[0] - 1)), draw(st.integers(0, SIZE[1] - 1))
    box = (x0, y0, draw(st.integers(x0 + 1, SIZE[0])), draw(st.integers(y0 + 1, SIZE[1])))
    return TrackedObject(number, box, draw(st.integers(0, 100)), draw(st.floats(0, 1.1)), draw(st.sampled_from("AB")))


@st.composite
def any_tracks(draw: st.DrawFn) -> Tracks:
    count = draw(st.integers(1, 3))
    times = sorted(draw(st.sets(st.floats(0, 100), max_size=5)))
    frames = tuple(TrackedFrame(time_s, tuple(draw(objects(n + 1)) for n in range(count))) for time_s in times)
    return Tracks("ab" * 32, *SIZE, 100.0, 0.0, 100.0, "fast", count, draw(st.booleans()), frames, (1.5,))


@given(any_tracks())
def test_what_is_written_is_read_again(tracks: Tracks) -> None:
    assert parse_tracks(tracks.to_bytes()) == tracks


def sample() -> dict[str, Any]:
    frames = tuple(
        TrackedFrame(
            time_s,
            (TrackedObject(1, (2, 3, 10, 12), 40, 0.9, "A1"), TrackedObject(2, None, 0, 0.0, None)),
        )
        for time_s in (0.0, 0.5)
    )
    fields: dict[str, Any] = json.loads(Tracks("0" * 64, *SIZE, 2.0, 0.0, 1.0, "fast", 2, True, frames).to_bytes())
    return fields


WRONG: dict[str, Any] = {
    "another format": lambda d: d.update(format="sam2-mcp/tracks/0"),
    "no hash": lambda d: d.update(source_sha256="xyz"),
    "a width of none": lambda d: d.update(width_px=0),
    "a width in words": lambda d: d.update(width_px="64"),
    "a width that is true": lambda d: d.update(width_px=True),
    "a giant picture": lambda d: d.update(height_px=10**9),
    "times that fall": lambda d: d["frames"].reverse(),
    "a negative time": lambda d: d["frames"][0].update(time_s=-1),
    "a time in words": lambda d: d["frames"][0].update(time_s="1"),
    "a missing object": lambda d: d["frames"][0]["objects"].pop(),
    "swapped objects": lambda d: d["frames"][0]["objects"].reverse(),
    "a box outside": lambda d: d["frames"][0]["objects"][0].update(box_xyxy_px=[0, 0, 65, 10]),
    "a reversed box": lambda d: d["frames"][0]["objects"][0].update(box_xyxy_px=[10, 0, 2, 10]),
    "a box of fractions": lambda d: d["frames"][0]["objects"][0].update(box_xyxy_px=[0.5, 0, 2, 10]),
    "a short box": lambda d: d["frames"][0]["objects"][0].update(box_xyxy_px=[1, 2]),
    "a mask without a box": lambda d: d["frames"][0]["objects"][0].update(box_xyxy_px=None),
    "a box without a mask": lambda d: d["frames"][0]["objects"][0].update(counts=None),
    "a mask of numbers": lambda d: d["frames"][0]["objects"][0].update(counts=[1, 2]),
    "a mask in Korean": lambda d: d["frames"][0]["objects"][0].update(counts="마스크"),
    "a quality of no number": lambda d: d["frames"][0]["objects"][0].update(predicted_iou=float("nan")),
    "a complete of 1": lambda d: d.update(complete=1),
    "no frames": lambda d: d.pop("frames"),
    "frames that are a number": lambda d: d.update(frames=3),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_tracks_are_refused(name: str) -> None:
    fields = sample()
    parse_tracks(json.dumps(fields).encode())
    WRONG[name](fields)
    with pytest.raises(WorkerError, match=r"\[tracks_invalid\].*track_video"):
        parse_tracks(json.dumps(fields).encode())


@pytest.mark.parametrize(
    "data", [b"", b"\xff\xfe", b"[]", b"null", b"[" * 100_000, b'{"format": "sam2-mcp/tracks/1", "width_px": 1e999}']
)
def test_bytes_that_are_no_tracks_are_refused(data: bytes) -> None:
    with pytest.raises(WorkerError, match="tracks_invalid"):
        parse_tracks(data)


def test_a_file_is_read_up_to_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = json.dumps(sample()).encode()
    path = tmp_path / "tracks.json"
    path.write_bytes(data)
    assert len(read_tracks(path).frames) == 2
    monkeypatch.setattr(tracks_file, "MAX_TRACKS_BYTES", len(data) - 1)
    with pytest.raises(WorkerError, match="tracks_invalid"):
        read_tracks(path)
    with pytest.raises(WorkerError, match="cannot be read"):
        read_tracks(tmp_path / "gone.json")
