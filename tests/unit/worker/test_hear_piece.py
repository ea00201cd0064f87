"""A piece of speech: the first engine that can hears it, once, and what could not be heard says why."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from tests.fakes.scripted_ears import ScriptedEars

from sam2_mcp_worker.deadline import Deadline, deadline_scope
from sam2_mcp_worker.engines.request_limiter import RequestLimiter
from sam2_mcp_worker.engines.speech_ports import Hearing, SpokenSegment, Unheard
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.audio import SoundPiece
from sam2_mcp_worker.pipelines.hear_piece import HeardPiece, Listener, hear_all, loudness_dbfs
from sam2_mcp_worker.pipelines.transcript import SoundSpan
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.settings import Settings
from sam2_mcp_worker.spending import SpendBook

PIECE = SoundPiece(100.0, 5.0, Path(), -20.0, (-20.0,) * 50, "ab" * 32)
HELLO = Hearing((SpokenSegment(0.5, 2.5, " hello  there ", 0.9),), language="en")
BUSY = WorkerError("overloaded", "it is busy")


def services_with(folder: Path, *engines: ScriptedEars, background_limit_s: float = 600.0) -> Services:
    services = Services(Settings(data_dir=folder, segmenter="off", background_limit_s=background_limit_s))
    services.transcribers = engines
    services.hearing_turns = {one.identity: RequestLimiter(one.pieces_in_flight) for one in engines}
    return services


async def wav() -> Path:
    return Path("piece.wav")


async def hear(services: Services, piece: SoundPiece = PIECE, language: str | None = None) -> HeardPiece:
    return await Listener(services, language, "job").hear(piece, wav)


async def test_words_get_times_of_the_file_their_rate_and_loudness(tmp_path: Path) -> None:
    heard = await hear(services_with(tmp_path, ScriptedEars("first", [HELLO])))
    [said] = heard.said
    assert (said.start_s, said.end_s, said.text, said.confidence) == (100.5, 102.5, "hello there", 0.9)
    assert said.syllables_per_s == 2.0 and said.loudness_dbfs == -20.0
    assert heard.spans == (SoundSpan(100.0, 105.0, "heard"),)
    assert (heard.engine, heard.language, heard.stood_in, heard.again) == ("first", "en", "", False)


async def test_what_was_heard_once_is_not_asked_again(tmp_path: Path) -> None:
    first = ScriptedEars("first", [HELLO])
    services = services_with(tmp_path, first)
    once = await hear(services)
    first.trouble = BUSY  # what is known needs nobody
    assert await hear(services) == once
    assert first.asked == 1
    first.trouble = None
    await hear(services, language="ko")
    assert first.asked == 2 and first.languages == [None, "ko"]


@pytest.mark.parametrize("known_before", [True, False])
async def test_the_next_engine_stands_in_and_that_is_said(tmp_path: Path, known_before: bool) -> None:
    first = ScriptedEars("first", [BUSY], trouble=BUSY if known_before else None)
    second = ScriptedEars("second", [HELLO], quality="low")
    heard = await hear(services_with(tmp_path, first, second))
    assert (heard.engine, heard.low_quality, heard.again) == ("second", True, True)
    assert heard.stood_in == BUSY.reason
    assert first.asked == (0 if known_before else 1)


async def test_the_first_engine_hears_again_what_another_heard_in_its_place(tmp_path: Path) -> None:
    first, second = ScriptedEars("first", [BUSY, HELLO]), ScriptedEars("second", [HELLO], quality="low")
    services = services_with(tmp_path, first, second)
    assert (await hear(services)).engine == "second"
    assert (await hear(services)).engine == "first"


async def test_a_piece_that_all_engines_failed_on_has_failed_for_the_first_reason(tmp_path: Path) -> None:
    other = WorkerError("decoder_crashed", "the speech process ended")
    heard = await hear(services_with(tmp_path, ScriptedEars("first", [BUSY]), ScriptedEars("second", [other])))
    assert heard.failed and heard.again and heard.said == ()
    assert heard.spans == (SoundSpan(100.0, 105.0, "failed", BUSY.reason),)


async def test_with_no_engine_a_voice_was_there_that_nobody_heard(tmp_path: Path) -> None:
    heard = await hear(services_with(tmp_path))
    assert not heard.failed
    assert [span.became for span in heard.spans] == ["unheard"]


async def test_words_that_were_thrown_away_are_spans_of_their_own(tmp_path: Path) -> None:
    lost = (Unheard(3.0, 99.0, "it repeats itself"), Unheard(-1.0, 0.25, "no words came"), Unheard(4.0, 4.5, "same"))
    heard = await hear(services_with(tmp_path, ScriptedEars("first", [Hearing(HELLO.segments, lost)])))
    assert heard.spans == (
        SoundSpan(100.0, 100.25, "unheard", "no words came"),
        SoundSpan(100.25, 103.0, "heard"),
        SoundSpan(103.0, 105.0, "unheard", "it repeats itself"),
    )


async def test_an_answer_that_may_get_better_is_not_kept(tmp_path: Path) -> None:
    first = ScriptedEars("first", [Hearing((), again="time ran out"), HELLO])
    services = services_with(tmp_path, first)
    assert (await hear(services)).again
    assert (await hear(services)).said


async def test_a_segment_without_times_has_no_rate(tmp_path: Path) -> None:
    whole = Hearing((SpokenSegment(0.0, 5.0, "hello"),), times="piece")
    heard = await hear(services_with(tmp_path, ScriptedEars("first", [whole])))
    assert heard.said[0].syllables_per_s is None and not heard.timed


async def test_sound_that_cannot_be_decoded_again_fails_its_piece(tmp_path: Path) -> None:
    async def gone() -> Path:
        raise WorkerError("decoder_timeout", "stopped")

    first = ScriptedEars("first", [HELLO])
    heard = await Listener(services_with(tmp_path, first), None, "job").hear(PIECE, gone)
    assert heard.failed and "stopped" in heard.spans[0].reason and first.asked == 0


async def test_where_nothing_goes_on_in_the_background_no_turn_is_awaited_beyond_the_call(tmp_path: Path) -> None:
    services = services_with(tmp_path, ScriptedEars("first", [HELLO], pieces_in_flight=1), background_limit_s=0)
    turns = services.hearing_turns["scripted first"]
    async with turns.slot("other", Deadline.after(60), again=False):
        with deadline_scope(Deadline.after(0.6)):
            assert (await hear(services)).failed


async def test_costs_are_booked_on_the_second_in_which_a_piece_begins(tmp_path: Path) -> None:
    services, book = services_with(tmp_path, ScriptedEars("first", [HELLO])), SpendBook()
    told: dict[int, HeardPiece] = {}
    pieces = {3: PIECE, 4: SoundPiece(107.9, 1.0, Path(), -20.0, (-20.0,) * 10, "cd" * 32)}
    await hear_all(Listener(services, None, "job"), pieces, lambda _: wav(), told.__setitem__, book)
    assert sorted(told) == [3, 4]
    assert {second: usage.requests for second, usage in book.take().items()} == {100: 1, 107: 1}


def test_loudness_is_the_mean_power_of_the_tenths_it_spans() -> None:
    levels = (-10.0, -20.0, -96.0)
    assert loudness_dbfs(levels, 0.0, 0.1) == -10.0
    assert loudness_dbfs(levels, 0.0, 0.2) == round(10 * math.log10((0.1 + 0.01) / 2), 1)
    assert loudness_dbfs(levels, 0.15, 0.15) == -20.0
    assert loudness_dbfs(levels, 5.0, 6.0) is None
    assert loudness_dbfs((-math.inf,), 0.0, 0.1) == -96.0
