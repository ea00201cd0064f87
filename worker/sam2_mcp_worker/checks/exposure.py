"""When something was on screen, told from single frames: intervals with their bounds, and verdicts that follow.

Owns what may be concluded from samples: between two samples that both show it, it is taken as shown; between one that
shows it and one that does not, it is possible; where nothing is known, it is possible too. Refuses to know what was
looked for, and how. Pure: numbers in, numbers out; times are seconds on one clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["met", "not_met", "cannot_tell"]


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
        """The longest time without a break that it may have been shown."""
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
