"""track_video on a real worker: frames, times, coverage, cursors and artifacts, with a tracker that follows colours.

The network itself is tried in test_track_video_sam2.py; here every pixel of the answer is known.
"""

from __future__ import annotations

import asyncio
import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tests.conftest import RunningWorker, serving
from tests.e2e.tools import Agent, ToolFailure
from tests.fakes.colour_tracker import ColourTracker
from tests.fakes.videos import (
    SHAPES_SIZE,
    Clip,
    even_times,
    index_clip,
    moving_shapes,
    scratched,
    shape_mask,
    shape_place,
    shapes_picture,
    uneven_times,
    write_clip,
)

from sam2_mcp_worker.media.rle import decode_runs, expand_runs
from sam2_mcp_worker.media.tracks_file import parse_tracks
from sam2_mcp_worker.pipelines import track_run
from sam2_mcp_worker.settings import Settings

FRAMES = 36  # 1.5 s


@pytest.fixture(scope="module")
def tracking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWorker]:
    """A worker whose calls are short and whose unfinished work goes on."""
    settings = Settings(
        port=0, data_dir=tmp_path_factory.mktemp("tracking"), ocr_processes=1, call_budget_s=12, max_track_frames=40
    )
    yield from serving(settings)


@pytest.fixture
def tracker(tracking: RunningWorker) -> ColourTracker:
    """A fresh tracker in that worker; its identity is new, so that no test meets what another one tracked."""
    tracking.services.tracker = engine = ColourTracker()
    return engine


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> Clip:
    return moving_shapes(tmp_path_factory.mktemp("videos") / "shapes.mp4", frames=FRAMES)


def box_at(index: int, name: str = "disc") -> list[int]:
    """The exact box of a shape, which serves as a prompt."""
    rows, columns = np.nonzero(shape_mask(index, name))
    return [int(columns.min()), int(rows.min()), int(columns.max()) + 1, int(rows.max()) + 1]


def both_at(index: int) -> list[list[int]]:
    return [box_at(index, "disc"), box_at(index, "square")]


async def artifact(worker: RunningWorker, uri: str) -> bytes:
    async with httpx.AsyncClient() as client:
        answer = await client.get(
            f"{worker.base_url}/artifacts/{uri.removeprefix('artifact://')}",
            headers=worker.headers if worker.token else {},
        )
    assert answer.status_code == 200
    return answer.content


async def test_both_shapes_are_followed_exactly_and_every_fact_is_there(
    tracking: RunningWorker, tracker: ColourTracker, shapes: Clip
) -> None:
    agent = Agent(tracking)
    facts = await agent.call("track_video", source=await agent.upload(shapes.path), boxes=both_at(0))
    assert (facts["width_px"], facts["height_px"]) == SHAPES_SIZE
    assert facts["coverage"]["done"] == facts["coverage"]["planned"] >= 2
    assert facts["coverage"]["failed_times_s"] == []
    assert "cursor" not in facts
    for one, name in zip(facts["objects"], ("disc", "square"), strict=True):
        times = [row[0] for row in one["visible"]]
        assert times[0] == 0
        assert times[-1] == pytest.approx((FRAMES - 1) / 24, abs=0.001)
        assert one["first_visible_s"] == 0
        assert one["last_visible_s"] == times[-1]
        assert one["visible_share"] == 1
        assert one["lost_times_s"] == []
        for time_s, *box, area in one["visible"]:
            truth = shape_mask(round(time_s * 24), name)
            assert np.abs(np.array(box) - box_at(round(time_s * 24), name)).max() <= 3
            assert area == pytest.approx(int(truth.sum()), rel=0.12)
    gaps = [b[0] - a[0] for a, b in itertools.pairwise(facts["objects"][0]["visible"])]
    assert facts["spacing_s"] == [pytest.approx(min(gaps), abs=0.002), pytest.approx(max(gaps), abs=0.002)]


