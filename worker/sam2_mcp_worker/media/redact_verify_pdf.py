"""Looks at redacted pages with pdfium, which had no part in redacting them. Runs in redact children.

Owns the question whether a region is empty (no text, nothing to be seen below its cover) and whether the rest of the
page looks as before. What is found is told as problems, never mended here.
"""

from __future__ import annotations

import ctypes
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pypdfium2.raw as pdfium
from numpy.typing import NDArray

from sam2_mcp_worker.media.pdf_document import OpenPage, open_page
from sam2_mcp_worker.media.pdf_geometry import rendered_size_px
from sam2_mcp_worker.media.pixels import CHANNELS
from sam2_mcp_worker.media.redact_paths import Rect
from sam2_mcp_worker.media.redact_pdf_text import page_chars, page_text, under
from sam2_mcp_worker.media.redact_words import found_in_text

# Fine enough to show a moved letter or a lost rule, and 0.02 s a page.
COMPARE_PX_PER_PT = 100 / 72
MAX_COMPARED_PIXELS = 4_000_000
# Rewritten numbers move edges by hundredths of a pixel, which shades them by a few levels of 255.
EDGE_TOLERANCE = 48
# A rasterised page is drawn from 200 dpi: edges are softer, areas are the same. Means of blocks are compared.
BLOCK_PX = 8
BLOCK_TOLERANCE = 40
# Around regions: what a smoothed edge reaches, in pixels.
_MARGIN_PX = 2
# Neighbouring rows (columns) that differ by more are a change. Letters make many; panels cut off at the region, few.
_CHANGE_LEVELS = 24
MAX_CHANGES = 8
_WHITE, _BLACK = 0xFFFFFFFF, 0xFF000000

Pixels = NDArray[np.uint8]


def pdf_verify_pages(params: dict[str, Any]) -> dict[str, Any]:
    """`{before, password, after, pages, forms}` -> `{pages: [{page_number, problems, max_difference}]}`.

    Each of `pages` is `{page_number, rects, gone_boxes, rasterised}` in sheet coordinates of the original; without
    `rects` it must look as before everywhere.
    """
    return {"pages": [_verify(params, page) for page in params["pages"]]}


def _verify(params: dict[str, Any], page: dict[str, Any]) -> dict[str, Any]:
    number = page["page_number"]
    with open_page(Path(params["before"]), params["password"], number) as opened:
        scale = _scale(*opened.geometry.size_pt)
        before = _pixels(opened, scale)
        geometry = opened.geometry
    boxes = [geometry.box(*rect) for rect in page["rects"]]
    allowed = [*boxes, *(geometry.box(*box) for box in page["gone_boxes"])]
    with open_page(Path(params["after"]), "", number) as opened:
        problems = [
            f"'{form}' is in the text of page {number}" for form in found_in_text(page_text(opened), params["forms"])
        ]
        after = _pixels(opened, scale)
        if before.shape != after.shape:
            return {"page_number": number, "problems": [*problems, "the page has another size"], "max_difference": 255}
        if page["rasterised"]:
            problems += _check_picture(opened, after, [_box_px(box, scale) for box in boxes])
        elif boxes:
            problems += _check_text(opened, page["rects"])
            problems += _check_below(opened, len(boxes), scale, [_box_px(box, scale) for box in boxes])
    difference = _difference(before, after, [_box_px(box, scale) for box in allowed], bool(page["rasterised"]))
    limit = BLOCK_TOLERANCE if page["rasterised"] else EDGE_TOLERANCE
    if difference > limit:
        problems.append(f"page {number} looks different outside of the regions (by {difference} of 255 levels)")
    return {"page_number": number, "problems": problems, "max_difference": difference}


def _scale(width_pt: float, height_pt: float) -> float:
    return min(COMPARE_PX_PER_PT, math.sqrt(MAX_COMPARED_PIXELS / (width_pt * height_pt)))


def _pixels(opened: OpenPage, scale: float, ground: int = _WHITE) -> Pixels:
    """The page with annotations and fields, `(height, width, 3)` BGR, drawn on a ground."""
    width_px, height_px = rendered_size_px(*opened.geometry.size_pt, scale)
    pixels = np.empty((height_px, width_px, CHANNELS), np.uint8)
    address = pixels.ctypes.data_as(ctypes.c_void_p)
    bitmap = pdfium.FPDFBitmap_CreateEx(width_px, height_px, pdfium.FPDFBitmap_BGR, address, width_px * CHANNELS)
    try:
        pdfium.FPDFBitmap_FillRect(bitmap, 0, 0, width_px, height_px, ground)
        place = (0, 0, width_px, height_px, 0, pdfium.FPDF_ANNOT)
        pdfium.FPDF_RenderPageBitmap(bitmap, opened.page, *place)
        if opened.document.formenv:
            pdfium.FPDF_FFLDraw(opened.document.formenv, bitmap, opened.page, *place)
    finally:
        pdfium.FPDFBitmap_Destroy(bitmap)
    return pixels


