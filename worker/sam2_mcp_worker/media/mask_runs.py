"""Masks as run lengths, several at a time. A task for a decoder child."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sam2_mcp_worker.media.masks import load_mask, tight_mask
from sam2_mcp_worker.media.rle import coco_rle


def mask_runs(params: dict[str, Any]) -> dict[str, Any]:
    """`{masks: [{path, box}], size: [width_px, height_px]}` -> `{counts: [COCO's compressed string, ...]}`.

    Each `path` is a PNG of exactly `box`, as `save_mask` writes it.

    Raises:
        WorkerError: `mask_unreadable`.
    """
    width, height = params["size"]
    counts = []
    for mask in params["masks"]:
        x0, y0, _, _ = mask["box"]
        inside = load_mask(Path(mask["path"]))
        counts.append(coco_rle(tight_mask(inside, (x0, y0)), (width, height))["counts"])
    return {"counts": counts}


TASKS = {"mask_runs": mask_runs}
