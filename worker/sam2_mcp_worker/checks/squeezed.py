"""Lines of a page as one text without spaces, and back: where in which line something stands.

Readers keep and lose spaces as they like, so words are looked for without them. Owns what counts as the same character
(NFKC, without case and invisible characters) and the way back. Refuses to know what is looked for.
"""

from __future__ import annotations

import bisect
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

BREAK = "\n"
"""Stands between lines; it is in no line."""


@dataclass(frozen=True, slots=True)
class Squeezed:
    """`text` is the lines without spaces, BREAK between them; `starts` is where each line begins in it.

    `words` are the places where a word begins, behind a space or a break.
    """

    text: str
    starts: tuple[int, ...]
    words: frozenset[int]

    def line_of(self, position: int) -> int:
        """The index of the line that holds the character at this position."""
        return bisect.bisect_right(self.starts, position) - 1

    def cuts(self, start: int, end: int) -> bool:
        """Whether a place begins or ends within a number or a word of Latin letters."""
        return self._within(start) or self._within(end)

    def _within(self, at: int) -> bool:
        if not 0 < at < len(self.text) or at in self.words:
            return False
        before, behind = self.text[at - 1], self.text[at]
        return (before.isdigit() and behind.isdigit()) or (_latin(before) and _latin(behind))


def squeezed(lines: Sequence[str]) -> Squeezed:
    """The lines as one text to look in."""
    parts = [[squeeze(word) for word in composed(line).split()] for line in lines]
    words: set[int] = set()
    starts: list[int] = []
    at = 0
    for part in parts:
        starts.append(at)
        for word in part:
            words.add(at)
            at += len(word)
        at += len(BREAK)
    return Squeezed(BREAK.join("".join(part) for part in parts), tuple(starts), frozenset(words))


def squeeze(text: str) -> str:
    """A line or a word as it is compared: composed, without case, spaces and what is drawn as nothing."""
    plain = composed(text).casefold()
    return "".join(char for char in plain if not char.isspace() and unicodedata.category(char) not in ("Cf", "Cc"))


def composed(text: str) -> str:
    """A line with its letters composed and of usual width; spaces stay."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFC", text))


def _latin(character: str) -> bool:
    return "a" <= character <= "z"
