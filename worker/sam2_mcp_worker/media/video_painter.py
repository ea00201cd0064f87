"""What is painted on the frames of a video while it is written anew: the seam, and the outlines of tracked objects.

A painter lives in a decoder child for one segment of the video. It is made from JSON, so that a segment can be
painted by any child, and gets every frame in order.
"""

from __future__ import annotations

import bisect
import importlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from sam2_mcp_worker.media.box_styles import Rgb as Colour
from sam2_mcp_worker.media.mask_overlay import COLOURS
from sam2_mcp_worker.media.mask_polygons import mask_polygons
from sam2_mcp_worker.media.rle import decode_runs, expand_runs
from sam2_mcp_worker.media.sheet_picture import tag_font
from sam2_mcp_worker.media.tracks_file import Box, TrackedObject, Tracks, read_tracks
from sam2_mcp_worker.media.video_pixels import Rgb
from sam2_mcp_worker.media.video_reader import SAME_FRAME_S

# Vertices of one outline: it is drawn once and thrown away.
_MAX_VERTICES = 400
# A tag's height as a share of the picture's, and the least that is readable.
_TAG_SHARE = 0.035
_MIN_TAG_PX = 11
# The same of the outline of a tracked object; thinner ones blend with their halo.
_LINE_SHARE = 1 / 250
_LINE_PX = 2
_HALO = (255, 255, 255)
_LOST = (90, 90, 90)
Ring = NDArray[np.float64]


class Painter(Protocol):
    """Paints frames. Classes have `__init__(self, params: dict[str, Any])`, with nothing but JSON in `params`."""

    def paint(self, rgb: Rgb, index: int, time_s: float) -> Rgb:
        """The frame as it is to be written, of the same size.

        Args:
            rgb: `(height, width, 3)` uint8, upright, writable; it may be painted in place and returned.
            index: counts the frames of the whole video from 0, over all segments.
            time_s: when it comes on screen, seconds since the first frame; it stays until the next frame's time.
        """
        ...


# Named here and loaded when asked for, so that the seam knows none of its users.
PAINTERS = {
    "outline": "sam2_mcp_worker.media.video_painter:OutlinePainter",
    "redact": "sam2_mcp_worker.media.redact_frames:RedactPainter",
    "none": "sam2_mcp_worker.media.video_painter:NoPainter",
}


def make_painter(kind: str, params: dict[str, Any]) -> Painter:
    """The painter of that kind."""
    module, _, name = PAINTERS[kind].partition(":")
    painter: Painter = getattr(importlib.import_module(module), name)(params)
    return painter


class NoPainter:
    """Leaves frames as they are."""

    def __init__(self, params: dict[str, Any]) -> None:
        pass

    def paint(self, rgb: Rgb, index: int, time_s: float) -> Rgb:
        return rgb


class OutlinePainter:
    """Numbered outlines of tracked objects; params `{tracks_path}`, a file of media/tracks_file.py.

    In tracked frames the outline is the mask's and thick. In the frames between two of them nothing was tracked: there
    the nearer outline moves along with the box between the two, thin. Where one of the two has lost the object, nothing
    is drawn in between. The upper left corner names lost objects, and frames before and behind all tracked ones.
    """

    def __init__(self, params: dict[str, Any]) -> None:
        self._tracks = read_tracks(Path(params["tracks_path"]))
        self._times_s = [frame.time_s for frame in self._tracks.frames]

    def paint(self, rgb: Rgb, index: int, time_s: float) -> Rgb:
        """See `Painter`."""
        if self._times_s and self._times_s[0] - SAME_FRAME_S <= time_s <= self._times_s[-1] + SAME_FRAME_S:
            draw_objects(rgb, self.objects_at(time_s), _tag_px(rgb))
        else:
            blit(rgb, tag("not tracked", _LOST, _HALO, _tag_px(rgb)), 2, 2)
        return rgb

    def objects_at(self, time_s: float) -> list[Drawn]:
        """What there is to draw at a time; nothing outside of the tracked range."""
        place = bisect.bisect_right(self._times_s, time_s + SAME_FRAME_S)
        if place == 0:
            return []
        before = self._tracks.frames[place - 1]
        if time_s - before.time_s <= SAME_FRAME_S:
            return [tracked(self._tracks, one) for one in before.objects]
        if place == len(self._times_s):
            return []
        after = self._tracks.frames[place]
        share = (time_s - before.time_s) / (after.time_s - before.time_s)
        pairs = zip(before.objects, after.objects, strict=True)
        return [between(self._tracks, a, b, share) for a, b in pairs if not (a.lost and b.lost)]


