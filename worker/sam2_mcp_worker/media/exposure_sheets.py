"""Pictures of a video's inspection as the server asks for them: a time line of exposures, a contact sheet of frames.

They are drawn in decoder children by exposure_pictures.py. Nothing here knows what a row or a box stands for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from sam2_mcp_worker.execution.port import TaskRunner
from sam2_mcp_worker.media.pixels import PixelFile

RowKind = Literal["label", "phrase", "text"]
Seconds = tuple[float, float]
"""From and to."""

# Rows of 26 px: with more, the sheet is taller than wide, and nobody follows a bar back to its name.
MAX_ROWS = 40
# 8 x 5 cells of 190 px each: smaller ones show nobody anything.
MAX_CELLS = 40


@dataclass(frozen=True, slots=True)
class TimeLineRow:
    """One row: its number and name, where it was surely shown, where it may have been, and where nothing is known.

    `note` stands at the end of the row and is short. Times are seconds since the first frame.
    """

    kind: RowKind
    number: int
    name: str
    sure: tuple[Seconds, ...]
    possible: tuple[Seconds, ...] = ()
    unknown: tuple[Seconds, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class TimeLine:
    """The range that was asked for, what of it is not known to anybody, its cuts, and the rows in their order.

    `headline` says in Latin letters how much was read; `rows_left_out` counts rows that are not drawn.
    """

    start_s: float
    end_s: float
    headline: str
    rows: tuple[TimeLineRow, ...]
    rows_left_out: int = 0
    cuts_s: tuple[float, ...] = ()
    failed: tuple[Seconds, ...] = ()
    unreached: tuple[Seconds, ...] = ()

    def to_params(self) -> dict[str, Any]:
        """JSON form for the child task."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class CellBox:
    """A numbered box in pixels of the whole frame."""

    kind: RowKind
    number: int
    box_xyxy_px: tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class SheetCell:
    """One frame of the contact sheet: a small picture of it (raw, or the path of a JPEG) and what stands in it."""

    time_s: float
    picture: PixelFile | Path
    boxes: tuple[CellBox, ...]


async def draw_exposures(decoders: TaskRunner, line: TimeLine, out_path: Path, *, timeout_s: float, job: str) -> None:
    """Write a JPEG (at most 1 MB and 1,600 px wide) with a row for each thing and a bar for each exposure."""
    params = {"line": line.to_params(), "out_path": str(out_path)}
    await decoders.run("draw_exposures", params, timeout_s=timeout_s, job=job)


async def draw_scenes(
    decoders: TaskRunner, cells: Sequence[SheetCell], frame_width_px: int, out_path: Path, *, timeout_s: float, job: str
) -> None:
    """Write a JPEG (at most 1 MB and 1,600 px a side) of frames side by side, with numbered boxes and times.

    Args:
        cells: ascending, 1 to MAX_CELLS, all pictures of one size.
        frame_width_px: the width of the frames that the boxes are in.
    """
    params = {
        "cells": [
            {"time_s": cell.time_s, "boxes": [asdict(box) for box in cell.boxes], **_picture(cell.picture)}
            for cell in cells
        ],
        "frame_width_px": frame_width_px,
        "out_path": str(out_path),
    }
    await decoders.run("draw_scenes", params, timeout_s=timeout_s, job=job)


def _picture(picture: PixelFile | Path) -> dict[str, Any]:
    return {"pixels": picture.to_params()} if isinstance(picture, PixelFile) else {"jpeg": str(picture)}


async def write_thumb(
    decoders: TaskRunner, pixels: PixelFile, out_path: Path, *, side_px: int, timeout_s: float, job: str
) -> None:
    """Write a small JPEG of a raw picture, its longer side at most `side_px`."""
    params = {"pixels": pixels.to_params(), "side_px": side_px, "out_path": str(out_path)}
    await decoders.run("write_thumb", params, timeout_s=timeout_s, job=job)
