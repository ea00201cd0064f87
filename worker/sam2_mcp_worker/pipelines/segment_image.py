"""Cuts the objects of one image out to masks: in chunks under one job, the rest over the cursor.

The picture is decoded and embedded once for all prompts. What of the masks goes into which call's result is
object_delivery.py's business.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sam2_mcp_worker.artifacts import Artifact
from sam2_mcp_worker.deadline import Deadline, current_deadline
from sam2_mcp_worker.engines.ports import PROMPTS_PER_CHUNK, ObjectPrompt, Quality, Segmenter
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.fanout import Coverage, fan_out
from sam2_mcp_worker.jobs import JOB_LIMIT_S, Job
from sam2_mcp_worker.media.image import decode_image
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.pipelines.image_facts import ImageFacts, describe_image
from sam2_mcp_worker.pipelines.mask_pictures import COCO_KIND, coco_document, draw_overlay
from sam2_mcp_worker.pipelines.object_delivery import from_cursor, next_cursor, pack, reported
from sam2_mcp_worker.pipelines.picture_masks import PictureMasks
from sam2_mcp_worker.pipelines.prompts import MarkedPoint, PictureSize, object_prompts
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.uploads import StoredFile

TOOL = "segment_image"
# While the files of one chunk are written, the network decodes the next.
CHUNKS_IN_FLIGHT = 2
# Everything of a result but its objects: coverage, addresses, cursor.
FRAME_CHARS = 1500


@dataclass(frozen=True, slots=True)
class Request:
    """The arguments of one call."""

    source: str
    boxes: Sequence[Sequence[int]] = ()
    points: Sequence[MarkedPoint] = ()
    quality: Quality = "accurate"
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class Segmentation:
    """What one call delivers: `objects` as JSON, ready to be sent.

    The overlay and the masks of all objects together are made when every object is settled, None before.
    """

    file: StoredFile
    image: ImageFacts
    engine: str
    coverage: Coverage[int, Any]
    objects: list[dict[str, Any]]
    notes: tuple[str, ...]
    overlay: Artifact | None
    coco: Artifact | None
    cursor: str | None


@dataclass(frozen=True, slots=True)
class _Work:
    """One request on one picture, for its job."""

    services: Services
    segmenter: Segmenter
    stored: StoredFile
    image: ImageFacts
    prompts: tuple[ObjectPrompt, ...]
    quality: Quality

    @property
    def key(self) -> str:
        """Everything that decides the masks."""
        prompts = [prompt.to_params() for prompt in self.prompts]
        return cache_key(TOOL, self.stored.sha256, self.segmenter.identity, self.quality, prompts)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The objects' numbers."""
        return tuple(range(1, len(self.prompts) + 1))


async def segment_image(services: Services, request: Request) -> Segmentation:
    """Cut or continue cutting the objects of an image until the current deadline.

    Raises:
        WorkerError: no engine is there, the source, a prompt or the cursor is wrong, the image cannot be decoded, or
            no object could be cut.
    """
    deadline = current_deadline()
    if services.segmenter is None:
        raise services.segmenter_missing or WorkerError("not_available", "no engine for masks is there")
    stored = await services.sources.resolve(request.source)
    image = await describe_image(services, stored)
    prompts = object_prompts(request.boxes, request.points, PictureSize(image.width_px, image.height_px))
    work = _Work(services, services.segmenter, stored, image, prompts.objects, request.quality)
    before = from_cursor(TOOL, work.key, request.cursor, len(work.numbers))

    # A call with a cursor goes on with what the one before it reported; one without tries again what failed.
    retry = not request.cursor.strip()
    async with services.jobs.join(work.key, work.numbers, lambda job: _run(work, job), retry=retry) as job:
        await job.wait(deadline)
        if job.task is not None and not job.finished:  # every object is settled, the pictures of them are not yet
            await asyncio.wait({job.task}, timeout=deadline.remaining_s())
        _raise_for(job)
        coverage = reported(job.coverage, before)
        objects = {
            number: _described(work, number, coverage) for number in coverage.items if _settled(coverage, number)
        }
        chars = {number: len(json.dumps(fields, separators=(",", ":"))) for number, fields in objects.items()}
        packed = pack(coverage, before, chars, services.settings.result_max_chars - FRAME_CHARS)
        pictures = job.notes.get("pictures", {})
        return Segmentation(
            stored,
            image,
            work.segmenter.identity,
            coverage,
            [objects[number] for number in packed],
            (*prompts.notes, *(services.loading_notes() if coverage.unreached else ())),
            services.artifacts.find(pictures.get("overlay")),
            services.artifacts.find(pictures.get("coco")),
            next_cursor(TOOL, work.key, coverage, before, packed),
        )


def _raise_for(job: Job) -> None:
    """Why nothing could be cut, if so."""
    job.raise_error()
    coverage = job.coverage
    if coverage.failed and not coverage.done and not coverage.unreached:
        raise next(iter(coverage.failed.values()))


