"""An OpenAI-compatible speech endpoint: times as they come, retries inside the deadline, and every failure named."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.fakes import speech_script as faults
from tests.fakes.claude_script import Fault, gateway_page, no_api, not_json, reset, slow, stall
from tests.fakes.speech_script import SpeechScript
from tests.fakes.speech_server import FakeSpeech, KnownSound, Spoken, speech_server, wav_bytes
from tests.fakes.speech_sounds import RATE_HZ

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines import retry
from sam2_mcp_worker.engines.openai_speech import OpenAISpeech, build_openai_speech
from sam2_mcp_worker.engines.speech_errors import SpeechError
from sam2_mcp_worker.engines.speech_ports import AudioPiece, Hearing
from sam2_mcp_worker.settings import Settings
from sam2_mcp_worker.spending import SpendBook, Usage, spend_scope

# What is in the file matters to nobody here but the endpoint, which knows it by its samples.
SAMPLES = Random(1).randbytes(RATE_HZ * 12 * 2)
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


async def test_a_forced_language_is_asked_for(fake: FakeSpeech, tmp_path: Path) -> None:
    hearing, _ = await hear(fake, tmp_path, SpeechScript(language="welsh"), language="ko")
    assert fake.requests[0].fields["language"] == "ko"
    assert hearing.language == "ko"


@pytest.mark.parametrize(
    "fault",
    [faults.rate_limited("0.1"), faults.server_error(), gateway_page(503), reset(0)],
    ids=lambda fault: fault.name,
)
async def test_what_passes_is_tried_again(fake: FakeSpeech, tmp_path: Path, fault: Fault) -> None:
    book = SpendBook()
    with spend_scope(book, 7):
        hearing, engine = await hear(fake, tmp_path, SpeechScript(faults=[fault]))
    assert len(hearing.segments) == 2
    assert [heard.fault for heard in fake.requests] == [fault.name, ""]
    # What broke off may have been paid for; what was declined was not. 9 s at 0.006 dollars a minute.
    paid = 2 if fault.name == "reset" else 1
    assert book.take() == {7: Usage(2, 0, 0, pytest.approx(paid * 0.0009))}  # type: ignore[arg-type]
    assert engine.status()["today"]["usd"] == pytest.approx(paid * 0.0009)
    assert engine.trouble is None


@pytest.mark.parametrize(
    ("fault", "kind", "kept"),
    [
        (faults.WRONG_KEY, "auth", True),
        (faults.NO_PERMISSION, "auth", True),
        (faults.NO_CREDIT, "credit", True),
        (faults.UNKNOWN_MODEL, "model", True),
        (faults.REDIRECT, "gateway", True),
        (no_api(), "gateway", True),
        (not_json(), "gateway", True),
        (Fault("endless", rewrite=lambda _: "x" * 5_000_000), "gateway", True),
        (Fault("not_found", 404, html="<html>nothing here</html>"), "gateway", True),
        (Fault("proxy", 407, html="a password, please"), "unreachable", True),
        (faults.BODY_TOO_LARGE, "too_large", False),
        (faults.BAD_SOUND, "refused", False),
        (Fault("unknown_sound", 400, "invalid_request_error", "Unknown audio format"), "refused", False),
        (faults.rate_limited("3600"), "overloaded", False),
        (stall(), "timeout", False),
    ],
    ids=lambda value: value.name if isinstance(value, Fault) else None,
)
async def test_a_failure_says_what_it_is_and_what_helps(
    fake: FakeSpeech, tmp_path: Path, fault: Fault, kind: str, kept: bool
) -> None:
    fake.play(SpeechScript(always=fault))
    engine = build_openai_speech(Settings(data_dir=tmp_path, **fake.settings()))
    piece = cut(tmp_path, 0, 3)
    try:
        for _ in range(2):
            within_s = 0.7 if kind == "timeout" else 20
            with pytest.raises(SpeechError) as caught:
                await engine.transcribe(piece, language=None, job="job", deadline=Deadline.after(within_s))
            assert caught.value.kind == kind
            assert caught.value.next_step
            assert faults.KEY not in caught.value.public_text + caught.value.private
        # What another piece would meet too is not asked again; what cannot help is not tried again.
        assert len(fake.requests) == (1 if kept else 2)
        assert (engine.trouble is not None) == kept
        paid = {"endless", "not_json", "no_api"} & {fault.name} or kind == "timeout"
        assert (engine.status()["today"]["usd"] > 0) == bool(paid)
    finally:
        await engine.close()


async def test_one_piece_at_which_connections_break_off_does_not_stop_the_others(
    fake: FakeSpeech, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(retry.MAX_TRIES, "broken", 1)  # without the waits
    engine = build_openai_speech(Settings(data_dir=tmp_path, **fake.settings()))
    piece = cut(tmp_path, 0, 3)

    async def fails() -> bool:
        fake.play(SpeechScript(always=reset(0)))
        with pytest.raises(SpeechError, match="speech_unreachable"):
            await engine.transcribe(piece, language=None, job="job", deadline=Deadline.after(20))
        return engine.trouble is not None

    try:
        assert not await fails()
        fake.play(SpeechScript())
        await engine.transcribe(piece, language=None, job="job", deadline=Deadline.after(20))
        assert not await fails()
        assert await fails()
    finally:
        await engine.close()


@pytest.mark.parametrize("ignores", [False, True])
async def test_an_endpoint_without_times_gives_one_segment_for_the_piece(
    fake: FakeSpeech, tmp_path: Path, ignores: bool
) -> None:
    fake.play(SpeechScript(verbose=False, ignores=ignores))
    engine = build_openai_speech(Settings(data_dir=tmp_path, **fake.settings()))
    piece = cut(tmp_path, 0.5, 9.5)
    try:
        for _ in range(2):
            hearing = await engine.transcribe(piece, language=None, job="job", deadline=Deadline.after(20))
            assert [(one.start_s, one.end_s) for one in hearing.segments] == [(0.0, 9.0)]
            assert hearing.segments[0].text == "The premium may rise. Read the terms before you sign."
            assert (hearing.times, hearing.language) == ("piece", None)
        asked = [heard.fields["response_format"] for heard in fake.requests]
        # It is told once that it does not know the form.
        assert asked == (["verbose_json"] * 2 if ignores else ["verbose_json", "json", "json"])
        assert "no times" in engine.status()["state"]
    finally:
        await engine.close()


@pytest.mark.parametrize(
    ("invents", "reason"), [(faults.OVER_SILENCE, "no speech"), (faults.A_LOOP, "again and again"), ((), "no words")]
)
async def test_words_that_nobody_said_are_a_span_with_a_reason(
    fake: FakeSpeech, tmp_path: Path, invents: tuple[dict[str, Any], ...], reason: str
) -> None:
    fake.play(SpeechScript(invents=invents))
    engine = build_openai_speech(Settings(data_dir=tmp_path, **fake.settings()))
    piece = cut(tmp_path, 8, 12)
    try:
        hearing = await engine.transcribe(piece, language="ko", job="job", deadline=Deadline.after(20))
    finally:
        await engine.close()
    assert hearing.segments == ()
    (unheard,) = hearing.unheard
    assert (unheard.start_s, unheard.end_s) == (0.0, 4.0)
    assert reason in unheard.reason


async def test_an_answer_that_makes_no_sense_is_not_believed(fake: FakeSpeech, tmp_path: Path) -> None:
    broken = {"segments": [{"start": "soon", "end": 2, "text": "What is said."}]}
    hearing, _ = await hear(fake, tmp_path, SpeechScript(tells=broken))
    assert hearing.times == "piece"
    backwards = {"segments": [{"start": 4, "end": 2, "text": "What is said."}]}
    hearing, _ = await hear(fake, tmp_path, SpeechScript(tells=backwards))
    assert hearing.times == "piece"
    padded = {"segments": [{"start": 1.5, "end": 30, "text": "One."}, {"start": 29, "end": 30, "text": "Two."}]}
    hearing, _ = await hear(fake, tmp_path, SpeechScript(tells=padded))
    assert [(one.start_s, one.end_s, one.text, one.confidence) for one in hearing.segments] == [
        (1.5, 9.0, "One.", None)
    ]
    for nonsense in ({"text": 5, "segments": None}, {"text": None, "segments": [[]]}):
        with pytest.raises(SpeechError, match="not in the format"):
            await hear(fake, tmp_path, SpeechScript(tells=nonsense))


async def test_nothing_is_sent_that_the_days_money_does_not_pay(fake: FakeSpeech, tmp_path: Path) -> None:
    with pytest.raises(SpeechError, match=r"cap of 0\.00 US dollars") as caught:
        await hear(fake, tmp_path, SpeechScript(), speech_daily_cap_usd=0.0001)
    assert caught.value.kind == "cap"
    with pytest.raises(SpeechError, match="leaves no room"):
        await hear(fake, tmp_path, SpeechScript(), speech_daily_cap_usd=0.0005)
    assert fake.requests == []
    (tmp_path / "other" / "spending" / "speech.sqlite").mkdir(parents=True)
    with pytest.raises(SpeechError, match="cannot be written"):
        await hear(fake, tmp_path / "other", SpeechScript())
    assert fake.requests == []


async def test_a_cancelled_request_counts_in_full(fake: FakeSpeech, tmp_path: Path) -> None:
    fake.play(SpeechScript(always=slow(20)))
    engine = build_openai_speech(Settings(data_dir=tmp_path, **fake.settings()))
    piece = cut(tmp_path, 0, 6)
    task = asyncio.create_task(engine.transcribe(piece, language=None, job="job", deadline=Deadline.after(20)))
    while fake.in_flight == 0:
        await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()
    assert engine.status()["today"]["usd"] == pytest.approx(0.0006)
    await engine.close()


async def test_no_more_requests_than_allowed_are_under_way(fake: FakeSpeech, tmp_path: Path) -> None:
    while fake.in_flight:  # the server may not have noticed yet that an earlier test went away
        await asyncio.sleep(0.01)
    fake.play(SpeechScript(always=slow(0.1)))
    engine = build_openai_speech(Settings(data_dir=tmp_path, speech_in_flight=2, **fake.settings()))
    pieces = [cut(tmp_path, start_s, start_s + 2) for start_s in range(5)]
    try:
        hearings = await asyncio.gather(
            *(engine.transcribe(piece, language=None, job="job", deadline=Deadline.after(20)) for piece in pieces)
        )
    finally:
        await engine.close()
    assert len(hearings) == 5
    assert fake.in_flight_max == 2
    assert engine.pieces_in_flight == 2


async def test_what_one_request_is_asked_to_wait_all_of_them_wait(fake: FakeSpeech, tmp_path: Path) -> None:
    fake.play(SpeechScript(faults=[faults.rate_limited("8")]))
    engine = build_openai_speech(Settings(data_dir=tmp_path, **fake.settings()))
    piece = cut(tmp_path, 0, 3)
    try:
        for _ in range(2):
            with pytest.raises(SpeechError, match=r"asks to wait [5-8] s"):
                await engine.transcribe(piece, language=None, job="job", deadline=Deadline.after(3))
    finally:
        await engine.close()
    assert len(fake.requests) == 1


async def test_a_piece_beyond_the_limit_of_the_wire_is_not_sent(fake: FakeSpeech, tmp_path: Path) -> None:
    fake.play(SpeechScript())
    engine = build_openai_speech(Settings(data_dir=tmp_path, **fake.settings()))
    path = tmp_path / "long.wav"
    with path.open("wb") as file:
        file.truncate(26 * 1024 * 1024)
    with pytest.raises(SpeechError, match=r"27 MB is more.*start_s"):
        await engine.transcribe(AudioPiece(path, 850), language=None, job="job", deadline=Deadline.after(20))
    await engine.close()
    assert fake.requests == []


@pytest.mark.parametrize(
    ("changes", "kind"),
    [({"openai_api_key": "sk test"}, "auth"), ({"openai_base_url": "api.example"}, "gateway")],
)
async def test_a_key_or_address_that_cannot_be_one_is_a_trouble_for_good(
    tmp_path: Path, changes: dict[str, str], kind: str
) -> None:
    engine = build_openai_speech(Settings(data_dir=tmp_path, **({"openai_api_key": "sk-x"} | changes)))
    await engine.start()
    trouble = engine.trouble
    assert trouble is not None
    assert trouble.kind == kind
    with pytest.raises(SpeechError):
        await engine.transcribe(cut(tmp_path, 0, 1), language=None, job="job", deadline=Deadline.after(5))
    await engine.close()


async def test_start_looks_the_model_up_and_spends_nothing(fake: FakeSpeech, tmp_path: Path) -> None:
    for script, state, kind in (
        (SpeechScript(), "verified", None),
        (SpeechScript(models_endpoint=False), "not verified: the models endpoint answers HTTP 404", None),
        (SpeechScript(models=("whisper-2",)), "not verified: the speech endpoint does not know", "model"),
        (SpeechScript(key="sk-other"), "not verified: the speech endpoint does not accept", "auth"),
    ):
        fake.play(script)
        settings = fake.settings() | {"openai_api_key": faults.KEY}
        engine = build_openai_speech(Settings(data_dir=tmp_path, **settings))
        await engine.start()
        assert engine._check is not None
        error = await engine._check
        assert (None if error is None else error.kind) == kind
        assert engine.trouble is error
        assert engine.status()["state"].startswith(state)
        await engine.close()
    assert fake.requests == []
