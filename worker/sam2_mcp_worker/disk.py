"""Files on disk that are whole or absent, and a sweep that keeps a folder inside its limits."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Iterable
from pathlib import Path


def write_whole(path: Path, data: bytes) -> None:
    """Write `data` to `path` so that a reader, even after a crash, sees the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def touch(path: Path) -> None:
    """Mark `path` as used now; the sweep removes the longest unused first."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return


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
