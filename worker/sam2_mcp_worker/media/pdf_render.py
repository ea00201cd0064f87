"""Draws a page into a raw RGB file, strip by strip, in memory that does not grow with the page."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pypdfium2.raw as pdfium

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.pdf_document import OpenPage
from sam2_mcp_worker.media.pdf_geometry import rendered_size_px
from sam2_mcp_worker.media.pixel_writer import check_pixels, pixel_file, strips
from sam2_mcp_worker.media.pixels import CHANNELS

WHITE = 0xFFFFFFFF
# As a viewer shows it: with annotations and form fields; RGB instead of pdfium's BGR.
_FLAGS = pdfium.FPDF_ANNOT | pdfium.FPDF_REVERSE_BYTE_ORDER


def render(opened: OpenPage, px_per_pt: float, out_path: Path, max_pixels: int) -> tuple[int, int]:
    """Write the page as displayed, on white; returns width and height in pixels.

    Raises:
        WorkerError: page_too_large, with the numbers; no_space.
    """
    width_px, height_px = rendered_size_px(*opened.geometry.size_pt, px_per_pt)
    check_pixels("page_too_large", "the page", width_px, height_px, max_pixels)
    with pixel_file(out_path) as out:
        for top, bottom in strips(width_px, height_px):
            out.write(_strip(opened, width_px, height_px, top, bottom))
    return width_px, height_px


def _strip(opened: OpenPage, width_px: int, height_px: int, top: int, bottom: int) -> ctypes.Array[ctypes.c_ubyte]:
    rows = bottom - top
    pixels = (ctypes.c_ubyte * (width_px * rows * CHANNELS))()
    draw(opened, ctypes.cast(pixels, ctypes.c_void_p), (width_px, height_px), (top, rows), flags=_FLAGS)
    return pixels


def draw(
    opened: OpenPage,
    address: ctypes.c_void_p,
    size_px: tuple[int, int],
    strip: tuple[int, int],
    *,
    flags: int,
    ground: int = WHITE,
) -> None:
    """Draw a page that is `size_px` (width, height) large into the memory at `address`, 3 bytes a pixel.

    Args:
        strip: first row, and number of rows, that the memory holds.
        flags: of pdfium; with FPDF_ANNOT annotations and form fields are drawn too.
        ground: colour below the page, 0xAARRGGBB.

    Raises:
        WorkerError: `out_of_memory` when pdfium makes no bitmap: nothing was drawn then.
    """
    (width_px, height_px), (top, rows) = size_px, strip
    bitmap = pdfium.FPDFBitmap_CreateEx(width_px, rows, pdfium.FPDFBitmap_BGR, address, width_px * CHANNELS)
    if not bitmap:
        raise WorkerError("out_of_memory", f"no bitmap of {width_px} x {rows} px could be made")
    try:
        pdfium.FPDFBitmap_FillRect(bitmap, 0, 0, width_px, rows, ground)
        place = (0, -top, width_px, height_px, 0, flags)
        pdfium.FPDF_RenderPageBitmap(bitmap, opened.page, *place)
        if opened.document.formenv:
            pdfium.FPDF_FFLDraw(opened.document.formenv, bitmap, opened.page, *place)
    finally:
        pdfium.FPDFBitmap_Destroy(bitmap)
