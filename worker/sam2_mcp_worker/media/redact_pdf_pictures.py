"""Blanks the samples of a picture under the regions, in a copy, without touching the others. Runs in redact children.

Colours are never converted: samples are set to 0 in whatever space they are, and those outside stay the same bytes.
Soft masks and stencil masks are blanked as well, since a mask alone can have the shape of a word.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import pikepdf
from numpy.typing import NDArray
from pikepdf import Array, Dictionary, Name
from PIL import Image, ImageDraw, ImageFilter

from sam2_mcp_worker.media.pdf_geometry import Matrix
from sam2_mcp_worker.media.redact_paths import Rect
from sam2_mcp_worker.media.redact_pdf_syntax import name_text

# What qpdf unpacks into samples. DCT (JPEG) is unpacked by Pillow, with the decoder that pdfium uses too; CMYK ones are
# stored inverted or not, which no two programs agree about.
_PLAIN_FILTERS = {"/FlateDecode", "/LZWDecode", "/RunLengthDecode", "/ASCIIHexDecode", "/ASCII85Decode"}
_JPEG_MODES = {"L": 1, "RGB": 3}
# The largest picture unpacked here: 12,000 x 12,000 px in RGB.
MAX_SAMPLE_BYTES = 450_000_000
_PACKED_KEYS = ("/Length", "/Filter", "/DecodeParms", "/SMask", "/Mask", "/Alternates", "/Metadata")


class UndecodableError(Exception):
    """The samples of this picture cannot be reached here."""


def is_decodable(picture: Any) -> bool:
    """Whether `blanked` can unpack a picture, from its dictionary alone; masks are judged with it."""
    filters = _filters(picture)
    if filters and filters[-1] == "/DCTDecode":
        space = picture.get("/ColorSpace")
        is_plain = space in (Name.DeviceRGB, Name.DeviceGray) or (
            isinstance(space, Array) and space[0] == Name.ICCBased
        )
        decodable = is_plain and set(filters[:-1]) <= _PLAIN_FILTERS
    else:
        decodable = set(filters) <= _PLAIN_FILTERS
    masks = [picture.get(key) for key in ("/SMask", "/Mask")]
    return decodable and all(is_decodable(mask) for mask in masks if isinstance(mask, pikepdf.Stream))


def blanked(pdf: pikepdf.Pdf, picture: Any, matrix: Matrix, rects: Sequence[Rect]) -> Any:
    """A copy without the samples under the regions; None when none are.

    Args:
        matrix: from the unit square, in which pictures are placed, to the space of the regions.

    Raises:
        UndecodableError: the samples cannot be unpacked.
    """
    width, height = int(picture.Width), int(picture.Height)
    covered = _covered(width, height, matrix, rects)
    masks = {key: picture.get(key) for key in ("/SMask", "/Mask")}
    new_masks = {
        key: blanked(pdf, mask, matrix, rects) for key, mask in masks.items() if isinstance(mask, pikepdf.Stream)
    }
    if covered is None and not any(new_masks.values()):
        return None
    copied = pdf.make_stream(_packed(picture, covered))
    for key, value in picture.items():
        if key not in _PACKED_KEYS:
            copied[key] = value
    for key, mask in masks.items():
        if mask is not None:
            copied[key] = new_masks.get(key) or mask
    return copied


def from_inline(pdf: pikepdf.Pdf, inline: pikepdf.PdfInlineImage, spaces: Any) -> Any:
    """An inline picture as an XObject; `spaces` are the named colour spaces of the content that it stands in."""
    picture = pdf.make_stream(inline.read_raw_bytes())
    for key, value in inline.obj.items():
        picture[key] = value
    space = picture.get("/ColorSpace")
    if isinstance(space, Name) and isinstance(spaces, Dictionary) and name_text(space) in spaces:
        picture.ColorSpace = spaces[name_text(space)]
    picture.Type, picture.Subtype = Name.XObject, Name.Image
    return picture


def _filters(picture: Any) -> list[str]:
    value = picture.get("/Filter")
    if value is None:
        return []
    return [name_text(name) for name in value] if isinstance(value, Array) else [name_text(value)]


def _covered(width: int, height: int, matrix: Matrix, rects: Sequence[Rect]) -> NDArray[np.bool_] | None:
    """The samples that a region touches, as `(height, width)`; None when there are none."""
    a, b, c, d, e, f = matrix
    det = a * d - b * c
    if det == 0 or width <= 0 or height <= 0:
        return None
    mask = Image.new("1", (width, height))
    draw = ImageDraw.Draw(mask)
    upright = (b, c) == (0, 0) or (a, d) == (0, 0)
    for left, bottom, right, top in rects:
        corners = [(left, bottom), (right, bottom), (right, top), (left, top)]
        units = [((d * (x - e) - c * (y - f)) / det, (a * (y - f) - b * (x - e)) / det) for x, y in corners]
        pixels = [(u * width, (1 - v) * height) for u, v in units]
        xs, ys = [x for x, _ in pixels], [y for _, y in pixels]
        if max(xs) <= 0 or max(ys) <= 0 or min(xs) >= width or min(ys) >= height:
            continue
        if upright:
            box = (_low(min(xs)), _low(min(ys)), _high(max(xs), width), _high(max(ys), height))
            if box[0] <= box[2] and box[1] <= box[3]:
                draw.rectangle(box, fill=1)
        else:
            draw.polygon([(x - 0.5, y - 0.5) for x, y in pixels], fill=1, outline=1)
    if not upright:  # samples that the edge of the region only touches
        mask = mask.convert("L").filter(ImageFilter.MaxFilter(3)).convert("1")
    covered = np.asarray(mask)
    return covered if covered.any() else None


# Coordinates that miss a whole sample by less than this do not touch the next one.
_SLACK_PX = 1e-3


def _low(value: float) -> int:
    return int(max(0.0, value + _SLACK_PX))


def _high(value: float, size: int) -> int:
    """The last sample touched, inclusive as Pillow's rectangles are."""
    return int(np.ceil(min(float(size), value - _SLACK_PX))) - 1


