"""Leaflets of a wording that nobody tuned on: the sentences of the demo leaflet and of the OCR bench.

Half of them, by the seed, are printed, and some of those are asked for altered in their first number or their negation;
the others are asked for as absent. Owns the choice; the layout is that of leaflets.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from random import Random

from rapidfuzz import fuzz
from tests.bench.checks.leaflets import Leaflet, laid_out
from tests.bench.ocr import leaflet_text

from sam2_mcp_worker.demo import leaflet_copy

PRINTED = 40
LEAST_SYLLABLES = 14
MOST_CHARACTERS = 120
# More alike ones say the same in other words: which is true of them is for nobody to say.
TOO_ALIKE = 75.0
_TURNED = (
    ("수 있습니다", "수 없습니다"),
    ("수 없습니다", "수 있습니다"),
    ("하지 않습니다", "합니다"),
    ("되지 않습니다", "됩니다"),
    ("지급합니다", "지급하지 않습니다"),
    ("보장합니다", "보장하지 않습니다"),
    ("제외합니다", "제외하지 않습니다"),
    ("해지됩니다", "해지되지 않습니다"),
)


def held_out_leaflet(seed: int) -> Leaflet:
    """A leaflet of the held-out wording."""
    chance = Random(f"held-out-{seed}")
    texts = list(sentences())
    chance.shuffle(texts)
    printed, others = texts[:PRINTED], texts[PRINTED:]
    absent = [text for text in others if max(fuzz.partial_ratio(text, one) for one in printed) < TOO_ALIKE]
    asked = [(text, altered(chance, text)) for text in printed]
    turned = [(text, other) for text, other in asked if other != text]
    broken = next(text for text in printed if text.endswith("."))
    pages = laid_out(chance, [text for text in printed if text != broken], broken)
    return Leaflet(seed, pages, tuple(text for text, _ in turned), tuple(other for _, other in turned), tuple(absent))


@cache
def sentences() -> Sequence[str]:
    """Single sentences, none of which resembles another one too much."""
    kept: list[str] = []
    for text in _all():
        fits = len(text) <= MOST_CHARACTERS and sum("가" <= char <= "힣" for char in text) >= LEAST_SYLLABLES
        if fits and all(fuzz.partial_ratio(text, one) < TOO_ALIKE for one in kept):
            kept.append(text)
    return tuple(kept)


def altered(chance: Random, text: str) -> str:
    """The text with its first number doubled or its negation turned; the same where it has neither."""
    number = re.search(r"(?<![-\d.])\d[\d,]*(?![-\d]|\.\d)", text)
    turned = next((text.replace(one, other, 1) for one, other in _TURNED if one in text), text)
    if number is None or (turned != text and chance.random() < 0.5):
        return turned
    value = int(number[0].replace(",", ""))
    return f"{text[: number.start()]}{value * 2:,}{text[number.end() :]}"


def _all() -> Iterator[str]:
    for value in (*vars(leaflet_copy).values(), leaflet_text.BODY, leaflet_text.FINE_PRINT):
        for text in _strings(value):
            yield from (part.strip() for part in re.split(r"(?<=다\.)\s+", text.replace("\n", " ")))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _strings(part)
