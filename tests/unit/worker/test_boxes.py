"""Box arithmetic."""

from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.media.boxes import area, covered_share, overlap, rounded_out, scaled

numbers = st.floats(0, 1000)
boxes = st.tuples(numbers, numbers, numbers, numbers).map(
    lambda b: (min(b[0], b[2]), min(b[1], b[3]), max(b[0], b[2]), max(b[1], b[3]))
)


@given(boxes, boxes)
def test_the_overlap_is_symmetric_and_inside_both(a: tuple[float, ...], b: tuple[float, ...]) -> None:
    assert overlap(a, b) == overlap(b, a)
    assert overlap(a, b) <= min(area(a), area(b)) + 1e-6


@given(boxes)
def test_a_box_covers_itself_and_nothing_covers_it_not_at_all(box: tuple[float, ...]) -> None:
    assert covered_share(box, [box]) >= 1 - 1e-9
    assert covered_share(box, []) == (0 if area(box) > 0 else 1)


@given(boxes, st.integers(0, 5))
def test_rounding_out_never_cuts(box: tuple[float, ...], pad: int) -> None:
    x0, y0, x1, y1 = rounded_out(box, pad)
    assert x0 <= box[0] and y0 <= box[1] and x1 >= box[2] and y1 >= box[3]
    assert min(x0, y0) >= 0


def test_scaling_multiplies_every_side() -> None:
    assert scaled((1, 2, 3, 4), 2) == (2, 4, 6, 8)
