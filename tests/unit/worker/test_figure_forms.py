"""Forms of numbers in Korean text, each with its exact value; the table is figure_forms.txt."""

from __future__ import annotations

from pathlib import Path

import pytest

from sam2_mcp_worker.checks.figures.form import Form
from sam2_mcp_worker.checks.figures.forms import forms_of, normalised

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
