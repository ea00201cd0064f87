"""The files of a transcript: plain text, SubRip, WebVTT and JSON, each complete in itself.

Pure. What was not listened to stands in every file at its place, as a line of its own: a file without it would read as
silence. Words from outside cannot break out of their cue.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from sam2_mcp_worker.pipelines.report_html import UNPRINTABLE
from sam2_mcp_worker.pipelines.transcript import Became, SoundSpan, Transcript, total_s

TRANSCRIPT_TYPES = {"txt": "text/plain", "srt": "application/x-subrip", "vtt": "text/vtt", "json": "application/json"}
"""MIME type of each file by its suffix."""

# An empty cue would end its block early.
NO_WORDS = "…"
LOW_QUALITY = "Words may be wrong throughout: good for finding places, not for verdicts about words."
WORDS: dict[Became, tuple[str, str]] = {
    "heard": ("listened to", "들음"),
    "silent": ("no speech", "말소리 없음"),
    "unheard": ("speech, but not understood", "알아듣지 못함"),
    "failed": ("could not be listened to", "듣지 못함"),
    "unreached": ("not listened to yet", "아직 듣지 않음"),
}
GAPS: tuple[Became, ...] = ("unheard", "failed", "unreached")
"""What nothing may be concluded about."""


@dataclass(frozen=True, slots=True)
class _Cue:
    """A text from `start_ms` to `end_ms`, in one line. Sound may begin before the first frame, which is 0."""

    start_ms: int
    end_ms: int
    text: str


def transcript_files(transcript: Transcript) -> dict[str, bytes]:
    """All files as UTF-8, by the suffixes of `TRANSCRIPT_TYPES`."""
    cues = list(_cues(transcript))
    texts = {
        "txt": _plain(transcript, cues),
        "srt": _subrip(transcript, cues),
        "vtt": _webvtt(transcript, cues),
        "json": _json(transcript),
    }
    return {suffix: text.encode("utf-8", "replace") for suffix, text in texts.items()}


def _cues(transcript: Transcript) -> Iterator[_Cue]:
    """What was said and what was not heard, by their beginnings."""
    found = [_cue(said.start_s, said.end_s, said.text) for said in transcript.said]
    found += [_cue(span.start_s, span.end_s, _gap_words(span)) for span in _gaps(transcript)]
    yield from sorted(found, key=lambda cue: (cue.start_ms, cue.end_ms))


def _gaps(transcript: Transcript) -> list[SoundSpan]:
    """Neighbouring spans of the same kind and reason are one."""
    joined: list[SoundSpan] = []
    for span in transcript.spans:
        if span.became not in GAPS:
            continue
        last = joined[-1] if joined else None
        if last and (last.became, last.reason, last.end_s) == (span.became, span.reason, span.start_s):
            joined[-1] = SoundSpan(last.start_s, span.end_s, span.became, span.reason)
        else:
            joined.append(span)
    return joined


def _cue(start_s: float, end_s: float, text: str) -> _Cue:
    return _Cue(round(start_s * 1000), round(end_s * 1000), _one_line(text) or NO_WORDS)


def _shown(cue: _Cue, point: str) -> str:
    """The times of a subtitle: players know none below 0, and drop a cue without length."""
    start_ms = max(0, cue.start_ms)
    return f"{_clock(start_ms, point)} --> {_clock(max(start_ms + 1, cue.end_ms), point)}"


def _gap_words(span: SoundSpan) -> str:
    english, korean = WORDS[span.became]
    reason = f": {span.reason}" if span.reason else ""
    return f"[{english} {korean}{reason}]"


def _one_line(text: str) -> str:
    """An empty line would end a cue, and an arrow begin its times."""
    return " ".join(UNPRINTABLE.sub("\ufffd", text.replace("\t", " ")).split()).replace("-->", "→")


def _facts(transcript: Transcript) -> list[str]:
    """What the transcript is of, who listened, and how much of it."""
    begins, ends = (_clock(round(time_s * 1000), ".") for time_s in (transcript.start_s, transcript.end_s))
    facts = [
        f"Transcript of {_one_line(transcript.file_name)}, {begins} to {ends}",
        f"Listened to by {_one_line(transcript.engine) or 'nobody'}"
        + (f", language {_one_line(transcript.language)}" if transcript.language else ""),
        "; ".join(f"{WORDS[kind][0]} {WORDS[kind][1]}: {length_s:g} s" for kind, length_s in _totals(transcript)),
    ]
    facts += [LOW_QUALITY] if transcript.low_quality and transcript.said else []
    if not transcript.said:
        facts.append(
            "No words are known; whether there are any cannot be told." if _gaps(transcript) else "There is no speech."
        )
    return [fact for fact in facts if fact]


def _totals(transcript: Transcript) -> list[tuple[Became, float]]:
    return [(kind, total_s(spans)) for kind in WORDS if (spans := transcript.of(kind))]


def _plain(transcript: Transcript, cues: list[_Cue]) -> str:
    lines = [f"[{_clock(cue.start_ms, '.')} - {_clock(cue.end_ms, '.')}] {cue.text}\n" for cue in cues]
    return "\n".join(_facts(transcript)) + "\n\n" + "".join(lines)


def _subrip(transcript: Transcript, cues: list[_Cue]) -> str:
    return "".join(f"{number}\n{_shown(cue, ',')}\n{cue.text}\n\n" for number, cue in enumerate(cues, start=1))


def _webvtt(transcript: Transcript, cues: list[_Cue]) -> str:
    notes = "NOTE\n" + "\n".join(_escaped(fact) for fact in _facts(transcript))
    blocks = [f"{_shown(cue, '.')}\n{_escaped(cue.text)}" for cue in cues]
    return "\n\n".join(["WEBVTT", notes, *blocks]) + "\n"


def _escaped(text: str) -> str:
    """Words that look like the marks of WebVTT are words."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _json(transcript: Transcript) -> str:
    whole = {
        **asdict(transcript),
        "said": [_rounded(asdict(said)) for said in transcript.said],
        "spans": [_rounded(asdict(span)) for span in transcript.spans],
        "seconds": dict(_totals(transcript)),
        "notes": [LOW_QUALITY] if transcript.low_quality else [],
    }
    return json.dumps(whole, ensure_ascii=False, indent=1)


def _rounded(fields: dict[str, object]) -> dict[str, object]:
    return {name: round(value, 3) if isinstance(value, float) else value for name, value in fields.items()}


def _clock(ms: int, point: str) -> str:
    """`01:02:03.004`, with a minus before what lies before 0."""
    sign = "-" if ms < 0 else ""
    seconds, ms = divmod(abs(ms), 1000)
    return f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{point}{ms:03d}"
