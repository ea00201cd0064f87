"""A scripted Claude on loopback: the Messages API as the 5.5 models serve it, which sees pages whose truth it knows.

    with claude_server([make_page("leaflet")], Script(faults=[overloaded(), cut()])) as fake:
        settings = Settings(data_dir=..., **fake.settings())

Every request is held against the API's real limits first; what breaks one is refused as the API would refuse it and is
in `fake.refused`. `fake.requests` records what came, `fake.in_flight_max` how many at once.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from tests.fakes import claude_wire as wire
from tests.fakes.claude_looks import Looks
from tests.fakes.claude_pages import Box, TruePage
from tests.fakes.claude_rules import MAX_BODY_BYTES, VERSIONS, Asked, Refusal, SentPicture, bad, check_request
from tests.fakes.claude_script import Fault, Script
from tests.fakes.claude_sight import Place, answer, locate, look
from tests.fakes.loopback import PATIENCE_S, serving_app

# Share of the latency before the first word.
_FIRST_WORD = 0.4
_CONNECTION_LOST = 499


@dataclass
class Seen:
    """One request to /v1/messages. `tiles` are the page and the rectangle of each picture, None for unknown ones.

    A blank JPEG, which could be from anywhere, is of the page "".

    `status` 499 says that the client went away before the end; `fault` is the script's, `latency_s` the one drawn.
    """

    number: int
    started_s: float
    status: int = 0
    model: str = ""
    max_tokens: int = 0
    effort: str = ""
    text: str = ""
    schema: dict[str, Any] | None = None
    pictures: list[SentPicture] = field(default_factory=list)
    tiles: list[tuple[str, Box] | None] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    fault: str = ""
    latency_s: float = 0.0
    stop_reason: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    ended_s: float = 0.0

    @property
    def scaled_down(self) -> bool:
        """Whether the standard tier would have shrunk a picture of it."""
        return any(picture.scale < 1 for picture in self.pictures)


@dataclass
class FakeClaude:
    """What was asked, and of whom. `script` may be exchanged at any time; its `faults` then start anew."""

    pages: dict[str, TruePage]
    script: Script
    port: int = 0
    requests: list[Seen] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    paths: Counter[str] = field(default_factory=Counter)
    in_flight: int = 0
    in_flight_max: int = 0
    looks: Looks = field(init=False)

    def __post_init__(self) -> None:
        self.looks = Looks(self.pages)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def settings(self) -> dict[str, Any]:
        """Arguments for the worker's Settings."""
        return {"anthropic_api_key": self.script.key, "anthropic_base_url": self.url}

    @property
    def scaled_down(self) -> list[Seen]:
        return [seen for seen in self.requests if seen.scaled_down]

    @property
    def unknown_pictures(self) -> int:
        return sum(tile is None for seen in self.requests for tile in seen.tiles)

    def tokens(self) -> tuple[int, int]:
        """Input and output tokens of everything answered so far."""
        return sum(seen.input_tokens for seen in self.requests), sum(seen.output_tokens for seen in self.requests)

    def play(self, script: Script) -> None:
        """Another script from now on, and records that begin anew."""
        self.script, self.requests, self.refused, self.in_flight_max = script, [], [], self.in_flight

    # The rest runs in the server's thread.

    async def messages(self, request: Request) -> Response:
        self._count(request)
        seen = Seen(len(self.requests), time.monotonic(), headers=_public_headers(request))
        script, request_id = self.script, f"req_{seen.number:024d}"
        random = Random(f"{script.seed}/{seen.number}")
        self.requests.append(seen)
        self.in_flight += 1
        self.in_flight_max = max(self.in_flight, self.in_flight_max)
        headers = wire.limit_headers(request_id)
        streaming = False
        try:
            body = await self._body(request)
            asked = await asyncio.to_thread(self._check, body, seen)
            fault = self._fault(script, seen, random)
            seen.fault, seen.latency_s = fault.name if fault else "", script.latency.draw(random)
            fault = fault or Fault("")
            if fault.status >= 400 or fault.html:
                return await self._fail(request, seen, fault, headers)
            text = await asyncio.to_thread(self._answer, asked, seen, fault)
            reply = Reply(self, script, seen, asked, fault, text, f"msg_{seen.number:024d}")
            if asked.stream:
                streaming = True
                return StreamingResponse(reply.stream(), headers=headers, media_type="text/event-stream; charset=utf-8")
            return JSONResponse(await reply.whole(request), headers=headers)
        except Refusal as refusal:
            seen.status = refusal.status
            if refusal.status not in (401, 404):
                self.refused.append(f"{refusal.status} {refusal.message}")
            headers["x-should-retry"] = "false"
            return JSONResponse(wire.error_body(refusal, request_id), refusal.status, headers)
        finally:
            if not streaming:
                self.finish(seen)

    def finish(self, seen: Seen) -> None:
        seen.ended_s = time.monotonic()
        self.in_flight -= 1

    def _has_key(self, request: Request) -> bool:
        """The SDK sends a bearer token, older clients and curl the key's own header."""
        given = (request.headers.get("x-api-key"), request.headers.get("authorization"))
        return self.script.key in (given[0], (given[1] or "").removeprefix("Bearer "))

    async def _body(self, request: Request) -> Any:
        if not self._has_key(request):
            raise Refusal(401, "authentication_error", "invalid x-api-key")
        if request.headers.get("anthropic-version") not in VERSIONS:
            raise bad("anthropic-version: a valid version is required")
        chunks, size = [], 0
        async for chunk in request.stream():
            size += len(chunk)
            if size > MAX_BODY_BYTES:
                raise Refusal(413, "request_too_large", "Request exceeds the maximum size")
            chunks.append(chunk)
        try:
            return json.loads(b"".join(chunks))
        except ValueError:
            raise bad("The request body is not valid JSON") from None

    def _check(self, body: Any, seen: Seen) -> Asked:
        if unknown := next(iter(_unknown_paths(body, self.script.unknown_fields)), None):
            raise bad(f"{unknown}: Extra inputs are not permitted")
        asked = check_request(body, dict(self.script.models))
        seen.model, seen.max_tokens, seen.effort = asked.model, asked.max_tokens, asked.effort
        seen.text, seen.schema, seen.pictures = asked.text, asked.schema, asked.pictures
        for picture in asked.pictures:
            place = locate(picture, self.pages, self.looks)
            seen.tiles.append((place.page.name, _rectangle(place, picture)) if place else None)
        return asked

    @staticmethod
    def _fault(script: Script, seen: Seen, random: Random) -> Fault | None:
        if seen.number < len(script.faults):
            return script.faults[seen.number]
        if script.choose is not None:
            page = next((tile[0] for tile in seen.tiles if tile), "")
            return script.choose(seen.number, page)
        roll = random.random()
        for fault, chance in script.chances.items():
            if roll < chance:
                return fault
            roll -= chance
        return script.always

    async def _fail(self, request: Request, seen: Seen, fault: Fault, headers: dict[str, str]) -> Response:
        await _pause(request, fault.delay_s * self.script.time_scale)
        seen.status, extra = fault.status, dict(fault.headers)
        if fault.html:
            return Response(fault.html, fault.status, extra, "text/html")
        refusal = Refusal(fault.status, fault.error, fault.message)
        return JSONResponse(wire.error_body(refusal, headers["request-id"]), fault.status, headers | extra)

    def _answer(self, asked: Asked, seen: Seen, fault: Fault) -> str:
        if asked.schema is None:
            return "I see a picture." if asked.pictures else "Hello."
        tiles = zip(asked.pictures, seen.tiles, strict=True)
        items = [
            item
            for picture, tile in tiles
            if tile and tile[0]
            for item in look(Place(self.pages[tile[0]], *tile[1][:2]), picture, self.script.box_error_px)
        ]
        known = all(seen.tiles) or self.script.override is None
        data = answer(asked.schema, items) if known else dict(self.script.override or {})
        data = fault.answer(data) if fault.answer else data
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        return fault.rewrite(text) if fault.rewrite else text

    def _count(self, request: Request) -> None:
        self.paths[f"{request.method} {request.url.path}"] += 1

    async def count_tokens(self, request: Request) -> Response:
        self._count(request)
        request_id = "req_count"
        try:
            asked = check_request(await self._body(request), dict(self.script.models), max_tokens_needed=False)
            return JSONResponse({"input_tokens": asked.input_tokens}, headers=wire.limit_headers(request_id))
        except Refusal as refusal:
            return JSONResponse(wire.error_body(refusal, request_id), refusal.status)

    async def model(self, request: Request, model_id: str) -> Response:
        self._count(request)
        request_id = "req_model"
        if not self._has_key(request):
            refusal = Refusal(401, "authentication_error", "invalid x-api-key")
        elif model_id not in self.script.models or not self.script.models_endpoint:
            text = f"model: {model_id}" if self.script.models_endpoint else "Not Found"
            refusal = Refusal(404, "not_found_error", text)
        else:
            info = wire.model_info(model_id, self.script.models[model_id])
            return JSONResponse(info, headers=wire.limit_headers(request_id))
        return JSONResponse(wire.error_body(refusal, request_id), refusal.status, {"x-should-retry": "false"})

    def app(self) -> FastAPI:
        app = FastAPI(openapi_url=None)

        app.add_api_route("/v1/messages", self.messages, methods=["POST"], response_model=None)
        app.add_api_route("/v1/messages/count_tokens", self.count_tokens, methods=["POST"], response_model=None)
        app.add_api_route("/v1/models/{model_id}", self.model, methods=["GET"], response_model=None)
        return app