async def test_the_tracks_hold_every_mask_and_the_pictures_are_there(
    tracking: RunningWorker, tracker: ColourTracker, shapes: Clip
) -> None:
    agent = Agent(tracking)
    source = await agent.upload(shapes.path)
    facts = await agent.call("track_video", source=source, boxes=both_at(0), quality="fast")
    tracks = parse_tracks(await artifact(tracking, facts["tracks"]))
    stored, _ = tracking.services.artifacts.get(facts["tracks"].removeprefix("artifact://"))
    assert stored.facts == tracks.facts
    assert tracks.complete
    assert len(tracks.frames) == facts["coverage"]["done"]
    for frame in tracks.frames:
        for one, name in zip(frame.objects, ("disc", "square"), strict=True):
            assert one.counts is not None
            mask = decode_runs(expand_runs(one.counts), SHAPES_SIZE)
            assert mask.box_xyxy_px == one.box_xyxy_px
            assert mask.area_px == one.area_px
            truth = shape_mask(round(frame.time_s * 24), name)
            x0, y0, x1, y1 = one.box_xyxy_px or (0, 0, 0, 0)
            assert int((mask.inside & truth[y0:y1, x0:x1]).sum()) > 0.9 * truth.sum()
    for name in ("contact_sheet", "time_line"):
        assert (await artifact(tracking, facts[name])).startswith(b"\xff\xd8\xff")
    while "annotated_video" not in facts:  # of a busy machine; a job makes it
        facts = await agent.call("track_video", source=source, boxes=both_at(0), quality="fast")
    assert (await artifact(tracking, facts["annotated_video"]))[4:8] == b"ftyp"


async def test_the_same_call_again_costs_no_tracking(
    tracking: RunningWorker, tracker: ColourTracker, shapes: Clip
) -> None:
    agent = Agent(tracking)
    arguments: dict[str, Any] = {"source": await agent.upload(shapes.path), "boxes": [box_at(0)], "end_s": 0.3}
    first = await agent.call("track_video", **arguments)
    steps = tracker.steps
    assert steps == 8
    assert (await agent.call("track_video", **arguments))["objects"] == first["objects"]
    assert tracker.steps == steps


async def test_prompts_hold_for_the_frame_on_screen_at_the_start(
    tracking: RunningWorker, tracker: ColourTracker, shapes: Clip
) -> None:
    agent = Agent(tracking)
    x, y, _ = shape_place(12, "disc")
    facts = await agent.call(
        "track_video",
        source=await agent.upload(shapes.path),
        points=[{"object_number": 1, "x_px": round(x), "y_px": round(y)}],
        start_s=0.52,
        end_s=0.8,
        every_s=0.125,
    )
    assert facts["start_s"] == 0.5
    assert [row[0] for row in facts["objects"][0]["visible"]] == [0.5, 0.625, 0.75]
    assert facts["spacing_s"] == [0.125, 0.125]
    assert np.abs(np.array(facts["objects"][0]["visible"][0][1:5]) - box_at(12)).max() <= 3


async def test_times_are_those_of_real_frames_also_where_the_frame_rate_varies(
    tracking: RunningWorker, tracker: ColourTracker, tmp_path: Path
) -> None:
    clip = index_clip(tmp_path / "vfr.mp4", frames=30, times=uneven_times(30), size_px=(160, 96))
    agent = Agent(tracking)
    facts = await agent.call(
        "track_video", source=await agent.upload(clip.path), points=[{"object_number": 1, "x_px": 20, "y_px": 16}]
    )
    one = facts["objects"][0]
    times = sorted([row[0] for row in one["visible"]] + one["lost_times_s"])
    assert {round(time_s, 3) for time_s in times} <= {round(time_s, 3) for time_s in clip.times_s}
    assert (times[0], times[-1]) == (0, round(clip.times_s[-1], 3))
    assert len(times) == facts["coverage"]["done"] == len(set(times))


async def test_a_lost_object_is_lost_and_shares_are_of_tracked_frames(
    tracking: RunningWorker, tracker: ColourTracker, tmp_path: Path
) -> None:
    pictures = [shapes_picture(i if i < 6 else 0) for i in range(12)]
    for picture in pictures[6:]:
        picture[shape_mask(0, "disc")] = (110, 110, 110)
    clip = write_clip(tmp_path / "gone.mp4", pictures, even_times(12, 24), options={"crf": "12"})
    agent = Agent(tracking)
    facts = await agent.call("track_video", source=await agent.upload(clip.path), boxes=both_at(0))
    disc, square = facts["objects"]
    assert disc["visible_share"] == 0.5
    assert (disc["first_visible_s"], disc["last_visible_s"]) == (0, 0.208)
    assert disc["lost_times_s"] == [0.25, 0.292, 0.333, 0.375, 0.417, 0.458]
    assert square["visible_share"] == 1


