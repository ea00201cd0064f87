"""Numbers of workbooks as people see them."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.media.number_formats import CellValue, shown

ACCOUNTING = '_-* #,##0_-;\\-* #,##0_-;_-* "-"_-;_-@_-'


@pytest.mark.parametrize(
    ("value", "number_format", "text", "doubtful"),
    [
        (0.055, "0.0%", "5.5%", False),
        (0.05537, "0.0%", "5.5%", True),
        (1.012, "0.0%", "101.2%", False),
        (150000000, "#,##0", "150,000,000", False),
        (150000000, '#,##0"원"', "150,000,000원", False),
        (150000000, "#,##0원", "150,000,000원", False),
        (150000000, "#,##0,", "150,000", False),
        (150000400, "#,##0,", "150,000", True),
        (3000, '#,##0"만원"', "3,000만원", False),
        (150000000, "[$₩-412]#,##0", "₩150,000,000", False),
        (30000000, '_("$"* #,##0_);_("$"* \\(#,##0\\);_("$"* "-"_);_(@_)', "$30,000,000", False),
        (30000000, ACCOUNTING, "30,000,000", False),
        (-1234, "#,##0;(#,##0)", "-1,234", False),
        (-1234, "#,##0_ ;[Red]\\-#,##0\\ ", "-1,234", False),
        (-0.4, "0", "0", True),
        (0, '#,##0;-#,##0;"없음"', "없음", False),
        (3.5, "0.0#", "3.5", False),
        (3.0, "0.##", "3", False),
        (3.456, "0.##", "3.46", True),
        (0.1 + 0.2, "General", "0.3", False),
        (0.5, 'General"원"', "0.5원", False),
        (65, '0"세"', "65세", False),
        (5, "00", "05", False),
        (1, '"해당없음"', "해당없음", False),
        (12345.678, "0.00E+00", "12345.678", True),
        (1.5, '# ?/?"배"', "1.5배", True),
        (45000, "yyyy", "45000", True),
        (1e300, "General", "1e+300", True),
        (math.nan, "0", "nan", True),
        (7, "", "7", False),
        (7, '"', "7", True),
        (True, "General", "TRUE", False),
        (False, "0%", "FALSE", False),
        (None, "General", "", False),
        ("사망보험금", "@", "사망보험금", False),
        (dt.datetime(2026, 1, 2), "yyyy-mm-dd", "2026-01-02", False),
        (dt.datetime(2026, 1, 2, 13, 5), "yyyy-mm-dd hh:mm", "2026-01-02 13:05", False),
        (dt.time(9, 30), "hh:mm", "09:30:00", False),
    ],
)
def test_a_cell_shows_what_people_see(value: CellValue, number_format: str, text: str, doubtful: bool) -> None:
    cell = shown(value, number_format)
    assert (cell.text, cell.doubtful) == (text, doubtful)


@given(st.integers(-(10**15), 10**15))
def test_groups_change_nothing_of_a_whole_number(number: int) -> None:
    cell = shown(number, "#,##0")
    assert int(cell.text.replace(",", "")) == number and not cell.doubtful


@given(st.decimals(-1000, 1000, places=4), st.integers(0, 6))
def test_a_percentage_is_doubtful_exactly_where_its_display_rounds(share: Decimal, places: int) -> None:
    cell = shown(float(share), f"0.{'0' * places}%" if places else "0%")
    said = Decimal(cell.text.rstrip("%"))
    assert cell.doubtful == (said != share * 100)
    assert abs(said - share * 100) <= Decimal(1).scaleb(-places) / 2


@given(st.floats(), st.text(max_size=20))
def test_no_format_is_too_odd_to_show_something(value: float, number_format: str) -> None:
    assert isinstance(shown(value, number_format).text, str)
