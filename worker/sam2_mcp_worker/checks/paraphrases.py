"""Which sentence of a document comes nearest to a phrase in meaning. Pure: vectors come from whoever makes them.

Owns how a reading is cut into sentences and how likeness is measured. A likeness in meaning is never more than a
reason for a person to look: "may be paid" and "may not be paid" lie close together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sam2_mcp_worker.checks.reading import Reading, ReadPage

# A sentence that runs on (a table read as text) is cut there; the longest mandatory wording has 190 characters.
MAX_SENTENCE_CHARS = 300
# Shorter ones are headings and captions, which are like everything.
MIN_SENTENCE_CHARS = 12
# A page of fine print has some 60. What a request costs and the time of the comparisons are bounded by this.
MAX_SENTENCES = 500
_END = re.compile(r"(?:[.!?。]|니다|니까|세요)\s*$")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence and the lines (indices in the page) that it stands in."""

    text: str
    page_number: int
    lines: tuple[int, ...]


def sentences(reading: Reading) -> tuple[Sentence, ...]:
    """The sentences of a document in order, at most MAX_SENTENCES; each line belongs to one of them."""
    found = [sentence for page in reading.pages for sentence in _of_page(page)]
    return tuple(found[:MAX_SENTENCES])


def _of_page(page: ReadPage) -> Iterator[Sentence]:
    texts: list[str] = []
    lines: list[int] = []
    chars = 0
    for index, line in enumerate(page.lines):
        text = line.text.strip()
        if not text:
            continue
        texts.append(text)
        lines.append(index)
        chars += len(text)
        if _END.search(text) or chars >= MAX_SENTENCE_CHARS:
            yield from _told(page, texts, lines)
            texts, lines, chars = [], [], 0
    yield from _told(page, texts, lines)


def _told(page: ReadPage, texts: Sequence[str], lines: Sequence[int]) -> Iterator[Sentence]:
    text = " ".join(" ".join(texts).split())[:MAX_SENTENCE_CHARS]
    if len(text) >= MIN_SENTENCE_CHARS:
        yield Sentence(text, page.number, tuple(lines))


def nearest(phrase: Sequence[float], others: Sequence[Sequence[float]]) -> tuple[int, float]:
    """Index and likeness (-1 to 1) of the vector nearest to the phrase's; all are 1 long, and there is at least one."""
    return max(enumerate(_products(phrase, others)), key=lambda found: (found[1], -found[0]))


def _products(phrase: Sequence[float], others: Sequence[Sequence[float]]) -> Iterator[float]:
    return (sum(one * two for one, two in zip(phrase, other, strict=True)) for other in others)
