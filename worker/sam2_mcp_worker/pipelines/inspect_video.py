"""Inspects a video in one call: frames on a grid and at cuts, read as images are; what is left comes over the cursor.

Owns the order of work for a video, one background job per range and reader. What the looks add up to is
video_findings.py's, what of it goes into which call's result video_delivery.py's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from sam2_mcp_worker.checks.phrases import checked_phrases
from sam2_mcp_worker.checks.rule_packs import VideoRules
from sam2_mcp_worker.deadline import current_deadline
from sam2_mcp_worker.jobs import Job, Progress
from sam2_mcp_worker.pipelines.frame_looks import VideoLooks
from sam2_mcp_worker.pipelines.inspected_video import InspectedVideo
from sam2_mcp_worker.pipelines.labels import wanted_labels
from sam2_mcp_worker.pipelines.page_readers import PageChoice, provider_identity
from sam2_mcp_worker.pipelines.reading_choice import Mode
from sam2_mcp_worker.pipelines.video_artifacts import VideoArtifacts, make_video_artifacts
from sam2_mcp_worker.pipelines.video_coverage import VideoCoverage, cover
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
from sam2_mcp_worker.pipelines.video_job import range_key, reading_notes, video_job, wait_for_looks
from sam2_mcp_worker.pipelines.video_range import plan_range, range_notes
from sam2_mcp_worker.pipelines.video_segments import VideoRequest
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.spending import Usage

TOOL = "inspect_video"
TOLD_ANEW = "frames were read that had failed before: texts are told again from the first one, in place of those before"


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
    work = video_job(services, stored, facts, asked, request.mode, labels)
    names = tuple(label.name for label in labels)
    shown = [request.mode, [[label.name, label.definition] for label in labels], list(phrases)]
    identities = [services.reader.identity, provider_identity(services)]
    cursor_key = cache_key(*range_key(stored, asked), *shown, *identities)
    before = from_cursor(request.cursor, TOOL, cursor_key, len(work.numbers))
    # A call with a cursor goes on with what the one before it reported; one without tries again what failed.
    async with work.join(retry=not request.cursor.strip()) as job:
        await wait_for_looks(job, deadline, progress)
        job.raise_error()
        choice, failed = work.choice(job), before.failed | frozenset(job.coverage.failed)
        looks = work.looks(job, before.failed)
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
    return VideoInspection(work.video, looks, account, findings, told, names, choice, notes, artifacts, spent, cursor)


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
