"""Cuts what lies in a rectangle out of vector paths, so that nothing of it is left in the data. Pure.

Outlines are kept as they are outside of the rectangle and led round its edge instead of through it: every point outside
keeps its winding number, so that fills and clips look the same there. Strokes are interrupted. Curves are split, never
flattened.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

Point = tuple[float, float]
Rect = tuple[float, float, float, float]
"""left, bottom, right, top; all of one space, whatever it is."""
Segment = tuple[Point, ...]
"""Two points: a line. Four: a cubic Bezier curve with its control points."""

# Parameters of one segment nearer to each other than this are one crossing; below, pieces have no length.
_EPSILON = 1e-9
# A piece that stays this near to a side (in the path's units) runs along it and does not cross it.
_FLAT = 1e-12


@dataclass(slots=True)
class Subpath:
    """Connected segments; `closed` when the path says so."""

    start: Point
    segments: list[Segment] = field(default_factory=list)
    closed: bool = False

    @property
    def end(self) -> Point:
        """Where the next segment starts."""
        return self.segments[-1][-1] if self.segments else self.start


def bounds(subpaths: Iterable[Subpath]) -> Rect | None:
    """The box of all points, control points included; None of an empty path."""
    points = [point for subpath in subpaths for points in [(subpath.start,), *subpath.segments] for point in points]
    if not points:
        return None
    xs, ys = zip(*points, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def overlap(one: Rect, other: Rect, least: float = 0.0) -> bool:
    """Whether two boxes share more than `least` in both directions."""
    return (
        min(one[2], other[2]) - max(one[0], other[0]) > least and min(one[3], other[3]) - max(one[1], other[1]) > least
    )


def cut_fill(subpaths: Sequence[Subpath], rect: Rect) -> list[Subpath]:
    """The same area outside of `rect`, with no edge inside of it."""
    return [cut for subpath in subpaths if (cut := _cut_outline(subpath, rect)) is not None]


def cut_stroke(subpaths: Sequence[Subpath], rect: Rect) -> list[Subpath]:
    """The parts of the lines that lie outside of `rect`."""
    return [part for subpath in subpaths for part in _cut_line(subpath, rect)]


def _cut_outline(subpath: Subpath, rect: Rect) -> Subpath | None:
    segments = list(subpath.segments)
    if subpath.end != subpath.start:
        segments.append((subpath.end, subpath.start))  # fills close what is open
    pieces = [(piece, _is_inside(piece, rect)) for segment in segments for piece in _split(segment, rect)]
    if not any(inside for _, inside in pieces):
        return subpath
    first = next((i for i, (_, inside) in enumerate(pieces) if not inside), None)
    if first is None:
        return None
    pieces = pieces[first:] + pieces[:first]
    cut = Subpath(pieces[0][0][0], closed=True)
    entered: Point | None = None
    for piece, inside in [*pieces, (pieces[0][0], False)]:
        if inside:
            entered = entered or piece[0]
            continue
        if entered is not None:
            cut.segments += _round_the_edge(entered, piece[0], rect)
            entered = None
        cut.segments.append(piece)
    cut.segments.pop()  # the first piece once more, which closed the last gap
    return cut


def _cut_line(subpath: Subpath, rect: Rect) -> list[Subpath]:
    segments = list(subpath.segments)
    if subpath.closed and subpath.end != subpath.start:
        segments.append((subpath.end, subpath.start))
    if not segments:  # a dot, drawn by round caps
        return [] if _contains(rect, subpath.start) else [subpath]
    pieces = [(piece, _is_inside(piece, rect)) for segment in segments for piece in _split(segment, rect)]
    if not any(inside for _, inside in pieces):
        return [subpath]
    if subpath.closed:  # start behind a gap, so that the corner at the start stays a corner
        gap = next(i for i, (_, inside) in enumerate(pieces) if inside)
        pieces = pieces[gap:] + pieces[:gap]
    parts: list[Subpath] = []
    follows = False
    for piece, inside in pieces:
        if inside:
            follows = False
            continue
        if not follows:
            parts.append(Subpath(piece[0]))
        parts[-1].segments.append(piece)
        follows = True
    return parts


def _split(segment: Segment, rect: Rect) -> list[Segment]:
    """The segment in pieces none of which crosses a side of the rectangle's lines."""
    xs, ys = [p[0] for p in segment], [p[1] for p in segment]
    if not overlap((min(xs), min(ys), max(xs), max(ys)), rect, -_EPSILON):
        return [segment]
    cuts = {0.0, 1.0}
    for axis, level in ((0, rect[0]), (0, rect[2]), (1, rect[1]), (1, rect[3])):
        cuts.update(_crossings([p[axis] - level for p in segment]))
    ordered = sorted(cuts)
    kept = [ordered[0]]
    kept += [t for t in ordered[1:] if t - kept[-1] > _EPSILON]
    kept[-1] = 1.0
    return [_part(segment, a, b) for a, b in itertools.pairwise(kept)] or [segment]


