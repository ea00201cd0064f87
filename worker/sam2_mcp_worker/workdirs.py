"""A work directory of its own for every call, so that no two calls ever share a file name.

Names are process id + counter + random part. (Field: folders named by the second let parallel calls overwrite
each other's tiles.) What a killed worker left behind is removed at the next start.
"""

from __future__ import annotations

import itertools
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_counter = itertools.count(1)  # next() on it is atomic in CPython


@contextmanager
def work_directory(base: Path, label: str) -> Iterator[Path]:
    """A new empty directory below `base`, removed with everything in it at the end of the block.

    `label` is a word for people who look at the disk, such as `inspect_pdf`.
    """
    path = base / f"{label}-{os.getpid()}-{next(_counter)}-{secrets.token_hex(4)}"
    path.mkdir(parents=True, exist_ok=False)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def remove_leftovers(base: Path) -> int:
    """Remove work directories whose process is gone; returns how many."""
    removed = 0
    for path in base.glob("*-*-*-*"):
        pid = path.name.rsplit("-", 3)[1]
        if pid.isdigit() and not _alive(int(pid)):
            shutil.rmtree(path, ignore_errors=True)
            removed += 1
    return removed


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
