"""The task of the scan child that samples videos: keeps files open between steps and writes frames as raw RGB.

See video_scan.py for the server's side. What is kept is only ever a shorter way: a child that knows nothing of the
steps before gives the same samples.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.frame_skip import GridSkip
from sam2_mcp_worker.media.frame_walk import FrameWalk
from sam2_mcp_worker.media.pixels import CHANNELS
from sam2_mcp_worker.media.segment_scan import Found, SegmentScan
from sam2_mcp_worker.media.video_child import DECIMALS, write_rgb
from sam2_mcp_worker.media.video_pixels import Turn, to_rgb
from sam2_mcp_worker.media.video_reader import SAME_FRAME_S, VideoReader
from sam2_mcp_worker.media.video_scan import ScanPlan

# Two calls at once are usual, and each needs one file.
MOST_OPEN = 2
# Frames of all open videos together, in pixels: a decoder keeps up to 17 frames, of 8K half of a child's memory.
MOST_OPEN_PIXELS = 2 * 4096 * 2304


@dataclass(slots=True)
class _Segment:
    """A segment under way: `given` samples have left the child."""

    key: tuple[Any, ...]
    scan: SegmentScan
    coming: Iterator[Found | None]
    given: int = 0


class _OpenFile:
    """A video that stands at one frame."""

    def __init__(self, path: Path, max_pixels: int, plan: ScanPlan) -> None:
        self._files = ExitStack()
        self.reader = self._files.enter_context(VideoReader(path, max_pixels))
        if not plan.cuts:  # a cut may lie anywhere
            self.reader.skip = GridSkip(plan.start_s, plan.interval_s, SAME_FRAME_S)
        self.walk = FrameWalk(self.reader)
        self.segment: _Segment | None = None

    @property
    def frame_pixels(self) -> int:
        return self.reader.stream.width * self.reader.stream.height

    def close(self) -> None:
        self.walk = FrameWalk(self.reader)  # the frames it held
        self.segment = None
        self._files.close()


class _OpenFiles:
    """The files used last."""

    def __init__(self) -> None:
        self._files: OrderedDict[tuple[Any, ...], _OpenFile] = OrderedDict()

    def get(self, path: Path, max_pixels: int, plan: ScanPlan) -> _OpenFile:
        """The open file; others are closed for it."""
        status = path.stat()
        key = (str(path), status.st_ino, status.st_size, status.st_mtime_ns, max_pixels, plan)
        if key not in self._files:
            self._make_room(MOST_OPEN - 1, 0)
            opened = _OpenFile(path, max_pixels, plan)
            self._make_room(MOST_OPEN - 1, opened.frame_pixels)
            self._files[key] = opened
        self._files.move_to_end(key)
        return self._files[key]

    def _make_room(self, most: int, pixels: int) -> None:
        while self._files and (
            len(self._files) > most
            or pixels + sum(file.frame_pixels for file in self._files.values()) > MOST_OPEN_PIXELS
        ):
            self._files.popitem(last=False)[1].close()

    def close(self) -> None:
        """Forget all."""
        while self._files:
            self._files.popitem()[1].close()

    @property
    def paths(self) -> list[Path]:
        """The one used last is the last."""
        return [Path(key[0]) for key in self._files]


_open_files = _OpenFiles()


def open_files() -> list[Path]:
    """What is kept open; the one used last is the last."""
    return _open_files.paths


def close_files() -> None:
    """Forget everything: it costs time, and changes no result."""
    _open_files.close()


def video_scan(params: dict[str, Any]) -> dict[str, Any]:
    """One step of one segment.

    Args:
        params: `path`, `max_pixels`, `size_px` (upright width and height that all frames get), `plan` (fields of
            ScanPlan), `first_number` and `count` (which times of the grid), `known` (samples of the segment that the
            caller has), `out_dir`, `budget_s`, `most_bytes` (of frames to write; one is always written).

    Returns:
        `samples` behind the known ones: `{time_s, until_s, kind, same_as, name, lost}`, of which `name` is the file of
        raw RGB; `end`: null as long as more may come, then `{failed_s, cuts_s, cuts_left_out}`.

    Raises:
        WorkerError: as the opening of videos.
    """
    try:
        return _step(params)
    except BaseException:  # the decoder may stand anywhere: begin anew, with all memory there is
        close_files()
        raise


TASKS = {"video_scan": video_scan}


def _step(params: dict[str, Any]) -> dict[str, Any]:
    ends_s = time.monotonic() + params["budget_s"]
    segment = _segment(params)
    frame_bytes = params["size_px"][0] * params["size_px"][1] * CHANNELS
    left_bytes = params["most_bytes"]
    samples: list[dict[str, Any]] = []
    for found in segment.coming:
        if found is not None:
            if segment.given >= params["known"]:
                samples.append(_kept(found, segment.given, params))
                left_bytes -= frame_bytes if samples[-1]["name"] else 0
            segment.given += 1
        if time.monotonic() >= ends_s or left_bytes < frame_bytes:
            return {"samples": samples, "end": None}
    return {"samples": samples, "end": _end(segment.scan)}


def _segment(params: dict[str, Any]) -> _Segment:
    """The segment as it stands, if it stands where the caller is, else from its beginning."""
    plan = ScanPlan(**params["plan"])
    file = _open_files.get(Path(params["path"]), params["max_pixels"], plan)
    key = (plan, params["first_number"], params["count"])
    segment = file.segment
    if segment is None or segment.key != key or segment.given > params["known"]:
        scan = SegmentScan(file.walk, plan, params["first_number"], params["count"])
        segment = file.segment = _Segment(key, scan, scan.found())
    return segment


def _kept(found: Found, index: int, params: dict[str, Any]) -> dict[str, Any]:
    name = None
    if found.frame is not None and found.same_as is None:
        name = f"scan-{params['first_number']:06d}-{index:05d}.rgb"
        frame = found.frame.frame
        folder = Path(params["out_dir"])
        if not folder.is_dir():
            raise WorkerError("work_gone", "the call that wanted these frames has ended", next_step="Call again")
        write_rgb(folder / name, to_rgb(frame, tuple(params["size_px"]), Turn.of(frame)))
    return {
        "time_s": round(found.time_s, DECIMALS),
        "until_s": None if found.until_s is None else round(found.until_s, DECIMALS),
        "kind": found.kind,
        "same_as": found.same_as,
        "name": name,
        "lost": found.lost,
    }


def _end(scan: SegmentScan) -> dict[str, Any]:
    return {
        "failed_s": [[round(start, DECIMALS), round(end, DECIMALS), reason] for start, end, reason in scan.failed_s],
        "cuts_s": [round(time_s, DECIMALS) for time_s in scan.cuts_s],
        "cuts_left_out": scan.cuts_left_out,
    }
