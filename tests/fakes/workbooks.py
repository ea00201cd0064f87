"""Real workbooks, and the same with single parts rewritten: what no honest program writes."""

from __future__ import annotations

import datetime as dt
import zipfile
from collections.abc import Callable
from pathlib import Path

from openpyxl import Workbook

OLE2 = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def benefit_table(path: Path) -> Path:
    """Merged headers, number formats, a formula that was never calculated, and all kinds of hiding."""
    book = Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = "보장표"
    for row in (
        ["담보", "가입금액", "", "비율"],
        ["구분", "남", "여", ""],
        ["사망", 100000000, 150000000, 0.055],
        ["상해", 30000000, "5천만원", 0.05537],
        ["합계", "=SUM(B3:B4)"],
        ["기준일", dt.date(2026, 1, 2)],
        ["숨김", 77],
    ):
        sheet.append(row)
    sheet.merge_cells("B1:C1")
    sheet["B3"].number_format = '#,##0"원"'
    sheet["D3"].number_format = sheet["D4"].number_format = "0.0%"
    sheet["F3"] = 999
    sheet.row_dimensions[7].hidden = True
    sheet.column_dimensions["F"].hidden = True
    secret = book.create_sheet("비밀")
    secret["A1"] = 5
    secret.sheet_state = "hidden"
    book.save(path)
    return path


def simple(path: Path, rows: list[list[object]], number_format: str = "General") -> Path:
    """One visible sheet with these rows."""
    book = Workbook()
    assert book.active is not None
    for row in rows:
        book.active.append(row)
    for cells in book.active.iter_rows():
        for cell in cells:
            cell.number_format = number_format
    book.save(path)
    return path


def rewritten(source: Path, path: Path, part: str, change: Callable[[bytes], bytes]) -> Path:
    """A copy in which the parts whose name holds `part` are changed."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            data = old.read(info)
            new.writestr(info.filename, change(data) if part in info.filename else data)
    return path


def with_sheet_data(source: Path, path: Path, data: bytes) -> Path:
    """A copy whose first sheet holds this XML between the tags `sheetData`."""

    def change(xml: bytes) -> bytes:
        start, end = xml.index(b"<sheetData>") + len(b"<sheetData>"), xml.index(b"</sheetData>")
        return xml[:start] + data + xml[end:]

    return rewritten(source, path, "sheet1", change)
