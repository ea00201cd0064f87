"""Where phrases have to be covered in a video, and when, from frames that were read. Pure: looks in, timed boxes out.

A phrase that was read in a frame is covered until the frames on both sides that were read and lack it, and on the way
between two frames that have it. What is covered needlessly can be seen and put right; what is left for a moment cannot.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sam2_mcp_worker.engines.ports import Box, TextLine
from sam2_mcp_worker.pipelines.frame_looks import FrameLook, VideoLooks
from sam2_mcp_worker.pipelines.redact_lines import as_read, in_order, line_area, within
from sam2_mcp_worker.pipelines.redact_phrases import Match, ReadLine, find_phrases

# Boxes of the same still line differ by a pixel or two from frame to frame: on this grid most of them are one box.
GRID_PX = 4
# Behind the last frame that shows a moving line it is taken to move on, and this much further.
FURTHER = 1.25
# A smaller step is the detector's wobble.
MOVED_PX = 4


@dataclass(frozen=True, slots=True)
class TimedCover:
    """A box, and the span whose frames it covers, ends included."""

    box_xyxy_px: Box
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Showing:
    """One phrase over neighbouring frames: a box around all its places, and what was read."""

    match: Match
    box_xyxy_px: Box
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class PhraseCover:
    """What is to be covered; `lines` are all different lines that were read, `places[i]` where line i is."""

    covers: tuple[TimedCover, ...]
    showings: tuple[Showing, ...]
    lines: tuple[ReadLine, ...]
    places: tuple[dict[str, object], ...]


@dataclass(frozen=True, slots=True)
class _Seen:
    """The places of one phrase in one frame."""

    boxes: tuple[Box, ...]
    match: Match


_Frame = dict[int, _Seen]


def plan_cover(phrases: Sequence[str], looks: VideoLooks) -> PhraseCover:
    """Boxes for all phrases over the range of the looks."""
    known = [look for look in looks.looks if not look.failed]
    frames = _find(phrases, known, (looks.width_px, looks.height_px))
    steps = _Steps(known, frames, looks)
    covers = [cover for index in range(len(known)) for cover in steps.covers(index)]
    lines, places = _different_lines(known)
    size = (looks.width_px, looks.height_px)
    return PhraseCover(_merged(covers, size), tuple(steps.showings(len(phrases))), lines, places)


def _find(phrases: Sequence[str], known: Sequence[FrameLook], size_px: tuple[int, int]) -> list[_Frame]:
    """What is found in each frame; those that look the same are searched once."""
    by_time: dict[float, _Frame] = {}
    found = []
    for look in known:
        same = by_time.get(look.same_as_s) if look.same_as_s is not None else None
        by_time[look.time_s] = same if same is not None else _find_in(phrases, look.lines, size_px)
        found.append(by_time[look.time_s])
    return found


def _find_in(phrases: Sequence[str], lines: Sequence[TextLine], size_px: tuple[int, int]) -> _Frame:
    ordered = in_order(lines)
    matches = find_phrases(phrases, as_read(ordered))
    found: _Frame = {}
    for match in matches:
        boxes = tuple(line_area(ordered[index].box_xyxy_px, size_px) for index in match.lines)
        before = found.get(match.phrase)
        if before is not None:
            best = before.match if before.match.kind == "exact" else match
            found[match.phrase] = _Seen(tuple(dict.fromkeys((*before.boxes, *boxes))), best)
        else:
            found[match.phrase] = _Seen(boxes, match)
    return found


class _Steps:
    """Frames that were read, in order, with what lies between them."""

    def __init__(self, known: Sequence[FrameLook], frames: Sequence[_Frame], looks: VideoLooks) -> None:
        self._frames = frames
        # A frame that could not be read lies between two that were: it is covered like any other in between.
        self._times = [looks.asked.start_s, *(look.time_s for look in known), looks.asked.end_s]

    def _span(self, index: int) -> tuple[float, float, float]:
        """The time of a frame, and of those before and behind it that were read."""
        before, at, behind = self._times[index : index + 3]
        return before, at, behind

    def _boxes(self, index: int, phrase: int) -> tuple[Box, ...]:
        seen = self._frames[index].get(phrase) if 0 <= index < len(self._frames) else None
        return seen.boxes if seen is not None else ()

    def covers(self, index: int) -> Iterator[TimedCover]:
        """Everything that one frame says."""
        before_s, at_s, behind_s = self._span(index)
        for phrase, seen in self._frames[index].items():
            earlier, later = self._boxes(index - 1, phrase), self._boxes(index + 1, phrase)
            for box in seen.boxes:
                yield TimedCover(box, before_s, behind_s)
                if later:
                    yield TimedCover(_hull(box, _nearest(box, later)), at_s, behind_s)
                if earlier:
                    yield TimedCover(_hull(box, _nearest(box, earlier)), before_s, at_s)
                if earlier and not later:
                    way = _way(_nearest(box, earlier), box, (behind_s - at_s) / max(at_s - before_s, 1e-6))
                    yield TimedCover(_hull(box, way), at_s, behind_s)
                if later and not earlier:
                    way = _way(_nearest(box, later), box, (at_s - before_s) / max(behind_s - at_s, 1e-6))
                    yield TimedCover(_hull(box, way), before_s, at_s)

    def showings(self, phrase_count: int) -> Iterator[Showing]:
        """Neighbouring frames with one phrase are one showing."""
        for phrase in range(phrase_count):
            run: list[int] = []
            for index in range(len(self._frames) + 1):
                if self._boxes(index, phrase):
                    run.append(index)
                elif run:
                    yield self._showing(phrase, run)
                    run = []

    def _showing(self, phrase: int, run: Sequence[int]) -> Showing:
        seen = [self._frames[index][phrase] for index in run]
        exact = [one.match for one in seen if one.match.kind == "exact"]
        box = _hull(*(box for one in seen for box in one.boxes))
        return Showing((exact or [seen[0].match])[0], box, self._span(run[0])[0], self._span(run[-1])[2])


def _hull(*boxes: Box) -> Box:
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def _nearest(box: Box, others: Sequence[Box]) -> Box:
    return min(others, key=lambda other: sum(abs(a - b) for a, b in zip(box, other, strict=True)))


def _way(origin: Box, box: Box, steps: float) -> Box:
    """Where a line that came from `origin` to `box` in one step would be after so many more of them."""
    dx, dy = box[0] - origin[0], box[1] - origin[1]
    if max(abs(dx), abs(dy)) < MOVED_PX:
        return box
    dx, dy = round(dx * steps * FURTHER), round(dy * steps * FURTHER)
    return box[0] + dx, box[1] + dy, box[2] + dx, box[3] + dy


def _merged(covers: Iterable[TimedCover], size_px: tuple[int, int]) -> tuple[TimedCover, ...]:
    """One cover for a box as long as it stays: a painter looks through all of them for every frame."""
    spans: dict[Box, list[tuple[float, float]]] = {}
    for cover in covers:
        x0, y0, x1, y1 = cover.box_xyxy_px
        low = (GRID_PX * (x0 // GRID_PX), GRID_PX * (y0 // GRID_PX))
        high = (GRID_PX * math.ceil(x1 / GRID_PX), GRID_PX * math.ceil(y1 / GRID_PX))
        box = within((*low, *high), size_px)
        if box[0] < box[2] and box[1] < box[3]:
            spans.setdefault(box, []).append((cover.start_s, cover.end_s))
    merged = []
    for box, parts in spans.items():
        start_s, end_s = sorted(parts)[0]
        for part in sorted(parts)[1:]:
            if part[0] > end_s:
                merged.append(TimedCover(box, start_s, end_s))
                start_s, end_s = part
            end_s = max(end_s, part[1])
        merged.append(TimedCover(box, start_s, end_s))
    return tuple(sorted(merged, key=lambda cover: (cover.start_s, cover.end_s, cover.box_xyxy_px)))


def _different_lines(known: Sequence[FrameLook]) -> tuple[tuple[ReadLine, ...], tuple[dict[str, object], ...]]:
    """Every text once, where it was read first."""
    lines: dict[str, tuple[ReadLine, dict[str, object]]] = {}
    for look in known:
        for line in look.lines:
            place: dict[str, object] = {"box_xyxy_px": list(line.box_xyxy_px), "time_s": round(look.time_s, 3)}
            lines.setdefault(line.text, (as_read([line])[0], place))
    return tuple(line for line, _ in lines.values()), tuple(place for _, place in lines.values())
