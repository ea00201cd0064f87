"""Turns a network's logits into the `ObjectMask` that leaves the child: exact pixels to a PNG, the rest as JSON.

The child-side twin of mask_wire. Used by every task that gives masks, of pictures and of frames alike.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from sam2_mcp_worker.engines.mask_wire import Ring, mask_to_json
from sam2_mcp_worker.engines.ports import Box, ObjectMask, Polygon
from sam2_mcp_worker.engines.sam_predictor import MaskLogits
from sam2_mcp_worker.media.mask_polygons import Ring as RingArray
from sam2_mcp_worker.media.mask_polygons import mask_polygons
from sam2_mcp_worker.media.masks import Mask, cut_mask, save_mask, touches_border


def write_mask(
    logits: MaskLogits, size_px: tuple[int, int], path: Path, region_xyxy_px: Box | None = None
) -> dict[str, Any]:
    """Bring one mask to the picture's size, write its PNG to `path`, and describe it as mask_wire's JSON.

    Args:
        logits: of the region.
        size_px: width and height of the whole picture.
        path: of the PNG; a blank mask writes none.
        region_xyxy_px: the part of the picture that `logits` are of; None = all of it.
    """
    mask = cut_mask(logits.logits, region_xyxy_px or (0, 0, *size_px), logits.extent_xy)
    return mask_to_json(describe_mask(mask, logits.predicted_iou, size_px, path))


def describe_mask(mask: Mask, predicted_iou: float, size_px: tuple[int, int], path: Path) -> ObjectMask:
    """Save the mask, unless it is blank, and say all that a caller is told of it."""
    box = mask.box_xyxy_px
    polygons: tuple[Polygon, ...] = ()
    tolerance = 0.0
    if box is not None:
        save_mask(path, mask.inside, box)
        outlines, tolerance = mask_polygons(mask.inside, box[:2])
        polygons = tuple(Polygon(_ring(o.outer), tuple(map(_ring, o.holes))) for o in outlines)
    return ObjectMask(
        box_xyxy_px=box,
        mask_path=path if box is not None else None,
        area_px=mask.area_px,
        # Nothing found is no good mask, whatever the network thinks; JSON carries no NaN.
        predicted_iou=float(predicted_iou) if box is not None and math.isfinite(predicted_iou) else 0.0,
        stability=mask.stability,
        touches_border=touches_border(box, size_px),
        polygons=polygons,
        polygon_tolerance_px=tolerance,
    )


def _ring(points: RingArray) -> Ring:
    return tuple((x, y) for x, y in np.asarray(points).tolist())
