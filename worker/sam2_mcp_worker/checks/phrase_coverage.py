"""The share of a phrase's runs of three syllables that stand in a text: the field's score, here the second opinion."""

from __future__ import annotations

import functools
import unicodedata

from sam2_mcp_worker.checks.phrase_letters import letters

# Runs of syllables, as the field counts them.
_GRAM_SYLLABLES = 3


def coverage(phrase: str, text: str) -> float:
    """The share of the phrase's runs of three syllables that stand in the text, 0-1; of a shorter one itself."""
    return gram_share(phrase, grams_of(text))


def gram_share(phrase: str, grams: frozenset[str]) -> float:
    """The same, of runs that were taken from a text by `grams_of`."""
    wanted = _grams_of_phrase(phrase)
    found = sum(gram in grams or (len(gram) < _GRAM_SYLLABLES and any(gram in one for one in grams)) for gram in wanted)
    return found / len(wanted) if wanted else 0.0


def grams_of(text: str) -> frozenset[str]:
    """The runs of three syllables of a text, without its spaces."""
    plain = unicodedata.normalize("NFC", letters(text))
    last = max(1, len(plain) - _GRAM_SYLLABLES + 1)
    return frozenset(plain[start : start + _GRAM_SYLLABLES] for start in range(last) if plain)


_grams_of_phrase = functools.lru_cache(maxsize=512)(grams_of)  # the phrases of a few rule packs
