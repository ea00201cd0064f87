"""What a vision provider's tiles need of pixels, done in decoder children: encoding them, and settling what was read.

Imports nothing heavy: the server calls this, the children do it (media/tile_pictures.py, media/seen_lines.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sam2_mcp_worker.engines.ports import Box, TextLine, TilePicture
from sam2_mcp_worker.engines.vision_errors import VisionError
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.execution.port import TaskRunner
from sam2_mcp_worker.media.pixels import PixelFile


@dataclass(frozen=True, slots=True)
class SettledLines:
    """Lines on their ink, and boxes of ink that none of them explains; all in pixels of the whole picture.

    `invented` counts lines that were left out, since there is bare paper where they were said to stand.
    """

    lines: tuple[TextLine, ...]
    undetected_ink: tuple[Box, ...]
    invented: int = 0


async def encode_tile(
    decoders: TaskRunner,
    pixels: PixelFile,
    rect_xyxy_px: Box,
    out_path: Path,
    *,
    max_bytes: int,
    job: str,
    timeout_s: float,
) -> TilePicture:
    """Write one rectangle of the picture as PNG, or as JPEG where a PNG is too large; never scaled.

    Raises:
        VisionError: kind `too_large`: even as a JPEG it takes more than `max_bytes`, so the local engine reads it.
        WorkerError: no_space, pixels_unreadable, or one of the runner's own.
    """
    params = {
        "pixels": pixels.to_params(),
        "rect": list(rect_xyxy_px),
        "out_path": str(out_path),
        "max_bytes": max_bytes,
    }
    try:
        made = await decoders.run("encode_tile", params, timeout_s=timeout_s, job=job)
    except WorkerError as error:
        if error.code != "tile_too_large":
            raise
        raise VisionError("too_large", error.what, rule=error.rule, next_step=error.next_step) from error
    return TilePicture(out_path, made["mime_type"], made["width_px"], made["height_px"])


async def settle_lines(
    decoders: TaskRunner,
    pixels: PixelFile,
    rect_xyxy_px: Box,
    lines: Sequence[TextLine],
    *,
    job: str,
    timeout_s: float,
) -> SettledLines:
    """Put a model's lines of one tile on their ink: boxes tightened, font sizes measured, unexplained ink found.

    All coordinates, in and out, are of the whole picture. Texts are taken as they are; the order is kept. A line
    whose ink cannot be told keeps its box, with height 0 and a confidence of at most 0.3.

    Raises:
        WorkerError: pixels_unreadable, or one of the runner's own.
    """
    params = {
        "pixels": pixels.to_params(),
        "rect": list(rect_xyxy_px),
        "lines": [{"text": line.text, "box": list(line.box_xyxy_px), "confidence": line.confidence} for line in lines],
    }
    answer = await decoders.run("settle_lines", params, timeout_s=timeout_s, job=job)
    return SettledLines(
        tuple(
            TextLine(line["text"], _box(line["box"]), float(line["height_px"]), float(line["confidence"]))
            for line in answer["lines"]
        ),
        tuple(_box(box) for box in answer["ink"]),
        int(answer["invented"]),
    )


def _box(box: Sequence[int]) -> Box:
    x0, y0, x1, y1 = box
    return x0, y0, x1, y1
