"""The lines of an image that go into a call's result, for every tool that reads images; bands.py knows their places."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sam2_mcp_worker.engines.ports import Box, TextLine
from sam2_mcp_worker.fanout import Coverage
from sam2_mcp_worker.pipelines.bands import Place, deliver, settled_until_px
from sam2_mcp_worker.pipelines.picture_job import PictureJob
from sam2_mcp_worker.pipelines.read_picture import PictureReading, line_to_json

# A picture may hold hundreds of areas that nobody can read; their number is always told, their boxes up to this.
MAX_INK_BOXES = 100
INK_BOX_CHARS = 28


@dataclass(frozen=True, slots=True)
class ImageLines:
    """Lines of this call, and where the next goes on. Ink that nobody read comes with the first call of its band."""

    lines: tuple[TextLine, ...]
    undetected_ink: int
    undetected_ink_boxes: list[Box]
    next_place: Place | None


def image_lines(
    picture: PictureJob,
    coverage: Coverage[int, Any],
    merged: PictureReading,
    place: Place,
    *,
    max_lines: int,
    max_chars: int,
) -> ImageLines:
    """The next lines from `place` on, as many as fit."""
    height_px = picture.image.height_px
    coming = sum(box[3] > place.after_y_px for box in merged.undetected_ink) if place.skip == 0 else 0
    for_lines = max_chars - INK_BOX_CHARS * min(coming, MAX_INK_BOXES)
    delivery = deliver(
        merged.lines,
        place,
        settled_px=settled_until_px(picture.tiles, coverage.unreached, height_px),
        height_px=height_px,
        failed=frozenset(coverage.failed),
        fit=lambda lines: _fitting(lines, max_lines, for_lines),
    )
    if place.skip > 0:
        return ImageLines(delivery.lines, 0, [], delivery.next_place)
    # Areas of ink are united over tiles, so one may shrink when the next tile is read: whatever touches the band is
    # told, at the price of telling some twice.
    ink = [box for box in merged.undetected_ink if box[1] < delivery.until_y_px and box[3] > place.after_y_px]
    return ImageLines(delivery.lines, len(ink), ink[:MAX_INK_BOXES], delivery.next_place)


def _fitting(lines: Sequence[TextLine], max_lines: int, max_chars: int) -> int:
    """How many lines the result holds, at least one, so that every call gets on."""
    left = max_chars
    for count, line in enumerate(lines[:max_lines]):
        left -= len(json.dumps(line_to_json(line), ensure_ascii=False))
        if left < 0 and count > 0:
            return count
    return min(len(lines), max_lines)
