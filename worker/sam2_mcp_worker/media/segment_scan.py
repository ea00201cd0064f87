"""Chooses the frames of one segment: those on screen at the times of the grid, and those right before and after cuts.

Owns which frame becomes a sample, what looks like an earlier one, and what of the segment cannot be decoded. Everything
follows from the frames of the segment and the one before it, so the result is the same wherever decoding began.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from sam2_mcp_worker.media.frame_likeness import Coarse, Planes, coarse, is_cut, look_same, planes_of
from sam2_mcp_worker.media.frame_walk import FrameWalk
from sam2_mcp_worker.media.video_child import judged
from sam2_mcp_worker.media.video_reader import SAME_FRAME_S, Decoded
from sam2_mcp_worker.media.video_scan import MOST_CUTS, SampleKind, ScanPlan

# Frames that later ones are compared with: a picture that blinks between two states is read twice, not each time.
MOST_REFERENCES = 3
# Their planes together; one is always kept. Three frames of 4K are 37 MB.
REFERENCE_BYTES = 40_000_000


@dataclass(frozen=True, slots=True)
class Found:
    """A sample before it is written: `frame` is None when it is lost."""

    time_s: float
    until_s: float | None
    kind: SampleKind
    same_as: int | None = None
    frame: Decoded | None = None
    lost: str = ""


class SegmentScan:
    """One pass over one segment; `found` runs once, and then the other attributes are complete."""

    def __init__(self, walk: FrameWalk, plan: ScanPlan, first_number: int, count: int) -> None:
        self._walk = walk
        self._plan = plan
        self._starts_s, self._ends_s = plan.span_s(first_number, count)
        self._asked = deque(plan.grid_s(first_number + i) for i in range(count))
        self._references: deque[tuple[int, Planes]] = deque(maxlen=MOST_REFERENCES)
        self._samples = 0
        self._nothing_seen = True
        self._behind_cut = False
        self._measured: deque[tuple[Decoded, Coarse]] = deque(maxlen=3)
        self.failed_s: list[tuple[float, float, str]] = []
        self.cuts_s: list[float] = []
        self.cuts_left_out = 0

    def found(self) -> Iterator[Found | None]:
        """The samples by rising time; None after each frame that was decoded, so that the caller can stop between."""
        walk, cuts = self._walk, self._plan.cuts
        # A cut may lie right at the beginning: then the frame before it counts.
        yield from walk.reach(max(0.0, self._starts_s - SAME_FRAME_S if cuts else _wanted_s(self._starts_s)))
        while True:
            yield from self._look()
            if walk.after is None or (not self._asked and (not cuts or walk.until_s >= self._ends_s - SAME_FRAME_S)):
                return
            if cuts:
                walk.advance()
                yield None
            else:
                yield from walk.reach(_wanted_s(self._asked[0]))

    def _look(self) -> Iterator[Found]:
        """What the frame on screen gives."""
        now = self._walk.now
        asked_s = self._take_asked()
        verdicts = [self._verdict(now, time_s) for time_s in asked_s]
        cut_follows = self._cut_follows()
        if now is not None:
            self._note_failure(now)
            if self._behind_cut or cut_follows or any(not isinstance(verdict, str) for verdict in verdicts):
                yield self._sample(now, cut_follows)
        elif not self.failed_s:
            self.failed_s.append((self._starts_s, self._ends_s, str(verdicts[0])))
        for time_s, verdict in zip(asked_s, verdicts, strict=True):
            if isinstance(verdict, str):
                self._samples += 1
                yield Found(time_s, None, "grid", lost=verdict)
        self._behind_cut = cut_follows

    def _verdict(self, now: Decoded | None, asked_s: float) -> Decoded | str:
        """The frame if it is what is on screen at a time, else why nothing is known of that time."""
        if now is not None and now.after_gap and _wanted_s(asked_s) < now.time_s:
            return f"frame_damaged: what precedes the frame at {now.time_s:.3f} s cannot be decoded"
        return judged(now, self._walk.gap_follows, _wanted_s(asked_s))

    def _take_asked(self) -> list[float]:
        """The times of the grid at which this frame is on screen."""
        taken = []
        while self._asked and _wanted_s(self._asked[0]) < self._walk.until_s:
            taken.append(self._asked.popleft())
        return taken

    def _sample(self, now: Decoded, cut_follows: bool) -> Found:
        kind: SampleKind = "after_cut" if self._behind_cut else "before_cut" if cut_follows else "grid"
        planes = planes_of(now.frame)
        same_as = next((index for index, known in self._references if look_same(known, planes)), None)
        if same_as is None:
            self._refer_to(self._samples, planes)
        self._samples += 1
        return Found(now.time_s, self._until_s(now), kind, same_as, now)

    def _refer_to(self, index: int, planes: Planes) -> None:
        size_bytes = sum(plane.size for plane in planes)
        while self._references and (len(self._references) + 1) * size_bytes > REFERENCE_BYTES:
            self._references.pop()
        self._references.appendleft((index, planes))

    def _until_s(self, now: Decoded) -> float | None:
        if self._walk.gap_follows:
            return None
        return max(now.time_s, self._plan.end_s) if self._walk.after is None else self._walk.until_s

    def _cut_follows(self) -> bool:
        """Whether a cut of this segment lies between this frame and the next, and its frames are to be samples."""
        now, after = self._walk.now, self._walk.after
        if not self._plan.cuts or now is None or after is None or after.after_gap or now.damaged or after.damaged:
            return False
        first_s = max(self._starts_s - SAME_FRAME_S, self._plan.start_s + SAME_FRAME_S)
        if not first_s <= after.time_s < self._ends_s - SAME_FRAME_S or not self._is_cut(now, after):
            return False
        if len(self.cuts_s) == MOST_CUTS:
            self.cuts_left_out += 1
            return False
        self.cuts_s.append(after.time_s)
        return True

    def _is_cut(self, now: Decoded, after: Decoded) -> bool:
        then = self._walk.then
        return is_cut(self._coarse(now), self._coarse(after), self._coarse(then) if then is not None else None)

    def _coarse(self, decoded: Decoded) -> Coarse:
        """Measured once for each frame."""
        known = next((measured for frame, measured in self._measured if frame is decoded), None)
        if known is None:
            known = coarse(planes_of(decoded.frame))
            self._measured.append((decoded, known))
        return known

    def _note_failure(self, now: Decoded) -> None:
        """Note what of this segment is lost with this frame, right behind it, or before it if it is the first."""
        if self._nothing_seen and now.after_gap:
            self._note_failed(self._starts_s, now.time_s, str(self._verdict(now, self._starts_s)))
        self._nothing_seen = False
        reason = judged(now, self._walk.gap_follows, self._walk.until_s)
        if isinstance(reason, str):
            self._note_failed(now.time_s, self._walk.until_s, reason)

    def _note_failed(self, start_s: float, end_s: float, reason: str) -> None:
        """Spans that touch are one."""
        start_s, end_s = max(start_s, self._starts_s), min(end_s, self._ends_s)
        if start_s >= end_s:
            return
        if self.failed_s and self.failed_s[-1][1] >= start_s - SAME_FRAME_S:
            start_s, _, reason = self.failed_s.pop()
        self.failed_s.append((start_s, end_s, reason))


def _wanted_s(asked_s: float) -> float:
    """Told times are rounded, and mean their frame."""
    return asked_s + SAME_FRAME_S / 2
