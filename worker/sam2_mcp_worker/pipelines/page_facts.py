"""From the cached measures of a page to the facts that file rules are held against."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sam2_mcp_worker.checks.file_rules import Cut, PageFacts, PlacedPicture, cut_lines
from sam2_mcp_worker.checks.reading import ReadPage
from sam2_mcp_worker.checks.text_size import PT_PER_INCH, picture_scale
from sam2_mcp_worker.media.pdf import PAPER_PT
from sam2_mcp_worker.pipelines.page_boxes import bleed_sides, displayed_boxes

MM_PER_INCH = 25.4
# Gradients and rules are often pictures of a few pixels that are stretched: they are as sharp as they need to be.
MIN_PICTURE_PX = 16
# Pictures smaller on the page than this are bullets.
MIN_PICTURE_PT = 8.0


def pdf_page_facts(page: ReadPage, measured: Mapping[str, Any], bleed_mm: float | None) -> PageFacts:
    """The facts of a page of a PDF. What points are on paper is not known of captures of screens."""
    facts = measured["facts"]
    boxes = displayed_boxes(measured["rotation_deg"], facts)
    on_paper = page.size is not None and max(page.size) <= PAPER_PT
    bands = measured["edges"]["bands"]
    bleed = bleed_sides(boxes, bands, bleed_mm) if boxes and on_paper and bleed_mm is not None and bands else None
    return PageFacts(
        number=page.number,
        size_mm=boxes.trim_size_mm if boxes and on_paper else None,
        trim_stated=boxes is not None and boxes.trim_stated,
        bleed=bleed,
        colour_spaces=tuple(facts["colour_spaces"]) if facts else (),
        fonts=facts["fonts"] if facts else None,
        pictures=_pictures(measured, facts["user_unit"] if facts else 1.0) if on_paper else None,
        ink_share=measured["edges"]["ink_share"],
        lines=len(page.lines),
        cuts=_cuts(page, measured),
    )


def picture_page_facts(page: ReadPage, measured: Mapping[str, Any], bleed_mm: float | None) -> PageFacts:
    """The facts of a picture; it has a size on paper where its file tells a resolution that somebody chose."""
    facts, dpi = measured["facts"], measured["facts"]["dpi"]
    chosen = picture_scale(dpi).pt_per_unit is not None
    return PageFacts(
        number=page.number,
        size_mm=_size_mm(facts["width_px"], facts["height_px"], dpi) if chosen else None,
        colour_spaces=(facts["colour_space"],),
        pictures=(PlacedPicture(dpi),) if chosen else None,
        # What is white on no ground is seen on another one than the white that it was drawn on here.
        ink_share=None if facts["transparent"] else measured["edges"]["ink_share"],
        lines=len(page.lines),
        cuts=_cuts(page, measured),
    )


def _size_mm(width_px: int, height_px: int, dpi: float) -> tuple[float, float]:
    return width_px / dpi * MM_PER_INCH, height_px / dpi * MM_PER_INCH


def _pictures(measured: Mapping[str, Any], user_unit: float) -> tuple[PlacedPicture, ...]:
    found: list[PlacedPicture] = []
    for picture in measured["pictures"]:
        x0, y0, x1, y1 = picture["box"]
        if min(picture["size_px"]) >= MIN_PICTURE_PX and min(x1 - x0, y1 - y0) >= MIN_PICTURE_PT:
            found.append(PlacedPicture(picture["px_per_pt"] * PT_PER_INCH / user_unit, (x0, y0, x1, y1)))
    return tuple(found)


def _cuts(page: ReadPage, measured: Mapping[str, Any]) -> tuple[Cut, ...]:
    """Lines that are cut, and other things that edges cut."""
    lines = cut_lines(page)
    shapes = []
    for cut in measured["edges"]["cuts"]:
        x0, y0, x1, y1 = cut["box"]
        if not any(_touch(one.box_xyxy, (x0, y0, x1, y1)) for one in lines):
            what = f"something is cut off by the {cut['side']} edge, as its shape tells"
            shapes.append(Cut(what, False, (x0, y0, x1, y1)))
    return (*lines, *shapes)


def _touch(one: tuple[float, float, float, float] | None, other: tuple[float, float, float, float]) -> bool:
    return one is not None and one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
