"""The figures of a table: each cell's value with the headers of its row and its column as what it is about.

Owns which cells are headers, sections and values, and units that a header names for the numbers below it. Knows tables
and no files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sam2_mcp_worker.checks.figures.clauses import Clause, clauses_of, header_unit, per_of, with_conditions
from sam2_mcp_worker.checks.figures.form import VALUE_KINDS, Form
from sam2_mcp_worker.checks.figures.forms import bare_number, forms_of, normalised, pieces_of
from sam2_mcp_worker.checks.figures.shape import Figure, Place, figure_of
from sam2_mcp_worker.checks.tables import Table

# A table has its headers in its first rows; what looks like one further down begins a section.
MAX_HEADER_ROWS = 3
# A cell to the left of a value that says more than a name does describes it and does not name it.
NAME_LETTERS = 16
ROUNDED = "the cell may stand for another value"
_CELL_KINDS = (*VALUE_KINDS, "number")
# Numbers of columns that are named so are no money, whatever unit the title gives.
_NO_MONEY = tuple("나이 연령 세 기간 년 개월 횟수 회 건수 율 률 번호 순번 no 명 구좌".split())  # noqa: SIM905


def figures_of_table(table: Table) -> tuple[Figure, ...]:
    """Every figure of a table, row by row."""
    return tuple(_Cells(table).figures())


class _Cells:
    """A table with the forms of its cells, each looked for once."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._texts = [[normalised(text.strip()) for text in row] for row in table.rows]
        self._forms = [[forms_of(pieces_of(text)[0]) for text in row] for row in self._texts]
        self._headers = self._count_headers()
        self._title_unit = header_unit((normalised(table.title), *self._notes()))

    def figures(self) -> Iterator[Figure]:
        section = ""
        for row, texts in enumerate(self._texts):
            distinct = {text for text in texts if text}
            if len(distinct) == 1 and not any(form.kind in _CELL_KINDS for form in self._first_forms(row)):
                section = next(iter(distinct))
            for column, forms in enumerate(self._forms[row]):
                if forms:
                    yield from self._of_cell(row, column, section)

    def _of_cell(self, row: int, column: int, section: str) -> Iterator[Figure]:
        table, text = self._table, self._texts[row][column]
        names, describing = self._row_headers(row, column)
        headers = self._column_headers(row, column)
        outer = tuple(dict.fromkeys((*names, *headers, *((section,) if section and section != text else ()))))
        place = Place(
            page=table.page,
            box_xyxy=table.box_at(row, column) or table.box_xyxy,
            sheet=table.sheet,
            cell=table.cell_name(row, column),
            source=table.source,
        )
        around = tuple(part for part in (*describing, normalised(table.title), table.sheet) if part)
        unsure = ROUNDED if (row, column) in table.doubtful else ""
        for form, inner in _contexts(text):
            clause = Clause(inner.label + outer, inner.around + around, inner.per or per_of(outer), inner.conditions)
            yield figure_of(self._with_unit(form, headers, names), clause, place, unsure=unsure)

    def _with_unit(self, form: Form, headers: tuple[str, ...], names: tuple[str, ...]) -> Form:
        if form.kind != "number":
            return form
        unit = header_unit(headers) or header_unit(names)
        if unit is None and not any(word in header.casefold() for header in headers + names for word in _NO_MONEY):
            unit = self._title_unit
        return bare_number(form, *unit) if unit else form

    def _row_headers(self, row: int, column: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What stands to the left of a value: names and conditions, and longer descriptions."""
        names: list[str] = []
        describing: list[str] = []
        if row < self._headers:
            return (), ()
        for left in range(column):
            text = self._texts[row][left]
            if text and not self._is_value(row, left):
                (names if len(text) <= NAME_LETTERS else describing).append(
                    with_conditions(text, self._forms[row][left])
                )
        return tuple(names), tuple(describing)

    def _column_headers(self, row: int, column: int) -> tuple[str, ...]:
        return tuple(
            with_conditions(self._texts[above][column], self._forms[above][column])
            for above in range(min(row, self._headers))
            if column < len(self._texts[above]) and self._texts[above][column]
        )

    def _count_headers(self) -> int:
        """How many rows at the top hold names and no values. A table of two columns may be pairs of name and value."""
        count = 0
        for row in range(min(MAX_HEADER_ROWS, len(self._texts) - 1)):
            filled = [column for column, text in enumerate(self._texts[row]) if text]
            values = [column for column in filled if self._is_value(row, column)]
            conditions = [column for column in filled if self._forms[row][column]]
            if values or (conditions and len(filled) <= 2):
                break
            count = row + 1
        return count

    def _is_value(self, row: int, column: int) -> bool:
        return any(form.kind in _CELL_KINDS for form in self._forms[row][column])

    def _first_forms(self, row: int) -> Sequence[Form]:
        return next((forms for forms in self._forms[row] if forms), ())

    def _notes(self) -> list[str]:
        """Cells that say the unit of the table: "(단위: 만원)"."""
        return [text for row in self._texts[:MAX_HEADER_ROWS] for text in row if "단위" in text]


def _contexts(text: str) -> Iterator[tuple[Form, Clause]]:
    for piece in pieces_of(text):
        forms = forms_of(piece)
        yield from zip(forms, clauses_of(piece, forms), strict=True)
