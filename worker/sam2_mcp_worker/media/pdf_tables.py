"""Ruled tables of a PDF page, found by PyMuPDF inside a redact child, the only ones that hold it.

Rulings say what belongs to a cell even where its text runs over lines; text alone does not. What is said in the cells
is not believed here: the pipeline compares it with what was read of the page.
"""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import pymupdf

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.table_bounds import clipped

# PyMuPDF has no types; pages of more cells are drawings that happen to be grids.
_fitz: Any = pymupdf
MAX_TABLES = 50
MAX_PAGE_CELLS = 20_000
# Inside a cell, seen from its upper left corner.
_INSIDE_PT = 1.0
_Box = tuple[float, float, float, float]


def pdf_tables(params: dict[str, Any]) -> dict[str, Any]:
    """Task: `{path, password, page_number}` -> `{tables: [{box, rows, boxes}, ..]}` in points of the displayed page.

    A merged cell repeats its text and box in every cell that it covers. A turned page has none: its boxes would be
    those of the page as it lies in the file.

    Raises:
        WorkerError: page_out_of_range, password_required, page_damaged.
    """
    try:
        with _fitz.open(Path(params["path"]), filetype="pdf") as document:
            if document.needs_pass and not document.authenticate(params["password"]):
                raise WorkerError("password_required", "the PDF needs a password", next_step="give password")
            if not 1 <= params["page_number"] <= len(document):
                raise WorkerError("page_out_of_range", f"there is no page {params['page_number']}")
            return {"tables": _tables(document[params["page_number"] - 1])}
    except (RuntimeError, ValueError, _fitz.mupdf.FzErrorBase) as error:  # what MuPDF raises of damaged files
        raise WorkerError("page_damaged", "the page's drawings cannot be read", private=str(error)) from error


def _tables(page: Any) -> list[dict[str, Any]]:
    if page.rotation:
        return []
    with contextlib.redirect_stdout(io.StringIO()):  # it recommends another package there
        found = page.find_tables(strategy="lines").tables
    tables, room = [], MAX_PAGE_CELLS
    for table in found[:MAX_TABLES]:
        room -= table.row_count * table.col_count
        if room < 0:
            break
        if table.row_count > 1 and table.col_count > 1:
            tables.append(_table(table))
    return tables


def _table(table: Any) -> dict[str, Any]:
    texts = [[clipped(text or "") for text in row] for row in table.extract()]
    boxes: list[list[_Box | None]] = [[_box(cell) if cell else None for cell in row.cells] for row in table.rows]
    lefts = sorted({cell[0] for cell in table.cells})
    tops = sorted({cell[1] for cell in table.cells})
    owners = {_box(cell): (row, column) for row, cells in enumerate(boxes) for column, cell in enumerate(cells) if cell}
    for row, cells in enumerate(boxes):
        for column, cell in enumerate(cells):
            if cell is not None or row >= len(tops) or column >= len(lefts):
                continue
            cover = next((box for box in owners if _holds(box, lefts[column], tops[row])), None)
            if cover is not None:
                boxes[row][column] = cover
                texts[row][column] = texts[owners[cover][0]][owners[cover][1]]
    return {"box": _box(table.bbox), "rows": texts, "boxes": boxes}


def _box(values: Any) -> _Box:
    x0, y0, x1, y1 = (round(float(value), 1) for value in values)
    return x0, y0, x1, y1


def _holds(box: _Box, left: float, top: float) -> bool:
    return box[0] <= left + _INSIDE_PT < box[2] and box[1] <= top + _INSIDE_PT < box[3]


TASKS = {"pdf_tables": pdf_tables}
