"""Workbooks to tables: what people see, what is left out and told, and what is refused by name."""

from __future__ import annotations

import io
import re
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.workbooks import OLE2, benefit_table, rewritten, simple, with_sheet_data

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.table_bounds import Room
from sam2_mcp_worker.media.table_child import TASKS
from sam2_mcp_worker.media.workbook_child import MAX_COLUMNS
from sam2_mcp_worker.media.workbook_scan import scan_sheet


def read(path: Path) -> dict[str, Any]:
    return TASKS["workbook_tables"]({"path": str(path)})


@pytest.fixture
def workbook(tmp_path: Path) -> Path:
    return benefit_table(tmp_path / "data")  # as the store of uploads names every file


def test_cells_show_what_people_see_and_merged_headers_are_those_of_every_column(workbook: Path) -> None:
    (table,) = read(workbook)["tables"]
    assert table["sheet"] == "보장표"
    assert table["rows"][:4] == [
        ["담보", "가입금액", "가입금액", "비율"],
        ["구분", "남", "여"],
        ["사망", "100,000,000원", "150000000", "5.5%", "", ""],
        ["상해", "30000000", "5천만원", "5.5%"],
    ]
    assert table["rows"][5] == ["기준일", "2026-01-02"]
    assert table["doubtful"] == [(3, 3)]  # 5.537 % is shown as 5.5%


def test_what_is_hidden_is_left_out_and_told(workbook: Path) -> None:
    result = read(workbook)
    assert "77" not in str(result["tables"]) and "999" not in str(result["tables"])
    assert result["notes"] == [
        "1 hidden rows and 1 hidden columns of sheet '보장표' were left out",
        "hidden sheets were left out: 비밀",
    ]


def test_a_formula_that_nobody_calculated_was_not_read(workbook: Path) -> None:
    assert read(workbook)["unread"] == "formulas without a stored value in sheet '보장표': B5"


def test_a_formula_with_its_value_is_read_by_that_value(workbook: Path, tmp_path: Path) -> None:
    path = rewritten(
        workbook,
        tmp_path / "c.xlsx",
        "sheet1",
        lambda xml: re.sub(rb"</f><v ?/?>(</v>)?", b"</f><v>130000000</v>", xml),
    )
    result = read(path)
    assert result["tables"][0]["rows"][4] == ["합계", "130000000"]
    assert result["unread"] == ""


def test_a_wrong_claim_of_its_size_loses_no_cell(workbook: Path, tmp_path: Path) -> None:
    path = rewritten(
        workbook,
        tmp_path / "d.xlsx",
        "sheet1",
        lambda xml: re.sub(rb'<dimension ref="[^"]*"', b'<dimension ref="A1"', xml),
    )
    assert read(path)["tables"] == read(workbook)["tables"]


def test_a_doubtful_merged_cell_is_doubtful_all_over_and_odd_merges_do_no_harm(tmp_path: Path) -> None:
    path = simple(tmp_path / "m.xlsx", [["율", 0.05537, None], ["남"]], number_format="0%")
    odd = b"".join(b'<mergeCell ref="%s"/>' % ref for ref in (b"A1", b"A1:ZZ99999", b"Z9:Z10"))
    merges = b'<mergeCells><mergeCell ref="B1:C2"/>' + odd + b"</mergeCells></worksheet>"
    path = rewritten(path, tmp_path / "n.xlsx", "sheet1", lambda xml: xml.replace(b"</worksheet>", merges))
    (table,) = read(path)["tables"]
    assert table["rows"] == [["율", "6%", "6%"], ["남", "6%", "6%"]]
    assert table["doubtful"] == [(0, 1), (0, 2), (1, 1), (1, 2)]


def test_merged_cells_that_are_no_range_are_passed_over() -> None:
    odd = b"".join(b'<mergeCell ref="%s"/>' % ref for ref in (b"x", b"B2", b"C1:B1", b"A1:B2"))
    columns = b'<col min="2" max="99999999" hidden="1"/><col min="x" max="3" hidden="true"/><col min="5" max="5"/>'
    facts = scan_sheet(io.BytesIO(b"<worksheet>" + columns + odd + b"</worksheet>"), last_row=9)
    assert facts.merges == [(1, 1, 2, 2)]
    assert facts.hidden_columns == {1, 2, 3}
    with pytest.raises(WorkerError, match="workbook_damaged"):
        scan_sheet(io.BytesIO(b"<!DOCTYPE a><a/>"), last_row=9)


