"""Redaction of pictures as the server sees it: done in children of the redact pool. Nothing here touches a pixel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sam2_mcp_worker.execution.port import TaskRunner
from sam2_mcp_worker.media.pixels import PixelFile

# Slowest honest speed of packing a picture as PNG: 10 MP/s on a free core, four times less on a busy machine, and half
# of that for noise.
PACKED_PX_PER_S = 1_250_000
# Along a mask's edge pixels mix object and ground, and resampled pictures smear that over two.
MASK_MARGIN_PX = 2


@dataclass(frozen=True, slots=True)
class CoverArea:
    """What is to be covered: a box in pixels, or a mask within it, grown by a margin.

    A mask is a grey PNG of the size of the box or of the picture, or the compressed run lengths of COCO (`counts`).
    """

    box_xyxy_px: tuple[int, int, int, int]
    mask_path: Path | None = None
    margin_px: int = 0
    counts: str | None = None

    def to_params(self) -> dict[str, Any]:
        """JSON form for a child task."""
        return {
            "box": list(self.box_xyxy_px),
            "mask_path": str(self.mask_path) if self.mask_path else None,
            "margin_px": self.margin_px,
            "counts": self.counts,
        }


@dataclass(frozen=True, slots=True)
class InsideCheck:
    """One area of the output: its pixels, how many differ from the source, how many have the colour of `fill`."""

    area_px: int
    changed_px: int
    filled_px: int


@dataclass(frozen=True, slots=True)
class PictureCheck:
    """What a comparison of source and output found; an area outside of the picture has no check."""

    outside_px: int
    outside_changed_px: int
    areas: tuple[InsideCheck | None, ...]
    foreign_chunks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ImageTraits:
    """What of a file its pixels do not keep: Pillow's mode, transparency, and the kinds of data beside the pixels."""

    format: str
    mode: str
    alpha: bool
    carried: tuple[str, ...]


def timeout_for(pixels: PixelFile, step_timeout_s: float) -> float:
    """The hard limit of a step over the whole picture."""
    return step_timeout_s + pixels.width_px * pixels.height_px / PACKED_PX_PER_S


async def cover_image(
    redactors: TaskRunner,
    pixels: PixelFile,
    areas: Sequence[CoverArea],
    method: str,
    out_path: Path,
    *,
    timeout_s: float,
    job: str,
) -> int:
    """Write the covered picture as PNG; returns its size in bytes.

    Raises:
        WorkerError: mask_unreadable, no_space, or one of the runner's own.
    """
    params = {
        "pixels": pixels.to_params(),
        "areas": [area.to_params() for area in areas],
        "method": method,
        "work_path": str(out_path.with_suffix(".work")),
        "out_path": str(out_path),
    }
    return int((await redactors.run("image_cover", params, timeout_s=timeout_s, job=job))["size_bytes"])


async def compare_images(
    redactors: TaskRunner,
    before: PixelFile,
    after: PixelFile,
    areas: Sequence[CoverArea],
    file: Path,
    *,
    timeout_s: float,
    job: str,
) -> PictureCheck:
    """Compare the decoded output with the decoded source, and look at the chunks of the written file.

    Raises:
        WorkerError: redaction_unverified when the sizes differ, or one of the runner's own.
    """
    params = {
        "before": before.to_params(),
        "after": after.to_params(),
        "areas": [area.to_params() for area in areas],
        "file": str(file),
    }
    result = await redactors.run("image_compare", params, timeout_s=timeout_s, job=job)
    return PictureCheck(
        outside_px=int(result["outside_px"]),
        outside_changed_px=int(result["outside_changed_px"]),
        areas=tuple(None if area is None else InsideCheck(**area) for area in result["areas"]),
        foreign_chunks=tuple(result["foreign_chunks"]),
    )


async def image_traits(redactors: TaskRunner, path: Path, *, timeout_s: float, job: str) -> ImageTraits:
    """What an accepted image file holds beside plain RGB pixels."""
    result = await redactors.run("image_traits", {"path": str(path)}, timeout_s=timeout_s, job=job)
    return ImageTraits(result["format"], result["mode"], bool(result["alpha"]), tuple(result["carried"]))