async def test_damaged_frames_are_failed_by_their_times_and_nothing_is_said_of_them(
    tracking: RunningWorker, tracker: ColourTracker, tmp_path: Path
) -> None:
    clip = moving_shapes(tmp_path / "whole.mp4", frames=FRAMES, options={"g": "6"})
    path = scratched(clip, tmp_path / "scratched.mp4", 0.5, length=1500)
    agent = Agent(tracking)
    facts = await agent.call("track_video", source=await agent.upload(path), boxes=[box_at(0)])
    failed = facts["coverage"]["failed_times_s"]
    one = facts["objects"][0]
    told = [row[0] for row in one["visible"]] + one["lost_times_s"]
    assert failed
    assert not set(failed) & set(told)
    assert facts["coverage"]["done"] == len(told)
    assert facts["coverage"]["planned"] == len(told) + len(failed)
    tracks = parse_tracks(await artifact(tracking, facts["tracks"]))
    assert [round(time_s, 3) for time_s in tracks.failed_times_s] == failed
    with pytest.raises(ToolFailure, match=r"start_frame_damaged.*give another start_s"):
        await agent.call("track_video", source=await agent.upload(path), boxes=[box_at(0)], start_s=failed[0])


@pytest.mark.parametrize("range_s", [(0.5, 0.5), (1.4583, 99.0)])
async def test_a_range_of_no_length_is_one_frame(
    tracking: RunningWorker, tracker: ColourTracker, shapes: Clip, range_s: tuple[float, float]
) -> None:
    agent = Agent(tracking)
    index = round(range_s[0] * 24)
    facts = await agent.call(
        "track_video",
        source=await agent.upload(shapes.path),
        boxes=[box_at(index)],
        start_s=range_s[0],
        end_s=range_s[1],
    )
    assert facts["coverage"] == {"planned": 1, "done": 1, "failed_times_s": [], "unreached": 0}
    assert "spacing_s" not in facts
    assert "denser_cursor" not in facts


async def test_a_video_of_one_frame_is_tracked_whole(
    tracking: RunningWorker, tracker: ColourTracker, tmp_path: Path
) -> None:
    clip = moving_shapes(tmp_path / "one.mp4", frames=1)
    agent = Agent(tracking)
    facts = await agent.call("track_video", source=await agent.upload(clip.path), boxes=both_at(0))
    assert facts["coverage"]["done"] == 1
    assert all(one["visible_share"] == 1 for one in facts["objects"])


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "nothing marked": ({}, "prompt_missing"),
    "a box outside": ({"boxes": [[400, 0, 500, 100]]}, "prompt_outside.*320 x 180"),
    "a start behind the end": ({"boxes": [[0, 0, 9, 9]], "start_s": 7}, "time_outside.*1.500 s"),
    "an end before the start": ({"boxes": [[0, 0, 9, 9]], "start_s": 1, "end_s": 0.5}, "time_outside"),
    "too many objects": ({"boxes": [[0, 0, 9, 9]] * 11}, "too_many_objects.*at most 10"),
    "a spacing of nothing": ({"boxes": [[0, 0, 9, 9]], "every_s": 0}, "invalid_arguments"),
    "a damaged cursor": ({"boxes": [[0, 0, 9, 9]], "cursor": "x"}, "cursor_invalid"),
}


@pytest.mark.parametrize("name", WRONG)
async def test_wrong_arguments_say_what_is_wrong(
    tracking: RunningWorker, tracker: ColourTracker, shapes: Clip, name: str
) -> None:
    arguments, text = WRONG[name]
    agent = Agent(tracking)
    with pytest.raises(ToolFailure, match=text):
        await agent.call("track_video", source=await agent.upload(shapes.path), **arguments)
    assert tracker.steps == 0


async def test_more_frames_than_one_tracking_may_follow_are_refused_with_a_spacing_that_fits(
    tracking: RunningWorker, tracker: ColourTracker, tmp_path: Path
) -> None:
    clip = moving_shapes(tmp_path / "long.mp4", frames=60)
    agent = Agent(tracking)
    source = await agent.upload(clip.path)
    with pytest.raises(ToolFailure, match=r"60 frames.*at most 40.*at least 0\.063"):
        await agent.call("track_video", source=source, boxes=[box_at(0)], every_s=0.001)
    facts = await agent.call("track_video", source=source, boxes=[box_at(0)])
    assert facts["coverage"]["done"] <= 40
    assert facts["objects"][0]["last_visible_s"] == pytest.approx(59 / 24, abs=0.001)


