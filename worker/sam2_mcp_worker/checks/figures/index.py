"""Figures of evidence by what they measure and by the words that name them: a book of rates has many thousands."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from sam2_mcp_worker.checks.figures.likeness import words_in
from sam2_mcp_worker.checks.figures.shape import Figure
from sam2_mcp_worker.checks.figures.units import comparable
from sam2_mcp_worker.checks.figures.words import joined

# Words are looked up by their beginning, since names that are written in one word or in two share it.
_KEY_LETTERS = 2


class FigureIndex:
    """Figures of several files; each is known with the number of its file."""

    def __init__(self, files: Sequence[Sequence[Figure]]) -> None:
        self._by_word: dict[tuple[str, str], list[tuple[int, Figure]]] = defaultdict(list)
        self._by_value: dict[tuple[object, ...], list[tuple[int, Figure]]] = defaultdict(list)
        self._measures: set[str] = set()
        for file, figures in enumerate(files):
            for figure in figures:
                self._add(file, figure)

    def _add(self, file: int, figure: Figure) -> None:
        low, high, unit = comparable(figure.low, figure.high, figure.unit)
        self._measures.add(unit)
        for key in _keys(figure.label):
            self._by_word[unit, key].append((file, figure))
        self._by_value[low, high, unit].append((file, figure))

    def measured(self, unit: str) -> bool:
        """Whether the evidence has any figure in that unit."""
        return unit in self._measures

    def without_unit(self, figure: Figure) -> tuple[int, Figure] | None:
        """A bare number of the evidence that is as large."""
        return next(iter(self._by_value.get((figure.low, figure.high, ""), ())), None)

    def near(self, figure: Figure) -> list[tuple[int, Figure]]:
        """Figures in the same unit that share the beginning of a word with it, or have its value."""
        low, high, unit = comparable(figure.low, figure.high, figure.unit)
        found = [*self._by_value.get((low, high, unit), ())]
        for key in sorted(_keys((*figure.label, *figure.around))):  # the order of a set changes from run to run
            found += self._by_word.get((unit, key), ())
        return list({id(one): (file, one) for file, one in found}.values())


def _keys(phrases: Sequence[str]) -> set[str]:
    return {word[:_KEY_LETTERS] for word in joined(words_in(phrases))}
