"""Embedded pictures in memory: the longest unused go when their bytes pass a bound. Knows nothing of networks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar


class Sized(Protocol):
    """Anything that knows how many bytes it holds."""

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        ...


T = TypeVar("T", bound=Sized)


class EmbeddingCache(Generic[T]):
    """Least recently used first out. An entry larger than the whole bound is not kept, and drives nothing out.

    What an entry holds counts as of the moment that it was put; one that has grown since is to be put again.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._entries: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self.nbytes = 0
        """Bytes of all entries."""

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._entries

    def get(self, key: Hashable) -> T | None:
        """The entry, which counts as used now; None when it is not there."""
        if key not in self._entries:
            return None
        self._entries.move_to_end(key)
        return self._entries[key][0]

    def discard(self, key: Hashable) -> None:
        """Forget an entry, if it is there."""
        _, size = self._entries.pop(key, (None, 0))
        self.nbytes -= size

    def put(self, key: Hashable, entry: T) -> None:
        """Keep an entry, at the price of the longest unused ones."""
        self.discard(key)
        size = entry.nbytes
        if size > self._max_bytes:
            return
        self._entries[key] = (entry, size)
        self.nbytes += size
        while self.nbytes > self._max_bytes:
            self.discard(next(iter(self._entries)))
