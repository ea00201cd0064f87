"""What becomes of figures whose truth is known, as text and read by the local OCR.

    python -m tests.bench.checks.figure_truth [--quick] [--first N] [--pairs N] [--check] [--json] [--wrong]
        [--kept FOLDER]

Twenty made-up advertisements and their evidence (figure_pairs.py; a share of the figures is wrong) are compared as
text and as pictures: 150 dpi, JPEG 60, and a bad copy (75 dpi enlarged, JPEG 40). `--quick` leaves the pictures out.
A figure of a picture has the truth of the printed line in whose place it was read; where it has another value, or the
line another number of figures, it is `misread` (or `misread wrong` where a figure of that line is printed wrong).
`same` are the figures of the text against evidence that was read from the picture of the very same lines.
Bounds: no `mismatch` of what is printed right, misread or not, none of what the evidence is silent about, and no
`match` of what is printed wrong.
"""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.bench.checks.figure_pairs import PAIRS, Pair, pair, reading_of
from tests.bench.checks.leaflets import Leaflet, read_by_ocr
from tests.bench.checks.phrase_truth import blurred
from tests.bench.claude.command import finish, options
from tests.bench.ocr import pages
from tests.bench.ocr.pages import A4_PX, Page, Rect, Writer

from sam2_mcp_worker.checks.figure_compare import Evidence, FigureFinding, compare_figures
from sam2_mcp_worker.checks.figures import Figure, figures_of
from sam2_mcp_worker.checks.reading import Reading
from sam2_mcp_worker.engines import local_ocr_child
from sam2_mcp_worker.engines.local_ocr import child_config
from sam2_mcp_worker.settings import Settings

Seen = Callable[[Page], Page]
STATES = ("match", "mismatch", "cannot_compare")
TRUTHS = ("backed", "wrong", "silent", "misread", "misread wrong", "same")
_RIGHT = {("backed", "match"), ("same", "match"), ("wrong", "mismatch"), ("silent", "cannot_compare")}
# Confidences of OCR for which the share of misread figures is told.
BINS = (0.0, 0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 1.01)


