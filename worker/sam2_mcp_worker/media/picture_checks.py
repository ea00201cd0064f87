"""Task of the decoder children: a picture, known to be whole, as small as a result may carry.

What leaves is always encoded anew from pixels, so that no EXIF, comment, profile or trailing byte goes with it, and is
decoded again before its facts are told. Owns neither the limits (they come with each task) nor the wire.
"""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.image_child import Turn, eight_bit, load_whole, open_picture, orientation_of
from sam2_mcp_worker.media.signatures import check_type

# Of sources that lost nothing, PNG is tried first: it keeps the edges of masks and letters.
_LOSSLESS = ("PNG", "GIF", "BMP")
# Above 85 bytes grow faster than the picture improves; below 65 thin strokes go: rather smaller.
JPEG_QUALITIES = (85, 75, 65)
SHRINK = 0.8
# Nobody can make anything out in less.
SMALLEST_SIDE_PX = 64


def picture_block(params: dict[str, Any]) -> dict[str, Any]:
    """Write a picture for a result to `out_path`: upright, on white, within all limits, PNG or JPEG.

    Args:
        params: `path`, `out_path`, `max_pixels` (of the source), `max_side_px`, `max_area_px`, `max_bytes`.

    Returns:
        `mime_type`, `width_px`, `height_px`, `size_bytes`, `sha256` of what was written, `of_width_px`, `of_height_px`.

    Raises:
        WorkerError: unsupported_image, image_damaged, image_too_large; picture_too_large when no picture of at least
            64 px fits `max_bytes`.
    """
    with open_picture(Path(params["path"]), params["max_pixels"]) as image:
        load_whole(image)
        turn = Turn(orientation_of(image))
        of_size = turn.output_size(image.size)
        scale = _fitting(of_size, params["max_side_px"], params["max_area_px"])
        data = None
        while data is None:
            picture = _upright(image, turn, scale)
            data = next((made for made in _encoded(picture, image.format) if len(made) <= params["max_bytes"]), None)
            if data is None and max(picture.size) * SHRINK < SMALLEST_SIDE_PX:
                raise _too_large(params["max_bytes"])
            scale = min(scale, max(picture.size) / max(of_size)) * SHRINK
    facts = _facts_of(data)
    Path(params["out_path"]).write_bytes(data)
    return facts | {"of_width_px": of_size[0], "of_height_px": of_size[1]}


TASKS = {"picture_block": picture_block}


def _fitting(size: tuple[int, int], max_side_px: int, max_area_px: int) -> float:
    """The factor, at most 1, that brings a picture within both limits."""
    return min(1.0, max_side_px / max(size), math.sqrt(max_area_px / (size[0] * size[1])))


def _upright(image: Image.Image, turn: Turn, scale: float) -> Image.Image:
    """A copy at this scale, RGB on white, or grey where the source is."""
    size = tuple(max(1, math.floor(side * scale)) for side in image.size)
    grey = image.mode in ("1", "L") and not image.has_transparency_data
    small = image
    if size != image.size:
        small = _blendable(image).resize((size[0], size[1]), Image.Resampling.LANCZOS, reducing_gap=3.0)
    upright = turn.strip(small, (0, 0, *turn.output_size(small.size)))
    return upright.convert("L") if grey else upright


def _blendable(image: Image.Image) -> Image.Image:
    """In a mode whose neighbouring pixels may be mixed."""
    if image.mode.startswith("I") or image.mode == "F":
        return eight_bit(image)
    if image.has_transparency_data:
        return image.convert("RGBA")
    return image if image.mode in ("L", "RGB") else image.convert("L" if image.mode == "1" else "RGB")


def _encoded(picture: Image.Image, source_format: str | None) -> Iterator[bytes]:
    """The picture in ever fewer bytes."""
    picture.info = {}
    if source_format in _LOSSLESS:
        yield _saved(picture, "PNG", optimize=False)
    for quality in JPEG_QUALITIES:
        yield _saved(picture, "JPEG", quality=quality)


def _saved(picture: Image.Image, form: str, **options: Any) -> bytes:
    out = io.BytesIO()
    picture.save(out, form, **options)
    return out.getvalue()


def _facts_of(data: bytes) -> dict[str, Any]:
    with Image.open(io.BytesIO(data), formats=("PNG", "JPEG")) as image:
        image.load()
        mime_type = Image.MIME[str(image.format)]
        check_type(data, mime_type)
        return {
            "mime_type": mime_type,
            "width_px": image.width,
            "height_px": image.height,
            "size_bytes": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
        }


def _too_large(max_bytes: int) -> WorkerError:
    return WorkerError(
        "picture_too_large",
        f"no picture of at least {SMALLEST_SIDE_PX} px fits {max_bytes} bytes",
        next_step="fetch it by its address",
    )
