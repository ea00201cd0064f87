"""redact_media on videos of a real worker: every frame covered, times and sound kept, nothing guessed about objects."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from tests.conftest import RunningWorker
from tests.e2e.redacted import fetch_redacted, hurried_worker
from tests.e2e.tools import Agent, ToolFailure
from tests.fakes.colour_tracker import ColourTracker
from tests.fakes.shape_tracks import shape_tracks
from tests.fakes.videos import (
    SHAPES_FPS,
    even_times,
    index_clip,
    moving_shapes,
    shape_mask,
    shapes_picture,
    uneven_times,
    write_clip,
)

FRAMES = 48
BOX = [100, 40, 220, 140]


async def fetched(worker: RunningWorker, result: dict[str, Any], path: Path) -> Path:
    return await fetch_redacted(worker, result, path, "video/mp4")


def decoded(path: Path) -> tuple[list[float], list[np.ndarray]]:
    """Times since the first frame, and frames, by PyAV alone."""
    with av.open(str(path)) as container:
        frames = [(float(frame.time or 0), frame.to_ndarray(format="rgb24")) for frame in container.decode(video=0)]
    return [time - frames[0][0] for time, _ in frames], [rgb for _, rgb in frames]


def streams(path: Path) -> tuple[list[str], dict[str, str]]:
    with av.open(str(path)) as container:
        return [stream.type for stream in container.streams], dict(container.metadata)


def tracks_handle(worker: RunningWorker, file_handle: str, indices: list[int], **more: Any) -> str:
    """The artifact that track_video would have made of the moving shapes."""
    stored = worker.services.uploads.get(file_handle)
    tracks = shape_tracks(stored.sha256, indices, frames=FRAMES, **more)
    artifacts = worker.services.artifacts
    return artifacts.put(tracks.to_bytes(), name="tracks.json", mime_type="application/json", facts=tracks.facts).handle


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("clips") / "비밀 clip.mp4"
    moving_shapes(path, frames=FRAMES, audio=True, metadata={"title": "secret title", "comment": "secret"})
    return path


@pytest.mark.parametrize("audio", ["keep", "mute"])
async def test_a_box_covers_the_frames_of_its_span_and_nothing_else(
    worker: RunningWorker, shapes: Path, tmp_path: Path, audio: str
) -> None:
    agent = Agent(worker)
    region = {"box_xyxy_px": BOX, "start_s": 0.5, "end_s": 1.0}
    result = await agent.call("redact_media", source=await agent.upload(shapes), regions=[region], audio=audio)
    assert result["status"] == "done"
    assert result["kind"] == "video"
    out = await fetched(worker, result, tmp_path / "out.mp4")
    times, frames = decoded(out)
    source_times, source_frames = decoded(shapes)
    assert times == pytest.approx(source_times)
    for time_s, before, after in zip(times, source_frames, frames, strict=True):
        inside = after[48:132, 108:212]
        if 0.5 - 1e-6 <= time_s <= 1.0 + 1e-6:
            assert inside.max() < 24
        else:
            assert abs(after.astype(int) - before).mean() < 4
    kinds, metadata = streams(out)
    assert kinds == (["video", "audio"] if audio == "keep" else ["video"])
    assert b"secret" not in out.read_bytes()
    assert not set(metadata) - {"major_brand", "minor_version", "compatible_brands", "encoder"}
    assert any("sound" in note for note in result["notes"])


async def test_a_span_begins_with_the_frame_that_is_on_screen_then(worker: RunningWorker, tmp_path: Path) -> None:
    """Frames up to 400 ms long: the one that came on screen before the span began shows within it."""
    clip = index_clip(tmp_path / "v.mp4", times=uneven_times(30), size_px=(160, 96))
    middle = next(i for i in range(10, 29) if clip.times_s[i + 1] - clip.times_s[i] > 0.3)
    start_s = clip.times_s[middle] + 0.2
    agent = Agent(worker)
    region = {"box_xyxy_px": [0, 0, 160, 96], "start_s": start_s, "end_s": start_s + 0.01}
    result = await agent.call("redact_media", source=await agent.upload(clip.path), regions=[region])
    times, frames = decoded(await fetched(worker, result, tmp_path / "out.mp4"))
    assert times == pytest.approx(clip.times_s, abs=0.002)
    assert [frame.max() < 30 for frame in frames] == [index == middle for index in range(30)]


async def test_tracked_objects_are_covered_in_every_frame(worker: RunningWorker, shapes: Path, tmp_path: Path) -> None:
    agent = Agent(worker)
    source = await agent.upload(shapes)
    handle = tracks_handle(worker, source, [*range(0, FRAMES, 8), FRAMES - 1])
    result = await agent.call("redact_media", source=source, regions=[{"handle": f"artifact://{handle}"}])
    assert result["status"] == "done"
    assert any("between tracked frames" in text for text in result["not_verified"])
    _, frames = decoded(await fetched(worker, result, tmp_path / "out.mp4"))
    assert len(frames) == FRAMES
    for index, frame in enumerate(frames):
        assert frame[shape_mask(index, "disc")].max() < 60  # the disc is (235, 190, 40)
        assert frame[shape_mask(index, "square")].mean() > 80


@pytest.fixture
def tracker(worker: RunningWorker) -> Iterator[ColourTracker]:
    """A tracker that follows colours, in place of the network that no test has weights of."""
    before, worker.services.tracker = worker.services.tracker, ColourTracker()
    yield worker.services.tracker
    worker.services.tracker = before


async def test_what_track_video_followed_is_covered_by_its_handle(
    worker: RunningWorker, tracker: ColourTracker, shapes: Path, tmp_path: Path
) -> None:
    rows, columns = np.nonzero(shape_mask(0, "disc"))
    box = [int(columns.min()), int(rows.min()), int(columns.max()) + 1, int(rows.max()) + 1]
    agent = Agent(worker)
    source = await agent.upload(shapes)
    tracking = (await agent.follow("track_video", source=source, boxes=[box], every_s=0.25))[-1]
    result = await agent.call("redact_media", source=source, regions=[{"handle": tracking["tracks"]}])
    assert result["covered"][0]["source"] == "handle"
    _, frames = decoded(await fetched(worker, result, tmp_path / "out.mp4"))
    assert all(frame[shape_mask(index, "disc")].max() < 60 for index, frame in enumerate(frames))


@pytest.mark.parametrize(
    ("tracked", "lost", "told"),
    [
        ([*range(0, 48, 6), 47], [18, 24], "0.50-1.25"),
        ([12, 24, 36, 47], [], "0.00-0.50"),
        ([0, 6, 12], [], "0.50-2.00"),
    ],
)
async def test_where_nobody_knows_where_the_object_is_the_call_is_refused_with_the_seconds(
    worker: RunningWorker, shapes: Path, tracked: list[int], lost: list[int], told: str
) -> None:
    agent = Agent(worker)
    source = await agent.upload(shapes)
    handle = tracks_handle(worker, source, tracked, lost=lost)
    with pytest.raises(ToolFailure, match=rf"^\[place_unknown\].*object 1 {told}"):
        await agent.call("redact_media", source=source, regions=[{"handle": handle}])


async def test_an_agent_answers_for_unknown_seconds_by_boxes_or_by_times(
    worker: RunningWorker, shapes: Path, tmp_path: Path
) -> None:
    agent = Agent(worker)
    source = await agent.upload(shapes)
    handle = tracks_handle(worker, source, [*range(0, 48, 6), 47], lost=[18, 24])
    box = {"box_xyxy_px": [0, 0, 320, 180], "start_s": 0.5, "end_s": 1.25}
    result = await agent.call("redact_media", source=source, regions=[{"handle": handle}, box])
    _, frames = decoded(await fetched(worker, result, tmp_path / "boxes.mp4"))
    assert all(frame[shape_mask(index, "disc")].max() < 60 for index, frame in enumerate(frames))
    halves = [{"handle": handle, "end_s": 0.5}, {"handle": handle, "start_s": 1.25}]
    result = await agent.call("redact_media", source=source, regions=halves)
    _, frames = decoded(await fetched(worker, result, tmp_path / "halves.mp4"))
    assert all(frames[index][shape_mask(index, "disc")].max() < 60 for index in [*range(13), *range(30, 48)])
    assert frames[21][shape_mask(21, "disc")].max() > 150


async def test_tracked_frames_far_apart_make_the_result_incomplete(worker: RunningWorker, shapes: Path) -> None:
    agent = Agent(worker)
    source = await agent.upload(shapes)
    handle = tracks_handle(worker, source, [0, 24, 47])
    result = await agent.call("redact_media", source=source, regions=[{"handle": handle}])
    assert result["status"] == "incomplete"
    assert "1.00 s apart" in result["incomplete_because"][0]


async def test_a_turned_video_comes_out_upright_with_the_box_where_it_was_given(
    worker: RunningWorker, tmp_path: Path
) -> None:
    clip = index_clip(tmp_path / "r.mp4", frames=12, size_px=(96, 160), rotation_ccw_deg=90)
    agent = Agent(worker)
    region = {"box_xyxy_px": [0, 120, 96, 160]}
    result = await agent.call("redact_media", source=await agent.upload(clip.path), regions=[region])
    _, frames = decoded(await fetched(worker, result, tmp_path / "out.mp4"))
    assert frames[0].shape == (160, 96, 3)
    assert frames[0][130:].max() < 24
    assert frames[0][:110].max() > 200


async def test_odd_sizes_and_blur_work_and_say_what_they_cost(worker: RunningWorker, tmp_path: Path) -> None:
    pictures = [np.ascontiguousarray(shapes_picture(index)[:101, :151]) for index in range(8)]
    write_clip(tmp_path / "odd.mp4", pictures, even_times(8, 24), pix_fmt="yuv444p")
    agent = Agent(worker)
    source = await agent.upload(tmp_path / "odd.mp4")
    result = await agent.call("redact_media", source=source, regions=[{"box_xyxy_px": [9, 9, 99, 99]}], method="blur")
    assert "reversed" in result["method_note"]
    assert any("yuv444p" in note for note in result["notes"])
    _, frames = decoded(await fetched(worker, result, tmp_path / "out.mp4"))
    assert frames[0].shape == (101, 151, 3)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"phrases": [" "]}, "phrase_invalid"),
        ({"regions": [{"box_xyxy_px": [400, 0, 500, 9]}]}, "region_invalid"),
        ({"regions": [{"box_xyxy_px": BOX, "start_s": 9.0}]}, "region_invalid"),
        ({"regions": [{"box_xyxy_px": BOX, "start_s": 1.0, "end_s": 0.5}]}, "region_invalid"),
        ({"regions": [{"box_xyxy_px": BOX, "shape": "mask"}]}, "region_invalid"),
        ({"regions": [{"handle": "art_" + "B" * 22}]}, "artifact_unknown"),
    ],
)
async def test_wrong_arguments_are_refused_by_name(
    worker: RunningWorker, shapes: Path, arguments: dict[str, Any], code: str
) -> None:
    agent = Agent(worker)
    source = await agent.upload(shapes)
    with pytest.raises(ToolFailure, match=rf"^\[{code}\]"):
        await agent.call("redact_media", source=source, **arguments)


async def test_tracks_of_another_video_and_damaged_ones_are_refused(
    worker: RunningWorker, shapes: Path, tmp_path: Path
) -> None:
    agent = Agent(worker)
    source = await agent.upload(shapes)
    other = await agent.upload(moving_shapes(tmp_path / "o.mp4", frames=12).path)
    artifacts = worker.services.artifacts
    facts = shape_tracks(worker.services.uploads.get(source).sha256, [0, 47], frames=FRAMES).facts
    cases = {
        tracks_handle(worker, other, [0, 47]): "handle_unfit",
        artifacts.put(b"{}", name="t", mime_type="application/json", facts=facts).handle: "tracks_invalid",
        artifacts.put(b"{}", name="t", mime_type="text/html").handle: "handle_unfit",
        artifacts.put(b"", name="t", mime_type="image/png", facts={**facts, "kind": "mask"}).handle: "handle_unfit",
        artifacts.put(b"", name="t", mime_type="image/png", facts={**facts, "width_px": 9}).handle: "handle_unfit",
    }
    for handle, code in cases.items():
        with pytest.raises(ToolFailure, match=rf"^\[{code}\]"):
            await agent.call("redact_media", source=source, regions=[{"handle": handle}])


async def test_what_is_neither_picture_nor_pdf_nor_video_is_named(worker: RunningWorker, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("only text", encoding="utf-8")
    agent = Agent(worker)
    source = await agent.upload(tmp_path / "a.txt")
    with pytest.raises(ToolFailure, match=r"^\[unsupported_video\]"):
        await agent.call("redact_media", source=source, regions=[{"box_xyxy_px": BOX}])


@pytest.fixture(scope="module")
def hurried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWorker]:
    yield from hurried_worker(tmp_path_factory.mktemp("hurried"))


@pytest.mark.timeout(180)
async def test_a_long_video_is_finished_over_the_cursor(hurried: RunningWorker, tmp_path: Path) -> None:
    clip = moving_shapes(tmp_path / "long.mp4", frames=144, size_px=(640, 360))
    agent = Agent(hurried)
    source = await agent.upload(clip.path)
    results = await agent.follow("redact_media", source=source, regions=[{"box_xyxy_px": BOX}])
    assert len(results) > 1
    assert all(result["status"] == "running" and "redacted" not in result for result in results[:-1])
    assert all(result["doing"] for result in results[:-1])
    assert results[-1]["status"] == "done"
    _, frames = decoded(await fetched(hurried, results[-1], tmp_path / "out.mp4"))
    assert len(frames) == 144


def stored(worker: RunningWorker) -> set[str]:
    return {path.name for path in worker.services.artifacts.entries()}


async def test_a_cancelled_call_leaves_no_file_and_stops_its_job(worker: RunningWorker, tmp_path: Path) -> None:
    clip = moving_shapes(tmp_path / "cancelled.mp4", frames=144, size_px=(640, 360))
    agent = Agent(worker)
    source = await agent.upload(clip.path)
    before = stored(worker)
    call = asyncio.ensure_future(agent.call("redact_media", source=source, regions=[{"box_xyxy_px": BOX}]))
    while not any("redact" in path.name for path in worker.services.work_root.iterdir()):
        await asyncio.sleep(0.02)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    while any("redact" in path.name for path in worker.services.work_root.iterdir()) or worker.services.jobs.running:
        await asyncio.sleep(0.02)
    assert stored(worker) == before


async def test_frames_keep_their_rate(worker: RunningWorker, shapes: Path, tmp_path: Path) -> None:
    agent = Agent(worker)
    result = await agent.call("redact_media", source=await agent.upload(shapes), regions=[{"box_xyxy_px": BOX}])
    times, _ = decoded(await fetched(worker, result, tmp_path / "out.mp4"))
    assert times == pytest.approx([index / SHAPES_FPS for index in range(FRAMES)])
