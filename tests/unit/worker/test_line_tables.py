"""Tables that only the places of their lines tell: what is taken for one, and what stays lines."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.checks.line_tables import MAX_LINES, title_above, with_line_tables
from sam2_mcp_worker.checks.reading import ReadLine, ReadPage
from sam2_mcp_worker.checks.tables import Table

HEIGHT = 10.0
PITCH = 30.0
LEFTS = (30.0, 200.0, 300.0, 400.0)
HEAD = ["보장", "기본형", "고급형"]
BODY = [["암 진단", "3,000만원", "5,000만원"], ["유사암 진단", "600만원", "1,000만원"], ["수술", "30만원", "50만원"]]


def line(text: str, left: float, top: float, source: str = "text_layer", confidence: float | None = None) -> ReadLine:
    width = max(6.0 * len(text), 4.0)
    return ReadLine(text, source, (left, top, left + width, top + HEIGHT), HEIGHT, confidence)  # type: ignore[arg-type]


def grid(rows: list[list[str]], top: float = 100.0) -> list[ReadLine]:
    return [
        line(text, LEFTS[column], top + PITCH * number)
        for number, cells in enumerate(rows)
        for column, text in enumerate(cells)
        if text
    ]


def page(*lines: ReadLine) -> ReadPage:
    return ReadPage(4, "done", tuple(lines))


def tables(*lines: ReadLine) -> tuple[Table, ...]:
    return with_line_tables(page(*lines), "a.pdf")[1]


def test_rows_below_headers_are_a_table_and_no_lines_any_more() -> None:
    title, below = line("주요 보장 금액 (단위: 원)", 50, 75), line("※ 유사암은 기타피부암을 말합니다", 50, 300)
    rest, (table,) = with_line_tables(page(title, *grid([HEAD, *BODY]), below), "a.pdf")
    assert table.rows == tuple(map(tuple, [HEAD, *BODY]))
    assert (table.name, table.page, table.source, table.title) == ("a.pdf", 4, "text_layer", title.text)
    assert table.box_at(1, 2) == (300.0, 130.0, 342.0, 140.0)
    assert table.doubtful == frozenset()
    assert rest.lines == (title, below)


@given(
    st.lists(st.lists(st.integers(0, 10**6), min_size=3, max_size=3), min_size=2, max_size=6),
    st.randoms(use_true_random=False),
)
def test_the_order_in_which_lines_were_read_does_not_matter(numbers: list[list[int]], random: object) -> None:
    rows = [
        ["나이", "남자", "여자", "평균"],
        *([f"{30 + at}세", *(f"{one:,}원" for one in row)] for at, row in enumerate(numbers)),
    ]
    lines = grid(rows)
    random.shuffle(lines)  # type: ignore[attr-defined]
    (table,) = tables(*lines)
    assert table.rows == tuple(map(tuple, rows))


@given(
    st.lists(
        st.tuples(st.integers(0, 500), st.integers(0, 500), st.text("가나 1,0원", min_size=1, max_size=9)), max_size=25
    )
)
def test_every_line_of_any_page_is_in_a_table_or_still_there(spots: list[tuple[int, int, str]]) -> None:
    lines = [line(text, left, top) for left, top, text in spots]
    rest, found = with_line_tables(page(*lines), "a.pdf")
    kept = list(rest.lines)
    assert [one for one in lines if any(one is other for other in kept)] == kept
    said = " ".join(text for table in found for row in table.rows for text in row)
    assert all(one.text in said for one in lines if not any(one is other for other in kept))


def test_a_title_in_two_parts_above_the_headers_is_no_row() -> None:
    above = [line("주요 보장 금액", 50, 75), line("단위: 원, 1회 기준", 300, 75)]
    (table,) = tables(*above, *grid([HEAD, *BODY]))
    assert table.rows[0] == tuple(HEAD)
    assert table.title == "주요 보장 금액 단위: 원, 1회 기준"


def test_headers_over_two_columns_belong_to_both() -> None:
    wide = ReadLine("가입금액", "text_layer", (200.0, 78.0, 345.0, 88.0), HEIGHT)
    (table,) = tables(line("구분", 30, 78), wide, *grid([HEAD, *BODY]))
    assert table.rows[0] == ("구분", "가입금액", "가입금액")
    assert table.doubtful == frozenset()


def test_a_value_over_two_columns_is_doubtful_in_the_second() -> None:
    wide = ReadLine("100만원", "text_layer", (200.0, 220.0, 345.0, 230.0), HEIGHT)
    (table,) = tables(*grid([HEAD, *BODY]), line("골절", 30, 220), wide)
    assert table.rows[4] == ("골절", "100만원", "100만원")
    assert table.doubtful == {(4, 2)}


def test_the_rest_of_a_cell_in_the_next_line_belongs_to_it() -> None:
    rest = [line("(최초 1회)", 30, 142), line("(유사암)", 30, 148)]
    (table,) = tables(*grid([HEAD, *BODY]), rest[0])
    assert [row[0] for row in table.rows] == ["보장", "암 진단 (최초 1회)", "유사암 진단", "수술"]
    (table,) = tables(*grid([HEAD, *BODY]), rest[1])
    assert [row[0] for row in table.rows] == ["보장", "암 진단", "(유사암) 유사암 진단", "수술"]
    assert table.rows[2][1:] == ("600만원", "1,000만원")


def test_the_rest_of_the_last_cell_belongs_to_it_too() -> None:
    (table,) = tables(*grid([HEAD, *BODY]), line("(1회당)", 200, 202))
    assert table.rows[3] == ("수술", "30만원 (1회당)", "50만원")


def test_a_line_halfway_between_two_rows_makes_both_doubtful() -> None:
    (table,) = tables(*grid([HEAD, *BODY]), line("중간", 30, 145))
    assert {row for row, _ in table.doubtful} == {1, 3}
    assert table.rows[2] == ("중간", "", "")


def test_a_heading_between_the_rows_is_a_row_of_its_own() -> None:
    lower = [
        replace(one, box_xyxy=(b[0], b[1] + 30, b[2], b[3] + 30))
        for one in grid([["", "", ""], *BODY[:2]], 150)
        if (b := one.box_xyxy)
    ]
    (table,) = tables(*grid([HEAD, *BODY[:2]]), line("2형", 30, 190), *lower)
    assert table.rows[3] == ("2형", "", "")
    assert table.rows[4][0] == "암 진단"


def test_a_heading_behind_the_last_row_begins_something_else() -> None:
    heading = line("2형", 30, 220)
    rest, (table,) = with_line_tables(page(*grid([HEAD, *BODY]), heading), "a.pdf")
    assert len(table.rows) == 4 and rest.lines == (heading,)


def test_a_row_that_nobody_names_is_doubtful() -> None:
    (table,) = tables(*grid([HEAD, *BODY, ["", "70만원", "90만원"]]))
    assert table.rows[4] == ("", "70만원", "90만원")
    assert table.doubtful == {(4, 1), (4, 2)}


def test_what_ocr_was_not_sure_of_is_doubtful() -> None:
    read = [
        replace(one, source="ocr", confidence=0.8 if one.text == "600만원" else 0.95) for one in grid([HEAD, *BODY])
    ]
    read[-1] = replace(read[-1], confidence=None)
    (table,) = tables(*read)
    assert (table.source, table.doubtful) == ("ocr", {(2, 1), (3, 2)})


def test_two_tables_below_each_other_are_two() -> None:
    found = tables(
        *grid([HEAD, *BODY]), *grid([["나이", "남자", "여자"], ["30세", "1원", "2원"], ["40세", "3원", "4원"]], 400)
    )
    assert [table.rows[0][0] for table in found] == ["보장", "나이"]


def test_what_is_no_table_stays_lines() -> None:
    prose = [line(f"보험계약자가 기존 계약을 해지하고 {n}", x, 100 + 12 * n) for n in range(6) for x in (50, 330)]
    chart = [
        line(text, x, 100 + PITCH * n) for n in range(4) for text, x in ((f"{n}0세", 50), (f"{n},900원", 150 + 60 * n))
    ]
    without_head = grid(BODY)
    cards = grid(
        [["암 진단비", "뇌혈관", "입원"], ["최대 5,000만원", "2,000만원", "5만원"], ["40세 여자", "", "19,800원"]]
    )
    short = grid([HEAD, BODY[0]])
    texts = grid([HEAD, ["암", "없음", "있음"], ["수술", "없음", "있음"]])
    far = [*grid([HEAD]), *grid(BODY[:1], 300), *grid(BODY[1:2], 500)]
    long_names = grid(
        [HEAD, *([name * 13, *row[1:]] for name, row in zip(("가나", "다라", "마바"), BODY, strict=True))]
    )
    crossing = [*grid([HEAD]), line("가" * 40, 50, 125), *grid(BODY[:1], 150)]
    lone = [line("제목", 50, 100), ReadLine("그냥 글", "text"), ReadLine("말", "speech", None, None, None, 1.0, 2.0)]
    for lines in (prose, chart, without_head, cards, short, texts, far, long_names, crossing, lone, []):
        assert with_line_tables(page(*lines), "a.pdf") == (page(*lines), ())


def test_dots_in_rows_are_no_table_however_many() -> None:
    dots = page(*(line("1", 10.0 * (n % 70), 20.0 * (n // 70)) for n in range(1400)))
    assert with_line_tables(dots, "a.pdf") == (dots, ())


def test_no_page_is_so_full_that_it_takes_long() -> None:
    full = page(*(line("1", n % 70, n // 70) for n in range(MAX_LINES + 1)))
    assert with_line_tables(full, "a.pdf") == (full, ())


def test_a_title_stands_above_and_over_the_table() -> None:
    lines = [line("멀리", 60, 10), line("위", 60, 80), line("옆", 500, 80), line("안", 60, 120), ReadLine("글", "text")]
    assert title_above(lines, (50.0, 100.0, 200.0, 200.0), 40.0) == "위"


def test_a_title_in_two_short_parts_over_columns_is_no_row() -> None:
    above = [line("보장", LEFTS[0], 75), line("단위", LEFTS[1], 75)]
    (table,) = tables(*above, *grid([HEAD, *BODY]))
    assert (table.rows[0], table.title) == (tuple(HEAD), "보장 단위")
