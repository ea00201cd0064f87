"""Tables that nothing but the places of their lines tells: rows of short texts below headers, one below the other.

Most tables of leaflets have no rulings or stand in a picture, and a number in them is about its row's and its column's
header. Owns what is taken for such a table. A grid that is only guessed gives wrong names to numbers, so it takes a row
of headers, columns that keep their place, and numbers in most cells; whatever falls short stays lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from sam2_mcp_worker.checks.figures.lines import SURE_CONFIDENCE
from sam2_mcp_worker.checks.reading import Box, ReadLine, ReadPage
from sam2_mcp_worker.checks.tables import Place, Table

# All in heights of the line at hand. Lines whose middles are nearer stand in one row.
ROW_SHARE = 0.5
# Rows of a leaflet's table stand 2.3 heights apart in print; more is the next paragraph.
MAX_GAP = 4.0
# A label that goes on in the next line follows this closely, and the next row does not.
WRAP_GAP = 0.8
CLEARLY = 0.3
# "(단위: 만원)" and the title stand within this above the headers.
TITLE_GAP = 4.0
# What a cell and a column share at least, of the narrower: neighbours may touch.
OVERLAP_SHARE = 0.3
MIN_ROWS, MIN_COLUMNS = 3, 2
# A page in landscape shows premiums of 20 terms; more columns are a picture of dots.
MAX_COLUMNS = 40
# Rows below the headers with something in every column: one is a coincidence.
MIN_FULL_ROWS = 2
# Numbers among the cells behind the first column and below the headers; two columns of prose have hardly any.
NUMBER_SHARE = 0.5
MAX_NUMBER_CHARS = 16
# Longer names of rows are prose that happens to stand beside numbers.
MAX_LABEL_CHARS = 24
# A page of more lines is no page of a document that people read.
MAX_LINES = 5_000


@dataclass(slots=True)
class _Row:
    """Lines side by side, from the left."""

    lines: list[ReadLine]
    cells: list[list[ReadLine]] = field(default_factory=list)
    """Lines by column, once it is part of a table; a line over several columns is in each of them."""

    @property
    def top(self) -> float:
        return min(_box(line)[1] for line in self.lines)

    @property
    def bottom(self) -> float:
        return max(_box(line)[3] for line in self.lines)

    @property
    def width(self) -> float:
        return sum(_box(line)[2] - _box(line)[0] for line in self.lines)

    @property
    def height(self) -> float:
        return median(_height(line) for line in self.lines)


def with_line_tables(page: ReadPage, name: str) -> tuple[ReadPage, tuple[Table, ...]]:
    """The page without the lines that its tables say, and the tables from top to bottom.

    Args:
        name: of the file, for the tables.
    """
    placed = [line for line in page.lines if line.box_xyxy is not None and line.start_s is None]
    if len(placed) > MAX_LINES:
        return page, ()
    rows = _rows(placed)
    tables: list[Table] = []
    used: set[int] = set()
    free = [True] * len(rows)
    for at in sorted(range(len(rows)), key=lambda index: (-len(rows[index].lines), -rows[index].width)):
        if not free[at] or not MIN_COLUMNS <= len(rows[at].lines) <= MAX_COLUMNS:
            continue
        columns = [_box(line) for line in rows[at].lines]
        first, last = _extent(columns, rows, at, free)
        free[first:last] = [False] * (last - first)
        first, last = _trimmed(rows, first, last, columns)
        table = _table(rows[first:last], columns, page, name)
        if table is not None:
            tables.append(table)
            used |= {id(line) for row in rows[first:last] for line in row.lines}
    rest = replace(page, lines=tuple(line for line in page.lines if id(line) not in used))
    return rest, tuple(sorted(tables, key=lambda one: one.box_xyxy or (0.0, 0.0, 0.0, 0.0)))


def title_above(lines: Iterable[ReadLine], box: Box, gap: float) -> str:
    """The texts that end within `gap` above a table and over its width."""
    above = []
    for line in lines:
        if line.box_xyxy is None:
            continue
        x0, y0, x1, y1 = line.box_xyxy
        if box[1] - gap <= y0 and y1 <= box[1] + (y1 - y0) / 2 and x0 < box[2] and x1 > box[0]:
            above.append(line.text)
    return " ".join(above)


def _rows(lines: Sequence[ReadLine]) -> list[_Row]:
    rows: list[_Row] = []
    for line in sorted(lines, key=lambda one: _middle(one)):
        if rows and _middle(line) - _middle(rows[-1].lines[0]) < ROW_SHARE * _height(line):
            rows[-1].lines.append(line)
        else:
            rows.append(_Row([line]))
    for row in rows:
        row.lines.sort(key=lambda one: _box(one)[0])
    return rows


def _extent(columns: Sequence[Box], rows: Sequence[_Row], at: int, free: Sequence[bool]) -> tuple[int, int]:
    """Where the neighbours of a row that keep its columns begin and end."""
    last = at + 1
    while last < len(rows) and free[last] and _goes_on(columns, rows, last - 1, last):
        last += 1
    first = at
    while first > 0 and free[first - 1] and _goes_on(columns, rows, first, first - 1):
        first -= 1
    return first, last


def _trimmed(rows: Sequence[_Row], first: int, last: int, columns: Sequence[Box]) -> tuple[int, int]:
    """Without what only stands close: single lines that are no rest of a cell, and a title above the headers."""
    while last - first > 1 and _is_loose(rows[last - 2], rows[last - 1]):
        last -= 1
    while last - first > 1 and _is_title(rows[first], rows[first + 1], columns):
        first += 1
    return first, last


def _is_loose(above: _Row, row: _Row) -> bool:
    return len(row.lines) == 1 and not _wraps(above, row)


def _is_title(row: _Row, below: _Row, columns: Sequence[Box]) -> bool:
    return _is_head(below, columns) and not _is_head(row, columns)


def _is_head(row: _Row, columns: Sequence[Box]) -> bool:
    """Whether it has a text without numbers above every column."""
    covered = {column for line in row.lines for column in _columns_of(columns, line)}
    numbers = [line for line in row.lines[1:] if _is_number(line.text)]
    return len(covered) == len(columns) and not numbers


def _goes_on(columns: Sequence[Box], rows: Sequence[_Row], at: int, new: int) -> bool:
    """Whether a row beside the row `at` belongs to its table."""
    above, below = rows[min(at, new)], rows[max(at, new)]
    if below.top - above.bottom > MAX_GAP * min(above.height, below.height):
        return False
    row = rows[new]
    if len(row.lines) > 1:
        return _keeps(columns, row)
    owned = _columns_of(columns, row.lines[0])
    if owned == [0] and len(_squeezed(row.lines[0].text)) <= MAX_LABEL_CHARS:
        return True
    followed = new + 1 < len(rows) and _wraps(row, rows[new + 1])
    return len(owned) == 1 and (followed or (new > 0 and _wraps(rows[new - 1], row)))


def _wraps(above: _Row, below: _Row) -> bool:
    """Whether one follows the other as closely as the lines of a text do."""
    return below.top - above.bottom <= WRAP_GAP * min(above.height, below.height)


def _keeps(columns: Sequence[Box], row: _Row) -> bool:
    """Whether the row has a cell in every column, or short ones in half of them that keep to their edges."""
    owners = [_columns_of(columns, line) for line in row.lines]
    flat = [column for owned in owners for column in owned]
    if not all(owners) or len(flat) != len(set(flat)):
        return False
    if len(row.lines) == len(columns):
        return True
    short = all(len(_squeezed(line.text)) <= MAX_LABEL_CHARS for line in row.lines)
    kept = all(
        len(owned) > 1 or _aligned(columns[owned[0]], _box(line)) for line, owned in zip(row.lines, owners, strict=True)
    )
    return short and kept and 2 * len(flat) >= len(columns)


def _columns_of(columns: Sequence[Box], line: ReadLine) -> list[int]:
    return [index for index, column in enumerate(columns) if _shares(column, _box(line))]


def _shares(one: Box, other: Box) -> bool:
    shared = min(one[2], other[2]) - max(one[0], other[0])
    return shared >= OVERLAP_SHARE * min(one[2] - one[0], other[2] - other[0])


def _aligned(one: Box, other: Box) -> bool:
    """Whether two cells of a column share their left edge, their right one or their middle, by a letter's height."""
    reach = min(one[3] - one[1], other[3] - other[1])
    middles = (one[0] + one[2] - other[0] - other[2]) / 2
    return min(abs(one[0] - other[0]), abs(one[2] - other[2]), abs(middles)) <= reach


