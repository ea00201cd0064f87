"""Two small servers on loopback: one passes requests on to the real API and keeps the answers, one plays them back."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import httpx
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from tests.fakes.loopback import serving_app
from tests.record.stored import Fingerprint, Recorded, clean, fingerprint

# What the API needs of the client's headers; connection details stay here.
_PASSED = ("x-api-key", "authorization", "anthropic-version", "anthropic-beta", "content-type")
_ANSWER_TIMEOUT_S = 300.0


@dataclass
class RecordingGateway:
    """Passes on to `upstream`; `kept` are the whole answers, under the `name` that was set when they came."""

    upstream: str
    key: str
    url: str = ""
    name: str = ""
    kept: list[Recorded] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    async def messages(self, request: Request) -> Response:
        body = await request.body()
        asked, name = fingerprint(json.loads(body)), self.name
        headers = {key: value for key, value in request.headers.items() if key in _PASSED}
        # trust_env: where a proxy is the way out, it is this client's way too.
        client = httpx.AsyncClient(timeout=_ANSWER_TIMEOUT_S)
        sent = client.build_request("POST", f"{self.upstream}/v1/messages", content=body, headers=headers)
        reply = await client.send(sent, stream=True)
        kind = reply.headers.get("content-type", "")

        async def passed_on() -> AsyncIterator[bytes]:
            parts = []
            try:
                async for part in reply.aiter_bytes():
                    parts.append(part)
                    yield part
                self._keep(name, asked, reply.status_code, kind, b"".join(parts))
            finally:
                await reply.aclose()
                await client.aclose()

        return StreamingResponse(passed_on(), reply.status_code, media_type=kind)

    def _keep(self, name: str, asked: Fingerprint, status: int, kind: str, body: bytes) -> None:
        text = clean(body.decode("utf-8"), self.key)
        if status != 200:
            self.failures.append(f"{name}: {status} {text[:300]}")
            return
        when = datetime.now(UTC).strftime("%Y-%m-%d")
        self.kept.append(Recorded(name, when, asked, status, kind, text))


@contextmanager
def recording_gateway(upstream: str, key: str) -> Iterator[RecordingGateway]:
    gateway = RecordingGateway(upstream.rstrip("/"), key)
    app = FastAPI(openapi_url=None)
    app.add_api_route("/v1/messages", gateway.messages, methods=["POST"], response_model=None)
    with serving_app(app) as port:
        gateway.url = f"http://127.0.0.1:{port}"
        yield gateway


@dataclass
class Replay:
    """Answers as recorded. `stale` says why a request found none: the prompt, the picture or something else changed."""

    answers: dict[str, Recorded]
    url: str = ""
    name: str = ""
    stale: dict[str, str] = field(default_factory=dict)

    async def messages(self, request: Request) -> Response:
        asked = fingerprint(json.loads(await request.body()))
        recorded = self.answers.get(f"{self.name}.{asked.model}")
        if recorded is None or recorded.asked != asked:
            why = (
                "nothing recorded"
                if recorded is None
                else f"recorded with another {_difference(recorded.asked, asked)}"
            )
            self.stale[f"{self.name}.{asked.model}"] = why
            error = {"type": "error", "error": {"type": "not_found_error", "message": why}}
            return JSONResponse(error, 404, {"x-should-retry": "false"})
        return Response(recorded.events, recorded.status, media_type=recorded.content_type)


def _difference(recorded: Fingerprint, asked: Fingerprint) -> str:
    return ", ".join(
        name for name in Fingerprint.__dataclass_fields__ if getattr(recorded, name) != getattr(asked, name)
    )


@contextmanager
def replaying(answers: Iterable[Recorded]) -> Iterator[Replay]:
    replay = Replay({f"{answer.name}.{answer.asked.model}": answer for answer in answers})
    app = FastAPI(openapi_url=None)
    app.add_api_route("/v1/messages", replay.messages, methods=["POST"], response_model=None)
    with serving_app(app) as port:
        replay.url = f"http://127.0.0.1:{port}"
        yield replay
