"""Looks at redacted pages with pdfium, which had no part in redacting them. Runs in redact children.

Owns the question whether a region is empty (no text, nothing to be seen below its cover) and whether the rest of the
page looks as before. What is found is told as problems, never mended here.
"""

from __future__ import annotations

import ctypes
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pypdfium2.raw as pdfium
from numpy.typing import NDArray

from sam2_mcp_worker.media.pdf_document import OpenPage, open_page
from sam2_mcp_worker.media.pdf_geometry import PageGeometry, rendered_size_px
from sam2_mcp_worker.media.pdf_render import WHITE, draw
from sam2_mcp_worker.media.pixel_writer import strips
from sam2_mcp_worker.media.pixels import CHANNELS
from sam2_mcp_worker.media.redact_paths import Rect
from sam2_mcp_worker.media.redact_pdf_text import page_chars, page_text, under
from sam2_mcp_worker.media.redact_words import found_in_text

# Fine enough to show a lost rule or letter, and 0.02 s a page.
COMPARE_PX_PER_PT = 100 / 72
MAX_COMPARED_PIXELS = 4_000_000
# Pixels kept of the pages before, while those after are drawn; one more page comes on top, at most 120 MB of it.
HELD_BYTES = 60_000_000
# A pixel may look like one beside it: pdfium places letters on whole pixels, so a number rewritten with another last
# digit moves one by a pixel (0.25 mm at 100 dpi). What is lost or new differs by more than a smoothed edge does.
TOLERANCE = 56
# Around regions: what a smoothed edge reaches, in pixels.
_MARGIN_PX = 2
# Neighbouring rows (columns) that differ by more are a change. Letters make many; panels cut off at the region, few.
_CHANGE_LEVELS = 24
MAX_CHANGES = 8
_BLACK = 0xFF000000

Pixels = NDArray[np.uint8]


def pdf_verify_pages(params: dict[str, Any]) -> dict[str, Any]:
    """`{before, password, after, pages, forms}` -> `{pages: [{page_number, problems, max_difference, same_text}]}`.

    Each of `pages` is `{page_number, rects, gone_boxes, raster_px_per_pt}` in sheet coordinates of the original;
    without `rects` it must look as before everywhere.
    """
    results = []
    for views in _batches(params):
        for view in views:
            with open_page(Path(params["after"]), "", view.page["page_number"]) as opened:
                results.append(_verify(opened, view, params["forms"]))
    return {"pages": results}


@dataclass(frozen=True, slots=True)
class _View:
    """How a page looked before."""

    page: dict[str, Any]
    geometry: PageGeometry
    scale: float
    pixels: Pixels
    text: str


def _batches(params: dict[str, Any]) -> Iterator[list[_View]]:
    """Views of several pages at a time: each change of the document costs opening it anew."""
    views: list[_View] = []
    held = 0
    for page in params["pages"]:
        with open_page(Path(params["before"]), params["password"], page["page_number"]) as opened:
            # A page that became a picture is compared at that picture's resolution, where nothing is scaled.
            scale = page["raster_px_per_pt"] or _scale(*opened.geometry.size_pt)
            views.append(_View(page, opened.geometry, scale, _pixels(opened, scale), page_text(opened)))
        held += views[-1].pixels.size
        if held > HELD_BYTES:
            yield views
            views, held = [], 0
    yield views


def _verify(opened: OpenPage, view: _View, forms: Sequence[str]) -> dict[str, Any]:
    number, scale, rects = view.page["page_number"], view.scale, view.page["rects"]
    boxes = [_box_px(view.geometry.box(*rect), scale) for rect in rects]
    allowed = [*boxes, *(_box_px(view.geometry.box(*box), scale) for box in view.page["gone_boxes"])]
    text = page_text(opened)
    problems = [f"'{form}' is in the text of page {number}" for form in found_in_text(text, forms)]
    result = {"page_number": number, "problems": problems, "max_difference": 255, "same_text": text == view.text}
    after = _pixels(opened, scale)
    if view.pixels.shape != after.shape:
        return {
            "page_number": number,
            "problems": [*problems, f"page {number} has another size"],
            "max_difference": 255,
        }
    if view.page["raster_px_per_pt"]:
        problems += _check_picture(opened, after, boxes)
    elif boxes:
        problems += _check_text(opened, rects)
        problems += _check_below(opened, after, scale, boxes)
    difference = _difference(view.pixels, after, allowed)
    if difference > TOLERANCE:
        problems.append(f"page {number} looks different outside of the regions (by {difference} of 255 levels)")
    return {**result, "max_difference": difference}


