"""Compares a reading with the ground truth. Owns the metric; draws nothing and runs no engine.

Character error rate: edit distance without spaces over the characters printed. Lines are matched by place, not by
order, so that reading order is not scored here; what belongs to no printed line counts as insertion.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from tests.bench.ocr.pages import FINE_PRINT_PX, Page

FBox = tuple[float, float, float, float]
SAME_LINE_OVERLAP = 0.5  # of the lower one's height; print lines never overlap that much
INK_COVER = 0.5  # of a printed line's area must lie under reported ink to count as seen


@dataclass(frozen=True)
class Read:
    """A line as an engine gave it, in picture pixels; `quad` is 4 x (x, y)."""

    text: str
    quad: Sequence[Sequence[float]]
    height_px: float


@dataclass
class Score:
    """Counts over one or more pages."""

    characters: int = 0
    errors: int = 0
    fine_characters: int = 0
    fine_errors: int = 0
    lines: int = 0
    dropped: int = 0
    dropped_unseen: int = 0
    false_ink: int = 0
    height_errors_px: list[float] = field(default_factory=list)
    fine_height_errors_px: list[float] = field(default_factory=list)
    mistakes: list[tuple[str, str]] = field(default_factory=list)

    @property
    def cer(self) -> float:
        return self.errors / max(1, self.characters)

    @property
    def fine_cer(self) -> float:
        return self.fine_errors / max(1, self.fine_characters)

    def add(self, other: Score) -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


def edit_distance(a: str, b: str) -> int:
    """Levenshtein."""
    previous = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        current = [i]
        for j, right in enumerate(b, 1):
            current.append(min(previous[j] + 1, current[-1] + 1, previous[j - 1] + (left != right)))
        previous = current
    return previous[-1]


def score_page(page: Page, reads: Sequence[Read], ink: Sequence[FBox]) -> Score:
    """Score one page; `reads` and `ink` are in picture coordinates."""
    truths = [text.box_xyxy_px for text in page.texts]
    found = [_untilted(np.asarray(read.quad, float), page.tilt) for read in reads]
    score = Score(lines=len(truths))
    for printed, seen in _groups(truths, found):
        # A group of several is one visual line in pieces (a table row read as one, a line read in two).
        expected = _comparable(page.texts[i].text for i in _in_order(printed, truths))
        actual = _comparable(reads[j].text for j in _in_order(seen, found))
        errors = edit_distance(expected, actual)
        if printed and not actual:
            score.dropped += len(printed)
            score.dropped_unseen += sum(not _covered(truths[i], ink, page.tilt) for i in printed)
        fine = bool(printed) and max(page.texts[i].size_px for i in printed) <= FINE_PRINT_PX
        score.characters += len(expected)
        score.errors += errors
        if fine:
            score.fine_characters += len(expected)
            score.fine_errors += errors
        if errors:
            score.mistakes.append((expected, actual))
        if len(printed) == len(seen) == 1:
            off = reads[seen[0]].height_px - page.texts[printed[0]].size_px
            (score.fine_height_errors_px if fine else score.height_errors_px).append(off)
    score.false_ink = sum(not any(_overlap(t, _untilted_box(box, page.tilt)) > 0 for t in truths) for box in ink)
    return score


def _untilted(quad: NDArray[np.float64], tilt: NDArray[np.float64] | None) -> FBox:
    if tilt is not None:
        full = np.vstack([tilt, [0, 0, 1]])
        quad = (np.linalg.inv(full) @ np.column_stack([quad, np.ones(len(quad))]).T).T[:, :2]
    return quad[:, 0].min(), quad[:, 1].min(), quad[:, 0].max(), quad[:, 1].max()


def _untilted_box(box: FBox, tilt: NDArray[np.float64] | None) -> FBox:
    x0, y0, x1, y1 = box
    return _untilted(np.array([(x0, y0), (x1, y0), (x1, y1), (x0, y1)], float), tilt)


def _overlap(a: FBox, b: FBox) -> float:
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


def _covered(truth: FBox, ink: Sequence[FBox], tilt: NDArray[np.float64] | None) -> bool:
    area = (truth[2] - truth[0]) * (truth[3] - truth[1])
    return sum(_overlap(truth, _untilted_box(box, tilt)) for box in ink) >= INK_COVER * area


def _same_line(a: FBox, b: FBox) -> bool:
    vertical = min(a[3], b[3]) - max(a[1], b[1])
    horizontal = min(a[2], b[2]) - max(a[0], b[0])
    # 4 px: a detector's margin may reach into the next table cell
    return vertical > SAME_LINE_OVERLAP * min(a[3] - a[1], b[3] - b[1]) and horizontal > 4


def _groups(truths: list[FBox], found: list[FBox]) -> list[tuple[list[int], list[int]]]:
    """Connected components of 'the same line' between printed and found boxes."""
    links = [[j for j, box in enumerate(found) if _same_line(truth, box)] for truth in truths]
    groups: list[tuple[set[int], set[int]]] = []
    for i, linked in enumerate(links):
        touching = [g for g in groups if g[1] & set(linked)]
        merged = ({i}.union(*(g[0] for g in touching)), set(linked).union(*(g[1] for g in touching)))
        groups = [g for g in groups if g not in touching] + [merged]
    matched = set().union(*(g[1] for g in groups)) if groups else set()
    strays: list[tuple[list[int], list[int]]] = [([], [j]) for j in range(len(found)) if j not in matched]
    return [(sorted(a), sorted(b)) for a, b in groups] + strays


def _in_order(indices: list[int], boxes: list[FBox]) -> list[int]:
    """Left to right, after rows: pieces of one row differ in y by less than half their height."""
    if not indices:
        return []
    rows: list[list[int]] = []
    for index in sorted(indices, key=lambda i: (boxes[i][1] + boxes[i][3]) / 2):
        middle = (boxes[index][1] + boxes[index][3]) / 2
        if rows and middle < boxes[rows[-1][0]][3] - 0.25 * (boxes[rows[-1][0]][3] - boxes[rows[-1][0]][1]):
            rows[-1].append(index)
        else:
            rows.append([index])
    return [i for row in rows for i in sorted(row, key=lambda i: boxes[i][0])]


SAME_SIGN = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "ㆍ": "·", "•": "·", "∙": "·", "～": "~", "∼": "~"})
"""Signs that look alike in print and mean the same: curly and straight quotes, the middle dots, the wave dashes."""


def _comparable(texts: Iterable[str]) -> str:
    return "".join(texts).replace(" ", "").translate(SAME_SIGN)
