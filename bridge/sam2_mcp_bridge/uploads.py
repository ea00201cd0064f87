"""Local files named in the arguments of a tools/call, sent to the worker and replaced by their handles.

Owns the content of shared files: its hash, its way to the worker's `/files`, what the answer says about it. Which
paths are shared and how they are opened is shares.py's business. Imported only where a folder is shared.

A string that names something in a shared folder is either replaced, or the call fails and says why: a path that
silently stays a path would be looked for on the worker's machine. Every other string stays as it is.
"""

from __future__ import annotations

import errno
import hashlib
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from sam2_mcp_bridge.actions import Refusal, Result
from sam2_mcp_bridge.config import Config
from sam2_mcp_bridge.errors import Failure, code_of_status
from sam2_mcp_bridge.framing import decode
from sam2_mcp_bridge.shares import Shares
from sam2_mcp_bridge.transport import MAX_DETAIL_CHARACTERS, Exchange, Transport
from sam2_mcp_bridge.upstream import Upstream

META_KEY = "sam2-mcp/uploads"

# The worker's names for the same things (its uploads.py and web/routes.py; a test holds them equal).
HANDLE_DIGITS = 32
UPLOAD_LIMIT_HEADER = "Sam2-Mcp-Max-Upload-Bytes"

# Large enough for full speed, small enough that an abort is noticed within milliseconds.
CHUNK_BYTES = 256 * 1024
# The answer to an upload is a few hundred bytes of JSON.
MAX_REPLY_BYTES = 64 * 1024

# Hashing 1 GB takes a second or more, so hashes are remembered; some tens of bytes each.
MAX_KNOWN_HASHES = 1024
# A file that changed so shortly before may change again without a new time stamp: FAT counts in steps of 2 s.
SETTLED_NS = 2_000_000_000

# Uploading twice does no harm, so what may pass is tried again while the deadline allows.
RETRY_PAUSES_S = (0.2, 0.5)
# How soon a call that waits for another one's upload of the same file notices its own abort.
WAIT_S = 0.1


class _Opened(NamedTuple):
    """A shared file, open for reading; `identity` changes with its content."""

    path: str
    descriptor: int
    identity: tuple[int, ...]

    @property
    def size(self) -> int:
        return self.identity[-1]

    def chunks(self) -> Iterator[bytes]:
        """Exactly as many bytes as the file had when it was opened."""
        os.lseek(self.descriptor, 0, os.SEEK_SET)
        left = self.size
        while left:
            chunk = os.read(self.descriptor, min(CHUNK_BYTES, left))
            if not chunk:
                raise Failure("file_changed", path=_shown(self.path))
            left -= len(chunk)
            yield chunk


