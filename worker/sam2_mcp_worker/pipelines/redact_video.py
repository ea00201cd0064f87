"""Redacts a video: boxes for spans of time, phrases and tracked objects, written anew, decoded again and compared.

Where a tracked object is not known to be, nothing is guessed: the call is refused with the spans, and the agent says
what they need (boxes, a denser tracking, or times of the handle that leave them out).
"""

from __future__ import annotations

import asyncio
import bisect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.track_spans import Span, Unknown, largest_step_s, unknown_spans
from sam2_mcp_worker.media.tracks_file import FACTS_KIND, Tracks, read_tracks
from sam2_mcp_worker.media.video import probe_video
from sam2_mcp_worker.media.video_redaction import VideoCheck, VideoContents, compare_videos, video_contents
from sam2_mcp_worker.media.video_write import PainterSpec, WrittenVideo, write_video
from sam2_mcp_worker.pipelines.redact_areas import check_belongs, clipped_box, find_artifact, handle_unfit
from sam2_mcp_worker.pipelines.redact_findings import Findings, keep, output_name, unverified
from sam2_mcp_worker.pipelines.redact_request import Method, Region
from sam2_mcp_worker.pipelines.redact_task import RedactionTask
from sam2_mcp_worker.pipelines.redact_video_phrases import PhraseSearch
from sam2_mcp_worker.pipelines.video_facts import Video, describe_video

# Longer steps between tracked frames leave room for a whole movement that nobody saw.
MAX_STEP_S = 0.5
# H.264 at CRF 20 leaves black within 11 levels, whatever surrounds it, random black and white pixels included, and with
# 19 on average in areas of 5 x 4 px, which are all edge (measured 2026-11-30). A frame left out has 60 and more.
MAX_FILL_LEVEL = 24
# Random black and white pixels come out with 22 dB, ordinary pictures with 38; a picture turned over has 19.
MIN_PSNR_DB = 20.0
# A track of sound may end a part of a packet after the pictures.
SAME_LENGTH_S = 0.1
MAX_TOLD_SPANS = 6
# With a line gone the detector may see a neighbour that it missed before. Each round covers what the last one showed.
ROUNDS = 3


