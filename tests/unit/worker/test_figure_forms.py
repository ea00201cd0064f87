"""Forms of numbers in Korean text, each with its exact value; the table is figure_forms.txt."""

from __future__ import annotations

import itertools
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.checks.amounts import amount_value, plain_number
from sam2_mcp_worker.checks.figures.form import Form
from sam2_mcp_worker.checks.figures.forms import MAX_LINE_CHARS, forms_of, normalised, pieces_of

TABLE = [
    tuple(part.strip() for part in line.split(" | "))
    for line in Path(__file__).with_name("figure_forms.txt").read_text(encoding="utf-8").splitlines()
    if line.strip() and not line.startswith("#")
]


def told(form: Form) -> str:
    per = f"per {' '.join(form.per)}" if form.per else ""
    parts = (form.kind, form.value, form.unit, form.bound, per, "?" if form.doubt else "")
    return " ".join(part for part in parts if part)


def test_the_table_is_as_large_as_it_claims() -> None:
    assert len(TABLE) >= 250 and len({text for text, _ in TABLE}) == len(TABLE)


@pytest.mark.parametrize(("text", "expected"), TABLE)
def test_a_form_is_read_exactly(text: str, expected: str) -> None:
    assert "; ".join(told(form) for form in forms_of(normalised(text))) == ("" if expected == "-" else expected)


def in_korean(number: int, *, spelled_small: bool) -> str:
    """A whole number with 억 and 만, and its lower part in 천 and 백 or in digits."""
    parts = []
    for unit, size in (("억", 10**8), ("만", 10**4), ("", 1)):
        count, number = divmod(number, size)
        if count and spelled_small:
            thousands, rest = divmod(count, 1000)
            parts.append((f"{thousands}천" if thousands else "") + (f"{rest}" if rest else "") + unit)
        elif count:
            parts.append(f"{count:,}{unit}")
    return "".join(parts) or "0"


@given(st.integers(0, 9999_9999_9999), st.booleans())
def test_any_whole_number_is_read_as_it_was_written(number: int, spelled_small: bool) -> None:
    for written in (in_korean(number, spelled_small=spelled_small), f"{number:,}", str(number)):
        assert plain_number(amount_value(written)) == plain_number(Decimal(number))
        assert [(form.kind, form.low, form.unit) for form in forms_of(f"{written}원")] == [("amount", number, "원")]


@given(
    st.text(max_size=80)
    | st.text(st.sampled_from("0123456789,.~-년월일세원만억%최대이상 월1인당제호()Ol"), max_size=80)
)
def test_any_text_has_forms_that_stand_in_it_in_order_and_apart(text: str) -> None:
    line = normalised(text)
    forms = forms_of(line)
    assert all(line[form.start : form.end] == form.text and form.low <= form.high for form in forms)
    assert all(one.end <= other.start for one, other in itertools.pairwise(forms))


@given(st.lists(st.sampled_from(("가나 ", "3,000만원 ", "1" * 30, "나" * 90)), max_size=60))
def test_a_text_in_pieces_is_the_same_text(parts: list[str]) -> None:
    text = "".join(parts)
    pieces = pieces_of(text)
    assert "".join(pieces) == text and all(len(piece) <= MAX_LINE_CHARS for piece in pieces)
