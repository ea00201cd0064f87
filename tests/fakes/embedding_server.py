"""A scripted embeddings endpoint on loopback: `embeddings` as OpenAI serves it, with meanings that a test decides.

    with embedding_server({"refund": ["돌려받는 금액", "해약환급금"]}) as fake:
        settings = Settings(data_dir=..., **fake.settings())

Texts that hold a word of the same meaning get nearly the same vector, others get vectors of their own. What breaks the
API's rules is refused as the API would refuse it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from tests.fakes.loopback import serving_app

KEY = "sk-embeddings-test"
MODEL = "text-embedding-3-small"
DIMENSIONS = 64


@dataclass
class FakeEmbeddings:
    """What was asked. `answers` are given instead of real ones, one for each request, None for a real one."""

    meanings: Mapping[str, Sequence[str]]
    answers: list[Response | None] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    knows_format: bool = True
    port: int = 0

    def settings(self) -> dict[str, Any]:
        """Arguments for the worker's Settings."""
        return {"embeddings_api_key": KEY, "embeddings_base_url": f"http://127.0.0.1:{self.port}/v1"}

    async def embed(self, request: Request) -> Response:
        """The endpoint."""
        asked = await request.json()
        refusal = self._refusal(request, asked)
        if refusal is not None:
            return refusal
        self.batches.append(len(asked["input"]))
        instead = self.answers.pop(0) if self.answers else None
        if instead is not None:
            return instead
        self.texts += asked["input"]
        rows = [
            {"object": "embedding", "index": index, "embedding": self.vector(text)}
            for index, text in enumerate(asked["input"])
        ]
        tokens = sum(len(text) for text in asked["input"])
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return JSONResponse({"object": "list", "data": rows[::-1], "model": MODEL, "usage": usage})

    def _refusal(self, request: Request, asked: dict[str, Any]) -> Response | None:
        if request.headers.get("authorization") != f"Bearer {KEY}":
            return told_error(401, "Incorrect API key provided", "invalid_api_key")
        if asked.get("model") != MODEL:
            return told_error(404, f"The model `{asked.get('model')}` does not exist", "model_not_found")
        if not self.knows_format and "encoding_format" in asked:
            return told_error(400, "unknown field encoding_format")
        texts = asked.get("input")
        if not texts or len(texts) > 2048 or not all(isinstance(text, str) and text for text in texts):
            return told_error(400, "'$.input' is invalid")
        return None

    def vector(self, text: str) -> list[float]:
        """Of length 1, as OpenAI's are."""
        meaning = next((name for name, words in self.meanings.items() if any(word in text for word in words)), text)
        base, own = (_direction(seed) for seed in (meaning, text))
        mixed = [0.9 * one + 0.1 * other for one, other in zip(base, own, strict=True)]
        length = math.hypot(*mixed)
        return [value / length for value in mixed]


def _direction(seed: str) -> list[float]:
    random = Random(hashlib.sha256(seed.encode()).digest())
    return [random.gauss(0, 1) for _ in range(DIMENSIONS)]


def told_error(status: int, message: str, code: str = "", headers: dict[str, str] | None = None) -> Response:
    """An error as the API tells it."""
    error = {"message": message, "type": "invalid_request_error", "code": code or None}
    return JSONResponse({"error": error}, status, headers)


@contextmanager
def embedding_server(meanings: Mapping[str, Sequence[str]] | None = None) -> Iterator[FakeEmbeddings]:
    """The endpoint for the length of a block."""
    fake = FakeEmbeddings(meanings or {})
    app = FastAPI()
    app.post("/v1/embeddings")(fake.embed)

    @app.get("/v1/models/{name}")
    def model(request: Request, name: str) -> Response:
        if request.headers.get("authorization") != f"Bearer {KEY}":
            return told_error(401, "Incorrect API key provided", "invalid_api_key")
        if name != MODEL:
            return told_error(404, f"The model `{name}` does not exist", "model_not_found")
        return JSONResponse({"id": name, "object": "model"})

    with serving_app(app) as port:
        fake.port = port
        yield fake
