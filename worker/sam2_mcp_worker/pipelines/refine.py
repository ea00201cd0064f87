"""Boxes of any reader, cut to the objects in them: a mask is taken over its box only where it is plausible.

A reader's box is loose but right about where something is; a network gives some mask for every box, also for one on
nothing. So a mask must fill its box, stay in it and be steady; else the box stays and the reason is said. The
thresholds come from MobileSAM on boxes loosened by up to 25 % a side around coins and drawn shapes (36 of 36 taken)
and on 102 boxes on nothing, on parts of scenes, on grass and noise (none taken). What they do not tell: a box around
half a coin passes twice in twelve as that half, one around two coins three times as one of them, one around a line of
text as the line's blot. With SAM 2.1's weights they are not measured.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines.embed_windows import prompts_per_step
from sam2_mcp_worker.engines.ports import Box, ObjectMask, ObjectPrompt, Quality
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.boxes import area
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.services import Services

# A star in a box that is 25 % too wide on each side fills 0.22 of it.
MIN_AREA_SHARE = 0.15
# How far an edge of the mask may stay away from its edge of the box, as a share of the box's side: 0.21 at most for
# boxes loosened by 25 %. One of two objects in a box leaves half of it.
MAX_GAP_SHARE = 0.25
# How far the mask may reach over the box: tight boxes lose 0.05 of an object at most, masks on nothing flow out.
MAX_OVERHANG_SHARE = 0.1
# The thresholds of SAM's own mask generator. Objects had 0.97 and 0.99 at least. Masks on nothing had up to 0.97 of
# either, but the same one never filled and kept to its box.
MIN_STABILITY = 0.95
MIN_PREDICTED_IOU = 0.88


@dataclass(frozen=True, slots=True)
class Refined:
    """What became of one box: a `mask`, or None and the `reason` why the box stays.

    `judged` says that the network gave a mask and the reason is in it: another try ends the same.
    """

    box_xyxy_px: Box
    mask: ObjectMask | None = None
    reason: str | None = None
    judged: bool = False


async def refine(
    services: Services,
    pixels: PixelFile,
    content_key: str,
    boxes: Sequence[Box],
    *,
    mask_dir: Path,
    job: str,
    deadline: Deadline,
    quality: Quality = "accurate",
) -> list[Refined]:
    """Cut each box to the object in it; result i belongs to box i. Nothing is raised: what cannot be cut stays a box.

    Args:
        content_key: names the picture's content: the file's SHA-256 when `pixels` are all of it, upright.
        boxes: within the picture, in pixels of it.
        mask_dir: an existing folder for the masks' PNGs (8-bit grey, exactly the mask's box).
        job: fair-queue key.
        deadline: boxes that are not cut before it stay as they are, also where the network is busy or still loads.
    """
    if services.segmenter is None:
        missing = services.segmenter_missing
        return [Refined(box, reason=missing.reason if missing else "no engine for masks is there") for box in boxes]
    refined: list[Refined] = []
    at_once = prompts_per_step((pixels.width_px, pixels.height_px))
    for start in range(0, len(boxes), at_once):
        chunk = boxes[start : start + at_once]
        cutting = services.segmenter.masks(
            pixels,
            content_key,
            [ObjectPrompt(box) for box in chunk],
            quality=quality,
            mask_dir=mask_dir,
            job=job,
            timeout_s=services.settings.step_timeout_s,
        )
        try:
            async with asyncio.timeout(deadline.remaining_s()):
                masks = await cutting
        except TimeoutError:
            refined += [Refined(box, reason="no time was left to cut it") for box in chunk]
            continue
        except WorkerError as error:
            refined += [Refined(box, reason=error.reason) for box in chunk]
            continue
        refined += [judged(box, mask) for box, mask in zip(chunk, masks, strict=True)]
    return refined


def judged(box: Box, mask: ObjectMask) -> Refined:
    """The mask where it is plausible for its box, else the box with the reason."""
    reason = _implausible(box, mask)
    return Refined(box, mask, judged=True) if reason is None else Refined(box, reason=reason, judged=True)


def _implausible(box: Box, mask: ObjectMask) -> str | None:
    found = mask.box_xyxy_px
    if found is None:
        return "nothing was found in the box"
    width, height = box[2] - box[0], box[3] - box[1]
    gaps = (
        (found[0] - box[0]) / width,
        (box[2] - found[2]) / width,
        (found[1] - box[1]) / height,
        (box[3] - found[3]) / height,
    )
    share = mask.area_px / area(box)
    if max(gaps) > MAX_GAP_SHARE:
        return f"the mask leaves {max(gaps):.0%} of the box free on one side (at most {MAX_GAP_SHARE:.0%})"
    if min(gaps) < -MAX_OVERHANG_SHARE:
        return f"the mask reaches {-min(gaps):.0%} beyond the box (at most {MAX_OVERHANG_SHARE:.0%})"
    if share < MIN_AREA_SHARE:
        return f"the mask fills {share:.0%} of the box (at least {MIN_AREA_SHARE:.0%})"
    if mask.stability < MIN_STABILITY:
        return f"the mask is not steady: stability {mask.stability:.2f} (at least {MIN_STABILITY})"
    if mask.predicted_iou < MIN_PREDICTED_IOU:
        return f"the network doubts the mask: predicted IoU {mask.predicted_iou:.2f} (at least {MIN_PREDICTED_IOU})"
    return None
