"""What is compared of an advertisement and its evidence, as it travels to a child, and how much that may be.

A rate table has thousands of figures, and finding what each is about takes 0.3 ms: too long for the server's process.
JSON is made and read by pydantic from the judges' own shapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pydantic import TypeAdapter

from sam2_mcp_worker.checks.figure_compare import Evidence, FigureFinding, compare_figures
from sam2_mcp_worker.checks.figures import Figure, figures_of, figures_of_table
from sam2_mcp_worker.checks.reading import Reading, ReadLine, ReadPage
from sam2_mcp_worker.checks.tables import Table

# An advertisement of 30 pages has 700; comparing 2,000 with 20,000 others takes 20 to 40 s.
MAX_ADVERTISED = 2_000
MAX_EVIDENCE = 20_000
# Spelled ones count as well.
_NUMBERS = re.compile(r"\d+|[십백천만억조]+")


@dataclass(frozen=True, slots=True)
class FileText:
    """What stands in one file: in tables, and outside of them. `unread` says what of it was not read ("" = nothing)."""

    name: str
    reading: Reading | None
    tables: tuple[Table, ...] = ()
    unread: str = ""

    def figures(self) -> tuple[Figure, ...]:
        """Everything in it that is a figure."""
        lines = figures_of(self.reading) if self.reading is not None else ()
        return (*lines, *(figure for table in self.tables for figure in figures_of_table(table)))


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is to be compared."""

    advertisement: FileText
    evidence: tuple[FileText, ...]

    @property
    def files(self) -> tuple[FileText, ...]:
        """All files, the advertisement first."""
        return self.advertisement, *self.evidence


def compared(comparison: Comparison) -> tuple[FigureFinding, ...]:
    """One finding for each figure of the advertisement."""
    evidence = [Evidence(one.name, one.figures(), one.unread) for one in comparison.evidence]
    return compare_figures(comparison.advertisement.figures(), evidence)


def bounded(one: FileText, room: int) -> tuple[FileText, int]:
    """The file with at most `room` numbers, and how many it has; what is left out is said to be unread."""
    left, tables = room, []
    for table in one.tables:
        kept, left = _rows_with(table, left)
        tables.append(kept)
    pages, left = _pages_with(one.reading.pages if one.reading is not None else (), left)
    if left >= 0:
        return one, room - left
    reading = replace(one.reading, pages=pages) if one.reading is not None else None
    unread = "; ".join(part for part in (one.unread, f"numbers after the first {room}") if part)
    return FileText(one.name, reading, tuple(tables), unread), room


def _rows_with(table: Table, room: int) -> tuple[Table, int]:
    """The rows whose numbers still fit, and the room that is left: negative once one did not.

    Rows of words count as one: a million of them would fill the memory for nothing.
    """
    for number, row in enumerate(table.rows):
        room -= max(_count(row), int(any(row)))
        if room < 0:
            return replace(table, rows=table.rows[:number]), min(room, -1)
    return table, room


def _pages_with(pages: Sequence[ReadPage], room: int) -> tuple[tuple[ReadPage, ...], int]:
    kept: list[ReadPage] = []
    for page in pages:
        lines: list[ReadLine] = []
        for line in page.lines:
            room -= _count((line.text,))
            if room < 0:
                break
            lines.append(line)
        kept.append(replace(page, lines=tuple(lines)))
    return tuple(kept), room


def _count(texts: Iterable[str]) -> int:
    return sum(len(_NUMBERS.findall(text)) for text in texts)


_COMPARISON: TypeAdapter[Comparison] = TypeAdapter(Comparison)
_FINDINGS: TypeAdapter[tuple[FigureFinding, ...]] = TypeAdapter(tuple[FigureFinding, ...])


def comparison_json(comparison: Comparison) -> str:
    """A comparison as it travels."""
    return _COMPARISON.dump_json(comparison).decode("utf-8")


def comparison_from(text: str) -> Comparison:
    """The comparison in that JSON."""
    return _COMPARISON.validate_json(text)


def findings_json(findings: tuple[FigureFinding, ...]) -> str:
    """Findings as they travel."""
    return _FINDINGS.dump_json(findings).decode("utf-8")


def findings_from(text: str) -> tuple[FigureFinding, ...]:
    """The findings in that JSON."""
    return _FINDINGS.validate_json(text)
