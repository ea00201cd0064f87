"""The wire of `audio/transcriptions`: what is asked, and what an answer says. Knows no HTTP client.

The answer comes from a server that may be anything, so that every field is looked at before it is believed.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, Literal

from sam2_mcp_worker.checks.hearing import Said
from sam2_mcp_worker.engines.speech_languages import language_code

# OpenAI's limit for a file. A piece of 30 s has 1 MB.
MAX_FILE_BYTES = 25 * 1024 * 1024
# A piece of 30 s comes back as 10 KB with 10 segments: whoever sends so much more is no speech endpoint.
MAX_ANSWER_BYTES = 512 * 1024
MAX_SEGMENTS = 1000
# Engines fill a shorter piece up to that with silence and write words over it. Times behind that are in another unit.
WINDOW_S = 30.0


@dataclass(frozen=True, slots=True)
class Transcript:
    """What an answer says. `times` is `piece` where it told none, and then one segment spans the piece."""

    said: tuple[Said, ...]
    language: str | None
    times: Literal["segments", "piece"]


def form_fields(model: str, language: str | None, *, plain: bool) -> dict[str, str]:
    """The form beside the file; `plain` asks for text alone, which every endpoint and model knows."""
    fields = {"model": model, "temperature": "0", "response_format": "json" if plain else "verbose_json"}
    if not plain:
        fields["timestamp_granularities[]"] = "segment"
    if language is not None:
        fields["language"] = language
    return fields


def read_transcript(body: bytes, duration_s: float) -> Transcript | None:
    """The answer to a piece of that length; None for what is no transcription."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    text, segments = data.get("text"), data.get("segments")
    language = language_code(data.get("language"))
    if isinstance(segments, list) and len(segments) > MAX_SEGMENTS:
        return None
    if isinstance(segments, list) and (segments or not text):
        said = [one for one in map(_said, segments) if one]
        if len(said) == len(segments):
            if all(one.start_s <= max(duration_s, WINDOW_S) for one in said):
                return Transcript(tuple(said), language, "segments")
            text = text if isinstance(text, str) else " ".join(one.text for one in said)
    if not isinstance(text, str):
        return None
    whole = (Said(0.0, duration_s, text),) if text.strip() else ()
    return Transcript(whole, language, "piece")


def _said(segment: Any) -> Said | None:
    """None where times or text are missing: then none of the times can be relied on."""
    if not isinstance(segment, dict) or not isinstance(segment.get("text"), str):
        return None
    start_s, end_s = _number(segment.get("start")), _number(segment.get("end"))
    if start_s is None or end_s is None or not 0 <= start_s <= end_s:
        return None
    return Said(
        start_s, end_s, segment["text"], _number(segment.get("no_speech_prob")), _number(segment.get("avg_logprob"))
    )


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
