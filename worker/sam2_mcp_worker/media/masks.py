"""Masks of a picture's objects: from a network's logits to exact pixels, and to a file and back.

A mask is kept as its tight box and the pixels within it, so that a small object of a huge picture costs little; what is
computed at the picture's size is computed in strips. Outlines are mask_polygons' business, run lengths rle's. For
children and tests only: the server process never touches pixels.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from sam2_mcp_worker.disk import storage_errors
from sam2_mcp_worker.errors import WorkerError

Box = tuple[int, int, int, int]
"""x0, y0, x1, y1 in pixels of the whole picture; x1 and y1 exclusive."""

# Inside is what the network gives more than even odds (SAM's mask_threshold).
THRESHOLD = 0.0
# How far the threshold is moved up and down to see whether the mask stays (stability_score_offset of the reference).
STABILITY_OFFSET = 1.0
# Pixels interpolated at a time: three float32 copies of a strip are 12 MB, which stays in most last-level caches.
STRIP_PIXELS = 2**20
# Masks are long runs: the fastest level leaves 2-4 % more bytes than the default for a third of the time.
PNG_LEVEL = 1


@dataclass(frozen=True, slots=True)
class Mask:
    """The pixels of one object: `inside` is bool `(height, width)` of exactly `box_xyxy_px`, None and 0 x 0 if blank.

    `stability` is the IoU of the masks at a threshold raised and lowered by STABILITY_OFFSET.
    """

    box_xyxy_px: Box | None
    inside: NDArray[np.bool_]
    area_px: int
    stability: float


def cut_mask(logits: NDArray[np.float32], region_xyxy_px: Box, extent_xy: tuple[float, float] | None = None) -> Mask:
    """Bring low-resolution logits to the size of the region that they describe, and cut at the threshold.

    Bilinear with half-pixel centres, in one step from the logits' grid, as the SAM 2 reference does.

    Args:
        logits: `(h, w)`; > 0 is inside.
        region_xyxy_px: what of the picture they describe; `(0, 0, width, height)` for all of it.
        extent_xy: columns and rows of `logits` that the region takes up (see `MaskLogits`); None = all.
    """
    rows_at, columns_at = _cells(logits, region_xyxy_px, extent_xy)
    reach = logits > THRESHOLD - STABILITY_OFFSET
    top, bottom = _reached(np.any(reach, axis=1), rows_at)
    left, right = _reached(np.any(reach, axis=0), columns_at)
    inside = np.empty((bottom - top, right - left), np.bool_)
    raised = lowered = 0
    rows = max(1, STRIP_PIXELS // max(1, right - left))
    for start in range(top, bottom, rows):
        end = min(start + rows, bottom)
        values = _interpolate(logits, rows_at[start:end], columns_at[left:right])
        np.greater(values, THRESHOLD, out=inside[start - top : end - top])
        raised += int(np.count_nonzero(values > THRESHOLD + STABILITY_OFFSET))
        lowered += int(np.count_nonzero(values > THRESHOLD - STABILITY_OFFSET))
    x0, y0 = region_xyxy_px[:2]
    return tight_mask(inside, (x0 + left, y0 + top), stability=raised / lowered if lowered else 0.0)


def tight_mask(inside: NDArray[np.bool_], origin_xy_px: tuple[int, int], *, stability: float = 1.0) -> Mask:
    """The mask of bool pixels whose top left one lies at `origin_xy_px`, without the empty margins."""
    rows, columns = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
    if not rows.size:
        return Mask(None, np.zeros((0, 0), np.bool_), 0, stability)
    top, bottom, left, right = int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1
    x, y = origin_xy_px
    tight = np.ascontiguousarray(inside[top:bottom, left:right])
    return Mask((x + left, y + top, x + right, y + bottom), tight, int(np.count_nonzero(tight)), stability)


def touches_border(box_xyxy_px: Box | None, size_px: tuple[int, int]) -> bool:
    """Whether a tight box reaches the edge of a picture of `(width, height)`: the object may go on beyond it."""
    if box_xyxy_px is None:
        return False
    x0, y0, x1, y1 = box_xyxy_px
    return x0 <= 0 or y0 <= 0 or x1 >= size_px[0] or y1 >= size_px[1]


def save_mask(path: Path, inside: NDArray[np.bool_], box_xyxy_px: Box) -> None:
    """Write the pixels of a mask as an 8-bit grey PNG of the size of its box, 255 = inside; all of it or nothing."""
    x0, y0, x1, y1 = box_xyxy_px
    assert inside.shape == (y1 - y0, x1 - x0), "the pixels of a mask are those of its box"
    done, data = cv2.imencode(".png", inside.view(np.uint8) * np.uint8(255), [cv2.IMWRITE_PNG_COMPRESSION, PNG_LEVEL])
    assert done, "a grey PNG can always be written"
    half = path.with_name(path.name + ".part")
    with storage_errors():  # and no folder is made: one that is gone belonged to a call that has ended
        half.write_bytes(data.tobytes())
        half.replace(path)


def load_mask(path: Path) -> NDArray[np.bool_]:
    """The pixels that `save_mask` wrote.

    Raises:
        WorkerError: `mask_unreadable`.
    """
    try:
        picture = cv2.imdecode(np.fromfile(path, np.uint8), cv2.IMREAD_GRAYSCALE)
    except (OSError, cv2.error) as error:
        raise _unreadable(repr(error)) from error
    if picture is None:
        raise _unreadable(f"{path} is no picture")
    return np.asarray(picture > 127)


def _unreadable(private: str) -> WorkerError:
    return WorkerError(
        "mask_unreadable",
        "the file of a mask is gone or damaged",
        next_step="segment the picture again",
        private=private,
    )


def _cells(
    logits: NDArray[np.float32], region_xyxy_px: Box, extent_xy: tuple[float, float] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Where the centres of rows and columns lie in the grid of `logits`, whose cell centres are whole numbers."""
    height, width = logits.shape
    extent_x, extent_y = extent_xy or (float(width), float(height))
    x0, y0, x1, y1 = region_xyxy_px
    return _axis(y1 - y0, extent_y, height), _axis(x1 - x0, extent_x, width)


def _axis(pixels: int, extent: float, cells: int) -> NDArray[np.float64]:
    at = (np.arange(pixels) + 0.5) * (extent / pixels) - 0.5
    return np.clip(at, 0, cells - 1)


def _reached(cells: Any, at: NDArray[np.float64]) -> tuple[int, int]:
    """First and one past the last pixel whose value one of the marked cells has a part in."""
    marked = np.flatnonzero(cells)
    if not marked.size:
        return 0, 0
    first = int(np.searchsorted(at, marked[0] - 1, side="right"))
    return first, max(first, int(np.searchsorted(at, marked[-1] + 1, side="left")))


def _interpolate(
    logits: NDArray[np.float32], rows_at: NDArray[np.float64], columns_at: NDArray[np.float64]
) -> NDArray[np.float32]:
    upper, part_y = _split(rows_at, logits.shape[0])
    left, part_x = _split(columns_at, logits.shape[1])
    lower, right = np.minimum(upper + 1, logits.shape[0] - 1), np.minimum(left + 1, logits.shape[1] - 1)
    rows = logits[upper] + (logits[lower] - logits[upper]) * part_y[:, None]
    values = np.take(rows, right, axis=1)
    start = np.take(rows, left, axis=1)
    values -= start
    values *= part_x
    values += start
    return np.asarray(values, np.float32)


def _split(at: NDArray[np.float64], cells: int) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    whole = np.minimum(np.floor(at).astype(np.intp), cells - 1)
    return whole, (at - whole).astype(np.float32)
