"""The time axis of a time line picture: from seconds to pixels, and the ticks below it. Knows no rows."""

from __future__ import annotations

import math

from PIL import ImageDraw

from sam2_mcp_worker.media.sheet_picture import FOOT_INK, tag_font

AXIS_PX = 34  # ticks and their words
EDGE_PX = 16  # free on the right, for half of the last tick's words
TICKS_AT_MOST = 12
TICK_STEPS_S = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 3600)
# A video of no length still has an axis.
SHORTEST_S = 1e-3


class TimeAxis:
    """The seconds `start_s` to `end_s` between the columns `left_px` and `right_px`."""

    def __init__(self, start_s: float, end_s: float, left_px: int, right_px: int) -> None:
        self.start_s = start_s
        self.end_s = max(end_s, start_s + SHORTEST_S)
        self._left = left_px
        self._width = max(1, right_px - left_px)

    def x(self, time_s: float) -> int:
        """The column of a time; times outside stand at the ends."""
        share = (min(max(time_s, self.start_s), self.end_s) - self.start_s) / (self.end_s - self.start_s)
        return self._left + round(share * self._width)

    def ticks(self) -> list[float]:
        """Round times inside, a dozen at most where that is less than one an hour."""
        length_s = self.end_s - self.start_s
        step = next((s for s in TICK_STEPS_S if length_s / s <= TICKS_AT_MOST), TICK_STEPS_S[-1])
        first = math.ceil(self.start_s / step - 1e-9)
        return [number * step for number in range(first, int(self.end_s / step + 1e-9) + 1)]

    def draw(self, pen: ImageDraw.ImageDraw, y: int) -> None:
        """The line with its ticks and times, `AXIS_PX` high from `y` on."""
        pen.line((self.x(self.start_s), y, self.x(self.end_s), y), fill=FOOT_INK)
        for time_s in self.ticks():
            x = self.x(time_s)
            pen.line((x, y, x, y + 5), fill=FOOT_INK)
            pen.text((x, y + 14), f"{time_s:g} s", fill=FOOT_INK, font=tag_font(12), anchor="mm")
