"""Which texts name a file of a shared folder, and how such a file is opened so that nothing else can be.

Owns the paths: their spellings, the folders, links. Knows neither MCP nor HTTP.

The folder of a file may be written to by others while we look at it, so a path that was checked proves nothing by the
time it is opened. Where the system can (POSIX), each part of the real path is opened from the folder above it and no
link is followed; elsewhere the opened file is compared with the path once more.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

# RFC 8089: no authority, an empty one or localhost. Other authorities are other machines.
_FILE_URL = re.compile(r"file:(?://(?:localhost)?(?=/)|(?=/[^/]))", re.IGNORECASE)
_DRIVE = re.compile(r"/([A-Za-z])[:|]")

# NONBLOCK: opening a pipe would wait for its other end. NOCTTY: a terminal must not become ours.
_FLAGS = ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY")
_FILE = os.O_RDONLY | sum(getattr(os, name, 0) for name in _FLAGS)
_FOLDER = _FILE | getattr(os, "O_DIRECTORY", 0)
_CAN_WALK = os.open in os.supports_dir_fd


def local_path(text: str, paths: ModuleType = os.path) -> str | None:
    """The absolute path, `..` taken out, that `text` is or that its file:// URL means; None where it is neither.

    Args:
        paths: `ntpath` or `posixpath`, by default that of this system.
    """
    if url := _FILE_URL.match(text):
        text = unquote(text[url.end() :], errors="surrogateescape")
        if paths.sep == "\\":
            text = _DRIVE.sub(r"\1:", text, count=1)
    if not paths.isabs(text):
        return None
    # POSIX lets a path begin with exactly two slashes and mean something else; no system of today does.
    return str(paths.normpath(text if paths.sep == "\\" else f"/{text.lstrip('/')}"))


def is_below(path: str, folder: str, paths: ModuleType = os.path) -> bool:
    """Whether a normalised path is the folder or lies in it, going by the letters alone."""
    path, folder = paths.normcase(path), paths.normcase(folder)
    return path == folder or path.startswith(folder.rstrip(paths.sep) + paths.sep)


class Shares:
    """The shared folders, each under the name it was given and under its real one."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._real = [os.path.realpath(folder) for folder in folders]
        self._names = {*map(str, folders), *self._real}

    def path_in(self, text: str) -> str | None:
        """The path that `text` means, if its letters say that it lies in a shared folder."""
        path = local_path(text)
        return path if path is not None and any(is_below(path, name) for name in self._names) else None

    def open(self, path: str) -> int:
        """A descriptor of the regular file at `path`.

        Raises:
            OSError: it cannot be opened, or must not be; `strerror` says why.
        """
        try:
            real = os.path.realpath(path)
            root = next((root for root in self._real if is_below(real, root)), None)
            if root is None:
                raise _refused("a link leads out of the shared folder")
            descriptor = _walk(root, Path(real).relative_to(root).parts or (".",)) if _CAN_WALK else _compare(real)
        except ValueError as error:  # characters that no path has
            raise _refused("no file can have this name") from error
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            os.close(descriptor)
            raise _refused("it is a folder" if stat.S_ISDIR(mode) else "it is no regular file")
        return descriptor


def _refused(why: str) -> OSError:
    return OSError(errno.EPERM, why)


def _walk(root: str, parts: tuple[str, ...]) -> int:
    folder = os.open(root, _FOLDER)
    try:
        for part in parts[:-1]:
            inner = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(parts[-1], _FILE, dir_fd=folder)
    finally:
        os.close(folder)


def _compare(real: str) -> int:
    descriptor = os.open(real, _FILE)
    now = os.path.realpath(real)
    if now != real or not os.path.samestat(os.lstat(real), os.fstat(descriptor)):
        os.close(descriptor)
        raise _refused("it was replaced while it was opened")
    return descriptor