class VideoRedactor:
    """The steps for one video, with what they share."""

    def __init__(self, task: RedactionTask) -> None:
        self._task = task
        self._findings = Findings(task.request.phrases)
        self._boxes: list[dict[str, Any]] = []
        self._tracks: list[dict[str, Any]] = []

    async def run(self) -> dict[str, Any]:
        """The result, with the handle of the redacted video.

        Raises:
            WorkerError: the video cannot be read, a region or handle is wrong, an object's place is unknown for a time,
                or the output did not pass its check.
        """
        video = await describe_video(self._task.services, self._task.stored)
        for region in self._task.request.regions:
            if not region.handle:
                self._plan_box(region, video)
        for region in self._task.request.regions:
            if region.handle:
                await self._plan_tracks(region, video)
        search = PhraseSearch(self._task, video.facts, self._findings) if self._task.request.phrases else None
        if search is not None:
            self._boxes += await search.find()
        if not self._boxes and not self._tracks:
            return self._findings.to_json(self._task.request.method, None)
        written = await self._cover_and_check(video, search)
        self._findings.notes += _changes(video, written)
        name = output_name(self._task.stored.name, ".mp4", self._task.request.phrases)
        artifact = await keep(self._task.services, written.path, name=name, mime_type="video/mp4")
        return self._findings.to_json(self._task.request.method, artifact)

    async def _cover_and_check(self, video: Video, search: PhraseSearch | None) -> WrittenVideo:
        """Write and verify; a phrase that still shows is covered in the next round."""
        for number in range(1, ROUNDS + 1):
            painter = {
                "method": self._task.request.method,
                "size_px": [video.facts.width_px, video.facts.height_px],
                "boxes": self._boxes,
                "tracks": self._tracks,
            }
            self._findings.verified.clear()
            written = await self._write(video, painter, number)
            await self._verify(video, painter, written)
            shown = await search.find_again(written.path) if search is not None else []
            if not shown:
                return written
            self._boxes += shown
        raise unverified(f"phrases were still readable after {ROUNDS} rounds")

    def _plan_box(self, region: Region, video: Video) -> None:
        """A box covers every frame that is on screen in its span, so also the one that was there when it began."""
        assert region.box_xyxy_px is not None
        size = (video.facts.width_px, video.facts.height_px)
        box = clipped_box(region, region.box_xyxy_px, size, "video")
        start_s, end_s = _span(region, video)
        self._boxes.append({"box": list(box), "start_s": start_s, "end_s": end_s})
        self._findings.cover_region(
            region.number,
            box_xyxy_px=list(box),
            start_s=round(start_s, 3),
            end_s=round(end_s, 3),
            shape="box",
            source="box",
        )

    async def _plan_tracks(self, region: Region, video: Video) -> None:
        artifact, path = await find_artifact(self._task.services, region)
        check_belongs(region, artifact, self._task.stored, (video.facts.width_px, video.facts.height_px))
        if artifact.facts.get("kind") != FACTS_KIND:
            raise handle_unfit(region, "holds no tracks", "a video takes the `tracks` that track_video made")
        tracks = await asyncio.to_thread(read_tracks, path)
        span = _span(region, video)
        boxes = [(box["start_s"], box["end_s"]) for box in self._boxes]
        unknown = unknown_spans(tracks, span, boxes)
        if unknown:
            raise _not_known(region, unknown, tracks)
        self._tracks.append({"path": str(path), "start_s": span[0], "end_s": span[1]})
        self._findings.cover_region(
            region.number, start_s=round(span[0], 3), end_s=round(span[1], 3), shape="mask", source="handle"
        )
        self._tell_steps(region, tracks)

    def _tell_steps(self, region: Region, tracks: Tracks) -> None:
        step_s = largest_step_s(tracks)
        self._findings.not_verified.append(
            f"region {region.number}: that the tracks follow the right thing, and where it is between tracked frames "
            f"(up to {step_s:.2f} s apart): there the hull of both masks is covered, grown by a quarter of the way"
        )
        if step_s > MAX_STEP_S:
            self._findings.incomplete.append(
                f"region {region.number}: tracked frames are up to {step_s:.2f} s apart, what moves quickly may show "
                "between them: call track_video again with its cursor or a smaller every_s, or look at the result"
            )

    async def _write(self, video: Video, painter: dict[str, Any], number: int) -> WrittenVideo:
        segments = self._task.workdir / f"segments-{number}"
        segments.mkdir()
        return await write_video(
            self._task.services.decoders,
            self._task.stored.path,
            video.facts,
            PainterSpec("redact", painter),
            self._task.workdir / f"redacted-{number}.mp4",
            segments,
            audio="keep" if self._task.request.audio == "keep" else "drop",
            timeout_s=self._task.timeout_s,
            job=self._task.job,
            on_progress=lambda at_s: self._task.tell(f"covering: {at_s:.1f} of {video.facts.duration_s:.1f} s"),
        )

    async def _verify(self, video: Video, painter: dict[str, Any], written: WrittenVideo) -> None:
        """Decode the output and compare.

        Raises:
            WorkerError: redaction_unverified.
        """
        redactors, facts = self._task.services.redactors, video.facts
        check = await compare_videos(
            redactors,
            self._task.stored.path,
            written.path,
            facts,
            painter,
            timeout_s=self._task.timeout_s,
            job=self._task.job,
            on_progress=lambda at_s: self._task.tell(f"verifying: {at_s:.1f} of {facts.duration_s:.1f} s"),
        )
        self._findings.verified += frame_proofs(check, written.frames, self._task.request.method)
        if self._task.request.method != "fill":
            self._findings.not_verified.append("that nothing can be made out in what was pixelated or blurred")
        contents = await video_contents(redactors, written.path, timeout_s=self._task.timeout_s, job=self._task.job)
        held = content_proof(contents, sound=written.audio not in ("dropped", "none"))
        length_s = await self._length_s(written.path)
        if abs(length_s - facts.duration_s) > SAME_LENGTH_S + 1 / max(facts.fps, 1):
            raise unverified(f"it lasts {length_s:.2f} s and the source {facts.duration_s:.2f} s")
        self._findings.verified.append(f"{held}; it lasts {length_s:.2f} s")

    async def _length_s(self, path: Path) -> float:
        facts = await probe_video(
            self._task.services.decoders,
            path,
            max_video_s=2 * self._task.services.settings.max_video_s,
            timeout_s=self._task.timeout_s,
            job=self._task.job,
        )
        return facts.duration_s


