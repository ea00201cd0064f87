"""A work directory of its own for every call, so that no two calls ever share a file name.

Names are process id + counter + random part. (Field: folders named by the second let parallel calls overwrite
each other's tiles.)

Each run of a worker has a folder for its work directories, and beside it a file that it keeps locked. What a killed
worker left is known by its lock being free. Process ids cannot tell that: in containers the next worker has the id of
the dead one, and two containers on one volume do not see each other's processes.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

RUN_PREFIX = "run-"
LOCK_SUFFIX = ".lock"

_counter = itertools.count(1)  # next() on it is atomic in CPython


def _unique(label: str) -> str:
    return f"{label}-{os.getpid()}-{next(_counter)}-{secrets.token_hex(4)}"


class WorkRoot:
    """The work directories of one run, below `base`, which other workers may share."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._new_run()

    def _new_run(self) -> None:
        self.path = self._base / _unique(RUN_PREFIX.rstrip("-"))
        self._lock: int | None = None

    def open(self) -> int:
        """Remove what killed workers left, and take this run's folder; returns how many runs were removed.

        Raises:
            OSError: `base` cannot be written.
        """
        self._base.mkdir(parents=True, exist_ok=True)
        removed = remove_leftovers(self._base)
        lock = _lock_of(self.path)
        # Locked under a name that nobody looks for: a lock file that others see is never free while its run lives.
        hidden = lock.with_name(f".{lock.name}")
        self._lock = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        _try_lock(self._lock)
        hidden.rename(lock)
        self.path.mkdir()
        return removed

    @contextmanager
    def directory(self, label: str) -> Iterator[Path]:
        """A new empty directory, removed with everything in it at the end of the block.

        `label` is a word for people who look at the disk, such as `inspect_pdf`.
        """
        path = self.path / _unique(label)
        path.mkdir(parents=True, exist_ok=False)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def close(self) -> None:
        """Remove this run's folder and free its lock; `open` may follow."""
        if self._lock is None:
            return
        _remove_run(self.path)
        os.close(self._lock)
        self._new_run()


def remove_leftovers(base: Path) -> int:
    """Remove the folders of runs whose worker is gone; returns how many."""
    removed = 0
    for lock in base.glob(f"{RUN_PREFIX}*{LOCK_SUFFIX}"):
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue  # removed meanwhile, or another user's
        try:
            if _try_lock(descriptor):
                _remove_run(lock.with_suffix(""))
                removed += 1
        finally:
            os.close(descriptor)
    return removed


def _lock_of(run: Path) -> Path:
    return run.with_name(run.name + LOCK_SUFFIX)


def _remove_run(run: Path) -> None:
    shutil.rmtree(run, ignore_errors=True)
    if not run.exists():  # else the next start tries again
        _lock_of(run).unlink(missing_ok=True)


def _try_lock(descriptor: int) -> bool:
    """Whether the lock was free. On a file system without locks none is: rather a leftover than a live folder lost."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
