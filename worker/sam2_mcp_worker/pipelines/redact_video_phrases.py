"""Finds phrases in a video for its redaction, and looks for them once more in what was written.

Frames are read by the local engine on a dense grid and at cuts, as inspect_video reads them; the written video half a
step beside it, so that what moves or flashes between two frames of the first reading is found by the second.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.disk import file_sha256
from sam2_mcp_worker.fanout import fan_out
from sam2_mcp_worker.jobs import JOB_LIMIT_S, Job
from sam2_mcp_worker.media.video import VideoFacts, probe_video
from sam2_mcp_worker.media.video_scan import ScanPlan
from sam2_mcp_worker.pipelines.frame_looks import FrameLook, VideoLooks
from sam2_mcp_worker.pipelines.page_readers import local_readers
from sam2_mcp_worker.pipelines.redact_findings import Findings, unverified
from sam2_mcp_worker.pipelines.redact_task import RedactionTask
from sam2_mcp_worker.pipelines.redact_video_cover import PhraseCover, plan_cover
from sam2_mcp_worker.pipelines.segment_looks import SegmentLooks
from sam2_mcp_worker.pipelines.video_coverage import all_looks
from sam2_mcp_worker.pipelines.video_range import plan_range, segment_numbers
from sam2_mcp_worker.pipelines.video_segments import SegmentReader, VideoRequest
from sam2_mcp_worker.uploads import StoredFile

# Text that can be read is on screen longer, and frames that look the same are read once: a still text costs one frame.
INTERVAL_S = 0.25
# Frames of one reading; a longer video is read less densely, which the result says.
MAX_FRAMES = 20_000
MAX_TOLD_PLACES = 20


class PhraseSearch:
    """All phrases of a request in one video."""

    def __init__(self, task: RedactionTask, facts: VideoFacts, findings: Findings) -> None:
        self._task = task
        self._facts = facts
        self._findings = findings
        self._interval_s = max(INTERVAL_S, facts.duration_s / MAX_FRAMES)

    async def find(self) -> list[dict[str, Any]]:
        """The boxes that cover all phrases in the source, as the painter takes them.

        Raises:
            WorkerError: no part of the video could be read.
        """
        looks = await self._read(self._task.stored, self._facts, 0.0, "reading the video")
        cover = await self._plan(looks)
        await asyncio.to_thread(self._findings.miss, cover.lines, cover.places)
        self._tell_unread(looks)
        self._findings.not_verified.append(
            f"frames between those that were read ({self._interval_s / 2:g} s apart in both readings together): there "
            "the places on both sides are covered, and the way between them"
        )
        self._findings.not_verified.append(
            "what is seen of a phrase while it enters or leaves the picture: it is covered from where it reads as the "
            "phrase"
        )
        return _boxes(cover)

    async def find_again(self, written: Path) -> list[dict[str, Any]]:
        """Boxes for what the written video still shows; none means that it shows no phrase any more.

        Raises:
            WorkerError: redaction_unverified when a part of it cannot be read that could be read in the source.
        """
        facts = await probe_video(
            self._task.services.decoders,
            written,
            max_video_s=2 * self._task.services.settings.max_video_s,
            timeout_s=self._task.timeout_s,
            job=self._task.job,
        )
        stored = await asyncio.to_thread(_stored, written)
        start_s = min(self._interval_s, facts.duration_s) / 2
        looks = await self._read(stored, facts, start_s, "reading the result")
        if looks.failed or any(look.failed for look in looks.looks):
            raise unverified("the output could not be read again in all its frames")
        cover = await self._plan(looks)
        if not cover.covers:
            self._findings.verified.append(
                f"read again every {self._interval_s:g} s, half a step beside the first reading, and at cuts: none of "
                "the phrases, nor a look-alike"
            )
        return _boxes(cover)

    async def _plan(self, looks: VideoLooks) -> PhraseCover:
        cover = await asyncio.to_thread(plan_cover, self._task.request.phrases, looks)
        for one in cover.showings:
            self._findings.cover_match(
                one.match,
                box_xyxy_px=list(one.box_xyxy_px),
                start_s=round(one.start_s, 3),
                end_s=round(one.end_s, 3),
                shape="box",
                source="ocr",
            )
        return cover

    async def _read(self, stored: StoredFile, facts: VideoFacts, start_s: float, doing: str) -> VideoLooks:
        asked: ScanPlan = plan_range(start_s, None, self._interval_s, cuts=True, duration_s=facts.duration_s)
        job = Job(self._task.job, segment_numbers(asked))
        readers = local_readers(self._task.services)
        reader = SegmentReader(self._task.services, VideoRequest(stored, facts, asked, readers), job)

        async def work(number: int) -> SegmentLooks:
            done = await reader.segment(number)
            self._task.tell(f"{doing}: {job.coverage.settled + 1} of {len(job.coverage.items)} parts")
            return done

        coverage = await fan_out(job.coverage, work, deadline=Deadline.after(JOB_LIMIT_S), limit=reader.in_flight)
        if coverage.failed and not coverage.done:
            raise next(iter(coverage.failed.values()))
        return all_looks(asked, (facts.width_px, facts.height_px), coverage.done, coverage.failed, {})

    def _tell_unread(self, looks: VideoLooks) -> None:
        """Why a phrase may be shown all the same."""
        failed = [look for look in looks.looks if look.failed]
        partly = [look for look in looks.looks if look.partly]
        self._findings.parts_failed = bool(failed or partly or looks.failed)
        if looks.failed:
            spans = ", ".join(f"{one.start_s:.2f}-{one.end_s:.2f}" for one in looks.failed[:MAX_TOLD_PLACES])
            self._findings.incomplete.append(f"a phrase may stand in what could not be decoded, seconds: {spans}")
        for what, those in (("could not be read", failed), ("were read in part", partly)):
            if those:
                self._findings.incomplete.append(
                    f"{len(those)} frames {what}, a phrase may stand there: look at {_times(those)} s"
                )
        inked = [look for look in looks.looks if look.undetected_ink and look.same_as_s is None]
        if inked:
            places = [[round(look.time_s, 2), list(look.undetected_ink[0])] for look in inked[:MAX_TOLD_PLACES]]
            self._findings.incomplete.append(
                f"in {len(inked)} frames something looks like text and nobody could read it, a phrase may stand there: "
                f"look at {places} (s, box)"
            )


def _stored(path: Path) -> StoredFile:
    """A file of ours as one that can be read."""
    return StoredFile("", path.name, path.stat().st_size, file_sha256(path), path)


def _times(looks: list[FrameLook]) -> str:
    return ", ".join(f"{look.time_s:.2f}" for look in looks[:MAX_TOLD_PLACES])


def _boxes(cover: PhraseCover) -> list[dict[str, Any]]:
    return [{"box": list(one.box_xyxy_px), "start_s": one.start_s, "end_s": one.end_s} for one in cover.covers]
