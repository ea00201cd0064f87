"""Which words of a speech engine are believed: what it made up, or was not sure of, becomes a span with a reason.

Speech engines write words over silence, noise and music too. Pure; knows no engine. Nothing is dropped without a word:
a span whose words are not believed is told, since something may well have been said there.

The limits were measured with Whisper base (tests/bench/sound/guards.py): right words had a mean log probability of
-0.94 and better; made-up ones over silence, noise, tones and speech played backwards had -1.06 and worse, or a
compression ratio of 12 and more, or (-0.24, over faint noise) a no-speech probability of 0.95. Lists of well-known
invented phrases ("thanks for watching") are not needed then, and such words are said in advertisements.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sam2_mcp_worker.checks.spoken import syllables

# Whisper's own limit below which it holds its words for wrong.
LEAST_MEAN_LOG_PROB = -1.0
# Of the window before any word: a single "Yes." had 0.62, speech below noise 0.77.
MOST_NO_SPEECH_PROB = 0.9
# Of the text's UTF-8 by zlib, Whisper's own limit: ordinary sentences have 0.3 to 1.3, loops 12 and more.
MOST_COMPRESSION_RATIO = 2.4
# A jingle says its slogan three times; an engine in a loop says it to the end of the window.
REPEATS_BELIEVED = 3
# Disclaimers in advertisements are read at 10 to 12 syllables a second, the fastest speakers reach 15. Times of
# segments are exact to about half a second.
MOST_SYLLABLES_PER_S = 18.0
TIMES_EXACT_TO_S = 0.5
# The same in any script, for those whose syllables are not counted: four characters a syllable are many.
MOST_CHARACTERS_PER_S = 4 * MOST_SYLLABLES_PER_S
# Pieces are cut at silence, so that a longer stretch without words is speech that the engine passed over.
LONGEST_PAUSE_S = 5.0

NO_WORDS = "the engine wrote no words for this part"


@dataclass(frozen=True, slots=True)
class Said:
    """A segment as an engine tells it, in seconds since the beginning of the piece; None for what it does not tell."""

    start_s: float
    end_s: float
    text: str
    no_speech_prob: float | None = None
    mean_log_prob: float | None = None


@dataclass(frozen=True, slots=True)
class Lost:
    """A span of the piece of whose words nothing is known, and why."""

    start_s: float
    end_s: float
    reason: str


def judge(said: Iterable[Said], duration_s: float) -> tuple[list[Said], list[Lost]]:
    """The segments that are believed, and the spans of which nothing is known; both rise, and they do not overlap.

    Times inside the piece stay as they are; an end behind it is set to its end.
    """
    inside = _inside(said, duration_s)
    doubts = [doubt(one) for one in inside]
    for index in _repeats(inside):
        doubts[index] = doubts[index] or "the engine wrote the same words again and again"
    believed = [one for one, reason in zip(inside, doubts, strict=True) if not reason]
    lost = [_span(one, duration_s, reason) for one, reason in zip(inside, doubts, strict=True) if reason]
    lost = _less(_joined(lost), believed)
    lost += _less(_without_words(believed, duration_s), lost)
    return believed, sorted(lost, key=lambda span: span.start_s)


def doubt(one: Said) -> str:
    """Why the words of a segment are not believed; empty when they are."""
    if one.no_speech_prob is not None and one.no_speech_prob > MOST_NO_SPEECH_PROB:
        return f"the engine itself hears no speech there (probability {one.no_speech_prob:.2f})"
    data = one.text.encode("utf-8", "replace")
    ratio = len(data) / len(zlib.compress(data))
    if ratio > MOST_COMPRESSION_RATIO:
        return f"the engine wrote the same words again and again (compression ratio {ratio:.1f})"
    if one.mean_log_prob is not None and one.mean_log_prob < LEAST_MEAN_LOG_PROB:
        return f"the engine was not sure of its words (mean log probability {one.mean_log_prob:.2f})"
    length_s = one.end_s - one.start_s + TIMES_EXACT_TO_S
    if syllables(one.text) > MOST_SYLLABLES_PER_S * length_s or len(one.text) > MOST_CHARACTERS_PER_S * length_s:
        return "the engine wrote more words than can be said in that time"
    return ""


def _inside(said: Iterable[Said], duration_s: float) -> list[Said]:
    """In order; without those that hold no words, and those behind the end, where there is no sound."""
    kept = [one for one in said if one.text.strip() and one.start_s < duration_s]
    kept = [replace(one, end_s=max(one.start_s, min(one.end_s, duration_s)), text=one.text.strip()) for one in kept]
    return sorted(kept, key=lambda one: (one.start_s, one.end_s))


def _span(one: Said, duration_s: float, reason: str) -> Lost:
    """The span of words that are not believed; a shorter one than times are exact to may lie on either side."""
    around_s = TIMES_EXACT_TO_S if one.end_s - one.start_s < TIMES_EXACT_TO_S else 0.0
    return Lost(max(0.0, one.start_s - around_s), min(duration_s, one.end_s + around_s), reason)


def _repeats(said: Sequence[Said]) -> list[int]:
    """Of more equal neighbours than are believed all but the first."""
    found: list[int] = []
    start = 0
    texts = [_words(one.text) for one in said]
    for index in range(1, len(said) + 1):
        if index == len(said) or texts[index] != texts[start]:
            if index - start > REPEATS_BELIEVED:
                found += range(start + 1, index)
            start = index
    return found


def _words(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())


def _without_words(believed: Sequence[Said], duration_s: float) -> list[Lost]:
    """Stretches without words that are believed: all of the piece, or more than a pause."""
    if not believed:
        return [Lost(0.0, duration_s, NO_WORDS)]
    found, until_s = [], 0.0
    for start_s, end_s in [*((one.start_s, one.end_s) for one in believed), (duration_s, duration_s)]:
        if start_s - until_s > LONGEST_PAUSE_S:
            found.append(Lost(until_s, start_s, NO_WORDS))
        until_s = max(until_s, end_s)
    return found


def _less(spans: Iterable[Lost], taken: Sequence[Said] | Sequence[Lost]) -> list[Lost]:
    """What of the spans is not covered by others, which rise."""
    left = []
    for span in spans:
        at_s = span.start_s
        for one in taken:
            if at_s < one.start_s < span.end_s:
                left.append(replace(span, start_s=at_s, end_s=one.start_s))
            if one.start_s < span.end_s:
                at_s = max(at_s, one.end_s)
        if at_s < span.end_s:
            left.append(replace(span, start_s=at_s))
    return left


def _joined(lost: Iterable[Lost]) -> list[Lost]:
    """In order, without overlaps; neighbours with one reason are one."""
    joined: list[Lost] = []
    for span in sorted(lost, key=lambda span: (span.start_s, span.end_s)):
        last = joined[-1] if joined else None
        if last is not None and span.start_s <= last.end_s and span.reason == last.reason:
            joined[-1] = replace(last, end_s=max(last.end_s, span.end_s))
        elif last is None or span.start_s >= last.end_s:
            joined.append(span)
        elif span.end_s > last.end_s:
            joined.append(replace(span, start_s=last.end_s))
    return joined
