"""One stretch of sound: who speaks in it, what is damaged, and how loud it is. Knows no file.

Positions are samples of the file's time line, which counts at 16 kHz from its zero.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from sam2_mcp_worker.media import sound_cuts
from sam2_mcp_worker.media.sound_cuts import FRAME_SAMPLES
from sam2_mcp_worker.media.sound_packets import Samples
from sam2_mcp_worker.media.sound_reader import Damage

# What no 16-bit sample is quieter than, apart from silence itself.
_FLOOR_DBFS = -100.0


class Stretch:
    """Sound from one edge to the next, and who speaks in it."""

    def __init__(self, first: int, samples: Samples, voice: list[float], damaged: list[Damage], begins: int) -> None:
        self.first = first
        self.end = first + len(samples)
        self.goes_on = False
        self.damaged = _on_frames(damaged, first, self.end)
        self._samples = samples
        self._voice = voice
        self._levels = levels_dbfs(samples, FRAME_SAMPLES)
        self._begins = min(max(begins, first), self.end)

    def pieces(self) -> list[tuple[int, int]]:
        """Spans to be heard, none of which holds damage."""
        return [span for start, end in self._whole() for span in self._cut(start, end)]

    def silent(self) -> list[tuple[int, int]]:
        """All that is neither in a piece nor damaged; what lies before the sound begins is a span of its own."""
        taken = [*self.pieces(), *((start, end) for start, end, _ in self.damaged)]
        edges = sorted([(self.first, self.first), *taken, (self.end, self.end)])
        spans = [(before[1], after[0]) for before, after in pairwise(edges) if before[1] < after[0]]
        cut = self._begins
        return [part for a, b in spans for part in ((a, min(b, cut)), (max(a, cut), b)) if part[0] < part[1]]

    def loudness(self, start: int, end: int) -> float | None:
        """Mean level; None before the sound begins."""
        return None if end <= self._begins else dbfs(self.samples(start, end))

    def samples(self, start: int, end: int) -> Samples:
        """The sound of a span."""
        return self._samples[start - self.first : end - self.first]

    def _whole(self) -> list[tuple[int, int]]:
        edges = [(self.first, self.first), *((start, end) for start, end, _ in self.damaged), (self.end, self.end)]
        return [(before[1], after[0]) for before, after in pairwise(edges) if before[1] < after[0]]

    def _cut(self, start: int, end: int) -> list[tuple[int, int]]:
        frames = slice((start - self.first) // FRAME_SAMPLES, -(-(end - self.first) // FRAME_SAMPLES))
        found = sound_cuts.pieces(self._voice[frames], self._levels[frames])
        return [(start + a * FRAME_SAMPLES, min(start + b * FRAME_SAMPLES, end)) for a, b in found]


def levels_dbfs(samples: Samples, step: int) -> list[float]:
    """The mean level of each `step` samples; the last ones may be fewer."""
    starts = np.arange(0, len(samples), step)
    power = np.add.reduceat(np.square(samples.astype(np.float64)), starts) / np.diff([*starts, len(samples)])
    return [_in_db(float(value)) for value in power]


def dbfs(samples: Samples) -> float:
    """The mean level: RMS, 0 is that of a square wave at full scale."""
    return _in_db(float(np.square(samples.astype(np.float64)).mean()))


def _in_db(power: float) -> float:
    return round(max(_FLOOR_DBFS, 10 * float(np.log10(max(power, 1e-9) / 32768.0**2))), 1)


def _on_frames(damaged: list[Damage], first: int, end: int) -> list[Damage]:
    """Damage within [first, end) widened to whole frames of the stretch, those that touch made one."""
    widened: list[Damage] = []
    for start, stop, reason in sorted(damaged):
        start = first + max(0, start - first) // FRAME_SAMPLES * FRAME_SAMPLES
        stop = min(end, first - (first - stop) // FRAME_SAMPLES * FRAME_SAMPLES)
        start = max(start, widened[-1][1]) if widened else start
        if start >= stop:
            continue
        if widened and widened[-1][1:] == (start, reason):
            widened[-1] = (widened[-1][0], stop, reason)
        else:
            widened.append((start, stop, reason))
    return widened
