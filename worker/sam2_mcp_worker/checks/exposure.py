"""When something was on screen, told from single frames: intervals with their bounds, and verdicts that follow.

Owns what may be concluded from samples: between two samples that both show it, it is taken as shown; between one that
shows it and one that does not, it is possible; where nothing is known, it is possible too. Refuses to know what was
looked for, and how. Pure: numbers in, numbers out; times are seconds on one clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["met", "not_met", "cannot_tell"]

# Differences of binary fractions: 2.3 - 1.3 is less than 1.
ROUNDING_S = 1e-6
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
    """One showing. It was seen from `first_s` to `last_s`; it began at `earliest_s` or later, ended by `latest_s`.

    `surely` are the parts of `first_s` to `last_s` in which every sample shows it; between them nothing is known.
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
        moments: what each sample tells, rising by time.
        asked: the range; a first sample before it is the frame that was on screen when it began.
        unknown: stretches of which nothing is known (they failed, or were not reached), in any order.
    """
    gaps = _gaps(moments, asked)
    open_gaps = _unknown_gaps(gaps, sorted(unknown, key=lambda stretch: stretch.start_s)) if moments else [True]
    shown: list[Exposure] = []
    possible: list[Stretch] = []
    start = 0
    for end in [*(index for index, moment in enumerate(moments) if moment.seen is False), len(moments)]:
        between = Stretch(gaps[start].start_s, gaps[end].end_s)
        surely = _surely(moments, gaps, open_gaps, start, end)
        if surely:
            from_edge, to_edge = start == 0, end == len(moments)
            shown.append(_exposure(between, surely, from_edge, to_edge))
        elif (end > start or open_gaps[end]) and between.length_s > ROUNDING_S:
            possible.append(between)
        start = end + 1
    return Exposures(tuple(shown), tuple(possible), _blind_s(moments, gaps))


def _gaps(moments: Sequence[Moment], asked: Stretch) -> list[Stretch]:
    """The stretches in which nothing was sampled: before each sample, and behind the last."""
    begins = [asked.start_s, *(_left_s(moment) for moment in moments)]
    ends = [*(moment.time_s for moment in moments), asked.end_s]
    return [
        Stretch(_clipped(one, asked), _clipped(max(one, two), asked)) for one, two in zip(begins, ends, strict=True)
    ]


def _left_s(moment: Moment) -> float:
    """Until when its frame was on screen, as far as that is known."""
    return moment.time_s if moment.until_s is None else moment.until_s


def _unknown_gaps(gaps: Sequence[Stretch], unknown: Sequence[Stretch]) -> list[bool]:
    """For each gap, whether something of it is unknown. Both rise by time."""
    found: list[bool] = []
    position = 0
    for gap in gaps:
        while position < len(unknown) and unknown[position].end_s <= gap.start_s + ROUNDING_S:
            position += 1
        found.append(position < len(unknown) and unknown[position].start_s < gap.end_s - ROUNDING_S)
    return found


def _surely(
    moments: Sequence[Moment], gaps: Sequence[Stretch], open_gaps: Sequence[bool], start: int, end: int
) -> list[Stretch]:
    """The parts of samples `start` to `end` (exclusive) in which every sample shows it."""
    parts: list[Stretch] = []
    goes_on = False
    for index in range(start, end):
        if not moments[index].seen:
            goes_on = False
            continue
        begin_s = parts.pop().start_s if goes_on else gaps[index].end_s
        parts.append(Stretch(begin_s, gaps[index + 1].start_s))
        goes_on = not open_gaps[index + 1]
    return parts


def _exposure(between: Stretch, surely: Sequence[Stretch], from_edge: bool, to_edge: bool) -> Exposure:
    first_s, last_s = surely[0].start_s, surely[-1].end_s
    return Exposure(between.start_s, first_s, last_s, between.end_s, tuple(surely), from_edge, to_edge)


def _blind_s(moments: Sequence[Moment], gaps: Sequence[Stretch]) -> float:
    """The longest gap both of whose neighbours lack it; an edge of the range is taken as one that does."""
    lacks = [True, *(moment.seen is False for moment in moments), True]
    blind = (gap.length_s for gap, before, behind in zip(gaps, lacks[:-1], lacks[1:], strict=True) if before and behind)
    return max(blind, default=0.0) if moments else 0.0


def _clipped(time_s: float, asked: Stretch) -> float:
    return min(max(time_s, asked.start_s), asked.end_s)


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
