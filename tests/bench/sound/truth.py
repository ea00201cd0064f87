"""Whether what transcribe_audio tells is true: words, times, and no words where nobody speaks.

    python -m tests.bench.sound.truth [--check] [--json]

English by espeak-ng, whose words and times are known, goes through the worker to local Whisper (words are counted
against the truth) and to the scripted endpoint (times must arrive as it told them). Three minutes each of silence, of
noise and of music must give no words: the endpoint invents some over every sound that nobody speaks in, local Whisper
does by itself.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rapidfuzz.distance import Levenshtein
from tests.bench.bridge.host import process_tree
from tests.bench.claude.command import finish, options, rows_of
from tests.bench.claude.scene import Called, RunningProgram, cpu_s, follow, quiet_environment, worker_program
from tests.fakes.speech_script import A_LOOP, OVER_SILENCE, SpeechScript
from tests.fakes.speech_server import KnownSound, speech_server
from tests.fakes.speech_sounds import Sound, Spoken, join, mix, music, noise, said, silence, write_sound

# Synthetic speech by a small network: of 100 words so many may come out otherwise or be thrown away as doubtful.
MOST_WORD_ERRORS = 0.15
# Whisper tells times in steps of 0.02 s and is often some tenths early or late at the ends of a sentence.
MOST_OFF_S = 0.6
SLACK_S = 0.002
QUIET_S = 180.0
SENTENCES = (
    "The insurance covers accidents at work and on the way home.",
    "The premium may rise every year.",
    "Please read the terms and conditions before you sign the contract.",
    "The company pays no more than half of the money in the first year.",
    "Some illnesses are not covered.",
    "Ask a person who knows the contract well.",
)


@dataclass(frozen=True)
class Quiet:
    """What came of sound in which nobody speaks."""

    sound: str
    engine: str
    words: list[str]
    speech: str
    silent_s: float
    unheard_s: float
    requests: int


@dataclass
class Truth:
    """Figures of the local engine, the endpoint's times, and quiet sounds."""

    words: int = 0
    wrong_words: int = 0
    heard: list[str] = field(default_factory=list)
    off_s: float = 0.0
    sound_s: float = 0.0
    took_s: float = 0.0
    cpu_s: float = 0.0
    unheard_s: float = 0.0
    lost_unsaid: list[str] = field(default_factory=list)
    endpoint_off_s: float = 0.0
    endpoint_texts: int = 0
    quiet: list[Quiet] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def word_errors(self) -> float:
        return self.wrong_words / max(1, self.words)

    def shortcomings(self) -> list[str]:
        invented = [f"{one.sound} by {one.engine}: {one.words[:2]}" for one in self.quiet if one.words]
        claims = {
            f"errors: {self.errors}": bool(self.errors),
            f"{self.word_errors:.0%} of the words wrong": self.word_errors > MOST_WORD_ERRORS,
            f"sentences lost without a word: {self.lost_unsaid}": bool(self.lost_unsaid),
            f"local times up to {self.off_s:.2f} s off": self.off_s > MOST_OFF_S,
            f"times of the endpoint changed by {self.endpoint_off_s:.3f} s": self.endpoint_off_s > SLACK_S,
            f"{self.endpoint_texts} of {len(SENTENCES)} texts of the endpoint": self.endpoint_texts != len(SENTENCES),
            f"words where nobody speaks: {invented}": bool(invented),
        }
        return [claim for claim, holds in claims.items() if holds]

    def as_dict(self) -> dict[str, Any]:
        quiet = {
            f"{one.sound}, {one.engine}": f"{len(one.words)} words, speech {one.speech}, {one.silent_s:.0f} s silent, "
            f"{one.requests} requests"
            for one in self.quiet
        }
        return {
            "words_wrong_local": f"{self.wrong_words} of {self.words}",
            "unheard_local_s": round(self.unheard_s, 1),
            "times_off_local_s": round(self.off_s, 2),
            "local_sound_s": round(self.sound_s, 1),
            "local_took_s": round(self.took_s, 1),
            "local_cpu_s": round(self.cpu_s, 1),
            "endpoint_times_off_s": round(self.endpoint_off_s, 4),
            **quiet,
        }


def speech() -> Sound:
    """The sentences over soft noise, with pauses that cut them into segments."""
    parts: list[Sound] = [silence(1.0)]
    for text in SENTENCES:
        parts += [said(text), silence(2.5)]
    sound = join(*parts)
    return mix(sound, noise(sound.length_s, level_dbfs=-60))


