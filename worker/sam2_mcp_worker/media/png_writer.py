"""Writes RGB pixels as a PNG of three kinds of chunks and nothing else. Runs in children.

Strip by strip, so that a picture of 250 MP needs no more memory than a small one. There is no parameter for text, time,
resolution or a profile: what this module writes can carry none.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from sam2_mcp_worker.media.pixel_writer import pixel_file, strips

SIGNATURE = b"\x89PNG\r\n\x1a\n"
PLAIN_CHUNKS = ("IHDR", "IDAT", "IEND")
# Level 6 packs screenshots 8 % smaller and takes 2.5 times as long.
COMPRESSION_LEVEL = 3
_NONE, _SUB, _UP = 0, 1, 2  # row filters (PNG specification 9.2)
_HEAD_BYTES = 8  # length and type


def write_png(path: Path, rgb: NDArray[np.uint8]) -> None:
    """Write `(height, width, 3)` uint8 pixels; on failure no file is left.

    Raises:
        WorkerError: no_space.
    """
    height, width = rgb.shape[:2]
    packer = zlib.compressobj(COMPRESSION_LEVEL)
    with pixel_file(path) as out:
        out.write(SIGNATURE)
        _write_chunk(out, b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
        above = np.zeros((1, width, 3), np.uint8)
        for top, bottom in strips(width, height):
            strip = np.ascontiguousarray(rgb[top:bottom])
            _write_chunk(out, b"IDAT", packer.compress(_filtered(strip, above).tobytes()))
            above = strip[-1:]
        _write_chunk(out, b"IDAT", packer.flush())
        _write_chunk(out, b"IEND", b"")


def chunk_types(path: Path) -> list[str]:
    """The types of all chunks in order; `?` stands for bytes that belong to none, such as what follows the end."""
    return list(_chunks(path))


def _chunks(path: Path) -> Iterator[str]:
    size = path.stat().st_size
    with path.open("rb") as file:
        if file.read(len(SIGNATURE)) != SIGNATURE:
            yield "?"
            return
        while head := file.read(_HEAD_BYTES):
            if len(head) < _HEAD_BYTES:
                yield "?"
                return
            length, kind = struct.unpack(">I4s", head)
            end = file.tell() + length + 4
            if end > size:
                yield "?"
                return
            yield kind.decode("latin-1")
            file.seek(end)


def _write_chunk(out: BinaryIO, kind: bytes, data: bytes) -> None:
    if data or kind != b"IDAT":  # the packer may hold everything back
        out.write(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)))


def _filtered(strip: NDArray[np.uint8], above: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Each row with the filter whose differences are smallest, its number before it."""
    height, width, channels = strip.shape
    rows = strip.reshape(height, width * channels)
    previous = np.concatenate([above.reshape(1, -1), rows[:-1]])
    left = np.zeros_like(rows)
    left[:, channels:] = rows[:, :-channels]
    candidates = np.stack([rows, rows - left, rows - previous])  # wraps round at 256, as it should
    cost = np.abs(candidates.view(np.int8).astype(np.int16)).sum(axis=2, dtype=np.int64)
    best = cost.argmin(axis=0)
    numbers = np.array([_NONE, _SUB, _UP], np.uint8)[best]
    return np.concatenate([numbers[:, None], candidates[best, np.arange(height)]], axis=1)
