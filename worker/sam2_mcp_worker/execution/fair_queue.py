"""A queue that serves jobs in turn: round robin between jobs, first come first served within one.

Pure data: it knows neither tasks nor processes. One call with 500 pages cannot starve another with one.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Items wait under the key of their job; `pop` takes one of the job that was served longest ago."""

    def __init__(self) -> None:
        # The order of the keys is the order of service: a served job with more to do goes to the end.
        self._jobs: OrderedDict[str, deque[T]] = OrderedDict()

    def __len__(self) -> int:
        return sum(map(len, self._jobs.values()))

    def push(self, job: str, item: T) -> None:
        """Append an item to its job; a new job is served after all that wait already."""
        self._jobs.setdefault(job, deque()).append(item)

    def pop(self) -> T | None:
        """Take the next item, or None when nothing waits."""
        if not self._jobs:
            return None
        job, items = self._jobs.popitem(last=False)
        item = items.popleft()
        if items:
            self._jobs[job] = items
        return item

    def remove(self, job: str, item: T) -> bool:
        """Take back an item that still waits; False when it does not."""
        items = self._jobs.get(job)
        if items is None or item not in items:
            return False
        items.remove(item)
        if not items:
            del self._jobs[job]
        return True

    def drain(self) -> list[T]:
        """Take everything out."""
        items = [item for waiting in self._jobs.values() for item in waiting]
        self._jobs.clear()
        return items
