"""Local Whisper in its child: a synthetic voice's English is right, and nothing is heard where nobody speaks."""

from __future__ import annotations

import asyncio
import wave
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.speech_server import wav_bytes
from tests.fakes.speech_sounds import Sound, join, noise, said, silence

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.disk import file_sha256
from sam2_mcp_worker.engines import whisper_child
from sam2_mcp_worker.engines.speech import choose_speech
from sam2_mcp_worker.engines.speech_ports import AudioPiece, Hearing
from sam2_mcp_worker.engines.whisper import LocalWhisper
from sam2_mcp_worker.engines.whisper_weights import PINNED_SHA256, find_weights, ready_folder
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.settings import Settings

SENTENCE = "The premium may rise when the contract is renewed."


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return Settings(data_dir=tmp_path_factory.mktemp("whisper"), speech="whisper")


@pytest.fixture(scope="module")
async def whisper(settings: Settings) -> AsyncIterator[LocalWhisper]:
    choice = choose_speech(settings)
    assert choice.pool is not None
    async with choice.pool:
        engine = choice.transcribers[0]
        assert isinstance(engine, LocalWhisper)
        yield engine


def piece_of(folder: Path, sound: Sound) -> AudioPiece:
    path = folder / "piece.wav"
    path.write_bytes(wav_bytes(sound.samples.astype("<i2").tobytes()))
    return AudioPiece(path, sound.length_s)


async def hear(whisper: LocalWhisper, folder: Path, sound: Sound, language: str | None = None) -> Hearing:
    piece = piece_of(folder, sound)
    return await whisper.transcribe(piece, language=language, job="job", deadline=Deadline.after(100))


async def test_the_words_of_a_sentence_are_right(whisper: LocalWhisper, tmp_path: Path) -> None:
    sound = join(silence(0.5), said(SENTENCE), silence(0.5))
    hearing = await hear(whisper, tmp_path, sound)
    assert " ".join(one.text for one in hearing.segments).rstrip(".") == SENTENCE.rstrip(".")
    assert hearing.language == "en"
    assert hearing.unheard == ()
    assert 0 <= hearing.segments[0].start_s < 1 < hearing.segments[-1].end_s <= sound.length_s
    assert (whisper.quality, whisper.where, whisper.costs_money, whisper.trouble) == ("low", "", False, None)


async def test_noise_gives_no_words_but_a_span_with_a_reason(whisper: LocalWhisper, tmp_path: Path) -> None:
    hearing = await hear(whisper, tmp_path, noise(6), "ko")
    assert hearing.segments == ()
    assert hearing.unheard[0].start_s == 0
    assert hearing.unheard[-1].end_s == 6
    assert all(span.reason for span in hearing.unheard)
    assert hearing.language == "ko"


async def test_what_waits_too_long_for_its_turn_says_so(whisper: LocalWhisper, tmp_path: Path) -> None:
    first = asyncio.create_task(hear(whisper, tmp_path, said("yes")))
    while whisper._pool.stats().busy == 0:
        await asyncio.sleep(0.01)
    piece = piece_of(tmp_path, said("no"))
    with pytest.raises(WorkerError, match="speech_timeout"):
        await whisper.transcribe(piece, language="en", job="other", deadline=Deadline.after(0.001))
    assert [one.text.strip(" .!").lower() for one in (await first).segments] == ["yes"]


def test_the_child_reads_only_the_sound_that_we_cut(settings: Settings, tmp_path: Path, whisper: LocalWhisper) -> None:
    weights = find_weights(settings)
    assert weights is not None
    whisper_child.setup({"weights": weights, "threads": 1})
    piece = piece_of(tmp_path, said("yes"))
    answer = whisper_child.TASKS["transcribe"]({"path": str(piece.path), "language": "en"})
    assert answer["language"] == "en"
    assert answer["said"][0]["text"].strip(" .!").lower() == "yes"
    with pytest.raises(WorkerError, match="language_unsupported"):
        whisper_child.transcribe({"path": str(piece.path), "language": "yue"})  # only larger models know it
    piece.path.write_bytes(b"RIFF, but no more than that")
    with pytest.raises(WorkerError, match="no WAV"):
        whisper_child.read_wav(piece.path)
    with wave.open(str(piece.path), "wb") as stereo:
        stereo.setnchannels(2)
        stereo.setsampwidth(2)
        stereo.setframerate(16_000)
        stereo.writeframes(bytes(6400))
    with pytest.raises(WorkerError, match="not 16 kHz mono"):
        whisper_child.read_wav(piece.path)


