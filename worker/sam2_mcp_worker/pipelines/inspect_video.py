"""Inspects a video in one call: frames on a grid and at cuts, read as images are; what is left comes over the cursor.

Owns the order of work for a video, one background job per range and reader. What the looks add up to is
video_findings.py's, what of it goes into which call's result video_delivery.py's.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, replace

from sam2_mcp_worker.checks.exposure import ROUNDING_S
from sam2_mcp_worker.checks.phrases import checked_phrases
from sam2_mcp_worker.checks.rule_packs import VideoRules
from sam2_mcp_worker.deadline import Deadline, current_deadline
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.fanout import fan_out
from sam2_mcp_worker.jobs import JOB_LIMIT_S, Job
from sam2_mcp_worker.media.tiling import plan_tiles
from sam2_mcp_worker.media.video import VideoFacts
from sam2_mcp_worker.media.video_scan import ScanPlan
from sam2_mcp_worker.pipelines.frame_looks import VideoLooks
from sam2_mcp_worker.pipelines.inspected_video import InspectedVideo
from sam2_mcp_worker.pipelines.labels import wanted_labels
from sam2_mcp_worker.pipelines.page_readers import PageChoice, choose_page_readers, provider_identity
from sam2_mcp_worker.pipelines.reading_choice import Mode, vision_tiles
from sam2_mcp_worker.pipelines.segment_looks import SegmentLooks
from sam2_mcp_worker.pipelines.video_artifacts import VideoArtifacts, make_video_artifacts
from sam2_mcp_worker.pipelines.video_coverage import VideoCoverage, all_looks, cover
from sam2_mcp_worker.pipelines.video_delivery import (
    MAX_CUTS,
    Delivery,
    Told,
    deliver,
    from_cursor,
    to_cursor,
    told_spans,
)
from sam2_mcp_worker.pipelines.video_facts import facts_of
from sam2_mcp_worker.pipelines.video_findings import VideoFindings, find_all
from sam2_mcp_worker.pipelines.video_range import plan_range, range_notes, segment_numbers
from sam2_mcp_worker.pipelines.video_segments import SegmentReader, VideoRequest
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.spending import Usage

TOOL = "inspect_video"
# Kept free at the end of a call for findings and pictures: so much, and more for every line that was read (an hour of
# 20 lines a frame took 1.6 s on two busy cores, 11 us a line). Of a short budget at most a share.
FINISH_S = 3.0
FINISH_LINE_S = 15e-6
FINISH_SHARE = 0.4

TOLD_ANEW = "frames were read that had failed before: texts are told again from the first one, in place of those before"

Progress = Callable[[int, int], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Request:
    """The arguments of one call. `end_s` None: to the end of the video."""

    source: str
    labels: Sequence[str] = ()
    phrases: Sequence[str] = ()
    interval_s: float = 0.5
    start_s: float = 0.0
    end_s: float | None = None
    scene_changes: bool = True
    mode: Mode = "auto"
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class VideoInspection:
    """What one call delivers: all findings as of now, of the lines of text those not told before.

    `spent` is by the time of frames in milliseconds, since the call before; `choice` says who read.
    """

    video: VideoRequest
    looks: VideoLooks
    coverage: VideoCoverage
    findings: VideoFindings
    told: Delivery
    labels: tuple[str, ...]
    choice: PageChoice
    notes: list[str]
    artifacts: VideoArtifacts
    spent: dict[int, Usage]
    cursor: str | None


async def inspect_video(services: Services, request: Request, progress: Progress | None = None) -> VideoInspection:
    """Run or continue an inspection until the current deadline.

    Raises:
        WorkerError: the source, a label, a phrase, a time or the cursor is wrong, or the file is no readable video.
    """
    deadline = current_deadline()
    labels = wanted_labels(services, request.labels)
    phrases = tuple(dict.fromkeys(phrase.text for phrase in checked_phrases(request.phrases)))
    stored = await services.sources.resolve(request.source)
    facts = await facts_of(services, stored)
    asked = plan_range(
        request.start_s,
        request.end_s,
        request.interval_s,
        cuts=request.scene_changes,
        duration_s=facts.duration_s,
    )
    chosen = choose_page_readers(services, request.mode, _tile_count(services, facts, asked), labels)
    video = VideoRequest(stored, facts, asked, chosen.readers)
    names = tuple(label.name for label in labels)
    range_key = [TOOL, stored.sha256, asdict(asked)]
    shown = [request.mode, [[label.name, label.definition] for label in labels], list(phrases)]
    cursor_key = cache_key(*range_key, *shown, services.reader.identity, provider_identity(services))
    numbers = segment_numbers(asked)
    before = from_cursor(request.cursor, TOOL, cursor_key, len(numbers))

    async def start(job: Job) -> None:
        job.notes["choice"] = chosen
        job.again = chosen.readers.stand_in
        await _read_segments(services, job, video)

    # A call with a cursor goes on with what the one before it reported; one without tries again what failed.
    key = cache_key(*range_key, chosen.readers.wanted)
    async with services.jobs.join(key, numbers, start, retry=not request.cursor.strip()) as job:
        await _wait(job, deadline, progress)
        job.raise_error()
        choice = _choice(job, chosen)
        looks, failed = _looks(video, job, before), before.failed | frozenset(job.coverage.failed)
        findings = await _findings(job, looks, phrases, names, services.rule_pack.video)
        notes = [*range_notes(facts, request.end_s), *choice.notes, *reading_notes(job)]
        inspected = InspectedVideo(
            stored,
            facts,
            looks,
            findings,
            services.rule_pack.video,
            choice.engine,
            choice.regions_missing.reason if choice.regions_missing else "",
            tuple(notes),
        )
        artifacts = await make_video_artifacts(services, job, inspected, deadline)
        spent = job.spent.take()
    notes += artifacts.notes
    account = cover(looks)
    told = deliver(
        findings,
        Told(before.texts, failed, before.mark),
        complete=looks.complete,
        max_chars=services.settings.result_max_chars,
        beside=[notes, told_spans(account.failed), told_spans(account.unreached), findings.cuts_s[:MAX_CUTS]],
    )
    if told.anew:
        notes.append(TOLD_ANEW)
    finished = looks.complete and not told.texts_waiting
    cursor = None if finished else to_cursor(TOOL, cursor_key, told.after)
    return VideoInspection(video, looks, account, findings, told, names, choice, notes, artifacts, spent, cursor)


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


async def _wait(job: Job, deadline: Deadline, progress: Progress | None) -> None:
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


async def _findings(
    job: Job, looks: VideoLooks, phrases: Sequence[str], labels: Sequence[str], rules: VideoRules | None
) -> VideoFindings:
    """What the looks add up to; of a finished job it is not found anew for every page of its texts."""
    known: tuple[object, VideoFindings] | None = job.notes.get("findings")
    asked = (tuple(phrases), tuple(labels), looks) if looks.complete else None
    if known is not None and asked is not None and known[0] == asked:
        return known[1]
    started_s = time.monotonic()
    findings = await asyncio.to_thread(find_all, looks, phrases, labels, rules)
    job.notes.update(findings=(asked, findings), findings_s=time.monotonic() - started_s)
    return findings


def _choice(job: Job, chosen: PageChoice) -> PageChoice:
    """Who reads was settled when the job began; what there is to say of it depends on what this call asked for."""
    begun: PageChoice = job.notes.get("choice", chosen)
    return chosen if begun.readers.identity == chosen.readers.identity else begun


def _looks(video: VideoRequest, job: Job, before: Told) -> VideoLooks:
    """What is known by now. What was told as failed stays so for the calls of one request, though it was read since."""
    reader: SegmentReader | None = job.notes.get("reader")
    begun = {number: work.so_far() for number, work in reader.begun.items()} if reader is not None else {}
    told_failed = {number: WorkerError("failed_before", "see the earlier result") for number in before.failed}
    failed = told_failed | job.coverage.failed
    looks = all_looks(video.asked, video.size_px, job.coverage.done, failed, begun)
    return replace(
        looks, more_before=video.asked.start_s > 0, more_behind=video.asked.end_s < video.facts.duration_s - ROUNDING_S
    )


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
