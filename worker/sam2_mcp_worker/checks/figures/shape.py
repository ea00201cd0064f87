"""A figure and what it is about: the shape in which documents are compared."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from sam2_mcp_worker.checks.figures.clauses import Clause
from sam2_mcp_worker.checks.figures.form import Bound, FigureKind, Form, shown_value
from sam2_mcp_worker.checks.reading import Box, Source


@dataclass(frozen=True, slots=True)
class Place:
    """Where a figure stands: page and box, or line (from 1 in its page), or sheet and cell, or time."""

    page: int | None = None
    box_xyxy: Box | None = None
    line: int | None = None
    sheet: str = ""
    cell: str = ""
    start_s: float | None = None
    end_s: float | None = None
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure and what it is about.

    `text` is what stands there, normalised; `low`, `high`, `unit`, `bound`, `per` and `doubt` are those of its `Form`.
    `label` are phrases that name it (the clause before it; each header of its row and column), `around` weaker
    context. `near` is false where the label comes from a line above, which may belong to something else. `doubt` keeps
    a figure from being compared, `unsure` (read with little confidence, heard, rounded for display) only from being
    told to be wrong. `conditions` are the figures beside it on which it depends ("40세"),
    `behind` the words right behind it ("할인"), which are among the others too. `of_a_value`: it is such a condition.
    """

    text: str
    kind: FigureKind
    low: Decimal
    high: Decimal
    unit: str
    bound: Bound = ""
    per: tuple[str, ...] = ()
    label: tuple[str, ...] = ()
    around: tuple[str, ...] = ()
    place: Place = field(default_factory=Place)
    doubt: str = ""
    near: bool = True
    unsure: str = ""
    conditions: tuple[str, ...] = ()
    behind: str = ""
    of_a_value: bool = False

    @property
    def value(self) -> str:
        """The value for people and agents: "150000000", "20~60", "2026-01-02"."""
        return shown_value(self.low, self.high, self.unit)


def figure_of(form: Form, clause: Clause, place: Place, *, near: bool = True, unsure: str = "") -> Figure:
    """A form with its context."""
    return Figure(
        text=form.text,
        kind=form.kind,
        low=form.low,
        high=form.high,
        unit=form.unit,
        bound=form.bound,
        per=form.per or clause.per,
        label=clause.label,
        around=clause.around,
        place=place,
        doubt=form.doubt,
        near=near,
        unsure=unsure,
        conditions=clause.conditions,
        behind=clause.behind,
        of_a_value=clause.of_a_value,
    )
