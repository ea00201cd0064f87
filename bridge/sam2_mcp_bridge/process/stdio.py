"""The host's pipe: claimed before anything else is imported, read by one thread, written by one.

stdout is the protocol. Whatever else this process or a child of it prints goes to stderr, and whatever reads standard
input finds it empty: file descriptor 0 leads to the null device, 1 to stderr, and the pipe itself lives on private
descriptors that children do not inherit. On Windows this also takes away the hazard of python-sdk issue 2832, a DLL
that examines descriptor 0 while a thread is blocked reading it.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from sam2_mcp_bridge.errors import EXIT_STARTUP, SetupError

# Linux pipes hold 64 KiB; a larger buffer would come back no fuller.
CHUNK_BYTES = 64 * 1024


class Wire:
    """Bytes from and to the host, on private file descriptors."""

    def __init__(self, source_fd: int, sink_fd: int) -> None:
        self._source_fd = source_fd
        self._sink_fd = sink_fd

    def read(self) -> bytes:
        """The next bytes, b"" at the end of the stream. Blocks."""
        try:
            return os.read(self._source_fd, CHUNK_BYTES)
        except OSError:
            return b""  # a terminal that went away ends the stream like a closed pipe

    def write_line(self, line: str) -> None:
        """Write the whole line with its LF. Blocks while the pipe is full.

        Raises:
            OSError: the host no longer reads.
        """
        rest = memoryview(line.encode("ascii") + b"\n")
        while rest:
            rest = rest[os.write(self._sink_fd, rest) :]


def claim(stdin_fd: int = 0, stdout_fd: int = 1, stderr_fd: int = 2) -> Wire:
    """Take the pipe off the standard descriptors.

    Raises:
        SetupError: the process was started without standard input or output.
    """
    try:
        _fill(stderr_fd)
        wire = Wire(os.dup(stdin_fd), os.dup(stdout_fd))
        null_fd = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null_fd, stdin_fd)
        os.close(null_fd)
        os.dup2(stderr_fd, stdout_fd)
    except OSError as error:
        raise SetupError(f"standard input and output must be open: {error}", EXIT_STARTUP) from error
    if sys.platform == "win32":  # pragma: no cover - Linux runs the tests
        import msvcrt

        msvcrt.setmode(wire._source_fd, os.O_BINARY)
        msvcrt.setmode(wire._sink_fd, os.O_BINARY)
    return wire


def _fill(fd: int) -> None:
    """Lead a closed descriptor to the null device, or the pipe's copy would take its number and get our complaints."""
    try:
        os.fstat(fd)
    except OSError:
        null_fd = os.open(os.devnull, os.O_WRONLY)
        if null_fd != fd:
            os.dup2(null_fd, fd)
            os.close(null_fd)


def complain(text: str, stderr_fd: int = 2) -> None:
    """One short line to stderr; lost if nobody can take it."""
    with suppress(OSError):
        os.write(stderr_fd, f"sam2-mcp: {text}\n".encode(errors="replace"))
