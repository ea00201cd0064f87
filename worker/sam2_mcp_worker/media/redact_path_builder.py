"""Collects the path operators of a content stream into subpaths, and moves them between spaces. Pure."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

from sam2_mcp_worker.media.pdf_geometry import IDENTITY, Matrix
from sam2_mcp_worker.media.redact_paths import Point, Segment, Subpath

PATH_OPERATORS = {"m", "l", "c", "v", "y", "h", "re"}


@dataclass(slots=True)
class PathBuilder:
    """The path under construction, in user space, and the instructions that made it."""

    subpaths: list[Subpath] = field(default_factory=list)
    instructions: list[Any] = field(default_factory=list)
    clip: str = ""

    def add(self, operator: str, numbers: list[float]) -> None:
        """One path operator; with a wrong number of operands it is passed over, as viewers do."""
        match operator, numbers:
            case "m", [x, y]:
                self.subpaths.append(Subpath((x, y)))
            case "re", [x, y, width, height]:
                corners = [(x, y), (x + width, y), (x + width, y + height), (x, y + height), (x, y)]
                lines: list[Segment] = list(itertools.pairwise(corners))
                self.subpaths.append(Subpath((x, y), lines, closed=True))
            case "h", []:
                if self.subpaths:
                    self.subpaths[-1].closed = True
            case "l", [x, y]:
                self._segment((x, y))
            case "c", [a, b, c, d, x, y]:
                self._segment((a, b), (c, d), (x, y))
            case "v", [c, d, x, y]:
                self._segment(self._here(), (c, d), (x, y))
            case "y", [a, b, x, y]:
                self._segment((a, b), (x, y), (x, y))

    def _segment(self, *points: Point) -> None:
        here = self._here()
        if not self.subpaths or self.subpaths[-1].closed:
            self.subpaths.append(Subpath(here))
        self.subpaths[-1].segments.append((here, *points))

    def _here(self) -> Point:
        if not self.subpaths:
            return 0.0, 0.0
        last = self.subpaths[-1]
        return last.start if last.closed else last.end


def same(one: list[Subpath], other: list[Subpath]) -> bool:
    """Whether cutting has changed nothing."""
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def as_matrix(numbers: Any) -> Matrix:
    """Six numbers of a PDF; the identity for None."""
    a, b, c, d, e, f = (float(number) for number in numbers or IDENTITY)
    return a, b, c, d, e, f


def applied(matrix: Matrix, point: Point) -> Point:
    """The point in the space that the matrix leads to."""
    a, b, c, d, e, f = matrix
    return a * point[0] + c * point[1] + e, b * point[0] + d * point[1] + f


def placed(subpath: Subpath, matrix: Matrix) -> Subpath:
    """The subpath in the space that the matrix leads to."""
    segments = [tuple(applied(matrix, point) for point in segment) for segment in subpath.segments]
    return Subpath(applied(matrix, subpath.start), segments, subpath.closed)


def inverse(matrix: Matrix) -> Matrix | None:
    """The way back; None when the matrix flattens everything to a line."""
    a, b, c, d, e, f = matrix
    det = a * d - b * c
    if det == 0:
        return None
    return d / det, -b / det, -c / det, a / det, (c * f - d * e) / det, (b * e - a * f) / det
