"""Files of separated values to rows of cells. Pure; runs in a child, since files may be hostile and large.

Owns which separator a file has and what a broken quote costs. Knows nothing of figures.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.table_bounds import Room, clipped, rows_left_out

# In the order in which they win a tie: tabs and semicolons hardly ever stand in texts, commas in every amount.
SEPARATORS = ("\t", ";", "|", ",")
# Enough to tell the separator; files may begin with a title and a unit above their columns.
_PROBE_ROWS = 60
# A cell over more lines than this was opened by a stray quote and swallows the rest of the file.
_MAX_CELL_LINES = 100
_SEP_LINE = "sep="  # how Excel names the separator in the first line


@dataclass(frozen=True, slots=True)
class SeparatedValues:
    """Rows of cells, the number of the first of them, and why the rest was not read ("" = there is none)."""

    rows: list[list[str]]
    first_row: int
    unread: str


def read_separated(text: str) -> SeparatedValues:
    """The rows of a text that is known to be separated values.

    Raises:
        WorkerError: table_empty, table_damaged.
    """
    named, first_row = _named_separator(text), 1
    if named:
        text, first_row = text.partition("\n")[2], 2
    separator = named or sniff(text) or ","
    try:
        found = _rows(csv.reader(io.StringIO(text), delimiter=separator), first_row)
    except csv.Error:
        found = _without_quotes(text, separator, first_row)
    if not any(any(row) for row in found.rows):
        raise WorkerError("table_empty", "the table has no cell with text in it", next_step="upload the right file")
    return found


def _without_quotes(text: str, separator: str, first_row: int) -> SeparatedValues:
    try:
        return _rows(csv.reader(io.StringIO(text), delimiter=separator, quoting=csv.QUOTE_NONE), first_row)
    except csv.Error as error:
        raise WorkerError(
            "table_damaged",
            "the table has a cell that does not end",
            rule=f"a cell has at most {csv.field_size_limit()} characters on {_MAX_CELL_LINES} lines",
            next_step="save it as CSV again, or as XLSX",
        ) from error


def sniff(text: str) -> str:
    """The separator that gives most lines the same number of cells, of at least two; "" where none does."""
    best, best_score = "", 0
    for separator in SEPARATORS:
        reader = csv.reader(io.StringIO(text), delimiter=separator)
        widths = Counter(len(row) for row in _probe(reader) if len(row) > 1)
        score = max(widths.values(), default=0)
        if score > best_score:
            best, best_score = separator, score
    return best


def _probe(reader: Iterator[list[str]]) -> list[list[str]]:
    rows: list[list[str]] = []
    with suppress(csv.Error):  # what was read before the fault tells enough
        rows.extend(itertools.islice(reader, _PROBE_ROWS))
    return rows


def _named_separator(text: str) -> str:
    line = text.partition("\n")[0].strip(" ")
    return line[-1] if line.lower().startswith(_SEP_LINE) and len(line) == len(_SEP_LINE) + 1 else ""


def _rows(reader: Iterable[list[str]], first_row: int) -> SeparatedValues:
    room = Room()
    rows: list[list[str]] = []
    for row in reader:
        if any(cell.count("\n") > _MAX_CELL_LINES for cell in row):
            raise csv.Error("a quote that does not end")
        cells = [clipped(cell) for cell in row]
        if not room.takes(len(cells), sum(map(len, cells))):
            return SeparatedValues(rows, first_row, rows_left_out(first_row + len(rows), "the file"))
        rows.append(cells)
    return SeparatedValues(rows, first_row, "")
