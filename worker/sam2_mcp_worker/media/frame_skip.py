"""Which packets of a video need not be decoded when only the frames on screen at times of a grid are asked for. Pure.

Only packets are passed over on which no other frame builds, so it is for the decoder to say which those are; here it
is decided for each packet, in the order in which they are stored, whether its frame could be asked for.
"""

from __future__ import annotations

import math
from bisect import bisect_right, insort

# Frames are stored at most 16 places from where they are shown (H.264, HEVC); older times do not matter any more.
_KNOWN_FRAMES = 64


class GridSkip:
    """Knows the frames that were stored before the one in question.

    A frame is not needed if a later one is on screen by the next time of the grid, and if another one came between the
    last time of the grid and it: so what is on screen is always decoded, and what ends it as well.
    """

    def __init__(self, start_s: float, interval_s: float, same_frame_s: float) -> None:
        self._start_s = start_s + same_frame_s / 2  # told times are rounded, and mean their frame
        self._interval_s = interval_s
        self._known_s: list[float] = []

    def see(self, time_s: float) -> bool:
        """Whether the frame of this packet is surely not needed."""
        known = self._known_s
        number = math.ceil((time_s - self._start_s) / self._interval_s)
        next_s = self._start_s + max(0, number) * self._interval_s
        last_s = self._start_s + (number - 1) * self._interval_s if number > 0 else -math.inf
        place = bisect_right(known, time_s)
        not_asked = place < len(known) and known[place] <= next_s
        ends_nothing = number <= 0 or (place > 0 and last_s < known[place - 1] < time_s)
        insort(known, time_s)
        del known[: max(0, len(known) - _KNOWN_FRAMES)]
        return not_asked and ends_nothing
