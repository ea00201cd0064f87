"""Reads the text of one image; picture_job.py reads, image_lines.py says which lines go into which call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sam2_mcp_worker.deadline import current_deadline
from sam2_mcp_worker.engines.ports import Box, TextLine, Wanted
from sam2_mcp_worker.fanout import Coverage
from sam2_mcp_worker.pipelines.bands import from_cursor, to_cursor
from sam2_mcp_worker.pipelines.image_facts import ImageFacts
from sam2_mcp_worker.pipelines.image_lines import image_lines
from sam2_mcp_worker.pipelines.picture_job import open_picture
from sam2_mcp_worker.pipelines.reading_choice import Mode
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.spending import Usage
from sam2_mcp_worker.uploads import StoredFile

TOOL = "read_text"


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
    place = from_cursor(TOOL, picture.key, cursor, len(picture.tiles))
    async with picture.join(retry=not cursor.strip()) as job:
        await job.wait(deadline)
        coverage, merged = await picture.reading(job, place.failed)
        spent = job.spent.take()
    max_chars = services.settings.result_max_chars
    told = image_lines(picture, coverage, merged, place, max_lines=max_lines, max_chars=max_chars)
    return ImageReading(
        file=picture.stored,
        image=picture.image,
        engine=picture.choice.engine,
        coverage=coverage,
        lines=told.lines,
        undetected_ink=told.undetected_ink,
        undetected_ink_boxes=told.undetected_ink_boxes,
        failed_areas=list(merged.unread),
        truncated_areas=list(merged.truncated),
        notes=picture.notes(merged),
        spent=spent,
        cursor=to_cursor(TOOL, picture.key, told.next_place),
    )