def _crossings(values: Sequence[float]) -> list[float]:
    """Parameters at which a polynomial with these Bezier coefficients (2 or 4) is 0; none when it is 0 throughout."""
    if len(values) == 2:
        a, b = values
        return [a / (a - b)] if min(a, b) < 0 < max(a, b) else []
    return list(_roots(tuple(values), 0.0, 1.0))


def _roots(values: tuple[float, ...], low: float, high: float) -> Iterator[float]:
    """Halve the curve until its coefficients have one sign (no root) or it is a point."""
    if min(values) > 0 or max(values) < 0 or max(map(abs, values)) < _FLAT:
        return
    middle = (low + high) / 2
    if high - low < _EPSILON:
        yield middle
        return
    a, b, c, d = values
    ab, bc, cd = (a + b) / 2, (b + c) / 2, (c + d) / 2
    abc, bcd = (ab + bc) / 2, (bc + cd) / 2
    centre = (abc + bcd) / 2
    yield from _roots((a, ab, abc, centre), low, middle)
    yield from _roots((centre, bcd, cd, d), middle, high)


def _part(segment: Segment, start: float, end: float) -> Segment:
    if (start, end) == (0.0, 1.0):
        return segment
    if len(segment) == 2:
        return _between(segment[0], segment[1], start), _between(segment[0], segment[1], end)
    right = _halves(segment, start)[1]
    return _halves(right, (end - start) / (1 - start))[0]


def _halves(curve: Segment, t: float) -> tuple[Segment, Segment]:
    """De Casteljau: the curve before and after a parameter."""
    a, b, c, d = curve
    ab, bc, cd = _between(a, b, t), _between(b, c, t), _between(c, d, t)
    abc, bcd = _between(ab, bc, t), _between(bc, cd, t)
    middle = _between(abc, bcd, t)
    return (a, ab, abc, middle), (middle, bcd, cd, d)


def _between(one: Point, other: Point, t: float) -> Point:
    return one[0] + (other[0] - one[0]) * t, one[1] + (other[1] - one[1]) * t


def _is_inside(piece: Segment, rect: Rect) -> bool:
    middle = _between(piece[0], piece[1], 0.5) if len(piece) == 2 else _halves(piece, 0.5)[0][-1]
    return _contains(rect, middle)


def _contains(rect: Rect, point: Point) -> bool:
    return rect[0] < point[0] < rect[2] and rect[1] < point[1] < rect[3]


def _round_the_edge(start: Point, end: Point, rect: Rect) -> list[Segment]:
    """Lines along the rectangle, always the same way round: which way the outline went inside is not kept."""
    left, bottom, right, top = rect
    corners = [(left, bottom), (right, bottom), (right, top), (left, top)]
    a, b = _perimeter(start, rect), _perimeter(end, rect)
    length = 2 * (right - left + top - bottom)
    stops = sorted((math.fmod(_perimeter(corner, rect) - a + length, length), corner) for corner in corners)
    way = math.fmod(b - a + length, length)
    points = [start, *(corner for at, corner in stops if _EPSILON < at < way - _EPSILON), end]
    return [(one, other) for one, other in itertools.pairwise(points) if one != other]


def _perimeter(point: Point, rect: Rect) -> float:
    """Distance along the edge, counter-clockwise from the left bottom corner, of the nearest point on it."""
    left, bottom, right, top = rect
    x, y = min(max(point[0], left), right), min(max(point[1], bottom), top)
    width, height = right - left, top - bottom
    distances = (y - bottom, right - x, top - y, x - left)
    match distances.index(min(distances)):
        case 0:
            return x - left
        case 1:
            return width + y - bottom
        case 2:
            return width + height + right - x
        case _:
            return math.fmod(2 * width + height + top - y, 2 * (width + height))
