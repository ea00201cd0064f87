"""Turns a tool's `source` argument into a stored file.

A source is a handle of an upload, the address of an artifact, a path below an allowed root, or an https URL of an
allowed host. An artifact about a file that was inspected (its report, texts, overlays) stands for that file: what it
holds of it may be less than all. Whatever a source was, its bytes end up in the upload store under their content hash:
a file that changes while it is being read can then never mix two versions in one result, and decoders only ever see
paths of our own.
"""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import anyio

from sam2_mcp_worker.artifacts import HANDLE as ARTIFACT_HANDLE
from sam2_mcp_worker.artifacts import INSPECTED, URI_PREFIX, Artifacts
from sam2_mcp_worker.deadline import current_deadline
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.fetch import Fetcher
from sam2_mcp_worker.media.signatures import HEAD_BYTES, media_type_of
from sam2_mcp_worker.uploads import HANDLE, StoredFile, Uploads

CHUNK_BYTES = 1024 * 1024
MAX_SOURCE_CHARS = 4096  # PATH_MAX; longer text is a document pasted by mistake
MIN_PASTED_CHARS = 64  # the smallest picture there is takes more
# What documents begin with that are no picture and no sound.
DOCUMENT_MARKS = {b"%PDF-": "application/pdf", b"PK\x03\x04": "application/zip"}


class Sources:
    """Resolves sources against the upload and artifact stores, a list of root folders and a fetcher."""

    def __init__(self, uploads: Uploads, artifacts: Artifacts, roots: tuple[str, ...], fetcher: Fetcher) -> None:
        self._uploads = uploads
        self._artifacts = artifacts
        self._roots = tuple(Path(root).resolve() for root in roots)
        self._fetcher = fetcher
        self._known_paths: dict[tuple[int, int, int, int], str] = {}

    async def resolve(self, source: str) -> StoredFile:
        """The stored file that `source` names.

        Raises:
            WorkerError: `source_invalid`, `source_not_allowed`, `source_not_found`, `file_unknown`, `artifact_unknown`,
                `upload_too_large`, `upload_empty`, or one of the fetcher's.
        """
        source = source.strip()
        if (kind := pasted_kind(source)) is not None:
            raise _pasted(kind, len(source))
        if not source or len(source) > MAX_SOURCE_CHARS or "\0" in source:
            raise _invalid(f"source has {len(source)} characters" if source else "source is empty")
        if source.startswith("file_") and HANDLE.match(source):
            return await anyio.to_thread.run_sync(self._uploads.get, source)
        if ARTIFACT_HANDLE.match(source.removeprefix(URI_PREFIX)):
            return await self._from_artifact(source.removeprefix(URI_PREFIX))
        if "://" in source:
            return await self._from_url(source)
        return await self._from_path(source)

    async def _from_artifact(self, handle: str) -> StoredFile:
        artifact, path = await anyio.to_thread.run_sync(self._artifacts.get, handle)
        inspected = artifact.facts.get(INSPECTED)
        if inspected is not None:
            return await anyio.to_thread.run_sync(self._uploads.get, inspected)
        descriptor = await anyio.to_thread.run_sync(_open_regular, path)
        try:
            return await self._ingest(descriptor, artifact.name)
        finally:
            os.close(descriptor)

    async def _from_url(self, url: str) -> StoredFile:
        if url.lower().startswith("file:"):
            raise _invalid("file:// URLs are not read")
        async with self._fetcher.open(url, current_deadline()) as (name, chunks):
            return await self._uploads.store(chunks, name)

    async def _from_path(self, source: str) -> StoredFile:
        path = await anyio.to_thread.run_sync(self._allowed_path, source)
        descriptor = await anyio.to_thread.run_sync(_open_regular, path)
        try:
            return await self._ingest(descriptor, path.name)
        finally:
            os.close(descriptor)

    async def _ingest(self, descriptor: int, name: str) -> StoredFile:
        about = os.fstat(descriptor)
        identity = (about.st_dev, about.st_ino, about.st_mtime_ns, about.st_size)
        handle = self._known_paths.get(identity)
        if handle is not None:
            try:
                return await anyio.to_thread.run_sync(self._uploads.get, handle)
            except WorkerError:
                del self._known_paths[identity]  # swept meanwhile: take it in again
        stored = await self._uploads.store(_chunks(descriptor), name)
        self._known_paths[identity] = stored.handle
        return stored

    def _allowed_path(self, source: str) -> Path:
        """The real path, links resolved, if it lies below an allowed root: a relative one is looked for in each."""
        candidates = [Path(source)] if Path(source).is_absolute() else [root / source for root in self._roots]
        allowed = [real for path in candidates if any((real := _real(path)).is_relative_to(r) for r in self._roots)]
        if allowed:
            # One that does not exist says so when it is opened.
            return next((real for real in allowed if os.path.lexists(real)), allowed[0])
        raise WorkerError(
            "source_not_allowed",
            "the path is not below a folder that this worker may read",
            rule="paths are read below SAM2_MCP_ALLOWED_ROOTS only, links included",
            next_step="upload the file with POST /files and pass its handle file_...",
            private=source,
        )


def pasted_kind(source: str) -> str | None:
    """What a source that is a file's content, and not its name, is: a data: URI, or Base64 of a known kind."""
    if source[:5].lower() == "data:":
        return f"a data: URI ({source[5:].partition(',')[0].partition(';')[0][:40] or 'no type'})"
    # JPEGs begin with /9j/, which looks like a path: only what no path or handle is as long as is looked into.
    if len(source) < MIN_PASTED_CHARS:
        return None
    head = "".join(source[:MIN_PASTED_CHARS].split())
    head = head[: len(head) // 4 * 4].replace("-", "+").replace("_", "/")
    try:
        data = base64.b64decode(head, validate=True)
    except ValueError:
        return None
    named = next((kind for mark, kind in DOCUMENT_MARKS.items() if data.startswith(mark)), None)
    kind = named or media_type_of(data[:HEAD_BYTES])
    return f"the Base64 text of a file ({kind})" if kind else None


def _pasted(kind: str, chars: int) -> WorkerError:
    return WorkerError(
        "source_is_content",
        f"source is {kind} of {chars} characters, not the place of a file",
        rule="contents do not go through arguments: they would fill the conversation and hosts cut them",
        next_step="send the bytes to POST /files and pass the handle file_... that comes back",
    )


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    # RuntimeError: links that lead round in a circle (Python < 3.13); ValueError: characters that no path has.
    except (OSError, RuntimeError, ValueError) as error:
        raise _not_found(path, "it leads nowhere") from error


def _open_regular(path: Path) -> int:
    # O_NOFOLLOW: `path` is free of links already, so a link here was put in between the check and now.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        raise _not_found(path, error.strerror) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _invalid(f"{path.name[:80]!r} is not a regular file")
    return descriptor


def _not_found(path: Path, reason: str | None) -> WorkerError:
    return WorkerError(
        "source_not_found",
        f"the file {path.name[:80]!r} cannot be opened ({reason})",
        next_step="check the path, or upload the file with POST /files",
    )


async def _chunks(descriptor: int) -> AsyncIterator[bytes]:
    offset = 0
    while chunk := await anyio.to_thread.run_sync(os.pread, descriptor, CHUNK_BYTES, offset):
        offset += len(chunk)
        yield chunk


def _invalid(what: str) -> WorkerError:
    return WorkerError(
        "source_invalid",
        what,
        rule="a source is a handle file_... or artifact://art_..., a path below an allowed root, or an https URL of an "
        "allowed host",
        next_step="upload the file with POST /files and pass its handle",
    )