@dataclass
class Outcome:
    """Figures of one kind of reading by truth and state, and how often they were misread at which confidence."""

    name: str
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    misread: Counter[tuple[float, bool]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def short_of(self) -> list[str]:
        bad = [(truth, "mismatch") for truth in TRUTHS if "wrong" not in truth] + [
            ("wrong", "match"),
            ("silent", "match"),
        ]
        return [f"{self.name}: {self.counts[key]} {key[0]} -> {key[1]}" for key in bad if self.counts[key]]


def as_text(made: Pair, outcome: Outcome) -> None:
    for truth, finding in zip(made.truth, made.judged(), strict=True):
        _count(outcome, made, truth, finding)


def as_picture(made: Pair, outcome: Outcome, seen: Seen, kept: Path | None) -> None:
    page, printed = _page(made)
    reading = read_by_ocr(Leaflet(made.seed, (page,), (), ()), seen, kept)
    figures = figures_of(reading)
    truths = _truths(made, printed, reading, figures, outcome)
    for truth, finding in zip(truths, compare_figures(figures, made.evidence()), strict=True):
        _count(outcome, made, truth, finding)


def against_own_picture(made: Pair, outcome: Outcome, seen: Seen, kept: Path | None) -> None:
    """The advertisement's text against evidence that was read by OCR: a picture of the same lines."""
    page, _ = _page(made)
    reading = read_by_ocr(Leaflet(made.seed, (page,), (), ()), seen, kept)
    evidence = [Evidence("picture", figures_of(reading))]
    for finding in compare_figures(figures_of(made.advertisement), evidence):
        _count(outcome, made, "same", finding)


def _count(outcome: Outcome, made: Pair, truth: str, finding: FigureFinding) -> None:
    outcome.counts[truth, finding.state] += 1
    said = (truth, finding.state)
    if said not in _RIGHT:
        figure = finding.figure
        outcome.wrong.append(
            f"{outcome.name} {made.seed} {truth} -> {finding.state}: {figure.text} {figure.label}: {finding.reason}"
        )


def _page(made: Pair) -> tuple[Page, list[tuple[float, str]]]:
    """The advertisement as a page, and the middle of each of its printed lines."""
    chance = Random(f"figures-{made.seed}")
    page = Page(f"figures {made.seed}", A4_PX, [Rect(0, 0, *A4_PX, chance.choice(pages.PAPERS))])
    writer = Writer(page, chance)
    writer.y = 60
    middles: list[tuple[float, str]] = []
    for line in made.lines:
        size = chance.choice((16, 18, 20, 24, 30))
        writer.y += size * chance.uniform(1.8, 2.6)
        writer.text(80, writer.y, line, size, writer.ink)
        middles.append((writer.y - size * 0.35, line))
    return page, middles


def _truths(
    made: Pair, printed: Sequence[tuple[float, str]], reading: Reading, figures: Sequence[Figure], outcome: Outcome
) -> list[str]:
    """The truth of each figure that was read."""
    left = iter(made.truth)
    by_line = {line: [(figure, next(left)) for figure in _figures(line)] for line in made.lines}
    found: list[str] = []
    for figure in figures:
        box = figure.place.box_xyxy
        assert box is not None
        line = min(printed, key=lambda one: abs(one[0] - (box[1] + box[3]) / 2))[1]
        beside = [one for one in figures if one.place == figure.place]
        there = by_line[line]
        at = beside.index(figure)
        right = len(beside) == len(there) and beside[at].value == there[at][0].value
        confidence = next(one.confidence or 0.0 for _, one in reading.lines() if one.box_xyxy == box)
        outcome.misread[max(start for start in BINS if start <= confidence), not right] += 1
        missed = "misread wrong" if any(truth == "wrong" for _, truth in there) else "misread"
        found.append(there[at][1] if right else missed)
    return found


def _figures(line: str) -> tuple[Figure, ...]:
    return figures_of(reading_of([line]))


def shown(outcomes: Sequence[Outcome]) -> str:
    rows = ["| reading | truth | match | mismatch | cannot_compare |", "|---|---|---|---|---|"]
    for outcome in outcomes:
        for truth in TRUTHS:
            if any(outcome.counts[truth, state] for state in STATES):
                cells = " | ".join(str(outcome.counts[truth, state]) for state in STATES)
                rows.append(f"| {outcome.name} | {truth} | {cells} |")
    rows += ["", "| confidence from | figures | misread |", "|---|---|---|"]
    total: Counter[tuple[float, bool]] = sum((outcome.misread for outcome in outcomes), Counter())
    for start in BINS[:-1]:
        count = total[start, True] + total[start, False]
        if count:
            rows.append(f"| {start} | {count} | {total[start, True]} |")
    return "\n".join(rows)


def main() -> int:
    parser = options("figure_truth", bench="checks")
    parser.add_argument("--quick", action="store_true", help="without OCR")
    parser.add_argument("--wrong", action="store_true", help="name each figure that was not judged as it is")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--kept", type=Path, help="folder in which readings are kept for the next run")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)  # fpdf2 and fontTools tell of every subset
    made = [pair(seed) for seed in range(arguments.first, arguments.first + arguments.pairs)]
    outcomes = [Outcome("text")]
    for one in made:
        as_text(one, outcomes[0])
    ways: dict[str, Seen] = (
        {}
        if arguments.quick
        else {
            "OCR, 150 dpi": lambda page: page,
            "OCR, JPEG 60": lambda page: pages.jpeg(page, 60),
            "OCR, bad copy": blurred,
        }
    )
    if ways:
        local_ocr_child.setup(child_config(Settings().find_tessdata(), ["kor"]))
    for name, seen in ways.items():
        outcomes.append(Outcome(name))
        for one in made:
            as_picture(one, outcomes[-1], seen, arguments.kept)
            against_own_picture(one, outcomes[-1], seen, arguments.kept)
    if arguments.wrong:
        print("\n".join(line for outcome in outcomes for line in outcome.wrong))
    return finish(arguments, _data(outcomes), shown(outcomes), [line for one in outcomes for line in one.short_of()])


def _data(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    return [
        {"reading": one.name, "counts": {f"{truth} {state}": count for (truth, state), count in one.counts.items()}}
        for one in outcomes
    ]


if __name__ == "__main__":
    sys.exit(main())
