"""Files on disk that are whole or absent, a sweep that keeps a folder inside its limits, and what a disk refuses."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sam2_mcp_worker.errors import WorkerError

# EFBIG: the process or the file system limits the size of a file.
NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def write_whole(path: Path, data: bytes) -> None:
    """Write `data` to `path` so that a reader, even after a crash, sees the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def touch(path: Path) -> None:
    """Mark `path` as used now; the sweep removes the longest unused first.

    A file that is gone, or on a disk that is read-only, stays unmarked: it can be read all the same.
    """
    with suppress(OSError):
        os.utime(path)


def entry_bytes(path: Path) -> int:
    """Bytes of a file, or of all files below a folder."""
    if path.is_dir():
        return sum(entry_bytes(child) for child in path.iterdir())
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def sweep(entries: Iterable[Path], *, max_age_s: float, max_bytes: int, now_s: float | None = None) -> int:
    """Remove entries unused for longer than `max_age_s`, then the longest unused until `max_bytes` are kept.

    An entry is a file or a folder; its own modification time says when it was last used. Returns how many went.
    """
    now = time.time() if now_s is None else now_s
    known: list[tuple[float, int, Path]] = []
    for path in entries:
        try:
            known.append((path.stat().st_mtime, entry_bytes(path), path))
        except FileNotFoundError:
            continue  # removed meanwhile
    total = sum(size for _, size, _ in known)
    removed = 0
    for used_s, size, path in sorted(known):
        if now - used_s <= max_age_s and total <= max_bytes:
            break
        remove(path)
        total -= size
        removed += 1
    return removed


def remove(path: Path) -> None:
    """Remove a file or a folder that may already be gone."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def storage_errors() -> Iterator[None]:
    """Turns what the disk refuses inside the block into an error for agents.

    Raises:
        WorkerError: `no_space` or `storage_failed`. Failures of connections and deadlines pass unchanged.
    """
    try:
        yield
    except (ConnectionError, TimeoutError):
        raise
    except OSError as error:
        raise storage_error(error) from error


def storage_error(error: OSError) -> WorkerError:
    """`no_space` for a full disk or quota, `storage_failed` for the rest; paths stay private."""
    if error.errno in NO_SPACE:
        return WorkerError(
            "no_space",
            f"the worker's disk is full ({error.strerror})",
            next_step="free space below SAM2_MCP_DATA_DIR and send it again",
            private=str(error),
        )
    return WorkerError(
        "storage_failed",
        f"the worker could not write to its disk ({error.strerror})",
        next_step="check SAM2_MCP_DATA_DIR with sam2-mcp-worker doctor",
        private=str(error),
    )


def check_data_dir(data_dir: Path) -> None:
    """Make the folder, and see that files can be made in it and in the folders that are there already.

    Raises:
        WorkerError: `data_dir_unwritable`.
    """
    folder = data_dir
    try:
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        for folder in (data_dir, *(child for child in data_dir.iterdir() if child.is_dir())):
            with tempfile.TemporaryFile(dir=folder):
                pass
    except OSError as error:
        raise WorkerError(
            "data_dir_unwritable",
            f"{folder} cannot be written ({error.strerror})",
            next_step="set SAM2_MCP_DATA_DIR to a folder that this user may write",
        ) from error
