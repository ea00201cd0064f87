"""Segments of a video through the real scan child, read by scripted eyes: order, room, what is kept, what is told."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes.scripted_eyes import Asked, ScriptedEyes, as_seen
from tests.fakes.spot_video import FPS, Spot, write_spot

from sam2_mcp_worker.checks.labels import Label
from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines.ports import Sight
from sam2_mcp_worker.engines.vision_errors import VisionError
from sam2_mcp_worker.fanout import fan_out
from sam2_mcp_worker.jobs import Job
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.video import VideoFacts, probe_video
from sam2_mcp_worker.media.video_scan import Sample, ScanPlan
from sam2_mcp_worker.pipelines.frame_looks import FrameLook
from sam2_mcp_worker.pipelines.page_readers import choose_page_readers
from sam2_mcp_worker.pipelines.segment_looks import FrameReading, SegmentLooks
from sam2_mcp_worker.pipelines.video_coverage import BegunSegment, all_looks, cover
from sam2_mcp_worker.pipelines.video_range import segment_numbers, segment_of
from sam2_mcp_worker.pipelines.video_segments import SegmentReader, SegmentWork, VideoRequest, frames_in_flight
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.settings import Settings
from sam2_mcp_worker.uploads import StoredFile

LABELS = (Label("coin"), Label("disclaimer"))
# Segments of 16 grid times: two of them, 4 s each.
STEP_S = 0.25
FACTS = VideoFacts(1280, 720, 6.0, 144, 24.0, 0, 0.0, "h264", "mp4", None, False, None)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def spot(tmp_path_factory: pytest.TempPathFactory) -> Spot:
    return write_spot(tmp_path_factory.mktemp("spot") / "spot.mp4", still=True)


@pytest.fixture(scope="module")
async def services(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Services]:
    settings = Settings(data_dir=tmp_path_factory.mktemp("segments"), ocr_processes=1, decoder_processes=1)
    made = Services(settings)
    made._prepare_folders()
    async with made.decoders, made.scanner:
        yield made


@pytest.fixture(autouse=True)
def empty_cache(services: Services) -> None:
    shutil.rmtree(services.settings.data_dir / "cache", ignore_errors=True)


class Reading:
    """One job over the spot."""

    def __init__(self, services: Services, spot: Spot, **eyes: object) -> None:
        self.eyes = ScriptedEyes(spot.pages, **eyes)  # type: ignore[arg-type]
        services.vision, services.vision_missing = self.eyes, None
        self.services, self.spot = services, spot

    async def run(self, *, name: str = "spot") -> tuple[Job, VideoRequest]:
        services = self.services
        facts = await probe_video(services.decoders, self.spot.path, max_video_s=60, timeout_s=20, job="test")
        readers = choose_page_readers(services, "fast", 24, LABELS).readers
        stored = StoredFile("file_x", "spot.mp4", 1, name, self.spot.path)
        request = VideoRequest(stored, facts, ScanPlan(0.0, facts.duration_s, STEP_S, True), readers)
        job = Job(name, segment_numbers(request.asked))
        reader = job.notes["reader"] = SegmentReader(services, request, job)
        await fan_out(job.coverage, reader.segment, deadline=Deadline.after(60), limit=reader.in_flight)
        return job, request


def looks_of(job: Job, request: VideoRequest) -> list[SegmentLooks]:
    assert not job.coverage.failed
    return [job.coverage.done[number] for number in segment_numbers(request.asked)]


async def test_every_frame_that_differs_is_read_once_and_what_it_shows_is_true(services: Services, spot: Spot) -> None:
    reading = Reading(services, spot)
    job, request = await reading.run()
    looks = all_looks(request.asked, request.size_px, job.coverage.done, {}, {})
    account = cover(looks)
    assert account.read_s == pytest.approx(request.facts.duration_s)
    assert looks.complete
    for look in looks.looks:
        truth = spot.page_at(look.time_s)
        assert sorted(line.text for line in look.lines) == sorted(line.text for line in truth.lines)
        assert sorted(region.label for region in look.regions or ()) == sorted(
            region.label for region in truth.regions if region.label in ("coin", "disclaimer")
        )
        assert look.time_s * FPS == pytest.approx(round(look.time_s * FPS), abs=1e-3), "the time of a real frame"
    assert account.frames_read == len(reading.eyes.asked)
    assert account.frames_same > 0
    assert {round(one.time_s * 1000) for one in looks.looks if one.same_as_s is None} == set(job.spent.take())
    assert not list(services.work_root.rglob("*.rgb")), "no pixels are left"


async def test_a_second_job_finds_all_of_it_and_reads_nothing(services: Services, spot: Spot) -> None:
    first = Reading(services, spot)
    job, request = await first.run()
    again = Reading(services, spot)
    repeated, _ = await again.run()
    assert not again.eyes.asked
    assert looks_of(repeated, request) == looks_of(job, request)
    assert not repeated.spent.take()


async def test_a_job_that_is_stopped_leaves_no_pixels(services: Services, spot: Spot) -> None:
    asked = asyncio.Event()

    def change(one: Asked, sight: Sight) -> Sight:
        asked.set()
        return sight

    running = asyncio.create_task(Reading(services, spot, change=change).run())
    await asked.wait()
    assert list(services.work_root.rglob("*.rgb")), "it is being read"
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    while list(services.work_root.rglob("*.rgb")):  # the step of the scan that was under way ends first
        await asyncio.sleep(0.01)


async def test_a_frame_that_cannot_be_read_is_failed_and_read_by_the_next_job(services: Services, spot: Spot) -> None:
    def refuse_first(asked: Asked, sight: Sight) -> Sight:
        if len(broken.eyes.asked) == 1:
            raise VisionError("overloaded", "busy")
        return sight

    broken = Reading(services, spot, change=refuse_first)
    job, request = await broken.run()
    failed = [look for segment in looks_of(job, request) for look in segment.looks if look.failed]
    assert failed
    assert any(segment.again for segment in looks_of(job, request))
    mended = Reading(services, spot, change=as_seen)
    job, request = await mended.run()
    assert not [look for segment in looks_of(job, request) for look in segment.looks if look.failed]
    assert len(mended.eyes.asked) == 1


async def test_a_file_that_is_gone_fails_its_segments_and_says_why(services: Services, spot: Spot) -> None:
    reading = Reading(services, replace(spot, path=spot.path))
    facts = await probe_video(services.decoders, spot.path, max_video_s=60, timeout_s=20, job="test")
    readers = choose_page_readers(services, "fast", 24, ()).readers
    stored = StoredFile("file_x", "gone.mp4", 1, "gone", spot.path.with_name("gone.mp4"))
    request = VideoRequest(stored, facts, ScanPlan(0.0, 6.0, STEP_S, True), readers)
    job = Job("gone", (1, 2))
    reader = SegmentReader(services, request, job)
    await fan_out(job.coverage, reader.segment, deadline=Deadline.after(60), limit=2)
    assert set(job.coverage.failed) == {1, 2}
    assert not reading.eyes.asked
    assert not reader.begun


def test_a_segment_under_way_is_known_up_to_its_first_unread_frame(tmp_path: Path) -> None:
    pixels = PixelFile(tmp_path / "0.rgb", 4, 4)
    samples = [
        Sample(0, 0.0, 0.04, "grid", pixels=pixels),
        Sample(1, 0.5, 0.54, "grid", same_as=0),
        Sample(2, 1.0, None, "grid", lost="torn"),
        Sample(3, 1.5, 1.54, "grid", pixels=pixels),
        Sample(4, 2.0, 2.04, "grid", same_as=3),
    ]
    work = SegmentWork(segment_of(ScanPlan(0.0, 6.0, 0.5, True), 1), samples)
    assert work.so_far() == BegunSegment((), 0.0)
    work.readings[0] = FrameReading(FrameLook(0.0, "grid", 0.04))
    begun = work.so_far()
    assert [(look.time_s, look.failed) for look in begun.looks] == [(0.0, ""), (0.5, ""), (1.0, "torn")]
    assert begun.known_to_s == 1.0
    work.readings[3] = FrameReading(FrameLook(1.5, "grid", 1.54))
    assert work.so_far().known_to_s == 2.04


def test_frames_in_flight_fill_the_readers_and_never_the_disk(services: Services, spot: Spot) -> None:
    services.vision, services.vision_missing = ScriptedEyes(()), None
    readers = choose_page_readers(services, "fast", 24, ()).readers
    facts = FACTS
    stored = StoredFile("file_x", "a.mp4", 1, "a", spot.path)
    request = VideoRequest(stored, facts, ScanPlan(0, 6, 0.5, True), readers)
    assert frames_in_flight(request) >= services.settings.vision_in_flight
    assert frames_in_flight(replace(request, facts=replace(FACTS, width_px=7680, height_px=4320))) == 5
    services.vision = None
    local = choose_page_readers(services, "fast", 24, ()).readers
    assert frames_in_flight(replace(request, readers=local)) >= services.settings.ocr_process_count
