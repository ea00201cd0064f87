"""Covers areas of RGB pixels: filled, pixelated or blurred. Pure numpy and OpenCV; images and video frames both use it.

It knows where and how, never why: which words or objects lie under an area is the pipelines' business.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.masks import load_mask
from sam2_mcp_worker.media.rle import decode_runs, expand_runs

Method = Literal["fill", "pixelate", "blur"]
Rgb = NDArray[np.uint8]

FILL_RGB = (0, 0, 0)
# Blocks along the shorter side of a pixelated area, and the least size of one: letters of a line become 3 blocks high.
BLOCKS = 3
MIN_BLOCK_PX = 12
# Width of the blur as a share of the shorter side of its area; three box blurs in a row come close to a Gaussian.
BLUR_SHARE = 0.5
MIN_BLUR_PX = 15
BLUR_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Area:
    """Pixels to cover: a box inside the picture, and which of its pixels (None = all)."""

    box_xyxy_px: tuple[int, int, int, int]
    mask: NDArray[np.bool_] | None = None

    def crop(self, rgb: Rgb) -> Rgb:
        """The view of a picture below the box."""
        x0, y0, x1, y1 = self.box_xyxy_px
        return rgb[y0:y1, x0:x1]


def load_area(params: dict[str, Any], width_px: int, height_px: int) -> Area | None:
    """An area from its JSON form `{box, mask_path, counts, margin_px}`; None when nothing of it lies in the picture.

    A mask (grey PNG of exactly the box or of the whole picture, white = inside, or COCO's `counts`, whose own box is
    taken) grows by the margin on every side.

    Raises:
        WorkerError: `mask_unreadable`, `rle_invalid`.
    """
    x0, y0, x1, y1 = params["box"]
    mask, margin = None, int(params.get("margin_px", 0))
    if params.get("counts"):
        runs = decode_runs(expand_runs(params["counts"]), (width_px, height_px))
        if runs.box_xyxy_px is None:
            return None
        (x0, y0, x1, y1), mask = runs.box_xyxy_px, grown(runs.inside, margin)
    elif params.get("mask_path"):
        mask = grown(_read_mask(Path(params["mask_path"]), (x0, y0, x1, y1), (width_px, height_px)), margin)
    box = x0 - margin, y0 - margin, x1 + margin, y1 + margin
    return clipped(Area(box, mask), width_px, height_px)


def clipped(area: Area, width_px: int, height_px: int) -> Area | None:
    """The part of an area inside the picture; None when there is none."""
    x0, y0, x1, y1 = area.box_xyxy_px
    left, top, right, bottom = max(0, x0), max(0, y0), min(x1, width_px), min(y1, height_px)
    if left >= right or top >= bottom:
        return None
    mask = None if area.mask is None else area.mask[top - y0 : bottom - y0, left - x0 : right - x0]
    if mask is not None and not mask.any():
        return None
    return Area((left, top, right, bottom), mask)


def grown(mask: NDArray[np.bool_], margin_px: int) -> NDArray[np.bool_]:
    """The mask and everything within the margin of it, on a canvas larger by the margin on every side."""
    padded = np.pad(mask, margin_px).astype(np.uint8)
    if margin_px:
        side = 2 * margin_px + 1
        padded = cv2.dilate(padded, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (side, side)))
    return padded.astype(bool)


def paint(rgb: Rgb, areas: Sequence[Area], method: Method) -> None:
    """Cover the areas in place. What lies under one is taken from the picture as it was before any was covered."""
    covers = [(area, _cover(area.crop(rgb), method)) for area in areas]
    for area, cover in covers:
        place = area.crop(rgb)
        if area.mask is None:
            place[:] = cover
        else:
            place[area.mask] = cover[area.mask]


def _cover(crop: Rgb, method: Method) -> Rgb:
    if method == "fill":
        return np.broadcast_to(np.array(FILL_RGB, np.uint8), crop.shape)
    return _pixelated(crop) if method == "pixelate" else _blurred(crop)


def _pixelated(crop: Rgb) -> Rgb:
    height, width = crop.shape[:2]
    block = max(MIN_BLOCK_PX, -(-min(width, height) // BLOCKS))
    blocks = max(1, round(width / block)), max(1, round(height / block))
    coarse = cv2.resize(np.ascontiguousarray(crop), blocks, interpolation=cv2.INTER_AREA)
    return np.asarray(cv2.resize(coarse, (width, height), interpolation=cv2.INTER_NEAREST), np.uint8)


def _blurred(crop: Rgb) -> Rgb:
    side = max(MIN_BLUR_PX, round(min(crop.shape[:2]) * BLUR_SHARE)) | 1
    blurred = np.ascontiguousarray(crop)
    for _ in range(BLUR_ROUNDS):
        blurred = np.asarray(cv2.blur(blurred, (side, side), borderType=cv2.BORDER_REPLICATE), np.uint8)
    return blurred


def _read_mask(path: Path, box: tuple[int, int, int, int], size: tuple[int, int]) -> NDArray[np.bool_]:
    mask = load_mask(path)
    x0, y0, x1, y1 = box
    if mask.shape == size[::-1]:
        mask = mask[y0:y1, x0:x1]
    if mask.shape != (y1 - y0, x1 - x0):
        raise WorkerError(
            "mask_unreadable",
            f"the mask has {mask.shape[1]} x {mask.shape[0]} px and its box {x1 - x0} x {y1 - y0}",
            next_step="cut it again with segment_image",
        )
    return mask
