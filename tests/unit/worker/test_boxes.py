"""Box arithmetic."""

from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.media.boxes import area, overlap, rounded_out, same_line, scaled, united

numbers = st.floats(0, 1000)
boxes = st.tuples(numbers, numbers, numbers, numbers).map(
    lambda b: (min(b[0], b[2]), min(b[1], b[3]), max(b[0], b[2]), max(b[1], b[3]))
)


@given(boxes, boxes)
def test_the_overlap_is_symmetric_and_inside_both(a: tuple[float, ...], b: tuple[float, ...]) -> None:
    assert overlap(a, b) == overlap(b, a)
    assert overlap(a, b) <= min(area(a), area(b)) + 1e-6


@given(st.lists(boxes, max_size=12))
def test_united_boxes_overlap_no_more_and_hold_all_that_went_in(some: list[tuple[float, ...]]) -> None:
    groups = united(some)
    assert all(overlap(a, b) == 0 for i, a in enumerate(groups) for b in groups[:i])
    for box in some:
        assert any(g[0] <= box[0] and g[1] <= box[1] and g[2] >= box[2] and g[3] >= box[3] for g in groups)


def test_a_padded_box_is_the_same_line_and_a_neighbour_is_not() -> None:
    known = (47.0, 320.0, 72.0, 330.0)
    assert same_line((46, 316, 73, 335), known)
    assert not same_line((46, 330, 73, 349), known)
    assert not same_line((73, 318, 140, 332), known)


@given(boxes, st.integers(0, 5))
def test_rounding_out_never_cuts(box: tuple[float, ...], pad: int) -> None:
    x0, y0, x1, y1 = rounded_out(box, pad)
    assert x0 <= box[0] and y0 <= box[1] and x1 >= box[2] and y1 >= box[3]
    assert min(x0, y0) >= 0


def test_scaling_multiplies_every_side() -> None:
    assert scaled((1, 2, 3, 4), 2) == (2, 4, 6, 8)
