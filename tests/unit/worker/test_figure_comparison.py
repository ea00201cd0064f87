"""What is compared of files: it travels whole, and what is left out for its size is told."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.bench.checks.figure_pairs import pairs, reading_of

from sam2_mcp_worker.checks.tables import Table
from sam2_mcp_worker.media.figure_child import TASKS
from sam2_mcp_worker.media.figure_comparison import (
    Comparison,
    FileText,
    bounded,
    compared,
    comparison_from,
    comparison_json,
    findings_from,
)

TABLE = Table("a.csv", (("나이", "남자"), ("30세", "1,000원"), ("40세", "2,000원")), doubtful=frozenset({(1, 1)}))


def test_the_child_judges_what_the_pure_check_judges() -> None:
    for pair in pairs(2):
        evidence = [FileText(table.name, None, (table,)) for table in pair.tables]
        evidence += [FileText(name, reading_of(lines), (), "page 3 failed") for name, lines in pair.texts.items()]
        comparison = Comparison(FileText("ad", pair.advertisement), tuple(evidence))
        assert comparison_from(comparison_json(comparison)) == comparison
        answer = TASKS["compare_figures"]({"comparison": comparison_json(comparison)})
        assert findings_from(answer["findings"]) == compared(comparison)
        assert comparison.files[0].name == "ad" and len(comparison.files) == len(evidence) + 1


@given(st.integers(0, 12))
def test_numbers_that_do_not_fit_are_left_out_and_told(room: int) -> None:
    whole = FileText("a", reading_of(["월 3만원", "글", "20세", "30세"]), (TABLE,), "page 2 failed")
    kept, used = bounded(whole, room)
    texts = [text for table in kept.tables for row in table.rows for text in row]
    assert kept.reading is not None
    texts += [line.text for page in kept.reading.pages for line in page.lines]
    everything = [text for row in TABLE.rows for text in row] + ["월 3만원", "글", "20세", "30세"]
    if room >= 11:  # a row of words, 30 1 000 40 2 000 in the table; 3 만 20 30 in the lines
        assert (kept, used) == (whole, 11)
    else:
        assert texts == everything[: len(texts)] and used == room
        assert kept.unread == f"page 2 failed; numbers after the first {room}"


def test_a_file_that_fits_is_the_same_file() -> None:
    table_only = FileText("a", None, (TABLE,))
    assert bounded(table_only, 7) == (table_only, 7)
    kept, _ = bounded(replace(table_only, tables=(TABLE, TABLE)), 8)
    assert [len(table.rows) for table in kept.tables] == [3, 1]
    assert kept.unread == "numbers after the first 8" and kept.reading is None


def test_a_table_of_words_is_bounded_as_well() -> None:
    words = FileText("a", None, (Table("a.csv", (("담보", "설명"), (), *(("암", "글"),) * 9)),))
    kept, used = bounded(words, 4)
    assert (len(kept.tables[0].rows), used) == (5, 4) and kept.unread == "numbers after the first 4"
