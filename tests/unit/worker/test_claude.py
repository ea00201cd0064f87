"""The engine behind Claude against a scripted Messages API: answers, retries, limits, costs and what goes wrong."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.fakes import claude_script as script
from tests.fakes.claude_pages import TruePage, make_page
from tests.fakes.claude_script import Fault, Latency, Script
from tests.fakes.claude_server import FakeClaude, claude_server

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines.claude import ClaudeVision, build_claude
from sam2_mcp_worker.engines.claude_client import Answer, take
from sam2_mcp_worker.engines.ports import Sight, TilePicture, VisionModel, Wanted
from sam2_mcp_worker.engines.vision import NO_KEY, SWITCHED_OFF, choose_vision
from sam2_mcp_worker.engines.vision_errors import VisionError
from sam2_mcp_worker.settings import Settings
from sam2_mcp_worker.spending import SpendBook, Usage, spend_scope

PAGE: TruePage = make_page("leaflet", 700, 700, shapes=("coin", "seal"))
WANTED = Wanted(text=True, labels=("coin", "seal", "banknote"))


@pytest.fixture(scope="module")
def server() -> Iterator[FakeClaude]:
    with claude_server([PAGE]) as fake:
        yield fake


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> TilePicture:
    path = PAGE.write(tmp_path_factory.mktemp("pictures"))
    return TilePicture(path, "image/png", PAGE.width_px, PAGE.height_px)


@pytest.fixture
def fake(server: FakeClaude) -> FakeClaude:
    server.play(Script())
    return server


@asynccontextmanager
async def claude(fake: FakeClaude, folder: Path, **settings: Any) -> AsyncIterator[ClaudeVision]:
    vision = build_claude(Settings(data_dir=folder, **(fake.settings() | settings)))
    try:
        yield vision
    finally:
        await vision.close()


async def look(
    vision: ClaudeVision,
    picture: TilePicture,
    *,
    model: VisionModel = "fast",
    seconds: float = 20,
    wanted: Wanted = WANTED,
) -> Sight:
    return await vision.look(picture, wanted, model=model, deadline=Deadline.after(seconds))


@contextmanager
def fails(kind: str) -> Iterator[pytest.ExceptionInfo[VisionError]]:
    with pytest.raises(VisionError) as caught:
        yield caught
    assert caught.value.kind == kind


async def test_a_look_gives_lines_and_regions_and_tells_what_it_cost(
    fake: FakeClaude, picture: TilePicture, tmp_path: Path
) -> None:
    book = SpendBook()
    async with claude(fake, tmp_path) as vision:
        with spend_scope(book, 7):
            sight = await look(vision, picture)
        status = vision.status()
    assert {line.text for line in sight.lines} == {line.text for line in PAGE.lines}
    assert sorted(region.label for region in sight.regions) == ["coin", "seal"]
    assert (sight.cut, sight.dropped) == ("", 0)
    tokens_in, tokens_out = fake.tokens()
    usd = (tokens_in * 0.10 + tokens_out * 0.50) / 1e6
    assert book.take() == {7: Usage(1, tokens_in, tokens_out, usd)}
    assert status["today"]["usd"] == pytest.approx(usd, abs=1e-6)
    assert status["today"]["reserved_usd"] == 0
    assert fake.refused == []
    assert fake.scaled_down == []


async def test_the_request_asks_for_what_was_wanted_and_says_that_the_picture_is_data(
    fake: FakeClaude, picture: TilePicture, tmp_path: Path
) -> None:
    wanted = Wanted(text=False, labels=("seal",), definitions=("A round stamp.",))
    async with claude(fake, tmp_path, claude_accurate_max_tokens=900) as vision:
        sight = await look(vision, picture, model="accurate", wanted=wanted)
    assert sight.lines == ()
    assert [region.label for region in sight.regions] == ["seal"]
    asked = fake.requests[0]
    assert (asked.model, asked.max_tokens, asked.effort) == ("claude-sonnet-5-5", 900, "low")
    assert asked.schema is not None
    assert list(asked.schema["properties"]) == ["regions"]
    assert asked.schema["properties"]["regions"]["items"]["properties"]["label"]["enum"] == ["seal"]
    assert '"seal": A round stamp.' in asked.text
    assert "700 x 700 pixels" in asked.text


@pytest.mark.parametrize(
    "fault",
    [
        script.rate_limited("0.1"),
        script.overloaded(),
        script.server_error(),
        script.gateway_page(502),
        script.reset(),
        script.error_event(),
    ],
    ids=lambda fault: fault.name,
)
async def test_what_may_pass_is_tried_again(
    fake: FakeClaude, picture: TilePicture, tmp_path: Path, fault: Fault
) -> None:
    fake.play(Script(faults=[fault]))
    async with claude(fake, tmp_path) as vision:
        sight = await look(vision, picture)
        assert vision.trouble is None
        assert vision.status()["today"]["requests"] == 2
    assert len(sight.lines) == len(PAGE.lines)
    assert sight.cut == ""


async def test_a_wait_that_does_not_fit_ends_the_look_at_once_and_says_how_long_it_is(
    fake: FakeClaude, picture: TilePicture, tmp_path: Path
) -> None:
    fake.play(Script(always=script.rate_limited("3600")))
    async with claude(fake, tmp_path) as vision:
        with fails("overloaded") as caught:
            await look(vision, picture)
        assert vision.trouble is None
    assert "3600 s" in caught.value.public_text
    assert len(fake.requests) == 1


async def test_a_provider_that_stays_overloaded_is_asked_a_few_times_only(
    fake: FakeClaude, picture: TilePicture, tmp_path: Path
) -> None:
    fake.play(Script(always=script.overloaded("0")))
    async with claude(fake, tmp_path) as vision:
        with fails("overloaded"):
            await look(vision, picture)
        assert vision.status()["today"]["usd"] == 0
    assert len(fake.requests) == 6


async def test_text_that_came_before_the_deadline_is_kept_and_paid(
    fake: FakeClaude, picture: TilePicture, tmp_path: Path
) -> None:
    fake.play(Script(always=script.stall(0.6)))
    async with claude(fake, tmp_path) as vision:
        sight = await look(vision, picture, seconds=1.0)
        spent = vision.status()["today"]
    assert sight.cut == "time"
    assert 0 < len(sight.lines) < len(PAGE.lines)
    assert {line.text for line in sight.lines} < {line.text for line in PAGE.lines}
    assert spent["input_tokens"] == fake.requests[0].input_tokens
    assert spent["output_tokens"] >= 100
    assert spent["reserved_usd"] == 0


async def test_with_nothing_usable_at_the_deadline_the_look_has_timed_out(
    fake: FakeClaude, picture: TilePicture, tmp_path: Path
) -> None:
    fake.play(Script(always=script.slow(30)))
    async with claude(fake, tmp_path) as vision:
        with fails("timeout"):
            await look(vision, picture, seconds=0.6)
        # Nobody told what it cost, so that the estimate counts.
        assert vision.status()["today"]["usd"] > 0


async def test_a_stream_that_always_breaks_gives_what_came_and_is_not_paid_for_ever(
    fake: FakeClaude, picture: TilePicture, tmp_path: Path
) -> None:
    fake.play(Script(always=script.reset(0.5)))
    async with claude(fake, tmp_path) as vision:
        sight = await look(vision, picture)
        assert vision.trouble is None
    assert sight.cut == "connection"
    assert sight.lines
    assert len(fake.requests) == 3


async def test_an_answer_longer_than_allowed_is_cut_and_keeps_its_whole_items(
    fake: FakeClaude, picture: TilePicture, tmp_path: Path
) -> None:
    async with claude(fake, tmp_path, claude_fast_max_tokens=400) as vision:
        sight = await look(vision, picture)
    assert sight.cut == "tokens"
    assert len(sight.regions) == 2
    assert 0 < len(sight.lines) < len(PAGE.lines)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (script.refusal(), "refused"),
        (script.refusal(0.5), "refused"),
        (script.TOO_LARGE, "too_large"),
        (script.BODY_TOO_LARGE, "too_large"),
        (Fault("filtered", 400, "invalid_request_error", "Output blocked by content filtering policy"), "refused"),
        (script.not_json(), "no_answer"),
        (script.WRONG_BOXES, "no_answer"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
async def test_what_concerns_one_picture_leaves_the_provider_in_use(
    fake: FakeClaude, picture: TilePicture, tmp_path: Path, fault: Fault, kind: str
) -> None:
    fake.play(Script(faults=[fault]))
    async with claude(fake, tmp_path) as vision:
        with fails(kind) as caught:
            await look(vision, picture)
        assert caught.value.local_reads_on
        assert vision.trouble is None
        assert (await look(vision, picture)).lines


async def test_labels_from_outside_the_list_are_dropped_and_counted(
    fake: FakeClaude, picture: TilePicture, tmp_path: Path
) -> None:
    fake.play(Script(always=script.WRONG_LABELS))
    async with claude(fake, tmp_path) as vision:
        sight = await look(vision, picture)
    assert sight.regions == ()
    assert sight.dropped == 2
    assert len(sight.lines) == len(PAGE.lines)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (script.WRONG_KEY, "auth"),
        (script.NO_PERMISSION, "auth"),
        (script.NO_CREDIT, "credit"),
        (script.PAYMENT_REQUIRED, "credit"),
        (script.no_api(), "gateway"),
        (script.gateway_page(404), "gateway"),
        (Fault("deep", html="event: message_start\ndata: " + "[" * 5000 + "\n\n"), "gateway"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
async def test_what_concerns_the_whole_provider_is_found_out_once(
    fake: FakeClaude, picture: TilePicture, tmp_path: Path, fault: Fault, kind: str
) -> None:
    fake.play(Script(always=fault))
    async with claude(fake, tmp_path, vision_in_flight=2) as vision:
        results = await asyncio.gather(*(look(vision, picture) for _ in range(9)), return_exceptions=True)
        assert [error.kind for error in results if isinstance(error, VisionError)] == [kind] * 9
        assert isinstance(vision.trouble, VisionError)
        assert vision.trouble.kind == kind
        assert vision.trouble.next_step
        assert vision.status()["trouble"] == vision.trouble.public_text
    assert len(fake.requests) <= 4  # two at once, each perhaps without the field that gateways may not know


async def test_an_unknown_model_leaves_the_other_one_in_use(
    fake: FakeClaude, picture: TilePicture, tmp_path: Path
) -> None:
    async with claude(fake, tmp_path, claude_accurate_model="claude-none") as vision:
        with fails("model") as caught:
            await look(vision, picture, model="accurate")
        assert "claude-none" in caught.value.public_text
        assert vision.trouble is None
        with fails("model"):
            await look(vision, picture, model="accurate")
        assert (await look(vision, picture)).lines
    assert len(fake.requests) == 2


async def test_a_gateway_that_does_not_know_a_field_gets_requests_without_it(
    fake: FakeClaude, picture: TilePicture, tmp_path: Path
) -> None:
    fake.play(Script(unknown_fields=("transformations",)))
    async with claude(fake, tmp_path) as vision:
        for _ in range(2):
            assert (await look(vision, picture)).lines
    assert [seen.status for seen in fake.requests] == [400, 200, 200]


async def test_a_gateway_without_structured_output_is_named(
    fake: FakeClaude, picture: TilePicture, tmp_path: Path
) -> None:
    fake.play(Script(unknown_fields=("output_config",)))
    async with claude(fake, tmp_path) as vision:
        with fails("gateway") as caught:
            await look(vision, picture)
        assert isinstance(vision.trouble, VisionError)
    assert "does not understand" in caught.value.public_text


async def test_no_more_requests_are_under_way_than_allowed(
    fake: FakeClaude, picture: TilePicture, tmp_path: Path
) -> None:
    fake.play(Script(latency=Latency(0.05, 0.1)))
    async with claude(fake, tmp_path, vision_in_flight=3) as vision:
        await asyncio.gather(*(look(vision, picture) for _ in range(10)))
    assert fake.in_flight_max == 3


async def test_a_cancelled_look_closes_its_connection_and_is_booked(
    fake: FakeClaude, picture: TilePicture, tmp_path: Path
) -> None:
    fake.play(Script(always=script.stall(0.6)))
    book = SpendBook()
    async with claude(fake, tmp_path) as vision:
        with spend_scope(book, 0):
            task = asyncio.create_task(look(vision, picture))
        while not (fake.requests and fake.requests[0].output_tokens > 100):
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while fake.in_flight:
            await asyncio.sleep(0.01)
        assert fake.requests[0].status == 499
        assert vision.status()["in_flight"] == 0
        assert vision.status()["today"]["reserved_usd"] == 0
        assert book.take()[0].usd == pytest.approx(vision.status()["today"]["usd"], abs=1e-6)


async def test_the_cap_stops_requests_before_they_are_sent(
    fake: FakeClaude, picture: TilePicture, tmp_path: Path
) -> None:
    async with claude(fake, tmp_path, claude_daily_cap_usd=0.0) as vision:
        assert isinstance(vision.trouble, VisionError)
        with fails("cap") as caught:
            await look(vision, picture)
        assert "SAM2_MCP_CLAUDE_DAILY_CAP_USD" in caught.value.public_text
    assert fake.requests == []


async def test_a_limit_of_rate_holds_all_requests_of_that_model(
    fake: FakeClaude, picture: TilePicture, tmp_path: Path
) -> None:
    fake.play(Script(faults=[script.rate_limited("9")]))
    async with claude(fake, tmp_path) as vision:
        for _ in range(3):
            with fails("overloaded") as caught:
                await look(vision, picture, seconds=5)
            assert "asks to wait 9 s" in caught.value.public_text
        assert len(fake.requests) == 1
        assert (await look(vision, picture, model="accurate")).lines


async def test_a_redirect_is_not_followed(fake: FakeClaude, picture: TilePicture, tmp_path: Path) -> None:
    elsewhere = (("location", f"{fake.url}/v1/messages"),)
    fake.play(Script(faults=[Fault("moved", 307, headers=elsewhere, html="<html>moved</html>")]))
    async with claude(fake, tmp_path) as vision:
        with fails("gateway") as caught:
            await look(vision, picture)
    assert "HTTP 307" in caught.value.public_text
    assert len(fake.requests) == 1


def event(kind: str, **fields: Any) -> SimpleNamespace:
    return SimpleNamespace(type=kind, **fields)


def text_event(text: str, kind: str = "text") -> SimpleNamespace:
    return event("content_block_delta", delta=SimpleNamespace(type=f"{kind}_delta", **{kind: text}))


def ended(tokens: object) -> SimpleNamespace:
    usage = SimpleNamespace(output_tokens=tokens)
    return event("message_delta", delta=SimpleNamespace(stop_reason="end_turn"), usage=usage)


@pytest.mark.parametrize(
    ("events", "tokens_in", "tokens_out"),
    [
        pytest.param([event("message_start"), text_event("x" * 90), ended(None)], 1000, 45, id="no usage"),
        pytest.param([text_event("x" * 90), ended(None)], 1000, 45, id="no beginning"),
        pytest.param([event("message_start"), text_event("x" * 90, "thinking")], 1000, 45, id="cut in thought"),
        pytest.param([event("message_start"), text_event("x" * 90), ended(17)], 1000, 17, id="told"),
        pytest.param([event("message_start"), text_event("x" * 90), ended(-17)], 1000, 45, id="negative"),
        pytest.param([event("message_start"), ended(10**40)], 1000, 10**8, id="huge"),
    ],
)
def test_costs_that_the_provider_does_not_tell_are_estimated(
    events: list[SimpleNamespace], tokens_in: int, tokens_out: int
) -> None:
    answer = Answer()
    for item in events:
        take(item, answer)
    assert answer.tokens(1000) == Usage(1, tokens_in, tokens_out)


async def test_many_requests_at_once_stay_within_the_cap_and_wait_for_each_other(
    fake: FakeClaude, picture: TilePicture, tmp_path: Path
) -> None:
    # Room for the worst case of two requests of the accurate model, and in the end for what all of them really cost.
    async with claude(fake, tmp_path, claude_daily_cap_usd=0.34) as vision:
        fake.play(Script(latency=Latency(0.05, 0.1)))
        sights = await asyncio.gather(*(look(vision, picture, model="accurate") for _ in range(6)))
        assert all(sight.lines for sight in sights)
        assert fake.in_flight_max == 2
        assert vision.status()["today"]["usd"] < 0.34


async def test_a_record_of_costs_that_cannot_be_written_stops_spending(
    fake: FakeClaude, picture: TilePicture, tmp_path: Path
) -> None:
    (tmp_path / "spending").write_text("in the way", encoding="utf-8")
    async with claude(fake, tmp_path) as vision:
        with fails("cap") as caught:
            await look(vision, picture)
    assert "cannot be written" in caught.value.public_text
    assert fake.requests == []


async def test_nothing_secret_reaches_the_log_or_an_error(
    fake: FakeClaude, picture: TilePicture, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    echo = Fault("echo", 400, "invalid_request_error", f"bad input {script.KEY} " + "iVBORw0KGgo" * 40)
    fake.play(Script(faults=[None, script.WRONG_KEY, echo]))
    async with claude(fake, tmp_path) as vision:
        await look(vision, picture)
        with fails("auth") as caught:
            await look(vision, picture)
    async with claude(fake, tmp_path, claude_oversized_image_error=False) as vision:
        with fails("gateway") as echoed:
            await look(vision, picture)
    for text in (caplog.text, caught.value.public_text, echoed.value.public_text, echoed.value.private):
        assert script.KEY not in text
        assert "iVBORw0KGgo" not in text
        assert PAGE.lines[0].text not in text


async def test_models_are_checked_in_the_background_for_nothing(fake: FakeClaude, tmp_path: Path) -> None:
    async with claude(fake, tmp_path, claude_accurate_model="claude-none") as vision:
        await vision.check_models()
        models = vision.status()["models"]
        assert models["fast"]["state"] == "verified"
        assert "does not know the model claude-none" in models["accurate"]["state"]
        assert vision.trouble is None
    assert fake.requests == []


async def test_a_gateway_without_a_models_endpoint_is_used_unverified(
    fake: FakeClaude, picture: TilePicture, tmp_path: Path
) -> None:
    fake.play(Script(models_endpoint=False))
    async with claude(fake, tmp_path) as vision:
        await vision.check_models()
        assert vision.status()["models"]["fast"]["state"].startswith("not verified: the models endpoint")
        assert vision.trouble is None
        assert (await look(vision, picture)).lines


async def test_a_wrong_key_is_found_out_before_the_first_picture(fake: FakeClaude, tmp_path: Path) -> None:
    async with claude(fake, tmp_path, anthropic_api_key="sk-wrong") as vision:
        await vision.start()
        while vision.trouble is None:
            await asyncio.sleep(0.01)
        assert "auth" in vision.trouble.code
    assert fake.requests == []


def test_the_identity_tells_models_apart_and_changes_with_the_prompt(tmp_path: Path) -> None:
    korean = build_claude(Settings(data_dir=tmp_path, anthropic_api_key="k"))
    english = build_claude(Settings(data_dir=tmp_path, anthropic_api_key="k", ocr_languages=("eng",)))
    identities = {korean.identity("fast"), korean.identity("accurate"), english.identity("fast")}
    assert len(identities) == 3
    assert korean.identity("fast").startswith("claude/claude-haiku-5-5/")


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"anthropic_api_key": "sk ant"}, "vision_auth"),
        ({"anthropic_api_key": "sk-\u200bant"}, "vision_auth"),
        ({"anthropic_api_key": "sk-ant-x", "anthropic_base_url": "gateway.example"}, "vision_gateway"),
        ({"anthropic_api_key": "sk-ant-x", "anthropic_base_url": "ftp://gateway.example"}, "vision_gateway"),
        ({"anthropic_api_key": "sk-ant-x", "anthropic_base_url": "http://gateway.example:port"}, "vision_gateway"),
    ],
)
def test_a_key_or_address_that_cannot_be_one_is_a_reason_and_no_crash(
    tmp_path: Path, settings: dict[str, Any], code: str
) -> None:
    vision, reason = choose_vision(Settings(data_dir=tmp_path, **settings))
    assert vision is None
    assert reason is not None
    assert reason.code == code
    assert settings["anthropic_api_key"] not in reason.public_text


def test_without_a_key_or_switched_off_there_is_no_provider(tmp_path: Path) -> None:
    assert choose_vision(Settings(data_dir=tmp_path, anthropic_api_key=None)) == (None, NO_KEY)
    off = Settings(data_dir=tmp_path, anthropic_api_key="k", vision="off")
    assert choose_vision(off) == (None, SWITCHED_OFF)
