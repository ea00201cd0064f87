"""Boxes come back in the order in which a person reads them, every one once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.media.reading_order import Box, reading_order

BOXES = st.lists(
    st.builds(
        lambda x, y, w, h: (x, y, x + w, y + h),
        st.integers(0, 2000),
        st.integers(0, 3000),
        st.integers(0, 1500),
        st.integers(0, 100),
    ),
    max_size=60,
)


def column(x: int, y: int, count: int, *, width: int = 400, height: int = 20, pitch: int = 30) -> list[Box]:
    return [(x, y + k * pitch, x + width, y + k * pitch + height) for k in range(count)]


def shuffled(boxes: list[Box]) -> list[Box]:
    return boxes[1::2] + boxes[::2][::-1]


def in_order(boxes: list[Box]) -> list[Box]:
    mixed = shuffled(boxes)
    return [mixed[i] for i in reading_order(mixed)]


@given(BOXES)
def test_every_box_comes_once(boxes: list[Box]) -> None:
    assert sorted(reading_order(boxes)) == list(range(len(boxes)))


@given(BOXES, st.integers(-500, 500), st.integers(-500, 500))
def test_moving_the_page_changes_nothing(boxes: list[Box], dx: int, dy: int) -> None:
    moved: list[Box] = [(x0 + dx, y0 + dy, x1 + dx, y1 + dy) for x0, y0, x1, y1 in boxes]
    assert reading_order(moved) == reading_order(boxes)


def test_two_columns_are_read_one_after_the_other() -> None:
    page = [*column(50, 100, 8), *column(500, 100, 8)]
    assert in_order(page) == page


def test_a_headline_comes_before_the_columns_that_it_spans_and_a_footer_after_them() -> None:
    headline, footer = (50, 60, 900, 90), (50, 348, 880, 370)
    page = [headline, *column(50, 100, 8), *column(500, 100, 8), footer]
    assert in_order(page) == page


def test_a_line_across_the_middle_parts_the_columns_above_from_those_below() -> None:
    upper = [*column(50, 100, 4), *column(500, 100, 4)]
    lower = [*column(50, 250, 4), *column(500, 250, 4)]
    page = [*upper, (50, 222, 900, 244), *lower]
    assert in_order(page) == page


def test_columns_right_above_a_table_are_read_one_after_the_other() -> None:
    columns = [*column(50, 100, 5, height=26), *column(500, 100, 5, height=26)]
    table = [(x, y, x + 120, y + 26) for y in (272, 306, 340) for x in (50, 380, 700)]
    page = [*columns, *table]
    assert in_order(page) == page


def test_table_cells_are_read_row_by_row() -> None:
    page = [(x, y, x + 100, y + 21) for y in range(100, 300, 38) for x in (60, 400, 700)]
    assert in_order(page) == page


def test_cells_of_a_row_need_not_stand_on_the_same_pixel() -> None:
    page = [(60, 103, 160, 123), (400, 100, 500, 121), (60, 140, 160, 160), (400, 142, 500, 160)]
    assert in_order(page) == page


def test_no_boxes_and_one_box() -> None:
    assert reading_order([]) == []
    assert reading_order([(1, 2, 3, 4)]) == [0]


def test_a_page_of_thousands_of_lines_does_not_exhaust_the_stack() -> None:
    page = column(50, 0, 5000)
    assert in_order(page) == page
