"""Whether a redacted picture is what it should be: by its pixels and chunks, and by reading it once more.

Pixels outside of the areas are proved to be those of the source, so only what lies around the areas can be read
otherwise than before: windows of some line heights are read, not the whole picture again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from sam2_mcp_worker.engines.ports import Box, TextLine
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.boxes import rounded_out, united
from sam2_mcp_worker.media.image_redaction import PictureCheck
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.tiling import plan_tiles
from sam2_mcp_worker.pipelines.redact_findings import unverified
from sam2_mcp_worker.pipelines.redact_legible import still_legible
from sam2_mcp_worker.pipelines.redact_lines import in_order
from sam2_mcp_worker.pipelines.redact_request import Method
from sam2_mcp_worker.pipelines.redact_task import RedactionTask

# Around a covered line: two lines above and below it at usual spacing, and what sticks out of its ends.
WINDOW_HEIGHTS = 3
MIN_WINDOW_MARGIN_PX = 60
# Above that an area is no line, and what lies within this of it is enough.
MAX_WINDOW_MARGIN_PX = 300


def proofs(check: PictureCheck, method: Method) -> list[str]:
    """What the comparison of pixels proves, in words.

    Raises:
        WorkerError: redaction_unverified.
    """
    if check.outside_changed_px:
        raise unverified(f"{check.outside_changed_px} pixels outside of the regions changed")
    if check.foreign_chunks:
        raise unverified(f"the file holds chunks {', '.join(check.foreign_chunks)}")
    inside = [area for area in check.areas if area is not None]
    if not inside or len(inside) != len(check.areas):
        raise unverified("a region has no pixel inside the picture")
    if method == "fill" and any(area.filled_px != area.area_px for area in inside):
        raise unverified("a region is not filled with one colour throughout")
    covered_px, changed_px = sum(area.area_px for area in inside), sum(area.changed_px for area in inside)
    return [
        f"each of the {covered_px} pixels in {len(inside)} areas has one and the same colour"
        if method == "fill"
        else f"{changed_px} of {covered_px} pixels in {len(inside)} areas changed",
        f"outside of the regions all {check.outside_px} pixels are those of the decoded source",
        "the file decodes and holds pixels only (chunks IHDR, IDAT, IEND): no EXIF, thumbnail, profile or text",
    ]


class OutputReader:
    """Reads parts of pictures without keeping what was read."""

    def __init__(self, task: RedactionTask) -> None:
        self._task = task

    async def lines_around(self, pixels: PixelFile, boxes: Iterable[Box]) -> list[list[TextLine]]:
        """Lines in and around the boxes, in reading order, a list for each window that holds them.

        Raises:
            WorkerError: redaction_unverified when a part cannot be read.
        """
        windows = [rounded_out(window) for window in united(_window(box, pixels) for box in boxes)]
        try:
            found = await asyncio.gather(*(self._lines_in(pixels, window) for window in windows))
        except WorkerError as error:
            raise unverified(f"the output could not be read again ({error.reason})") from error
        return [in_order(lines) for lines in found]

    async def check_illegible(self, before: PixelFile, after: PixelFile, boxes: Sequence[Box]) -> str:
        """That nothing is read in the boxes any more, in words.

        Raises:
            WorkerError: redaction_unverified when something is.
        """
        read = 0
        for box in boxes:
            was, now = [await self._lines_in(pixels, box) for pixels in (before, after)]
            read += len(was)
            if still_legible(was, now):
                raise unverified(f"OCR still reads what stood in {list(box)}: method 'fill' is needed here")
        if not read:
            return "OCR read nothing in the areas before, so it cannot tell whether they are legible now"
        return f"OCR reads none of the {read} lines any more that it read in the areas before"

    async def _lines_in(self, pixels: PixelFile, box: Box) -> list[TextLine]:
        lines: list[TextLine] = []
        for x0, y0, x1, y1 in plan_tiles(box[2] - box[0], box[3] - box[1]):
            rect = x0 + box[0], y0 + box[1], x1 + box[0], y1 + box[1]
            reading = await self._task.services.reader.read_tile(
                pixels, rect, job=self._task.job, timeout_s=self._task.timeout_s
            )
            lines += reading.lines
        return lines


def _window(box: Box, pixels: PixelFile) -> Box:
    height = box[3] - box[1]
    margin = min(max(WINDOW_HEIGHTS * height, MIN_WINDOW_MARGIN_PX), MAX_WINDOW_MARGIN_PX)
    return (
        max(0, box[0] - margin),
        max(0, box[1] - margin),
        min(pixels.width_px, box[2] + margin),
        min(pixels.height_px, box[3] + margin),
    )
