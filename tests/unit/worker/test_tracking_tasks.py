"""The tracking tasks of the child, called in this process: sessions by name, bounded, and lost ones named as such."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.sam2_tracking import Rgb, moving_shapes, small_tracker, telling_network

from sam2_mcp_worker.engines import tracking_tasks
from sam2_mcp_worker.engines.sam2 import Sam2Predictor
from sam2_mcp_worker.engines.sam2_encoder import Sam2Encoder
from sam2_mcp_worker.engines.sam2_tracker import Sam2Tracker
from sam2_mcp_worker.engines.tracking_tasks import TASKS
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.masks import load_mask
from sam2_mcp_worker.media.pixels import PixelFile

BOX = {"box": [40, 70, 100, 130], "points": []}
CLICK = {"box": None, "points": [[190, 160, True]]}
OBJECT_BYTES = 7 * 64 * 64 * 4 + 16 * 256 * 4  # of one object at 128 px: 64 tokens


@pytest.fixture(scope="module")
def tracker() -> Sam2Tracker:
    return small_tracker(telling_network())


@pytest.fixture
def child(tracker: Sam2Tracker) -> Iterator[None]:
    tracking_tasks.use(tracker, "sam2 random 0", 3 * OBJECT_BYTES)
    yield
    tracking_tasks._tracking = None


class Clip:
    """Frames on disk, and the tasks on them."""

    def __init__(self, folder: Path, frames: list[Rgb]) -> None:
        self.folder = folder
        self.pixels = []
        for index, rgb in enumerate(frames):
            path = folder / f"{index}.rgb"
            path.write_bytes(rgb.tobytes())
            self.pixels.append(PixelFile(path, rgb.shape[1], rgb.shape[0]).to_params())

    def start(self, session: str, *prompts: dict[str, Any]) -> list[dict[str, Any]]:
        params = {"pixels": self.pixels[0], "prompts": prompts, "quality": "fast", "mask_dir": str(self.folder)}
        return described(TASKS["track_start"]({"session": session, **params}))

    def step(self, session: str, index: int) -> list[dict[str, Any]]:
        params = {"session": session, "pixels": self.pixels[index], "mask_dir": str(self.folder)}
        return described(TASKS["track_step"](params))

    def save(self, session: str, name: str) -> None:
        TASKS["track_save"]({"session": session, "path": str(self.folder / name)})

    def restore(self, session: str, name: str) -> None:
        TASKS["track_restore"]({"session": session, "path": str(self.folder / name)})


def described(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The masks without the names of their files."""
    return [{key: value for key, value in mask.items() if key != "path"} for mask in answer["masks"]]


@pytest.fixture
def clip(tmp_path: Path, child: None) -> Clip:
    return Clip(tmp_path, moving_shapes(6))


def test_masks_come_in_the_order_of_their_prompts_at_the_size_of_the_frame(clip: Clip) -> None:
    params = {"pixels": clip.pixels[0], "prompts": [BOX, CLICK], "quality": "fast", "mask_dir": str(clip.folder)}
    first, second = TASKS["track_start"]({"session": "a", **params})["masks"]
    assert described({"masks": [second]}) == clip.start("b", CLICK)
    for mask in (first, second):
        x0, y0, x1, y1 = mask["box"]
        assert 0 <= x0 < x1 <= 256
        assert load_mask(Path(mask["path"])).shape == (y1 - y0, x1 - x0)


def test_sessions_go_on_independently(clip: Clip) -> None:
    clip.start("alone", BOX)
    alone = [clip.step("alone", index) for index in (1, 2, 3)]
    clip.start("a", BOX)
    clip.start("b", CLICK)
    mixed = []
    for index in (1, 2, 3):
        mixed.append(clip.step("a", index))
        clip.step("b", index)
    assert mixed == alone


def test_a_restored_session_goes_on_as_if_nothing_had_happened(clip: Clip) -> None:
    clip.start("a", BOX, CLICK)
    clip.step("a", 1)
    clip.save("a", "memory")
    went_on = [clip.step("a", index) for index in (2, 3, 4)]
    clip.restore("a", "memory")
    assert [clip.step("a", index) for index in (2, 3, 4)] == went_on


