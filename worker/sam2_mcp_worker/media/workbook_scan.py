"""What openpyxl does not tell of a sheet that it reads row by row: merged cells, hidden rows and columns, formulas
without a stored value. Runs in a child.

Reads the sheet's XML once with expat, which builds no tree: a sheet of any size costs constant memory.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import IO, Any
from xml.parsers import expat

from sam2_mcp_worker.errors import WorkerError

# Sheets have dozens of merged headers; more is a layout of merged cells only, or an attack.
MAX_MERGES = 5_000
# Merged cells that cover more than this are a background, and repeating their text would fill the memory.
MAX_MERGED_CELLS = 2_000
_CHUNK_BYTES = 256 * 1024
_RANGE = re.compile(r"([A-Z]{1,3})(\d{1,7})(?::([A-Z]{1,3})(\d{1,7}))?")
_MAX_COLUMN = 16_384  # XFD


@dataclass(slots=True)
class SheetFacts:
    """Rows and columns from 1. `merges` are (first row, first column, last row, last column)."""

    merges: list[tuple[int, int, int, int]] = field(default_factory=list)
    hidden_rows: set[int] = field(default_factory=set)
    hidden_columns: set[int] = field(default_factory=set)
    empty_formulas: list[str] = field(default_factory=list)
    more_merges: bool = False
    """True where only the first of the merged cells are told."""
    whole: bool = True
    """False where the scan stopped at the last row that is read: cells merged in the file are not known then."""


def scan_sheet(stream: IO[bytes], *, last_row: int) -> SheetFacts:
    """The facts of a sheet, of its rows up to `last_row`.

    Raises:
        WorkerError: workbook_damaged.
    """
    scan = _Scan(last_row)
    try:
        while scan.facts.whole and (chunk := stream.read(_CHUNK_BYTES)):
            scan.parser.Parse(chunk, False)
    except expat.ExpatError as error:
        raise damaged(f"a sheet is no XML: {expat.errors.messages[error.code]}") from error
    return scan.facts


def damaged(private: str = "") -> WorkerError:
    """The error for a workbook that cannot be read."""
    return WorkerError(
        "workbook_damaged",
        "the workbook cannot be read",
        next_step="open it in Excel or LibreOffice, save it as .xlsx again and upload that",
        private=private,
    )


class _Scan:
    def __init__(self, last_row: int) -> None:
        self.facts = SheetFacts()
        self._last_row = last_row
        self._row_number = 0
        self._cell = ""
        self._has_formula = self._has_value = False
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.StartDoctypeDeclHandler = _refuse_doctype

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(" ")[2]
        if tag == "c":
            self._cell = attributes.get("r", "") or f"one in row {self._row_number}"
            self._has_formula = self._has_value = False
        elif tag == "f":
            self._has_formula = True
        elif tag == "v" and self._has_formula:
            self.parser.CharacterDataHandler = self._value  # "<v></v>" is what programs write that do not calculate
        elif tag == "row":
            self._row(attributes)
        elif tag == "col" and attributes.get("hidden") in ("1", "true"):
            first, last = _number(attributes.get("min")), _number(attributes.get("max"))
            self.facts.hidden_columns.update(range(max(1, first), min(last, _MAX_COLUMN) + 1))
        elif tag == "mergeCell":
            self._merge(attributes.get("ref", ""))

    def _row(self, attributes: dict[str, str]) -> None:
        # Some programs do not number their rows.
        number = self._row_number = _number(attributes.get("r")) or self._row_number + 1
        if number > self._last_row:
            self.facts.whole = False
            self.parser.StartElementHandler = self.parser.EndElementHandler = None
        elif attributes.get("hidden") in ("1", "true"):
            self.facts.hidden_rows.add(number)

    def _end(self, name: str) -> None:
        if name.rpartition(" ")[2] != "c":
            return
        self.parser.CharacterDataHandler = None
        if self._has_formula and not self._has_value:
            self.facts.empty_formulas.append(self._cell)

    def _value(self, text: str) -> None:
        self._has_value = True
        self.parser.CharacterDataHandler = None

    def _merge(self, ref: str) -> None:
        match = _RANGE.fullmatch(ref)
        if match is None or match[3] is None:
            return
        first_row, last_row = int(match[2]), int(match[4])
        first_column, last_column = _column(match[1]), _column(match[3])
        if len(self.facts.merges) == MAX_MERGES:
            self.facts.more_merges = True
        elif 0 < (last_row - first_row + 1) * (last_column - first_column + 1) <= MAX_MERGED_CELLS:
            self.facts.merges.append((first_row, first_column, last_row, last_column))


def _refuse_doctype(*_: Any) -> None:
    """No workbook has one; it is how entities that grow without end are declared."""
    raise damaged("a sheet declares a document type")


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 8 else 0


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number
