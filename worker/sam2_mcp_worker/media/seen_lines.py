"""Decoder task: puts the lines that a language model saw on the ink that is there, upright or a little tilted.

Owns the way there and back: the tile is levelled where its print runs aslant, as on scans. Which ink belongs to which
line is told by line_ink.py. Texts are taken as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sam2_mcp_worker.media.ink import Box, print_shapes
from sam2_mcp_worker.media.line_ink import settled_lines
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.tilt import Levelled, tilt

# Confidence at most of a line whose ink cannot be told: less than what any reader calls sure.
DOUBTFUL = 0.3


def settle_lines(params: dict[str, Any]) -> dict[str, Any]:
    """`{pixels, rect, lines: [{text, box, confidence}]}` -> `{lines: [... and height_px], ink, invented}`.

    All coordinates are of the whole picture; `invented` lines stand on bare paper and are left out.

    Raises:
        WorkerError: pixels_unreadable.
    """
    x0, y0, x1, y1 = params["rect"]
    rgb = PixelFile.from_params(params["pixels"]).crop_rgb((x0, y0, x1, y1))
    origin = (max(0, x0), max(0, y0))
    lines = params["lines"]
    boxes = [_moved(line["box"], -origin[0], -origin[1]) for line in lines]
    shapes = print_shapes(rgb)
    level = Levelled(rgb.shape, tilt(shapes))
    if level.turned:
        rgb = level.picture(rgb)
        boxes = [level.line_box(box) for box in boxes]
        shapes = print_shapes(rgb)
    settled, ink = settled_lines(rgb, boxes, [line["text"] for line in lines], shapes)
    kept = [
        {
            "text": line["text"],
            "box": list(_moved(level.box_back(place.box), *origin)),
            "height_px": place.height_px,
            "confidence": min(float(line["confidence"]), 1.0 if place.height_px > 0 else DOUBTFUL),
        }
        for line, place in zip(lines, settled, strict=True)
        if place is not None
    ]
    return {
        "lines": kept,
        "ink": [list(_moved(level.box_back(box), *origin)) for box in ink],
        "invented": len(lines) - len(kept),
    }


def _moved(box: Sequence[int], dx: int, dy: int) -> Box:
    return box[0] + dx, box[1] + dy, box[2] + dx, box[3] + dy


TASKS = {"settle_lines": settle_lines}
