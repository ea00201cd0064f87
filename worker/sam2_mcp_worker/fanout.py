"""Bounded fan-out under a deadline, and the Coverage that says what became of every item.

Every pipeline runs its pages, tiles or frames through `fan_out`. Whatever happens, each item ends in exactly one of
three states: done, failed or unreached. That is what lets a result say "missing" only over what was really read.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.errors import WorkerError

Item = TypeVar("Item", bound=Hashable)
Value = TypeVar("Value")

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Coverage(Generic[Item, Value]):
    """What became of `items`; filled while the work runs and readable at any moment.

    An item is in `done`, or in `failed`, or in neither, which means unreached.
    """

    items: tuple[Item, ...]
    done: dict[Item, Value] = field(default_factory=dict)
    failed: dict[Item, WorkerError] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def unreached(self) -> tuple[Item, ...]:
        """Items that have neither a value nor an error yet, in order."""
        return tuple(item for item in self.items if item not in self.done and item not in self.failed)

    @property
    def settled(self) -> int:
        """How many items are done or failed."""
        return len(self.done) + len(self.failed)

    @property
    def complete(self) -> bool:
        """Whether every item is done or failed."""
        return self.settled == len(self.items)

    def _settle(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    def mark_done(self, item: Item, value: Value) -> None:
        """Record the value of an item."""
        self.done[item] = value
        self._settle()

    def mark_failed(self, item: Item, error: WorkerError) -> None:
        """Record why an item has no value."""
        self.failed[item] = error
        self._settle()


async def fan_out(
    coverage: Coverage[Item, Value],
    work: Callable[[Item], Awaitable[Value]],
    *,
    deadline: Deadline,
    limit: int,
) -> Coverage[Item, Value]:
    """Run `work` for every unreached item, at most `limit` at once, in order, until the deadline.

    At the deadline the running ones are cancelled and stay unreached. A `WorkerError` fails its item only; any other
    exception is logged and fails its item as `internal`. Cancelling the caller cancels all work and leaves the rest
    unreached. Returns the same coverage, which was filled item by item.
    """
    todo: list[Item] = list(reversed(coverage.unreached))

    async def runner() -> None:
        while todo and not deadline.expired:
            await _run_one(coverage, work, todo.pop())

    runners = [asyncio.ensure_future(runner()) for _ in range(min(limit, len(todo)))]
    try:
        if runners:
            await asyncio.wait(runners, timeout=deadline.remaining_s())
    finally:
        for task in runners:
            task.cancel()
        await asyncio.gather(*runners, return_exceptions=True)
    return coverage


async def _run_one(coverage: Coverage[Item, Value], work: Callable[[Item], Awaitable[Value]], item: Item) -> None:
    try:
        coverage.mark_done(item, await work(item))
    except WorkerError as error:
        coverage.mark_failed(item, error)
    except Exception:
        # One broken item must not take its neighbours along; the traceback stays in the log.
        logger.exception("unexpected failure in a fan-out item")
        coverage.mark_failed(item, WorkerError("internal", "an unexpected failure, see the worker's log"))