def _packed(picture: Any, covered: NDArray[np.bool_] | None) -> bytes:
    samples = _samples(picture)
    if covered is None:
        return samples
    height, width = covered.shape
    bits = 1 if picture.get("/ImageMask") else int(picture.get("/BitsPerComponent", 8))
    stride = len(samples) // height
    components = (stride * 8) // (width * bits)
    if stride * height > len(samples) or components < 1 or bits not in (1, 2, 4, 8, 16):
        raise UndecodableError("the samples do not fit the size")
    rows = np.frombuffer(samples, np.uint8, stride * height).reshape(height, stride).copy()
    for y in np.flatnonzero(covered.any(axis=1)):
        if bits >= 8:
            keep = np.repeat(~covered[y], components * bits // 8)
            rows[y, : keep.size][~keep] = 0
        else:
            keep = np.repeat(~covered[y], components * bits)
            row = np.unpackbits(rows[y])
            row[: keep.size][~keep] = 0
            rows[y] = np.packbits(row)
    return rows.tobytes()


def _samples(picture: Any) -> bytes:
    size = int(picture.Width) * int(picture.Height) * 3
    if size > MAX_SAMPLE_BYTES:
        raise UndecodableError("the picture is too large")
    filters = _filters(picture)
    try:
        if filters and filters[-1] == "/DCTDecode" and is_decodable(picture):
            return _jpeg_samples(picture)
        if not set(filters) <= _PLAIN_FILTERS:
            raise UndecodableError(f"{filters} cannot be unpacked")
        return bytes(picture.read_bytes())
    except (pikepdf.PdfError, OSError, ValueError, SyntaxError) as error:
        raise UndecodableError(str(error)) from error


def _jpeg_samples(picture: Any) -> bytes:
    data = picture.read_bytes() if len(_filters(picture)) > 1 else picture.read_raw_bytes()
    with Image.open(io.BytesIO(bytes(data)), formats=("JPEG",)) as image:
        if image.mode not in _JPEG_MODES or image.size != (int(picture.Width), int(picture.Height)):
            raise UndecodableError(f"a JPEG in {image.mode}")
        return image.tobytes()
