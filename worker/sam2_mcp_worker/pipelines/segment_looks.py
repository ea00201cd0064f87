"""What became of one segment of a video, as it is kept on disk and put together. Pure: looks in, looks and JSON out.

Frames that look like an earlier one share its reading, here and in the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from sam2_mcp_worker.engines.ports import Region
from sam2_mcp_worker.pipelines.frame_looks import FrameLook, Span
from sam2_mcp_worker.pipelines.read_picture import (
    Area,
    PictureReading,
    line_from_json,
    line_to_json,
    region_from_json,
    region_to_json,
    to_box,
)

# A reason is an error's sentence; of a frame with many tiles the first says what there is to say.
MAX_REASON_CHARS = 200


@dataclass(frozen=True, slots=True)
class SegmentLooks:
    """The frames of a segment, rising by time, and what of it could not be decoded.

    `stood_in` counts frames that the local engine read instead of the provider, by reason; `dropped` items of answers
    that made no sense, `invented` lines that stand on bare paper, `cuts_left_out` scene changes whose frames were not
    looked at. `again` says why another attempt may give more, empty when it cannot.
    """

    looks: tuple[FrameLook, ...]
    failed: tuple[Span, ...] = ()
    stood_in: Counter[str] = field(default_factory=Counter)
    dropped: int = 0
    invented: int = 0
    cuts_left_out: int = 0
    again: str = ""

    @property
    def line_count(self) -> int:
        """Lines of all frames: what findings take time for."""
        return sum(len(look.lines) for look in self.looks)


@dataclass(frozen=True, slots=True)
class FrameReading:
    """A look that was read, and how: `stood_in` is the reason why the local engine read some of it."""

    look: FrameLook
    stood_in: str = ""
    dropped: int = 0
    invented: int = 0
    again: str = ""


def read_look(place: FrameLook, reading: PictureReading, *, tile_count: int, labels: bool) -> FrameReading:
    """A frame from what its tiles gave; `place` has its times and kind. With `labels` regions were asked for."""
    if len(reading.unread) == tile_count:
        look = replace(place, failed=reading.unread[0][1][:MAX_REASON_CHARS])
        return FrameReading(look, again=reading.again or look.failed)
    look = replace(
        place,
        lines=reading.lines,
        regions=_regions(reading, tile_count) if labels else None,
        undetected_ink=reading.undetected_ink,
        partly=_partly(reading, tile_count)[:MAX_REASON_CHARS],
    )
    unread = reading.unread[0][1] if reading.unread else ""
    stood_in = reading.stood_in[0][1] if reading.stood_in else ""
    return FrameReading(look, stood_in, reading.dropped, reading.invented, reading.again or unread)


def _regions(reading: PictureReading, tile_count: int) -> tuple[Region, ...] | None:
    """None where nobody looked at any of it."""
    unseen = {area for area, _ in reading.unlooked} if not reading.regions else set()
    return None if len(unseen) == tile_count else reading.regions


def _partly(reading: PictureReading, tile_count: int) -> str:
    """Why something of the frame may have been missed; that nobody looked for regions anywhere is told by them."""
    if reading.unread:
        return f"{len(reading.unread)} of {tile_count} tiles could not be read ({reading.unread[0][1]})"
    if reading.truncated:
        return f"the answer for {len(reading.truncated)} of {tile_count} tiles was cut"
    if reading.dropped:
        return f"{reading.dropped} items of the vision provider's answer made no sense"
    areas: tuple[Area, ...] = reading.unlooked
    if 0 < len(areas) < tile_count:
        return f"regions were not looked for in {len(areas)} of {tile_count} tiles ({areas[0][1]})"
    return ""


def same_look(place: FrameLook, earlier: FrameLook) -> FrameLook:
    """The look of a frame that was not read, since it looks like an earlier one."""
    return replace(earlier, time_s=place.time_s, until_s=place.until_s, kind=place.kind, same_as_s=earlier.time_s)


def collected(readings: Iterable[FrameReading], failed: tuple[Span, ...], cuts_left_out: int) -> SegmentLooks:
    """The segment from its readings; those of frames that share one count once."""
    all_readings = sorted(readings, key=lambda one: one.look.time_s)
    own = [one for one in all_readings if one.look.same_as_s is None]
    return SegmentLooks(
        tuple(one.look for one in all_readings),
        failed,
        Counter(one.stood_in for one in own if one.stood_in),
        sum(one.dropped for one in own),
        sum(one.invented for one in own),
        cuts_left_out,
        next((one.again for one in own if one.again), ""),
    )


def segment_to_json(segment: SegmentLooks) -> dict[str, Any]:
    """JSON form for the cache."""
    return {
        "looks": [_look_to_json(look) for look in segment.looks],
        "failed": [[span.start_s, span.end_s, span.reason] for span in segment.failed],
        "stood_in": dict(segment.stood_in),
        "dropped": segment.dropped,
        "invented": segment.invented,
        "cuts_left_out": segment.cuts_left_out,
        "again": segment.again,
    }


def segment_from_json(data: dict[str, Any]) -> SegmentLooks:
    """The inverse of `segment_to_json`."""
    looks: dict[float, FrameLook] = {}
    for fields in data["looks"]:
        looks[fields["t"]] = _look_from_json(fields, looks)
    return SegmentLooks(
        tuple(looks.values()),
        tuple(Span(float(start), float(end), reason) for start, end, reason in data["failed"]),
        Counter(data["stood_in"]),
        data["dropped"],
        data["invented"],
        data["cuts_left_out"],
        data["again"],
    )


def _look_to_json(look: FrameLook) -> dict[str, Any]:
    place = {"t": look.time_s, "until": look.until_s, "kind": look.kind}
    if look.same_as_s is not None:
        return {**place, "same_as": look.same_as_s}
    return {
        **place,
        "lines": [line_to_json(line) for line in look.lines],
        "regions": None if look.regions is None else [region_to_json(region) for region in look.regions],
        "ink": [list(box) for box in look.undetected_ink],
        "failed": look.failed,
        "partly": look.partly,
    }


def _look_from_json(data: dict[str, Any], earlier: dict[float, FrameLook]) -> FrameLook:
    place = FrameLook(data["t"], data["kind"], data["until"])
    if "same_as" in data:
        return same_look(place, earlier[data["same_as"]])
    regions = data["regions"]
    return replace(
        place,
        lines=tuple(line_from_json(line) for line in data["lines"]),
        regions=None if regions is None else tuple(region_from_json(region) for region in regions),
        undetected_ink=tuple(to_box(box) for box in data["ink"]),
        failed=data["failed"],
        partly=data["partly"],
    )