class Uploads:
    """An Upstream whose tools get the content of shared files. May be used by several threads at once."""

    def __init__(self, config: Config, upstream: Upstream) -> None:
        self._upstream = upstream
        self._transport = Transport(config)
        self._shares = Shares(config.share)
        self._hashes: dict[tuple[int, ...], str] = {}
        self._under_way: set[tuple[int, ...]] = set()
        self._changed = threading.Condition()  # guards the two above
        hashlib.sha256()  # lean_httpx left that out; no import may happen once stdin is read

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
            meta = answer.value.get("_meta")
            meta = (meta if isinstance(meta, dict) else {}) | {META_KEY: sent}
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
            with self._opened(path) as file, self._alone(exchange, file.identity):
                sha256 = self._sha256(exchange, file)
                uploaded = self._delivered(exchange, file, sha256)
        except OSError as error:
            raise Failure("file_refused", path=_shown(path), detail=error.strerror) from error
        about = {"name": Path(path).name, "handle": _handle(sha256), "sha256": sha256}
        return about | {"size_bytes": file.size, "uploaded": uploaded}

    @contextmanager
    def _opened(self, path: str) -> Iterator[_Opened]:
        descriptor = self._shares.open(path)
        try:
            about = os.fstat(descriptor)
            if about.st_size == 0:  # so are the files in /proc, whatever they hold
                raise OSError(errno.EPERM, "it has 0 bytes")
            yield _Opened(path, descriptor, _identity(about))
        finally:
            os.close(descriptor)

    @contextmanager
    def _alone(self, exchange: Exchange, identity: tuple[int, ...]) -> Iterator[None]:
        """Parallel calls with the same file wait for the first, and then find it known."""
        with self._changed:
            while identity in self._under_way:
                self._changed.wait(WAIT_S)
                exchange.pause(0)
            self._under_way.add(identity)
        try:
            yield
        finally:
            with self._changed:
                self._under_way.remove(identity)
                self._changed.notify_all()

    def _sha256(self, exchange: Exchange, file: _Opened) -> str:
        if known := self._hashes.get(file.identity):
            return known
        digest = hashlib.sha256()
        for chunk in file.chunks():
            digest.update(chunk)
            exchange.pause(0)
        now = os.fstat(file.descriptor)
        if _identity(now) != file.identity:
            raise Failure("file_changed", path=_shown(file.path))
        if time.time_ns() - now.st_mtime_ns > SETTLED_NS:
            with self._changed:
                if len(self._hashes) >= MAX_KNOWN_HASHES:
                    del self._hashes[next(iter(self._hashes))]
                self._hashes[file.identity] = digest.hexdigest()
        return digest.hexdigest()

    def _delivered(self, exchange: Exchange, file: _Opened, sha256: str) -> bool:
        """Whether bytes had to be sent; after this the worker has the file."""
        pauses = iter(RETRY_PAUSES_S)
        while True:
            try:
                if known := self._is_known(exchange, file, sha256):
                    return not known
                self._upload(exchange, file, sha256)
                return True
            except Failure as failure:
                exchange.pause(0)  # a connection that we cut has not failed
                pause_s = next(pauses, None) if failure.transient else None
                if pause_s is None or pause_s >= exchange.remaining_s:
                    raise
            exchange.pause(pause_s)

    def _is_known(self, exchange: Exchange, file: _Opened, sha256: str) -> bool:
        with self._transport.send(exchange, "HEAD", {}, path=f"files/{_handle(sha256)}") as response:
            status, headers = response.status_code, response.headers
        limit = headers.get(UPLOAD_LIMIT_HEADER, "")
        if status == 200 and headers.get("ETag") == f'"{sha256}"':
            return True
        if status == 404 and limit.isdecimal():
            if file.size <= int(limit):
                return False
            raise Failure("file_too_large", path=_shown(file.path), size=file.size, detail=f"at most {limit}")
        code = code_of_status(status)
        # No file leaves for a server that has not shown that it expects one.
        code = "no_files" if status < 300 or code in ("not_found", "http_error") else code
        raise self._transport.failure(code, http_status=status, detail=f"HTTP {status}")

    def _upload(self, exchange: Exchange, file: _Opened, sha256: str) -> None:
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(file.size)}
        name = quote(Path(file.path).name, safe="", errors="replace")
        with self._transport.send(exchange, "POST", headers, file.chunks, path=f"files?name={name}") as response:
            reply = _reply(next(response.iter_bytes(MAX_REPLY_BYTES), b""))
        if response.is_success and reply.get("sha256") == sha256:
            return
        if response.is_success and "sha256" in reply:
            raise Failure("file_changed", path=_shown(file.path))
        said = reply.get("detail")
        words = f": {said['message']}" if isinstance(said, dict) and "message" in said else ""
        detail = f"HTTP {response.status_code}{words}"[:MAX_DETAIL_CHARACTERS]
        if response.status_code == 413:
            raise Failure("file_too_large", path=_shown(file.path), size=file.size, detail=detail)
        code = "no_answer" if response.is_success else code_of_status(response.status_code)
        raise self._transport.failure(code, http_status=response.status_code, detail=detail)


def _reply(body: bytes) -> dict[str, Any]:
    with suppress(ValueError):
        value = decode(body, "replace")
        if isinstance(value, dict):
            return value
    return {}


def _identity(about: os.stat_result) -> tuple[int, ...]:
    return about.st_dev, about.st_ino, about.st_mtime_ns, about.st_ctime_ns, about.st_size


def _handle(sha256: str) -> str:
    return f"file_{sha256[:HANDLE_DIGITS]}"


def _escaped(name: str) -> str:
    """One part of a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


def _shown(path: str) -> str:
    """A path for an error text: what matters is its end."""
    text = repr(path)
    return text if len(text) <= MAX_DETAIL_CHARACTERS else f"…{text[-MAX_DETAIL_CHARACTERS:]}"
