"""Days and periods as they are written in Korean documents."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.checks.written_dates import written_days

FORMS = ("{:%Y.%m.%d}", "{:%Y.%m.%d.}", "{:%Y-%m-%d}", "{:%Y/%m/%d}", "{:%Y. %m. %d}", "{:%Y년 %m월 %d일}")
BETWEEN = (" ~ ", "~", " - ", "부터 ", "\uff5e")
NO_DAYS = ("", "2026", "2026.01", "20260102", "제2026-01-0021호", "12026.01.02", "1.2.3", "02-2026-0102")


@given(st.dates(date(1900, 1, 1), date(2099, 12, 31)), st.sampled_from(FORMS))
def test_a_day_is_read_in_every_form_it_is_written_in(day: date, form: str) -> None:
    text = f"심의일 {form.format(day)} 까지"
    (found,) = written_days(text)
    assert found.value == day and found.ends is None
    assert text[found.start : found.end] == found.text


@given(
    st.dates(date(1900, 1, 1), date(2085, 12, 31)),
    st.integers(0, 4000),
    st.sampled_from(BETWEEN),
)
def test_a_period_is_one_thing_with_two_ends(first: date, number: int, between: str) -> None:
    last = first + timedelta(days=number)
    (found,) = written_days(f"({first:%Y.%m.%d}{between}{last:%Y.%m.%d})")
    assert found.value == first and found.ends is not None and found.ends.value == last


@pytest.mark.parametrize(
    "text", ["", "2026", "2026.01", "20260102", "제2026-01-0021호", "12026.01.02", "1.2.3", "02-2026-0102"]
)
def test_what_is_no_day_is_not_taken_for_one(text: str) -> None:
    assert written_days(text) == ()


def test_a_day_that_no_calendar_has_is_told_and_not_mended() -> None:
    (found,) = written_days("2026.02.30")
    assert found.value is None and found.text == "2026.02.30"


@given(st.text(alphabet="0123456789.-/년월일 ~()", max_size=60))
def test_any_text_is_taken(text: str) -> None:
    for day in written_days(text):
        assert text[day.start : day.end] == day.text
