"""Uploaded files, kept under the hash of their content.

A handle is `file_` + the first 32 hexadecimal digits of the SHA-256: the same bytes always get the same handle, so a
client can ask for a known file before it sends it, and nobody can guess the handle of bytes that he does not have.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import anyio

from sam2_mcp_worker.disk import storage_errors, touch
from sam2_mcp_worker.errors import WorkerError

HANDLE = re.compile(r"file_[0-9a-f]{32}\Z")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """An uploaded file: `handle`, original `name`, size, full content hash, and the `path` of its bytes."""

    handle: str
    name: str
    size_bytes: int
    sha256: str
    path: Path


class Uploads:
    """The upload store below `root`: one folder per handle."""

    def __init__(self, root: Path, *, max_bytes: int, retention_h: float) -> None:
        self._root = root
        self._max_bytes = max_bytes
        self._retention_h = retention_h

    async def store(self, chunks: AsyncIterator[bytes], name: str) -> StoredFile:
        """Take in a stream of any length in constant memory; the same content is stored once.

        Raises:
            WorkerError: `upload_too_large`, `upload_empty`, `no_space` or `storage_failed`; nothing is kept then.
        """
        part = self._root / f".{os.getpid()}-{secrets.token_hex(8)}.part"
        about_part = part.with_suffix(".about.part")
        with storage_errors():
            self._root.mkdir(parents=True, exist_ok=True)
            try:
                sha256, size = await self._write(part, chunks)
                return self._adopt(part, about_part, sha256, size, name)
            finally:
                part.unlink(missing_ok=True)
                about_part.unlink(missing_ok=True)

    async def _write(self, part: Path, chunks: AsyncIterator[bytes]) -> tuple[str, int]:
        digest, size = hashlib.sha256(), 0
        async with await anyio.open_file(part, "wb") as file:
            async for chunk in chunks:
                size += len(chunk)
                if size > self._max_bytes:
                    raise self.too_large()
                digest.update(chunk)
                await file.write(chunk)
        if size == 0:
            raise WorkerError(
                "upload_empty", "the uploaded file has 0 bytes", next_step="send the file's bytes as body"
            )
        return digest.hexdigest(), size

    def too_large(self) -> WorkerError:
        """The error for a file above the limit."""
        return WorkerError(
            "upload_too_large",
            f"the file has more than {self._max_bytes} bytes",
            rule=f"the limit is {self._max_bytes} bytes (SAM2_MCP_MAX_UPLOAD_BYTES)",
            next_step="send a smaller file or raise the limit",
        )

    def _adopt(self, part: Path, about_part: Path, sha256: str, size: int, name: str) -> StoredFile:
        handle = handle_of(sha256)
        stored = StoredFile(handle, clean_name(name), size, sha256, self._root / handle / "data")
        about = {key: value for key, value in asdict(stored).items() if key != "path"}
        # Both are written before either is moved: a disk that fills up leaves no file without its description.
        about_part.write_bytes(json.dumps(about).encode("utf-8"))
        stored.path.parent.mkdir(parents=True, exist_ok=True)
        part.replace(stored.path)
        about_part.replace(stored.path.parent / "about.json")
        return stored

    def get(self, handle: str) -> StoredFile:
        """The stored file of a handle; counts as a use.

        Raises:
            WorkerError: `file_unknown`.
        """
        folder = self._root / handle
        try:
            if not HANDLE.match(handle):
                raise FileNotFoundError
            about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
            stored = StoredFile(path=folder / "data", **about)
        except (OSError, ValueError, TypeError) as error:
            raise WorkerError(
                "file_unknown",
                f"no uploaded file {handle[:40]!r}",
                rule=f"uploads live {self._retention_h:g} h after their last use",
                next_step="upload it again with POST /files and use the new handle",
            ) from error
        touch(folder)
        return stored

    def entries(self) -> Iterator[Path]:
        """Stored folders, and parts that an hour-old upload left behind, for the sweep."""
        yield from self._root.glob("file_*")
        stale_s = time.time() - 3600
        for part in self._root.glob(".*.part"):
            try:
                if part.stat().st_mtime < stale_s:
                    yield part
            except FileNotFoundError:
                continue


def handle_of(sha256: str) -> str:
    """The handle of a file with this content hash."""
    return f"file_{sha256[:32]}"


def clean_name(name: str) -> str:
    """A file name fit for results and reports: the last path component, printable, at most 120 characters."""
    last = re.split(r"[/\\]", name)[-1]
    text = "".join(char for char in last if char.isprintable()).encode("utf-8", "ignore").decode("utf-8")
    return text.strip()[:120] or "file"
