"""COCO run-length encoding of masks, plain and compressed, without pycocotools.

Runs go down the columns of the whole picture, outside first. The compressed string is that of pycocotools' `counts`
(differences to the run two before, 5 bits a character), so that every COCO tool reads it. For children and tests only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.masks import Box, Mask, tight_mask


def encode_runs(inside: NDArray[np.bool_], box_xyxy_px: Box | None, size_px: tuple[int, int]) -> list[int]:
    """Run lengths of a mask (pixels of its box) within a picture of `(width, height)`.

    Costs the memory of the box, not of the picture.
    """
    width, height = size_px
    if box_xyxy_px is None:
        return [width * height]
    x0, y0, x1, y1 = box_xyxy_px
    assert inside.shape == (y1 - y0, x1 - x0), "the pixels of a mask are those of its box"
    columns = np.zeros((x1 - x0, y1 - y0 + 2), np.int8)
    columns[:, 1:-1] = inside.T
    steps = np.diff(columns, axis=1)
    column, row = np.nonzero(steps)
    at = (column + x0) * height + row + y0  # starts and ends of runs, in turn
    # Where a run ends at the foot of one column and the next starts at the head of the next one, they are one run.
    starts, ends = at[0::2], at[1::2]
    apart = starts[1:] != ends[:-1]
    edges = np.empty(2 * (int(np.count_nonzero(apart)) + 1), np.int64)
    edges[0::2], edges[1::2] = starts[np.r_[True, apart]], ends[np.r_[apart, True]]
    runs = np.diff(np.r_[0, edges, width * height])
    return [int(run) for run in (runs if runs[-1] else runs[:-1])]


def decode_runs(runs: Sequence[int], size_px: tuple[int, int]) -> Mask:
    """The inverse of `encode_runs`.

    Raises:
        WorkerError: `rle_invalid` when the runs do not fill the picture.
    """
    width, height = size_px
    lengths = np.asarray(runs, np.int64)
    if not lengths.size or (lengths < 0).any() or int(lengths.sum()) != width * height:
        raise _invalid(f"{len(runs)} runs do not add up to {width} x {height} px")
    ends = np.cumsum(lengths)[1::2]
    starts = ends - lengths[1::2]
    filled = starts < ends
    starts, ends = starts[filled], ends[filled]
    if not starts.size:
        return tight_mask(np.zeros((0, 0), np.bool_), (0, 0))
    left, right = int(starts[0]) // height, (int(ends[-1]) - 1) // height + 1
    steps = np.zeros((right - left) * height + 1, np.int8)
    steps[starts - left * height] += 1
    steps[ends - left * height] -= 1
    inside = np.cumsum(steps[:-1], dtype=np.int8).view(np.bool_).reshape(right - left, height).T
    return tight_mask(inside, (left, 0))


def compress_runs(runs: Sequence[int]) -> str:
    """The `counts` string of COCO."""
    text = bytearray()
    for number, run in enumerate(runs):
        value = run - runs[number - 2] if number > 2 else run
        while True:
            bits = value & 0x1F
            value >>= 5
            more = value != (-1 if bits & 0x10 else 0)
            text.append(48 + (bits | 0x20 if more else bits))
            if not more:
                break
    return text.decode("ascii")


def expand_runs(counts: str) -> list[int]:
    """The inverse of `compress_runs`.

    Raises:
        WorkerError: `rle_invalid` for a string that no mask gives.
    """
    runs: list[int] = []
    value = shift = 0
    for character in counts:
        bits = ord(character) - 48
        if not 0 <= bits < 64:
            raise _invalid(f"counts hold the character {character!r}")
        value |= (bits & 0x1F) << shift
        shift += 5
        if bits & 0x20:
            continue
        if bits & 0x10:
            value -= 1 << shift
        runs.append(value + runs[-2] if len(runs) > 2 else value)
        value = shift = 0
    if shift:
        raise _invalid("counts end in the middle of a number")
    return runs


def coco_rle(mask: Mask, size_px: tuple[int, int]) -> dict[str, object]:
    """`{"size": [height, width], "counts": "..."}`, as COCO writes it."""
    width, height = size_px
    return {"size": [height, width], "counts": compress_runs(encode_runs(mask.inside, mask.box_xyxy_px, size_px))}


def _invalid(what: str) -> WorkerError:
    return WorkerError("rle_invalid", what, next_step="use the run lengths as segment_image or track_video gave them")
