"""How long a call may still take, carried in a context variable so that every step below it can ask.

A Deadline is a point on the monotonic clock; nothing makes it later.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from sam2_mcp_worker.errors import WorkerError

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point in time, `at_s` on `clock`, after which a call must be over."""

    at_s: float
    clock: Clock = time.monotonic
    margin_s: float = 0.0
    """Kept free behind it, for the answer; whoever uses a part of it must be done inside it."""

    @classmethod
    def after(cls, seconds: float, clock: Clock = time.monotonic, *, margin_s: float = 0.0) -> Deadline:
        """A deadline this many seconds from now; a negative number is a deadline that has passed."""
        return cls(clock() + seconds, clock, margin_s)

    def remaining_s(self) -> float:
        """Seconds left, never below 0."""
        return max(0.0, self.at_s - self.clock())

    @property
    def expired(self) -> bool:
        """Whether no time is left."""
        return self.remaining_s() <= 0

    def check(self, what: str) -> None:
        """Stop before `what` when no time is left.

        Raises:
            WorkerError: code `deadline`.
        """
        if self.expired:
            raise WorkerError("deadline", f"no time was left for {what}", next_step="call again with the cursor")


_current: ContextVar[Deadline | None] = ContextVar("sam2_mcp_deadline", default=None)


def current_deadline() -> Deadline:
    """The deadline of the call that is running.

    Raises:
        LookupError: no call is running. That is a defect of ours, not of the input.
    """
    deadline = _current.get()
    if deadline is None:
        raise LookupError("no deadline is set: enter `deadline_scope` first")
    return deadline


def deadline_passed() -> bool:
    """Whether a call is running and its time is over."""
    deadline = _current.get()
    return deadline is not None and deadline.expired


@contextmanager
def deadline_scope(deadline: Deadline) -> Iterator[Deadline]:
    """Make `deadline` the current one for the block."""
    reset = _current.set(deadline)
    try:
        yield deadline
    finally:
        _current.reset(reset)


def call_budget_s(header_ms: str | None, *, limit_s: float, margin_s: float) -> float:
    """Seconds that a call may spend on work, from the `Sam2-Mcp-Budget-Ms` header.

    A missing or unreadable header means the limit. The margin for sending the answer is taken off, but never
    more than half of a short budget, so that even a small budget does some work.
    """
    budget_s = limit_s
    if header_ms is not None:
        try:
            budget_s = min(limit_s, max(0.0, int(header_ms) / 1000))
        except ValueError:
            budget_s = limit_s
    return budget_s - min(margin_s, budget_s / 2)
