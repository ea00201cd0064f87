"""The pure parts around a tracking: the checked request, its record on disk, what is reported, frames on request."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.fanout import Coverage
from sam2_mcp_worker.media.mask_runs import mask_runs
from sam2_mcp_worker.media.masks import save_mask
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.rle import decode_runs, expand_runs
from sam2_mcp_worker.media.tracks_file import TrackedFrame, TrackedObject
from sam2_mcp_worker.media.video import LostFrame, VideoFacts, VideoFrame
from sam2_mcp_worker.pipelines.frame_feed import FrameFeed
from sam2_mcp_worker.pipelines.track_course import Course, TrackRequest, plan_course
from sam2_mcp_worker.pipelines.track_report import cover, fitting_frames, spacing_of, summarise, tracks_of
from sam2_mcp_worker.pipelines.track_run import frames_to_come
from sam2_mcp_worker.pipelines.track_state import TrackState
from sam2_mcp_worker.pipelines.video_facts import Video, guessed_times
from sam2_mcp_worker.track_store import TrackStore
from sam2_mcp_worker.uploads import StoredFile

FACTS = VideoFacts(
    width_px=320,
    height_px=180,
    duration_s=2.0,
    frame_count=48,
    fps=24,
    rotation_deg=0,
    start_s=0,
    codec="h264",
    container="mov",
    audio_codec=None,
    interlaced=False,
    stated_duration_s=None,
)
BOX = (10, 10, 50, 50)


def video(**facts: Any) -> Video:
    stored = StoredFile("file_" + "a" * 32, "a.mp4", 1, "ab" * 32, Path("a"))
    changed = VideoFacts(**{**{name: getattr(FACTS, name) for name in FACTS.__slots__}, **facts})
    return Video(stored, changed, [index / 24 for index in range(48)])


def course(clip: Video | None = None, **more: Any) -> Course:
    request = TrackRequest("file", **{"boxes": [list(BOX)], **more})
    return plan_course(request, clip or video(), "engine/1", 600)


def frame(time_s: float, *found: bool) -> TrackedFrame:
    return TrackedFrame(
        time_s,
        tuple(
            TrackedObject(n, BOX if seen else None, 9 if seen else 0, 0.5, "x" if seen else None)
            for n, seen in enumerate(found, 1)
        ),
    )


def test_every_argument_that_changes_what_is_tracked_changes_the_key() -> None:
    plain = course().key
    changed = [
        course(boxes=[[10, 10, 50, 51]]),
        course(quality="fast"),
        course(start_s=0.5),
        course(end_s=1.0),
        course(every_s=0.5),
        plan_course(TrackRequest("file", boxes=[list(BOX)]), video(), "engine/2", 600),
    ]
    assert len({plain, *(one.key for one in changed)}) == 7
    assert course(start_s=0.01).key == plain, "the same frame is on screen"


def test_a_video_that_was_cut_off_or_ends_early_is_said_to() -> None:
    assert any("cut off" in note for note in course(video(stated_duration_s=9.0)).notes)
    assert any("before end_s" in note for note in course(end_s=30.0).notes)
    assert course().notes == ()


def test_a_course_of_given_spacing_knows_its_frames() -> None:
    spaced = course(every_s=0.5)
    assert list(spaced.first_pool) == [12, 24, 36]
    assert not spaced.adaptive
    assert course().adaptive
    assert list(course(start_s=1.0).first_pool) == list(range(25, 48))


@st.composite
def states(draw: st.DrawFn) -> TrackState:
    indices = draw(st.sets(st.integers(0, 47), max_size=6))
    own = draw(st.sets(st.sampled_from(sorted(indices)))) if indices else set()
    return TrackState(
        propagation=draw(st.integers(1, 3)),
        pool=draw(st.none() | st.lists(st.integers(0, 47), max_size=4)),
        complete=draw(st.booleans()),
        current=draw(st.none() | st.integers(0, 47)),
        memory=draw(st.none() | st.just("memory-1-3.safetensors")),
        reached=draw(st.none() | st.integers(0, 47)),
        frames={index: frame(index / 24, True, False) for index in indices},
        failed=draw(st.dictionaries(st.integers(50, 60), st.just("frame_damaged: broken"), max_size=2)),
        own=own,
        frame_s=draw(st.none() | st.floats(0, 9)),
        thumbnail_px=draw(st.none() | st.just((320, 180))),
    )


@given(states())
def test_a_state_comes_back_from_its_record(state: TrackState) -> None:
    import json

    assert TrackState.from_record(json.loads(json.dumps(state.to_record()))) == state
    assert state.snapshot() == state


@pytest.mark.parametrize("spoil", [{"format": 0}, {"frames": 3}, {"frames": [[1, {}]]}, {"thumbnail_px": 5}])
def test_a_record_that_is_not_understood_is_none(spoil: dict[str, Any]) -> None:
    assert TrackState.from_record(None) is None
    assert TrackState.from_record({**TrackState(frames={1: frame(0.1, True)}).to_record(), **spoil}) is None


def test_what_is_not_in_the_saved_memory_is_to_be_repeated() -> None:
    state = TrackState(current=5, memory="m", own={2, 5, 7, 9}, reached=9)
    assert state.replay == [7, 9]
    state.forget_memory()
    assert state.replay == [2, 5, 7, 9]
    assert frames_to_come(state, course()) == list(range(10, 48))
    state.begin_propagation({4, 3})
    assert (state.propagation, state.replay, frames_to_come(state, course())) == (2, [], [3, 4])


def test_the_store_keeps_whole_records_and_nothing_of_damaged_ones(tmp_path: Path) -> None:
    store = TrackStore(tmp_path / "tracks")
    assert store.load("ab") is None
    store.save("ab", {"a": 1})
    assert store.load("ab") == {"a": 1}
    assert list(store.entries()) == [store.folder("ab")]
    (store.folder("ab") / "track.json").write_text("{", encoding="utf-8")
    assert store.load("ab") is None
    assert not (store.folder("ab") / "track.json").exists()


def test_objects_are_summed_up_over_tracked_frames_only() -> None:
    frames = [frame(0.0, False, False), frame(0.5, True, False), frame(1.5, True, False), frame(2.0, False, False)]
    seen, never = summarise(frames, 2)
    assert (seen.first_visible_s, seen.last_visible_s, seen.visible_share) == (0.5, 1.5, 0.5)
    assert (never.first_visible_s, never.last_visible_s, never.visible_share) == (None, None, 0)
    assert summarise([], 1)[0].visible_share == 0
    spacing = spacing_of(frames)
    assert spacing is not None
    assert (spacing.shortest_s, spacing.longest_s) == (0.5, 1.0)
    assert spacing_of(frames[:1]) is None


def test_the_coverage_names_failed_and_unreached_by_time() -> None:
    coverage: Coverage[int, TrackedFrame] = Coverage((0, 12, 24, 36), {0: frame(0, True)}, {12: WorkerError("a", "b")})
    found = cover(coverage, video().times_s)
    assert (found.planned, found.done, found.failed_times_s) == (4, 1, (0.5,))
    assert (found.unreached, found.unreached_from_s) == (2, 1.0)


def test_the_tracks_are_in_the_order_of_time() -> None:
    tracks = tracks_of(course(), {24: frame(1.0, True), 0: frame(0.0, False)}, {36, 12}, complete=False)
    assert [one.time_s for one in tracks.frames] == [0.0, 1.0]
    assert tracks.failed_times_s == (0.5, 1.5)
    assert (tracks.start_s, tracks.end_s, tracks.complete) == (0.0, 47 / 24, False)


@given(st.lists(st.floats(0, 100), unique=True, max_size=60).map(sorted), st.integers(1, 2000))
def test_what_a_result_has_room_for_is_spread_evenly(times: list[float], max_chars: int) -> None:
    frames = [frame(time_s, True) for time_s in times]
    shown = fitting_frames(frames, max_chars, lambda one: 50)
    assert len(shown) == min(len(frames), max(1, max_chars // 50))
    if len(shown) >= 2:
        assert (shown[0], shown[-1]) == (frames[0], frames[-1])


class Reader:
    """Decoding runs that were begun, and which of their frames were given."""

    def __init__(self, folder: Path, lost: int = -1) -> None:
        self.folder = folder
        self.lost = lost
        self.runs: list[list[int]] = []
        self.closed = 0

    async def read(self, indices: list[int]) -> AsyncGenerator[VideoFrame | LostFrame, None]:
        self.runs.append(indices)
        try:
            for number, index in enumerate(indices):
                if index == self.lost:
                    yield LostFrame(number, index / 24, "frame_damaged: broken")
                    continue
                path = self.folder / f"thumb-{index}"
                path.touch()
                yield VideoFrame(number, index / 24, index / 24, PixelFile(path, 1, 1), PixelFile(path, 1, 1))
        finally:
            self.closed += 1


async def test_frames_that_the_plan_dropped_are_passed_over_within_one_run(tmp_path: Path) -> None:
    reader = Reader(tmp_path, lost=6)
    feed = FrameFeed(reader.read)
    assert (await feed.get(0, ())).wanted_s == 0
    for index, likely in ((2, [4, 6, 8, 10]), (6, [8, 10]), (10, [])):
        assert (await feed.get(index, likely)).wanted_s == index / 24
    assert reader.runs == [[0], [2, 4, 6, 8, 10]]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["thumb-0", "thumb-10", "thumb-2"]
    assert (await feed.get(11, ())).wanted_s == 11 / 24
    await feed.close()
    await feed.close()
    assert (len(reader.runs), reader.closed) == (3, 3)


def test_masks_become_run_lengths_of_the_whole_picture(tmp_path: Path) -> None:
    inside = np.array([[True, False], [True, True]])
    save_mask(tmp_path / "1.png", inside, (3, 4, 5, 6))
    answer = mask_runs({"masks": [{"path": str(tmp_path / "1.png"), "box": [3, 4, 5, 6]}], "size": [9, 8]})
    mask = decode_runs(expand_runs(answer["counts"][0]), (9, 8))
    assert mask.box_xyxy_px == (3, 4, 5, 6)
    assert (mask.inside == inside).all()
    assert mask_runs({"masks": [], "size": [9, 8]}) == {"counts": []}


def test_where_a_container_gives_no_times_frames_are_looked_for_at_its_rate() -> None:
    times_s = guessed_times(FACTS)
    assert len(times_s) == 48
    assert times_s[:3] == [0.0, 2.0 / 48, 4.0 / 48]
    assert guessed_times(video(duration_s=0.0).facts) == [0.0]
