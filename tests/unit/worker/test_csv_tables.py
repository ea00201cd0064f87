"""Separated values: which separator, and what a broken quote costs."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media import table_bounds
from sam2_mcp_worker.media.csv_tables import SEPARATORS, read_separated, sniff
from sam2_mcp_worker.media.table_bounds import MAX_CELL_CHARS, MAX_CELLS, clipped

CELLS = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp")), min_size=1, max_size=8)


@given(st.lists(st.lists(CELLS, min_size=3, max_size=3), min_size=3, max_size=8), st.sampled_from(SEPARATORS))
def test_what_a_program_writes_is_read_again_cell_by_cell(rows: list[list[str]], separator: str) -> None:
    text = io.StringIO()
    csv.writer(text, delimiter=separator, quoting=csv.QUOTE_ALL).writerows(rows)
    # The first line names the separator, as Excel writes it: nothing can be sniffed from arbitrary cells.
    found = read_separated(f"sep={separator}\n" + text.getvalue().replace("\r\n", "\n"))
    assert (found.rows, found.first_row, found.unread) == (rows, 2, "")


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ('담보,금액\n사망,"100,000,000"\n', ","),
        ("담보;금액\n사망;100,000,000\n", ";"),
        ("담보\t금액\n사망\t1,000\n", "\t"),
        ("제목\n(단위: 만원)\n\n담보|금액\n사망|1,000\n상해|2,000\n", "|"),
        ("한 줄뿐인 글", ""),
    ],
)
def test_the_separator_is_that_which_most_lines_agree_on(text: str, separator: str) -> None:
    assert sniff(text) == separator


def test_a_stray_quote_does_not_swallow_the_file() -> None:
    found = read_separated('담보,금액\n"사망,1억원\n' + "상해,2억원\n" * 200)
    assert len(found.rows) == 202 and found.rows[-1] == ["상해", "2억원"]


def test_a_quote_that_swallows_more_than_a_field_may_hold_does_not_either() -> None:
    found = read_separated('담보,금액\n"사망,1억원\n' + ("상해,2억원" + " " * 2000 + "\n") * 80)
    assert found.rows[-1] == ["상해", "2억원"]


def test_a_cell_that_never_ends_is_refused_by_name() -> None:
    with pytest.raises(WorkerError, match="table_damaged"):
        read_separated("담보," + "1" * 140_000)


def test_a_cell_over_lines_is_one_cell() -> None:
    assert read_separated('담보,금액\n"사망\n보험금",1억원\n').rows[1] == ["사망 보험금", "1억원"]


@pytest.mark.parametrize("text", ["", "\n\n", ",,\n,,\n"])
def test_a_table_without_a_word_is_refused(text: str) -> None:
    with pytest.raises(WorkerError, match="table_empty"):
        read_separated(text)


def test_rows_beyond_the_bound_are_told() -> None:
    found = read_separated("a,1,2,3\n" * (MAX_CELLS // 4 + 2))
    assert len(found.rows) == MAX_CELLS // 4
    assert f"from row {MAX_CELLS // 4 + 1} on" in found.unread


def test_empty_rows_are_bounded_as_well() -> None:
    room = table_bounds.Room(cells=10, rows=2)
    assert [room.takes(0), room.takes(0), room.takes(0)] == [True, True, False]


def test_a_long_cell_is_clipped_to_one_line() -> None:
    assert clipped(" a \n b ") == "a b"
    assert len(clipped("가" * 10_000)) == MAX_CELL_CHARS