def test_a_session_that_is_started_again_begins_anew(clip: Clip) -> None:
    first = clip.start("a", BOX)
    second = clip.step("a", 1)
    clip.step("a", 2)
    assert clip.start("a", BOX) == first
    assert clip.step("a", 1) == second


def test_the_longest_unused_session_goes_when_there_is_no_room(clip: Clip) -> None:
    for session in ("a", "b", "c"):
        clip.start(session, BOX)
    clip.step("a", 1)
    clip.save("b", "memory")
    clip.step("c", 1)
    clip.start("d", BOX)
    with pytest.raises(WorkerError, match="track_state_lost"):
        clip.step("a", 2)
    clip.step("b", 1)


def test_more_objects_than_ever_fit_are_refused_at_the_start(clip: Clip) -> None:
    with pytest.raises(WorkerError, match=r"track_too_large.*4 objects") as refusal:
        clip.start("a", *[BOX] * 4)
    assert "SAM2_MCP_TRACK_MEMORY_BYTES" in str(refusal.value)


def test_unknown_and_dropped_sessions_are_lost(clip: Clip) -> None:
    with pytest.raises(WorkerError, match="track_state_lost"):
        clip.step("never", 1)
    clip.start("a", BOX)
    TASKS["track_drop"]({"session": "a"})
    TASKS["track_drop"]({"session": "a"})
    for task in (lambda: clip.step("a", 1), lambda: clip.save("a", "memory")):
        with pytest.raises(WorkerError, match="track_state_lost"):
            task()


def test_a_step_whose_masks_cannot_be_written_loses_the_session(clip: Clip) -> None:
    """It has moved on by a frame, and whoever repeats the step would move it twice."""
    clip.start("a", BOX)
    params = {"session": "a", "pixels": clip.pixels[1], "mask_dir": str(clip.folder / "missing")}
    with pytest.raises(WorkerError, match="storage_failed"):
        TASKS["track_step"](params)
    with pytest.raises(WorkerError, match="track_state_lost"):
        clip.step("a", 1)


def test_a_frame_that_is_gone_changes_nothing(clip: Clip) -> None:
    clip.start("a", BOX)
    expected = clip.step("a", 1)
    clip.start("a", BOX)
    (clip.folder / "2.rgb").unlink()
    with pytest.raises(WorkerError, match="pixels_unreadable"):
        clip.step("a", 2)
    assert clip.step("a", 1) == expected


def test_a_disk_that_refuses_is_said_so(clip: Clip) -> None:
    clip.start("a", BOX)
    (clip.folder / "file").write_bytes(b"")
    with pytest.raises(WorkerError, match="storage_failed"):
        clip.save("a", "file/memory")
    clip.step("a", 1)


def test_the_set_up_tracks_with_the_network_of_the_pictures(tmp_path: Path) -> None:
    network = telling_network()
    encoder = Sam2Encoder(network, sha256="0" * 64, threads=1, records_dir=tmp_path)
    predictor = Sam2Predictor(network, encoder, identity="sam2 random 0")
    tracking_tasks.setup(predictor, {"threads": 1, "track_memory_bytes": 5000})
    try:
        assert tracking_tasks._loaded().identity == predictor.identity
        assert tracking_tasks._loaded().tracker.shapes()["accurate"].tokens == 32 * 32
        with pytest.raises(WorkerError, match="track_state_lost"):
            TASKS["track_save"]({"session": "a", "path": str(tmp_path / "memory")})
    finally:
        tracking_tasks._tracking = None


def test_tasks_before_the_set_up_are_refused() -> None:
    with pytest.raises(WorkerError, match="engine_not_ready"):
        TASKS["track_drop"]({"session": "a"})


def test_preparing_changes_no_session_and_is_done_once(clip: Clip) -> None:
    clip.start("alone", BOX)
    alone = clip.step("alone", 1)
    clip.start("a", BOX)
    for _ in range(2):
        assert TASKS["track_prepare"]({"quality": "fast"}) == {}
    assert clip.step("a", 1) == alone
