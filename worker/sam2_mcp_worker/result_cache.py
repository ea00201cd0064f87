"""Readings kept on disk, so that a repeated call costs nothing and a long job goes on where it stopped.

A key is built from everything that decides the value: the content hash of the input, the engine's identity and the
parameters. A value is JSON. `get_or_compute` also joins callers that want the same value at the same time.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from sam2_mcp_worker.disk import touch, write_whole

# Raise when the meaning of a cached value changes: old entries are then never found again.
CACHE_FORMAT = 1

logger = logging.getLogger(__name__)


def cache_key(*parts: object) -> str:
    """A hexadecimal SHA-256 over the JSON of all parts."""
    text = json.dumps([CACHE_FORMAT, *parts], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


class ResultCache:
    """JSON values by key, one file each, below `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._running: dict[str, _Flight] = {}

    def __repr__(self) -> str:
        return f"<ResultCache [{len(self._running)} computing]>"

    def _path(self, key: str) -> Path:
        return self._root / key[:2] / f"{key}.json"

    def get(self, key: str) -> Any | None:
        """The value, or None. A damaged entry counts as absent and is removed."""
        path = self._path(key)
        try:
            value = json.loads(path.read_bytes())
        except OSError:
            return None
        except ValueError:
            logger.warning("removed a damaged cache entry")
            path.unlink(missing_ok=True)
            return None
        touch(path)
        return value

    def put(self, key: str, value: Any) -> None:
        """Store a JSON value. A full disk costs the caching, not the call."""
        try:
            write_whole(self._path(key), json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
        except OSError as error:
            logger.warning("could not store a reading: %s", error.strerror)

    def entries(self) -> Iterator[Path]:
        """All stored files, for the sweep."""
        return self._root.glob("??/*.json")

    async def get_or_compute(
        self, key: str, compute: Callable[[], Awaitable[Any]], *, fresh: Callable[[Any], bool] = lambda _: True
    ) -> Any:
        """The stored value, else the value of `compute`, which runs once however many callers wait for it.

        `fresh` may reject a stored value (for instance because a file it points to is gone). When all callers have
        been cancelled the computation is cancelled too. An error of `compute` reaches every caller and is not stored.
        """
        flight = self._running.get(key)
        if flight is None or flight.task.done():
            flight = self._running[key] = _Flight(asyncio.ensure_future(self._stored_or_new(key, compute, fresh)))
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if flight.waiting == 0 and not flight.task.done():
                flight.task.cancel()
            if flight.waiting == 0 and self._running.get(key) is flight:
                del self._running[key]

    async def _stored_or_new(
        self, key: str, compute: Callable[[], Awaitable[Any]], fresh: Callable[[Any], bool]
    ) -> Any:
        # Looked up inside the flight: whoever looked before it would miss a value that is stored just then.
        stored = await asyncio.to_thread(self.get, key)
        if stored is not None and fresh(stored):
            return stored
        value = await compute()
        await asyncio.to_thread(self.put, key, value)
        return value


class _Flight:
    """One running computation and how many callers wait for it."""

    def __init__(self, task: asyncio.Future[Any]) -> None:
        self.task = task
        self.waiting = 0
