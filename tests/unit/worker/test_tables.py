"""Places in tables, under the names that spreadsheets give them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl.utils import get_column_letter

from sam2_mcp_worker.checks.tables import Table, column_letters

TABLE = Table(
    "a.xlsx", (("담보", "금액"), ("사망",)), first_row=3, first_column=2, boxes=(((0.0, 0.0, 1.0, 1.0), None),)
)


@given(st.integers(0, 16_383))
def test_columns_have_the_letters_of_spreadsheets(column: int) -> None:
    assert column_letters(column) == get_column_letter(column + 1)


@pytest.mark.parametrize(
    ("row", "column", "text", "name", "box"),
    [
        (0, 0, "담보", "B3", (0.0, 0.0, 1.0, 1.0)),
        (0, 1, "금액", "C3", None),
        (1, 1, "", "C4", None),
        (0, 9, "", "K3", None),
    ],
)
def test_every_place_has_a_name_and_what_is_not_there_is_empty(
    row: int, column: int, text: str, name: str, box: tuple[float, ...] | None
) -> None:
    assert (TABLE.text_at(row, column), TABLE.cell_name(row, column), TABLE.box_at(row, column)) == (text, name, box)