async def test_a_picture_is_no_video(tracking: RunningWorker, tracker: ColourTracker, tmp_path: Path) -> None:
    from PIL import Image

    Image.new("RGB", (64, 64), "red").save(tmp_path / "a.png")
    agent = Agent(tracking)
    with pytest.raises(ToolFailure, match="segment_image"):
        await agent.call("track_video", source=await agent.upload(tmp_path / "a.png"), boxes=[[0, 0, 9, 9]])


async def test_without_an_engine_the_mend_is_told(tracking: RunningWorker, shapes: Clip) -> None:
    tracking.services.tracker = None
    agent = Agent(tracking)
    with pytest.raises(ToolFailure, match=r"\[not_available\].*models fetch"):
        await agent.call("track_video", source=await agent.upload(shapes.path), boxes=both_at(0))


async def test_a_killed_engine_costs_no_frame(tracking: RunningWorker, tracker: ColourTracker, shapes: Clip) -> None:
    agent = Agent(tracking)
    arguments: dict[str, Any] = {"source": await agent.upload(shapes.path), "boxes": [box_at(4)], "start_s": 4 / 24}
    tracker.fail_at = {5, 9}
    facts = await agent.call("track_video", **arguments)
    tracking.services.tracker = ColourTracker()
    assert facts["objects"] == (await agent.call("track_video", **arguments))["objects"]
    assert tracker.log.count("start") == 3
    assert any("tracked again" in note for note in facts["notes"])


