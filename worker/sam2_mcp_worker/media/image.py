"""Pictures as the server sees them: decoded in decoder children. Nothing here parses a byte of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sam2_mcp_worker.execution.port import TaskRunner
from sam2_mcp_worker.media.decoder import MAX_PIXELS
from sam2_mcp_worker.media.pixels import PixelFile


@dataclass(frozen=True, slots=True)
class DecodedImage:
    """A picture, upright and on white. Of several `frames` the first was decoded (None: a later one is damaged).

    `rotated` says that EXIF had it turned or mirrored; coordinates are those of `pixels`. `dpi` is what the file
    states, None when it states none.
    """

    pixels: PixelFile
    format: str
    frames: int | None
    rotated: bool
    dpi: float | None


async def decode_image(
    decoders: TaskRunner, path: Path, out_path: Path, *, max_pixels: int = MAX_PIXELS, timeout_s: float, job: str
) -> DecodedImage:
    """Decode a JPEG, PNG, GIF, WebP, TIFF or BMP into raw RGB; `out_path` is complete only after success.

    Raises:
        WorkerError: unsupported_image, image_damaged, image_too_large, no_space, or one of the runner's own.
    """
    params = {"path": str(path), "out_path": str(out_path), "max_pixels": max_pixels}
    result = await decoders.run("image_decode", params, timeout_s=timeout_s, job=job)
    return DecodedImage(
        pixels=PixelFile(out_path, result["width_px"], result["height_px"]),
        format=result["format"],
        frames=result["frames"],
        rotated=result["rotated"],
        dpi=result["dpi"],
    )
