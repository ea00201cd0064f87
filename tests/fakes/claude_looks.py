"""Finds a tile on its page by its looks: for JPEGs, which have lost the stamp. At full resolution only."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray
from tests.fakes.claude_pages import TruePage

Grey = NDArray[np.uint8]
_COARSE = 4
# A sharp piece with much ink settles the last pixels.
_PIECE_PX = 160
# JPEGs of quality 50 and more are above, the same picture one pixel off or scaled is below.
_SAME = 0.95
_BLANK_DEVIATION = 2.0
# Longer pages are not kept in memory, and not found this way.
_MOST_PIXELS = 80_000_000


@dataclass(frozen=True)
class _Kept:
    grey: Grey
    coarse: Grey


class Looks:
    """Grey pictures of the pages, drawn when the first unstamped picture comes."""

    def __init__(self, pages: Mapping[str, TruePage]) -> None:
        self._pages, self._lock = pages, threading.Lock()
        self._kept: dict[str, _Kept] = {}

    def find(self, rgb: NDArray[np.uint8]) -> tuple[str, int, int] | None:
        """Page and upper left corner; the page "" for a blank tile, None when it is on no page."""
        tile = _grey(rgb)
        if float(tile.std()) < _BLANK_DEVIATION:
            return "", 0, 0
        for name, page in self._pages.items():
            if tile.shape[0] <= page.height_px and tile.shape[1] <= page.width_px:
                place = self._on(page, tile)
                if place is not None:
                    return name, *place
        return None

    def _on(self, page: TruePage, tile: Grey) -> tuple[int, int] | None:
        if page.width_px * page.height_px > _MOST_PIXELS:
            return None
        with self._lock:
            if page.name not in self._kept:
                grey = _grey(page.rgb())
                self._kept[page.name] = _Kept(grey, _shrunk(grey))
            kept = self._kept[page.name]
        small = _shrunk(tile)
        if min(small.shape) < 1 or small.shape[0] > kept.coarse.shape[0] or small.shape[1] > kept.coarse.shape[1]:
            return None
        x, y = _best(kept.coarse, small)[1]
        place = _sharpened(kept.grey, tile, x * _COARSE, y * _COARSE)
        window = kept.grey[place[1] : place[1] + tile.shape[0], place[0] : place[0] + tile.shape[1]]
        return place if window.shape == tile.shape and _best(window, tile)[0] > _SAME else None


def _grey(rgb: NDArray[np.uint8]) -> Grey:
    return np.asarray(cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY), np.uint8)


def _shrunk(grey: Grey) -> Grey:
    height, width = grey.shape[0] // _COARSE * _COARSE, grey.shape[1] // _COARSE * _COARSE
    if min(height, width) == 0:
        return np.empty((0, 0), np.uint8)
    size = (width // _COARSE, height // _COARSE)
    return np.asarray(cv2.resize(grey[:height, :width], size, interpolation=cv2.INTER_AREA), np.uint8)


def _best(picture: Grey, piece: Grey) -> tuple[float, tuple[int, int]]:
    _, likeness, _, (x, y) = cv2.minMaxLoc(cv2.matchTemplate(picture, piece, cv2.TM_CCOEFF_NORMED))
    return float(likeness), (int(x), int(y))


def _sharpened(page: Grey, tile: Grey, x: int, y: int) -> tuple[int, int]:
    """The exact corner, which lies within a few pixels of the coarse one."""
    height, width = (min(_PIECE_PX, side) for side in tile.shape)
    tops, lefts = range(0, tile.shape[0] - height + 1, height), range(0, tile.shape[1] - width + 1, width)
    top, left = max(
        ((t, s) for t in tops for s in lefts), key=lambda at: tile[at[0] : at[0] + height, at[1] : at[1] + width].std()
    )
    piece = tile[top : top + height, left : left + width]
    reach = 2 * _COARSE
    y0, x0 = max(0, y + top - reach), max(0, x + left - reach)
    window = page[y0 : y + top + height + reach, x0 : x + left + width + reach]
    if window.shape[0] < height or window.shape[1] < width:
        return x, y
    _, (dx, dy) = _best(window, piece)
    return x0 + dx - left, y0 + dy - top
