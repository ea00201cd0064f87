"""Finds lines of text: PP-OCR's segmentation network, and what turns its map into quadrilaterals.

Owns the network's input and output conventions. Knows nothing of recognition. The weights are those of the
rapidocr 3.10.0 wheel, run by ONNX Runtime directly: rapidocr's own front end takes 1.0 s longer to import, stretches
each picture to a multiple of 32, shrinks what is over 2000 px, and downloads a model that is missing. Here a picture
is never scaled, and nothing is ever fetched.
"""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from sam2_mcp_worker.engines.onnx_session import open_session

Quad = NDArray[np.float32]
"""(4, 2) corners x, y: top left, top right, bottom right, bottom left in reading direction."""

STRIDE_PX = 32  # the network halves its input five times
INK_PROBABILITY = 0.3  # PP-OCR's published threshold of the map
LINE_PROBABILITY = 0.5  # mean over a region; 0.6 of the paper lost faint 12 px print
UNCLIP_RATIO = 1.6  # the map shows lines shrunk; PP-OCR's published growth, area * ratio / perimeter
MIN_SIDE_PX = 3  # of the shrunk region: 12 px print gives 5


class LineDetector:
    """One loaded network. Not shared between threads."""

    def __init__(self, model_path: Path, *, threads: int) -> None:
        self._session = open_session(model_path, threads=threads)
        self._input = self._session.get_inputs()[0].name

    def find(self, rgb: NDArray[np.uint8]) -> list[Quad]:
        """Quads of all lines, slightly larger than their ink, in pixels of `rgb`; no particular order."""
        height, width = rgb.shape[:2]
        probability = self._session.run(None, {self._input: _to_input(rgb)})[0][0, 0, :height, :width]
        return lines_in_map(probability)


def _to_input(rgb: NDArray[np.uint8]) -> NDArray[np.float32]:
    height, width = rgb.shape[:2]
    padded = cv2.copyMakeBorder(rgb, 0, -height % STRIDE_PX, 0, -width % STRIDE_PX, cv2.BORDER_REPLICATE)
    bgr = padded[:, :, ::-1].astype(np.float32)  # the network was trained on BGR
    bgr /= 127.5
    bgr -= 1.0
    return np.ascontiguousarray(bgr.transpose(2, 0, 1))[None]


def lines_in_map(probability: NDArray[np.float32]) -> list[Quad]:
    """Regions of the text map as quads, grown to the size of the lines that they stand for."""
    mask = cv2.dilate((probability > INK_PROBABILITY).astype(np.uint8), np.ones((2, 2), np.uint8))
    contours, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    quads = []
    for contour in contours:
        rect = cv2.minAreaRect(contour)
        if min(rect[1]) < MIN_SIDE_PX or _mean_inside(probability, rect) < LINE_PROBABILITY:
            continue
        quads.append(_upright(_grown(rect)))
    return quads


def _mean_inside(probability: NDArray[np.float32], rect: cv2.typing.RotatedRect) -> float:
    corners = cv2.boxPoints(rect)
    height, width = probability.shape
    x0, y0 = np.clip(np.floor(corners.min(axis=0)), 0, (width - 1, height - 1)).astype(int)
    x1, y1 = np.clip(np.ceil(corners.max(axis=0)), 0, (width - 1, height - 1)).astype(int)
    mask = np.zeros((y1 - y0 + 1, x1 - x0 + 1), np.uint8)
    cv2.fillPoly(mask, [np.round(corners - (x0, y0)).astype(np.int32)], 1)
    return float(cv2.mean(probability[y0 : y1 + 1, x0 : x1 + 1], mask)[0])


def _grown(rect: cv2.typing.RotatedRect) -> cv2.typing.RotatedRect:
    centre, (width, height), angle = rect
    by = 2 * width * height * UNCLIP_RATIO / (2 * (width + height))
    return centre, (width + by, height + by), angle


def _upright(rect: cv2.typing.RotatedRect) -> Quad:
    """Corners in reading order, taking the side within 45 degrees of the horizontal as the reading direction."""
    corners = cv2.boxPoints(rect)
    by_x = corners[np.argsort(corners[:, 0], kind="stable")]
    left = by_x[:2][np.argsort(by_x[:2, 1], kind="stable")]
    right = by_x[2:][np.argsort(by_x[2:, 1], kind="stable")]
    return np.array([left[0], right[0], right[1], left[1]], np.float32)
