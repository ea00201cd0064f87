"""How much of a table file is read, and how what was left out is told. Pure, and light."""

from __future__ import annotations

from dataclasses import dataclass

# A tariff of 100 ages by 2 sexes by 20 terms with 10 premiums has 40,000 cells; comparing 100,000 takes seconds.
MAX_CELLS = 100_000
# Rows without anything in them count as well: a workbook can claim a million of them.
MAX_ROWS = 200_000
# Ten files of it are compared at once, in the server's memory; the tariff above has a third of that.
MAX_CHARS = 1_000_000
# Longer texts in a cell are documents; what names a figure stands at the beginning.
MAX_CELL_CHARS = 500


@dataclass(slots=True)
class Room:
    """What may still be read of one file, over all its sheets."""

    cells: int = MAX_CELLS
    rows: int = MAX_ROWS
    chars: int = MAX_CHARS

    def takes(self, cells: int, chars: int = 0, *, rows: int = 1) -> bool:
        """Whether one more row with so many cells, of so many characters in all, still fits; books it if so."""
        if self.rows < rows or self.cells < cells or self.chars < chars:
            return False
        self.rows -= rows
        self.cells -= cells
        self.chars -= chars
        return True


def clipped(text: str) -> str:
    """A cell's text on one line."""
    return " ".join(text[: 2 * MAX_CELL_CHARS].split())[:MAX_CELL_CHARS]


def rows_left_out(first_left_out: int, where: str) -> str:
    """Why a file was not read whole."""
    most = f"{MAX_CELLS} cells, {MAX_ROWS} rows or {MAX_CHARS} characters"
    return f"{where} from row {first_left_out} on (at most {most} of a file are read)"
