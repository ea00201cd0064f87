"""Workbooks (.xlsx, .xlsm) to tables of shown texts, inside a child: what is stored, never what a formula would give.

Owns the order of the steps and the limits of a file: macros are never run, links never followed, hidden sheets, rows
and columns left out, as hidden text of a PDF is. What is left out is told.
"""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.file_kinds import unsupported
from sam2_mcp_worker.media.number_formats import shown
from sam2_mcp_worker.media.table_bounds import Room, clipped, rows_left_out
from sam2_mcp_worker.media.workbook_scan import SheetFacts, damaged, scan_sheet

# All XML of a workbook that is read, unpacked. The strings are kept in memory, at about four times their size.
MAX_SHEETS_BYTES = 512 * 2**20
MAX_STRINGS_BYTES = 96 * 2**20
MAX_PARTS = 10_000
MAX_SHEETS = 200
# More columns are a database. A row that has one cell in its last column (16,384) is as wide as that.
MAX_COLUMNS = 1_000
_LISTED = 5
_OLE_SCAN_BYTES = 64 * 2**20
_OLE2 = b"\xd0\xcf\x11\xe0"
# Names of streams in old containers, as UTF-16, and what their file is.
_OLD_FILES = {
    "EncryptedPackage": "",
    "HwpSummaryInformation": "an HWP document",
    "WordDocument": "an old Word document (.doc)",
    "PowerPoint Document": "an old PowerPoint file (.ppt)",
    "Workbook": "an old Excel workbook (.xls)",
}
_OTHER_PACKAGES = {
    "word/document.xml": "a Word document",
    "ppt/presentation.xml": "a PowerPoint file",
    "Contents/content.hpf": "an HWPX document",
    "content.xml": "an OpenDocument file",
    "xl/workbook.bin": "a binary workbook (.xlsb)",
}
_SUMMED = ("xl/worksheets/", "xl/styles", "xl/workbook", "xl/_rels/")


