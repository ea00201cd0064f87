"""Ruled tables against what was read of the page: only believed cells stay, and lines go where cells say the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from fpdf import FPDF
from fpdf.fonts import FontFace
from tests.fakes.pdf_desk import Desk

from sam2_mcp_worker.checks.reading import Reading, ReadLine, ReadPage
from sam2_mcp_worker.demo.fonts import find_fonts
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.pdf_tables import TASKS
from sam2_mcp_worker.pipelines.page_tables import may_hold_tables, with_tables

ROWS = [["담보", "남자", "여자"], ["사망", "1,000", "900"]]
GRID = {
    "box": [0.0, 50.0, 300.0, 90.0],
    "rows": [["담보", "남자", "여자"], ["사망", "1,000", "900"]],
    "boxes": [
        [[0.0, 50.0, 100.0, 70.0], [100.0, 50.0, 200.0, 70.0], [200.0, 50.0, 300.0, 70.0]],
        [[0.0, 70.0, 100.0, 90.0], None, [200.0, 70.0, 300.0, 90.0]],
    ],
}


def line(text: str, x: float, y: float, source: str = "text_layer") -> ReadLine:
    return ReadLine(text, source, (x, y, x + 40, y + 10), 10.0)  # type: ignore[arg-type]


def read_page(*more: ReadLine) -> ReadPage:
    cells = [
        line(text, 10 + 100 * column, 55 + 20 * row)
        for row, cells in enumerate(ROWS)
        for column, text in enumerate(cells)
    ]
    return ReadPage(3, "done", (line("(단위: 만원)", 250, 35), *cells, *more, line("끝", 10, 200)))


def read(page: ReadPage) -> Reading:
    return Reading("pdf", "pt", (page,))


def test_what_a_table_says_is_no_line_any_more() -> None:
    rest, (table,) = with_tables(read(read_page()), {3: [GRID]}, "filed.pdf")
    assert table.rows == tuple(map(tuple, ROWS))
    assert (table.name, table.page, table.title, table.source) == ("filed.pdf", 3, "(단위: 만원)", "text_layer")
    assert table.box_at(1, 2) == (200.0, 70.0, 300.0, 90.0) and table.box_at(1, 1) is None
    assert [one.text for one in rest.pages[0].lines] == ["(단위: 만원)", "끝"]


def test_a_cell_that_was_not_read_on_the_page_is_emptied() -> None:
    page = read_page()
    page = ReadPage(3, "done", tuple(one for one in page.lines if one.text != "900"))
    _, (table,) = with_tables(read(page), {3: [GRID]}, "a.pdf")
    assert table.rows[1] == ("사망", "1,000", "")


def test_a_table_of_which_nothing_was_read_is_none() -> None:
    page = ReadPage(3, "done", (line("사망 1,000", 10, 75, "ocr"), ReadLine("text", "text_layer")))
    assert with_tables(read(page), {3: [GRID]}, "a.pdf") == (read(page), ())


def test_what_stands_in_a_table_and_in_no_cell_stays_a_line() -> None:
    rest, _ = with_tables(read(read_page(line("3,000만원", 110, 72, "ocr"))), {3: [GRID]}, "a.pdf")
    assert [one.text for one in rest.pages[0].lines] == ["(단위: 만원)", "3,000만원", "끝"]


def test_only_pages_with_numbers_in_their_text_layer_are_looked_through_for_tables() -> None:
    assert may_hold_tables(read_page())
    assert not may_hold_tables(ReadPage(1, "done", (line("1", 0, 0, "ocr"), line("2", 0, 20, "ocr"))))
    assert not may_hold_tables(ReadPage(1, "failed"))


@pytest.fixture(scope="module")
def ruled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ruled") / "ruled.pdf"
    pdf = FPDF()
    pdf.add_page()
    pdf.add_font("nanum", "", str(find_fonts()["body"]))
    pdf.set_font("nanum", size=10)
    with pdf.table(headings_style=FontFace(emphasis=None), num_heading_rows=2) as table:
        head = table.row()
        head.cell("담보", rowspan=2)
        head.cell("가입금액", colspan=2)
        for cells in (
            ["남자", "여자"],
            ["재해로 인한 사망의 경우에 지급하는 보험금 (자세한 내용은 약관을 참조)", "1,000", "900"],
        ):
            row = table.row()
            for cell in cells:
                row.cell(cell)
    pdf.output(str(path))
    return path


def test_a_header_over_two_columns_is_that_of_both_and_a_cell_over_lines_is_one(ruled: Path) -> None:
    (table,) = TASKS["pdf_tables"]({"path": str(ruled), "password": "", "page_number": 1})["tables"]
    assert table["rows"][:2] == [["담보", "가입금액", "가입금액"], ["담보", "남자", "여자"]]
    assert table["rows"][2][1:] == ["1,000", "900"]
    assert table["rows"][2][0].replace(" ", "") == "재해로인한사망의경우에지급하는보험금(자세한내용은약관을참조)"
    assert table["boxes"][0][1] == table["boxes"][0][2] != table["boxes"][1][1]


def test_a_page_that_is_turned_or_plain_has_no_tables(tmp_path: Path) -> None:
    desk = Desk()
    page = desk.page("0 0 m 10 10 l S")
    page.Rotate = 90
    desk.page("")
    (tmp_path / "a.pdf").write_bytes(desk.save())
    for number in (1, 2):
        assert TASKS["pdf_tables"]({"path": str(tmp_path / "a.pdf"), "password": "", "page_number": number}) == {
            "tables": []
        }


def test_what_is_no_page_of_a_pdf_is_refused_by_name(tmp_path: Path, ruled: Path) -> None:
    import pikepdf

    with pikepdf.open(ruled) as pdf:
        pdf.save(tmp_path / "locked.pdf", encryption=pikepdf.Encryption(user="열쇠", owner="주인"))
    (tmp_path / "no.pdf").write_bytes(b"no pdf")
    for path, number, code in (
        (ruled, 2, "page_out_of_range"),
        (tmp_path / "locked.pdf", 1, "password_required"),
        (tmp_path / "no.pdf", 1, "page_damaged"),
    ):
        with pytest.raises(WorkerError, match=code):
            TASKS["pdf_tables"]({"path": str(path), "password": "", "page_number": number})
    found = TASKS["pdf_tables"]({"path": str(tmp_path / "locked.pdf"), "password": "열쇠", "page_number": 1})
    assert len(found["tables"]) == 1
