"""The money of requests under way: the worst case set aside before each, what it really cost booked after.

Where the rest of the day's money is held by requests that may yet leave some of it, the next one waits for them.
"""

from __future__ import annotations

import asyncio
from typing import Literal

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines.cost_ledger import CostLedger, Reservation
from sam2_mcp_worker.spending import Usage, spend


class Purse:
    """Reserves from a ledger for one event loop."""

    def __init__(self, ledger: CostLedger) -> None:
        self._ledger = ledger
        self._settled = asyncio.Event()
        self._reserved = 0

    async def reserve(self, usd: float, until: Deadline) -> Reservation | Literal["cap", "unwritable"]:
        """The money for a request, once requests under way have left enough of it; else why there is none.

        Raises:
            TimeoutError: others held it until the deadline.
        """
        while True:
            settled = self._settled
            got = self._ledger.reserve(usd)
            if isinstance(got, Reservation):
                self._reserved += 1
                return got
            if got == "unwritable":
                return got
            if got == "cap" or not self._reserved:
                return "cap"
            await asyncio.wait_for(settled.wait(), until.remaining_s())

    def book(self, reservation: Reservation, usage: Usage) -> None:
        """Settle a reservation by what the request cost, and tell the call that asked."""
        self._ledger.settle(reservation, usage)
        spend(usage)
        self._reserved -= 1
        self._settled.set()
        self._settled = asyncio.Event()
