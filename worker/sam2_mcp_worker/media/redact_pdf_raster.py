"""Turns a page into one picture of itself with the regions blanked: the way that always works. In redact children."""

from __future__ import annotations

import io
import math
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pikepdf
from numpy.typing import NDArray
from pikepdf import Array, Dictionary, Name
from PIL import Image

from sam2_mcp_worker.media.pdf_document import open_page
from sam2_mcp_worker.media.pdf_geometry import BoxPt
from sam2_mcp_worker.media.pdf_render import render
from sam2_mcp_worker.media.pixels import PixelFile

# 200 dpi: print of 5 pt is 14 px high, and can still be read by people and by OCR.
RASTER_PX_PER_PT = 200 / 72
# A page at this many pixels takes about half a second to pack; larger pages get a lower resolution.
MAX_RASTER_PIXELS = 40_000_000
# Pages that do not pack well without loss (photos) become JPEG beyond this size.
_LOSSLESS_BYTES = 3_000_000
_JPEG_QUALITY = 92


def rasterise(
    pdf: pikepdf.Pdf,
    page: pikepdf.Page,
    source: tuple[Path, str, int],
    boxes: Sequence[BoxPt],
    rgb: tuple[int, int, int],
    work_path: Path,
) -> float:
    """Replace everything on the page by its picture from the original; returns pixels per point.

    Args:
        source: path, password and page number of the original.
        boxes: regions in points of the displayed page.
        rgb: what the regions are filled with.
        work_path: for the raw pixels; removed again.
    """
    with open_page(*source) as opened:
        width_pt, height_pt = opened.geometry.size_pt
        scale = min(RASTER_PX_PER_PT, math.sqrt(MAX_RASTER_PIXELS / (width_pt * height_pt)) * 0.999)
        width_px, height_px = render(opened, scale, work_path, MAX_RASTER_PIXELS * 2)
    try:
        pixels = PixelFile(work_path, width_px, height_px).map_rgb().copy()
    finally:
        work_path.unlink(missing_ok=True)
    for x0, y0, x1, y1 in boxes:
        rows = slice(max(0, math.floor(y0 * height_px / height_pt)), math.ceil(y1 * height_px / height_pt))
        columns = slice(max(0, math.floor(x0 * width_px / width_pt)), math.ceil(x1 * width_px / width_pt))
        pixels[rows, columns] = rgb
    _replace(pdf, page, _picture(pdf, pixels), width_pt, height_pt)
    return scale


def _replace(pdf: pikepdf.Pdf, page: pikepdf.Page, picture: pikepdf.Stream, width_pt: float, height_pt: float) -> None:
    kept = {key: page.obj[key] for key in ("/Parent", "/UserUnit") if key in page.obj}
    for key in list(page.obj.keys()):
        del page.obj[key]
    page.obj.Type = Name.Page
    for key, value in kept.items():
        page.obj[key] = value
    page.obj.MediaBox = Array([0, 0, width_pt, height_pt])
    page.obj.CropBox = Array([0, 0, width_pt, height_pt])  # the tree above may have others
    page.obj.Rotate = 0
    page.obj.Resources = Dictionary(XObject=Dictionary(Page=picture))
    page.obj.Contents = pdf.make_stream(f"q {width_pt} 0 0 {height_pt} 0 0 cm /Page Do Q".encode("ascii"))


def _picture(pdf: pikepdf.Pdf, pixels: NDArray[np.uint8]) -> pikepdf.Stream:
    height_px, width_px = pixels.shape[:2]
    data, coding = zlib.compress(pixels.tobytes(), 6), Name.FlateDecode
    if len(data) > _LOSSLESS_BYTES:
        packed = io.BytesIO()
        Image.fromarray(pixels).save(packed, "JPEG", quality=_JPEG_QUALITY, subsampling=0)
        data, coding = packed.getvalue(), Name.DCTDecode
    return pikepdf.Stream(
        pdf, data, Type=Name.XObject, Subtype=Name.Image, Width=width_px, Height=height_px,
        ColorSpace=Name.DeviceRGB, BitsPerComponent=8, Filter=coding,
    )  # fmt: skip
