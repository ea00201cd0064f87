"""What a mask becomes for people and for other tools: a PNG of the whole picture, run lengths, short polygons.

A task for a decoder child. The PNG has the picture's size, so that any program lays one over the other without knowing
an offset; at one bit a pixel 250 MP are a few hundred kilobytes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PIL import Image

from sam2_mcp_worker.media.mask_polygons import mask_polygons
from sam2_mcp_worker.media.masks import load_mask, tight_mask
from sam2_mcp_worker.media.rle import coco_rle

PNG_LEVEL = 1  # masks are long runs: higher levels cost time and save next to nothing


def mask_files(params: dict[str, Any]) -> dict[str, Any]:
    """Write the mask as a one-bit PNG of the picture's size (white = inside).

    Args:
        params: `mask_path` (PNG of exactly `box`, as `save_mask` writes it), `box`, `size` (width and height of the
            picture, px), `out_path`, `max_vertices`.

    Returns:
        `counts` (COCO's compressed run lengths), `polygons` (`[{"outer": [[x, y], ...], "holes": [...]}]`) and their
        `tolerance_px`.

    Raises:
        WorkerError: `mask_unreadable`.
    """
    x0, y0, _, _ = params["box"]
    width, height = params["size"]
    inside = load_mask(Path(params["mask_path"]))
    whole = Image.new("1", (width, height))
    whole.paste(Image.fromarray(inside), (x0, y0))
    whole.save(params["out_path"], "PNG", compress_level=PNG_LEVEL)
    outlines, tolerance_px = mask_polygons(inside, (x0, y0), params["max_vertices"])
    return {
        "counts": coco_rle(tight_mask(inside, (x0, y0)), (width, height))["counts"],
        "polygons": [
            {"outer": outline.outer.tolist(), "holes": [hole.tolist() for hole in outline.holes]}
            for outline in outlines
        ],
        "tolerance_px": tolerance_px,
    }


TASKS = {"mask_files": mask_files}