async def test_a_killed_engine_goes_on_at_its_last_saved_memory(
    tracking: RunningWorker, tracker: ColourTracker, shapes: Clip, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(track_run, "SAVE_EVERY_S", 0.0)
    tracker.fail_at = {6}
    agent = Agent(tracking)
    facts = await agent.call("track_video", source=await agent.upload(shapes.path), boxes=[box_at(0)], end_s=0.4)
    assert facts["coverage"]["done"] == 10
    assert "notes" not in facts
    steps = [what for what in tracker.log if what != "save"]
    assert steps == ["start", *["step"] * 5, "restore", *["step"] * 5]


async def test_a_full_disk_costs_nothing_but_the_saved_memory(
    tracking: RunningWorker, tracker: ColourTracker, shapes: Clip, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(track_run, "SAVE_EVERY_S", 0.0)
    tracker.disk_full, tracker.fail_at = True, {4}
    agent = Agent(tracking)
    facts = await agent.call("track_video", source=await agent.upload(shapes.path), boxes=[box_at(0)], end_s=0.2)
    assert facts["coverage"]["done"] == 5
    assert tracker.log.count("start") == 2
    assert "save" in tracker.log
    assert "restore" not in tracker.log


async def test_an_engine_that_takes_too_long_makes_no_late_answer(brief_data: Path, shapes: Clip) -> None:
    for worker in serving(brief(brief_data)):
        worker.services.tracker = engine = ColourTracker(step_s=60)
        agent = Agent(worker)
        arguments: dict[str, Any] = {"source": await agent.upload(shapes.path), "boxes": [box_at(0)], "end_s": 0.2}
        facts = await agent.call("track_video", **arguments)
        assert facts["coverage"]["done"] == 0
        assert facts["coverage"]["unreached"] > 0
        assert facts["objects"][0]["visible"] == []
        assert "contact_sheet" not in facts
        engine.step_s = 0.0
        rest = await agent.call("track_video", **arguments, cursor=facts["cursor"])
        assert rest["coverage"]["done"] == 5
        assert [row[0] for row in rest["objects"][0]["visible"]] == [0.0, 0.042, 0.083, 0.125, 0.167]


async def test_an_engine_that_loads_longer_than_a_call_costs_no_frames_of_the_next_call(
    tmp_path: Path, shapes: Clip
) -> None:
    for worker in serving(Settings(port=0, data_dir=tmp_path, ocr_processes=1, call_budget_s=5)):
        worker.services.tracker = ColourTracker(load_s=5)
        agent = Agent(worker)
        source = await agent.upload(shapes.path)
        done = [
            facts["coverage"]["done"] for facts in await agent.follow("track_video", source=source, boxes=[box_at(0)])
        ]
        assert done[0] == 0
        assert next(filter(None, done)) > 2


async def test_a_pace_at_which_no_frame_fits_a_call_does_not_stop_a_tracking_for_ever(
    tmp_path: Path, shapes: Clip
) -> None:
    for worker in serving(Settings(port=0, data_dir=tmp_path, ocr_processes=1, call_budget_s=5)):
        worker.services.tracker = engine = ColourTracker(step_s=6)
        agent = Agent(worker)
        arguments: dict[str, Any] = {"source": await agent.upload(shapes.path), "boxes": [box_at(0)]}
        first = await agent.call("track_video", **arguments)
        assert first["coverage"]["done"] == 0
        while not any(path.name == "track.json" for path in (tmp_path / "tracks").rglob("*")):
            await asyncio.sleep(0.05)  # the job goes on behind the call, and notes how slow it was
        engine.step_s = 0.0
        results = await agent.follow("track_video", **arguments)
        assert len(results) <= 2


async def test_a_frame_that_ends_the_engine_twice_is_failed_and_the_rest_is_tracked(
    tracking: RunningWorker, tracker: ColourTracker, shapes: Clip
) -> None:
    tracker.fail_at = {4, 8}  # the fourth frame: three before it are tracked again
    agent = Agent(tracking)
    facts = await agent.call("track_video", source=await agent.upload(shapes.path), boxes=[box_at(0)], end_s=0.4)
    assert facts["coverage"]["failed_times_s"] == [0.125]
    assert facts["coverage"]["done"] == 9
    assert 0.125 not in [row[0] for row in facts["objects"][0]["visible"]]


async def test_an_engine_that_cannot_begin_is_an_error(
    tracking: RunningWorker, tracker: ColourTracker, shapes: Clip
) -> None:
    tracker.fail_at = {1, 2}
    agent = Agent(tracking)
    arguments: dict[str, Any] = {"source": await agent.upload(shapes.path), "boxes": [box_at(0)], "end_s": 0.2}
    with pytest.raises(ToolFailure, match="decoder_crashed"):
        await agent.call("track_video", **arguments)
    assert (await agent.call("track_video", **arguments))["coverage"]["done"] == 5  # and the next call begins anew


async def test_an_error_half_way_leaves_what_was_tracked_and_a_cursor(
    tracking: RunningWorker, tracker: ColourTracker, shapes: Clip
) -> None:
    tracker.fail_at, tracker.fail_code = {4}, "worker_stopping"
    agent = Agent(tracking)
    arguments: dict[str, Any] = {"source": await agent.upload(shapes.path), "boxes": [box_at(0)], "end_s": 0.45}
    facts = await agent.call("track_video", **arguments)
    assert facts["coverage"]["done"] == 3
    assert facts["coverage"]["unreached"] > 0
    assert any("worker_stopping" in note for note in facts["notes"])
    rest = await agent.call("track_video", **arguments, cursor=facts["cursor"])
    assert rest["coverage"]["done"] == rest["coverage"]["planned"] == 11
    told = [row[0] for result in (facts, rest) for row in result["objects"][0]["visible"]]
    assert sorted(set(told)) == [round(i / 24, 3) for i in range(11)]


async def test_parallel_calls_give_what_they_give_alone(
    tracking: RunningWorker, tracker: ColourTracker, shapes: Clip
) -> None:
    agent = Agent(tracking)
    source = await agent.upload(shapes.path)
    calls = [{"boxes": [box_at(0)], "end_s": 0.4}, {"boxes": [box_at(0, "square")], "end_s": 0.4}]
    together = await asyncio.gather(*(agent.call("track_video", source=source, **call) for call in calls * 2))
    tracking.services.tracker = ColourTracker()
    alone = [await agent.call("track_video", source=source, **call) for call in calls]
    assert [one["objects"] for one in together] == [one["objects"] for one in alone * 2]


async def test_a_cancelled_call_stops_its_work_and_harms_nobody(
    tracking: RunningWorker, tracker: ColourTracker, shapes: Clip
) -> None:
    tracker.step_s = 0.2
    agent = Agent(tracking)
    arguments: dict[str, Any] = {"source": await agent.upload(shapes.path), "boxes": [box_at(1)], "start_s": 0.05}
    call = asyncio.ensure_future(agent.call("track_video", **arguments))
    while tracker.steps < 2:
        assert not call.done()
        await asyncio.sleep(0.01)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    while tracking.services.jobs.running:
        await asyncio.sleep(0.01)
    tracker.step_s = 0.0
    facts = await agent.call("track_video", **arguments)
    assert facts["coverage"]["done"] == facts["coverage"]["planned"]


@pytest.fixture(scope="module")
def brief_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("brief")


def brief(data_dir: Path) -> Settings:
    """Calls of a few seconds, and nothing goes on behind them."""
    return Settings(port=0, data_dir=data_dir, ocr_processes=1, call_budget_s=4, background_limit_s=0)


async def test_what_does_not_fit_the_call_is_left_out_evenly_and_comes_with_the_denser_cursor(
    tracking: RunningWorker, brief_data: Path, shapes: Clip
) -> None:
    for worker in serving(brief(brief_data)):
        worker.services.tracker = ColourTracker(step_s=0.3)
        agent = Agent(worker)
        arguments: dict[str, Any] = {"source": await agent.upload(shapes.path), "boxes": both_at(0)}
        facts = await agent.call("track_video", **arguments)
        while "cursor" in facts:  # a machine so busy that not even the end of the range was reached
            facts = await agent.call("track_video", **arguments, cursor=facts["cursor"])
        first = await agent.call("track_video", **arguments)
        times = [row[0] for row in first["objects"][0]["visible"]]
        assert 2 <= len(times) < FRAMES
        assert (times[0], times[-1]) == (0, 1.458)
        denser = await agent.call("track_video", **arguments, cursor=first["denser_cursor"])
        while "cursor" in denser:
            denser = await agent.call("track_video", **arguments, cursor=denser["cursor"])
        both = await agent.call("track_video", **arguments)
        more = [row[0] for row in both["objects"][0]["visible"]]
        assert set(more) > set(times)
        assert both["coverage"]["done"] == len(more)
        for one in more:
            assert one in times or times[0] < one < times[-1]


async def test_a_given_spacing_goes_on_over_the_cursor_and_over_a_restart_of_the_worker(
    brief_data: Path, shapes: Clip
) -> None:
    arguments: dict[str, Any] = {"boxes": both_at(0), "every_s": 0.08, "quality": "accurate"}
    for worker in serving(brief(brief_data)):
        worker.services.tracker = first = ColourTracker("colours", step_s=0.35)
        agent = Agent(worker)
        results = [await agent.call("track_video", source=await agent.upload(shapes.path), **arguments)]
        assert results[0]["coverage"]["unreached"] > 0
        assert results[0]["coverage"]["unreached_from_s"] > results[0]["objects"][0]["last_visible_s"]
        assert not parse_tracks(await artifact(worker, results[0]["tracks"])).complete
    for worker in serving(brief(brief_data)):
        worker.services.tracker = second = ColourTracker("colours", step_s=0.05)
        agent = Agent(worker)
        arguments["source"] = await agent.upload(shapes.path)
        while cursor := results[-1].get("cursor"):
            results.append(await agent.call("track_video", **arguments, cursor=cursor))
    told = [row[0] for result in results for row in result["objects"][0]["visible"]]
    assert told == [round(i / 24, 3) for i in (0, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 24, 26, 28, 30, 32, 34)]
    assert (first.log[0], first.log[-1]) == ("start", "save")
    assert second.log[0] == "restore"
    assert "start" not in second.log


async def test_what_is_not_kept_any_more_is_tracked_again_and_the_result_says_so(
    brief_data: Path, shapes: Clip
) -> None:
    arguments: dict[str, Any] = {"boxes": [box_at(0)], "every_s": 0.05, "end_s": 0.9}
    for worker in serving(brief(brief_data)):
        worker.services.tracker = engine = ColourTracker("colours", step_s=0.5)
        agent = Agent(worker)
        arguments["source"] = await agent.upload(shapes.path)
        facts = await agent.call("track_video", **arguments)
        folder = next(path for path in (brief_data / "tracks").iterdir() if list(path.glob("memory-*")))
        for memory in folder.glob("memory-*"):
            memory.write_text("spoiled", encoding="utf-8")
        engine.step_s = 0.0
        rest = await agent.call("track_video", **arguments, cursor=facts["cursor"])
        assert any("tracked again" in note for note in rest["notes"])
        while "cursor" in rest:
            rest = await agent.call("track_video", **arguments, cursor=rest["cursor"])
        assert rest["coverage"]["done"] == rest["coverage"]["planned"]
    shutil.rmtree(folder)
    for worker in serving(brief(brief_data)):
        worker.services.tracker = ColourTracker("colours")
        agent = Agent(worker)
        again = await agent.call("track_video", **arguments, cursor=facts["cursor"])
        assert any("not kept any more" in note for note in again["notes"])
        assert again["objects"][0]["first_visible_s"] == 0
