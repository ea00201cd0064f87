"""The arithmetic of schedules: how soon pieces of work of known length can be over with so many of them at once."""

from __future__ import annotations

import heapq
from collections.abc import Iterable


def list_schedule_s(lengths_s: Iterable[float], slots: int) -> float:
    """When the last piece ends if each begins, in the given order, as soon as a slot is free (a list schedule)."""
    free_at_s = [0.0] * slots
    end_s = 0.0
    for length_s in lengths_s:
        ended_s = heapq.heappop(free_at_s) + length_s
        heapq.heappush(free_at_s, ended_s)
        end_s = max(end_s, ended_s)
    return end_s


def busy_share(spans_s: Iterable[tuple[float, float]], slots: int) -> float:
    """Share of the slots' time, from the first beginning to the last end, in which they were held."""
    spans = list(spans_s)
    if not spans:
        return 0.0
    wall_s = max(end for _, end in spans) - min(start for start, _ in spans)
    return sum(end - start for start, end in spans) / (slots * wall_s) if wall_s > 0 else 1.0
