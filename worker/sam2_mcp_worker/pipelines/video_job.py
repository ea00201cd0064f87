"""The frames of a video read under one job, for every tool that looks at videos: which range, who reads, what so far.

Owns the way from a stored file to looks that grow. What they add up to is video_findings.py's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from sam2_mcp_worker.checks.exposure import ROUNDING_S
from sam2_mcp_worker.checks.labels import Label
from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.fanout import fan_out
from sam2_mcp_worker.jobs import JOB_LIMIT_S, Job, JobVisit, Progress
from sam2_mcp_worker.media.tiling import plan_tiles
from sam2_mcp_worker.media.video import VideoFacts
from sam2_mcp_worker.media.video_scan import ScanPlan
from sam2_mcp_worker.pipelines.frame_looks import VideoLooks
from sam2_mcp_worker.pipelines.page_readers import PageChoice, choose_page_readers
from sam2_mcp_worker.pipelines.reading_choice import Mode, vision_tiles
from sam2_mcp_worker.pipelines.segment_looks import SegmentLooks
from sam2_mcp_worker.pipelines.video_coverage import all_looks
from sam2_mcp_worker.pipelines.video_range import segment_numbers
from sam2_mcp_worker.pipelines.video_segments import SegmentReader, VideoRequest
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.uploads import StoredFile

# Kept free at the end of a call for findings and pictures: so much, and more for every line that was read (an hour of
# 20 lines a frame took 1.6 s on two busy cores, 11 us a line). Of a short budget at most a share.
FINISH_S = 3.0
FINISH_LINE_S = 15e-6
FINISH_SHARE = 0.4


@dataclass(frozen=True, slots=True)
class VideoJob:
    """One request for a range of one video. Segments are numbered from 1 in coverages."""

    services: Services
    video: VideoRequest
    chosen: PageChoice

    @property
    def numbers(self) -> tuple[int, ...]:
        """Those of all segments."""
        return segment_numbers(self.video.asked)

    def join(self, *, retry: bool) -> JobVisit:
        """Take part in the reading. With `retry` what failed, or may be read better now, is read again."""
        chosen = self.chosen

        async def start(job: Job) -> None:
            job.notes["choice"] = chosen
            job.again = chosen.readers.stand_in
            await _read_segments(self.services, job, self.video)

        key = cache_key(*range_key(self.video.stored, self.video.asked), chosen.readers.wanted)
        return self.services.jobs.join(key, self.numbers, start, retry=retry)

    def choice(self, job: Job) -> PageChoice:
        """Who reads was settled when the job began; what there is to say of it depends on what this call asked for."""
        begun: PageChoice = job.notes.get("choice", self.chosen)
        return self.chosen if begun.readers.identity == self.chosen.readers.identity else begun

    def looks(self, job: Job, told_failed: frozenset[int] = frozenset()) -> VideoLooks:
        """What is known by now. What was told as failed stays so for the calls of one request, though it was read
        since.
        """
        video = self.video
        reader: SegmentReader | None = job.notes.get("reader")
        begun = {number: work.so_far() for number, work in reader.begun.items()} if reader is not None else {}
        before = {number: WorkerError("failed_before", "see the earlier result") for number in told_failed}
        failed = before | job.coverage.failed
        looks = all_looks(video.asked, video.size_px, job.coverage.done, failed, begun)
        return replace(
            looks,
            more_before=video.asked.start_s > 0,
            more_behind=video.asked.end_s < video.facts.duration_s - ROUNDING_S,
        )


def video_job(
    services: Services, stored: StoredFile, facts: VideoFacts, asked: ScanPlan, mode: Mode, labels: Sequence[Label]
) -> VideoJob:
    """The job for a range, with the readers that its amount of frames asks for."""
    chosen = choose_page_readers(services, mode, _tile_count(services, facts, asked), labels)
    return VideoJob(services, VideoRequest(stored, facts, asked, chosen.readers), chosen)


def range_key(stored: StoredFile, asked: ScanPlan) -> list[Any]:
    """What identifies a range of a video in keys."""
    return ["inspect_video", stored.sha256, asdict(asked)]


def _tile_count(services: Services, facts: VideoFacts, asked: ScanPlan) -> int:
    """Tiles of the whole range for the rule of the modes; frames at cuts come on top, and only make it larger."""
    per_frame = len(plan_tiles(facts.width_px, facts.height_px, vision_tiles(services.settings)))
    return asked.grid_count * per_frame


async def _read_segments(services: Services, job: Job, video: VideoRequest) -> None:
    reader = job.notes["reader"] = SegmentReader(services, video, job)

    async def work(number: int) -> SegmentLooks:
        segment = await reader.segment(number)
        job.again |= bool(segment.again)
        job.notes["lines"] = job.notes.get("lines", 0) + segment.line_count
        return segment

    # A segment in which nothing changes is one frame: as many segments as frames may be under way.
    await fan_out(job.coverage, work, deadline=Deadline.after(JOB_LIMIT_S), limit=reader.in_flight)


async def wait_for_looks(job: Job, deadline: Deadline, progress: Progress | None) -> None:
    """Wait for the job, but for the time that findings need; tells the progress after each change."""
    budget_s = deadline.remaining_s()
    while not (job.finished or job.coverage.complete):
        # On a busy machine they take what they took last time.
        findings_s = max(FINISH_LINE_S * job.notes.get("lines", 0), job.notes.get("findings_s", 0.0))
        finish_s = FINISH_S + findings_s
        until = Deadline(deadline.at_s - min(finish_s, FINISH_SHARE * budget_s), deadline.clock)
        if until.expired:
            return
        settled = job.coverage.settled
        if progress is not None:
            await progress(settled, len(job.coverage.items))
        await job.wait_beyond(settled, until)


def reading_notes(job: Job) -> list[str]:
    """What an agent should know of how frames were read, one sentence a reason."""
    segments: list[SegmentLooks] = list(job.coverage.done.values())
    stood_in = sum((segment.stood_in for segment in segments), Counter[str]())
    notes = [
        f"{count} frames were read by the local engine instead of the vision provider: {reason}"
        for reason, count in stood_in.items()
    ]
    if cuts := sum(segment.cuts_left_out for segment in segments):
        notes.append(f"scenes change so fast that the frames at {cuts} more cuts were not looked at")
    if dropped := sum(segment.dropped for segment in segments):
        notes.append(f"{dropped} items of the vision provider's answers made no sense and were left out")
    if invented := sum(segment.invented for segment in segments):
        notes.append(f"{invented} lines were left out: there is nothing where they were said to stand")
    if again := next((segment.again for segment in segments if segment.again), ""):
        notes.append("calling again later may give more" + ("" if again in stood_in else f": {again}"))
    return notes
