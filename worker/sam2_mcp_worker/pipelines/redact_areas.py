"""Regions of a call as areas of one picture: boxes, boxes cut to masks, and masks that segment_image made before."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sam2_mcp_worker.artifacts import URI_PREFIX, Artifact
from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines.ports import Box
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.jobs import JOB_LIMIT_S
from sam2_mcp_worker.media.image_redaction import MASK_MARGIN_PX, CoverArea
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.pipelines.read_picture import to_box
from sam2_mcp_worker.pipelines.redact_request import Region
from sam2_mcp_worker.pipelines.refine import refine
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.uploads import StoredFile


@dataclass(frozen=True, slots=True)
class FoundArea:
    """An area, and what the result says of it."""

    area: CoverArea
    about: dict[str, Any]


class AreaFinder:
    """Turns the regions of one call into areas of one decoded picture."""

    def __init__(self, services: Services, stored: StoredFile, pixels: PixelFile, workdir: Path, job: str) -> None:
        self._services = services
        self._stored = stored
        self._pixels = pixels
        self._workdir = workdir
        self._job = job

    async def areas(self, region: Region) -> list[FoundArea]:
        """What the region covers.

        Raises:
            WorkerError: region_invalid when it lies outside, or what is wrong with its handle.
        """
        if region.handle:
            return await self._of_handle(region)
        assert region.box_xyxy_px is not None, "a region without a handle has a box"
        box = clipped_box(region, region.box_xyxy_px, (self._pixels.width_px, self._pixels.height_px))
        about: dict[str, Any] = {"box_xyxy_px": list(box), "shape": "box", "source": "box"}
        if box != region.box_xyxy_px:
            about["note"] = "the box reached over the edge and was cut there"
        return [await self._cut(box, about) if region.shape == "mask" else FoundArea(CoverArea(box), about)]

    async def _cut(self, box: Box, about: dict[str, Any]) -> FoundArea:
        """The object in the box where a mask of it is plausible; else the box stays and says why."""
        masks = self._workdir / "masks"
        masks.mkdir(exist_ok=True)
        (refined,) = await refine(
            self._services,
            self._pixels,
            self._stored.sha256,
            [box],
            mask_dir=masks,
            job=self._job,
            deadline=Deadline.after(JOB_LIMIT_S),
        )
        mask = refined.mask
        if mask is None or mask.box_xyxy_px is None:
            return FoundArea(CoverArea(box), about | {"note": f"the whole box was covered: {refined.reason}"})
        area = CoverArea(mask.box_xyxy_px, mask.mask_path, MASK_MARGIN_PX)
        return FoundArea(area, about | {"shape": "mask", "margin_px": MASK_MARGIN_PX})

    async def _of_handle(self, region: Region) -> list[FoundArea]:
        artifact, path = await find_artifact(self._services, region)
        check_belongs(region, artifact, self._stored, (self._pixels.width_px, self._pixels.height_px))
        match artifact.facts.get("kind"):
            case "mask":
                return [_of_mask(to_box(artifact.facts["box_xyxy_px"]), mask_path=path)]
            case "masks":
                return await asyncio.to_thread(_of_document, region, path)
            case _:
                raise handle_unfit(region, "is no mask of a picture", "an image takes masks that segment_image made")


def _of_mask(box: Box, **mask: Any) -> FoundArea:
    about = {"box_xyxy_px": list(box), "shape": "mask", "source": "handle", "margin_px": MASK_MARGIN_PX}
    return FoundArea(CoverArea(box, margin_px=MASK_MARGIN_PX, **mask), about)


def _of_document(region: Region, path: Path) -> list[FoundArea]:
    """All masks of a COCO document of ours; the run lengths are checked by the child that decodes them."""
    try:
        annotations = json.loads(path.read_bytes())["annotations"]
        found = []
        for annotation in annotations:
            x, y, width, height = annotation["bbox"]
            box = int(x), int(y), int(x + width), int(y + height)
            found.append(_of_mask(box, counts=str(annotation["segmentation"]["counts"])))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise handle_unfit(
            region, "is damaged or gone", "a handle is that of a whole result of segment_image"
        ) from error
    if not found:
        raise handle_unfit(region, "holds no object", "at least one object must have been found")
    return found


def clipped_box(region: Region, box: Box, size_px: tuple[int, int], kind: str = "picture") -> Box:
    """The part of a region's box inside the picture.

    Raises:
        WorkerError: `region_invalid` when nothing of it is inside.
    """
    width, height = size_px
    inside = max(0, box[0]), max(0, box[1]), min(width, box[2]), min(height, box[3])
    if inside[0] >= inside[2] or inside[1] >= inside[3]:
        raise WorkerError(
            "region_invalid",
            f"region {region.number} {list(box)} lies outside of the {kind}",
            rule=f"the {kind} is {width} x {height} px, origin top left, after rotation",
            next_step="correct the box and call again",
        )
    return inside


async def find_artifact(services: Services, region: Region) -> tuple[Artifact, Path]:
    """The artifact of a region's handle, with or without the scheme of its address.

    Raises:
        WorkerError: `artifact_unknown`.
    """
    return await asyncio.to_thread(services.artifacts.get, region.handle.strip().removeprefix(URI_PREFIX))


def check_belongs(region: Region, artifact: Artifact, stored: StoredFile, size_px: tuple[int, int]) -> None:
    """Refuse what was made from another file, or of another size.

    Raises:
        WorkerError: handle_unfit.
    """
    facts = artifact.facts
    if "source_sha256" not in facts:
        raise handle_unfit(
            region,
            "is neither a mask nor tracks",
            "a handle is that of a mask (segment_image) or of tracks (track_video)",
        )
    if facts["source_sha256"] != stored.sha256:
        raise handle_unfit(region, "was made from another file", f"this file is {stored.name!r} ({stored.handle})")
    if (facts["width_px"], facts["height_px"]) != size_px:
        raise handle_unfit(
            region,
            f"was made for {facts['width_px']} x {facts['height_px']} px",
            f"this file has {size_px[0]} x {size_px[1]} px",
        )


def handle_unfit(region: Region, what: str, rule: str) -> WorkerError:
    """The error for a handle that cannot be used here."""
    return WorkerError(
        "handle_unfit",
        f"region {region.number}: {region.handle[:60]!r} {what}",
        rule=rule,
        next_step="call segment_image or track_video with this very file and use the handle that it returns",
    )
