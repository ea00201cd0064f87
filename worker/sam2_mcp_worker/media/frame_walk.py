"""Stands at one frame of an open video and goes on to later ones: one by one, or by a seek where that saves work.

Owns which frame is on screen at a time. It refuses to know what is done with frames.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from sam2_mcp_worker.media.video_reader import Decoded, VideoReader


class FrameWalk:
    """The frame `now`, on screen until `after` comes, and `then` the one behind that.

    All None: nothing of the video can be decoded.
    """

    def __init__(self, reader: VideoReader) -> None:
        self._reader = reader
        self._frames: Iterator[Decoded] = iter(())
        self.now: Decoded | None = None
        self.after: Decoded | None = None
        self.then: Decoded | None = None

    @property
    def until_s(self) -> float:
        """When the next frame comes on screen; infinite behind the last one."""
        return self.after.time_s if self.after is not None else math.inf

    @property
    def gap_follows(self) -> bool:
        """Whether something right behind `now` could not be read."""
        return self.after.after_gap if self.after is not None else self._reader.ends_damaged

    def reach(self, time_s: float) -> Iterator[None]:
        """Go to the frame on screen at a time (before the first frame it is the first). Yields for each frame decoded,
        so that a long way can be interrupted.
        """
        if self.now is None or self.now.time_s > time_s or self._reader.keyframe_between(self.until_s, time_s):
            self._begin(time_s)
            yield
        while self.until_s <= time_s:
            self.advance()
            yield

    def advance(self) -> None:
        """Go on by one frame; there must be one."""
        self.now, self.after = self.after, self.then
        self.then = next(self._frames, None)

    def _begin(self, time_s: float) -> None:
        self.now = self.after = self.then = None  # their memory goes to the next ones
        self._frames = self._reader.frames(time_s)
        self.now, self.after, self.then = (next(self._frames, None) for _ in range(3))