def test_empty_rows_at_the_end_cost_no_merged_header(workbook: Path, tmp_path: Path) -> None:
    styled = b'<row r="30"><c r="A30" s="1"/></row></sheetData>'
    path = rewritten(workbook, tmp_path / "e.xlsx", "sheet1", lambda xml: xml.replace(b"</sheetData>", styled))
    assert read(path)["tables"] == read(workbook)["tables"]


def test_rows_without_numbers_are_counted(workbook: Path, tmp_path: Path) -> None:
    rows = b"<row><c><v>1</v></c></row><row hidden='1'><c><v>2</v></c></row><row><c><v>3</v></c></row>"
    result = read(with_sheet_data(workbook, tmp_path / "u.xlsx", rows))
    assert result["tables"][0]["rows"] == [["1"], [], ["3"]]


def test_merged_cells_do_not_multiply_a_text_without_end(
    workbook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sam2_mcp_worker.media.workbook_child.Room", partial(Room, cells=30))
    rows = b"".join(b'<row r="%d"><c r="A%d"><v>7</v></c></row>' % (n, n) for n in range(1, 4))
    merges = b"".join(b'<mergeCell ref="A%d:J%d"/>' % (n, n) for n in range(1, 4))
    path = with_sheet_data(workbook, tmp_path / "w.xlsx", rows)
    path = rewritten(
        path,
        tmp_path / "x.xlsx",
        "sheet1",
        lambda xml: re.sub(rb"<mergeCells.*</mergeCells>", b"<mergeCells>" + merges + b"</mergeCells>", xml),
    )
    result = read(path)
    assert [len(row) for row in result["tables"][0]["rows"]] == [10, 10, 1]
    assert "merged cells of sheet '보장표'" in result["unread"], "and so nothing of it is a mismatch"


@pytest.mark.parametrize("limit", [{"cells": 3}, {"chars": 11}])
def test_a_file_has_a_bound_of_cells_and_of_characters(limit: dict[str, int]) -> None:
    room = Room(**limit)
    assert room.takes(2, 6) and not room.takes(2, 6) and room.takes(1, 5)


@pytest.fixture
def small_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sam2_mcp_worker.media.workbook_child.Room", partial(Room, cells=5, rows=10))


@pytest.mark.usefixtures("small_room")
def test_a_sheet_that_does_not_tell_its_size_is_not_gone_through_for_it(workbook: Path, tmp_path: Path) -> None:
    good = b"".join(b'<row r="%d"><c r="A%d"><v>1</v></c></row>' % (n, n) for n in range(1, 20_000))
    path = with_sheet_data(workbook, tmp_path / "g.xlsx", good + b"<row no xml")
    path = rewritten(path, tmp_path / "h.xlsx", "sheet1", lambda xml: re.sub(rb"<dimension [^>]*>", b"", xml))
    assert len(read(path)["tables"][0]["rows"]) == 5, "what is behind the bound was never looked at"


@pytest.mark.usefixtures("small_room")
def test_rows_beyond_the_bound_are_told(workbook: Path, tmp_path: Path) -> None:
    rows = b"".join(b'<row r="%d"><c r="A%d"><v>1</v></c></row>' % (n, n) for n in range(1, 8))
    result = read(with_sheet_data(workbook, tmp_path / "r.xlsx", rows))
    assert len(result["tables"][0]["rows"]) == 5
    assert "sheet '보장표' from row 6 on" in result["unread"]


@pytest.mark.usefixtures("small_room")
def test_a_cell_in_the_last_corner_costs_nothing_and_is_told(workbook: Path, tmp_path: Path) -> None:
    corner = b'<row r="1"><c r="A1"><v>1</v></c><c r="XFD1"><v>2</v></c></row>'
    corner += b'<row r="1048576"><c r="A1048576"><v>3</v></c></row>'
    result = read(with_sheet_data(workbook, tmp_path / "f.xlsx", corner))
    assert result["tables"][0]["rows"] == [["1"]]
    assert "from row 11 on" in result["unread"]
    assert f"columns after the first {MAX_COLUMNS} in 1 rows" in result["unread"]


def test_sheets_beyond_the_bound_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sam2_mcp_worker.media.workbook_child.MAX_SHEETS", 0)
    result = read(simple(tmp_path / "s.xlsx", [["담보", 1]]))
    assert result == {"tables": [], "notes": [], "unread": "1 sheets (at most 0 are read)"}


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def packed(path: Path, name: str, data: bytes = b"<a/>") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        package.writestr(name, data)
    return path


def old_file(path: Path, stream: str) -> Path:
    return written(path, OLE2 + bytes(600) + stream.encode("utf-16-le"))


def test_what_is_no_workbook_is_refused_by_name(tmp_path: Path, workbook: Path) -> None:
    refused = {
        old_file(tmp_path / "a.xls", "Workbook"): "old Excel workbook",
        old_file(tmp_path / "a.hwp", "HwpSummaryInformation"): "HWP document",
        old_file(tmp_path / "a.bin", "something"): "old Office file",
        packed(tmp_path / "a.docx", "word/document.xml"): "Word document",
        packed(tmp_path / "a.hwpx", "Contents/content.hpf"): "HWPX document",
        packed(tmp_path / "a.zip", "readme"): "zip archive",
    }
    for path, what in refused.items():
        with pytest.raises(WorkerError, match=rf"unsupported_file.*{what}"):
            read(path)


def test_an_encrypted_workbook_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match=r"workbook_encrypted.*remove the password"):
        read(old_file(tmp_path / "a.xlsx", "EncryptedPackage"))


