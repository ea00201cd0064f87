"""When something was on screen, told from single frames: intervals with their bounds, and verdicts that follow.

Owns what may be concluded from samples: between two samples that both show it and lie near one another, it is taken as
shown; between two that lie further apart, and between one that shows it and one that does not, it is possible; where
nothing is known, it is possible too. Refuses to know what was looked for, and how. Pure: numbers in, numbers out; times
are seconds on one clock.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["met", "not_met", "cannot_tell"]

# Differences of binary fractions: 2.3 - 1.3 is less than 1.
ROUNDING_S = 1e-6
# Between two samples that show it, nearer than this, it counts as surely shown: what is read is not taken away and put
# back in so short a time but in a flash. Over a longer time nothing is proven. Two steps of the default grid.
BRIDGED_S = 1.0
# A text of 12 px is measured as 11.1 to 12.9 (docs/performance.md): nearer to the minimum nothing is called too small.
HEIGHT_UNCERTAINTY_PX = 1.0


@dataclass(frozen=True, slots=True)
class Moment:
    """What one sampled frame tells of something: seen, not seen, or None where that is not known.

    The frame came on screen at `time_s` and stayed until `until_s`, when the next one came (None: not known).
    """

    time_s: float
    seen: bool | None
    until_s: float | None = None


@dataclass(frozen=True, slots=True)
class Stretch:
    """From `start_s` to `end_s`."""

    start_s: float
    end_s: float

    @property
    def length_s(self) -> float:
        """Its length in seconds."""
        return self.end_s - self.start_s


@dataclass(frozen=True, slots=True)
class Exposure:
    """One showing. It was seen first at `first_s` and last until `last_s`; no sample in between lacks it for sure. It
    began at `earliest_s` or later, and ended by `latest_s`.

    `surely` are the parts of `first_s` to `last_s` in which every sample shows it and none is further than BRIDGED_S
    from the next; between them it is only possible.
    Where a bound is exact (neighbouring frames, the beginning of the range), both values of that side are equal.
    `from_edge` and `to_edge` say that it touches the edge of the asked range, behind which it may go on.
    """

    earliest_s: float
    first_s: float
    last_s: float
    latest_s: float
    surely: tuple[Stretch, ...]
    from_edge: bool = False
    to_edge: bool = False


@dataclass(frozen=True, slots=True)
class Exposures:
    """All showings in a range, in order, and the stretches without any sighting in which it may have been shown.

    `blind_s` is the longest time between two neighbouring samples that both lack it: a showing that is shorter may
    have fallen between them.
    """

    shown: tuple[Exposure, ...] = ()
    possible: tuple[Stretch, ...] = ()
    blind_s: float = 0.0

    @property
    def surely_s(self) -> float:
        """Seconds it was on screen at least, all showings together."""
        return sum(part.length_s for exposure in self.shown for part in exposure.surely)

    @property
    def at_most_s(self) -> float:
        """Seconds it was on screen at most, but for showings between two samples that lack it."""
        shown = sum(exposure.latest_s - exposure.earliest_s for exposure in self.shown)
        return shown + sum(stretch.length_s for stretch in self.possible)

    @property
    def longest_surely_s(self) -> float:
        """The longest time without a break that it was surely shown."""
        return max((part.length_s for exposure in self.shown for part in exposure.surely), default=0.0)

    @property
    def longest_possible_s(self) -> float:
        """The longest time without a break that it may have been shown, `blind_s` included."""
        shown = (exposure.latest_s - exposure.earliest_s for exposure in self.shown)
        return max([*shown, *(stretch.length_s for stretch in self.possible), self.blind_s])


@dataclass(frozen=True, slots=True)
class Check:
    """A measured value beside the minimum of a rule. `measured` is None where there is nothing to measure.

    For a time, `measured` is what is sure and `possible` what it may be at most.
    """

    rule: Literal["min_exposure_s", "min_text_height_px", "min_text_height_share"]
    minimum: float
    measured: float | None
    verdict: Verdict
    reason: str = ""
    possible: float | None = None


def exposures_of(moments: Sequence[Moment], asked: Stretch, unknown: Sequence[Stretch] = ()) -> Exposures:
    """The showings that samples tell of.

    Args:
        moments: what each sample tells, rising by time, none longer than until the next one. The first may be before
            the range (the frame that was on screen when it began), the last may stay longer.
        asked: the range.
        unknown: stretches of which nothing is known (they failed, were not reached, or have cuts that were not looked
            at), in any order.
    """
    gaps = _Gaps(moments, asked, unknown)
    shown: list[Exposure] = []
    possible: list[Stretch] = []
    start = 0
    for end in [*(index for index, moment in enumerate(moments) if moment.seen is False), len(moments)]:
        between = Stretch(gaps.starts[start], gaps.ends[end])
        surely = _surely(moments, gaps, start, end)
        if surely:
            first_s, last_s = surely[0].start_s, surely[-1].end_s
            edges = start == 0, end == len(moments)
            shown.append(Exposure(between.start_s, first_s, last_s, between.end_s, tuple(surely), *edges))
        elif (end > start or gaps.unknown[end]) and between.length_s > ROUNDING_S:
            possible.append(between)
        start = end + 1
    return Exposures(tuple(shown), tuple(possible), _blind_s(moments, gaps))


class _Gaps:
    """The stretches in which nothing was sampled: gap i before sample i, the last one behind the last sample.

    `unknown` says of which not even that is known that nothing happened to the video there.
    """

    def __init__(self, moments: Sequence[Moment], asked: Stretch, unknown: Sequence[Stretch]) -> None:
        lefts = [moment.time_s if moment.until_s is None else moment.until_s for moment in moments]
        self.starts = [asked.start_s, *lefts]
        self.ends = [*(moment.time_s for moment in moments), asked.end_s]
        self.ends[0] = max(self.ends[0], asked.start_s)
        self.starts[-1] = min(max(self.starts[-1], asked.start_s), asked.end_s)
        self.starts[1:2] = [max(start_s, asked.start_s) for start_s in self.starts[1:2]]
        self.unknown = [not moments] * len(self.ends)
        for stretch in unknown:
            first = bisect.bisect_left(self.ends, stretch.start_s + ROUNDING_S)
            for index in range(first, len(self.ends)):
                if self.starts[index] > stretch.end_s - ROUNDING_S:
                    break
                self.unknown[index] |= self.ends[index] - self.starts[index] > ROUNDING_S

    def bridged(self, index: int) -> bool:
        """Whether what both neighbours of the gap show was there all the time."""
        return not self.unknown[index] and self.ends[index] - self.starts[index] <= BRIDGED_S + ROUNDING_S


def _surely(moments: Sequence[Moment], gaps: _Gaps, start: int, end: int) -> list[Stretch]:
    """The parts of samples `start` to `end` (exclusive) in which every sample shows it, without long gaps."""
    parts: list[Stretch] = []
    begun_s: float | None = None
    for index in range(start, end):
        if not moments[index].seen:
            continue
        begun_s = gaps.ends[index] if begun_s is None else begun_s
        goes_on = index + 1 < end and moments[index + 1].seen and gaps.bridged(index + 1)
        if not goes_on:
            parts.append(Stretch(begun_s, gaps.starts[index + 1]))
            begun_s = None
    return parts


def _blind_s(moments: Sequence[Moment], gaps: _Gaps) -> float:
    """The longest gap both of whose neighbours lack it; an edge of the range is taken as one that does."""
    lacks = [True, *(moment.seen is False for moment in moments), True]
    blind = (
        end_s - start_s
        for start_s, end_s, before, behind in zip(gaps.starts, gaps.ends, lacks[:-1], lacks[1:], strict=True)
        if before and behind
    )
    return max(blind, default=0.0) if moments else 0.0


def minimum_time(exposures: Exposures, minimum_s: float) -> Check:
    """Whether one showing lasts `minimum_s` without a break. What is only possible neither meets it nor fails it."""
    surely, possible = exposures.longest_surely_s, exposures.longest_possible_s
    verdict: Verdict = "cannot_tell"
    reason = ""
    if surely >= minimum_s - ROUNDING_S:
        verdict = "met"
    elif possible < minimum_s - ROUNDING_S:
        verdict = "not_met"
    else:
        reason = f"{surely:.2f} s are sure, {possible:.2f} s possible"
    return Check("min_exposure_s", minimum_s, surely, verdict, reason, possible)


def minimum_height(height_px: float, minimum_px: float) -> Check:
    """Whether text is as high as asked, in pixels."""
    verdict, reason = _height_verdict(height_px, minimum_px)
    return Check("min_text_height_px", minimum_px, height_px, verdict, reason)


def minimum_height_share(height_px: float, frame_height_px: int, minimum_share: float) -> Check:
    """Whether text is as high as asked, as a share of the frame's height."""
    verdict, reason = _height_verdict(height_px, minimum_share * frame_height_px)
    return Check("min_text_height_share", minimum_share, height_px / frame_height_px, verdict, reason)


