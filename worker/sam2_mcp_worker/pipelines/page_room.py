"""Room for drawn pages on the disk, and how many are drawn at once. Knows sizes only, no pages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sam2_mcp_worker.media.decoder import MAX_PIXELS

BYTES_PER_PIXEL = 3
# Two of the largest pages, so that one is drawn while the other is read; of A4 at 150 dpi more than 200 fit.
PAGE_ROOM_BYTES = 2 * MAX_PIXELS * BYTES_PER_PIXEL


class PageRoom:
    """What the pages of one job share.

    `drawing` lets as many pages be analysed and drawn at once as there are decoders: all pages of a job begin together,
    and the tiles of the first would else wait in the decoders' queue until the last page is drawn.
    """

    def __init__(self, *, drawn_at_once: int, max_bytes: int = PAGE_ROOM_BYTES) -> None:
        self.drawing = asyncio.Semaphore(drawn_at_once)
        self._max_bytes = max_bytes
        self._taken_bytes = 0
        self._door = asyncio.Lock()
        self._left = asyncio.Event()

    @property
    def taken_bytes(self) -> int:
        """What the pages inside were let in with."""
        return self._taken_bytes

    @asynccontextmanager
    async def for_page(self, size_px: tuple[int, int]) -> AsyncIterator[None]:
        """Room for a page's pixels during the block. Pages enter in order; one too large for the room enters alone."""
        page_bytes = size_px[0] * size_px[1] * BYTES_PER_PIXEL
        async with self._door:
            while self._taken_bytes and self._taken_bytes + page_bytes > self._max_bytes:
                self._left.clear()
                await self._left.wait()
            self._taken_bytes += page_bytes
        try:
            yield
        finally:
            self._taken_bytes -= page_bytes
            self._left.set()
