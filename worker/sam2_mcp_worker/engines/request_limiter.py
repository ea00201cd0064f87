"""How many requests to a provider are under way at once, and who is next.

Callers wait in turn, round robin between jobs, so that one long document does not starve a small picture. A request
that is tried again goes first: its tile has waited longest.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.execution.fair_queue import FairQueue


class RequestLimiter:
    """At most `size` holders at once. For one event loop."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._held = 0
        self._again: FairQueue[asyncio.Future[None]] = FairQueue()
        self._first: FairQueue[asyncio.Future[None]] = FairQueue()

    @property
    def in_flight(self) -> int:
        """Requests under way."""
        return self._held

    @property
    def waiting(self) -> int:
        """Requests that wait for their turn."""
        return len(self._again) + len(self._first)

    @asynccontextmanager
    async def slot(self, job: str, deadline: Deadline, *, again: bool) -> AsyncIterator[None]:
        """Hold one of the slots inside the block.

        Raises:
            TimeoutError: none came free before the deadline.
        """
        await self._acquire(job, deadline, self._again if again else self._first)
        try:
            yield
        finally:
            self._release()

    async def _acquire(self, job: str, deadline: Deadline, queue: FairQueue[asyncio.Future[None]]) -> None:
        if self._held < self.size:  # whoever waits has been given every free slot already
            self._held += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.push(job, turn)
        try:
            await asyncio.wait_for(asyncio.shield(turn), deadline.remaining_s())
        except BaseException:
            if not queue.remove(job, turn):  # the slot came at the moment of giving up
                self._release()
            raise

    def _release(self) -> None:
        turn = self._again.pop() or self._first.pop()
        if turn is None:
            self._held -= 1
        else:
            turn.set_result(None)  # the slot goes on to it
