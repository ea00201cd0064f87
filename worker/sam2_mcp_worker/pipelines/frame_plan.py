"""Which frames of a video are tracked, and how many of them fit. Pure: knows neither videos nor engines nor a clock.

Frames are named by their index in `times_s`, the rising presentation times of all frames of the video, so every time
that a result states is that of a real frame.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean

# Results state times in milliseconds: a time that was rounded down must find its own frame again.
TIME_TOLERANCE_S = 0.0005
# The pace follows the last steps only, so that a machine that has become busy, or free again, is noticed at once.
RECENT_STEPS = 3
# The first frame shows what a picture costs, the second what the memory of earlier ones adds: then the plan stands.
_FREELY_CHOSEN = 2


def frames_between(times_s: Sequence[float], start_s: float, end_s: float) -> range:
    """The frame on screen at `start_s` and all that come on screen until `end_s`; at least one frame.

    Args:
        times_s: not empty.
    """
    first = max(0, bisect_right(times_s, start_s + TIME_TOLERANCE_S) - 1)
    last = max(first, bisect_right(times_s, end_s + TIME_TOLERANCE_S) - 1)
    return range(first, last + 1)


def choose_even(times_s: Sequence[float], candidates: Sequence[int], count: int) -> list[int]:
    """`count` of the candidates, evenly in time, the first and the last among them (one: the first).

    All of them when there are no more; none for a count below 1.
    """
    if count >= len(candidates):
        return list(candidates)
    if count <= 1:
        return list(candidates[: max(0, count)])
    known = [times_s[index] for index in candidates]
    step_s = (known[-1] - known[0]) / (count - 1)
    chosen = [0]
    for number in range(1, count - 1):
        # Every later one still needs a candidate of its own, also where the times lie unevenly.
        low, high = chosen[-1] + 1, len(candidates) - (count - number)
        chosen.append(_nearest(known, known[0] + number * step_s, low, high))
    return [candidates[place] for place in (*chosen, len(candidates) - 1)]


def _nearest(known: Sequence[float], time_s: float, low: int, high: int) -> int:
    after = bisect_left(known, time_s, low, high)
    if after > low and time_s - known[after - 1] <= known[after] - time_s:
        return after - 1
    return after


def choose_spaced(times_s: Sequence[float], candidates: Sequence[int], every_s: float) -> list[int]:
    """The candidates on screen at the first one's time and every `every_s` after it, each once.

    Below a millisecond a spacing is all frames: their times are not told more exactly.
    """
    known = [times_s[index] for index in candidates]
    every_s = max(every_s, 2 * TIME_TOLERANCE_S)
    chosen, number = [0], 1
    while (wanted_s := known[0] + number * every_s - TIME_TOLERANCE_S) <= known[-1]:
        place = bisect_left(known, wanted_s)
        # The frame on screen then is the last that is not later; one that comes within the tolerance counts as it.
        place = place if known[place] <= wanted_s + 2 * TIME_TOLERANCE_S else place - 1
        if place > chosen[-1]:
            chosen.append(place)
            number += 1
        elif place + 1 == len(known):
            break
        else:  # frames further apart than asked for: on to the first wish behind the next frame
            number = max(number + 1, int((known[place + 1] - known[0]) / every_s))
    return [candidates[place] for place in chosen]


def between(times_s: Sequence[float], candidates: Sequence[int], taken: Sequence[int]) -> list[int]:
    """One candidate in each gap of `taken`, the one nearest to the gap's middle in time; none where none is left."""
    known = [times_s[index] for index in candidates]
    found = []
    for left, right in itertools.pairwise(taken):
        low, high = bisect_right(candidates, left), bisect_left(candidates, right)
        if low < high:
            found.append(candidates[_nearest(known, (times_s[left] + times_s[right]) / 2, low, high - 1)])
    return found


@dataclass(slots=True)
class Pace:
    """Seconds that a frame takes on this machine, as it just showed.

    Steps become slower until the memory of earlier frames is full: after `full_after` steps one takes `growth` times
    as long as the first.
    """

    growth: float = 1.0
    full_after: int = 1
    start_s: float | None = None
    steps_s: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        steps = self.steps_s
        shown = f", steps {steps[0]:.2f} s at first and {fmean(steps[-RECENT_STEPS:]):.2f} s at last" if steps else ""
        return f"{len(steps)} steps, begun in {self.start_s or 0.0:.2f} s{shown}"

    def add(self, seconds: float) -> None:
        """Note the time of the frame on which a session began or, after that, of a step."""
        if self.start_s is None:
            self.start_s = seconds
        else:
            self.steps_s.append(seconds)

    @property
    def frame_s(self) -> float:
        """Seconds that each coming frame will take; 0 as long as nothing is known."""
        seen_s = fmean(self.steps_s[-RECENT_STEPS:]) if self.steps_s else self.start_s or 0.0
        still_to_fill = max(0.0, 1 - max(0, len(self.steps_s) - 1) / self.full_after)
        return seen_s * (1 + (self.growth - 1) * still_to_fill)

    def fitting(self, remaining_s: float, most: int) -> int:
        """How many frames fit into the remaining time, at most `most`."""
        frame_s = self.frame_s
        return most if frame_s * most <= remaining_s else int(remaining_s / frame_s)


@dataclass(slots=True)
class Plan:
    """The frames of a propagation after `current`, which is tracked already; `ahead` are those that are to come.

    With a given spacing the pool is the plan. Without one (`adaptive`) the next two frames are chosen from the pace of
    those before them, and with the second of them all others; from then on a slower pace thins what remains, evenly,
    and nothing is added.

    Args:
        times_s: times of all frames of the video.
        pool: indices to choose from, rising, behind `current`.
    """

    times_s: Sequence[float]
    pool: Sequence[int]
    adaptive: bool
    current: int
    ahead: list[int] = field(init=False)
    _chosen: list[int] = field(init=False)
    _taken: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.ahead = self._chosen = list(self.pool)

    @property
    def certain(self) -> list[int]:
        """The frames among which `take` will stay: worth reading ahead. Empty as long as the plan does not stand."""
        stands = not self.adaptive or self._taken >= _FREELY_CHOSEN
        return self._coming(self._chosen) if stands else []

    def take(self, fitting: int) -> int | None:
        """The frame to track next when `fitting` more fit; None when none fits or none is left."""
        if fitting < 1 or not self.ahead:
            return None
        if self.adaptive and self._taken < _FREELY_CHOSEN:
            self.ahead = self._chosen = self._evenly(self.pool, fitting)
        elif self.adaptive and fitting < len(self.ahead):
            # From the whole plan, not from what an earlier slowness left of it: thinned twice is not even.
            self.ahead = self._evenly(self._chosen, fitting)
        self.current = self.ahead[0]
        self.ahead = self.ahead[1:]
        self._taken += 1
        return self.current

    def _coming(self, frames: Sequence[int]) -> list[int]:
        return list(frames[bisect_right(frames, self.current) :])

    def _evenly(self, candidates: Sequence[int], count: int) -> list[int]:
        return choose_even(self.times_s, [self.current, *self._coming(candidates)], count + 1)[1:]
