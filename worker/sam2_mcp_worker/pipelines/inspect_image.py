"""Text and regions of one image in one call: what picture_job reads and image_regions settles, delivered exactly once.

Lines and regions have a place of their own in the cursor, so that neither waits for the other.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sam2_mcp_worker.artifacts import Artifact
from sam2_mcp_worker.checks.labels import DEFAULT
from sam2_mcp_worker.cursors import decode_cursor
from sam2_mcp_worker.deadline import current_deadline
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.fanout import Coverage
from sam2_mcp_worker.jobs import Job
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.pipelines.bands import Place as LinePlace
from sam2_mcp_worker.pipelines.bands import from_cursor, to_cursor
from sam2_mcp_worker.pipelines.image_lines import ImageLines, image_lines
from sam2_mcp_worker.pipelines.image_regions import FoundRegion, ImageRegions
from sam2_mcp_worker.pipelines.labels import to_wanted, wanted_labels
from sam2_mcp_worker.pipelines.picture_job import Beside, PictureJob, open_picture
from sam2_mcp_worker.pipelines.read_picture import Area, PictureReading
from sam2_mcp_worker.pipelines.reading_choice import Mode
from sam2_mcp_worker.pipelines.region_delivery import Place, from_state, next_regions, to_state
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.spending import Usage

TOOL = "inspect_image"
# Regions have at most this share of a result, so that a picture of a thousand coins does not hold up its text.
REGIONS_SHARE = 0.5
# Everything of a result but its lines, regions, labels and areas: coverage, notes, addresses, cursor.
FRAME_CHARS = 1500
# Of a page of 250 tiles that nobody could look at, the first areas say all; their number is told, and the coverage.
MAX_AREAS = 20
AREA_REASON_CHARS = 160
# What lines and regions have at least, whatever else there is to say.
LEAST_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Request:
    """The arguments of one call; no labels are those of the rule pack."""

    source: str
    labels: Sequence[str] = ()
    mode: Mode = "auto"
    max_lines: int = 200
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class RegionResult:
    """What there is to say of regions: `missing` when nobody looked for any, else those of this call.

    `total` are settled by now. `complete` says that every part of the picture was looked at and all are in this result
    or an earlier one; in `unlooked` parts some may have been missed: the first of them are `unlooked_areas`.
    """

    missing: WorkerError | None
    found: list[dict[str, Any]]
    total: int
    complete: bool
    unlooked: int
    unlooked_areas: list[Area]


@dataclass(frozen=True, slots=True)
class ImageInspection:
    """What one call delivers; the overlay comes when all regions are settled."""

    picture: PictureJob
    labels: tuple[str, ...]
    coverage: Coverage[int, Any]
    lines: ImageLines
    merged: PictureReading
    failed_areas: list[Area]
    regions: RegionResult
    notes: list[str]
    overlay: Artifact | None
    spent: dict[int, Usage]
    cursor: str | None


async def inspect_image(services: Services, request: Request) -> ImageInspection:
    """Read and look at an image, or go on with it, until the current deadline.

    Raises:
        WorkerError: a label, the source or the cursor is wrong, the image cannot be decoded, or no tile could be read.
    """
    deadline = current_deadline()
    labels = wanted_labels(services, request.labels or [DEFAULT])
    picture = await open_picture(
        services,
        TOOL,
        request.source,
        cursor=request.cursor,
        mode=request.mode,
        wanted=to_wanted(labels, text=True),
        version=[[label.name, label.definition] for label in labels],
    )
    place, after = _from_cursor(picture, request.cursor)
    async with picture.join(retry=not request.cursor.strip(), beside=_beside(picture)) as job:
        await job.wait(deadline)
        if job.task is not None and not job.finished:  # every tile is read, its regions are not cut or drawn yet
            await asyncio.wait({job.task}, timeout=deadline.remaining_s())
        coverage, merged = await picture.reading(job, place.failed)
        regions = _regions(picture, job)
        job.again = job.again or regions.again
        settled = regions.settled and job.finished
        spent = job.spent.take()
    failed_areas, unlooked_areas = _few(merged.unread), _few(merged.unlooked)
    names = tuple(label.name for label in labels)
    numbers = [sorted(coverage.failed), coverage.unreached]
    budget = _budget(services.settings.result_max_chars, names, failed_areas, unlooked_areas, merged.truncated, numbers)
    # Below the foot of the picture there are no lines left to share with.
    share = 1.0 if place.after_y_px >= picture.image.height_px else REGIONS_SHARE
    chosen = next_regions(regions.found, after, lambda one: _chars(described(one)), int(budget * share))
    found = [described(one) for one in chosen]
    lines = image_lines(
        picture,
        coverage,
        merged,
        place,
        max_lines=request.max_lines,
        max_chars=budget - sum(_chars(fields) for fields in found),
    )
    last = chosen[-1].place if chosen else after
    all_told = settled and (not regions.found or regions.found[-1].place <= last)
    return ImageInspection(
        picture=picture,
        labels=names,
        coverage=coverage,
        lines=lines,
        merged=merged,
        failed_areas=failed_areas,
        regions=RegionResult(
            missing=_missing(picture, coverage, merged),
            found=found,
            total=len(regions.found),
            complete=all_told and coverage.complete and not merged.unlooked,
            unlooked=len(merged.unlooked),
            unlooked_areas=unlooked_areas,
        ),
        notes=[*picture.notes(merged), *([] if settled else _waiting(services, regions, coverage, merged))],
        overlay=services.artifacts.find(regions.overlay) if settled else None,
        spent=spent,
        cursor=_to_cursor(picture, lines.next_place, frozenset(coverage.failed), last, all_told),
    )


def _beside(picture: PictureJob) -> Beside | None:
    """What settles the regions; nothing does where nobody looks for any."""
    if picture.choice.regions_missing is not None:
        return None

    async def settle(job: Job, pixels: PixelFile, folder: Path) -> None:
        regions = job.notes["regions"] = ImageRegions(picture)
        await regions.settle(job, pixels, folder)

    return settle


def _regions(picture: PictureJob, job: Job) -> ImageRegions:
    """Those of the job; before it has begun with them, or where nobody looks, an empty list."""
    if picture.choice.regions_missing is not None:
        return ImageRegions(picture, settled_px=picture.image.height_px)
    known: ImageRegions | None = job.notes.get("regions")
    return known or ImageRegions(picture)


def described(found: FoundRegion) -> dict[str, Any]:
    """One region as it is sent: the box of its mask where it has one, else the box as it was seen."""
    region, cut = found.region, found.cut
    fields: dict[str, Any] = {
        "number": found.number,
        "label": region.label,
        "box_xyxy_px": list(region.box_xyxy_px),
        "confidence": round(region.confidence, 2),
    }
    if region.text_height_px is not None:
        fields["text_height_px"] = round(region.text_height_px, 1)
    if "reason" in cut:
        return fields | {"box_only": cut["reason"]}
    return fields | {
        "box_xyxy_px": cut["box_xyxy_px"],
        "area_px": cut["area_px"],
        "polygons": [
            {"outer": polygon["outer"], **({"holes": polygon["holes"]} if polygon["holes"] else {})}
            for polygon in cut["polygons"]
        ],
        "polygon_tolerance_px": cut["tolerance_px"],
        "mask": f"artifact://{cut['mask']}",
    }


def _waiting(
    services: Services, regions: ImageRegions, coverage: Coverage[int, Any], merged: PictureReading
) -> list[str]:
    """Why regions of a picture that is read are still to come."""
    rest = len(merged.regions) - len(regions.found)
    cutting = [f"{rest} regions are still being cut to masks: they come with the cursor"]
    return [*(cutting if coverage.complete and rest > 0 else []), *services.loading_notes()]


def _few(areas: Sequence[Area]) -> list[Area]:
    return [(box, reason[:AREA_REASON_CHARS]) for box, reason in areas[:MAX_AREAS]]


def _budget(max_chars: int, *told: Sequence[Any]) -> int:
    """Characters for lines and regions beside what is told anyway."""
    return max(int(LEAST_SHARE * max_chars), max_chars - FRAME_CHARS - sum(_chars(part) for part in told))


def _chars(fields: Any) -> int:
    return len(json.dumps(fields, ensure_ascii=False, separators=(",", ":")))


def _missing(picture: PictureJob, coverage: Coverage[int, Any], merged: PictureReading) -> WorkerError | None:
    """Why there is nothing to say of regions: nobody could look, or nobody did in any part that was read."""
    if picture.choice.regions_missing is not None:
        return picture.choice.regions_missing
    if any(reading.regions is not None for reading in coverage.done.values()):
        return None
    if coverage.unreached and not coverage.done:  # somebody is about to
        return None
    reason = merged.unlooked[0][1] if merged.unlooked else "nobody looked for regions"
    trouble = picture.services.vision.trouble if picture.services.vision is not None else None
    mend = trouble.next_step if trouble is not None else "call again later; get_status tells how the provider is"
    return WorkerError("not_available", f"regions were looked for in no part of the picture: {reason}", next_step=mend)


def _from_cursor(picture: PictureJob, cursor: str) -> tuple[LinePlace, Place]:
    """Where lines and regions go on."""
    place = from_cursor(TOOL, picture.key, cursor, len(picture.tiles))
    return place, from_state(decode_cursor(cursor, TOOL, picture.key) if cursor.strip() else {})


def _to_cursor(
    picture: PictureJob, place: LinePlace | None, failed: frozenset[int], last: Place, all_told: bool
) -> str | None:
    """Where the next call goes on; None when every line and every region has been delivered."""
    if place is None and all_told:
        return None
    # With all lines delivered the place is the foot of the picture, behind the last of them.
    lines = place or LinePlace(picture.image.height_px, failed=failed)
    return to_cursor(TOOL, picture.key, lines, to_state(last))
