"""An overlay sheet as a picture: the pieces of the page on it, what its tags look like, and a JPEG within a byte limit.

What stands on the sheet besides is the business of overlay.py (boxes) and mask_overlay.py (regions); where, of
overlay_layout.py. For decoder children, never for the server process.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFont

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.box_styles import Rgb
from sam2_mcp_worker.media.overlay_layout import Rect, Sheet

# The longest side that Claude and the common vision models take without scaling it down is 1,568 to 2,000 px.
DEFAULT_MAX_SIDE_PX = 1600
DEFAULT_MAX_BYTES = 1_000_000  # a nine-page report stays under 10 MB, an agent's image block under every host's cap
# JPEG quality and colour sampling, tried in order. Full colour resolution (4:4:4) first: halved (4:2:0), the one-pixel
# frames lose some of the colour that tells their kind. Below 56 the rings around digits make them hard to read.
FULL, HALVED = cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420
ENCODINGS = ((88, FULL), (80, FULL), (72, FULL), (64, HALVED), (56, HALVED))
SHRINK = 0.85  # of the side, when the last encoding is still too large
SMALLEST_SIDE_PX = 200  # nothing is readable below
TAG_FONT_PX = (9, 13)  # smallest and largest; between them it follows the text's own height on the sheet
TAG_PADDING_PX = 2
FOOT_PX = 26  # the legend
# A step in brightness (of 255) between neighbouring pixels that counts as ink; paper grain and JPEG noise stay below.
INK_STEP = 40
# Below this brightness a frame gets a light halo; on paper a halo would only eat into the neighbouring letters.
DARK = 128
DESK: Rgb = (236, 240, 244)  # around the page, so that margins and cuts are told from paper
HALO: Rgb = (255, 255, 255)
FOOT_INK: Rgb = (40, 48, 56)

Draw = Callable[[int], tuple[Image.Image, int]]
"""Draws a sheet of at most so many pixels a side; returns it and how many numbers were left out."""


def write_picture(params: dict[str, Any], draw: Draw) -> dict[str, Any]:
    """Draw smaller and smaller until the JPEG fits, and write it to `out_path`.

    Args:
        params: `out_path`, and, optional, `max_side_px` and `max_bytes`.
        draw: makes the sheet.

    Returns:
        `width_px`, `height_px` and `bytes` of the file, and `numbers_left_out`.

    Raises:
        WorkerError: `overlay_too_large` when no legible picture fits `max_bytes`.
    """
    max_bytes = int(params.get("max_bytes") or DEFAULT_MAX_BYTES)
    side_px = int(params.get("max_side_px") or DEFAULT_MAX_SIDE_PX)
    while side_px >= SMALLEST_SIDE_PX:
        picture, left_out = draw(side_px)
        data = _encode(picture, max_bytes)
        if data is not None:
            _write(Path(params["out_path"]), data)
            return {
                "width_px": picture.width,
                "height_px": picture.height,
                "bytes": len(data),
                "numbers_left_out": left_out,
            }
        side_px = int(min(side_px, max(picture.size)) * SHRINK)
    raise WorkerError(
        "overlay_too_large",
        f"no overlay picture of at least {SMALLEST_SIDE_PX} px fits {max_bytes} bytes",
        next_step=f"raise max_bytes, or max_side_px if it is below {SMALLEST_SIDE_PX}",
    )


def scaled_pieces(rgb: NDArray[np.uint8], sheet: Sheet) -> NDArray[np.uint8]:
    """The sheet with nothing on it but the pieces of the page."""
    base = np.full((sheet.height_px, sheet.width_px, 3), DESK, dtype=np.uint8)
    for piece in sheet.pieces:
        sx0, sy0, sx1, sy1 = piece.source
        tx0, ty0, tx1, ty1 = piece.target
        # INTER_AREA reads the mapped rows once and averages; a plain resize would drop thin strokes.
        size = (tx1 - tx0, ty1 - ty0)
        base[ty0:ty1, tx0:tx1] = cv2.resize(rgb[sy0:sy1, sx0:sx1], size, interpolation=cv2.INTER_AREA)
    return base


def ink(base: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Where something is printed."""
    grey = cv2.cvtColor(base, cv2.COLOR_RGB2GRAY)
    steps = cv2.morphologyEx(grey, cv2.MORPH_GRADIENT, np.ones((3, 3), np.uint8))
    return np.asarray(steps > INK_STEP)


def is_dark(base: NDArray[np.uint8], frame: Rect) -> bool:
    """Whether the picture is dark along the upper and lower edge of a frame."""
    x0, y0, x1, y1 = (max(0, edge) for edge in frame)
    edges = np.concatenate((base[y0 : y0 + 1, x0 : x1 + 1], base[y1 : y1 + 1, x0 : x1 + 1]), axis=1)
    return bool(edges.size) and float(np.median(edges)) < DARK


def tag_size(digits: str, font_px: int) -> tuple[int, int]:
    """Width and height of the tag with these digits."""
    width = round(tag_font(font_px).getlength(digits))
    return width + 2 * TAG_PADDING_PX + 2, font_px + TAG_PADDING_PX


def tag_font(size_px: int) -> ImageFont.FreeTypeFont:
    """The font inside Pillow: digits and Latin letters are all that an overlay needs."""
    font = ImageFont.load_default(size_px)
    assert isinstance(font, ImageFont.FreeTypeFont)
    return font


def _encode(picture: Image.Image, max_bytes: int) -> bytes | None:
    bgr = cv2.cvtColor(np.asarray(picture), cv2.COLOR_RGB2BGR)
    for quality, sampling in ENCODINGS:
        # Progressive saves 14 % of the bytes on the demo leaflet's pages, for 20 ms. OpenCV, because Pillow gives up
        # on progressive pictures that are larger than its buffer ("broken data stream"), as photographs can be.
        options = [
            *(cv2.IMWRITE_JPEG_QUALITY, quality),
            *(cv2.IMWRITE_JPEG_SAMPLING_FACTOR, sampling),
            *(cv2.IMWRITE_JPEG_PROGRESSIVE, 1),
        ]
        written, data = cv2.imencode(".jpg", bgr, options)
        if written and data.size <= max_bytes:
            return bytes(data)
    return None


def _write(path: Path, data: bytes) -> None:
    """All or nothing: a child may be killed at any time, and half a picture must never look like a whole one."""
    half = path.with_name(path.name + ".part")
    half.write_bytes(data)
    half.replace(path)
