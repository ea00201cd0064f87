"""Where sound is cut: which frames are speech, which of them make a piece, and where a stretch ends. Pure.

All positions are frames of 32 ms (512 samples at 16 kHz, what the voice detector takes), counted from the beginning of
the lists given. It refuses to know samples and files.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

FRAME_SAMPLES = 512
Span = tuple[int, int]
"""From a frame to the one behind the last."""

# A voice begins at the first probability and ends below the second. Silero proposes 0.5 and 0.35; noise and music stay
# below 0.16 (espeak speech under them reaches 1.0), and what is missed here is heard by nobody.
VOICE_BEGINS = 0.4
VOICE_ENDS = 0.25
# 0.1 s: a shorter pause is a plosive, not the end of a word.
_SHORTEST_PAUSE = 3
# 0.1 s: the shortest word ("a", "네") is about that long; what is left out is not heard by anyone.
_SHORTEST_VOICE = 3
# 0.22 s around speech, since quiet beginnings and ends of words are found late.
PADDING = 7
# 29.98 s: an engine hears 30 s at a time, and what is longer it cuts itself, without regard to words.
LONGEST_PIECE = 937
_LONGEST_SPEECH = LONGEST_PIECE - 2 * PADDING
# 2 s: over a longer pause two utterances are not helped by being heard together, and paid seconds would be silent.
_JOINED_OVER = 62
# 0.16 s: a gap between two words, not one between two periods of a low voice.
_QUIET_FRAMES = 5


def speech_spans(voice: Sequence[float]) -> list[Span]:
    """Spans in which somebody speaks, ascending, at least a short pause apart.

    Args:
        voice: the probability of speech of each frame, 0-1.
    """
    spans: list[Span] = []
    begun: int | None = None
    for index, probability in enumerate([*voice, 0.0]):
        if begun is None and probability >= VOICE_BEGINS and index < len(voice):
            begun = index
        elif begun is not None and probability < VOICE_ENDS:
            spans.append((begun, index))
            begun = None
    return [span for span in _joined(spans, _SHORTEST_PAUSE) if span[1] - span[0] >= _SHORTEST_VOICE]


def pieces(voice: Sequence[float], levels_db: Sequence[float]) -> list[Span]:
    """What is to be heard in one piece, with some quiet around it: ascending, without overlap, none too long.

    Utterances near one another stay together. What is too long is cut at its longest pause, and without a pause at its
    quietest point; nothing of it is left out.

    Args:
        voice: the probability of speech of each frame.
        levels_db: how loud each frame is, in any unit that rises with loudness.
    """
    groups: list[list[Span]] = []
    for span in speech_spans(voice):
        if groups and span[0] - groups[-1][-1][1] <= _JOINED_OVER:
            groups[-1].append(span)
        else:
            groups.append([span])
    bare = [part for group in groups for part in _divided(group, levels_db)]
    return _padded(bare, len(voice))


def best_pause(voice: Sequence[float], levels_db: Sequence[float]) -> int:
    """The frame at which to cut best: amid the longest pause, or where it is quietest when there is none.

    The first of equals, at least 0, less than the length (which must not be 0).
    """
    spans = speech_spans(voice)
    borders = [0, *(edge for span in spans for edge in span), len(voice)]
    pauses = list(zip(borders[::2], borders[1::2], strict=True))
    start, end = max(pauses, key=lambda pause: pause[1] - pause[0])
    return (start + end) // 2 if start < end else _quietest(levels_db, 0, len(voice))


def _joined(spans: list[Span], over: int) -> list[Span]:
    joined: list[Span] = []
    for start, end in spans:
        if joined and start - joined[-1][1] < over:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def _divided(group: list[Span], levels_db: Sequence[float]) -> list[Span]:
    """A group as spans of bearable length."""
    units = [part for span in group for part in _short_spans(span, levels_db)]
    parts: list[Span] = []
    while units:
        fitting = sum(unit[1] - units[0][0] <= _LONGEST_SPEECH for unit in units)
        taken = fitting if fitting == len(units) else _cut_after(units[: fitting + 1])
        parts.append((units[0][0], units[taken - 1][1]))
        units = units[taken:]
    return parts


def _cut_after(units: list[Span]) -> int:
    """After how many units the longest pause is, of those that leave a piece of some length."""
    long_enough = units[0][0] + _LONGEST_SPEECH // 3
    gaps = [(after[0] - before[1], number) for number, (before, after) in enumerate(pairwise(units), 1)]
    return max([gap for gap in gaps if units[gap[1] - 1][1] >= long_enough] or gaps[-1:])[1]


def _short_spans(span: Span, levels_db: Sequence[float]) -> list[Span]:
    start, end = span
    parts = []
    while end - start > _LONGEST_SPEECH:
        cut = _quietest(levels_db, start + _LONGEST_SPEECH // 2, start + _LONGEST_SPEECH)
        parts.append((start, cut))
        start = cut
    return [*parts, (start, end)]


def _quietest(levels_db: Sequence[float], start: int, end: int) -> int:
    """The middle of the quietest moment between two frames; the first of equals."""
    width = min(_QUIET_FRAMES, end - start)
    first = min(range(start, end - width + 1), key=lambda index: sum(levels_db[index : index + width]))
    return first + width // 2


def _padded(spans: list[Span], length: int) -> list[Span]:
    """Widened into the quiet around, at most to the middle of the pause to the neighbour."""
    middles = [0, *((before[1] + after[0]) // 2 for before, after in pairwise(spans)), length]
    return [
        (max(start - PADDING, middles[number]), min(end + PADDING, middles[number + 1]))
        for number, (start, end) in enumerate(spans)
    ]