def _box_px(box: Sequence[float], scale: float) -> tuple[int, int, int, int]:
    x0, y0, x1, y1 = (side * scale for side in box)
    return math.floor(x0), math.floor(y0), math.ceil(x1), math.ceil(y1)


def _check_text(opened: OpenPage, rects: Sequence[Rect]) -> list[str]:
    left = Counter(char.text for char in under(page_chars(opened), rects) if not char.text.isspace())
    return [f"{left.total()} characters are left under the regions"] if left else []


def _check_picture(opened: OpenPage, after: Pixels, boxes: Sequence[tuple[int, int, int, int]]) -> list[str]:
    problems = []
    if pdfium.FPDFPage_CountObjects(opened.page) != 1 or page_chars(opened):
        problems.append("the page should be one picture and is not")
    for box in boxes:
        part = _inner(after, box)
        if part.size and int(np.ptp(part.reshape(-1, 3), axis=0).max()) > _CHANGE_LEVELS:
            problems.append("a region of the picture is not blank")
    return problems


def _check_below(opened: OpenPage, covers: int, scale: float, boxes: Sequence[tuple[int, int, int, int]]) -> list[str]:
    """Take the cover off (in memory only) and look: what a reader could uncover must be plain."""
    last = pdfium.FPDFPage_CountObjects(opened.page) - 1
    cover = pdfium.FPDFPage_GetObject(opened.page, last) if last >= 0 else None
    is_cover = cover and pdfium.FPDFPageObj_GetType(cover) == pdfium.FPDF_PAGEOBJ_PATH
    if not is_cover or pdfium.FPDFPath_CountSegments(cover) < covers * 4:
        return ["the regions are not covered"]
    pdfium.FPDFPage_RemoveObject(opened.page, cover)
    # On white and on black: what is left of a picture may be white, or the shape of its mask.
    bare = [_pixels(opened, scale, ground) for ground in (_WHITE, _BLACK)]
    return [
        f"something is left below region {i}"
        for i, box in enumerate(boxes, 1)
        if not all(is_plain(_inner(pixels, box)) for pixels in bare)
    ]


def _inner(pixels: Pixels, box: tuple[int, int, int, int]) -> Pixels:
    """The region without the pixels that its edge shares with the outside."""
    x0, y0, x1, y1 = box
    return pixels[max(0, y0 + _MARGIN_PX) : max(0, y1 - _MARGIN_PX), max(0, x0 + _MARGIN_PX) : max(0, x1 - _MARGIN_PX)]


def is_plain(pixels: Pixels) -> bool:
    """Whether an area shows nothing but areas of colour and soft gradients with few straight edges between them."""
    if not pixels.size:
        return True
    levels = pixels.astype(np.int16)
    rows = int((np.abs(np.diff(levels, axis=0)).max(axis=(1, 2), initial=0) > _CHANGE_LEVELS).sum())
    columns = int((np.abs(np.diff(levels, axis=1)).max(axis=(0, 2), initial=0) > _CHANGE_LEVELS).sum())
    return rows <= MAX_CHANGES and columns <= MAX_CHANGES


def _difference(before: Pixels, after: Pixels, allowed: Sequence[tuple[int, int, int, int]], rasterised: bool) -> int:
    """The greatest difference outside of the allowed boxes: of pixels, or of the means of blocks."""
    difference = np.abs(before.astype(np.int16) - after.astype(np.int16)).max(axis=2)
    for x0, y0, x1, y1 in allowed:
        rows = slice(max(0, y0 - _MARGIN_PX), max(0, y1 + _MARGIN_PX))
        difference[rows, max(0, x0 - _MARGIN_PX) : max(0, x1 + _MARGIN_PX)] = 0
    if not rasterised:
        return int(difference.max(initial=0))
    height, width = (side - side % BLOCK_PX for side in difference.shape)
    blocks = difference[:height, :width].reshape(height // BLOCK_PX, BLOCK_PX, width // BLOCK_PX, BLOCK_PX)
    return int(blocks.mean(axis=(1, 3)).max(initial=0))


TASKS = {"pdf_verify_pages": pdf_verify_pages}
