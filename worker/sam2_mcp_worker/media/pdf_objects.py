"""What a page shows besides text: its pictures, and drawings that may be lettering turned into outlines."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pypdfium2.raw as pdfium

from sam2_mcp_worker.media.pdf_document import OpenPage
from sam2_mcp_worker.media.pdf_geometry import IDENTITY, BoxPt, Matrix, bounds_after, multiply

# Form XObjects nested deeper than this are not seen in real files; cyclic ones are.
MAX_DEPTH = 8
# The dearest public drawing has 90,000 objects. What lies beyond is not looked at, and said to be ink.
MAX_OBJECTS = 200_000
# A page sliced finer than this is treated like one without a leading picture.
MAX_IMAGES = 1_000
# Straight outlines with fewer segments are rules, panels and table cells; letters have more, or curves.
_LETTER_SEGMENTS = 6


@dataclass(frozen=True, slots=True)
class Picture:
    """An embedded picture: where it is displayed (clipped to the page), its own size, and its resolution there."""

    box_xyxy_pt: BoxPt
    width_px: int
    height_px: int
    px_per_pt: float


@dataclass(slots=True)
class PageObjects:
    """`vector_paths` counts visible drawings that could be lettering: curved or many-cornered paths, and shadings."""

    pictures: list[Picture] = field(default_factory=list)
    vector_paths: int = 0


def find_objects(opened: OpenPage) -> PageObjects:
    """Look through the page's objects, form XObjects included."""
    found = PageObjects()
    for count, (item, kind, matrix) in enumerate(_walk(opened.page)):
        if count >= MAX_OBJECTS:
            found.vector_paths += 1
            break
        if kind == pdfium.FPDF_PAGEOBJ_IMAGE and len(found.pictures) < MAX_IMAGES:
            picture = _picture(opened, item, matrix)
            if picture is not None:
                found.pictures.append(picture)
        elif kind == pdfium.FPDF_PAGEOBJ_SHADING or (kind == pdfium.FPDF_PAGEOBJ_PATH and _may_be_lettering(item)):
            found.vector_paths += 1
    return found


def count_annotations(page: Any) -> int:
    """Annotations that draw something; links and closed pop-ups do not."""
    drawn = 0
    for index in range(max(0, pdfium.FPDFPage_GetAnnotCount(page))):
        annotation = pdfium.FPDFPage_GetAnnot(page, index)
        if not annotation:
            continue
        drawn += pdfium.FPDFAnnot_GetSubtype(annotation) not in (pdfium.FPDF_ANNOT_LINK, pdfium.FPDF_ANNOT_POPUP)
        pdfium.FPDFPage_CloseAnnot(annotation)
    return drawn


def _walk(page: Any) -> Iterator[tuple[Any, int, Matrix]]:
    """Every object, forms before what they hold, with the matrix from the space it is placed in to the page's."""
    stack: list[tuple[Any, int, Matrix]] = [
        (pdfium.FPDFPage_GetObject(page, i), 0, IDENTITY) for i in range(pdfium.FPDFPage_CountObjects(page))
    ]
    stack.reverse()
    while stack:
        item, depth, outer = stack.pop()
        kind = pdfium.FPDFPageObj_GetType(item)
        yield item, kind, outer
        if kind == pdfium.FPDF_PAGEOBJ_FORM and depth < MAX_DEPTH:
            matrix = multiply(_matrix(item), outer)
            children = min(max(0, pdfium.FPDFFormObj_CountObjects(item)), MAX_OBJECTS)
            stack.extend((pdfium.FPDFFormObj_GetObject(item, i), depth + 1, matrix) for i in reversed(range(children)))


def _matrix(item: Any) -> Matrix:
    m = pdfium.FS_MATRIX()
    if not pdfium.FPDFPageObj_GetMatrix(item, ctypes.byref(m)):
        return IDENTITY
    return m.a, m.b, m.c, m.d, m.e, m.f


def _picture(opened: OpenPage, item: Any, outer: Matrix) -> Picture | None:
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    width, height = ctypes.c_uint(), ctypes.c_uint()
    refs = map(ctypes.byref, (left, bottom, right, top))
    if not pdfium.FPDFPageObj_GetBounds(item, *refs):
        return None
    if not pdfium.FPDFImageObj_GetImagePixelSize(item, ctypes.byref(width), ctypes.byref(height)):
        return None
    sides = bounds_after(outer, left.value, bottom.value, right.value, top.value)
    whole = opened.geometry.box(*sides)
    box = opened.geometry.clip(whole)
    if box[0] >= box[2] or box[1] >= box[3]:
        return None  # not on the page
    area_pt = (whole[2] - whole[0]) * (whole[3] - whole[1])
    # By area, which is right for pictures placed sideways too.
    return Picture(box, width.value, height.value, math.sqrt(width.value * height.value / area_pt))


def _may_be_lettering(path: Any) -> bool:
    fill, stroke = ctypes.c_int(), ctypes.c_int()
    pdfium.FPDFPath_GetDrawMode(path, ctypes.byref(fill), ctypes.byref(stroke))
    if fill.value == pdfium.FPDF_FILLMODE_NONE and not stroke.value:
        return False  # only clips
    segments = pdfium.FPDFPath_CountSegments(path)
    if segments >= _LETTER_SEGMENTS:
        return True
    kinds = (pdfium.FPDFPathSegment_GetType(pdfium.FPDFPath_GetPathSegment(path, i)) for i in range(segments))
    return pdfium.FPDF_SEGMENT_BEZIERTO in kinds
