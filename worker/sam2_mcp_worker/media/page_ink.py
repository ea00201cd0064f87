"""Decoder task: which tiles of a page hold ink that its text layer does not cover."""

from __future__ import annotations

from typing import Any

from sam2_mcp_worker.media.ink import residual_ink
from sam2_mcp_worker.media.pixels import PixelFile


def uncovered_ink(params: dict[str, Any]) -> dict[str, Any]:
    """`{pixels, tiles, covered}` -> `{tiles_with_ink: [index, ...]}`; all boxes in pixels of the whole page."""
    pixels = PixelFile.from_params(params["pixels"])
    covered = params["covered"]
    found = []
    for index, (x0, y0, x1, y1) in enumerate(params["tiles"]):
        inside = [(a - x0, b - y0, c - x0, d - y0) for a, b, c, d in covered if a < x1 and c > x0 and b < y1 and d > y0]
        if residual_ink(pixels.crop_rgb((x0, y0, x1, y1)), inside):
            found.append(index)
    return {"tiles_with_ink": found}


TASKS = {"uncovered_ink": uncovered_ink}
