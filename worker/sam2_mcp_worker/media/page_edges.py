"""Decoder task: how much of a drawn page or picture is ink, and what its edges cut off.

Owns the look at edges: a side of one colour that something stands on and goes on inwards in another shape than a
straight band (a letter, a figure, a logo) cuts that thing. Bands, rules, pictures with straight sides, large artwork
and whole backgrounds run off a page on purpose and are left alone. Knows no text.
"""

from __future__ import annotations

from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from sam2_mcp_worker.media.line_crop import commonest_colour
from sam2_mcp_worker.media.pixels import PixelFile

Pixels = NDArray[np.uint8]
Flags = NDArray[np.bool_]
Box = tuple[int, int, int, int]
Trace = tuple[int, int]

# Of 255 in any channel, against the ground: less is the noise of paper and JPEG.
INK = 40
# Pixels that are looked at for the share of ink: every second one of an A4 page at 150 dpi, both ways.
SAMPLED_PIXELS = 500_000
# An edge of which less has one colour is a picture or a background that runs off the page.
GROUND_SHARE = 0.6
# What is cut shows its shape within so much of the picture's longer side: 9 mm of an A4 page, print of 25 pt.
DEPTH_SHARE = 0.03
MIN_DEPTH_PX = 8
# A band keeps its sides within so many pixels: smoothing, JPEG.
STRAIGHT_PX = 2
# Shorter traces on an edge are specks.
MIN_TRACE_PX = 2
# Longer ones, in depths, are artwork that runs off: hills, waves, the side of a person. 15 mm of an A4 page.
MAX_TRACE_DEPTHS = 1.7
# Strokes of letters end as straight as marks for folding do; a mark stands alone, with nothing this near, in depths.
ALONE_DEPTHS = 0.5
# Traces nearer than this belong to one thing (letters and words of a line), in depths.
JOINED_DEPTHS = 2
MAX_CUTS = 5


def page_edges(params: dict[str, Any]) -> dict[str, Any]:
    """`{pixels, ignored: [box], bands: {name: box}}` -> `{ink_share, cuts: [{side, box}], bands}`.

    `ignored` are boxes of known pictures: they may end at an edge. Of each box in `bands` the share of pixels on each
    of its sides that are not white is told.

    Raises:
        WorkerError: pixels_unreadable.
    """
    rgb = PixelFile.from_params(params["pixels"]).map_rgb()
    ignored = [tuple(box) for box in params.get("ignored", [])]
    return {
        "ink_share": ink_share(rgb),
        "cuts": [{"side": side, "box": list(box)} for side, box in cuts(rgb, ignored)],
        "bands": {name: coloured_sides(rgb, tuple(box)) for name, box in params.get("bands", {}).items()},
    }


TASKS = {"page_edges": page_edges}


def ink_share(rgb: Pixels) -> float:
    """Share of pixels, 0-1, that differ from the commonest colour."""
    step = max(1, int(np.sqrt(rgb.shape[0] * rgb.shape[1] / SAMPLED_PIXELS)))
    sample = np.ascontiguousarray(rgb[::step, ::step])
    return round(float(_ink(sample, commonest_colour(sample)).mean()), 6)


def coloured_sides(rgb: Pixels, box: tuple[int, ...]) -> dict[str, float]:
    """For each side of a box the share of its outermost two rows of pixels that are not white."""
    height, width = rgb.shape[:2]
    x0, y0, x1, y1 = max(0, box[0]), max(0, box[1]), max(0, min(width, box[2])), max(0, min(height, box[3]))
    part = rgb[y0:y1, x0:x1]
    sides = {"top": part[:2], "bottom": part[-2:], "left": part[:, :2], "right": part[:, -2:]}
    return {
        side: round(float((strip < 255 - INK).any(axis=2).mean()), 4) if strip.size else 0.0
        for side, strip in sides.items()
    }


