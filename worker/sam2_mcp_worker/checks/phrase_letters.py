"""Lines as the letters that phrases are compared by, and the way back from a letter to its character and line.

Owns what is compared and what counts as one and the same letter. Knows no phrases.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import re
import unicodedata
from collections.abc import Sequence

from sam2_mcp_worker.checks.phrase_tokens import Token, tokens_of

# A line of print is shorter. A text may be one line of megabytes: such ones are not kept.
_KEPT_CHARS = 500


# "예금보험공사¹⁾" is no other number.
_RAISED = re.compile("[¹²³⁰⁴-⁹⁽⁾]")


def letters(text: str) -> str:
    """What is compared: NFKC, without case, white space and invisible characters; Hangul syllables taken apart."""
    return _kept_letters(text) if len(text) <= _KEPT_CHARS else _letters(text)


def _letters(text: str) -> str:
    composed = composed_of(text).casefold()
    if not composed.isprintable():  # of what is not, most is invisible; the rest is told apart slowly
        composed = "".join(char for char in composed if unicodedata.category(char) not in ("Cf", "Cc"))
    return unicodedata.normalize("NFD", "".join(composed.split()))


# Lines and single characters of one long video; an entry is some 300 bytes.
_kept_letters = functools.lru_cache(maxsize=32768)(_letters)


def composed_of(text: str) -> str:
    """The text in NFKC, also where it came with its syllables taken apart; without raised marks of footnotes.

    What is drawn as nothing is left out as well: it may stand within a number.
    """
    if not text.isprintable():
        text = "".join(char for char in text if unicodedata.category(char) != "Cf")
    return unicodedata.normalize("NFKC", _RAISED.sub("", unicodedata.normalize("NFC", text)))


class LetterLines:
    """Lines as one text and as letters. Where a letter stands is only worked out for places that were found."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._texts = [composed_of(line) for line in lines]
        parts = [letters(line) for line in lines]
        self._letter_starts = list(itertools.accumulate(map(len, parts), initial=0))
        self.letters = "".join(parts)
        self._long_lines: dict[int, tuple[int, ...]] = {}

    @functools.cached_property
    def text(self) -> str:
        """The lines in NFKC, each on its own line."""
        return "\n".join(self._texts)

    @functools.cached_property
    def tokens(self) -> list[Token]:
        """The tokens of `text`."""
        return tokens_of(self.text)

    @functools.cached_property
    def _text_starts(self) -> list[int]:
        return list(itertools.accumulate((len(text) + 1 for text in self._texts), initial=0))

    def text_of(self, lines: Sequence[int]) -> str:
        """The text of some of the lines, in NFKC, one right behind the other."""
        return "".join(self._texts[line] for line in lines)

    def line_of(self, letter: int) -> int:
        """The index of the line that holds a letter."""
        return bisect.bisect_right(self._letter_starts, letter) - 1

    def start_of(self, line: int) -> int:
        """The first letter of a line; of the one behind the last line where the letters end."""
        return self._letter_starts[line]

    def lines_between(self, start: int, end: int) -> tuple[int, ...]:
        """The indices of the lines that hold the letters from `start` to before `end`; not of those without any."""
        found = range(self.line_of(start), self.line_of(end - 1) + 1)
        return tuple(line for line in found if self._letter_starts[line] < self._letter_starts[line + 1])

    def character_of(self, letter: int) -> int:
        """The index in `text` of the character that a letter comes from."""
        line = self.line_of(letter)
        return self._text_starts[line] + self._characters_of(line)[letter - self._letter_starts[line]]

    def _characters_of(self, line: int) -> tuple[int, ...]:
        text = self._texts[line]
        if len(text) <= _KEPT_CHARS:
            return _kept_characters_of(text)
        if line not in self._long_lines:
            self._long_lines[line] = _characters_of(text)
        return self._long_lines[line]

    def tokens_between(self, first: int, last: int) -> list[Token]:
        """The tokens that lie between two letters, or reach over one of them."""
        start, end = self.character_of(first), self.character_of(last)
        return [token for token in self.tokens if token.end > start and token.start <= end]


def _characters_of(text: str) -> tuple[int, ...]:
    """For each letter of a line in NFKC, the index of the character it comes from."""
    return tuple(index for index, char in enumerate(text) for _ in letters(char))


_kept_characters_of = functools.lru_cache(maxsize=2048)(_characters_of)  # lines around the phrases of one document
