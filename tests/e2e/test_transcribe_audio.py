"""transcribe_audio on a real worker: real files, a scripted endpoint, every second and every word accounted for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import RunningWorker, serving
from tests.e2e.tools import Agent, ToolFailure
from tests.fakes.speech_script import BAD_SOUND, OVER_SILENCE, WRONG_KEY, SpeechScript
from tests.fakes.speech_server import FakeSpeech, KnownSound, speech_server
from tests.fakes.speech_sounds import Sound, join, noise, said, silence, write_sound

from sam2_mcp_worker.settings import Settings

SENTENCES = ("insurance covers accidents", "the premium may rise", "read the terms before you sign")


@dataclass(frozen=True)
class Scene:
    """A worker, the endpoint that it asks, a recording whose truth is known, and a folder."""

    worker: RunningWorker
    fake: FakeSpeech
    sound: Sound
    folder: Path

    @property
    def agent(self) -> Agent:
        return Agent(self.worker)

    async def upload(self, sound: Sound, name: str = "talk.wav") -> str:
        return await self.agent.upload(write_sound(self.folder / name, sound))


def speech_with_pauses() -> Sound:
    parts: list[Sound] = [silence(1.0)]
    for text in SENTENCES:
        parts += [said(text), silence(3.0)]
    return join(*parts)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    sound = speech_with_pauses()
    with speech_server([KnownSound.of(sound)]) as fake:
        folder = tmp_path_factory.mktemp("listening")
        for worker in serving(Settings(port=0, data_dir=folder / "data", segmenter="off", **fake.settings())):
            yield Scene(worker, fake, sound, folder)


def check_seconds(result: dict[str, Any]) -> None:
    """Every second of the range is accounted for, and the listed spans say where."""
    coverage = result["coverage"]
    parts = ("heard_s", "silent_s", "unheard_s", "failed_s", "unreached_s")
    assert sum(coverage[part] for part in parts) == pytest.approx(coverage["asked_s"], abs=1e-6)
    assert coverage["asked_s"] == pytest.approx(result["end_s"] - result["start_s"], abs=1e-6)
    for name in ("unheard", "failed", "unreached"):
        listed = sum(span["end_s"] - span["start_s"] for span in coverage[name])
        assert listed == pytest.approx(coverage[f"{name}_s"], abs=1e-3)


async def test_words_and_their_times_arrive_as_the_endpoint_told_them(scene: Scene) -> None:
    scene.fake.play(SpeechScript())
    handle = await scene.upload(scene.sound)
    [result] = await scene.agent.follow("transcribe_audio", source=handle)
    assert [segment["text"] for segment in result["segments"]] == list(SENTENCES)
    for segment, truth in zip(result["segments"], scene.sound.spoken, strict=True):
        assert segment["start_s"] == pytest.approx(truth.start_s, abs=0.001)
        assert segment["end_s"] == pytest.approx(truth.end_s, abs=0.001)
        assert -40 < segment["loudness_dbfs"] < 0 and 1 < segment["syllables_per_s"] < 10
    assert (result["speech"], result["quality"], result["language"]) == ("found", "provider", "en")
    assert result["coverage"]["unheard"] == result["coverage"]["failed"] == result["coverage"]["unreached"] == []
    check_seconds(result)
    assert scene.fake.unknown == 0 and scene.fake.refused == []


async def test_a_repeated_call_asks_nobody_again_and_has_the_same_files(scene: Scene) -> None:
    handle = await scene.upload(scene.sound)
    first = await scene.agent.call("transcribe_audio", source=handle)
    scene.fake.play(SpeechScript())
    again = await scene.agent.call("transcribe_audio", source=handle)
    assert again == first
    assert scene.fake.requests == []
    assert len(first["files"]) == 4


async def test_a_part_of_the_recording_has_the_words_of_that_part(scene: Scene) -> None:
    scene.fake.play(SpeechScript())
    second = scene.sound.spoken[1]
    handle = await scene.upload(scene.sound)
    start_s, end_s = second.start_s - 1, second.end_s + 1
    result = await scene.agent.call("transcribe_audio", source=handle, start_s=start_s, end_s=end_s)
    assert [segment["text"] for segment in result["segments"]] == [SENTENCES[1]]
    assert result["coverage"]["asked_s"] == pytest.approx(end_s - start_s, abs=0.002)
    check_seconds(result)


async def test_a_forced_language_is_what_the_endpoint_is_told(scene: Scene) -> None:
    scene.fake.play(SpeechScript())
    handle = await scene.upload(scene.sound)
    await scene.agent.call("transcribe_audio", source=handle, language="en-US")
    assert {heard.fields["language"] for heard in scene.fake.requests} == {"en"}


async def test_what_failed_is_named_as_failed_and_tried_again_by_the_next_call(scene: Scene) -> None:
    scene.fake.play(SpeechScript(always=BAD_SOUND))
    sound = join(silence(0.5), scene.sound)
    handle = await scene.upload(sound, "other.wav")
    result = await scene.agent.call("transcribe_audio", source=handle)
    assert result["segments"] == [] and result["speech"] == "cannot_tell"
    assert result["coverage"]["failed_s"] > 4 and "cursor" not in result
    check_seconds(result)
    scene.fake.play(SpeechScript())
    mended = await scene.agent.call("transcribe_audio", source=handle)
    assert [segment["text"] for segment in mended["segments"]] == list(SENTENCES)
    assert mended["coverage"]["failed"] == []


async def test_silence_and_noise_are_no_words_and_nobody_is_asked(scene: Scene) -> None:
    scene.fake.play(SpeechScript(invents=OVER_SILENCE))
    for name, quiet in (("silence.wav", silence(20.0)), ("noise.wav", noise(20.0))):
        result = await scene.agent.call("transcribe_audio", source=await scene.upload(quiet, name))
        assert (result["segments"], result["speech"]) == ([], "none")
        assert result["coverage"]["silent_s"] == pytest.approx(20.0, abs=0.01)
        assert "files" not in result
        check_seconds(result)
    assert scene.fake.requests == []


async def test_costs_are_told_once_for_each_piece(scene: Scene) -> None:
    from sam2_mcp_worker.cli.client import WorkerClient

    scene.fake.play(SpeechScript())
    handle = await scene.upload(join(silence(0.3), scene.sound), "paid.wav")
    client = WorkerClient(scene.worker.base_url, scene.worker.token)
    costs = []
    for _ in range(2):
        async with client.session() as session:
            result = await session.call_tool("transcribe_audio", {"source": handle})
        costs.append((result.meta or {})["sam2-mcp/usage"])
    assert (
        costs[0]["requests"] == len(scene.fake.requests) == sum(p["requests"] for p in costs[0]["per_piece"].values())
    )
    assert costs[0]["usd"] > 0
    assert costs[1]["requests"] == 0 and costs[1]["per_piece"] == {}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"language": "klingon"}, "language_unknown"),
        ({"start_s": 5000.0}, "time_outside"),
        ({"start_s": 4.0, "end_s": 2.0}, "time_outside"),
        ({"start_s": 1.0001, "end_s": 1.0004}, "time_outside"),  # less than a millisecond
        ({"cursor": "abc"}, "cursor_invalid"),
    ],
)
async def test_wrong_arguments_say_what_to_do(scene: Scene, arguments: dict[str, Any], code: str) -> None:
    handle = await scene.upload(scene.sound)
    with pytest.raises(ToolFailure, match=rf"^\[{code}\]"):
        await scene.agent.call("transcribe_audio", source=handle, **arguments)


async def test_a_file_without_sound_says_so(scene: Scene) -> None:
    path = scene.folder / "no.txt"
    path.write_text(json.dumps({"no": "sound"}), encoding="utf-8")
    with pytest.raises(ToolFailure, match=r"^\[unsupported_sound\]"):
        await scene.agent.call("transcribe_audio", source=await scene.agent.upload(path))


async def test_without_an_engine_a_voice_is_found_and_words_are_not_available(
    worker: RunningWorker, scene: Scene
) -> None:
    agent = Agent(worker)
    handle = await agent.upload(write_sound(scene.folder / "talk.wav", scene.sound))
    result = await agent.call("transcribe_audio", source=handle)
    assert result["not_available"]["mend"] and result["speech"] == "cannot_tell"
    assert result["coverage"]["unheard_s"] > 4 and result["coverage"]["heard_s"] == 0
    check_seconds(result)


async def test_a_wrong_key_fails_every_piece_by_name(scene: Scene) -> None:
    """The last one: the endpoint is not asked again for a while."""
    scene.fake.play(SpeechScript(always=WRONG_KEY))
    result = await scene.agent.call(
        "transcribe_audio", source=await scene.upload(join(silence(0.7), scene.sound), "key.wav")
    )
    assert all("key" in span["reason"] for span in result["coverage"]["failed"])
    assert 1 <= len(scene.fake.requests) <= len(SENTENCES)
    check_seconds(result)
