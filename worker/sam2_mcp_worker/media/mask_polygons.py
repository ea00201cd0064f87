"""Outlines of a mask as polygons with holes, within a number of vertices and a stated distance from its edge.

Vertices are corners of pixels, not their centres: a polygon's extent is the mask's box with exclusive ends, its area
that of the mask, and an object of one pixel is a square and not a point. For children and tests only.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

Ring = NDArray[np.int32]
"""`(n, 2)` vertices x, y; not closed by a repeated first one."""

# About 1,800 characters of JSON for one object; ten objects stay below half of a tool's 40,000.
MAX_VERTICES = 160
# Distances tried, px. The first takes the stairs out of slanted edges (they are 0.71 px deep).
TOLERANCES_PX = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0)
# Tracing needs four bytes a pixel: larger masks are traced on a coarser grid, whose step adds to the tolerance.
MAX_TRACED_PIXELS = 16_000_000
COARSE_TOLERANCE = 1.5  # of the step: the diagonal of a coarse cell


@dataclass(frozen=True, slots=True)
class Outline:
    """One part of an object and its holes."""

    outer: Ring
    holes: tuple[Ring, ...]


class _Traced:
    """One ring as it was traced. A noisy mask has thousands, few of which are drawn: all but the sides is on demand.

    Args:
        contour: of the doubled mask.
        parent: the ring that this one is a hole in, by number.
        step: of the grid, px.
        shape_px: height and width of the mask.
    """

    def __init__(self, contour: NDArray[np.int32], parent: int | None, step: int, shape_px: tuple[int, ...]) -> None:
        self._contour = contour
        self.parent = parent
        self._step = step
        self._limit_px = np.array((shape_px[1], shape_px[0]))
        x, y, width, height = cv2.boundingRect(contour)
        ends = self._corners(np.array([(x, y), (x + width - 1, y + height - 1)]))
        self.short_side_px, self.long_side_px = sorted(int(side) for side in ends[1] - ends[0])

    def _corners(self, points: NDArray[np.int32]) -> Ring:
        return np.asarray(np.minimum((points + 1) // 2 * self._step, self._limit_px), np.int32)

    @functools.cached_property
    def ring(self) -> Ring:
        corners = self._corners(self._contour[:, 0, :])
        return corners[np.any(corners != np.roll(corners, 1, axis=0), axis=1)]

    @functools.cached_property
    def area_px(self) -> float:
        return abs(float(cv2.contourArea(self.ring)))


def mask_polygons(
    inside: NDArray[np.bool_], origin_xy_px: tuple[int, int], max_vertices: int = MAX_VERTICES
) -> tuple[list[Outline], float]:
    """Polygons of a mask whose top left pixel lies at `origin_xy_px`, largest part first; 4 vertices at least.

    Returns:
        The outlines, and the tolerance used, px: every pixel in which mask and polygons (even-odd) differ lies within
        that distance of the mask's edge. Parts and holes smaller than the tolerance may be missing, never all of them.
    """
    coarse, step = _coarsened(inside)
    traced = _trace(coarse, step, inside.shape)
    if not traced:
        return [], 0.0
    main = _main(traced)
    for tolerance in TOLERANCES_PX:
        # Each part that is not a speck takes three vertices at least: where those do not fit, nothing is simplified.
        parts = sum(t.parent is None and t.long_side_px > 2 * tolerance for t in traced)
        if 3 * parts <= max_vertices or tolerance == TOLERANCES_PX[-1]:
            rings = _simplified(traced, main, tolerance)
            if _count(rings) <= max_vertices:
                break
    else:
        rings, tolerance = _largest(traced, rings, tolerance, max_vertices)
    outlines = _assemble(traced, rings, np.array(origin_xy_px, np.int32))
    return outlines, tolerance + (COARSE_TOLERANCE * step if step > 1 else 0)


def _coarsened(inside: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], int]:
    """The mask with `step` x `step` pixels made one, which is inside when any of them is."""
    step = 1
    while inside.size / step**2 > MAX_TRACED_PIXELS:
        step += 1
    if step == 1:
        return inside, 1
    height, width = inside.shape
    rows = np.logical_or.reduceat(inside, np.arange(0, height, step), axis=0)
    return np.logical_or.reduceat(rows, np.arange(0, width, step), axis=1), step


def _trace(inside: NDArray[np.bool_], step: int, shape_px: tuple[int, ...]) -> list[_Traced]:
    """All rings along the edges of the pixels.

    OpenCV traces centres of pixels. With every pixel doubled, each of its four quarters belongs to one corner, so that
    the trace of the quarters is the trace of the corners.
    """
    doubled = inside.astype(np.uint8).repeat(2, axis=0).repeat(2, axis=1)
    contours, hierarchy = cv2.findContours(doubled, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_SIMPLE)
    parents = [int(row[3]) for row in hierarchy[0]] if contours else []
    return [
        _Traced(contour, parent if parent >= 0 else None, step, shape_px)
        for contour, parent in zip(contours, parents, strict=True)
    ]


def _main(traced: list[_Traced]) -> int:
    """The part with the largest area; no area is larger than that of its box, so few have to be measured."""
    outer = [number for number, t in enumerate(traced) if t.parent is None]
    outer.sort(key=lambda n: (-traced[n].long_side_px * traced[n].short_side_px, n))
    best = outer[0]
    for number in outer[1:]:
        t = traced[number]
        if t.long_side_px * t.short_side_px < traced[best].area_px:
            break
        best = min(best, number, key=lambda n: (-traced[n].area_px, n))
    return best


def _simplified(traced: list[_Traced], main: int, tolerance: float) -> dict[int, Ring]:
    """Each ring with fewer vertices, by number; specks that lie wholly within the tolerance are left out."""
    rings: dict[int, Ring] = {}
    for number, t in enumerate(traced):
        if number == main or t.long_side_px > 2 * tolerance:
            rings[number] = _simplify(t.ring, tolerance)
    known = {None, *rings}
    return {number: ring for number, ring in rings.items() if traced[number].parent in known}


def _simplify(ring: Ring, tolerance: float) -> Ring:
    """At most as coarse as asked; finer where the ring would otherwise collapse into a line."""
    while True:
        simple = cv2.approxPolyDP(ring, tolerance, True)[:, 0, :]
        if len(simple) >= 3 and cv2.contourArea(simple) > 0:
            return np.asarray(simple, np.int32)
        if tolerance < 0.1:
            return ring
        tolerance /= 2


def _largest(
    traced: list[_Traced], rings: dict[int, Ring], tolerance: float, max_vertices: int
) -> tuple[dict[int, Ring], float]:
    """As many rings as fit, the largest first; the tolerance says how deep the missing ones are."""
    main, *others = sorted(rings, key=lambda n: (-traced[n].area_px, n))
    kept = {main: rings[main]}
    while len(kept[main]) > max_vertices and tolerance < traced[main].long_side_px:
        tolerance *= 1.5
        kept[main] = _simplify(traced[main].ring, tolerance)
    if len(kept[main]) > max_vertices:  # no coarser outline of it has an area: its box then
        kept[main] = _corners(traced[main].ring)
        tolerance = max(tolerance, float(traced[main].short_side_px))
    for number in others:
        parent = traced[number].parent
        fits = _count(kept) + len(rings[number]) <= max_vertices
        if fits and (parent is None or parent in kept):
            kept[number] = rings[number]
        else:
            tolerance = max(tolerance, traced[number].short_side_px / 2)
    return kept, tolerance


def _corners(ring: Ring) -> Ring:
    (x0, y0), (x1, y1) = ring.min(axis=0), ring.max(axis=0)
    return np.array([(x0, y0), (x1, y0), (x1, y1), (x0, y1)], np.int32)


def _count(rings: dict[int, Ring]) -> int:
    return sum(map(len, rings.values()))


def _assemble(traced: list[_Traced], rings: dict[int, Ring], origin: NDArray[np.int32]) -> list[Outline]:
    outer = sorted((n for n in rings if traced[n].parent is None), key=lambda n: (-traced[n].area_px, n))
    holes: dict[int, list[Ring]] = {number: [] for number in outer}
    for number, ring in rings.items():
        parent = traced[number].parent
        if parent is not None:
            holes[parent].append(ring + origin)
    return [Outline(rings[number] + origin, tuple(holes[number])) for number in outer]
