"""Writes the raw RGB files of pixels.py, strip by strip, and leaves no half-written file behind."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from sam2_mcp_worker.errors import WorkerError

# Pixels that a decoder holds at a time while it writes: 4 MP are 12 MB of RGB. An A4 page at 150 dpi is one strip.
STRIP_PIXELS = 4_000_000


def strip_rows(width_px: int) -> int:
    """Rows of one strip of a picture of this width."""
    return max(1, STRIP_PIXELS // width_px)


def strips(width_px: int, height_px: int) -> Iterator[tuple[int, int]]:
    """First row and one past the last row of each strip, from the top."""
    rows = strip_rows(width_px)
    for top in range(0, height_px, rows):
        yield top, min(top + rows, height_px)


def check_pixels(code: str, subject: str, width_px: int, height_px: int, max_pixels: int) -> None:
    """Raise `code` when the picture has more pixels than allowed."""
    if width_px * height_px > max_pixels:
        raise WorkerError(
            code,
            f"{subject} would be {width_px} x {height_px} px = {width_px * height_px / 1e6:.0f} MP",
            rule=f"at most {max_pixels / 1e6:.0f} MP",
            next_step="Use a lower resolution or split it into parts",
        )


@contextmanager
def pixel_file(path: Path) -> Iterator[BinaryIO]:
    """Open the file for its rows; on any failure it is removed again."""
    try:
        with path.open("wb") as out:
            yield out
    except OSError as error:
        path.unlink(missing_ok=True)
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise WorkerError(
                "no_space",
                "the worker has no disk space left for decoded pixels",
                next_step="Call again with fewer or smaller pages, or ask the operator to free space",
            ) from error
        raise
    except BaseException:
        path.unlink(missing_ok=True)
        raise
