"""Which texts name a file of a shared folder, and how such a file is opened and read so that nothing else can be.

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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import NamedTuple
from urllib.parse import unquote

from sam2_mcp_bridge.errors import Failure

# RFC 8089: no authority, an empty one or localhost. Other authorities are other machines.
_FILE_URL = re.compile(r"file:(?://(?:localhost)?(?=/)|(?=/[^/]))", re.IGNORECASE)
_DRIVE = re.compile(r"^/([A-Za-z])[:|]")

# NONBLOCK: opening a pipe would wait for its other end. NOCTTY: a terminal must not become ours.
_FLAGS = ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY")
_FILE = os.O_RDONLY | sum(getattr(os, name, 0) for name in _FLAGS)
_FOLDER = _FILE | getattr(os, "O_DIRECTORY", 0)
_CAN_WALK = os.open in os.supports_dir_fd

# Large enough for full speed, small enough that an abort is noticed within milliseconds.
CHUNK_BYTES = 256 * 1024

# Of a path or a reason in an error text, which has 500 in all.
MAX_DETAIL_CHARACTERS = 160


def local_path(text: str, paths: ModuleType = os.path) -> str | None:
    """The absolute path, `..` taken out, that `text` is or that its file:// URL means; None where it is neither.

    Args:
        paths: `ntpath` or `posixpath`, by default that of this system.
    """
    if url := _FILE_URL.match(text):
        text = unquote(text[url.end() :], errors="surrogateescape")
        if paths.sep == "\\":
            text = _DRIVE.sub(r"\1:", text)
    if not paths.isabs(text):
        return None
    # POSIX lets a path begin with exactly two slashes and mean something else; no system of today does.
    return str(paths.normpath(text if paths.sep == "\\" else f"/{text.lstrip('/')}"))


def _identity(about: os.stat_result) -> tuple[int, ...]:
    return about.st_dev, about.st_ino, about.st_mtime_ns, about.st_ctime_ns, about.st_size


def shown(path: str) -> str:
    """A path for an error text: what matters is its end."""
    text = repr(path)
    return text if len(text) <= MAX_DETAIL_CHARACTERS else f"…{text[-MAX_DETAIL_CHARACTERS:]}"


def is_below(path: str, folder: str, paths: ModuleType = os.path) -> bool:
    """Whether a normalised path is the folder or lies in it, going by the letters alone."""
    path, folder = paths.normcase(path), paths.normcase(folder)
    return path == folder or path.startswith(folder.rstrip(paths.sep) + paths.sep)


class SharedFile(NamedTuple):
    """A file that is open for reading; its `identity` changes with its content."""

    path: str
    descriptor: int
    about: os.stat_result

    @property
    def size(self) -> int:
        return self.about.st_size

    @property
    def identity(self) -> tuple[int, ...]:
        return _identity(self.about)

    def chunks(self) -> Iterator[bytes]:
        """From the start, exactly as many bytes as it had when it was opened.

        Raises:
            Failure: it has become shorter.
        """
        os.lseek(self.descriptor, 0, os.SEEK_SET)
        left = self.size
        while left:
            chunk = os.read(self.descriptor, min(CHUNK_BYTES, left))
            if not chunk:
                raise self.failure("file_changed")
            left -= len(chunk)
            yield chunk

    def changed(self) -> bool:
        return _identity(os.fstat(self.descriptor)) != self.identity

    def failure(self, code: str, detail: str = "") -> Failure:
        return Failure(code, path=shown(self.path), size=self.size, detail=detail[:MAX_DETAIL_CHARACTERS])


class Shares:
    """The shared folders, each under the name it was given and under its real one."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._real = [os.path.realpath(folder) for folder in folders]
        self._names = {*map(str, folders), *self._real}

    def path_in(self, text: str) -> str | None:
        """The path that `text` means, if its letters say that it lies in a shared folder."""
        path = local_path(text)
        return path if path is not None and any(is_below(path, name) for name in self._names) else None

    @contextmanager
    def opened(self, path: str) -> Iterator[SharedFile]:
        """The regular file at `path`, which is not empty.

        Raises:
            OSError: it cannot be opened, or must not be; `strerror` says why.
        """
        descriptor = self._open(path)
        try:
            about = os.fstat(descriptor)
            if not stat.S_ISREG(about.st_mode):
                raise _refused("it is a folder" if stat.S_ISDIR(about.st_mode) else "it is no regular file")
            if about.st_size == 0:  # so are the files in /proc, whatever they hold
                raise _refused("it has 0 bytes")
            yield SharedFile(path, descriptor, about)
        finally:
            os.close(descriptor)

    def _open(self, path: str) -> int:
        try:
            real = os.path.realpath(path)
            root = next((root for root in self._real if is_below(real, root)), None)
            if root is None:
                raise _refused("a link leads out of the shared folder")
            return _walk(root, Path(real).relative_to(root).parts or (".",)) if _CAN_WALK else _compare(real)
        except ValueError as error:  # characters that no path has
            raise _refused("no file can have this name") from error


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
    descriptor, same = os.open(real, _FILE), False
    with suppress(OSError):  # gone again
        same = os.path.realpath(real) == real and os.path.samestat(os.lstat(real), os.fstat(descriptor))
    if not same:
        os.close(descriptor)
        raise _refused("it was replaced while it was opened")
    return descriptor
