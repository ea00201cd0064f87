"""Glyphs to lines of text in reading order. Pure: it knows nothing of PDFs.

All lengths are measured in ems of the glyphs at hand, along and across the direction of writing, so that turned and
tilted lines need no case of their own.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from sam2_mcp_worker.media.pdf_geometry import BoxPt
from sam2_mcp_worker.media.reading_order import reading_order

# Glyphs share a line while their baselines differ by less: superscripts stand 0.33-0.45 em above it.
_SAME_BASELINE_EM = 0.5
# Two directions are one line's when their angle is below 3 degrees (cosine).
_SAME_DIRECTION = 0.9986
# Readers make out lines that are tilted by less than 8 degrees (cosine).
_LEVEL = 0.99
# A gap that is read as a space. Korean and Latin word spaces are 0.22-0.33 em, tracking is rarely above 0.15 em.
_SPACE_EM = 0.2
# A gap that separates columns or table cells.
_COLUMN_EM = 1.5
# Ascent and descent of common fonts together are 1.1-1.25 em.
_LOOSE_HEIGHT_EM = 1.2
# How far a glyph may step back (kerning, justified text) and still follow the one before.
_BACKSTEP_EM = 0.5


@dataclass(frozen=True, slots=True)
class Glyph:
    """One character as displayed: its box, the start of its baseline, its direction (unit vector, y down), its em."""

    text: str
    box: BoxPt
    origin: tuple[float, float]
    direction: tuple[float, float]
    size_pt: float
    font: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text. `size_pt` is the em of its middle glyph, `min_size_pt` the smallest that two glyphs have.

    `level` tells whether it is displayed from left to right, and not on its side, upside down, or tilted.
    """

    text: str
    box_xyxy_pt: BoxPt
    size_pt: float
    min_size_pt: float
    font: str
    level: bool = True


@dataclass(slots=True)
class _Run:
    """Glyphs that follow each other on one baseline; `start` and `end` along the direction, `across` it."""

    glyphs: list[Glyph]
    text: str
    start: float
    end: float
    across: float

    @property
    def direction(self) -> tuple[float, float]:
        return self.glyphs[0].direction

    @property
    def em(self) -> float:
        return max(glyph.size_pt for glyph in self.glyphs)


def build_lines(glyphs: Iterable[Glyph]) -> list[Line]:
    """Group glyphs, in the order in which they were drawn, into lines in reading order.

    White space glyphs only separate words. Lines are NFC-normalised: some writers store Hangul as single letters.
    """
    lines = [_line(run) for run in _join(_runs(glyphs)) if run.text.strip()]
    return [lines[i] for i in reading_order([line.box_xyxy_pt for line in lines])]


def _runs(glyphs: Iterable[Glyph]) -> list[_Run]:
    runs: list[_Run] = []
    space_before = False
    for glyph in glyphs:
        if glyph.text.isspace():
            space_before = True
            continue
        piece = _single(glyph)
        if runs and _follows(runs[-1], piece):
            _append(runs[-1], piece, space_before)
        else:
            runs.append(piece)
        space_before = False
    return runs


def _single(glyph: Glyph) -> _Run:
    ux, uy = glyph.direction
    x, y = glyph.origin
    start = x * ux + y * uy
    return _Run([glyph], glyph.text, start, start + _advance(glyph), y * ux - x * uy)


def _advance(glyph: Glyph) -> float:
    """The glyph's width along its direction, out of the upright box around it."""
    ux, uy = abs(glyph.direction[0]), abs(glyph.direction[1])
    x0, y0, x1, y1 = glyph.box
    height = _LOOSE_HEIGHT_EM * glyph.size_pt
    return max(0.0, (x1 - x0 - height * uy) / ux if ux >= uy else (y1 - y0 - height * ux) / uy)


def _same_line(one: _Run, other: _Run) -> bool:
    (ax, ay), (bx, by) = one.direction, other.direction
    return ax * bx + ay * by > _SAME_DIRECTION and abs(one.across - other.across) < _SAME_BASELINE_EM * max(
        one.glyphs[-1].size_pt, other.glyphs[0].size_pt
    )


def _follows(run: _Run, piece: _Run) -> bool:
    em = max(run.glyphs[-1].size_pt, piece.glyphs[0].size_pt)
    return _same_line(run, piece) and -_BACKSTEP_EM * em < piece.start - run.end < _COLUMN_EM * em


def _append(run: _Run, piece: _Run, space: bool) -> None:
    em = min(run.glyphs[-1].size_pt, piece.glyphs[0].size_pt)
    run.text += (" " if space or piece.start - run.end > _SPACE_EM * em else "") + piece.text
    run.glyphs += piece.glyphs
    run.end = max(run.end, piece.end)


def _join(runs: list[_Run]) -> list[_Run]:
    """Put together what was drawn in pieces: a word in another weight is often drawn after its sentence."""
    rows: list[list[_Run]] = []
    for run in sorted(runs, key=lambda run: (*_rounded(run.direction), run.across)):
        if rows and _same_line(rows[-1][-1], run):
            rows[-1].append(run)
        else:
            rows.append([run])
    return [joined for row in rows for joined in _join_row(sorted(row, key=lambda run: run.start))]


def _rounded(direction: tuple[float, float]) -> tuple[float, float]:
    return round(direction[0], 1), round(direction[1], 1)


def _join_row(row: Sequence[_Run]) -> list[_Run]:
    joined: list[_Run] = []
    for run in row:
        last = joined[-1] if joined else None
        if last is not None and _is_overprint(last, run):
            continue
        if last is not None and _follows(last, run):
            _append(last, run, space=False)
        else:
            joined.append(run)
    return joined


def _is_overprint(last: _Run, run: _Run) -> bool:
    """The same words printed again a hair beside themselves, as a makeshift bold."""
    return last.text == run.text and abs(last.start - run.start) < _SPACE_EM * run.em


def _line(run: _Run) -> Line:
    xs0, ys0, xs1, ys1 = zip(*(glyph.box for glyph in run.glyphs), strict=True)
    sizes = sorted(glyph.size_pt for glyph in run.glyphs)
    return Line(
        text=unicodedata.normalize("NFC", run.text.strip()),
        box_xyxy_pt=(min(xs0), min(ys0), max(xs1), max(ys1)),
        size_pt=median(sizes),
        min_size_pt=sizes[min(1, len(sizes) - 1)],
        font=run.glyphs[len(run.glyphs) // 2].font,
        level=run.direction[0] > _LEVEL,
    )
