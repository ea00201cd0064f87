"""Can a page's text layer be believed? Pure functions: which lines to look at, and what the look says.

A PDF may map glyphs to any Unicode it likes (reference/vision.md 3: a file with 139 Hangul syllables that nobody
can see). So a few lines of every page are read from the picture too and compared with what the layer claims.
"""

from __future__ import annotations

import difflib
import enum
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

# The lie sits in a font's ToUnicode table, so every font is looked at. Four fonts cover nearly every page.
MAX_FONTS = 4
# One line may be hard to read (white on a photograph); a font is only disbelieved when both of its lines disagree.
LINES_PER_FONT = 2
# Shorter lines match by chance; longer ones only cost time (about 1 ms a character).
MIN_SAMPLE_CHARS = 4
PREFERRED_SAMPLE_CHARS = 30
# Clean print agrees to 0.95 and more, bad print to 0.6; a wrong mapping agrees by chance, below 0.2.
AGREES_ABOVE = 0.4
# Readings below this confidence say that the reader cannot read this print, not that the layer lies: right ones have
# 0.85 and more, Hangul seen in formulas up to 0.72 (117 pages of GeoTopo, 2026-11-30).
CONFIDENT_ABOVE = 0.75

# Whatever its confidence, a Korean reader gets some syllables of eight right where Hangul is printed at all.
NO_AGREEMENT_BELOW = 0.1
MIN_HANGUL_CHARS = 8
HANGUL = re.compile(r"[가-힣]")

# What each language's traineddata can read at all; a line in another script cannot be judged.
READABLE_BY_LANGUAGE = {
    "kor": r"가-힣ㄱ-ㅎㅏ-ㅣA-Za-z0-9",
    "eng": r"A-Za-z0-9",
}
DEFAULT_READABLE = r"\w"


class Verdict(enum.Enum):
    """What the samples say about a text layer."""

    CONFIRMED = "confirmed"
    CONTRADICTED = "contradicted"
    UNVERIFIED = "unverified"


class LayerLine(Protocol):
    """A line of a text layer, as far as sampling needs it."""

    @property
    def text(self) -> str: ...
    @property
    def font(self) -> str: ...


class Reading(Protocol):
    """What the reader saw at a line's place."""

    @property
    def text(self) -> str: ...
    @property
    def confidence(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict with the lowest agreement (0-1) that it rests on; None when nothing could be compared."""

    verdict: Verdict
    agreement: float | None


class ReadableScripts:
    """Which characters the reader's languages cover."""

    def __init__(self, languages: Sequence[str]) -> None:
        classes = "".join(READABLE_BY_LANGUAGE.get(language, DEFAULT_READABLE) for language in languages)
        self._readable = re.compile(f"[{classes}]")

    def core(self, text: str) -> str:
        """The readable letters and digits of a text, without spaces and punctuation."""
        return "".join(self._readable.findall(text))

    def covers(self, text: str) -> bool:
        """Whether nearly all letters and digits of a text can be read: only then is a comparison fair."""
        letters = sum(char.isalnum() for char in text)
        return letters >= MIN_SAMPLE_CHARS and len(self.core(text)) >= 0.9 * letters


def choose_samples(lines: Sequence[LayerLine], scripts: ReadableScripts) -> list[list[int]]:
    """Indices of the lines to look at: for each of the most used fonts, two lines of a good length."""
    by_font: dict[str, list[int]] = defaultdict(list)
    for index, line in enumerate(lines):
        if scripts.covers(line.text):
            by_font[line.font].append(index)

    def used(indices: list[int]) -> int:
        return sum(len(lines[index].text) for index in indices)

    def distance(index: int) -> int:
        return abs(len(lines[index].text) - PREFERRED_SAMPLE_CHARS)

    fonts = sorted(by_font.values(), key=used, reverse=True)[:MAX_FONTS]
    return [sorted(indices, key=distance)[:LINES_PER_FONT] for indices in fonts]


def judge(fonts: Sequence[Sequence[tuple[str, Reading]]], scripts: ReadableScripts) -> Judgement:
    """Compare what the layer claims with what was read at the same places, font by font.

    A font whose lines were all read with confidence as something else, or as bare paper, contradicts the layer: what
    it says elsewhere is then no evidence either.
    """
    best_by_font = [
        max(comparable)
        for pairs in fonts
        if (comparable := [a for text, reading in pairs if (a := _comparable(text, reading, scripts)) is not None])
    ]
    if not best_by_font:
        return Judgement(Verdict.UNVERIFIED, None)
    lowest = min(best_by_font)
    return Judgement(Verdict.CONFIRMED if lowest >= AGREES_ABOVE else Verdict.CONTRADICTED, round(lowest, 2))


def says_the_same(seen: str, known: str, scripts: ReadableScripts) -> bool:
    """Whether a line that was read is (a part of) a line that is known, allowing for misread letters."""
    seen_core, known_core = scripts.core(seen).casefold(), scripts.core(known).casefold()
    if not seen_core:
        return True  # signs only: nothing that could disagree
    blocks = difflib.SequenceMatcher(None, known_core, seen_core, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks) >= AGREES_ABOVE * len(seen_core)


def _comparable(claimed: str, reading: Reading, scripts: ReadableScripts) -> float | None:
    """The agreement 0-1, or None when the reader could not make out what stands there."""
    expected, seen = scripts.core(claimed), scripts.core(reading.text)
    agreement = difflib.SequenceMatcher(None, expected.casefold(), seen.casefold(), autojunk=False).ratio()
    no_hangul_there = agreement < NO_AGREEMENT_BELOW and _is_mostly_hangul(expected)
    if agreement >= AGREES_ABOVE or reading.confidence >= CONFIDENT_ABOVE or no_hangul_there:
        return agreement
    return None


def _is_mostly_hangul(text: str) -> bool:
    return len(text) >= MIN_HANGUL_CHARS and len(HANGUL.findall(text)) >= 0.8 * len(text)
