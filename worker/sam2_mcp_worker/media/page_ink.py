"""Decoder task: where a page may hold text that its text layer does not cover: ink of print's shape, and pictures."""

from __future__ import annotations

from typing import Any

from sam2_mcp_worker.media.boxes import united
from sam2_mcp_worker.media.ink import residual_ink
from sam2_mcp_worker.media.pixels import PixelFile

# Paper that the detector needs around what it shall find; also joins the letters of one word to one area.
MARGIN_PX = 48


def uncovered_ink(params: dict[str, Any]) -> dict[str, Any]:
    """`{pixels, tiles, covered, pictures}` -> `{areas}`, each inside one tile; boxes in pixels of the whole page.

    `pictures` are areas whatever is seen there: a detector finds text in a photograph that no rule for ink does.
    """
    pixels = PixelFile.from_params(params["pixels"])
    areas: list[list[int]] = []
    for tile in params["tiles"]:
        for area in _areas_in(pixels, tuple(tile), params["covered"], params["pictures"]):
            if area not in areas:  # neighbouring tiles see what lies in their overlap twice
                areas.append(area)
    return {"areas": areas}


def _areas_in(
    pixels: PixelFile, tile: tuple[int, int, int, int], covered: list[list[int]], pictures: list[list[int]]
) -> list[list[int]]:
    x0, y0, x1, y1 = tile
    inside = [(a - x0, b - y0, c - x0, d - y0) for a, b, c, d in _clipped(covered, tile)]
    grown = [
        (
            max(0, a - MARGIN_PX) + x0,
            max(0, b - MARGIN_PX) + y0,
            min(x1 - x0, c + MARGIN_PX) + x0,
            min(y1 - y0, d + MARGIN_PX) + y0,
        )
        for a, b, c, d in residual_ink(pixels.crop_rgb(tile), inside)
    ]
    return [[int(value) for value in area] for area in united([*grown, *_clipped(pictures, tile)])]


def _clipped(boxes: list[list[int]], tile: tuple[int, int, int, int]) -> list[tuple[int, int, int, int]]:
    x0, y0, x1, y1 = tile
    inside = [(max(a, x0), max(b, y0), min(c, x1), min(d, y1)) for a, b, c, d in boxes]
    return [(a, b, c, d) for a, b, c, d in inside if a < c and b < d]


TASKS = {"uncovered_ink": uncovered_ink}