def _scale(width_pt: float, height_pt: float) -> float:
    return min(COMPARE_PX_PER_PT, math.sqrt(MAX_COMPARED_PIXELS / (width_pt * height_pt)))


def _pixels(opened: OpenPage, scale: float, ground: int = WHITE) -> Pixels:
    """The page with annotations and fields, `(height, width, 3)` BGR, drawn on a ground."""
    width_px, height_px = rendered_size_px(*opened.geometry.size_pt, scale)
    pixels = np.empty((height_px, width_px, CHANNELS), np.uint8)
    address = pixels.ctypes.data_as(ctypes.c_void_p)
    draw(opened, address, (width_px, height_px), (0, height_px), flags=pdfium.FPDF_ANNOT, ground=ground)
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
    if not all(_is_blank(_inner(after, box)) for box in boxes):
        problems.append("a region of the picture is not blank")
    return problems


def _is_blank(pixels: Pixels) -> bool:
    return not pixels.size or int(np.ptp(pixels.reshape(-1, CHANNELS), axis=0).max()) <= _CHANGE_LEVELS


def _check_below(
    opened: OpenPage, after: Pixels, scale: float, boxes: Sequence[tuple[int, int, int, int]]
) -> list[str]:
    """Take the cover off (in memory only) and look: what a reader could uncover must be plain."""
    if not all(_is_blank(_inner(after, box)) for box in boxes):
        return ["the regions are not covered"]
    last = pdfium.FPDFPage_CountObjects(opened.page) - 1
    cover = pdfium.FPDFPage_GetObject(opened.page, last) if last >= 0 else None
    is_cover = cover and pdfium.FPDFPageObj_GetType(cover) == pdfium.FPDF_PAGEOBJ_PATH
    if not is_cover or pdfium.FPDFPath_CountSegments(cover) < len(boxes) * 4:
        return ["the regions are not covered"]
    pdfium.FPDFPage_RemoveObject(opened.page, cover)
    # On white and on black: what is left of a picture may be white, or the shape of its mask.
    bare = [_pixels(opened, scale, ground) for ground in (WHITE, _BLACK)]
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


def _difference(before: Pixels, after: Pixels, allowed: Sequence[tuple[int, int, int, int]]) -> int:
    """The greatest difference outside of the allowed boxes, strip by strip to bound memory."""
    if np.array_equal(before, after):
        return 0
    worst = 0
    for top, bottom in strips(before.shape[1], before.shape[0]):
        rows = slice(max(0, top - 1), min(before.shape[0], bottom + 1))
        difference = np.maximum(_beyond(before[rows], after[rows]), _beyond(after[rows], before[rows]))
        for x0, y0, x1, y1 in allowed:
            inside = slice(max(0, y0 - _MARGIN_PX - rows.start), max(0, y1 + _MARGIN_PX - rows.start))
            difference[inside, max(0, x0 - _MARGIN_PX) : max(0, x1 + _MARGIN_PX)] = 0
        first, last = top - rows.start, bottom - rows.start
        worst = max(worst, int(difference[first:last].max(initial=0)))
    return worst


def _beyond(one: Pixels, other: Pixels) -> Pixels:
    """How far each pixel of one lies outside of what the other shows there and on the pixels round it."""
    low, high = _neighbours(other, np.minimum), _neighbours(other, np.maximum)
    over, under_ = np.maximum(one, high) - high, low - np.minimum(one, low)
    channels = np.maximum(over, under_)
    return np.maximum(np.maximum(channels[:, :, 0], channels[:, :, 1]), channels[:, :, 2])


def _neighbours(pixels: Pixels, choose: Callable[[Pixels, Pixels], Pixels]) -> Pixels:
    """The least or greatest of each pixel and the eight round it."""
    wide = pixels.copy()
    wide[:, 1:] = choose(wide[:, 1:], pixels[:, :-1])
    wide[:, :-1] = choose(wide[:, :-1], pixels[:, 1:])
    both = wide.copy()
    both[1:] = choose(both[1:], wide[:-1])
    both[:-1] = choose(both[:-1], wide[1:])
    return both


TASKS = {"pdf_verify_pages": pdf_verify_pages}
