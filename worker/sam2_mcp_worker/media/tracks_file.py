"""The `tracks` artifact: where each object was in every frame that was tracked, with all masks as run lengths.

Written by track_video, read by redact_media from an agent's handle, so reading trusts nothing: sizes, times, boxes and
numbers are checked. The run lengths themselves are only checked by media/rle.py when a child decodes them. Imports
nothing heavy: server and children use it.

    {"format": "sam2-mcp/tracks/1", "source_sha256": "...", "width_px": 640, "height_px": 360, "duration_s": 6.0,
     "start_s": 0.0, "end_s": 6.0, "quality": "balanced", "object_count": 2, "complete": true,
     "failed_times_s": [], "frames": [{"time_s": 0.0, "objects": [
        {"number": 1, "box_xyxy_px": [10, 10, 50, 60], "area_px": 1830, "predicted_iou": 0.97, "counts": "..."},
        {"number": 2, "box_xyxy_px": null, "area_px": 0, "predicted_iou": 0.0, "counts": null}]}]}

`counts` is COCO's compressed string for the size [height_px, width_px]; an object without a box is lost in that frame.
Of the time between two frames nothing is known.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sam2_mcp_worker.errors import WorkerError

FORMAT = "sam2-mcp/tracks/1"
MIME_TYPE = "application/json"
FACTS_KIND = "tracks"
"""`kind` in the facts of the artifact."""
# A mask in outline takes 0.3-3 kB: 600 frames of 10 objects stay below 20 MB. More is no file of ours.
MAX_TRACKS_BYTES = 64 * 1024**2
# Videos of 8192 x 4320 px are accepted; run lengths of a larger picture would only cost memory.
MAX_SIDE_PX = 16_384
_SHA256_DIGITS = 64

Box = tuple[int, int, int, int]
"""x0, y0, x1, y1 in pixels of the upright video, x1 and y1 exclusive."""


@dataclass(frozen=True, slots=True)
class TrackedObject:
    """One object in one frame. Lost: no box, no area, no `counts`."""

    number: int
    box_xyxy_px: Box | None
    area_px: int
    predicted_iou: float
    counts: str | None

    @property
    def lost(self) -> bool:
        """Whether the object was not found in the frame."""
        return self.box_xyxy_px is None


@dataclass(frozen=True, slots=True)
class TrackedFrame:
    """All objects, in the order of their numbers, in the frame that comes on screen at `time_s`."""

    time_s: float
    objects: tuple[TrackedObject, ...]


@dataclass(frozen=True, slots=True)
class Tracks:
    """A whole tracking. Times are seconds since the first frame of the video; `frames` rise in time.

    `start_s` to `end_s` is the range that was asked for, `failed_times_s` are its damaged frames. Until the tracking is
    `complete`, nothing is known of what comes after the last frame.
    """

    source_sha256: str
    width_px: int
    height_px: int
    duration_s: float
    start_s: float
    end_s: float
    quality: str
    object_count: int
    complete: bool
    frames: tuple[TrackedFrame, ...]
    failed_times_s: tuple[float, ...] = ()

    @property
    def facts(self) -> dict[str, Any]:
        """What stands beside the artifact, so that a tool can refuse the wrong video without reading it all."""
        return {
            "kind": FACTS_KIND,
            "width_px": self.width_px,
            "height_px": self.height_px,
            "source_sha256": self.source_sha256,
        }

    def to_bytes(self) -> bytes:
        """The artifact's content."""
        return json.dumps({"format": FORMAT, **asdict(self)}, separators=(",", ":"), allow_nan=False).encode("ascii")


def read_tracks(path: Path) -> Tracks:
    """The tracks in a file.

    Raises:
        WorkerError: `tracks_invalid`: too large, or not what `to_bytes` writes.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_TRACKS_BYTES + 1)
    except OSError as error:
        raise _invalid("it cannot be read", repr(error)) from error
    if len(data) > MAX_TRACKS_BYTES:
        raise _invalid(f"it has more than {MAX_TRACKS_BYTES // 2**20} MiB")
    return parse_tracks(data)


def parse_tracks(data: bytes) -> Tracks:
    """As `read_tracks`, from the content."""
    try:
        fields = json.loads(data)
        if not isinstance(fields, dict) or fields.get("format") != FORMAT:
            raise _invalid("it is no result of track_video")
        return _tracks(fields)
    # RecursionError is for deep nesting, OverflowError for a number beyond a double.
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
        raise _invalid("it is damaged", repr(error)) from error


def _tracks(fields: Mapping[str, Any]) -> Tracks:
    width, height = (_whole(fields[name], 1, MAX_SIDE_PX) for name in ("width_px", "height_px"))
    count = _whole(fields["object_count"], 1, 10_000)
    sha256 = str(fields["source_sha256"])
    if len(sha256) != _SHA256_DIGITS or not set(sha256) <= set("0123456789abcdef"):
        raise ValueError("no hash")
    frames = tuple(_frame(frame, count, (width, height)) for frame in fields["frames"])
    if any(after.time_s <= before.time_s for before, after in itertools.pairwise(frames)):
        raise ValueError("times do not rise")
    return Tracks(
        source_sha256=sha256,
        width_px=width,
        height_px=height,
        duration_s=_seconds(fields["duration_s"]),
        start_s=_seconds(fields["start_s"]),
        end_s=_seconds(fields["end_s"]),
        quality=str(fields["quality"]),
        object_count=count,
        complete=_truth(fields["complete"]),
        frames=frames,
        failed_times_s=tuple(map(_seconds, fields["failed_times_s"])),
    )


def _frame(fields: Mapping[str, Any], count: int, size_px: tuple[int, int]) -> TrackedFrame:
    objects = tuple(_object(one, size_px) for one in fields["objects"])
    if [one.number for one in objects] != list(range(1, count + 1)):
        raise ValueError("objects are missing")
    return TrackedFrame(_seconds(fields["time_s"]), objects)


def _object(fields: Mapping[str, Any], size_px: tuple[int, int]) -> TrackedObject:
    box, counts = fields["box_xyxy_px"], fields["counts"]
    number, area = _whole(fields["number"], 1, 10_000), _whole(fields["area_px"], 0, size_px[0] * size_px[1])
    iou = float(fields["predicted_iou"])
    if not math.isfinite(iou) or (box is None) != (counts is None):
        raise ValueError("half an object")
    if box is None:
        return TrackedObject(number, None, 0, iou, None)
    left, top, right, bottom = box
    (x0, x1), (y0, y1) = _span(left, right, size_px[0]), _span(top, bottom, size_px[1])
    if not isinstance(counts, str) or not counts.isascii():
        raise ValueError("no run lengths")
    return TrackedObject(number, (x0, y0, x1, y1), area, iou, counts)


def _span(first: Any, last: Any, end: int) -> tuple[int, int]:
    low = _whole(first, 0, end - 1)
    return low, _whole(last, low + 1, end)


def _whole(value: Any, low: int, high: int) -> int:
    if type(value) is not int or not low <= value <= high:
        raise ValueError("a number is out of its range")
    return value


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("neither true nor false")
    return value


def _seconds(value: Any) -> float:
    seconds = float(value)
    if isinstance(value, str) or not (math.isfinite(seconds) and seconds >= 0):
        raise ValueError("no time")
    return seconds


def _invalid(what: str, private: str = "") -> WorkerError:
    return WorkerError(
        "tracks_invalid",
        f"the tracks cannot be used: {what}",
        rule="tracks are the artifact `tracks` that track_video returned, unchanged",
        next_step="call track_video again and use its new handle",
        private=private,
    )
