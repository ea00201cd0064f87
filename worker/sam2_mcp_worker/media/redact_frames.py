"""Covers areas of video frames: boxes for spans of time, and tracked objects in every frame, between tracked ones too.

Runs in decoder children (while the video is written) and in redact children (while it is checked).
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from sam2_mcp_worker.media.masks import Mask
from sam2_mcp_worker.media.redact_paint import Area, Method, clipped, grown, paint
from sam2_mcp_worker.media.rle import decode_runs, expand_runs
from sam2_mcp_worker.media.track_spans import LEAST_S
from sam2_mcp_worker.media.tracks_file import TrackedObject, Tracks, read_tracks
from sam2_mcp_worker.media.video_pixels import Rgb

# A network sees the frame at 448-1024 px and gives masks at a quarter of that: one cell is up to 1 % of the frame.
MARGIN_SHARE = 0.01
MIN_MARGIN_PX = 4
# Between two tracked frames an object may leave the straight way by a part of its length.
DETOUR_SHARE = 0.25
Points = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class TimedBox:
    """A box and the frames that it covers: those whose time lies in the span, ends included."""

    box_xyxy_px: tuple[int, int, int, int]
    start_s: float
    end_s: float


class RedactPainter:
    """The painter `redact`; see `video_painter.Painter`.

    Args:
        params: `method`, `size_px` (upright width and height), `boxes` (`[{box, start_s, end_s}]`) and `tracks`
            (`[{path, start_s, end_s}]`, files of media/tracks_file.py).
    """

    def __init__(self, params: dict[str, Any]) -> None:
        self.method: Method = params["method"]
        self._size = int(params["size_px"][0]), int(params["size_px"][1])
        self._boxes = [TimedBox(tuple(one["box"]), one["start_s"], one["end_s"]) for one in params["boxes"]]
        self._tracks = [TrackCover(Path(one["path"]), one["start_s"], one["end_s"]) for one in params["tracks"]]

    def paint(self, rgb: Rgb, index: int, time_s: float) -> Rgb:
        """See `Painter`."""
        paint(rgb, self.areas_at(time_s), self.method)
        return rgb

    def areas_at(self, time_s: float) -> list[Area]:
        """What is covered in the frame that comes on screen at this time."""
        areas = [Area(box.box_xyxy_px) for box in self._boxes if box.start_s - LEAST_S <= time_s <= box.end_s + LEAST_S]
        areas += [area for cover in self._tracks for area in cover.areas_at(time_s)]
        inside = [clipped(area, *self._size) for area in areas]
        return [area for area in inside if area is not None]


class TrackCover:
    """What the objects of one tracking cover, frame by frame.

    In a tracked frame that is the mask, grown by a margin. Between two of them it is the convex hull of both masks,
    grown by the margin and a part of the way between them. Beside a frame in which the object is lost, and behind the
    last one, it is the one mask that is known, grown by the margin and the way that the object made in the step
    beside it, and a part more.
    """

    def __init__(self, path: Path, start_s: float, end_s: float) -> None:
        self._tracks = read_tracks(path)
        self._times_s = [frame.time_s for frame in self._tracks.frames]
        self._span = start_s, end_s
        longer = max(self._tracks.width_px, self._tracks.height_px)
        self.margin_px = max(MIN_MARGIN_PX, round(longer * MARGIN_SHARE))

    def areas_at(self, time_s: float) -> list[Area]:
        """The areas of all objects at a time."""
        place = bisect.bisect_right(self._times_s, time_s + LEAST_S)
        if not self._is_wanted(time_s, place) or place == 0:
            return []
        exact = time_s - self._times_s[place - 1] <= LEAST_S
        return [area for i in range(self._tracks.object_count) if (area := self._area(i, place, exact)) is not None]

    def _is_wanted(self, time_s: float, place: int) -> bool:
        """Whether a frame lies in the span, or in the step between tracked frames in which the span ends."""
        start_s, end_s = self._span
        ends_at = bisect.bisect_right(self._times_s, end_s + LEAST_S)
        return time_s >= start_s - LEAST_S and (time_s <= end_s + LEAST_S or place == ends_at)

    def _area(self, index: int, place: int, exact: bool) -> Area | None:
        before = self._object(place - 1, index)
        if exact:
            return None if before.lost else _grown_area(_mask(self._tracks, before), self.margin_px)
        after = self._object(place, index) if place < len(self._times_s) else None
        seen = [one for one in (before, after) if one is not None and not one.lost]
        if not seen:
            return None
        if len(seen) == 2:
            margin = self.margin_px + math.ceil(DETOUR_SHARE * _way(seen[0], seen[1]))
        else:
            margin = self.margin_px + math.ceil((1 + DETOUR_SHARE) * self._last_way(index, place))
        return _hull_area([_mask(self._tracks, one) for one in seen], margin)

    def _last_way(self, index: int, place: int) -> float:
        """How far the object moved in the step of tracked frames that is nearest to this place and knows it."""
        for first in (place - 2, place):
            if first >= 0 and first + 1 < len(self._times_s):
                one, other = self._object(first, index), self._object(first + 1, index)
                if not (one.lost or other.lost):
                    return _way(one, other)
        return 0.0

    def _object(self, frame: int, index: int) -> TrackedObject:
        return self._tracks.frames[frame].objects[index]


def _way(one: TrackedObject, other: TrackedObject) -> float:
    """How far a corner of the box moved, at most."""
    assert one.box_xyxy_px is not None
    assert other.box_xyxy_px is not None
    x0, y0, x1, y1 = (abs(a - b) for a, b in zip(one.box_xyxy_px, other.box_xyxy_px, strict=True))
    return math.hypot(max(x0, x1), max(y0, y1))


def _mask(tracks: Tracks, one: TrackedObject) -> Mask:
    assert one.counts is not None
    return _decoded(one.counts, (tracks.width_px, tracks.height_px))


@lru_cache(maxsize=64)
def _decoded(counts: str, size_px: tuple[int, int]) -> Mask:
    return decode_runs(expand_runs(counts), size_px)


def _grown_area(mask: Mask, margin_px: int) -> Area | None:
    if mask.box_xyxy_px is None:
        return None
    x0, y0, x1, y1 = mask.box_xyxy_px
    return Area((x0 - margin_px, y0 - margin_px, x1 + margin_px, y1 + margin_px), grown(mask.inside, margin_px))


def _hull_area(masks: list[Mask], margin_px: int) -> Area | None:
    """The convex hull of the masks, grown by the margin."""
    points = [_corners(mask) for mask in masks if mask.box_xyxy_px is not None]
    if not points:
        return None
    hull = cv2.convexHull(np.concatenate(points))
    x0, y0, width, height = cv2.boundingRect(hull)
    filled = np.zeros((height, width), np.uint8)
    cv2.fillConvexPoly(filled, hull - np.array([x0, y0], np.int32), 1)
    box = x0 - margin_px, y0 - margin_px, x0 + width + margin_px, y0 + height + margin_px
    return Area(box, grown(filled.astype(bool), margin_px))


def _corners(mask: Mask) -> Points:
    """The first and the last pixel of every row: their hull is that of the mask."""
    assert mask.box_xyxy_px is not None
    x0, y0, _, _ = mask.box_xyxy_px
    rows = np.flatnonzero(mask.inside.any(axis=1))
    first = mask.inside[rows].argmax(axis=1)
    last = mask.inside.shape[1] - 1 - mask.inside[rows][:, ::-1].argmax(axis=1)
    xs, ys = np.concatenate([first, last]) + x0, np.concatenate([rows, rows]) + y0
    return np.stack([xs, ys], axis=1).astype(np.int32)
