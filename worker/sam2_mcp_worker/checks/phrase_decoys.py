"""From which likeness a phrase counts as present, told by the wordings that resemble it without being it.

Phrases of one field share their endings and half of their words. Owns thresholds and rivals of each phrase; where it
stands is told by phrase_judge.py.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from sam2_mcp_worker.checks.phrase_places import letter_likeness
from sam2_mcp_worker.checks.phrases import PRESENT_SHORT, REVIEW_MARGIN, SHORT_LETTERS, Phrase, phrase_of

# A phrase must be more alike than its best decoy by this much: slips make decoys more alike by chance (30 % of the
# syllables by 0.03), and less alike in most cases.
DECOY_MARGIN = 0.05
# From this likeness on, in either direction, another wording is no decoy: it is the same one with another number, or
# holds the phrase. Likeness cannot tell those apart, tokens and syllables do.
VARIANT = 0.9
# Less alike ones are no nearer than any text.
RIVAL = 0.5
# Below SHORT_LETTERS one letter that differs is 0.8 and more.
_SHORT_ABSENT = 0.8


@dataclass(frozen=True, slots=True)
class JudgedPhrase:
    """A phrase to judge.

    In text that may be misread it counts as present from a likeness of `present_at` and as absent below `absent_below`.
    `rivals` are other wordings that resemble it: a place that fits one of them clearly better is theirs.
    """

    phrase: Phrase
    present_at: float
    absent_below: float
    rivals: tuple[Phrase, ...] = ()


def judged_phrases(phrases: Sequence[str], others: Sequence[str] = ()) -> tuple[JudgedPhrase, ...]:
    """The phrases made ready, in their order; they and `others`, the rest of a rule pack, are decoys of one another."""
    return tuple(_judged_phrases(tuple(phrases), tuple(others)))


@functools.lru_cache(maxsize=16)  # a rule pack is the same in every call
def _judged_phrases(phrases: tuple[str, ...], others: tuple[str, ...]) -> tuple[JudgedPhrase, ...]:
    ready = {text: phrase_of(text) for text in (*phrases, *others)}
    decoys = list({phrase.letters: phrase for phrase in ready.values()}.values())
    return tuple(_judged(ready[text], decoys) for text in phrases)


def _judged(phrase: Phrase, decoys: Sequence[Phrase]) -> JudgedPhrase:
    if len(phrase.letters) < SHORT_LETTERS:
        return JudgedPhrase(phrase, 1.0, _SHORT_ABSENT)
    like = [
        (letter_likeness(phrase.letters, decoy.letters), decoy) for decoy in decoys if decoy.letters != phrase.letters
    ]
    like = [(share, decoy) for share, decoy in like if share < VARIANT]
    most = max((share for share, _ in like), default=0.0)
    present_at = max(phrase.present_at, min(PRESENT_SHORT, most + DECOY_MARGIN))
    rivals = [
        decoy for share, decoy in like if share >= RIVAL and letter_likeness(decoy.letters, phrase.letters) < VARIANT
    ]
    return JudgedPhrase(phrase, present_at, phrase.present_at - REVIEW_MARGIN, tuple(rivals))
