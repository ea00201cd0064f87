"""Tables of a PDF's pages, as far as they say what was read of the page; and the lines that are left beside them. Pure.

The ruled grid comes from PyMuPDF, whose text of a page is its layer. The reading is what was checked against the
picture, so a cell whose words are not in the reading is emptied, and lines go only where cells say the same. Of what
is left, checks/line_tables.py makes the tables without rulings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sam2_mcp_worker.checks.line_tables import title_above, with_line_tables
from sam2_mcp_worker.checks.reading import Box, Reading, ReadLine, ReadPage
from sam2_mcp_worker.checks.tables import Table

# Above a table stand its title and "(단위: 만원)", within about two lines.
TITLE_GAP_PT = 30.0
MIN_FILLED_CELLS = 2


def with_tables(
    reading: Reading, found: Mapping[int, Sequence[Mapping[str, Any]]], name: str
) -> tuple[Reading, tuple[Table, ...]]:
    """The reading without what its tables say, and the tables.

    Args:
        found: by page number, what the task `pdf_tables` answered.
        name: of the file.
    """
    pages: list[ReadPage] = []
    tables: list[Table] = []
    for page in reading.pages:
        rest = page
        for grid in found.get(page.number, ()):
            table = _believed(page, grid, name)
            if table is not None:
                tables.append(table)
                rest = _without(rest, table)
        rest, unruled = with_line_tables(rest, name)
        tables += unruled
        pages.append(rest)
    return replace(reading, pages=tuple(pages)), tuple(tables)


def may_hold_tables(page: ReadPage) -> bool:
    """Whether it is worth looking: what OCR read has no rulings in the file, and a table of figures has digits."""
    layer = [line for line in page.lines if line.source == "text_layer"]
    return sum(any(char.isdigit() for char in line.text) for line in layer) >= MIN_FILLED_CELLS


def _believed(page: ReadPage, grid: Mapping[str, Any], name: str) -> Table | None:
    box = _box(grid["box"])
    inside = [line for line in page.lines if line.source == "text_layer" and _centre_in(line.box_xyxy, box)]
    read = "".join(_squeezed(line.text) for line in inside)
    rows = tuple(tuple(text if _is_read(text, read) else "" for text in row) for row in grid["rows"])
    if sum(bool(text) for row in rows for text in row) < MIN_FILLED_CELLS:
        return None
    boxes = tuple(tuple(_box(cell) if cell else None for cell in row) for row in grid["boxes"])
    title = title_above(page.lines, box, TITLE_GAP_PT)
    return Table(name, rows, title=title, page=page.number, box_xyxy=box, boxes=boxes, source="text_layer")


def _is_read(text: str, read: str) -> bool:
    """Whether each word of a cell was read; its lines may stand apart among those of its neighbours."""
    return all(_squeezed(word) in read for word in text.split())


def _without(page: ReadPage, table: Table) -> ReadPage:
    said = ["".join(map(_squeezed, row)) for row in table.rows] + [
        _squeezed(text) for row in table.rows for text in row
    ]

    def is_said(line: ReadLine) -> bool:
        assert table.box_xyxy is not None
        return _centre_in(line.box_xyxy, table.box_xyxy) and any(_squeezed(line.text) in row for row in said)

    return replace(page, lines=tuple(line for line in page.lines if not is_said(line)))


def _centre_in(line: Box | None, box: Box) -> bool:
    if line is None:
        return False
    x, y = (line[0] + line[2]) / 2, (line[1] + line[3]) / 2
    return box[0] <= x <= box[2] and box[1] <= y <= box[3]


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _box(values: Sequence[float]) -> Box:
    x0, y0, x1, y1 = values
    return x0, y0, x1, y1
