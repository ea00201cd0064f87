"""Regions of one page in points, and what of the page was not looked at for them. Pure: JSON out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from sam2_mcp_worker.engines.ports import Region, TextLine
from sam2_mcp_worker.media.boxes import rounded_out, scaled
from sam2_mcp_worker.media.reading_order import reading_order
from sam2_mcp_worker.media.region_seams import with_text_heights
from sam2_mcp_worker.pipelines.read_picture import Area, PictureReading

# Each reason is an error's sentence; there are rarely two.
MAX_REASON_CHARS = 300


def regions_result(
    reading: PictureReading, lines: Sequence[dict[str, Any]], *, tile_count: int, px_per_pt: float
) -> dict[str, Any]:
    """`regions` in reading order, numbered on from the page's lines as in its overlay, and `regions_reason`.

    The reason is empty when all of the page was looked at; only then may a label be called absent.

    Args:
        lines: all lines of the page as its result holds them, whose sizes give the regions' text heights.
    """
    regions = with_text_heights(reading.regions, [_text_line(line, px_per_pt) for line in lines])
    order = reading_order([region.box_xyxy_px for region in regions])
    return {
        "regions": [
            _region(regions[index], len(lines) + place, px_per_pt) for place, index in enumerate(order, start=1)
        ],
        "regions_reason": _reason(reading.unlooked, tile_count),
    }


def _region(region: Region, number: int, px_per_pt: float) -> dict[str, Any]:
    height_px = region.text_height_px
    return {
        "number": number,
        "label": region.label,
        "box_xyxy_pt": [round(value, 1) for value in scaled(region.box_xyxy_px, 1 / px_per_pt)],
        "confidence": round(region.confidence, 2),
        "text_height_pt": None if height_px is None else round(height_px / px_per_pt, 1),
    }


def _text_line(line: dict[str, Any], px_per_pt: float) -> TextLine:
    size_pt = line.get("min_size_pt", line["size_pt"])
    box = rounded_out(scaled(line["box_xyxy_pt"], px_per_pt))
    return TextLine(line["text"], box, size_pt * px_per_pt, line.get("confidence", 1.0))


def _reason(unlooked: Sequence[Area], tile_count: int) -> str:
    if not unlooked:
        return ""
    counts = Counter(reason for _, reason in unlooked)
    reasons = "; ".join(f"{count}: {reason}" for reason, count in counts.most_common())
    return f"{len(unlooked)} of {tile_count} tiles were not looked at whole ({reasons[:MAX_REASON_CHARS]})"
