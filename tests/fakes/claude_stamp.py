"""Where a tile was cut from, written into the lowest bits of every pixel, so that the fake knows exactly what it sees.

Blue's lowest bit tells x, green's y, red's the page. A picture that was scaled, blurred or compressed with loss has
lost the stamp, and `find` says so: it checks every pixel.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from functools import cache

import numpy as np
from numpy.typing import NDArray

Rgb = NDArray[np.uint8]

# Every run of 18 bits of the sequence is different, and it is longer than the longest picture (200,000 px).
WINDOW = 18
_LENGTH = (1 << WINDOW) - 1
_NAME_BITS = 32


@cache
def _sequence() -> NDArray[np.uint8]:
    """The longest sequence of an 18-bit shift register (x^18 + x^11 + 1)."""
    state, bits = 1, np.empty(_LENGTH + WINDOW, np.uint8)
    for index in range(len(bits)):
        bits[index] = state & 1
        state = state >> 1 | ((state ^ state >> 7) & 1) << WINDOW - 1
    return bits


@cache
def _positions() -> NDArray[np.int32]:
    """Where each run of 18 bits stands in the sequence."""
    bits = _sequence().astype(np.int64)
    runs = sum(bits[shift : shift + _LENGTH] << shift for shift in range(WINDOW))
    table = np.full(1 << WINDOW, -1, np.int32)
    table[runs] = np.arange(_LENGTH, dtype=np.int32)
    return table


def _name_bits(name: str) -> NDArray[np.uint8]:
    code = zlib.crc32(name.encode("utf-8"))
    return np.array([code >> bit & 1 for bit in range(_NAME_BITS)], np.uint8)


def _red_bits(name: str, x0: int, y0: int, width: int, height: int) -> Rgb:
    diagonal = np.resize(np.roll(_name_bits(name), -((x0 + y0) % _NAME_BITS)), width + _NAME_BITS)
    # Rows repeat every 32, so that a page of any size costs 32 rows.
    few = np.stack([diagonal[row : row + width] for row in range(_NAME_BITS)])
    return few[np.arange(height) % _NAME_BITS]


def stamp(rgb: Rgb, name: str) -> None:
    """Write the stamp into a whole page, in place."""
    height, width = rgb.shape[:2]
    x_bits, y_bits = _sequence()[:width], _sequence()[:height]
    rgb &= 0xFE
    rgb[:, :, 2] |= x_bits
    rgb[:, :, 1] |= y_bits[:, None]
    for top in range(0, height, 4096):
        band = rgb[top : top + 4096]
        band[:, :, 0] |= _red_bits(name, 0, top, width, len(band))


def find(tile: Rgb, pages: Iterable[tuple[str, int, int]]) -> tuple[str, int, int] | None:
    """Name of the page, and where on it the tile's upper left corner lies; None when any pixel says otherwise.

    `pages` are name, width and height. A tile narrower than 18 px is only found where it is the whole width.
    """
    height, width = tile.shape[:2]
    bits: Rgb = tile & np.uint8(1)
    x0, y0 = _offset(bits[0, :, 2]), _offset(bits[:, 0, 1])
    sequence = _sequence()
    if not (_fits(sequence, x0, bits[:, :, 2]) and _fits(sequence, y0, bits[:, :, 1].T)):
        return None
    for name, page_width, page_height in pages:
        inside = x0 + width <= page_width and y0 + height <= page_height
        sure = (width >= WINDOW or width == page_width) and (height >= WINDOW or height == page_height)
        # A corner rules the other pages out, which matters for documents of many.
        if inside and sure and _is_of(name, x0, y0, bits[:_NAME_BITS, :_NAME_BITS]) and _is_of(name, x0, y0, bits):
            return name, x0, y0
    return None


def _is_of(name: str, x0: int, y0: int, bits: Rgb) -> bool:
    return np.array_equal(bits[:, :, 0], _red_bits(name, x0, y0, bits.shape[1], bits.shape[0]))


def _offset(run: NDArray[np.uint8]) -> int:
    """Where the run starts; 0 for one that is too short to tell."""
    if len(run) < WINDOW:
        return 0
    return int(_positions()[int((run[:WINDOW].astype(np.int64) << np.arange(WINDOW)).sum())])


def _fits(sequence: NDArray[np.uint8], start: int, rows: NDArray[np.uint8]) -> bool:
    length = rows.shape[1]
    return 0 <= start <= len(sequence) - length and bool((rows == sequence[start : start + length]).all())