def _table(rows: Sequence[_Row], columns: Sequence[Box], page: ReadPage, name: str) -> Table | None:
    for row in rows:
        row.cells = [[] for _ in columns]
        for line in row.lines:
            for column in _columns_of(columns, line):
                row.cells[column].append(line)
    unsure = _join_wrapped(rows)
    kept = [row for row in rows if any(row.cells)]
    texts = tuple(tuple(" ".join(line.text for line in cell) for cell in row.cells) for row in kept)
    if not _is_table(texts):
        return None
    lines = [line for row in rows for line in row.lines]
    box = _around(lines)
    sources = {line.source for line in lines}
    return Table(
        name,
        texts,
        title=title_above(page.lines, box, TITLE_GAP * median(_height(line) for line in lines)),
        page=page.number,
        box_xyxy=box,
        boxes=tuple(tuple(_around(cell) if cell else None for cell in row.cells) for row in kept),
        doubtful=frozenset(_doubtful(kept, texts, unsure)),
        source="ocr" if "ocr" in sources else lines[0].source,
    )


def _join_wrapped(rows: Sequence[_Row]) -> set[int]:
    """Put single lines that are the rest of a cell to it; ids of rows of which nobody can say whose rest it is."""
    unsure: set[int] = set()
    whole = [row for row in rows if len(row.lines) > 1]
    for row in rows:
        if len(row.lines) > 1:
            continue
        column = next(index for index, cell in enumerate(row.cells) if cell)
        reach = WRAP_GAP * row.height
        above = max((one for one in whole if one.top < row.top), key=lambda one: one.top, default=None)
        below = min((one for one in whole if one.top >= row.top), key=lambda one: one.top, default=None)
        to_above = row.top - above.bottom if above is not None else reach + 1
        to_below = below.top - row.bottom if below is not None else reach + 1
        if min(to_above, to_below) > reach:
            continue  # a heading between the rows
        if abs(to_above - to_below) < CLEARLY * row.height:
            unsure |= {id(one) for one in (above, below) if one is not None}
            continue
        nearest = above if to_above < to_below else below
        assert nearest is not None
        nearest.cells[column] = sorted([*nearest.cells[column], *row.lines], key=_middle)
        row.cells = [[] for _ in row.cells]
    return unsure


