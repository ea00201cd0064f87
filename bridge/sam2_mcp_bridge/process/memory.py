"""What the allocators of C and Python are told, so that a bridge stays small: many share 512 MB. Knows no sizes.

Measured with glibc 2.36: after an argument and a result of 5 MB a bridge kept 46 MB, and 11 MB with this; idle 0.3 MB
less. Freed blocks between others stay in the heap: 24.5 MB resident after 30 000 calls of every kind, 21.5 MB with a
trim now and then. Elsewhere nothing is changed.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import suppress

# malloc.h: M_MMAP_THRESHOLD and M_ARENA_MAX.
_MMAP_THRESHOLD = -3
_ARENA_MAX = -8

# Blocks from here on are given back to the system when they are freed. It is glibc's own first value, but glibc raises
# it to the size of each such block that is freed, and large messages then stay in the heap for good.
_LARGE_BLOCK_BYTES = 128 * 1024

# A trim takes 0.1 ms, and taking its pages again as much: nothing, once in a while.
TRIM_AFTER_S = 5.0


def settle() -> None:
    """To be called when all is imported and before the first thread starts, for glibc gives each thread an arena."""
    gc.freeze()  # what is there by now is never garbage: collections need not stop everything to look at it
    with suppress(ImportError, OSError, TypeError, AttributeError):  # no ctypes, no libc, not glibc
        import ctypes

        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, _LARGE_BLOCK_BYTES)
        mallopt(_ARENA_MAX, 1)


class Trimmer:
    """Gives the free pages of C's heap back to the system, some seconds after the bridge has worked.

    Attributes:
        due_s: when `clock_moved` is to be called; None while there is nothing to give back.
    """

    def __init__(self) -> None:
        self.due_s: float | None = None
        self._trim: Callable[[int], int] = lambda _: 0
        with suppress(ImportError, OSError, TypeError, AttributeError):
            import ctypes

            self._trim = ctypes.CDLL(None).malloc_trim

    def worked(self, now_s: float) -> None:
        self.due_s = now_s + TRIM_AFTER_S if self.due_s is None else self.due_s

    def clock_moved(self, now_s: float) -> None:
        if self.due_s is not None and self.due_s <= now_s:
            self.due_s = None
            self._trim(0)
