"""Pictures of a whole tracking for people: a contact sheet of its frames, and a time line of its objects.

Tasks for a decoder child. Both read the tracks from their file (tracks_file.py) and write a JPEG within a byte limit
(sheet_picture.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

from sam2_mcp_worker.media.box_styles import Rgb as Colour
from sam2_mcp_worker.media.mask_overlay import COLOURS
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.sheet_grid import draw_cells, evenly
from sam2_mcp_worker.media.sheet_picture import FOOT_INK, tag_font, write_picture
from sam2_mcp_worker.media.time_axis import AXIS_PX, EDGE_PX, TimeAxis
from sam2_mcp_worker.media.tracks_file import TrackedFrame, Tracks, read_tracks
from sam2_mcp_worker.media.video_painter import draw_objects, tracked
from sam2_mcp_worker.media.video_pixels import Rgb
from sam2_mcp_worker.media.video_reader import SAME_FRAME_S

# More frames than this make cells in which nobody sees anything: 8 x 6 of 200 px each.
MAX_CELLS = 48
TAG_PX = 13

# The time line: a row is as high as a line of text with room for a bar.
ROW_PX = 30
BAR_PX = 14
HEAD_PX = 26
LABEL_PX = 90
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


def _sheet(tracks: Tracks, pictures: Sequence[tuple[float, Rgb]], side_px: int) -> Image.Image:
    def paint(number: int, small: Rgb, scale: float) -> None:
        frame = _frame_at(tracks, pictures[number][0])
        if frame is not None:
            draw_objects(small, [tracked(tracks, one) for one in frame.objects], TAG_PX, scale)

    captions = [f"{time_s:.2f} s" for time_s, _ in pictures]
    return draw_cells([picture for _, picture in pictures], captions, side_px, tracks.width_px, paint)


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


def _time_line(tracks: Tracks, width_px: int) -> Image.Image:
    height_px = HEAD_PX + ROW_PX * tracks.object_count + AXIS_PX
    picture = Image.new("RGB", (width_px, min(height_px, 20_000)), _WHITE)
    pen = ImageDraw.Draw(picture)
    axis = TimeAxis(0, tracks.duration_s, LABEL_PX, width_px - EDGE_PX)
    bottom = picture.height - AXIS_PX
    _draw_range(pen, axis, tracks, bottom)
    for number in range(1, tracks.object_count + 1):
        _draw_row(pen, axis, tracks, number, HEAD_PX + ROW_PX * (number - 1) + ROW_PX // 2)
    for time_s in tracks.failed_times_s:
        pen.line((axis.x(time_s), HEAD_PX, axis.x(time_s), bottom), fill=_FAILED)
    axis.draw(pen, bottom)
    return picture


def _draw_range(pen: ImageDraw.ImageDraw, axis: TimeAxis, tracks: Tracks, bottom: int) -> None:
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


def _draw_row(pen: ImageDraw.ImageDraw, axis: TimeAxis, tracks: Tracks, number: int, y: int) -> None:
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


TASKS = {"draw_contact_sheet": draw_contact_sheet, "draw_time_line": draw_time_line}