def quiet_sounds() -> Mapping[str, Sound]:
    return {"silence": silence(QUIET_S), "noise": noise(QUIET_S), "music": music(QUIET_S)}


def words_of(text: str) -> list[str]:
    return re.findall(r"[a-z']+", text.lower())


def segments_of(calls: Sequence[Called], found: Truth) -> list[dict[str, Any]]:
    found.errors += [each.error for each in calls if each.error]
    return [segment for each in calls for segment in each.facts.get("segments", [])]


def touches(one: Spoken, span: dict[str, Any]) -> bool:
    """Whether a told span holds the middle of what was spoken."""
    return bool(span["start_s"] <= (one.start_s + one.end_s) / 2 <= span["end_s"])


async def hear_locally(worker: RunningProgram, path: Path, sound: Sound, found: Truth) -> None:
    source = await worker.client.upload(path)
    started_s, before_s = time.monotonic(), cpu_s(process_tree(worker.pid))
    calls = await follow(worker.client, "transcribe_audio", source=source, language="en")
    segments = segments_of(calls, found)
    coverage = calls[-1].facts["coverage"]
    found.unheard_s = coverage["unheard_s"]
    spans = [*segments, *coverage["unheard"], *coverage["failed"]]
    found.lost_unsaid = [one.text for one in sound.spoken if not any(touches(one, span) for span in spans)]
    found.took_s, found.sound_s = time.monotonic() - started_s, sound.length_s
    found.cpu_s = cpu_s(process_tree(worker.pid)) - before_s
    found.heard = [segment["text"] for segment in segments]
    truth, told = (words_of(" ".join(texts)) for texts in (SENTENCES, found.heard))
    found.words, found.wrong_words = len(truth), Levenshtein.distance(truth, told)
    # A segment may hold several sentences or a part of one: its ends are compared with the nearest true ones.
    for edge in ("start_s", "end_s"):
        edges = [getattr(one, edge) for one in sound.spoken]
        nearest = [min(abs(segment[edge] - true_s) for true_s in edges) for segment in segments]
        found.off_s = max([found.off_s, *nearest])


async def hear_quiet(worker: RunningProgram, scratch: Path, engine: str, found: Truth, asked: Any) -> None:
    for name, sound in quiet_sounds().items():
        before = len(asked)
        source = await worker.client.upload(write_sound(scratch / f"{name}.wav", sound))
        calls = await follow(worker.client, "transcribe_audio", source=source)
        texts = [segment["text"] for segment in segments_of(calls, found)]
        facts = calls[-1].facts
        if not facts:
            return
        coverage = facts["coverage"]
        found.quiet.append(
            Quiet(
                name, engine, texts, facts["speech"], coverage["silent_s"], coverage["unheard_s"], len(asked) - before
            )
        )


async def hear_by_endpoint(scratch: Path, path: Path, sound: Sound, found: Truth) -> None:
    script = SpeechScript(invents=(*OVER_SILENCE, *A_LOOP))
    quiet = [KnownSound.of(one, name) for name, one in quiet_sounds().items()]
    with speech_server([KnownSound.of(sound, "speech"), *quiet], script) as fake:
        async with worker_program(scratch, segmenter="off", **fake.settings()) as worker:
            source = await worker.client.upload(path)
            segments = segments_of(await follow(worker.client, "transcribe_audio", source=source), found)
            found.endpoint_texts = sum(segment["text"] in SENTENCES for segment in segments)
            for segment, one in zip(segments, sound.spoken, strict=False):
                off_s = max(abs(segment["start_s"] - one.start_s), abs(segment["end_s"] - one.end_s))
                found.endpoint_off_s = max(found.endpoint_off_s, off_s)
            await hear_quiet(worker, scratch, "endpoint", found, fake.requests)


async def measure(scratch: Path) -> Truth:
    found, sound = Truth(), speech()
    path = write_sound(scratch / "speech.wav", sound)
    for folder in ("endpoint", "local"):
        (scratch / folder).mkdir()
    await hear_by_endpoint(scratch / "endpoint", path, sound, found)
    async with worker_program(scratch / "local", segmenter="off", speech="whisper") as worker:
        await hear_locally(worker, path, sound, found)
        await hear_quiet(worker, scratch, "local", found, ())
    return found


def main() -> int:
    arguments = options("truth", "sound").parse_args()
    quiet_environment()
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(measure(Path(folder)))
    rows = found.as_dict()
    data = rows | {"heard": found.heard, "quiet": [asdict(one) for one in found.quiet]}
    return finish(arguments, data, rows_of(rows), found.shortcomings())


if __name__ == "__main__":
    sys.exit(main())
