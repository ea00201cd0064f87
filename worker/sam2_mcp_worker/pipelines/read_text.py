"""Reads the text of one image; picture_job.py reads, bands.py says which lines go into which call."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sam2_mcp_worker.deadline import current_deadline
from sam2_mcp_worker.engines.ports import Box, TextLine, Wanted
from sam2_mcp_worker.fanout import Coverage
from sam2_mcp_worker.pipelines.bands import deliver, from_cursor, settled_until_px, to_cursor
from sam2_mcp_worker.pipelines.image_facts import ImageFacts
from sam2_mcp_worker.pipelines.picture_job import open_picture
from sam2_mcp_worker.pipelines.read_picture import line_to_json
from sam2_mcp_worker.pipelines.reading_choice import Mode
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.spending import Usage
from sam2_mcp_worker.uploads import StoredFile

TOOL = "read_text"
# A picture may hold hundreds of areas that nobody can read; their number is always told, their boxes up to this.
MAX_INK_BOXES = 100


@dataclass(frozen=True, slots=True)
class ImageReading:
    """What one call delivers. Ink that nobody could read comes with the first call of its band, boxes up to 100.

    `spent` is what reading cost since it was told last, by tile number.
    """

    file: StoredFile
    image: ImageFacts
    engine: str
    coverage: Coverage[int, Any]
    lines: tuple[TextLine, ...]
    undetected_ink: int
    undetected_ink_boxes: list[Box]
    failed_areas: list[tuple[Box, str]]
    truncated_areas: list[Box]
    notes: list[str]
    spent: dict[int, Usage]
    cursor: str | None


async def read_text(services: Services, source: str, cursor: str, max_lines: int, mode: Mode = "auto") -> ImageReading:
    """Read or continue reading an image until the current deadline.

    Raises:
        WorkerError: the source or the cursor is wrong, the image cannot be decoded, or no tile could be read.
    """
    deadline = current_deadline()
    picture = await open_picture(services, TOOL, source, cursor=cursor, mode=mode, wanted=Wanted(text=True))
    tiles, image = picture.tiles, picture.image
    place = from_cursor(TOOL, picture.key, cursor, len(tiles))
    async with picture.join(retry=not cursor.strip()) as job:
        await job.wait(deadline)
        coverage, merged = await picture.reading(job, place.failed)
        spent = job.spent.take()
    delivery = deliver(
        merged.lines,
        place,
        settled_px=settled_until_px(tiles, coverage.unreached, image.height_px),
        height_px=image.height_px,
        failed=frozenset(coverage.failed),
        fit=lambda lines: _fitting(lines, max_lines, services.settings.result_max_chars),
    )
    first_of_band = place.skip == 0
    # Areas of ink are united over tiles, so one may shrink when the next tile is read: whatever touches the band is
    # told, at the price of telling some twice.
    ink = [box for box in merged.undetected_ink if box[1] < delivery.until_y_px and box[3] > place.after_y_px]
    return ImageReading(
        file=picture.stored,
        image=image,
        engine=picture.choice.engine,
        coverage=coverage,
        lines=delivery.lines,
        undetected_ink=len(ink) if first_of_band else 0,
        undetected_ink_boxes=ink[:MAX_INK_BOXES] if first_of_band else [],
        failed_areas=list(merged.unread),
        truncated_areas=list(merged.truncated),
        notes=picture.notes(merged),
        spent=spent,
        cursor=to_cursor(TOOL, picture.key, delivery.next_place),
    )


def _fitting(lines: Sequence[TextLine], max_lines: int, max_chars: int) -> int:
    """How many lines the result holds, at least one, so that every call gets on."""
    left = max_chars
    for count, line in enumerate(lines[:max_lines]):
        left -= len(json.dumps(line_to_json(line), ensure_ascii=False))
        if left < 0 and count > 0:
            return count
    return min(len(lines), max_lines)
