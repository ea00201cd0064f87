"""Cutting rectangles out of paths: tried on random outlines against the definition of the winding number."""

from __future__ import annotations

import itertools
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from sam2_mcp_worker.media.redact_path_builder import PathBuilder, applied, as_matrix, inverse, placed
from sam2_mcp_worker.media.redact_paths import Point, Rect, Segment, Subpath, bounds, cut_fill, cut_stroke

RECT: Rect = (30.5, 40.25, 70.75, 60.5)
# Flattened curves stray from the true ones by less than this.
NEAR = 0.3
STEPS = 64

# Four decimals, as writers of PDFs use; finer numbers try only the arithmetic of this test.
decimals = st.floats(0, 100, allow_nan=False).map(lambda number: round(number, 4))
numbers = st.one_of(st.integers(0, 100).map(float), decimals, st.sampled_from([30.5, 60.5]))
points = st.tuples(numbers, numbers)


@st.composite
def subpaths(draw: st.DrawFn, *, closed: bool = False) -> Subpath:
    path = Subpath(draw(points), closed=closed)
    for _ in range(draw(st.integers(1, 6))):
        controls = draw(st.lists(points, min_size=3, max_size=3)) if draw(st.booleans()) else [draw(points)]
        path.segments.append((path.end, *controls))
    return path


outlines = st.lists(subpaths(), min_size=1, max_size=3)


def at(segment: Segment, t: float) -> Point:
    """De Casteljau in its plainest form."""
    level = list(segment)
    while len(level) > 1:
        level = [(a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t) for a, b in itertools.pairwise(level)]
    return level[0]


def flat(path: Subpath, *, close: bool) -> list[Point]:
    corners = [path.start]
    for segment in path.segments:
        steps = 1 if len(segment) == 2 else STEPS
        corners += [at(segment, i / steps) for i in range(1, steps + 1)]
    return [*corners, path.start] if close else corners


def winding(paths: list[Subpath], point: Point) -> int:
    total = 0
    for path in paths:
        corners = flat(path, close=True)
        for a, b in itertools.pairwise(corners):
            if (a[1] <= point[1]) != (b[1] <= point[1]):
                x = a[0] + (point[1] - a[1]) * (b[0] - a[0]) / (b[1] - a[1])
                total += (x > point[0]) * (1 if b[1] > a[1] else -1)
    return total


def distance(paths: list[Subpath], point: Point) -> float:
    nearest = math.inf
    for path in paths:
        corners = flat(path, close=True)
        for a, b in itertools.pairwise(corners):
            length = math.dist(a, b)
            along = ((point[0] - a[0]) * (b[0] - a[0]) + (point[1] - a[1]) * (b[1] - a[1])) / length**2 if length else 0
            t = min(1.0, max(0.0, along))
            nearest = min(nearest, math.dist(point, (a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t)))
    return nearest


def strictly_inside(point: Point, slack: float = 1e-6) -> bool:
    x, y = point
    return RECT[0] + slack < x < RECT[2] - slack and RECT[1] + slack < y < RECT[3] - slack


@settings(max_examples=60)
@given(outlines, points)
def test_every_point_outside_of_the_rectangle_keeps_its_winding_number(paths: list[Subpath], point: Point) -> None:
    outside = not strictly_inside(point, -NEAR)
    if outside and distance(paths, point) > NEAR:
        assert winding(cut_fill(paths, RECT), point) == winding(paths, point)


@settings(max_examples=60)
@given(outlines)
def test_no_edge_of_a_cut_outline_or_line_is_left_inside(paths: list[Subpath]) -> None:
    for path in [*cut_fill(paths, RECT), *cut_stroke(paths, RECT)]:
        for segment in path.segments:
            assert not any(strictly_inside(at(segment, i / 32)) for i in range(33))


@settings(max_examples=60)
@given(st.lists(subpaths(closed=True), min_size=1, max_size=2))
def test_lines_outside_are_kept_where_they_were(paths: list[Subpath]) -> None:
    kept = [point for path in cut_stroke(paths, RECT) for point in flat(path, close=False)]
    for path in paths:
        for corner in flat(path, close=True)[:-1]:
            if not strictly_inside(corner, -1e-6):
                assert any(math.dist(corner, point) < NEAR * 40 for point in kept) or not kept


def test_what_the_rectangle_does_not_meet_is_the_same_object() -> None:
    frame = Subpath((0, 0), [((0, 0), (100, 0)), ((100, 0), (100, 100)), ((100, 100), (0, 100))], closed=True)
    assert cut_fill([frame], RECT)[0] is frame
    assert cut_stroke([frame], RECT)[0] is frame


def test_what_lies_wholly_inside_is_gone() -> None:
    letter = Subpath((40, 45), [((40, 45), (50, 45), (50, 55), (40, 55))])
    assert cut_fill([letter], RECT) == []
    assert cut_stroke([letter], RECT) == []
    assert cut_stroke([Subpath((50, 50))], RECT) == []
    assert len(cut_stroke([Subpath((5, 5))], RECT)) == 1


def test_which_way_an_outline_went_inside_is_not_kept() -> None:
    """Two outlines that differ only inside of the rectangle cannot be told apart afterwards."""
    bar = [(35.0, 20.0), (35.0, 50.0), (45.0, 50.0), (45.0, 20.0)]
    tower = [(35.0, 20.0), (35.0, 58.0), (45.0, 42.0), (45.0, 20.0)]
    cuts = []
    for corners in (bar, tower):
        segments: list[Segment] = [(a, b) for a, b in itertools.pairwise(corners)]
        cuts.append(cut_fill([Subpath(corners[0], segments, closed=True)], RECT))
    assert cuts[0] == cuts[1]


def test_operators_make_the_subpaths_that_a_viewer_sees() -> None:
    builder = PathBuilder()
    for operator, operands in (
        ("re", [0, 0, 10, 20]), ("m", [1, 1]), ("v", [2, 2, 3, 3]), ("y", [4, 4, 5, 5]), ("h", []), ("l", [9, 9]),
        ("c", [1, 2, 3]),
    ):  # fmt: skip
        builder.add(operator, [float(number) for number in operands])
    box, curves, after = builder.subpaths
    assert box.closed and box.segments[2] == ((10, 20), (0, 20))
    assert curves.segments == [((1, 1), (1, 1), (2, 2), (3, 3)), ((3, 3), (4, 4), (5, 5), (5, 5))]
    assert after.start == (1, 1) and after.segments == [((1, 1), (9, 9))]
    assert bounds(builder.subpaths) == (0, 0, 10, 20)
    assert bounds([]) is None


def test_an_operator_before_any_point_starts_at_the_origin() -> None:
    builder = PathBuilder()
    builder.add("h", [])
    builder.add("l", [5.0, 5.0])
    assert builder.subpaths[0].segments == [((0.0, 0.0), (5.0, 5.0))]


@given(st.tuples(*[st.floats(-5, 5, allow_nan=False).map(lambda n: round(n, 2))] * 6), points)
def test_a_matrix_and_its_inverse_cancel(numbers: tuple[float, ...], point: Point) -> None:
    matrix = as_matrix(numbers)
    back = inverse(matrix)
    if back is not None and abs(matrix[0] * matrix[3] - matrix[1] * matrix[2]) > 0.01:
        there = placed(Subpath(point), matrix).start
        assert math.dist(applied(back, there), point) < 1e-6


def test_a_flattening_matrix_has_no_way_back() -> None:
    assert inverse((1, 2, 2, 4, 0, 0)) is None
    assert as_matrix(None) == (1, 0, 0, 1, 0, 0)