def _is_table(texts: Sequence[Sequence[str]]) -> bool:
    """Whether it has headers, short names of rows, and numbers in most of the cells that belong to both."""
    if len(texts) < MIN_ROWS:
        return False
    head, body = texts[0], texts[1:]
    headed = [text for text in head[1:] if text]
    full = sum(all(row) for row in body)
    values = [text for row in body for text in row[1:] if text]
    labels = [len(_squeezed(row[0])) for row in body if row[0]]
    return (
        bool(headed)
        and not any(map(_is_number, headed))
        and full >= MIN_FULL_ROWS
        and median(labels) <= MAX_LABEL_CHARS
        and sum(map(_is_number, values)) >= NUMBER_SHARE * max(1, len(values))
    )


def _is_number(text: str) -> bool:
    plain = _squeezed(text)
    return len(plain) <= MAX_NUMBER_CHARS and any(char.isdigit() for char in plain)


def _doubtful(rows: Sequence[_Row], texts: Sequence[Sequence[str]], unsure: set[int]) -> Iterable[Place]:
    """Cells whose row nobody names for sure, that stand over several columns, or that OCR was not sure of."""
    for number, (row, cells) in enumerate(zip(rows, texts, strict=True)):
        unnamed = number > 0 and (not cells[0] or id(row) in unsure)
        for column, cell in enumerate(row.cells):
            spread = number > 0 and any(line in other for line in cell for other in row.cells[:column])
            if cell and (unnamed or spread or any(map(_is_unsure, cell))):
                yield number, column


def _is_unsure(line: ReadLine) -> bool:
    return line.source == "ocr" and (line.confidence is None or line.confidence < SURE_CONFIDENCE)


def _around(lines: Sequence[ReadLine]) -> Box:
    boxes = [_box(line) for line in lines]
    return (
        min(box[0] for box in boxes),
        min(box[1] for box in boxes),
        max(box[2] for box in boxes),
        max(box[3] for box in boxes),
    )


def _box(line: ReadLine) -> Box:
    assert line.box_xyxy is not None
    return line.box_xyxy


def _height(line: ReadLine) -> float:
    return max(_box(line)[3] - _box(line)[1], 0.1)


def _middle(line: ReadLine) -> float:
    return (_box(line)[1] + _box(line)[3]) / 2


def _squeezed(text: str) -> str:
    return "".join(text.split())
