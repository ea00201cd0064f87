"""Where given phrases stand in lines that were read. Pure: it knows lines and boxes, no pictures and no documents.

Text is compared in NFKC, without case and without white space, over line ends too. A text layer is exact, so only an
exact match counts there. OCR is not: in its lines a look-alike counts as well, and is told as one. What is covered
needlessly can be seen and put right; what is left uncovered by one misread letter cannot.
"""

from __future__ import annotations

import bisect
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from sam2_mcp_worker.media.bit_search import Found, approximate

# Letters (Hangul taken apart) of a phrase that may be wrong in an OCR line: clean Korean print has 1 % of its syllables
# wrong, bad print 15 %, which leaves 83 % of the letters right; unlike phrases share up to 52 % (vision.md 6).
NEAR_ERRORS = 0.25
# With fewer letters every second word would be a look-alike.
NEAR_MIN_LETTERS = 5
# A reading this unlike is told as the closest one to a phrase that was not found, and never covered.
TOLD_ERRORS = 0.45
# Lines of one column: the middle of the next one lies within this many heights (boxes of print are 1.2 em high, lines
# up to 2 em apart), and it shares half of the narrower width.
_NEXT_LINE_HEIGHTS = 2.5
_SHARED_WIDTH = 0.5

# As print and text layers have them; the last is what pdfium tells of one.
LINE_END_HYPHENS = "-\u2010\u2011\ufffe"

AnyBox = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class ReadLine:
    """A line as it was read, in any unit; `exact` says that it comes from a text layer."""

    text: str
    box: AnyBox
    exact: bool


@dataclass(frozen=True, slots=True)
class Match:
    """One place of one phrase: indices of the lines that hold it, and what was read there."""

    phrase: int
    lines: tuple[int, ...]
    kind: Literal["exact", "near"]
    read_as: str


@dataclass(frozen=True, slots=True)
class Closest:
    """The reading that is least unlike a phrase that was not found; `similarity` 0-1."""

    text: str
    line: int
    similarity: float


def normalised(text: str) -> str:
    """What is compared: NFKC, without case, white space and characters that print nothing."""
    composed = unicodedata.normalize("NFKC", unicodedata.normalize("NFC", text)).casefold()
    return "".join(char for char in composed if not _prints_nothing(char))


def _prints_nothing(char: str) -> bool:
    return char.isspace() or unicodedata.category(char) in ("Cf", "Cc")


def letters(text: str) -> str:
    """Normalised text with Hangul syllables taken apart: a misread syllable mostly has one wrong letter of three."""
    return unicodedata.normalize("NFD", normalised(text))


def find_phrases(phrases: Sequence[str], lines: Sequence[ReadLine]) -> list[Match]:
    """Every place of every phrase. Lines come in reading order; the order within columns is tried besides."""
    matches: dict[tuple[int, tuple[int, ...]], Match] = {}
    for order in _orders(lines):
        running = _Running(lines, order)
        for index, phrase in enumerate(phrases):
            for match in running.matches(index, phrase):
                known = matches.get((index, match.lines))
                if known is None or known.kind == "near":
                    matches[index, match.lines] = match
    return sorted(matches.values(), key=lambda match: (match.phrase, match.lines))


def closest_reading(phrase: str, lines: Sequence[ReadLine]) -> Closest | None:
    """The line that resembles the phrase most, when any does."""
    wanted = letters(phrase)
    allowed = int(len(wanted) * TOLD_ERRORS)
    best: Closest | None = None
    for index, line in enumerate(lines):
        for found in approximate(wanted, letters(line.text), allowed):
            similarity = round(1 - found.errors / len(wanted), 2)
            if best is None or similarity > best.similarity:
                best = Closest(line.text, index, similarity)
    return best


class _Running:
    """Lines in one order as one running text, each of its characters with its line."""

    def __init__(self, lines: Sequence[ReadLine], order: Sequence[int]) -> None:
        self._lines = lines
        texts = [(index, normalised(lines[index].text)) for index in order]
        # A hyphen at the end of a line may belong to a word or not.
        unbroken = [(index, text.rstrip(LINE_END_HYPHENS)) for index, text in texts]
        self._texts = [_joined(texts)] + ([_joined(unbroken)] if unbroken != texts else [])
        self._letters, self._letter_lines = _joined((index, letters(lines[index].text)) for index in order)

    def matches(self, index: int, phrase: str) -> Iterator[Match]:
        wanted = normalised(phrase)
        if not wanted:
            return
        exact = set()
        for text, owners in self._texts:
            for start in _occurrences(wanted, text):
                touched = _unique(owners[start : start + len(wanted)])
                exact.add(touched)
                yield Match(index, touched, "exact", phrase)
        for found in self._near(letters(phrase)):
            touched = _unique(self._letter_lines[found.start : found.end])
            if touched not in exact and not all(self._lines[i].exact for i in touched):
                yield Match(index, touched, "near", " / ".join(self._lines[i].text for i in touched))

    def _near(self, wanted: str) -> list[Found]:
        allowed = int(len(wanted) * NEAR_ERRORS)
        if len(wanted) < NEAR_MIN_LETTERS or allowed == 0:
            return []
        return approximate(wanted, self._letters, allowed)


def _joined(pieces: Iterable[tuple[int, str]]) -> tuple[str, list[int]]:
    texts: list[str] = []
    owners: list[int] = []
    for index, text in pieces:
        texts.append(text)
        owners += [index] * len(text)
    return "".join(texts), owners


def _occurrences(wanted: str, text: str) -> Iterator[int]:
    start = text.find(wanted)
    while start >= 0:
        yield start
        start = text.find(wanted, start + 1)


def _unique(owners: Sequence[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(owners))


def _orders(lines: Sequence[ReadLine]) -> list[list[int]]:
    reading = list(range(len(lines)))
    columns = _column_order(lines)
    return [reading] if columns == reading else [reading, columns]


def _column_order(lines: Sequence[ReadLine]) -> list[int]:
    """Each line followed by the one below it: a phrase that wraps within a column stands together then."""
    middles = sorted((_middle(line.box), index) for index, line in enumerate(lines))
    below = {index: _line_below(index, lines, middles) for index in range(len(lines))}
    followers = {index for index in below.values() if index is not None}
    order: list[int] = []
    seen: set[int] = set()
    for head in [*(index for index in below if index not in followers), *below]:
        current: int | None = head
        while current is not None and current not in seen:
            seen.add(current)
            order.append(current)
            current = below[current]
    return order


def _middle(box: AnyBox) -> float:
    return (box[1] + box[3]) / 2


def _line_below(index: int, lines: Sequence[ReadLine], middles: Sequence[tuple[float, int]]) -> int | None:
    """The nearest line whose middle lies at most `_NEXT_LINE_HEIGHTS` below and which shares the column."""
    x0, y0, x1, y1 = lines[index].box
    middle, height = _middle(lines[index].box), y1 - y0
    for other_middle, other in middles[bisect.bisect(middles, (middle + 0.5 * height, len(lines))) :]:
        if other_middle > middle + _NEXT_LINE_HEIGHTS * height:
            return None
        ox0, _, ox1, _ = lines[other].box
        if min(x1, ox1) - max(x0, ox0) >= _SHARED_WIDTH * min(x1 - x0, ox1 - ox0):
            return other
    return None
