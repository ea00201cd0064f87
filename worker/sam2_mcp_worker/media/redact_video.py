"""Compares a redacted video with its source, frame by frame, and looks at what else the file holds. Redact children."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
from numpy.typing import NDArray

from sam2_mcp_worker.media.redact_frames import RedactPainter
from sam2_mcp_worker.media.redact_paint import FILL_RGB, Area
from sam2_mcp_worker.media.video_pixels import Rgb, Turn, to_rgb
from sam2_mcp_worker.media.video_reader import Decoded, VideoReader

# MP4 keeps the ticks of the source; this is for containers whose times are rounded to milliseconds.
SAME_TIME_S = 0.002
# Along the edge of a cover the codec mixes in what lies beside it: up to half a block of 16 px.
EDGE_PX = 8
# What an MP4 says of itself, by names of libavformat.
_OWN_TAGS = {"major_brand", "minor_version", "compatible_brands", "encoder", "language", "handler_name", "vendor_id"}


def video_compare(params: dict[str, Any]) -> dict[str, Any]:
    """Compare the next stretch of frames.

    Args:
        params: `source`, `output` (paths), `max_pixels`, `size_px` (upright), `painter` (parameters of RedactPainter),
            `after_s` (time of the last frame that was compared, None at the beginning), `budget_s`.

    Returns:
        `frames`, `covered_frames`, `last_s`, `finished`; `stray_s`, the first time at which one has a frame and the
        other has not, else None; `fill_level`, how far a pixel well inside of a cover is from its colour at most
        (levels of 255); `least_psnr_db` and `sum_psnr_db` of frames against the painted source.
    """
    ends_s = time.monotonic() + params["budget_s"]
    painter, size = RedactPainter(params["painter"]), (params["size_px"][0], params["size_px"][1])
    tally = _Tally(painter, size, params["after_s"])
    paths = Path(params["source"]), Path(params["output"])
    with VideoReader(paths[0], params["max_pixels"]) as source, VideoReader(paths[1], params["max_pixels"]) as output:
        for before, after in itertools.zip_longest(*(_after(reader, params["after_s"]) for reader in (source, output))):
            if tally.frames and time.monotonic() >= ends_s:
                return tally.result(finished=False)
            if not tally.add(before, after):
                break
    return tally.result(finished=True)


def video_contents(params: dict[str, Any]) -> dict[str, Any]:
    """`{path}` -> `{video, audio, others, tags}`: numbers of tracks, and tags that tell more than the format."""
    with av.open(params["path"], "r", metadata_errors="replace") as container:
        kinds = [stream.type for stream in container.streams]
        tags = set(container.metadata).union(*(stream.metadata for stream in container.streams)) - _OWN_TAGS
        return {
            "video": kinds.count("video"),
            "audio": kinds.count("audio"),
            "others": sorted(set(kinds) - {"video", "audio"}),
            "tags": sorted(tags),
        }


TASKS = {"video_compare": video_compare, "video_contents": video_contents}


def _after(reader: VideoReader, after_s: float | None) -> Iterator[Decoded]:
    frames = reader.frames(after_s or 0.0)
    return frames if after_s is None else (one for one in frames if one.time_s > after_s + SAME_TIME_S)


@dataclass(slots=True)
class _Tally:
    """What the comparison found so far."""

    painter: RedactPainter
    size_px: tuple[int, int]
    last_s: float | None
    frames: int = 0
    covered_frames: int = 0
    stray_s: float | None = None
    fill_level: int = 0
    least_psnr_db: float = 99.0
    sum_psnr_db: float = 0.0

    def add(self, before: Decoded | None, after: Decoded | None) -> bool:
        """Compare two frames; False when they are not the same moment."""
        if before is None or after is None or abs(before.time_s - after.time_s) > SAME_TIME_S:
            self.stray_s = min(one.time_s for one in (before, after) if one is not None)
            return False
        areas = self.painter.areas_at(before.time_s)
        expected = self.painter.paint(_rgb(before, self.size_px), self.frames, before.time_s)
        seen = _rgb(after, self.size_px)
        if self.painter.method == "fill":
            self.fill_level = max([self.fill_level, *(fill_level(seen, area) for area in areas)])
        psnr_db = _psnr_db(expected, seen)
        self.least_psnr_db = min(self.least_psnr_db, psnr_db)
        self.sum_psnr_db += psnr_db
        self.covered_frames += bool(areas)
        self.frames += 1
        self.last_s = before.time_s
        return True

    def result(self, *, finished: bool) -> dict[str, Any]:
        """The answer of the task."""
        names = (*("frames", "covered_frames", "last_s", "stray_s", "fill_level", "least_psnr_db", "sum_psnr_db"),)
        return {**{name: getattr(self, name) for name in names}, "finished": finished}


def _rgb(decoded: Decoded, size_px: tuple[int, int]) -> Rgb:
    return to_rgb(decoded.frame, size_px, Turn.of(decoded.frame))


def fill_level(rgb: Rgb, area: Area) -> int:
    """How far a pixel of the area, `EDGE_PX` from its edge, is from the fill colour at most.

    An area too small for that is judged by its mean: its pixels are all edge.
    """
    crop = area.crop(rgb).astype(np.int16)
    inside = np.ones(crop.shape[:2], np.bool_) if area.mask is None else area.mask
    distance = np.abs(crop - np.array(FILL_RGB, np.int16)).max(axis=2)
    core = _core(inside, area, rgb.shape[:2])
    if core.any():
        return int(distance[core].max())
    return int(distance[inside].mean())


def _core(inside: NDArray[np.bool_], area: Area, size: tuple[int, int]) -> NDArray[np.bool_]:
    """What of a cover lies `EDGE_PX` from its edge; the edge of the picture is none."""
    x0, y0, x1, y1 = area.box_xyxy_px
    height, width = size
    open_sides = (y0 > 0, y1 < height, x0 > 0, x1 < width)
    top, bottom, left, right = (int(is_open) for is_open in open_sides)
    framed = cv2.copyMakeBorder(inside.astype(np.uint8), 1, 1, 1, 1, cv2.BORDER_REPLICATE)
    framed[0, :] *= 1 - top
    framed[-1, :] *= 1 - bottom
    framed[:, 0] *= 1 - left
    framed[:, -1] *= 1 - right
    side = 2 * EDGE_PX + 1
    core = cv2.erode(framed, np.ones((side, side), np.uint8), borderType=cv2.BORDER_REPLICATE)
    return np.asarray(core[1:-1, 1:-1], bool)


def _psnr_db(one: Rgb, other: Rgb) -> float:
    error = float(cv2.norm(one, other, cv2.NORM_L2SQR)) / one.size
    return 99.0 if error < 1e-5 else round(10 * math.log10(255**2 / error), 2)
