"""The figures of a table: each cell's value with the headers of its row and its column as what it is about.

Owns which cells are titles, headers, sections and values, and units that a header names for the numbers below it. Knows
tables and no files.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence

from sam2_mcp_worker.checks.figures.clauses import (
    Clause,
    clauses_of,
    conditions_in,
    header_unit,
    per_of,
    with_conditions,
)
from sam2_mcp_worker.checks.figures.form import VALUE_KINDS, Form
from sam2_mcp_worker.checks.figures.forms import bare_number, forms_of, normalised, pieces_of
from sam2_mcp_worker.checks.figures.shape import Figure, Place, figure_of
from sam2_mcp_worker.checks.tables import Table

# Headers of two or three levels occur, with merged cells in all but the last.
MAX_HEADER_ROWS = 3
# A cell to the left of a value that says more than a name does describes it and does not name it; a section as well.
NAME_LETTERS = 16
ROUNDED = "the cell may stand for another value"
_CELL_KINDS = (*VALUE_KINDS, "number")
# Numbers of columns that are named so are no money, whatever unit the title gives.
_NO_MONEY_WORDS = "나이 연령 세 기간 년 개월 횟수 회 건수 율 률 번호 순번 no 명 구좌"
_NO_MONEY = tuple(_NO_MONEY_WORDS.split())


def figures_of_table(table: Table) -> tuple[Figure, ...]:
    """Every figure of a table, row by row."""
    return tuple(_Cells(table).figures())


class _Cells:
    """A table with the forms of its cells, each looked for once."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._texts = [[normalised(text.strip()) for text in row] for row in table.rows]
        self._forms = [[[form for form, _ in _read(text)] for text in row] for row in self._texts]
        self._last_values = {  # by column, the row of its last value
            column: row
            for row, cells in enumerate(self._forms)
            for column in range(len(cells))
            if self._is_value(row, column)
        }
        titled = self._count_titles()
        self._headers = range(titled, self._end_of_headers(titled))
        titles = (normalised(table.title), *(text for row in self._texts[:titled] for text in row[:1]))
        self._titles = tuple(dict.fromkeys(text for text in titles if text))
        self._conditions = tuple(
            itertools.chain.from_iterable(conditions_in(text, forms_of(text)) for text in self._titles)
        )
        notes = (text for row in self._texts[: self._headers.stop] for text in row if "단위" in text)
        self._title_unit = header_unit((*self._titles, *notes))

    def figures(self) -> Iterator[Figure]:
        section = ""
        for row, texts in enumerate(self._texts):
            if row >= self._headers.stop and self._names_all(row):
                section = next(text for text in texts if text)
            for column, forms in enumerate(self._forms[row]):
                if forms:
                    yield from self._of_cell(row, column, section)

    def _of_cell(self, row: int, column: int, section: str) -> Iterator[Figure]:
        table, text = self._table, self._texts[row][column]
        names, describing = self._row_headers(row, column)
        headers = self._column_headers(row, column)
        (names if len(section) <= NAME_LETTERS else describing).append(section if section != text else "")
        outer = tuple(dict.fromkeys(part for part in (*names, *headers) if part))
        place = Place(
            page=table.page,
            box_xyxy=table.box_at(row, column) or table.box_xyxy,
            sheet=table.sheet,
            cell=table.cell_name(row, column),
            source=table.source,
        )
        around = tuple(part for part in (*describing, *self._titles, table.sheet) if part)
        unsure = ROUNDED if (row, column) in table.doubtful else ""
        given = self._conditions if row >= self._headers.start else ()
        for form, inner in _read(text):
            clause = Clause(
                label=inner.label + outer,
                around=inner.around + around,
                per=inner.per or per_of(outer),
                conditions=inner.conditions + given,
                behind=inner.behind,
                of_a_value=inner.of_a_value or (form.kind not in _CELL_KINDS and self._heads_values(row, column)),
            )
            yield figure_of(self._with_unit(form, headers, names), clause, place, unsure=unsure)

    def _with_unit(self, form: Form, headers: Sequence[str], names: Sequence[str]) -> Form:
        if form.kind != "number":
            return form
        unit = header_unit(headers) or header_unit(names)
        # "40세" and "10년" choose a value and do not say what it is.
        said = " ".join(text for text in (*headers, *names) if not any(map(str.isdigit, text))).casefold()
        if unit is None and not any(word in said for word in _NO_MONEY):
            unit = self._title_unit
        return bare_number(form, *unit) if unit else form

    def _row_headers(self, row: int, column: int) -> tuple[list[str], list[str]]:
        """What stands to the left of a value: names and conditions, and longer descriptions."""
        names: list[str] = []
        describing: list[str] = []
        for left in range(column) if row >= self._headers.stop else ():
            text = self._texts[row][left]
            if text and not self._is_value(row, left):
                (names if len(text) <= NAME_LETTERS else describing).append(_said(text))
        return names, describing

    def _heads_values(self, row: int, column: int) -> bool:
        """Whether a cell is a choice for values to its right, or below it where its row has no values."""
        cells = range(len(self._texts[row]))
        if any(self._is_value(row, at) for at in cells):
            return any(self._is_value(row, at) for at in cells if at > column)
        return self._last_values.get(column, row) > row

    def _column_headers(self, row: int, column: int) -> list[str]:
        return [
            _said(self._texts[above][column])
            for above in self._headers
            if above < row and column < len(self._texts[above])
        ]

    def _count_titles(self) -> int:
        """Rows above the headers with one text in all of them: the name of the table, its unit."""
        rows = range(len(self._texts) - 1)
        return next((row for row in rows if self._texts[row] and not self._names_all(row)), 0)

    def _end_of_headers(self, start: int) -> int:
        """Where the rows end that hold names and no values. Only below merged cells there is a further one."""
        for row in range(start, min(start + MAX_HEADER_ROWS, len(self._texts) - 1)):
            if not self._is_header(row):
                return row
            texts = self._texts[row]
            if all(texts) and all(one != other for one, other in itertools.pairwise(texts)):
                return row + 1
        return min(start + MAX_HEADER_ROWS, max(start, len(self._texts) - 1))

    def _is_header(self, row: int) -> bool:
        """Names, or terms and ages to choose from ("30세", "40세"); "가입나이 | 20~60세" is a name with its value."""
        cells = [(text, forms) for text, forms in zip(self._texts[row], self._forms[row], strict=True) if forms]
        kinds = {forms[0].kind for _, forms in cells}
        rests = {text.replace(forms[0].text, "").strip("만 ") for text, forms in cells}
        choices = len(cells) >= 2 and len(kinds) == len(rests) == 1 and all(len(forms) == 1 for _, forms in cells)
        return not cells or (choices and kinds.isdisjoint(_CELL_KINDS))

    def _names_all(self, row: int) -> bool:
        """Whether one text fills a row of several columns, and is no value."""
        distinct = {text for text in self._texts[row] if text}
        several = max(map(len, self._texts), default=0) > 1
        return (
            several and len(distinct) == 1 and not any(self._is_value(row, at) for at in range(len(self._texts[row])))
        )

    def _is_value(self, row: int, column: int) -> bool:
        return any(form.kind in _CELL_KINDS for form in self._forms[row][column])


@functools.lru_cache(maxsize=8192)  # headers and round amounts come again in every row; an entry has some 2 kB
def _read(text: str) -> tuple[tuple[Form, Clause], ...]:
    """The figures of a cell, each with its context in the cell."""
    found: list[tuple[Form, Clause]] = []
    for piece in pieces_of(text):
        forms = forms_of(piece)
        found += zip(forms, clauses_of(piece, forms), strict=True)
    return tuple(found)


@functools.lru_cache(maxsize=8192)
def _said(text: str) -> str:
    """A header with its figures as the contexts of others write them ("40세", "1년" as "12개월")."""
    piece = pieces_of(text)[0]
    return with_conditions(piece, forms_of(piece))