def workbook_tables(params: dict[str, Any]) -> dict[str, Any]:
    """Task: `path` -> `tables` (`sheet`, `rows` from row 1, `doubtful` places), `notes`, `unread` ("" = all was read).

    Raises:
        WorkerError: unsupported_file, workbook_encrypted, workbook_damaged, workbook_too_large, table_empty.
    """
    path = Path(params["path"])
    _check_package(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of extensions that it does not know, such as drop-down lists
        try:
            return _read(path)
        except (WorkerError, MemoryError):
            raise
        # openpyxl meets damaged files with whatever exception comes first; none of them is about us.
        except Exception as error:
            raise damaged(type(error).__name__) from error  # its words may be those of a cell


def _check_package(path: Path) -> None:
    with path.open("rb") as file:
        if file.read(4) == _OLE2:
            file.seek(0)
            raise _old_file(file.read(_OLE_SCAN_BYTES))
    try:
        with zipfile.ZipFile(path) as package:
            parts = package.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise damaged(f"no zip: {error}") from error
    names = {part.filename for part in parts}
    if not any(name.lower() == "xl/workbook.xml" for name in names):
        kind = next((what for name, what in _OTHER_PACKAGES.items() if name in names), "a zip archive")
        raise unsupported(kind)
    strings = sum(part.file_size for part in parts if part.filename.startswith("xl/sharedStrings"))
    sheets = sum(part.file_size for part in parts if part.filename.startswith(_SUMMED))
    if len(parts) > MAX_PARTS or strings > MAX_STRINGS_BYTES or sheets > MAX_SHEETS_BYTES:
        raise WorkerError(
            "workbook_too_large",
            f"unpacked, the workbook has {sheets + strings} bytes in {len(parts)} parts",
            rule=f"at most {MAX_SHEETS_BYTES} bytes of sheets, {MAX_STRINGS_BYTES} of texts and {MAX_PARTS} parts",
            next_step="keep the sheets that matter and save them as a new .xlsx",
        )


def _old_file(data: bytes) -> WorkerError:
    for name, kind in _OLD_FILES.items():
        if name.encode("utf-16-le") in data:
            return unsupported(kind) if kind else _encrypted()
    return unsupported("an old Office file")


def _encrypted() -> WorkerError:
    return WorkerError(
        "workbook_encrypted",
        "the workbook is protected by a password",
        rule="workbooks are read without one",
        next_step="remove the password in Excel (File, Info, Protect Workbook) and upload the file again",
    )


def _read(path: Path) -> dict[str, Any]:
    # Not above: it takes 0.25 s and 10 MB, and most decoder children never see a workbook.
    import openpyxl
    from openpyxl.worksheet._read_only import ReadOnlyWorksheet

    # Of a sheet that does not tell its size it would read every row to find out, and nobody here asks.
    ReadOnlyWorksheet._get_size = lambda _: None  # type: ignore[attr-defined]
    with path.open("rb") as file:  # by its path openpyxl reads only what ends in .xlsx
        book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
        return _read_book(book)


def _read_book(book: Any) -> dict[str, Any]:
    try:
        reading = _Reading()
        sheets = book.worksheets
        hidden = [sheet.title for sheet in sheets if sheet.sheet_state != "visible"]
        visible = [sheet for sheet in sheets if sheet.sheet_state == "visible"]
        for sheet in visible[:MAX_SHEETS]:
            reading.add(sheet)
        if len(visible) > MAX_SHEETS:
            reading.left_out.append(f"{len(visible) - MAX_SHEETS} sheets (at most {MAX_SHEETS} are read)")
        if hidden:
            reading.notes.append(f"hidden sheets were left out: {_listed(hidden)}")
    finally:
        book.close()
    if not reading.tables and not reading.left_out:
        raise WorkerError(
            "table_empty",
            "the workbook has no visible cell with a value in it",
            rule=f"left out: {'; '.join(reading.notes)}" if reading.notes else "",
            next_step="upload the right file, or show its sheets and save it again",
        )
    return {"tables": reading.tables, "notes": reading.notes, "unread": "; ".join(reading.left_out)}


class _Reading:
    """What was read of a workbook so far."""

    def __init__(self) -> None:
        self.tables: list[dict[str, Any]] = []
        self.notes: list[str] = []
        self.left_out: list[str] = []
        self._room = Room()

    def add(self, sheet: Any) -> None:
        """Read one sheet."""
        title = str(sheet.title)
        rows, doubtful, last_row = self._rows(sheet, title)
        # `_get_source` is the sheet's own part of the package, which the reader offers in no other way.
        with sheet._get_source() as stream:
            facts = scan_sheet(stream, last_row=last_row)
        if not _spread(rows, doubtful, facts, self._room):
            self.left_out.append(f"what merged cells of sheet {title!r} hold was not repeated for all of them")
        self._hide(rows, facts, title)
        if facts.empty_formulas:
            cells = _listed(facts.empty_formulas)
            self.left_out.append(f"formulas without a stored value in sheet {title!r}: {cells}")
        if any(any(row) for row in rows):
            self.tables.append({"sheet": title, "rows": rows, "doubtful": sorted(doubtful)})

    def _rows(self, sheet: Any, title: str) -> tuple[list[list[str]], set[tuple[int, int]], int]:
        """The rows without empty ones at the end, places of doubtful cells, and how many rows were gone through."""
        sheet.reset_dimensions()  # what a file claims of its size may be wrong, and cells beyond it would be lost
        rows: list[list[str]] = []
        doubtful: set[tuple[int, int]] = set()
        wide: list[int] = []
        for number, row in enumerate(sheet.iter_rows()):
            cells = [
                shown(cell.value, cell.number_format) if cell.value is not None else None for cell in row[:MAX_COLUMNS]
            ]
            texts = [clipped(cell.text) if cell is not None else "" for cell in cells]
            if not self._room.takes(sum(cell.value is not None for cell in row), sum(map(len, texts))):
                self.left_out.append(rows_left_out(number + 1, f"sheet {title!r}"))
                break
            if any(cell.value is not None for cell in row[MAX_COLUMNS:]):
                wide.append(number + 1)
            doubtful |= {(number, column) for column, cell in enumerate(cells) if cell is not None and cell.doubtful}
            rows.append(_trimmed(texts))
        last_row = len(rows)
        while rows and not rows[-1]:
            rows.pop()
        if wide:
            what = f"columns after the first {MAX_COLUMNS} in {len(wide)} rows of sheet {title!r}"
            self.left_out.append(f"{what}, from row {wide[0]} on")
        return rows, doubtful, last_row

    def _hide(self, rows: list[list[str]], facts: SheetFacts, title: str) -> None:
        """Empty what nobody sees; the places of the rest stay as they are."""
        hidden_rows = [number for number in facts.hidden_rows if number <= len(rows) and any(rows[number - 1])]
        for number in hidden_rows:
            rows[number - 1] = []
        hidden_columns: set[int] = set()
        for row in rows:
            filled = {column for column, text in enumerate(row, start=1) if text and column in facts.hidden_columns}
            hidden_columns |= filled
            for column in filled:
                row[column - 1] = ""
        if hidden_rows or hidden_columns:
            what = f"{len(hidden_rows)} hidden rows and {len(hidden_columns)} hidden columns"
            self.notes.append(f"{what} of sheet {title!r} were left out")


def _spread(rows: list[list[str]], doubtful: set[tuple[int, int]], facts: SheetFacts, room: Room) -> bool:
    """Repeat the text of merged cells in every cell that they cover; False where some are too many for the room."""
    for first_row, first_column, last_row, last_column in facts.merges:
        if not 0 < first_row <= len(rows) or not 0 < first_column <= len(rows[first_row - 1]):
            continue
        place = (first_row - 1, first_column - 1)
        text = rows[place[0]][place[1]]
        last_row = min(last_row, len(rows))
        cells_covered = (last_row - first_row + 1) * (last_column - first_column + 1)
        if text and not room.takes(cells_covered, cells_covered * len(text), rows=0):
            return False
        for row, column in _covered(first_row, first_column, last_row, last_column) if text else ():
            cells = rows[row]
            cells.extend([""] * (column + 1 - len(cells)))
            cells[column] = text
            if place in doubtful:
                doubtful.add((row, column))
    return not facts.more_merges


def _covered(first_row: int, first_column: int, last_row: int, last_column: int) -> Iterator[tuple[int, int]]:
    return (
        (row - 1, column - 1)
        for row in range(first_row, last_row + 1)
        for column in range(first_column, last_column + 1)
    )


def _trimmed(cells: list[str]) -> list[str]:
    while cells and not cells[-1]:
        cells.pop()
    return cells


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(name[:40] for name in names[:_LISTED]) + more


TASKS = {"workbook_tables": workbook_tables}
