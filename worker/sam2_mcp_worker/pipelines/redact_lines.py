"""Lines of pictures as a redaction takes them: what is searched for phrases, and what is covered. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from sam2_mcp_worker.engines.ports import Box, TextLine
from sam2_mcp_worker.media.level_boxes import order_of_lines
from sam2_mcp_worker.pipelines.redact_phrases import ReadLine

# Beyond the box of a line that a detector drew: ink may stick out of it by a tenth of its height (reader: BOX_MARGIN).
LINE_MARGIN = 0.15
LINE_MARGIN_PX = 2


def in_order(lines: Sequence[TextLine]) -> list[TextLine]:
    """The lines as people read them."""
    return [lines[index] for index in order_of_lines([(line.box_xyxy_px, line.height_px) for line in lines])]


def as_read(lines: Sequence[TextLine]) -> list[ReadLine]:
    """The lines as readings of OCR, which may be wrong."""
    return [ReadLine(line.text, line.box_xyxy_px, exact=False) for line in lines]


def line_area(box: Box, size_px: tuple[int, int]) -> Box:
    """What is covered for a line: its box and a margin, within the picture."""
    margin = round((box[3] - box[1]) * LINE_MARGIN) + LINE_MARGIN_PX
    return within((box[0] - margin, box[1] - margin, box[2] + margin, box[3] + margin), size_px)


def within(box: Box, size_px: tuple[int, int]) -> Box:
    """The part of a box that lies in the picture; empty or turned over where none does."""
    return max(0, box[0]), max(0, box[1]), min(size_px[0], box[2]), min(size_px[1], box[3])
