"""Tables as the judges need them: texts in rows and columns, with names for the places.

Owns the shape that CSV files, spreadsheets and tables of PDFs have in common. Refuses to know who read them and what
the cells mean. A cell shows its text as a person sees it: number format applied, "5.5%" and not 0.055.
"""

from __future__ import annotations

from dataclasses import dataclass

from sam2_mcp_worker.checks.reading import Box, Source

Place = tuple[int, int]
"""Row and column, both from 0, of `Table.rows`."""

_LETTERS = 26


@dataclass(frozen=True, slots=True)
class Table:
    """One sheet, one file of separated values, or one table of a page.

    Rows may differ in length; empty cells are "". A merged cell repeats its text in every cell that it covers, so that
    a header over several columns is the header of each. `doubtful` are cells of which another value may be meant:
    the display rounds what is stored, OCR was not sure, or the row's name is not certain. `source` is where the cells
    were read from.

    Args:
        name: of the file, as the agent knows it.
        sheet: of a workbook.
        title: words right above the table, where known; "(단위: 만원)" stands there.
        page: number of a PDF's page or 1 for a picture, with the table's extent `box_xyxy` in the unit of the reading.
        boxes: one for each cell of `rows`, None for one without; empty where no cell has one.
        first_row: where `rows[0][0]` stands in the file, so that cells are named "B3"; of lines of a text the line.
    """

    name: str
    rows: tuple[tuple[str, ...], ...]
    sheet: str = ""
    title: str = ""
    page: int | None = None
    box_xyxy: Box | None = None
    first_row: int = 1
    first_column: int = 1
    boxes: tuple[tuple[Box | None, ...], ...] = ()
    doubtful: frozenset[Place] = frozenset()
    source: Source = "text"

    def text_at(self, row: int, column: int) -> str:
        """The cell's text; "" beyond the end of a row."""
        cells = self.rows[row]
        return cells[column] if column < len(cells) else ""

    def box_at(self, row: int, column: int) -> Box | None:
        """Where the cell stands on its page, if that is known."""
        if row >= len(self.boxes) or column >= len(self.boxes[row]):
            return None
        return self.boxes[row][column]

    def cell_name(self, row: int, column: int) -> str:
        """The name that spreadsheets give the cell: "B7"."""
        return f"{column_letters(self.first_column - 1 + column)}{self.first_row + row}"


def column_letters(column: int) -> str:
    """0 -> "A", 25 -> "Z", 26 -> "AA"."""
    letters = ""
    number = column + 1
    while number:
        number, rest = divmod(number - 1, _LETTERS)
        letters = chr(ord("A") + rest) + letters
    return letters
