"""Approximate search: where a pattern stands in a text with at most so many wrong letters. Pure.

Myers' bit-parallel algorithm (J. ACM 46(3), 1999) on Python's integers, which have as many bits as the pattern has
letters. Only stretches that hold a piece of the pattern exactly are looked at: of `errors + 1` pieces one is unharmed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Found:
    """`text[start:end]` is the pattern but for `errors` inserted, missing or exchanged letters."""

    start: int
    end: int
    errors: int


def approximate(pattern: str, text: str, errors: int) -> list[Found]:
    """Places of `pattern` in `text` with at most `errors` errors; of places that overlap, the better one.

    A pattern that is no longer than the errors allowed would be found everywhere: it is found nowhere.
    """
    if not pattern or len(pattern) <= errors:
        return []
    candidates = [
        (distance, end)
        for first, last in _stretches(pattern, text, errors)
        for end, distance in enumerate(_distances(pattern, text[first:last], anywhere=True), first + 1)
        if distance <= errors
    ]
    taken: list[Found] = []
    for distance, end in sorted(candidates):
        found = Found(_start(pattern, text, end, distance), end, distance)
        if all(found.end <= other.start or found.start >= other.end for other in taken):
            taken.append(found)
    return sorted(taken, key=lambda found: found.start)


def _stretches(pattern: str, text: str, errors: int) -> Iterator[tuple[int, int]]:
    """Parts of the text that may hold the pattern, apart from each other."""
    reach = len(pattern) + errors
    hits = sorted({hit for piece in _pieces(pattern, errors + 1) for hit in _occurrences(piece, text)})
    current: tuple[int, int] | None = None
    for hit in hits:
        first, last = max(0, hit - reach), min(len(text), hit + reach)
        if current is not None and first <= current[1]:
            current = current[0], last
            continue
        if current is not None:
            yield current
        current = first, last
    if current is not None:
        yield current


def _pieces(pattern: str, count: int) -> Iterator[str]:
    for number in range(count):
        yield pattern[len(pattern) * number // count : len(pattern) * (number + 1) // count]


def _occurrences(piece: str, text: str) -> Iterator[int]:
    start = text.find(piece)
    while start >= 0:
        yield start
        start = text.find(piece, start + 1)


def _distances(pattern: str, text: str, *, anywhere: bool) -> Iterator[int]:
    """For each end in the text, the fewest errors of a match that begins `anywhere`, or else at the text's start."""
    top = 1 << (len(pattern) - 1)
    full = (1 << len(pattern)) - 1
    places: dict[str, int] = {}
    for index, char in enumerate(pattern):
        places[char] = places.get(char, 0) | 1 << index
    more, fewer, distance = full, 0, len(pattern)
    for char in text:
        same = places.get(char, 0)
        across = (((same & more) + more) ^ more) | same
        down = same | fewer
        up = fewer | (~(across | more) & full)
        less = more & across
        distance += bool(up & top) - bool(less & top)
        up = (up << 1 | (not anywhere)) & full
        less = (less << 1) & full
        more = less | (~(down | up) & full)
        fewer = up & down
        yield distance


def _start(pattern: str, text: str, end: int, errors: int) -> int:
    """Where the shortest match with that many errors begins that ends at `end`."""
    backwards = text[max(0, end - len(pattern) - errors) : end][::-1]
    for length, distance in enumerate(_distances(pattern[::-1], backwards, anywhere=False), 1):
        if distance == errors:
            return end - length
    return end  # every letter of the pattern is missing, which the caller has ruled out
