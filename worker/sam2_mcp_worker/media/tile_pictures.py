"""Decoder task: one tile of a decoded picture as a PNG or JPEG file, at its full resolution.

Owns the choice of the format: PNG, since it loses nothing, unless that is too large; then JPEG of falling quality. It
never scales: what does not fit is said to be too large.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.pixel_writer import pixel_file
from sam2_mcp_worker.media.pixels import PixelFile

# Level 3 packs pages within 5 % of level 9 and takes a fifth of its time.
PNG_LEVEL = 3
# Below 60 fine print suffers: it made 1 % of wrong 12 px characters 5 % for the local reader (reference/vision.md 2).
JPEG_QUALITIES = (95, 90, 80, 70, 60)


def encode_tile(params: dict[str, Any]) -> dict[str, Any]:
    """`{pixels, rect, out_path, max_bytes}` -> `{mime_type, width_px, height_px, bytes}`; the file has no metadata.

    Raises:
        WorkerError: `tile_outside`, `tile_too_large`, `pixels_unreadable`, `no_space`.
    """
    pixels = PixelFile.from_params(params["pixels"])
    x0, y0, x1, y1 = params["rect"]
    rgb = pixels.crop_rgb((x0, y0, x1, y1))
    height, width = rgb.shape[:2]
    if (width, height) != (x1 - x0, y1 - y0) or not rgb.size:
        raise WorkerError(
            "tile_outside",
            f"the tile {x0},{y0} to {x1},{y1} is not inside the picture of {pixels.width_px} x {pixels.height_px} px",
        )
    mime_type, data = _encoded(rgb, params["max_bytes"])
    with pixel_file(Path(params["out_path"])) as out:
        out.write(data)
    return {"mime_type": mime_type, "width_px": width, "height_px": height, "bytes": len(data)}


def _encoded(rgb: NDArray[np.uint8], max_bytes: int) -> tuple[str, bytes]:
    bgr = cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR)
    png = _packed(".png", bgr, [cv2.IMWRITE_PNG_COMPRESSION, PNG_LEVEL])
    if len(png) <= max_bytes:
        return "image/png", png
    smallest = len(png)
    for quality in JPEG_QUALITIES:
        # Coloured letters keep their edges only with colour at full resolution.
        sampling = [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444]
        jpeg = _packed(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, quality, *sampling])
        if len(jpeg) <= max_bytes:
            return "image/jpeg", jpeg
        smallest = min(smallest, len(jpeg))
    raise WorkerError(
        "tile_too_large",
        f"a tile of {rgb.shape[1]} x {rgb.shape[0]} px takes {smallest} bytes as a file",
        rule=f"at most {max_bytes} bytes (SAM2_MCP_CLAUDE_IMAGE_BYTES), and it is never scaled down",
        next_step="the operator raises the limit or lowers SAM2_MCP_CLAUDE_TILE_TOKENS",
    )


def _packed(suffix: str, bgr: NDArray[np.uint8], options: list[int]) -> bytes:
    _, data = cv2.imencode(suffix, bgr, options)
    return data.tobytes()


TASKS = {"encode_tile": encode_tile}