def test_files_of_another_content_are_joined_anew_and_never_loaded(settings: Settings, whisper: LocalWhisper) -> None:
    weights = find_weights(settings)
    assert weights is not None
    folder = Path(weights["folder"])
    (folder / "config.json").write_text("{}", encoding="utf-8")
    assert ready_folder(weights) == folder
    assert file_sha256(folder / "config.json") == PINNED_SHA256["config.json"]


def small_model(folder: Path) -> dict[str, Any]:
    """The form of a model, and no model at all."""
    for name in ("model.bin", "config.json", "tokenizer.json", "vocabulary.json"):
        (folder / name).write_text(name, encoding="utf-8")
    own = Settings(whisper_model_dir=folder, whisper_model_sha256=file_sha256(folder / "model.bin"))
    weights = find_weights(own)
    assert weights is not None
    return weights


def test_own_weights_are_loaded_only_with_the_hash_of_the_settings(tmp_path: Path) -> None:
    weights = small_model(tmp_path)
    assert ready_folder(weights) == tmp_path
    with pytest.raises(WorkerError, match="CTranslate2 cannot load it"):
        whisper_child.setup({"weights": weights, "threads": 1})
    with pytest.raises(WorkerError, match=r"model\.bin of the Whisper model has another content"):
        ready_folder(weights | {"sha256": {"model.bin": "0" * 64}})
    (tmp_path / "vocabulary.json").unlink()
    with pytest.raises(WorkerError, match=r"vocabulary\.txt of the Whisper model is not there"):
        ready_folder(weights)
    (tmp_path / "tokenizer.json").unlink()  # the library would ask the network for it
    with pytest.raises(WorkerError, match=r"tokenizer\.json of the Whisper model is not there"):
        ready_folder(weights)


def test_packages_with_another_content_are_not_used(tmp_path: Path) -> None:
    halves = [tmp_path / "one", tmp_path / "two"]
    for half in halves:
        half.mkdir()
    weights = {"folder": str(tmp_path / "joined"), "sha256": PINNED_SHA256, "halves": [str(half) for half in halves]}
    with pytest.raises(WorkerError, match="weights_missing"):
        ready_folder(weights)
    for number, half in enumerate(halves, 1):
        (half / f"model.bin.part{number}").write_bytes(b"half")
    for name in ("config.json", "tokenizer.json", "vocabulary.txt"):
        (halves[0] / name).write_text("{}", encoding="utf-8")
    with pytest.raises(WorkerError, match=r"weights_wrong.*installs sam2-mcp\[whisper-base\] anew"):
        ready_folder(weights)
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(WorkerError, match="storage_failed"):
        ready_folder(weights | {"folder": str(tmp_path / "file" / "joined")})


async def test_an_engine_that_cannot_start_is_a_trouble(tmp_path: Path) -> None:
    small_model(tmp_path)
    own = Settings(
        data_dir=tmp_path,
        speech="whisper",
        whisper_model_dir=tmp_path,
        whisper_model_sha256=file_sha256(tmp_path / "model.bin"),
    )
    choice = choose_speech(own)
    assert choice.pool is not None
    (engine,) = choice.transcribers
    assert engine.trouble is None
    assert engine.status()["state"] == "loading"
    with pytest.raises(WorkerError, match="cannot load"):
        async with choice.pool:
            pass
    assert engine.trouble is not None
    assert "local Whisper cannot start" in engine.trouble.what
    assert engine.status()["trouble"] == engine.trouble.public_text
