"""Gives single frames of a video in rising order, read ahead as far as the plan stands.

Reading ahead is cheap within one decoding run, and starting a run is not: so a run is begun with all frames that are
likely to come, and those that the plan dropped meanwhile are passed over.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path

from sam2_mcp_worker.media.video import LostFrame, VideoFrame

Found = VideoFrame | LostFrame
Read = Callable[[list[int]], AsyncGenerator[Found, None]]
"""Begins a decoding run over frames by index, rising."""


class FrameFeed:
    """Frames on request; a context manager that ends the last run."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._run: AsyncGenerator[Found, None] | None = None
        self._coming: list[int] = []

    async def get(self, index: int, likely: Sequence[int]) -> Found:
        """The frame `index`. Its file lives until the next one is asked for.

        Args:
            index: above all that were asked for since the feed was made.
            likely: which ones will be asked for next, as far as that is known; rising.

        Raises:
            WorkerError: the video cannot be read.
        """
        if self._run is None or index not in self._coming:
            await self.close()
            self._coming = [index, *likely]
            self._run = self._read(list(self._coming))
        while True:
            found = await anext(self._run)
            if self._coming.pop(0) == index:
                return found
            if isinstance(found, VideoFrame) and found.thumbnail is not None:
                _remove(found.thumbnail.path)

    async def close(self) -> None:
        """End the run; what it was decoding is stopped."""
        if self._run is not None:
            await self._run.aclose()
        self._run, self._coming = None, []


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