def cuts(rgb: Pixels, ignored: list[tuple[int, ...]]) -> list[tuple[str, Box]]:
    """What the edges cut off: the side, and a box of the traces with what is seen of them near the edge."""
    depth = max(MIN_DEPTH_PX, round(DEPTH_SHARE * max(rgb.shape[:2])))
    found: list[tuple[str, Box]] = []
    for side, strip in _strips(rgb, depth).items():
        boxes = (_box(side, trace, depth, rgb.shape) for trace in cut_traces(strip))
        found += [(side, box) for box in boxes if not _in_picture(box, ignored)]
    return found[:MAX_CUTS]


def _strips(rgb: Pixels, depth: int) -> dict[str, Pixels]:
    """The outermost rows of each side, the edge itself first."""
    turned = rgb.transpose(1, 0, 2)
    return {
        "top": np.ascontiguousarray(rgb[:depth]),
        "bottom": np.ascontiguousarray(rgb[::-1][:depth]),
        "left": np.ascontiguousarray(turned[:depth]),
        "right": np.ascontiguousarray(turned[::-1][:depth]),
    }


def cut_traces(strip: Pixels) -> list[Trace]:
    """Stretches of the edge, first and one past the last pixel, on which something is cut."""
    ink = _ink(strip, commonest_colour(np.ascontiguousarray(strip[:2])))
    if ink[0].mean() > 1 - GROUND_SHARE:
        return []
    most = MAX_TRACE_DEPTHS * len(strip)
    runs = [run for run in _runs(ink[0]) if MIN_TRACE_PX <= run[1] - run[0] <= most and ink[1, slice(*run)].any()]
    return _joined([run for run in runs if _is_cut(ink, run)], JOINED_DEPTHS * len(strip))


def _is_cut(ink: Flags, run: Trace) -> bool:
    shape = _shape(ink, run)
    if shape != "mark":
        return shape == "cut"
    reach = max(2, round(ALONE_DEPTHS * len(ink)))
    near = ink[:reach, max(0, run[0] - reach) : run[1] + reach]
    return int(near.sum()) > int(ink[:reach, slice(*run)].sum()) + MIN_TRACE_PX


def _shape(ink: Flags, run: Trace) -> Literal["band", "mark", "cut"]:
    """What stands on the edge: goes on inwards with the same two sides (band), until it ends (mark), or otherwise."""
    first, last = run
    for row in ink[1:]:
        touching = _runs(row[max(0, first - STRAIGHT_PX) : last + STRAIGHT_PX])
        if not touching:
            return "mark"
        left, right = touching[0][0] + max(0, first - STRAIGHT_PX), touching[-1][1] + max(0, first - STRAIGHT_PX)
        wider = _inked(row, first - STRAIGHT_PX - 1) or _inked(row, last + STRAIGHT_PX)
        if len(touching) > 1 or wider or abs(left - first) > STRAIGHT_PX or abs(right - last) > STRAIGHT_PX:
            return "cut"
    return "band"


def _inked(row: Flags, column: int) -> bool:
    """Whether there is ink at a place that may lie outside."""
    return 0 <= column < len(row) and bool(row[column])


def _joined(traces: list[Trace], gap: int) -> list[Trace]:
    joined: list[Trace] = []
    for first, last in traces:
        if joined and first - joined[-1][1] <= gap:
            joined[-1] = (joined[-1][0], last)
        else:
            joined.append((first, last))
    return joined


def _ink(rgb: Pixels, ground: NDArray[np.float32]) -> Flags:
    middle = np.round(ground).astype(np.float64)
    return np.asarray(cv2.inRange(rgb, middle - INK, middle + INK) == 0, np.bool_)


def _runs(row: Flags) -> list[Trace]:
    """Stretches of ink in a row of pixels."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], row, [False]]).astype(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _box(side: str, trace: Trace, depth: int, shape: tuple[int, ...]) -> Box:
    height, width = shape[:2]
    first, last = trace
    return {
        "top": (first, 0, last, min(depth, height)),
        "bottom": (first, max(0, height - depth), last, height),
        "left": (0, first, min(depth, width), last),
        "right": (max(0, width - depth), first, width, last),
    }[side]


def _in_picture(box: Box, ignored: list[tuple[int, ...]]) -> bool:
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    return any(one[0] <= x <= one[2] and one[1] <= y <= one[3] for one in ignored)
