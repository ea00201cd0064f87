"""Pictures of a whole tracking for people: a contact sheet of its frames, and a time line of its objects.

Tasks for a decoder child. Both read the tracks from their file (tracks_file.py) and write a JPEG within a byte limit
(sheet_picture.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from PIL import Image, ImageDraw

from sam2_mcp_worker.media.box_styles import Rgb as Colour
from sam2_mcp_worker.media.mask_overlay import COLOURS
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.sheet_picture import DESK, FOOT_INK, tag_font, write_picture
from sam2_mcp_worker.media.tracks_file import TrackedFrame, Tracks, read_tracks
from sam2_mcp_worker.media.video_painter import draw_objects, tracked
from sam2_mcp_worker.media.video_pixels import Rgb
from sam2_mcp_worker.media.video_reader import SAME_FRAME_S

# More frames than this make cells in which nobody sees anything: 8 x 6 of 200 px each.
MAX_CELLS = 48
GAP_PX = 6
CAPTION_PX = 18
TAG_PX = 13

# The time line: a row is as high as a line of text with room for a bar.
ROW_PX = 30
BAR_PX = 14
HEAD_PX = 26
AXIS_PX = 34
LABEL_PX = 90
EDGE_PX = 16
TICKS_AT_MOST = 12
TICK_STEPS_S = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 3600)
_PALE: Colour = (216, 220, 224)
_LOST: Colour = (90, 90, 90)
_FAILED: Colour = (200, 0, 40)
_WHITE: Colour = (255, 255, 255)


def draw_contact_sheet(params: dict[str, Any]) -> dict[str, Any]:
    """Write the tracked frames side by side, with outlines and times.

    Args:
        params: `tracks_path`, `cells` (a list of `{"time_s", "pixels"}`, each a small `PixelFile` as JSON of the frame
            at that time, ascending), and those of `write_picture`.

    Returns:
        As `write_picture`, and `shown`: how many of the frames the sheet shows (evenly chosen, at most MAX_CELLS).
    """
    tracks = read_tracks(Path(params["tracks_path"]))
    cells = evenly(params["cells"], MAX_CELLS)
    pictures = [(float(cell["time_s"]), PixelFile.from_params(cell["pixels"]).map_rgb()) for cell in cells]
    written = write_picture(params, lambda side_px: (_sheet(tracks, pictures, side_px), 0))
    return {**written, "shown": len(pictures)}


def evenly(items: Sequence[Any], most: int) -> list[Any]:
    """At most so many of the items, evenly spread, the first and the last among them."""
    if len(items) <= most:
        return list(items)
    return [items[round(i * (len(items) - 1) / (most - 1))] for i in range(most)]


@dataclass(frozen=True, slots=True)
class Grid:
    """Columns, and the size of one picture."""

    columns: int
    width_px: int
    height_px: int


def lay_out_grid(count: int, size_px: tuple[int, int], side_px: int) -> Grid:
    """The grid whose pictures are largest within a square; pictures are never enlarged."""

    def scale(columns: int) -> float:
        rows = -(-count // columns)
        across = (side_px - (columns + 1) * GAP_PX) / columns / size_px[0]
        along = (side_px - (rows + 1) * GAP_PX - rows * CAPTION_PX) / rows / size_px[1]
        return min(1.0, across, along)

    def longer_side(columns: int) -> float:
        return max(columns * size_px[0], -(-count // columns) * size_px[1])

    columns = max(range(1, count + 1), key=lambda columns: (scale(columns), -longer_side(columns)))
    factor = max(0.0, scale(columns))
    return Grid(columns, max(1, math.floor(size_px[0] * factor)), max(1, math.floor(size_px[1] * factor)))


def _sheet(tracks: Tracks, pictures: Sequence[tuple[float, Rgb]], side_px: int) -> Image.Image:
    height, width = pictures[0][1].shape[:2]
    grid = lay_out_grid(len(pictures), (width, height), side_px)
    rows = -(-len(pictures) // grid.columns)
    step_x, step_y = grid.width_px + GAP_PX, grid.height_px + CAPTION_PX + GAP_PX
    base = np.full((rows * step_y + GAP_PX, grid.columns * step_x + GAP_PX, 3), DESK, np.uint8)
    captions = []
    for number, (time_s, picture) in enumerate(pictures):
        row, column = divmod(number, grid.columns)
        x, y = GAP_PX + column * step_x, GAP_PX + row * step_y
        small = cv2.resize(picture, (grid.width_px, grid.height_px), interpolation=cv2.INTER_AREA)
        frame = _frame_at(tracks, time_s)
        if frame is not None:
            objects = [tracked(tracks, one) for one in frame.objects]
            draw_objects(small, objects, TAG_PX, grid.width_px / tracks.width_px)
        base[y : y + grid.height_px, x : x + grid.width_px] = small
        captions.append((x + grid.width_px / 2, y + grid.height_px + CAPTION_PX / 2, f"{time_s:.2f} s"))
    sheet = Image.fromarray(base)
    pen = ImageDraw.Draw(sheet)
    for x_middle, y_middle, text in captions:
        pen.text((x_middle, y_middle), text, fill=FOOT_INK, font=tag_font(13), anchor="mm")
    return sheet


def _frame_at(tracks: Tracks, time_s: float) -> TrackedFrame | None:
    return next((frame for frame in tracks.frames if abs(frame.time_s - time_s) <= SAME_FRAME_S), None)


def draw_time_line(params: dict[str, Any]) -> dict[str, Any]:
    """Write a bar for every object over the time of the video.

    Every tracked frame is a mark: filled where the object was seen, hollow where it was lost. Between two frames in
    which it was seen a pale bar connects the marks; nothing was looked at there. Damaged frames are crossed out, and
    what was not reached yet says so.

    Args:
        params: `tracks_path` and those of `write_picture`; `max_side_px` is the width.

    Returns:
        As `write_picture`.
    """
    tracks = read_tracks(Path(params["tracks_path"]))
    return write_picture(params, lambda side_px: (_time_line(tracks, side_px), 0))


class _Axis:
    """From seconds to pixels."""

    def __init__(self, duration_s: float, width_px: int) -> None:
        self.duration_s = max(duration_s, 1e-3)
        self._left = LABEL_PX
        self._width = max(1, width_px - LABEL_PX - EDGE_PX)

    def x(self, time_s: float) -> int:
        return self._left + round(min(max(time_s, 0.0), self.duration_s) / self.duration_s * self._width)

    def ticks(self) -> list[float]:
        step = next((s for s in TICK_STEPS_S if self.duration_s / s <= TICKS_AT_MOST), TICK_STEPS_S[-1])
        return [i * step for i in range(int(self.duration_s / step) + 1)]


def _time_line(tracks: Tracks, width_px: int) -> Image.Image:
    height_px = HEAD_PX + ROW_PX * tracks.object_count + AXIS_PX
    picture = Image.new("RGB", (width_px, min(height_px, 20_000)), _WHITE)
    pen, axis = ImageDraw.Draw(picture), _Axis(tracks.duration_s, width_px)
    bottom = picture.height - AXIS_PX
    _draw_range(pen, axis, tracks, bottom)
    for number in range(1, tracks.object_count + 1):
        _draw_row(pen, axis, tracks, number, HEAD_PX + ROW_PX * (number - 1) + ROW_PX // 2)
    for time_s in tracks.failed_times_s:
        pen.line((axis.x(time_s), HEAD_PX, axis.x(time_s), bottom), fill=_FAILED)
    _draw_axis(pen, axis, bottom)
    return picture


def _draw_range(pen: ImageDraw.ImageDraw, axis: _Axis, tracks: Tracks, bottom: int) -> None:
    """The range that was asked for, and what of it was not reached."""
    reached_s = tracks.frames[-1].time_s if tracks.frames else tracks.start_s
    pen.rectangle((axis.x(tracks.start_s), HEAD_PX, axis.x(tracks.end_s), bottom), fill=(246, 248, 250))
    words = f"{len(tracks.frames)} frames tracked"
    if tracks.failed_times_s:
        words += f", {len(tracks.failed_times_s)} damaged"
    if not tracks.complete and reached_s < tracks.end_s:
        left, right = axis.x(reached_s), axis.x(tracks.end_s)
        pen.rectangle((left, HEAD_PX, right, bottom), fill=_PALE)
        words += f", not reached from {reached_s:.2f} s on"
    pen.text((LABEL_PX, HEAD_PX // 2), words, fill=FOOT_INK, font=tag_font(13), anchor="lm")


def _draw_row(pen: ImageDraw.ImageDraw, axis: _Axis, tracks: Tracks, number: int, y: int) -> None:
    colour = COLOURS[(number - 1) % len(COLOURS)][0]
    top, bottom = y - BAR_PX // 2, y + BAR_PX // 2
    pen.text((EDGE_PX, y), f"object {number}", fill=FOOT_INK, font=tag_font(13), anchor="lm")
    states = [(axis.x(frame.time_s), frame.objects[number - 1].lost) for frame in tracks.frames]
    pale = tuple(round(255 - (255 - part) * 0.35) for part in colour)
    for (left, lost_before), (right, lost_after) in pairwise(states):
        if not lost_before and not lost_after:
            pen.rectangle((left, top + 2, right, bottom - 2), fill=pale)
    for x, lost in states:
        if lost:
            pen.rectangle((x - 2, top, x + 2, bottom), fill=_WHITE, outline=_LOST)
        else:
            pen.rectangle((x - 1, top, x + 1, bottom), fill=colour)


def _draw_axis(pen: ImageDraw.ImageDraw, axis: _Axis, y: int) -> None:
    pen.line((axis.x(0), y, axis.x(axis.duration_s), y), fill=FOOT_INK)
    for time_s in axis.ticks():
        x = axis.x(time_s)
        pen.line((x, y, x, y + 5), fill=FOOT_INK)
        pen.text((x, y + 14), f"{time_s:g} s", fill=FOOT_INK, font=tag_font(12), anchor="mm")


TASKS = {"draw_contact_sheet": draw_contact_sheet, "draw_time_line": draw_time_line}
