"""What a pipeline may ask of an engine. Engines are chosen by settings; pipelines know only these Protocols."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from sam2_mcp_worker.media.pixels import PixelFile

Box = tuple[int, int, int, int]
"""x0, y0, x1, y1 in pixels of the whole picture, origin top left, x1 and y1 exclusive."""


@dataclass(frozen=True, slots=True)
class TextLine:
    """One line of text as it was read.

    `box_xyxy_px` is the axis-aligned box in the whole picture; `height_px` the height of the text itself (across
    the reading direction, so a tilted line is not taller); `confidence` 0-1.
    """

    text: str
    box_xyxy_px: Box
    height_px: float
    confidence: float


@dataclass(frozen=True, slots=True)
class TileReading:
    """What one tile gave: its lines, and boxes of ink that no line explains (seen, but not read)."""

    lines: tuple[TextLine, ...]
    undetected_ink: tuple[Box, ...]


class TextReader(Protocol):
    """Reads printed text. All coordinates are of the whole picture, never of the tile."""

    @property
    def identity(self) -> str:
        """Name, version and languages: part of every cache key, so that a new engine never serves old readings."""
        ...

    async def read_tile(self, pixels: PixelFile, rect_xyxy_px: Box, *, job: str, timeout_s: float) -> TileReading:
        """Find and read all lines in one rectangle.

        Raises:
            WorkerError: the engine failed, crashed or ran out of time on this tile.
        """
        ...

    async def read_boxes(
        self, pixels: PixelFile, boxes_xyxy_px: list[Box], *, job: str, timeout_s: float
    ) -> list[TextLine]:
        """Read lines whose boxes are already known; result i belongs to box i.

        An empty text with confidence 1 says that nothing is printed there, with 0 that it could not be read.
        """
        ...
