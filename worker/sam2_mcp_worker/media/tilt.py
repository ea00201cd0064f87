"""How far print runs aslant, and the way between a tilted picture and the level one.

Owns angles up to 4 degrees, which is how scans come; print that is turned by more is turned on purpose.
"""

from __future__ import annotations

from math import ceil, floor
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from sam2_mcp_worker.media.ink import Box, PrintShapes

STEEPEST = 0.07  # slope: 4 degrees
STEP = 0.001  # over 1,500 px that is 1.5 px, less than what separates rows
LEAST_SHAPES = 40  # fewer say nothing about a common direction
# Rows that are in line pile up; a slope that does not gather this much more than none is chance.
CLEARER = 1.15
LEVEL = 0.002  # over a line of 1,000 px that is 2 px: not worth resampling the picture


def tilt(shapes: PrintShapes) -> float:
    """Slope (y over x, down to the right) of the rows that glyphs stand in; 0.0 when they are level or too few."""
    glyphs = max((*shapes.dark_on_light, *shapes.light_on_dark), key=len, default=np.zeros((0, 4), np.int64))
    if len(glyphs) < LEAST_SHAPES:
        return 0.0
    x, bottom = glyphs[:, 0] + glyphs[:, 2] / 2, glyphs[:, 1] + glyphs[:, 3]
    slopes = np.arange(-STEEPEST, STEEPEST + STEP / 2, STEP)
    scores = [_gathered(bottom - slope * x) for slope in slopes]
    best = int(np.argmax(scores))
    slope = float(slopes[best])
    return slope if abs(slope) >= LEVEL and scores[best] > CLEARER * _gathered(bottom * 1.0) else 0.0


def _gathered(y: NDArray[np.floating[Any]]) -> float:
    """How much the heights gather in few rows of pixels."""
    counts = np.bincount((y - y.min()).astype(np.int64)).astype(np.float64)
    return float((np.convolve(counts, (0.5, 1.0, 0.5), mode="same") ** 2).sum())


class Levelled:
    """The turn that makes print of this slope level, about the middle of a picture of `shape`."""

    def __init__(self, shape: tuple[int, ...], slope: float) -> None:
        self._size = (shape[1], shape[0])
        self._slope = slope
        degrees = float(np.degrees(np.arctan(slope)))
        self._there = cv2.getRotationMatrix2D((shape[1] / 2, shape[0] / 2), degrees, 1.0)
        self._back = cv2.invertAffineTransform(self._there)

    @property
    def turned(self) -> bool:
        return self._slope != 0

    def picture(self, rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The level picture, of the same size; corners that were outside repeat the edge."""
        turned = cv2.warpAffine(rgb, self._there, self._size, flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
        return np.asarray(turned, np.uint8)

    def line_box(self, box: Box) -> Box:
        """Where the line in an upright box lies: it is as much lower as its slope made the box higher."""
        x, y = self._there @ ((box[0] + box[2]) / 2, (box[1] + box[3]) / 2, 1.0)
        wide, tall = box[2] - box[0], box[3] - box[1]
        half = max(tall / 4, (tall - wide * abs(self._slope)) / 2)
        return floor(x - wide / 2), floor(y - half), ceil(x + wide / 2), ceil(y + half)

    def box_back(self, box: Box) -> Box:
        """The upright box, inside the tilted picture, around a box of the level one."""
        if not self.turned:
            return box
        x0, y0, x1, y1 = box
        corners = np.array([[x0, y0, 1], [x1, y0, 1], [x1, y1, 1], [x0, y1, 1]], np.float64) @ self._back.T
        left, top = np.clip(np.floor(corners.min(axis=0)), 0, self._size).astype(int)
        right, bottom = np.clip(np.ceil(corners.max(axis=0)), 0, self._size).astype(int)
        return int(left), int(top), int(right), int(bottom)
