"""A limit of rate concerns every request: what the server asks one of them to wait, all of them wait."""

from __future__ import annotations

import asyncio
import time

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines.retry import SHORTEST_TRY_S

# Nobody else waits for longer than that: then each says so at once, and the next call tries again.
LONGEST_PAUSE_S = 10.0


class RatePause:
    """Until when nothing is sent to one model."""

    def __init__(self) -> None:
        self._until_s = 0.0

    def note(self, asked_s: float) -> None:
        """The server has asked a request to wait that long."""
        if asked_s <= LONGEST_PAUSE_S:
            self._until_s = max(time.monotonic() + asked_s, self._until_s)

    async def wait_out(self, until: Deadline) -> float:
        """Wait as long as another request was asked to; the seconds of it that do not fit, 0 when they did."""
        while (left_s := self._until_s - time.monotonic()) > 0:
            if left_s + SHORTEST_TRY_S > until.remaining_s():
                return left_s
            await asyncio.sleep(left_s)
        return 0.0