def content_proof(contents: VideoContents, *, sound: bool) -> str:
    """What the list of a file's contents proves, in words.

    Raises:
        WorkerError: redaction_unverified.
    """
    if (contents.video, contents.audio, contents.others, contents.tags) != (1, int(sound), (), ()):
        raise unverified(f"the file holds more than pictures and the chosen sound ({contents})")
    tracks = f"one track of pictures, {'one' if sound else 'none'} of sound"
    return f"the file holds {tracks}, and no metadata, subtitles or attachments"


def frame_proofs(check: VideoCheck, written_frames: int, method: Method) -> list[str]:
    """What the comparison of all frames proves, in words.

    Raises:
        WorkerError: redaction_unverified.
    """
    if check.stray_s is not None or check.frames != written_frames:
        raise unverified(f"frames and times differ from the source at {check.stray_s or 0.0:.2f} s")
    if check.fill_level > MAX_FILL_LEVEL:
        raise unverified(f"a covered area differs from its colour by {check.fill_level} levels of 255")
    if check.least_psnr_db < MIN_PSNR_DB:
        raise unverified(f"a frame differs from the covered source ({check.least_psnr_db:.1f} dB)")
    if check.covered_frames == 0:
        raise unverified("no frame is on screen in the spans of the regions")
    covered = (
        f"in each of {check.covered_frames} frames the covered areas have one colour, within {check.fill_level} levels "
        "of 255 (8 px along the edges left out: the codec mixes them)"
        if method == "fill"
        else f"{check.covered_frames} frames are covered"
    )
    return [
        covered,
        f"all {check.frames} frames come at the times of the source and look like it outside of the regions (PSNR "
        f"{check.least_psnr_db:.1f} dB at least, {check.mean_psnr_db:.1f} dB on average: encoded anew)",
    ]


def _span(region: Region, video: Video) -> Span:
    """The region's times, begun with the frame that is on screen then, within the video.

    Raises:
        WorkerError: `region_invalid` when it begins behind the end.
    """
    duration_s = video.facts.duration_s
    start_s = region.start_s or 0.0
    if start_s >= duration_s:
        raise WorkerError(
            "region_invalid",
            f"region {region.number} begins at {start_s:g} s",
            rule=f"the video lasts {duration_s:.2f} s",
            next_step="correct start_s and call again",
        )
    place = bisect.bisect_right(video.times_s, start_s + 1e-6)
    on_screen_s = video.times_s[place - 1] if place else 0.0
    return min(start_s, on_screen_s), min(region.end_s or duration_s, duration_s)


def _not_known(region: Region, unknown: Sequence[Unknown], tracks: Tracks) -> WorkerError:
    spans = ", ".join(
        f"object {one.object_number} {one.start_s:.2f}-{one.end_s:.2f}" for one in unknown[:MAX_TOLD_SPANS]
    )
    more = f" and {len(unknown) - MAX_TOLD_SPANS} more" if len(unknown) > MAX_TOLD_SPANS else ""
    return WorkerError(
        "place_unknown",
        f"region {region.number}: it is not known where it is in these seconds: {spans}{more}",
        rule="the tracks must know an object wherever it is to be covered"
        + ("" if tracks.complete else " (unfinished)"),
        next_step="go on with track_video, or add box regions for these times, or give the handle with start_s and "
        "end_s if it needs no cover there",
    )


def _changes(video: Video, written: WrittenVideo) -> list[str]:
    notes = ["encoded anew as H.264 in MP4; metadata, chapters, subtitles and further tracks are gone"]
    if written.audio in ("copied", "encoded"):
        notes.append(f"the sound was kept ({written.audio}): nobody listened whether it tells what is covered")
    if written.audio == "dropped":
        notes.append("the sound is gone")
    if video.facts.rotation_deg:
        notes.append("the pictures were turned upright; boxes are of the upright video")
    if written.pixel_format != "yuv420p":
        notes.append(f"its odd size needs the pixel format {written.pixel_format}, which not every player shows")
    if written.damaged_s:
        spans = ", ".join(f"{start:.2f}-{end:.2f}" for start, end in written.damaged_s[:MAX_TOLD_SPANS])
        notes.append(f"damaged in the source, seconds: {spans}")
    return notes
