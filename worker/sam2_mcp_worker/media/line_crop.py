"""Cuts one line out of a picture and makes it what recognisers like: level, 48 px high, black on white, alone.

Owns geometry and grey values of one line. Knows no recogniser.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from sam2_mcp_worker.media.ink import Quad

Gray = NDArray[np.uint8]

CROP_HEIGHT_PX = 48  # measured: 40 px loses accents of 12 px print, 60 px costs 15 % more time for nothing
END_MARGIN_HEIGHTS = 0.1  # the detector's box may shave a comma off at the end
SIDE_MARGIN_HEIGHTS = 0.05  # so that a comma's tail ends inside the crop
NEIGHBOUR_ZONE = 0.3  # of the height: ink that enters from above or below and ends here is another line's
RULE_LENGTH_HEIGHTS = 3.0  # a horizontal stroke longer than this is a rule, not a dash
RULE_WIDTH_HEIGHTS = 0.12
RULE_SHARE = 0.8  # of the crop's width: print keeps its margins, the rules of a table cell run through
FRAME_FILL = 0.25  # of its box: ink from edge to edge that fills less is the corner of a frame
INK_LEVEL = 200  # of 255: below, a pixel of the normalised crop counts as ink
LOWEST_CONTRAST = 24  # of 255: what differs less from the ground is not stretched to black
PAPER = 255
BLOCK_HEIGHTS = 2  # the ground colour is taken afresh along the line: gradients, pictures behind text
SAME_GROUND = 60.0  # colour distance: a block that differs more from the whole is mostly ink


@dataclass(frozen=True, slots=True)
class LineCrop:
    """`gray` is (48, width) with dark ink on white; `scale` its pixels per picture pixel."""

    gray: Gray
    scale: float


def cut_line(rgb: NDArray[np.uint8], quad: Quad) -> LineCrop:
    """The line inside `quad` (pixels of `rgb`), straightened and cleaned."""
    warped, scale = _warped(rgb, quad)
    return LineCrop(without_foreign_ink(ink_on_white(warped)), scale)


def _warped(rgb: NDArray[np.uint8], quad: Quad) -> tuple[NDArray[np.uint8], float]:
    top_left, top_right, bottom_right, bottom_left = quad
    width = max(1.0, float(np.linalg.norm(top_right - top_left)), float(np.linalg.norm(bottom_right - bottom_left)))
    height = max(1.0, float(np.linalg.norm(bottom_left - top_left)), float(np.linalg.norm(bottom_right - top_right)))
    along = (top_right - top_left) / width * height * END_MARGIN_HEIGHTS
    down = (bottom_left - top_left) * SIDE_MARGIN_HEIGHTS
    source = quad + np.array([-along - down, along - down, along + down, down - along], np.float32)
    scale = CROP_HEIGHT_PX / (height * (1 + 2 * SIDE_MARGIN_HEIGHTS))
    columns = max(1, round((width + 2 * height * END_MARGIN_HEIGHTS) * scale))
    if scale < 0.5:  # warping would skip pixels: shrink the neighbourhood first
        rgb, source = _shrunk(rgb, source, scale)
    target = np.array([[0, 0], [columns, 0], [columns, CROP_HEIGHT_PX], [0, CROP_HEIGHT_PX]], np.float32)
    matrix = cv2.getPerspectiveTransform(source, target)
    size = (columns, CROP_HEIGHT_PX)
    warped = cv2.warpPerspective(rgb, matrix, size, flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(warped, np.uint8), scale


def _shrunk(rgb: NDArray[np.uint8], source: Quad, scale: float) -> tuple[NDArray[np.uint8], Quad]:
    height, width = rgb.shape[:2]
    x0, y0 = np.clip(np.floor(source.min(axis=0)).astype(int), 0, (width - 1, height - 1))
    x1, y1 = np.clip(np.ceil(source.max(axis=0)).astype(int) + 1, (x0 + 1, y0 + 1), (width, height))
    part = rgb[y0:y1, x0:x1]
    size = (max(1, round((x1 - x0) * scale)), max(1, round((y1 - y0) * scale)))
    factor = np.array([size[0] / (x1 - x0), size[1] / (y1 - y0)], np.float32)
    small = cv2.resize(part, size, interpolation=cv2.INTER_AREA)
    return np.asarray(small, np.uint8), ((source - (x0, y0)) * factor).astype(np.float32)


def ink_on_white(warped: NDArray[np.uint8]) -> Gray:
    """Grey by distance from the ground colour: light on dark, and colours of equal brightness, come out the same."""
    away = warped.astype(np.float32) - _ground(warped)
    distance = np.sqrt(np.einsum("ijk,ijk->ij", away, away))
    strongest = max(float(np.percentile(distance, 98)), LOWEST_CONTRAST)
    gray: Gray = (PAPER - np.minimum(distance * (PAPER / strongest), PAPER)).astype(np.uint8)
    return gray


def _ground(warped: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Ground colour of each column, as (1, width, 3)."""
    width = warped.shape[1]
    sample = np.ascontiguousarray(warped[::2, ::2])  # a colour that prevails does so in every fourth pixel
    gray = np.asarray(cv2.cvtColor(sample, cv2.COLOR_RGB2GRAY), np.uint8)
    overall = _commonest(sample, gray)
    count = max(1, width // (BLOCK_HEIGHTS * CROP_HEIGHT_PX))
    blocks = []
    for part, part_gray in zip(*(np.array_split(each, count, axis=1) for each in (sample, gray)), strict=True):
        colour = _commonest(part, part_gray)
        blocks.append(colour if np.linalg.norm(colour - overall) < SAME_GROUND else overall)
    return np.asarray(
        cv2.resize(np.array([blocks], np.float32), (width, 1), interpolation=cv2.INTER_LINEAR), np.float32
    )


def commonest_colour(part: NDArray[np.uint8]) -> NDArray[np.float32]:
    return _commonest(part, np.asarray(cv2.cvtColor(np.ascontiguousarray(part), cv2.COLOR_RGB2GRAY), np.uint8))


def _commonest(part: NDArray[np.uint8], gray: Gray) -> NDArray[np.float32]:
    counts = np.bincount(gray.ravel() >> 3, minlength=32)
    smooth = 2 * counts
    smooth[1:] += counts[:-1]
    smooth[:-1] += counts[1:]
    centre = int(smooth.argmax()) * 8 + 4
    near = cv2.inRange(gray, max(0, centre - 8), min(PAPER, centre + 8))
    return np.array(cv2.mean(part, near)[:3], np.float32)


def without_foreign_ink(gray: Gray) -> Gray:
    """White where neighbouring lines reach into the crop, and where rules of a table or underlines run."""
    height, width = gray.shape
    _, labels, stats, _ = cv2.connectedComponentsWithStats((gray < INK_LEVEL).astype(np.uint8), connectivity=8)
    top, tall = stats[:, cv2.CC_STAT_TOP], stats[:, cv2.CC_STAT_HEIGHT]
    bottom, wide = top + tall, stats[:, cv2.CC_STAT_WIDTH]
    foreign = (top == 0) & (bottom <= NEIGHBOUR_ZONE * height)
    foreign |= (bottom == height) & (top >= (1 - NEIGHBOUR_ZONE) * height)
    filled = stats[:, cv2.CC_STAT_AREA] / (wide * tall)
    foreign |= (tall == height) & ((wide <= RULE_WIDTH_HEIGHTS * height) | (filled < FRAME_FILL))
    lying = tall <= RULE_WIDTH_HEIGHTS * height
    foreign |= lying & (wide >= RULE_LENGTH_HEIGHTS * height)
    foreign |= (wide >= RULE_SHARE * width) & (lying | (filled < FRAME_FILL))
    foreign[0] = False  # the ground
    if not foreign.any():
        return gray
    halo = cv2.dilate(foreign[labels].astype(np.uint8), np.ones((3, 3), np.uint8))
    return np.where(halo > 0, np.uint8(PAPER), gray)
