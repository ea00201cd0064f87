"""When something was on screen, told from single frames: intervals with their bounds, and verdicts that follow.

Owns what may be concluded from samples: between two samples that both show it, it is taken as shown; between one that
shows it and one that does not, it is possible; where nothing is known, it is possible too. Refuses to know what was
looked for, and how. Pure: numbers in, numbers out; times are seconds on one clock.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
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

    `cut` says that the frame is the last before a cut or the first behind one.
    """

    time_s: float
    seen: bool | None
    cut: Literal["", "before", "after"] = ""


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
    Where a bound is exact (a cut, the beginning of the range), both values of that side are equal. `from_edge` and
    `to_edge` say that it touches the edge of the asked range, behind which it may go on.
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
    shown: list[Exposure] = []
    possible: list[Stretch] = []
    for run in _runs(moments, asked, sorted(unknown, key=lambda stretch: stretch.start_s)):
        exposure = _exposure(run, asked)
        if exposure is not None:
            shown.append(exposure)
        elif run.latest_s - run.earliest_s > ROUNDING_S:
            possible.append(Stretch(run.earliest_s, run.latest_s))
    return Exposures(tuple(shown), tuple(possible), _blind_s(moments, asked))


@dataclass(frozen=True, slots=True)
class _Run:
    """Neighbouring samples of which none is known to lack it, and where that ends on both sides."""

    earliest_s: float
    latest_s: float
    moments: Sequence[Moment]
    sure_ends: tuple[float | None, ...]  # until when sample i surely lasts when it shows it; None: until the next one
    from_edge: bool
    to_edge: bool


def _runs(moments: Sequence[Moment], asked: Stretch, unknown: Sequence[Stretch]) -> Iterator[_Run]:
    """Cut the samples at those that lack it. Stretches of which nothing is known count as samples that tell nothing."""
    gaps = _unknown_gaps(moments, asked, unknown)
    start = 0
    for end in [index for index, moment in enumerate(moments) if moment.seen is False] + [len(moments)]:
        if end > start or gaps[end]:
            yield _run(moments, asked, gaps, start, end)
        start = end + 1


def _run(moments: Sequence[Moment], asked: Stretch, gaps: Sequence[bool], start: int, end: int) -> _Run:
    """The run of samples `start` to `end` (exclusive)."""
    inside = moments[start:end]
    earliest = asked.start_s
    if start > 0:
        exact = bool(inside) and _is_cut(moments[start - 1], inside[0])
        earliest = inside[0].time_s if exact else moments[start - 1].time_s
    latest = moments[end].time_s if end < len(moments) else asked.end_s
    ends: list[float | None] = []
    for index in range(start, end):
        following = moments[index + 1] if index + 1 < len(moments) else None
        if following is not None and _is_cut(moments[index], following):
            ends.append(following.time_s)
        elif following is not None and following.seen and not gaps[index + 1]:
            ends.append(None)
        else:
            ends.append(moments[index].time_s)
    at_end = end == len(moments)
    return _Run(_clipped(earliest, asked), _clipped(latest, asked), inside, tuple(ends), start == 0, at_end)


def _exposure(run: _Run, asked: Stretch) -> Exposure | None:
    surely: list[Stretch] = []
    start_s: float | None = None
    for moment, end_s in zip(run.moments, run.sure_ends, strict=True):
        if not moment.seen:
            start_s = None
            continue
        start_s = moment.time_s if start_s is None else start_s
        if end_s is not None:
            part = Stretch(_clipped(start_s, asked), _clipped(end_s, asked))
            if surely and surely[-1].end_s == part.start_s:
                part = Stretch(surely.pop().start_s, part.end_s)
            surely.append(part)
            start_s = None
    if not surely:
        return None
    return Exposure(
        earliest_s=run.earliest_s,
        first_s=surely[0].start_s,
        last_s=surely[-1].end_s,
        latest_s=run.latest_s,
        surely=tuple(surely),
        from_edge=run.from_edge,
        to_edge=run.to_edge,
    )


def _is_cut(one: Moment, following: Moment) -> bool:
    """Whether the two are neighbouring frames: the first stays on screen until the second."""
    return one.cut == "before" and following.cut == "after"


def _unknown_gaps(moments: Sequence[Moment], asked: Stretch, unknown: Sequence[Stretch]) -> list[bool]:
    """For the gap before each sample, and for the one behind the last: whether something of it is unknown."""
    edges = [asked.start_s, *(moment.time_s for moment in moments), asked.end_s]
    gaps: list[bool] = []
    position = 0
    for index in range(len(edges) - 1):
        start_s, end_s = max(edges[index], asked.start_s), edges[index + 1]
        while position < len(unknown) and unknown[position].end_s <= start_s:
            position += 1
        gaps.append(position < len(unknown) and unknown[position].start_s < end_s - ROUNDING_S)
    if not moments:
        gaps[0] = True
    return gaps


def _blind_s(moments: Sequence[Moment], asked: Stretch) -> float:
    """The longest gap beside samples that lack it, the edges of the range included."""
    if not moments:
        return 0.0
    edges = [Moment(asked.start_s, False), *moments, Moment(asked.end_s, False)]
    blind = 0.0
    for one, following in itertools.pairwise(edges):
        if one.seen is False and following.seen is False and not _is_cut(one, following):
            blind = max(blind, following.time_s - max(one.time_s, asked.start_s))
    return blind


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
