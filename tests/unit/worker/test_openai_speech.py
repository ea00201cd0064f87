"""An OpenAI-compatible speech endpoint: times as they come, retries inside the deadline, and every failure named."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import speech_script as faults
from tests.fakes.claude_script import Fault, gateway_page, no_api, not_json, reset, slow, stall
from tests.fakes.speech_script import SpeechScript
from tests.fakes.speech_server import FakeSpeech, KnownSound, Spoken, speech_server, wav_bytes
from tests.fakes.speech_sounds import RATE_HZ

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines.openai_speech import OpenAISpeech, build_openai_speech
from sam2_mcp_worker.engines.ports import AudioPiece, Hearing
from sam2_mcp_worker.engines.speech_errors import SpeechError
from sam2_mcp_worker.settings import Settings
from sam2_mcp_worker.spending import SpendBook, Usage, spend_scope

# What is in the file matters to nobody here but the endpoint, which knows it by its samples.
SAMPLES = b"".join((number * 7919 % 30011).to_bytes(2, "little", signed=True) for number in range(RATE_HZ * 12))
SOUND = KnownSound(
    "notice",
    SAMPLES,
    (Spoken(1.103, 3.7404, "The premium may rise."), Spoken(4.0, 7.25, "Read the terms before you sign.")),
)


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeSpeech]:
    with speech_server([SOUND]) as server:
        yield server


def cut(folder: Path, start_s: float, end_s: float) -> AudioPiece:
    """A piece of the known sound."""
    path = folder / f"{start_s}-{end_s}.wav"
    path.write_bytes(wav_bytes(SAMPLES[int(start_s * RATE_HZ) * 2 : int(end_s * RATE_HZ) * 2]))
    return AudioPiece(path, end_s - start_s)


async def hear(
    fake: FakeSpeech,
    folder: Path,
    script: SpeechScript,
    *,
    language: str | None = None,
    within_s: float = 20,
    **more: Any,
) -> tuple[Hearing, OpenAISpeech]:
    fake.play(script)
    engine = build_openai_speech(Settings(data_dir=folder, **(fake.settings() | more)))
    try:
        piece = cut(folder, 0.5, 9.5)
        return await engine.transcribe(piece, language=language, job="job", deadline=Deadline.after(within_s)), engine
    finally:
        await engine.close()


async def test_times_words_and_language_arrive_unchanged(fake: FakeSpeech, tmp_path: Path) -> None:
    hearing, engine = await hear(fake, tmp_path, SpeechScript())
    assert [(one.text, one.start_s, one.end_s) for one in hearing.segments] == [
        ("The premium may rise.", 1.103 - 0.5, 3.7404 - 0.5),
        ("Read the terms before you sign.", 3.5, 6.75),
    ]
    assert (hearing.language, hearing.times, hearing.unheard) == ("en", "segments", ())
    assert fake.requests[0].fields == {
        "model": "whisper-1",
        "temperature": "0",
        "response_format": "verbose_json",
        "timestamp_granularities[]": "segment",
    }
    assert fake.requests[0].place == ("notice", 0.5)
    assert (engine.where, engine.costs_money, engine.quality) == ("127.0.0.1", True, "provider")
    assert engine.status()["state"] == "works"
    assert fake.refused == []
