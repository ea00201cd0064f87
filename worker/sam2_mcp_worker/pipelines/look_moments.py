"""From the looks at a video to the samples that exposures are made of, whole or for the few looks that matter.

Owns what a look may say about something it does not show: nothing where it failed, or where ink was seen and not read.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence

from sam2_mcp_worker.checks.exposure import Exposures, Moment, Stretch, exposures_of
from sam2_mcp_worker.engines.ports import Box
from sam2_mcp_worker.pipelines.frame_looks import FrameLook, VideoLooks

# Unread ink hides a line when it lies on this part of the line's place.
_HIDDEN_SHARE = 0.3


class LookMoments:
    """The looks as samples, and what is unknown between them. Looks are named by their index."""

    def __init__(self, looks: VideoLooks) -> None:
        self._looks = looks.looks
        self._asked = Stretch(looks.asked.start_s, looks.asked.end_s)
        self._until_s = _until_s(looks.looks)
        spans = sorted((span.start_s, span.end_s) for span in (*looks.failed, *looks.unreached, *looks.restless))
        self._unknown = [Stretch(start_s, end_s) for start_s, end_s in spans]
        self._unknown_starts = [stretch.start_s for stretch in self._unknown]

    def exposures(self, seen: Sequence[bool | None]) -> Exposures:
        """Exposures of something of which look i says `seen[i]`."""
        return exposures_of(self._moments(seen, 0), self._asked, self._unknown)

    def exposures_within(self, seen: Sequence[bool | None], first: int) -> Exposures:
        """The same of the looks from `first` on only: what is outside those at the ends that lack it, is left out."""
        moments = self._moments(seen, first)
        start_s = moments[0].time_s if moments[0].seen is False else self._asked.start_s
        end_s = moments[-1].time_s if moments[-1].seen is False else self._asked.end_s
        return exposures_of(moments, Stretch(start_s, end_s), self._unknown_within(start_s, end_s))

    def _moments(self, seen: Sequence[bool | None], first: int) -> list[Moment]:
        looks = self._looks[first : first + len(seen)]
        untils_s = self._until_s[first : first + len(seen)]
        return [Moment(look.time_s, value, until_s) for look, value, until_s in zip(looks, seen, untils_s, strict=True)]

    def window(self, first: int, last: int, unknown: Callable[[FrameLook], bool]) -> range:
        """The looks that bound a showing seen first and last in these: up to the nearest ones that lack it for sure."""
        while first > 0:
            first -= 1
            if not unknown(self._looks[first]):
                break
        while last < len(self._looks) - 1:
            last += 1
            if not unknown(self._looks[last]):
                break
        return range(first, last + 1)

    def _unknown_within(self, start_s: float, end_s: float) -> Sequence[Stretch]:
        first = max(0, bisect.bisect_left(self._unknown_starts, start_s) - 1)
        return self._unknown[first : bisect.bisect_left(self._unknown_starts, end_s)]


def hides(look: FrameLook, box: Box) -> bool:
    """Whether a line at this place could have been missed in the look."""
    if look.failed or look.partly:
        return True
    area = (box[2] - box[0]) * (box[3] - box[1])
    return any(_common_area(ink, box) >= _HIDDEN_SHARE * area for ink in look.undetected_ink)


def _common_area(one: Box, other: Box) -> int:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(0, width) * max(0, height)


def _until_s(looks: Sequence[FrameLook]) -> list[float | None]:
    """Until when each frame was on screen. The frame behind a cut came right after that of the look before it."""
    untils = [look.until_s for look in looks]
    for index in range(1, len(looks)):
        before, time_s = untils[index - 1], looks[index].time_s
        if looks[index].kind == "after_cut" or (before is not None and before > time_s):
            untils[index - 1] = time_s
    return untils