def _height_verdict(height_px: float, minimum_px: float) -> tuple[Verdict, str]:
    if height_px >= minimum_px - ROUNDING_S:
        return "met", ""
    if height_px <= minimum_px - HEIGHT_UNCERTAINTY_PX:
        return "not_met", ""
    return "cannot_tell", f"{height_px:.1f} px is within {HEIGHT_UNCERTAINTY_PX:g} px of the minimum"


def overlap(exposures: Exposures, spoken: Stretch) -> tuple[float, float]:
    """Seconds of `spoken` during which it is surely, and during which it may be on screen."""
    surely = sum(_common_s(part, spoken) for exposure in exposures.shown for part in exposure.surely)
    spans = [Stretch(exposure.earliest_s, exposure.latest_s) for exposure in exposures.shown]
    return surely, sum(_common_s(span, spoken) for span in [*spans, *exposures.possible])


def spoken_while_shown(exposures: Exposures, spoken: Stretch, minimum_share: float = 0.5) -> Verdict:
    """Whether it is on screen for at least `minimum_share` of the time in which something is said."""
    surely, possible = overlap(exposures, spoken)
    needed = minimum_share * spoken.length_s - ROUNDING_S
    if surely >= needed:
        return "met"
    return "cannot_tell" if possible >= needed else "not_met"


def _common_s(one: Stretch, other: Stretch) -> float:
    return max(0.0, min(one.end_s, other.end_s) - max(one.start_s, other.start_s))
