"""Trim and bleed of a page in the coordinates in which the page is displayed, from the boxes that its file states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sam2_mcp_worker.checks.file_rules import BleedSide
from sam2_mcp_worker.checks.text_size import MM_PER_PT
from sam2_mcp_worker.media.pdf_geometry import BoxPt, PageGeometry

# Of the pixels on a side of the trim, so many are not white where artwork reaches it: less is the end of a rule.
REACHES_SHARE = 0.02
# Artwork that goes on has as much ink behind the trim as on it, but for what ends in between.
FILLED_SHARE = 0.5
_SIDES = ("left", "top", "right", "bottom")


@dataclass(frozen=True, slots=True)
class PageBoxes:
    """`trim`, what is shown (`crop`), and how far the file goes on (`outer`), in points from the top left of the crop.

    `unit` is how many points one of these is on paper (the file's user unit).
    """

    trim: BoxPt
    trim_stated: bool
    crop: BoxPt
    outer: BoxPt
    unit: float

    @property
    def mm_per_unit(self) -> float:
        """Millimetres on paper of one unit here."""
        return MM_PER_PT * self.unit

    @property
    def trim_size_mm(self) -> tuple[float, float]:
        """Width and height of the trimmed page."""
        x0, y0, x1, y1 = self.trim
        return (x1 - x0) * self.mm_per_unit, (y1 - y0) * self.mm_per_unit


def displayed_boxes(rotation_deg: int, facts: Mapping[str, Any] | None) -> PageBoxes | None:
    """The boxes of `media.pdf_facts` as displayed; None where the file tells none."""
    if facts is None or facts["crop"] is None:
        return None
    unit = facts["user_unit"]

    def in_user_space(box: Sequence[float]) -> tuple[float, float, float, float]:
        left, bottom, right, top = (side / unit for side in box)
        return left, bottom, right, top

    geometry = PageGeometry(*in_user_space(facts["crop"]), rotation_deg)
    trim, outer = facts["trim"] or facts["crop"], facts["bleed"] or facts["media"] or facts["crop"]
    shown, goes_on = geometry.box(*in_user_space(trim)), geometry.box(*in_user_space(outer))
    crop = geometry.box(*in_user_space(facts["crop"]))
    return PageBoxes(shown, facts["trim"] is not None, crop, goes_on, unit)


def grown(box: BoxPt, by: float) -> BoxPt:
    """The box with so much more on each side."""
    return box[0] - by, box[1] - by, box[2] + by, box[3] + by


def bleed_sides(boxes: PageBoxes, bands: Mapping[str, Mapping[str, float]], bleed_mm: float) -> tuple[BleedSide, ...]:
    """The sides where artwork reaches the trim. `bands`: shares of ink on the sides of the trim, and of the bleed."""
    found: list[BleedSide] = []
    for index, side in enumerate(_SIDES):
        on_trim = bands["trim"][side]
        if on_trim < REACHES_SHARE:
            continue
        margin, shown = (_margin(boxes.trim, box, index) * boxes.mm_per_unit for box in (boxes.outer, boxes.crop))
        filled = bands["bleed"][side] >= FILLED_SHARE * on_trim if shown >= bleed_mm else None
        found.append(BleedSide(side, max(0.0, margin), filled))
    return tuple(found)


def _margin(inner: BoxPt, outer: BoxPt, index: int) -> float:
    return inner[index] - outer[index] if index < 2 else outer[index] - inner[index]
