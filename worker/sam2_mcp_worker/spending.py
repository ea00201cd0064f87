"""What a request cost: booked per item (page, tile) where the money is spent, told once to the call that delivers it.

The book travels in a context variable, as the deadline does, so that nothing between pipeline and provider passes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

Unit = Literal["tile", "page", "frame", "piece", "file", "phrase"]
"""What a request is for, by tool: a tile of an image, a page, a frame of a video, a piece of sound, one of many files,
the phrases of a check.
"""


@dataclass(frozen=True, slots=True)
class Usage:
    """Requests, tokens and US dollars. Input tokens include those written to or read from the provider's cache."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.requests + other.requests,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.usd + other.usd,
        )


class SpendBook:
    """What one job spent, by item number, and not told yet."""

    def __init__(self) -> None:
        self._untold: dict[int, Usage] = {}

    def add(self, item: int, usage: Usage) -> None:
        """Book it."""
        self._untold[item] = self._untold.get(item, Usage()) + usage

    def take(self) -> dict[int, Usage]:
        """Everything since the last `take`, by item: a call tells it, the next one does not repeat it."""
        told, self._untold = self._untold, {}
        return told


_current: ContextVar[tuple[SpendBook, int] | None] = ContextVar("sam2_mcp_spending", default=None)


@contextmanager
def spend_scope(book: SpendBook, item: int) -> Iterator[None]:
    """What is spent inside is booked on this item."""
    reset = _current.set((book, item))
    try:
        yield
    finally:
        _current.reset(reset)


def spending_job() -> str:
    """Tells whose work is running, for those who serve jobs in turn; empty outside of any."""
    current = _current.get()
    return "" if current is None else str(id(current[0]))


def spend(usage: Usage) -> None:
    """Book it where the running work belongs; outside of any request there is no book, and nothing to tell."""
    current = _current.get()
    if current is not None:
        book, item = current
        book.add(item, usage)
