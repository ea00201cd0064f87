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
    """Least recently used first out. An entry larger than the whole bound is not kept, and drives nothing out."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._entries: OrderedDict[Hashable, T] = OrderedDict()
        self.nbytes = 0
        """Bytes of all entries."""

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._entries

    def get(self, key: Hashable) -> T | None:
        """The entry, which counts as used now; None when it is not there."""
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
        return entry

    def discard(self, key: Hashable) -> None:
        """Forget an entry, if it is there."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.nbytes -= entry.nbytes

    def put(self, key: Hashable, entry: T) -> None:
        """Keep an entry, at the price of the longest unused ones."""
        self.discard(key)
        if entry.nbytes > self._max_bytes:
            return
        self._entries[key] = entry
        self.nbytes += entry.nbytes
        while self.nbytes > self._max_bytes:
            _, oldest = self._entries.popitem(last=False)
            self.nbytes -= oldest.nbytes