class Drawn:
    """One object as it is drawn: its outline rings (empty: lost or unknown) and whether it was tracked right here."""

    def __init__(self, number: int, rings: Sequence[Ring], *, exact: bool) -> None:
        self.number = number
        self.rings = rings
        self.exact = exact


def tracked(tracks: Tracks, one: TrackedObject) -> Drawn:
    """An object in a frame that was tracked."""
    return Drawn(one.number, rings_of(tracks, one), exact=True)


def between(tracks: Tracks, before: TrackedObject, after: TrackedObject, share: float) -> Drawn:
    """An object in a frame between two tracked ones, `share` of the way from the first to the second."""
    if before.box_xyxy_px is None or after.box_xyxy_px is None:
        return Drawn(before.number, [], exact=False)
    near = before if share < 0.5 else after
    assert near.box_xyxy_px is not None
    start, end = np.array(before.box_xyxy_px, float), np.array(after.box_xyxy_px, float)
    box = start + (end - start) * share
    return Drawn(before.number, [_moved(ring, near.box_xyxy_px, box) for ring in rings_of(tracks, near)], exact=False)


def rings_of(tracks: Tracks, one: TrackedObject) -> list[Ring]:
    """The outlines of an object's mask, holes included, in pixels of the video."""
    if one.counts is None:
        return []
    return list(_rings(one.counts, (tracks.width_px, tracks.height_px)))


@lru_cache(maxsize=64)
def _rings(counts: str, size_px: tuple[int, int]) -> tuple[Ring, ...]:
    mask = decode_runs(expand_runs(counts), size_px)
    if mask.box_xyxy_px is None:
        return ()
    outlines, _ = mask_polygons(mask.inside, mask.box_xyxy_px[:2], _MAX_VERTICES)
    return tuple(ring.astype(np.float64) for outline in outlines for ring in (outline.outer, *outline.holes))


def _moved(ring: Ring, source: Box, target: NDArray[np.float64]) -> Ring:
    origin, size = np.array(source[:2], float), np.array(source[2:], float) - np.array(source[:2], float)
    moved: Ring = target[:2] + (ring - origin) / size * (target[2:] - target[:2])
    return moved


def draw_objects(rgb: Rgb, objects: Sequence[Drawn], tag_px: int, scale: float = 1.0) -> None:
    """Draw outlines and numbers in place; `scale` is this picture's size over the video's."""
    width = max(_LINE_PX, round(min(rgb.shape[:2]) * _LINE_SHARE))
    for item in objects:
        colour, _ = _colours(item.number)
        # Vertices are corners of pixels: half a pixel back are the pixels beside them.
        rings = [np.round(ring * scale - 0.5).astype(np.int32).reshape(-1, 1, 2) for ring in item.rings]
        if item.exact:
            cv2.polylines(rgb, rings, True, _HALO, width + 2, cv2.LINE_AA)
        cv2.polylines(rgb, rings, True, colour, width if item.exact else 1, cv2.LINE_AA)
    for item in objects:
        if item.rings:
            x, y = np.min(np.concatenate(item.rings), axis=0) * scale
            blit(rgb, tag(str(item.number), *_colours(item.number), tag_px), round(x), round(y) - tag_px - 2)
    lost = [str(item.number) for item in objects if not item.rings and item.exact]
    if lost:
        blit(rgb, tag(f"lost: {', '.join(lost)}", _LOST, _HALO, tag_px), 2, 2)


def _colours(number: int) -> tuple[Colour, Colour]:
    return COLOURS[(number - 1) % len(COLOURS)]


def _tag_px(rgb: Rgb) -> int:
    return max(_MIN_TAG_PX, round(int(rgb.shape[0]) * _TAG_SHARE))


@lru_cache(maxsize=256)
def tag(text: str, colour: Colour, ink: Colour, height_px: int) -> Rgb:
    """A label as a small picture."""
    font = tag_font(max(8, round(height_px * 0.85)))
    size = (round(font.getlength(text)) + height_px // 2 + 2, height_px)
    picture = Image.new("RGB", size, colour)
    ImageDraw.Draw(picture).text((size[0] / 2, size[1] / 2), text, fill=ink, font=font, anchor="mm")
    return np.asarray(picture)


def blit(rgb: Rgb, label: Rgb, x: int, y: int) -> None:
    """Put a label into the picture, moved so that all of it is seen if it fits at all."""
    height, width = min(label.shape[0], rgb.shape[0]), min(label.shape[1], rgb.shape[1])
    x, y = min(max(0, x), rgb.shape[1] - width), min(max(0, y), rgb.shape[0] - height)
    rgb[y : y + height, x : x + width] = label[:height, :width]
