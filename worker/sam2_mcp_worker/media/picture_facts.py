"""Decoder task: what the header of a picture says of size, resolution and colours. Nothing is decoded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sam2_mcp_worker.media.image_child import Turn, open_picture, orientation_of, stated_dpi

# Pillow's modes; palettes hold RGB.
_SPACES = {
    "1": "gray", "L": "gray", "LA": "gray", "La": "gray", "I": "gray", "F": "gray", "I;16": "gray", "I;16B": "gray",
    "P": "rgb", "PA": "rgb", "RGB": "rgb", "RGBA": "rgb", "RGBa": "rgb", "RGBX": "rgb", "YCbCr": "rgb", "HSV": "rgb",
    "CMYK": "cmyk", "LAB": "lab",
}  # fmt: skip
_WITH_ALPHA = ("RGBA", "RGBa", "LA", "La", "PA")


def picture_facts(params: dict[str, Any]) -> dict[str, Any]:
    """`{path, max_pixels}` -> `{width_px, height_px, dpi, colour_space, transparent}`.

    `dpi` is None where none is stated; `transparent` pictures stand on a ground that the file does not hold.

    Raises:
        WorkerError: unsupported_image, image_damaged, image_too_large.
    """
    with open_picture(Path(params["path"]), params["max_pixels"]) as image:
        orientation = 1 if image.format == "TIFF" else orientation_of(image)  # Pillow gives the size of turned TIFFs
        width_px, height_px = Turn(orientation).output_size(image.size)
        return {
            "width_px": width_px,
            "height_px": height_px,
            "dpi": stated_dpi(image),
            "colour_space": _SPACES.get(image.mode, "unknown"),
            "transparent": image.mode in _WITH_ALPHA or "transparency" in image.info,
        }


TASKS = {"picture_facts": picture_facts}
