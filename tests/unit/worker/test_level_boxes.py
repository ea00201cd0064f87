"""Lines of a page that lies aslant come in the order in which a person reads them."""

from __future__ import annotations

from math import atan, cos, sin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.media.level_boxes import LEAST_LINES, level_boxes, order_of_lines
from sam2_mcp_worker.media.reading_order import Box

HEIGHT = 18.0
# Two columns of full lines and short ends, and full lines below them.
PAGE: list[Box] = [
    *((60, 100 + 30 * row, 560 if row % 3 else 300, 126 + 30 * row) for row in range(9)),
    *((640, 100 + 30 * row, 1140 if row % 4 else 760, 126 + 30 * row) for row in range(9)),
    *((60, 420 + 26 * row, 1150 if row % 2 else 700, 446 + 26 * row) for row in range(6)),
]


def tilted(boxes: list[Box], slope: float) -> list[Box]:
    """The boxes around the lines of a page that runs down to the right by `slope`."""
    angle = atan(slope)
    turned: list[Box] = []
    for x0, y0, x1, y1 in boxes:
        corners = [
            (x * cos(angle) - y * sin(angle), x * sin(angle) + y * cos(angle)) for x in (x0, x1) for y in (y0, y1)
        ]
        xs, ys = zip(*corners, strict=True)
        turned.append((min(xs), min(ys), max(xs), max(ys)))
    return turned


@given(st.floats(-0.07, 0.07))
def test_a_page_is_read_alike_however_it_lies(slope: float) -> None:
    assert order_of_lines([(box, HEIGHT) for box in tilted(PAGE, slope)]) == list(range(len(PAGE)))


@pytest.mark.parametrize("slope", [0.0, 0.004])
def test_a_level_page_keeps_its_boxes(slope: float) -> None:
    boxes = tilted(PAGE, slope)
    assert level_boxes(boxes, [HEIGHT] * len(boxes)) == boxes


def test_few_lines_and_tall_boxes_that_do_not_lie_over_one_another_keep_theirs() -> None:
    few = tilted(PAGE, 0.05)[: LEAST_LINES - 1]
    assert level_boxes(few, [HEIGHT] * len(few)) == few
    apart: list[Box] = [(0, 100 * row, 100 * row + 50, 100 * row + 24 + 5 * row) for row in range(8)]
    assert level_boxes(apart, [HEIGHT] * 8) == apart
    assert order_of_lines([]) == []


@given(st.lists(st.tuples(*(st.integers(0, 500) for _ in range(4)), st.floats(0, 50)), max_size=30))
def test_every_line_comes_once(lines: list[tuple[int, int, int, int, float]]) -> None:
    given_lines = [((float(x), float(y), float(x + w), float(y + h)), text) for x, y, w, h, text in lines]
    assert sorted(order_of_lines(given_lines)) == list(range(len(lines)))
