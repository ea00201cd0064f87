"""Regions of a call as areas of one picture: boxes, boxes cut to masks, and masks that segment_image made before."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sam2_mcp_worker.artifacts import URI_PREFIX, Artifact
from sam2_mcp_worker.engines.ports import Box
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.image_redaction import MASK_MARGIN_PX, CoverArea
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.pipelines.redact_request import Region
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
            return [await self._of_handle(region)]
        assert region.box_xyxy_px is not None, "a region without a handle has a box"
        box = clipped_box(region, region.box_xyxy_px, (self._pixels.width_px, self._pixels.height_px))
        about: dict[str, Any] = {"box_xyxy_px": list(box), "shape": "box", "source": "box"}
        if box != region.box_xyxy_px:
            about["note"] = "the box reached over the edge and was cut there"
        return [FoundArea(CoverArea(box), about)]

    async def _of_handle(self, region: Region) -> FoundArea:
        artifact, path = await find_artifact(self._services, region)
        check_belongs(region, artifact, self._stored, (self._pixels.width_px, self._pixels.height_px))
        if artifact.facts.get("kind") != "mask":
            raise handle_unfit(region, "is no mask of a picture", "an image takes masks that segment_image made")
        x0, y0, x1, y1 = artifact.facts["box_xyxy_px"]
        box: Box = (int(x0), int(y0), int(x1), int(y1))
        about = {"box_xyxy_px": list(box), "shape": "mask", "source": "handle", "margin_px": MASK_MARGIN_PX}
        return FoundArea(CoverArea(box, path, MASK_MARGIN_PX), about)


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
