"""The scripted Claude itself: a test that passes against it must mean something."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from collections.abc import AsyncIterator, Iterator
from functools import cache
from typing import Any

import anthropic
import httpx
import pytest
from anthropic import AsyncAnthropic
from PIL import Image
from tests.fakes import claude_script as scripts
from tests.fakes.claude_pages import make_page, page_of_texts, pdf_of
from tests.fakes.claude_script import Script
from tests.fakes.claude_server import FakeClaude, claude_server

PAGE = make_page("leaflet", density=0.9, shapes=("coin", "seal"))
RGB = PAGE.rgb()
# Making one costs as much as ten requests.
CLIENT = httpx.Client(trust_env=False)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        name: {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    key: kind,
                    "confidence": {"type": "number"},
                    "box": {"type": "array", "items": {"type": "integer"}},
                },
                "required": [key, "confidence", "box"],
                "additionalProperties": False,
            },
        }
        for name, key, kind in (
            ("regions", "label", {"type": "string", "enum": ["coin", "disclaimer"]}),
            ("lines", "text", {"type": "string"}),
        )
    },
    "required": ["regions", "lines"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def server() -> Iterator[FakeClaude]:
    with CLIENT, claude_server([PAGE]) as fake:
        yield fake


@pytest.fixture
def fake(server: FakeClaude) -> FakeClaude:
    server.play(Script(box_error_px=0))
    return server


@pytest.fixture
async def sdk(fake: FakeClaude) -> AsyncIterator[AsyncAnthropic]:
    async with AsyncAnthropic(api_key=fake.script.key, base_url=fake.url, max_retries=0) as client:
        yield client


@cache
def encoded(box: tuple[int, int, int, int], kind: str = "PNG", scale: float = 1.0) -> bytes:
    x0, y0, x1, y1 = box
    image = Image.fromarray(RGB[y0:y1, x0:x1])
    if scale != 1:
        image = image.resize((round((x1 - x0) * scale), round((y1 - y0) * scale)))
    out = io.BytesIO()
    image.save(out, kind, **({"compress_level": 1} if kind == "PNG" else {}))
    return out.getvalue()


def picture(data: bytes, media_type: str = "image/png", **more: Any) -> dict[str, Any]:
    source = {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode("ascii")}
    return {"type": "image", "source": source, **more}


def blank(width: int, height: int) -> dict[str, Any]:
    out = io.BytesIO()
    Image.new("L", (width, height), 255).save(out, "PNG")
    return picture(out.getvalue())


def body(*pictures: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "model": "claude-haiku-5-5",
        "max_tokens": 8000,
        "messages": [{"role": "user", "content": [*pictures, {"type": "text", "text": "Read it."}]}],
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}},
        **more,
    }


def post(fake: FakeClaude, data: dict[str, Any] | bytes, **headers: str) -> httpx.Response:
    sent = {"x-api-key": fake.script.key, "anthropic-version": "2023-06-01"} | headers
    content = data if isinstance(data, bytes) else json.dumps(data).encode("utf-8")
    return CLIENT.post(f"{fake.url}/v1/messages", content=content, headers=sent)


def answer(fake: FakeClaude, *pictures: dict[str, Any]) -> dict[str, Any]:
    reply = post(fake, body(*pictures))
    assert reply.status_code == 200, reply.text
    parsed: dict[str, Any] = json.loads(reply.json()["content"][-1]["text"])
    return parsed


async def streamed(sdk: AsyncAnthropic, **more: Any) -> tuple[str, str | None]:
    """Text and stop reason, as the official SDK reads the stream."""
    stream = await sdk.messages.create(stream=True, **body(picture(encoded((0, 0, 1240, 400))), **more))
    text, reason = "", None
    async for event in stream:
        if event.type == "content_block_delta" and event.delta.type == "text_delta":
            text += event.delta.text
        if event.type == "message_delta":
            reason = event.delta.stop_reason
    return text, reason


def test_it_answers_what_is_printed_in_the_tile_and_nothing_else(fake: FakeClaude) -> None:
    said = answer(fake, picture(encoded((0, 100, 1240, 800))))
    inside = [line for line in PAGE.lines if line.box[1] >= 100 and line.box[3] <= 800]
    whole = {line["text"]: line["box"] for line in said["lines"]}
    for line in inside:
        x0, y0, x1, y1 = line.box
        assert whole[line.text] == [x0, y0 - 100, x1, y1 - 100]
    assert [region["label"] for region in said["regions"]] == ["coin"]


def test_a_line_that_the_edge_cuts_is_answered_cut(fake: FakeClaude) -> None:
    line = PAGE.lines[5]
    said = answer(fake, picture(encoded((300, 0, 800, 900))))["lines"]
    part = next(item for item in said if abs(item["box"][1] - line.box[1]) < 3)
    assert part["text"] in line.text and part["text"] != line.text
    assert part["box"][0] == 0 and part["box"][2] == 500


def test_a_jpeg_is_found_by_its_looks_and_a_scaled_picture_is_not_found(fake: FakeClaude) -> None:
    assert answer(fake, picture(encoded((40, 60, 1100, 900), "JPEG"), "image/jpeg"))["lines"]
    assert fake.requests[-1].tiles == [("leaflet", (40, 60, 1100, 900))]
    assert not answer(fake, picture(encoded((0, 0, 1240, 900), scale=0.7)))["lines"]
    assert fake.unknown_pictures == 1


def test_an_image_page_of_a_pdf_keeps_its_stamp(fake: FakeClaude) -> None:
    pypdfium2 = pytest.importorskip("pypdfium2")
    document = pypdfium2.PdfDocument(pdf_of([PAGE]))
    image = document[0].render(scale=2.0).to_pil()
    out = io.BytesIO()
    image.crop((0, 0, 1240, 900)).save(out, "PNG")
    assert answer(fake, picture(out.getvalue()))["lines"]
    assert fake.requests[-1].tiles == [("leaflet", (0, 0, 1240, 900))]
    document.close()


def test_a_picture_that_the_standard_tier_would_shrink_is_recorded_and_answered_smaller(fake: FakeClaude) -> None:
    said = answer(fake, picture(encoded((0, 0, 1240, 1754))))
    assert len(fake.scaled_down) == 1
    coin = next(region["box"] for region in said["regions"] if region["label"] == "coin")
    true = next(region.box for region in PAGE.regions if region.label == "coin")
    assert coin[0] < true[0] - 50
    refused = post(fake, body(picture(encoded((0, 0, 1240, 1754)), transformations={"oversized_image": "error"})))
    assert refused.json()["error"]["details"]["error_code"] == "image_dimensions_too_large"


@pytest.mark.parametrize(
    ("change", "status", "part"),
    [
        ({"temperature": 0}, 400, "temperature"),
        ({"top_p": 0.9}, 400, "top_p"),
        ({"top_k": 5}, 400, "top_k"),
        ({"tool_choice": {"type": "tool", "name": "x"}}, 400, "tool_choice"),
        ({"thinking": {"type": "enabled", "budget_tokens": 2000}}, 400, "thinking"),
        ({"thinking": {"type": "disabled"}}, 400, "thinking"),
        ({"thinking": {"type": "between_tools"}}, 400, "thinking"),
        ({"output_format": {"type": "json_schema", "schema": SCHEMA}}, 400, "output_config.format"),
        ({"colour": "red"}, 400, "Extra inputs"),
        ({"max_tokens": 200_000}, 400, "128000"),
        ({"max_tokens": None}, 400, "max_tokens"),
        ({"model": "claude-2"}, 404, "model: claude-2"),
        ({"messages": []}, 400, "at least one"),
        ({"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}}, 400, "additionalProp"),
        ({"output_config": {"effort": "least"}}, 400, "effort"),
        ({"output_config": {"style": 1}}, 400, "Extra inputs"),
    ],
)
def test_refused_parameters_are_refused(fake: FakeClaude, change: dict[str, Any], status: int, part: str) -> None:
    reply = post(fake, body(blank(10, 10), **change))
    assert reply.status_code == status and part in reply.json()["error"]["message"]
    assert reply.json()["request_id"] == reply.headers["request-id"]


def test_a_prefill_is_refused(fake: FakeClaude) -> None:
    data = body(blank(10, 10))
    data["messages"].append({"role": "assistant", "content": "{"})
    assert "prefill" in post(fake, data).json()["error"]["message"]


@pytest.mark.parametrize(
    ("limit", "part"),
    [
        ({"minimum": 0, "type": "integer"}, "minimum"),
        ({"type": "array", "items": {"type": "string"}, "maxItems": 3}, "maxItems"),
        ({"type": "string", "pattern": "a+"}, "pattern"),
        ({"type": "object", "properties": {}}, "additionalProperties"),
        ({"type": "string", "enum": []}, "enum"),
        ({"type": "colour"}, "colour"),
    ],
)
def test_schemas_beyond_the_subset_are_refused(fake: FakeClaude, limit: dict[str, Any], part: str) -> None:
    schema = {"type": "object", "properties": {"a": limit}, "additionalProperties": False}
    reply = post(fake, body(output_config={"format": {"type": "json_schema", "schema": schema}}))
    assert reply.status_code == 400 and part in reply.json()["error"]["message"]


@pytest.mark.parametrize(
    ("pictures", "part"),
    [
        ([picture(b"\x89PNG nothing")], "Could not process"),
        ([picture(encoded((0, 0, 50, 50), "JPEG"))], "does not match"),
        ([blank(8001, 1)], "8000 pixels"),
        ([blank(2001, 1)] * 21, "2000 pixels"),
        ([blank(1, 1)] * 601, "601 images"),
        ([picture(b"\0" * 3_932_161)], "5242884 bytes > 5242880"),
        ([picture(b"", "image/tiff")], "media_type"),
        ([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "?!"}}], "base64"),
    ],
    ids=["broken", "wrong type", "side", "many", "count", "bytes", "format", "base64"],
)
def test_pictures_beyond_the_limits_are_refused(fake: FakeClaude, pictures: list[dict[str, Any]], part: str) -> None:
    reply = post(fake, body(*pictures))
    assert reply.status_code == 400 and part in reply.json()["error"]["message"]
    assert len(fake.refused) == 1


def test_a_body_over_32_mb_is_refused(fake: FakeClaude) -> None:
    assert post(fake, b"{" + b" " * (32 * 1024**2)).status_code == 413


def test_a_wrong_key_and_a_missing_version_are_refused(fake: FakeClaude) -> None:
    assert post(fake, body(), **{"x-api-key": "sk-ant-other"}).json()["error"]["type"] == "authentication_error"
    assert post(fake, body(), **{"anthropic-version": "2001-01-01"}).status_code == 400


def test_a_gateway_names_the_field_that_it_does_not_know(fake: FakeClaude) -> None:
    fake.play(Script(unknown_fields=("transformations",)))
    reply = post(fake, body({**blank(9, 9), "transformations": {"oversized_image": "error"}}))
    assert "messages.0.content.0.transformations: Extra inputs" in reply.json()["error"]["message"]
    assert post(fake, body(blank(9, 9))).status_code == 200


async def test_the_official_sdk_reads_a_stream_whole(fake: FakeClaude, sdk: AsyncAnthropic) -> None:
    fake.play(Script(thinks=True))
    text, reason = await streamed(sdk)
    assert reason == "end_turn" and json.loads(text)["lines"]
    assert fake.requests[0].output_tokens > 100 and fake.in_flight_max == 1


async def test_an_answer_longer_than_max_tokens_is_cut(fake: FakeClaude, sdk: AsyncAnthropic) -> None:
    text, reason = await streamed(sdk, max_tokens=100)
    assert reason == "max_tokens"
    with pytest.raises(json.JSONDecodeError):
        json.loads(text)


async def test_every_fault_reaches_the_sdk_as_what_it_is(fake: FakeClaude, sdk: AsyncAnthropic) -> None:
    expected: list[tuple[scripts.Fault, type[Exception]]] = [
        (scripts.rate_limited("3"), anthropic.RateLimitError),
        (scripts.overloaded(), anthropic.OverloadedError),
        (scripts.server_error(), anthropic.InternalServerError),
        (scripts.TOO_LARGE, anthropic.BadRequestError),
        (scripts.BODY_TOO_LARGE, anthropic.ContentTooLargeError),
        (scripts.WRONG_KEY, anthropic.AuthenticationError),
        (scripts.NO_PERMISSION, anthropic.PermissionDeniedError),
        (scripts.PAYMENT_REQUIRED, anthropic.PaymentRequiredError),
        (scripts.UNKNOWN_MODEL, anthropic.NotFoundError),
        (scripts.error_event(), anthropic.APIStatusError),
    ]
    fake.play(Script(faults=[fault for fault, _ in expected]))
    for fault, kind in expected:
        with pytest.raises(kind) as raised:
            await streamed(sdk)
        if fault.name == "rate_limited":
            assert isinstance(raised.value, anthropic.APIStatusError)
            assert raised.value.response.headers["retry-after"] == "3"
    assert [seen.fault for seen in fake.requests] == [fault.name for fault, _ in expected]


async def test_refusals_resets_and_wrong_labels_are_as_scripted(fake: FakeClaude, sdk: AsyncAnthropic) -> None:
    fake.play(Script(faults=[scripts.refusal(0.4), scripts.WRONG_LABELS, scripts.prose(), scripts.reset()]))
    assert (await streamed(sdk))[1] == "refusal"
    assert {region["label"] for region in json.loads((await streamed(sdk))[0])["regions"]} == {"gold bar"}
    assert (await streamed(sdk))[0].startswith("Here is")
    with pytest.raises(Exception, match="closed connection"):
        await streamed(sdk)
    assert [seen.status for seen in fake.requests] == [200, 200, 200, 499]


async def test_a_client_that_goes_away_is_recorded_and_frees_its_place(fake: FakeClaude, sdk: AsyncAnthropic) -> None:
    fake.play(Script(always=scripts.stall()))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await streamed(sdk)
    async with asyncio.timeout(10):
        while fake.in_flight:
            await asyncio.sleep(0.02)
    assert fake.requests[0].status == 499


async def test_the_models_endpoint_and_the_token_count_answer_the_sdk(sdk: AsyncAnthropic) -> None:
    model = await sdk.models.retrieve("claude-haiku-5-5")
    assert model.capabilities is not None and model.capabilities.image_input.supported
    with pytest.raises(anthropic.NotFoundError):
        await sdk.models.retrieve("claude-none")
    messages: Any = [{"role": "user", "content": [blank(29, 29)]}]
    assert (await sdk.messages.count_tokens(model="claude-haiku-5-5", messages=messages)).input_tokens == 4


def test_the_same_seed_draws_the_same_latencies_and_faults(fake: FakeClaude) -> None:
    script = Script(latency=scripts.REAL, chances={scripts.overloaded(): 0.3}, seed=7, time_scale=0)
    runs = []
    for _ in range(2):
        fake.play(script)
        for _ in range(12):
            post(fake, body(blank(9, 9)))
        runs.append([(seen.latency_s, seen.fault) for seen in fake.requests])
    assert runs[0] == runs[1]
    assert {fault for _, fault in runs[0]} == {"", "overloaded"}


def test_a_page_of_given_lines_holds_them_and_refuses_what_does_not_fit() -> None:
    page = page_of_texts("given", ["하나", "둘"])
    assert [line.text for line in page.lines] == ["하나", "둘"]
    with pytest.raises(ValueError, match="does not fit"):
        page_of_texts("given", ["길다 " * 100])