@dataclass
class Reply:
    """One answer on its way, at the pace and with the end that the script wants."""

    fake: FakeClaude
    script: Script
    seen: Seen
    asked: Asked
    fault: Fault
    text: str
    message_id: str

    def __post_init__(self) -> None:
        whole = wire.cut_to_tokens(self.text, self.asked.max_tokens)
        self.reason = "end_turn" if whole == self.text else "max_tokens"
        if self.fault.sent < 1 or self.fault.ending != "whole":
            whole = whole[: int(len(self.text) * self.fault.sent)]
            self.reason = {"max_tokens": "max_tokens", "refusal": "refusal"}.get(self.fault.ending, "")
        self.text = whole
        self.seen.input_tokens = self.asked.input_tokens
        self.pace_s = self.seen.latency_s * self.script.time_scale
        self.delay_s = self.fault.delay_s * self.script.time_scale

    async def whole(self, request: Request) -> dict[str, Any]:
        await _pause(request, self.pace_s + self.delay_s)
        if self.fault.ending in ("reset", "stall", "error"):
            await _pause(request, PATIENCE_S)
        content = [{"type": "text", "text": self.text, "citations": None}] if self.text else []
        message = wire.message(self.message_id, self.asked, self._thought() + content, wire.text_tokens(self.text) + 1)
        self._done()
        return message | wire.stop(self.reason)

    def _thought(self) -> list[dict[str, Any]]:
        return [{"type": "thinking", "thinking": "", "signature": "c2lnbmF0dXJl"}] if self.script.thinks else []

    def _done(self) -> None:
        self.seen.status, self.seen.stop_reason = 200, self.reason
        self.seen.output_tokens = wire.text_tokens(self.text) + 1

    async def stream(self) -> AsyncIterator[bytes]:
        self.seen.status = _CONNECTION_LOST
        try:
            async for part in self._events():
                yield part
        finally:
            self.fake.finish(self.seen)

    async def _at(self, share: float) -> None:
        """Wait until this share of the latency is over, counted from the request's arrival so that nothing drifts."""
        until_s = self.seen.started_s + self.delay_s + self.pace_s * share
        await asyncio.sleep(max(0.0, until_s - time.monotonic()))

    async def _events(self) -> AsyncIterator[bytes]:
        await self._at(_FIRST_WORD)
        yield wire.event("message_start", message=wire.message(self.message_id, self.asked, [], 1))
        index = 0
        for thought in self._thought():
            yield wire.event("content_block_start", index=index, content_block={**thought, "signature": ""})
            delta = {"type": "signature_delta", "signature": thought["signature"]}
            yield wire.event("content_block_delta", index=index, delta=delta)
            yield wire.event("content_block_stop", index=index)
            index += 1
        block = {"type": "text", "text": ""}
        yield wire.event("content_block_start", index=index, content_block=block) + wire.event("ping")
        parts = list(wire.pieces(self.text))
        for number, part in enumerate(parts, 1):
            await self._at(_FIRST_WORD + (1 - _FIRST_WORD) * number / len(parts))
            self.seen.output_tokens += wire.text_tokens(part)
            yield wire.event("content_block_delta", index=index, delta={"type": "text_delta", "text": part})
        if self.fault.ending == "reset":
            raise ConnectionResetError("as the script wants")
        if self.fault.ending == "stall":
            await asyncio.sleep(PATIENCE_S * 4)
        if self.fault.ending == "error":
            error = {"type": self.fault.error, "message": self.fault.message}
            yield wire.event("error", error=error, request_id=None)
            return
        yield wire.event("content_block_stop", index=index)
        self._done()
        yield wire.event(
            "message_delta", delta=wire.stop(self.reason), usage={"output_tokens": self.seen.output_tokens}
        )
        yield wire.event("message_stop")


def _rectangle(place: Place, picture: SentPicture) -> Box:
    return place.x_px, place.y_px, place.x_px + picture.width_px, place.y_px + picture.height_px


def _public_headers(request: Request) -> dict[str, str]:
    return {name: value for name, value in request.headers.items() if name not in ("x-api-key", "authorization")}


def _unknown_paths(value: Any, names: tuple[str, ...], path: str = "") -> Iterator[str]:
    """Where a gateway meets a field that it does not know."""
    if isinstance(value, dict):
        for name, part in value.items():
            if name in names:
                yield f"{path}{name}"
            if name != "schema":
                yield from _unknown_paths(part, names, f"{path}{name}.")
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _unknown_paths(part, names, f"{path}{index}.")


async def _pause(request: Request, seconds: float) -> None:
    """Wait, but not for a client that has gone."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and not await request.is_disconnected():
        await asyncio.sleep(min(left, 0.2))


@contextmanager
def claude_server(pages: Iterable[TruePage] = (), script: Script | None = None) -> Iterator[FakeClaude]:
    """Serve until the end of the block, on a free port."""
    fake = FakeClaude({page.name: page for page in pages}, script or Script())
    with serving_app(fake.app()) as fake.port:
        yield fake
