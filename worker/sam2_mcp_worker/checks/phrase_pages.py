"""A document cut into the passages in which phrases are looked for: pages, and what runs over a page's end.

Owns which lines stand one behind the other. A page that was read twice (text layer and OCR) gives a passage for each.
Refuses to know what a likeness means.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sam2_mcp_worker.checks.phrase_coverage import grams_of
from sam2_mcp_worker.checks.phrase_letters import LetterLines, letters
from sam2_mcp_worker.checks.reading import Reading, ReadLine, ReadPage, Source

# Of a page's end and of the beginning of the next one that many lines are read together: the longest wording known has
# 190 characters, five lines of a leaflet, and a footer, a page number or a title may stand between.
_SEAM_LINES = 12
# Lines of another column, or a footer, that may stand between two lines of a phrase.
_MOST_BETWEEN = 3


@dataclass(frozen=True, slots=True)
class PhraseLine:
    """A line that a phrase touches: its page from 1, and its index among the lines of that page."""

    page_number: int
    index: int
    line: ReadLine


class Passage:
    """Lines of one source that are read one after the other; with `seam` a page's end and the next one's beginning."""

    def __init__(self, source: Source, lines: Sequence[PhraseLine], seam: bool = False) -> None:
        self.source: Source = source
        self.lines = tuple(lines)
        self.seam = seam
        self.texts = [one.line.text for one in lines]
        self.read = LetterLines(self.texts)

    @property
    def letters(self) -> str:
        """All letters of the lines."""
        return self.read.letters

    @functools.cached_property
    def grams(self) -> frozenset[str]:
        """The 3-grams of all lines."""
        return grams_of("".join(self.texts))

    @property
    def slips(self) -> bool:
        """Whether the text may have been misread or misheard."""
        return self.source in ("ocr", "speech")


def pages_of(reading: Reading) -> list[Passage]:
    """One passage for each page and source that has lines there."""
    return [passage for page in reading.pages for passage in _by_source(page)]


def seams_of(reading: Reading) -> Iterator[Passage]:
    """The end of each page together with the beginning of the next one, by source."""
    for page, behind in itertools.pairwise(reading.pages):
        if behind.number == page.number + 1:
            after = {passage.source: passage for passage in _by_source(behind)}
            for passage in _by_source(page):
                if passage.source in after:
                    head = after[passage.source].lines[:_SEAM_LINES]
                    yield Passage(passage.source, (*passage.lines[-_SEAM_LINES:], *head), seam=True)


def _by_source(page: ReadPage) -> list[Passage]:
    lines: dict[Source, list[PhraseLine]] = {}
    for index, line in enumerate(page.lines):
        if letters(line.text):
            lines.setdefault(line.source, []).append(PhraseLine(page.number, index, line))
    return [Passage(source, found) for source, found in lines.items()]


def broken_up(passage: Passage, shared: Mapping[int, frozenset[str]], least: float) -> Iterator[Passage]:
    """Lines of the passage that may hold a phrase between others, without those others.

    `shared` are the runs of letters of the phrase that stand in the lines at some positions; fewer different ones than
    `least` together are not worth a look.
    """
    run: list[int] = []
    for position in [*sorted(shared), None]:
        if position is not None and (not run or position - run[-1] - 1 <= _most_between(passage, run[-1], position)):
            run.append(position)
            continue
        if run and len(frozenset[str]().union(*(shared[at] for at in run))) >= least:
            yield from _of_positions(passage, run, shared)
        run = [] if position is None else [position]


def _of_positions(passage: Passage, run: Sequence[int], shared: Mapping[int, frozenset[str]]) -> Iterator[Passage]:
    """The lines at some positions, where others are between them, and not those that have less of what another has.

    So a line of the other column that shares no more than an ending with the phrase is left out.
    """
    needed = [
        at
        for index, at in enumerate(run)
        if not any(shared[at] < shared[other] for other in run[max(0, index - _SEAM_LINES) : index + _SEAM_LINES])
    ]
    if needed[-1] - needed[0] >= len(needed):
        yield Passage(passage.source, [passage.lines[at] for at in needed], passage.seam)


def _most_between(passage: Passage, before: int, behind: int) -> int:
    """A page's end has room for a footer and a title."""
    crossed = passage.lines[before].page_number != passage.lines[behind].page_number
    return 2 * _MOST_BETWEEN if crossed else _MOST_BETWEEN


def crosses_pages(lines: Sequence[PhraseLine]) -> bool:
    """Whether the lines are of two pages."""
    return len({one.page_number for one in lines}) > 1


def joined(lines: Sequence[PhraseLine], passage: Passage) -> bool:
    """Whether the lines stand right behind one another in the passage."""
    positions = [passage.lines.index(line) for line in (lines[0], lines[-1])]
    return positions[1] - positions[0] == len(lines) - 1


def strangers_between(lines: Sequence[PhraseLine], passage: Passage) -> bool:
    """Whether lines stand between these that are not beside them, as another column is: then they may not be one text.

    What stands between at a page's end and at the next one's beginning is a footer or a title.
    """
    for before, behind in itertools.pairwise(lines):
        if before.page_number == behind.page_number:
            between = passage.lines[passage.lines.index(before) + 1 : passage.lines.index(behind)]
            if not all(_beside(one.line, before.line, behind.line) for one in between):
                return True
    return False


def _beside(stranger: ReadLine, *lines: ReadLine) -> bool:
    """Whether a line stands to the left or right of others; of lines without a place that is not known."""
    box = stranger.box_xyxy
    boxes = [line.box_xyxy for line in lines]
    return box is not None and all(other is not None and (box[2] <= other[0] or other[2] <= box[0]) for other in boxes)
