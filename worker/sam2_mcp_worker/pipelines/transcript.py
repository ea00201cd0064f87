"""What was said in a recording and what became of each second of it: what hearing makes, and what results and files
are made of. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

Became = Literal["heard", "silent", "unheard", "failed", "unreached"]
"""`heard`: an engine listened, all words are among the segments. `silent`: there is no voice. `unheard`: there is a
voice, but its words were thrown away or nobody could listen. `failed`: decoding or the engine failed. `unreached`: not
come to yet. Only `heard` and `silent` say anything about what was not said.
"""

# More spans than these are a pattern; their seconds are told.
MAX_LISTED_SPANS = 20
MAX_REASON_CHARS = 160


@dataclass(frozen=True, slots=True)
class Said:
    """One segment of speech, in seconds of the file's clock; `confidence` 0-1 where the engine tells.

    `syllables_per_s` is how fast it was spoken, `loudness_dbfs` the mean level of its sound; None where not measured.
    """

    start_s: float
    end_s: float
    text: str
    confidence: float | None = None
    syllables_per_s: float | None = None
    loudness_dbfs: float | None = None


@dataclass(frozen=True, slots=True)
class SoundSpan:
    """A stretch of the recording and what became of it; `reason` says why where it was not `heard` or `silent`."""

    start_s: float
    end_s: float
    became: Became
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Transcript:
    """All that is known of the asked range by now.

    `said` rises by start. `spans` divide the range `start_s`..`end_s` without gap or overlap. `low_quality` says that
    words may be wrong throughout: good for finding places, not for verdicts about words.
    """

    file_name: str
    start_s: float
    end_s: float
    engine: str
    low_quality: bool
    language: str | None
    said: tuple[Said, ...]
    spans: tuple[SoundSpan, ...]

    def of(self, became: Became) -> tuple[SoundSpan, ...]:
        """The spans that became this."""
        return tuple(span for span in self.spans if span.became == became)


def listed(spans: Sequence[SoundSpan]) -> tuple[SoundSpan, ...]:
    """The spans that a result names one by one, with reasons of a clause; the files hold all of them whole."""
    return tuple(replace(span, reason=_clause(span.reason)) for span in spans[:MAX_LISTED_SPANS])


def _clause(reason: str) -> str:
    return reason if len(reason) <= MAX_REASON_CHARS else reason[: MAX_REASON_CHARS - 1] + "…"


def total_s(spans: Iterable[SoundSpan]) -> float:
    """Their length together, in milliseconds exactly as their rounded borders tell it."""
    return round(sum(round(span.end_s, 3) - round(span.start_s, 3) for span in spans), 3)