def test_damaged_and_hostile_workbooks_are_refused_by_name(tmp_path: Path, workbook: Path) -> None:
    entities = b'<!DOCTYPE x [<!ENTITY a "1">]><worksheet'
    damaged = (
        written(tmp_path / "cut.xlsx", workbook.read_bytes()[:900]),
        rewritten(workbook, tmp_path / "dtd.xlsx", "sheet1", lambda xml: xml.replace(b"<worksheet", entities, 1)),
        rewritten(workbook, tmp_path / "xml.xlsx", "sheet1", lambda xml: xml[: len(xml) // 2]),
    )
    for path in damaged:
        with pytest.raises(WorkerError, match="workbook_damaged"):
            read(path)


def test_a_bomb_is_refused_by_what_it_claims_and_never_unpacked(
    workbook: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sam2_mcp_worker.media.workbook_child.MAX_SHEETS_BYTES", 1000)
    with pytest.raises(WorkerError, match="workbook_too_large"):
        read(workbook)


def test_an_empty_workbook_is_refused_and_says_what_was_hidden(tmp_path: Path, workbook: Path) -> None:
    with pytest.raises(WorkerError, match="table_empty"):
        read(simple(tmp_path / "e.xlsx", []))
    hidden = rewritten(workbook, tmp_path / "h.xlsx", "xl/workbook.xml", lambda xml: xml.replace(b"visible", b"hidden"))
    with pytest.raises(WorkerError, match=r"table_empty.*보장표"):
        read(hidden)


def test_a_csv_file_tells_its_encoding_where_it_is_not_utf_8(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "담보,금액\n사망,1억원\n".encode("cp949"))
    result = TASKS["csv_table"]({"path": str(path)})
    assert result["tables"] == [
        {"sheet": "", "rows": [["담보", "금액"], ["사망", "1억원"]], "first_row": 1, "doubtful": []}
    ]
    assert result["notes"] == ["read as CP949"]
    path = written(tmp_path / "b.csv", "담보,금액\n사망,1억원\n".encode())
    assert TASKS["csv_table"]({"path": str(path)})["notes"] == []


def test_a_csv_file_beyond_the_bound_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sam2_mcp_worker.media.table_child.MAX_TEXT_BYTES", 3)
    with pytest.raises(WorkerError, match="table_too_large"):
        TASKS["csv_table"]({"path": str(written(tmp_path / "a.csv", b"a,b\n"))})
