"""The picture task of the decoder children: any accepted file to raw RGB, upright and on white.

Pillow decodes the whole picture (4 bytes a pixel); turning, blending and conversion then go strip by strip, so that
the largest accepted picture fits into a child's memory. Colour profiles are ignored: they shift tints, not letters.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image, UnidentifiedImageError
from PIL.Image import Transpose

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.pixel_writer import check_pixels, pixel_file, strips

ACCEPTED = ("JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP")
_ORIENTATION = 0x0112  # EXIF tag
# Figures outside of this range are a slip of the writer; Pillow gives 1 dpi for TIFFs that state none.
_DPI_RANGE = (10.0, 10_000.0)
# An error text of a codec: enough to see which chunk was broken.
_REASON_CHARS = 120
# What people send by mistake, recognised to say so.
_SIGNATURES = {
    b"%PDF-": "a PDF (use inspect_pdf)",
    b"<svg": "an SVG drawing",
    b"<?xml": "an XML or SVG file",
    b"<!DOC": "an HTML page",
    b"<html": "an HTML page",
    b"PK\x03\x04": "a ZIP archive or office document",
    b"\x1aE\xdf\xa3": "a video (use inspect_video)",
    b"FLV": "a video (use inspect_video)",
    b"RIFF": "a video or sound (use inspect_video or transcribe_audio)",
    b"ID3": "a sound file (use transcribe_audio)",
    b"OggS": "a video or sound (use inspect_video or transcribe_audio)",
}
_BOX_BRANDS = {b"heic": "HEIC", b"heix": "HEIC", b"mif1": "HEIF", b"msf1": "HEIF", b"avif": "AVIF"}

Size = tuple[int, int]
BoxPx = tuple[int, int, int, int]


def image_decode(params: dict[str, Any]) -> dict[str, Any]:
    """`{path, out_path, max_pixels}` -> `{width_px, height_px, format, frames, rotated, dpi}`; writes raw RGB.

    Raises:
        WorkerError: unsupported_image, image_damaged, image_too_large, no_space.
    """
    path, max_pixels = Path(params["path"]), params["max_pixels"]
    with open_picture(path, max_pixels) as image:
        orientation = orientation_of(image)
        load_whole(image)
        turn = Turn(orientation_of(image))  # Pillow turns TIFFs itself while it decodes
        width_px, height_px = turn.output_size(image.size)
        with pixel_file(Path(params["out_path"])) as out:
            for top, bottom in strips(width_px, height_px):
                out.write(turn.strip(image, (0, top, width_px, bottom)).tobytes())
        return {
            "width_px": width_px,
            "height_px": height_px,
            "format": image.format,
            "frames": frames_of(image),
            "rotated": orientation != 1,
            "dpi": stated_dpi(image),
        }


def image_size(params: dict[str, Any]) -> dict[str, Any]:
    """`{path, max_pixels}` -> `{width_px, height_px, frames}` as `image_decode` will give them, from the header alone.

    Raises:
        WorkerError: unsupported_image, image_damaged, image_too_large.
    """
    with open_picture(Path(params["path"]), params["max_pixels"]) as image:
        orientation = 1 if image.format == "TIFF" else orientation_of(image)  # Pillow gives the size of turned TIFFs
        width_px, height_px = Turn(orientation).output_size(image.size)
        return {"width_px": width_px, "height_px": height_px, "frames": frames_of(image)}


TASKS = {"image_decode": image_decode, "image_size": image_size}


def prepare() -> None:
    """Load the decoders; the limit on pixels is ours, checked before anything is decoded."""
    Image.preinit()
    Image.MAX_IMAGE_PIXELS = None
    import PIL.TiffImagePlugin
    import PIL.WebPImagePlugin  # noqa: F401 (registers itself)


def open_picture(path: Path, max_pixels: int) -> Image.Image:
    """The picture with its header read, nothing decoded.

    Raises:
        WorkerError: unsupported_image, image_damaged, image_too_large.
    """
    try:
        image = Image.open(path, formats=ACCEPTED)
    except UnidentifiedImageError as error:
        raise _unsupported(path) from error
    except CODEC_ERRORS as error:
        raise _damaged("its header", error) from error
    try:
        check_pixels("image_too_large", f"the {image.format} picture", *image.size, max_pixels)
    except BaseException:
        image.close()
        raise
    return image


# What Pillow's codecs raise on broken data. MemoryError is not among them.
CODEC_ERRORS = (OSError, SyntaxError, ValueError, TypeError, LookupError, EOFError, ArithmeticError, struct.error)


def load_whole(image: Image.Image) -> None:
    """Decode all of it.

    Raises:
        WorkerError: image_damaged.
    """
    try:
        image.load()
    except CODEC_ERRORS as error:
        raise _damaged(f"the {image.format} data", error) from error


def _damaged(part: str, error: Exception) -> WorkerError:
    return WorkerError(
        "image_damaged",
        f"{part} cannot be decoded ({str(error)[:_REASON_CHARS] or type(error).__name__})",
        next_step="Upload the file again, or save it anew with another program",
    )


def _unsupported(path: Path) -> WorkerError:
    with path.open("rb") as file:
        head = file.read(64)
    if not head:
        return WorkerError("image_damaged", "the file is empty (0 bytes)", next_step="Upload the file again")
    return WorkerError(
        "unsupported_image",
        f"the file is {_guess(head)}",
        rule=f"accepted are {', '.join(ACCEPTED)}",
        next_step="Convert it to PNG if it is a picture",
    )


def _guess(head: bytes) -> str:
    if head[4:8] == b"ftyp" and head[8:12] in _BOX_BRANDS:
        return f"a picture in {_BOX_BRANDS[head[8:12]]} format"
    if head[4:8] == b"ftyp":
        return "a video or sound (use inspect_video or transcribe_audio)"
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    for signature, name in _SIGNATURES.items():
        if start.upper().startswith(signature.upper()):
            return name
    return "not a picture that is known here, or its beginning is damaged"


def orientation_of(image: Image.Image) -> int:
    """EXIF orientation 1-8; 1 (upright) when there is none or it cannot be read."""
    try:
        value = image.getexif().get(_ORIENTATION, 1)
    except CODEC_ERRORS:
        return 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def frames_of(image: Image.Image) -> int | None:
    """Number of frames, of which the first is decoded; None when a later one is damaged."""
    try:
        return int(getattr(image, "n_frames", 1))
    except CODEC_ERRORS:
        return None


def stated_dpi(image: Image.Image) -> float | None:
    """The resolution that the file states, if it is the same in both directions and possible."""
    try:
        x, y = map(float, image.info["dpi"])
    except (LookupError, TypeError, ValueError, ArithmeticError):
        return None
    plausible = all(_DPI_RANGE[0] <= value <= _DPI_RANGE[1] for value in (x, y))  # false for NaN
    return round(x, 2) if plausible and math.isclose(x, y, rel_tol=0.01) else None


_METHODS: dict[int, Transpose] = {
    2: Transpose.FLIP_LEFT_RIGHT,
    3: Transpose.ROTATE_180,
    4: Transpose.FLIP_TOP_BOTTOM,
    5: Transpose.TRANSPOSE,
    6: Transpose.ROTATE_270,
    7: Transpose.TRANSVERSE,
    8: Transpose.ROTATE_90,
}
# Where the rows top..bottom of the upright picture lie in a stored one of the given size: for each orientation.
_SOURCES: dict[int, Callable[[Size, int, int], BoxPx]] = {
    1: lambda size, top, bottom: (0, top, size[0], bottom),
    2: lambda size, top, bottom: (0, top, size[0], bottom),
    3: lambda size, top, bottom: (0, size[1] - bottom, size[0], size[1] - top),
    4: lambda size, top, bottom: (0, size[1] - bottom, size[0], size[1] - top),
    5: lambda size, top, bottom: (top, 0, bottom, size[1]),
    6: lambda size, top, bottom: (top, 0, bottom, size[1]),
    7: lambda size, top, bottom: (size[0] - bottom, 0, size[0] - top, size[1]),
    8: lambda size, top, bottom: (size[0] - bottom, 0, size[0] - top, size[1]),
}


class Turn:
    """Takes strips of the upright picture out of the stored one."""

    def __init__(self, orientation: int) -> None:
        self._orientation = orientation

    def output_size(self, size: Size) -> Size:
        """The upright size of a stored one."""
        return size if self._orientation < 5 else (size[1], size[0])

    def strip(self, image: Image.Image, rows: BoxPx) -> Image.Image:
        """These whole rows of the upright picture, RGB on white."""
        strip = image.crop(_SOURCES[self._orientation](image.size, rows[1], rows[3]))
        method = _METHODS.get(self._orientation)
        return _rgb_on_white(strip if method is None else strip.transpose(method))


def _rgb_on_white(strip: Image.Image) -> Image.Image:
    if strip.mode == "RGB" and "transparency" not in strip.info:
        return strip
    if strip.mode.startswith("I") or strip.mode == "F":
        return eight_bit(strip).convert("RGB")
    if strip.has_transparency_data:
        with_alpha = strip.convert("RGBA")
        white = Image.new("RGB", strip.size, (255, 255, 255))
        white.paste(with_alpha, mask=with_alpha.getchannel("A"))
        return white
    return strip.convert("RGB")


def eight_bit(strip: Image.Image) -> Image.Image:
    """Grey of 16 bits (modes I and I;16) or in floating point (taken as 0 to 1) to 8 bits."""
    factor = 255.0 if strip.mode == "F" else 1 / 257
    wide = strip if strip.mode == "F" else strip.convert("I")
    return wide.point(lambda value: value * factor).convert("L")