def _settled(coverage: Coverage[int, Any], number: int) -> bool:
    return number in coverage.done or number in coverage.failed


def _described(work: _Work, number: int, coverage: Coverage[int, Any]) -> dict[str, Any]:
    """One object as it is sent."""
    if number in coverage.failed:
        return {"number": number, "status": "failed", "reason": coverage.failed[number].reason}
    mask = coverage.done[number]
    if mask["box_xyxy_px"] is None:
        return {"number": number, "status": "done", "blank": True}
    return {
        "number": number,
        "status": "done",
        "box_xyxy_px": mask["box_xyxy_px"],
        "area_px": mask["area_px"],
        "area_pct": round(100 * mask["area_px"] / (work.image.width_px * work.image.height_px), 2),
        # Networks predict up to 1.01; a share is at most 1.
        "predicted_iou": round(min(1.0, mask["predicted_iou"]), 2),
        "stability": round(mask["stability"], 2),
        "touches_border": mask["touches_border"],
        "polygons": [
            {"outer": polygon["outer"], **({"holes": polygon["holes"]} if polygon["holes"] else {})}
            for polygon in mask["polygons"]
        ],
        "polygon_tolerance_px": mask["tolerance_px"],
        "mask": f"artifact://{mask['mask']}",
    }


async def _run(work: _Work, job: Job) -> None:
    """Settle every object, then make the pictures of all; what is kept costs nothing."""
    masks = PictureMasks(work.services, work.segmenter, work.stored, work.image, work.quality, work.key)
    kept = await asyncio.to_thread(lambda: [masks.kept(prompt) for prompt in work.prompts])
    for number, mask in zip(work.numbers, kept, strict=True):
        if mask is not None:
            job.coverage.mark_done(number, mask)
    pictures_key = cache_key("mask_pictures", work.key)
    if job.coverage.complete and (pictures := await asyncio.to_thread(_kept_pictures, work, pictures_key)):
        job.notes["pictures"] = pictures
        return
    settings = work.services.settings
    with work.services.work_directory("segment") as folder:
        decoded = await decode_image(
            work.services.decoders,
            work.stored.path,
            folder / "image.rgb",
            max_pixels=settings.max_picture_pixels,
            timeout_s=settings.step_timeout_s,
            job=work.key,
        )
        if not job.coverage.complete:
            await masks.encode(decoded.pixels)
            await _cut_all(work, job, masks, decoded.pixels, folder)
        done = dict(job.coverage.done)
        overlay = await draw_overlay(work.services, decoded.pixels, work.prompts, done, folder, work.key)
        pictures = await asyncio.to_thread(_store_coco, work, done, overlay)
        job.notes["pictures"] = pictures
        if not job.coverage.failed and overlay is not None:
            await asyncio.to_thread(work.services.cache.put, pictures_key, pictures)


def _kept_pictures(work: _Work, key: str) -> dict[str, Any] | None:
    kept = work.services.cache.get(key)
    if kept is None or not all(work.services.artifacts.holds(handle) for handle in kept.values()):
        return None
    return dict(kept)


def _store_coco(work: _Work, done: dict[int, Any], overlay: str | None) -> dict[str, Any]:
    data = coco_document(work.stored, work.image, done)
    facts = {
        "kind": COCO_KIND,
        "width_px": work.image.width_px,
        "height_px": work.image.height_px,
        "source_sha256": work.stored.sha256,
    }
    artifact = work.services.artifacts.put(data, name="objects.json", mime_type="application/json", facts=facts)
    return {"overlay": overlay, "coco": artifact.handle}


async def _cut_all(work: _Work, job: Job, masks: PictureMasks, pixels: PixelFile, folder: Path) -> None:
    """Chunk by chunk; of a chunk that fails each object is tried alone, so that none takes its neighbours along."""
    unreached = job.coverage.unreached
    chunks = [unreached[start : start + PROMPTS_PER_CHUNK] for start in range(0, len(unreached), PROMPTS_PER_CHUNK)]

    async def cut(numbers: tuple[int, ...]) -> None:
        try:
            found = await masks.cut(pixels, numbers, [work.prompts[number - 1] for number in numbers], folder)
        except WorkerError as error:
            if len(numbers) == 1:
                job.coverage.mark_failed(numbers[0], error)
                return
            for number in numbers:
                await cut((number,))
            return
        for number, mask in zip(numbers, found, strict=True):
            job.coverage.mark_done(number, mask)

    settled: Coverage[tuple[int, ...], None] = Coverage(tuple(chunks))
    await fan_out(settled, cut, deadline=Deadline.after(JOB_LIMIT_S), limit=CHUNKS_IN_FLIGHT)
    for numbers, error in settled.failed.items():  # a defect of ours, which fan_out has logged
        for number in numbers:
            if number in job.coverage.unreached:
                job.coverage.mark_failed(number, error)
