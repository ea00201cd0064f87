"""Local files named in the arguments of a tools/call, sent to the worker and replaced by their handles.

Owns what is replaced, what the answer says about it, and the hashes. Which paths are shared is shares.py's business,
the way to the worker file_store.py's. Imported only where a folder is shared.

A string that names something in a shared folder is either replaced, or the call fails and says why: a path that
silently stays a path would be looked for on the worker's machine. Every other string stays as it is.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sam2_mcp_bridge.actions import Refusal, Result, as_object
from sam2_mcp_bridge.config import Config
from sam2_mcp_bridge.errors import Failure
from sam2_mcp_bridge.files.file_store import FileStore, handle_of
from sam2_mcp_bridge.files.shares import SharedFile, Shares, shown
from sam2_mcp_bridge.transport.transport import Exchange, Transport
from sam2_mcp_bridge.upstream.upstream import Upstream

META_KEY = "sam2-mcp/uploads"

# Hashing 1 GB takes a second or more, so hashes are remembered; some hundred bytes each.
MAX_KNOWN_HASHES = 1024
# A file that changed so shortly before may change again without a new time stamp: FAT counts in steps of 2 s.
SETTLED_NS = 2_000_000_000
# How soon a call that waits for another one's upload of the same file notices its own abort.
WAIT_S = 0.1


class Uploads:
    """An Upstream whose tools get the content of shared files. May be used by several threads at once."""

    def __init__(self, config: Config, upstream: Upstream) -> None:
        self._upstream = upstream
        self._shares = Shares(config.share)
        self._store = FileStore(Transport(config))
        self._hashes: dict[tuple[int, ...], str] = {}
        self._under_way: set[tuple[int, ...]] = set()
        self._changed = threading.Condition()  # guards the two above
        hashlib.sha256()  # lean_httpx left that out, and no import may happen once stdin is read

    def request(self, exchange: Exchange, method: str, params: Any, **more: Any) -> Result | Refusal:
        """`Upstream.request`, with the shared files of a tools/call in the worker's hands before.

        What was replaced is in `_meta` of the result, or in `meta` of the Failure.
        """
        arguments = params.get("arguments") if method == "tools/call" and isinstance(params, dict) else None
        sent: list[dict[str, Any]] = []
        try:
            if arguments:
                params = params | {"arguments": self._replaced(exchange, arguments, sent)}
            answer = self._upstream.request(exchange, method, params, **more)
        except Failure as failure:
            failure.meta = {META_KEY: sent} if sent else {}
            raise
        if sent and isinstance(answer, Result):
            meta = as_object(answer.value.get("_meta")) | {META_KEY: sent}
            answer = answer._replace(value=answer.value | {"_meta": meta})
        return answer

    def _replaced(self, exchange: Exchange, arguments: Any, sent: list[dict[str, Any]]) -> Any:
        """A copy of the arguments with handles for paths; `sent` grows as files arrive at the worker."""
        known: dict[str, dict[str, Any]] = {}
        whole = {"": arguments}
        todo: list[tuple[Any, Any, str]] = [(whole, "", "")]
        while todo:  # not recursive: hosts may nest as deeply as they like
            holder, key, pointer = todo.pop()
            value = holder[key]
            if isinstance(value, dict):
                holder[key] = value = dict(value)
                todo += [(value, name, f"{pointer}/{_escaped(name)}") for name in reversed(value)]
            elif isinstance(value, list):
                holder[key] = value = list(value)
                todo += [(value, index, f"{pointer}/{index}") for index in reversed(range(len(value)))]
            elif isinstance(value, str) and (path := self._shares.path_in(value)):
                about = known[path] = known.get(path) or self._sent(exchange, path)
                holder[key] = about["handle"]
                sent.append({"argument": pointer, **about})
        return whole[""]

    def _sent(self, exchange: Exchange, path: str) -> dict[str, Any]:
        """Hash one file and give it to the worker, unless that has it."""
        try:
            with self._shares.opened(path) as file, self._alone(exchange, file):
                sha256 = self._sha256(exchange, file)
                uploaded = self._store.deliver(exchange, file, sha256)
        except OSError as error:
            raise Failure("file_refused", path=shown(path), detail=error.strerror) from error
        about = {"name": Path(path).name, "handle": handle_of(sha256), "sha256": sha256}
        return about | {"size_bytes": file.size, "uploaded": uploaded}

    @contextmanager
    def _alone(self, exchange: Exchange, file: SharedFile) -> Iterator[None]:
        """Parallel calls with the same file wait for the first, and then find it known."""
        with self._changed:
            while file.identity in self._under_way:
                self._changed.wait(WAIT_S)
                exchange.pause(0)
            self._under_way.add(file.identity)
        try:
            yield
        finally:
            with self._changed:
                self._under_way.remove(file.identity)
                self._changed.notify_all()

    def _sha256(self, exchange: Exchange, file: SharedFile) -> str:
        if known := self._hashes.get(file.identity):
            return known
        digest = hashlib.sha256()
        for chunk in file.chunks():
            digest.update(chunk)
            exchange.pause(0)
        if file.changed():
            raise file.failure("file_changed")
        if time.time_ns() - file.about.st_mtime_ns > SETTLED_NS:
            with self._changed:
                if len(self._hashes) >= MAX_KNOWN_HASHES:
                    del self._hashes[next(iter(self._hashes))]
                self._hashes[file.identity] = digest.hexdigest()
        return digest.hexdigest()


def _escaped(name: str) -> str:
    """One part of a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")
