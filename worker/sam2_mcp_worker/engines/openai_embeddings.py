"""An OpenAI-compatible embeddings endpoint behind the port: batches, prices, and what an answer must look like."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Sequence
from itertools import islice
from typing import Any

import httpx2

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines import paid_requests
from sam2_mcp_worker.engines.embedding_errors import (
    MEANWHILE,
    EmbeddingsError,
    cap_reached,
    explain,
    explain_status,
    no_endpoint,
    no_time,
    rate_limited,
    unwritable,
)
from sam2_mcp_worker.engines.embedding_ports import Vector
from sam2_mcp_worker.engines.openai_http import HTTP_ERRORS, OpenAiHttp
from sam2_mcp_worker.engines.paid_requests import PaidRequests, Wordings
from sam2_mcp_worker.engines.provider_access import checked_address, checked_key
from sam2_mcp_worker.settings import Settings
from sam2_mcp_worker.spending import Usage

DEFAULT_ADDRESS = "https://api.openai.com/v1"
# Raise it whenever the same answer may be understood otherwise: it is part of every cache key.
WIRE_VERSION = 1
# A request of 64 sentences takes well under a second and brings 2 MB (1,536 numbers of 22 characters each).
MAX_BATCH = 64
MAX_ANSWER_BYTES = 16 * 1024 * 1024
MIN_DIMENSIONS, MAX_DIMENSIONS = 8, 8192
# Requests are short; more at once only meet the provider's limit of rate.
IN_FLIGHT = 2

# A look-up is a short GET.
CHECK_TIMEOUT_S = 10.0

Outcome = paid_requests.Outcome[list[Vector], EmbeddingsError]


class OpenAiEmbeddings:
    """An Embedder. `unusable` says what is wrong with key or address for good; then nothing is ever sent."""

    def __init__(self, settings: Settings, http: OpenAiHttp, unusable: EmbeddingsError | None = None) -> None:
        self._http = http
        self._unusable = unusable
        self._model = settings.embeddings_model
        self._usd_per_token = settings.embeddings_usd_per_mtok / 10**6
        self._cap_usd = settings.embeddings_daily_cap_usd
        self._requests: PaidRequests[EmbeddingsError] = PaidRequests(
            "embeddings endpoint",
            self._model,
            Wordings(cap_reached, unwritable, no_time, rate_limited),
            ledger=settings.data_dir / "spending" / "embeddings.sqlite",
            cap_usd=self._cap_usd,
            cheapest_usd=self._usd_per_token,
            in_flight=IN_FLIGHT,
        )

    def __repr__(self) -> str:
        return f"<OpenAiEmbeddings {self._model} [{self._requests.limiter.in_flight} in flight]>"

    @property
    def identity(self) -> str:
        """Host, model and version of the wire."""
        return f"openai-embeddings/{WIRE_VERSION}/{self._http.host}/{self._model}"

    @property
    def where(self) -> str:
        """The host that texts are sent to."""
        return self._http.host

    @property
    def trouble(self) -> EmbeddingsError | None:
        """Why asking is useless now, None when it is not."""
        return self._unusable or self._requests.trouble

    async def start(self) -> None:
        """Look up today's costs; whether the model is there is found out by the first request."""
        self._requests.check_ledger()

    async def close(self) -> None:
        """End the connections."""
        await self._http.close()
        self._requests.ledger.close()

    async def embed(self, texts: Sequence[str], *, job: str, deadline: Deadline) -> list[Vector]:
        """The places of the texts, in batches; see `Embedder`."""
        if self._unusable is not None:
            raise self._unusable.with_traceback(None)
        rest, vectors = iter(texts), []
        while batch := list(islice(rest, MAX_BATCH)):
            vectors += await self._embed(batch, job, deadline)
        return vectors

    async def _embed(self, batch: list[str], job: str, until: Deadline) -> list[Vector]:
        # No tokenizer makes more tokens than bytes.
        worst_tokens = sum(len(text.encode("utf-8")) for text in batch)

        def price(outcome: Outcome) -> Usage:
            tokens = outcome.tokens or worst_tokens
            return Usage(requests=1, input_tokens=tokens, usd=tokens * self._usd_per_token)

        return await self._requests.ask(
            lambda plain: self._send(batch, until, plain=plain),
            price,
            worst_usd=worst_tokens * self._usd_per_token,
            job=job,
            until=until,
        )

    async def _send(self, batch: list[str], until: Deadline, *, plain: bool) -> Outcome:
        asked: dict[str, Any] = {"model": self._model, "input": batch}
        if not plain:
            asked["encoding_format"] = "float"
        left_s = until.remaining_s()
        try:
            async with asyncio.timeout(left_s):
                status, headers, body = await self._http.send("POST", "embeddings", timeout_s=left_s, json=asked)
        except TimeoutError:
            return Outcome()
        except HTTP_ERRORS as error:
            return Outcome(failure=explain(error, secret=self._http.key))
        if status != httpx2.codes.OK:
            failure = explain_status(status, headers, body, model=self._model, secret=self._http.key)
            return Outcome(failure=failure)
        vectors, tokens = await asyncio.to_thread(read_vectors, body, len(batch))
        return Outcome(failure=no_endpoint()) if vectors is None else Outcome(vectors, tokens=tokens)

    async def check_model(self) -> EmbeddingsError | None:
        """Ask the models endpoint, which costs nothing; an error when the key or the model is refused.

        Many gateways have no such endpoint: that says nothing.
        """
        if self._unusable is not None:
            return self._unusable
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                status, headers, body = await self._http.send("GET", f"models/{self._model}", timeout_s=CHECK_TIMEOUT_S)
        except TimeoutError:
            return no_time()
        except HTTP_ERRORS as error:
            return explain(error, secret=self._http.key).error
        told = explain_status(status, headers, body, model=self._model, secret=self._http.key).error
        refused = status not in (httpx2.codes.OK, httpx2.codes.FORBIDDEN) and told.kind in ("auth", "model")
        return told if refused else None

    def status(self) -> dict[str, Any]:
        """What get_status and `doctor` tell; reads no disk and asks nobody."""
        trouble = self.trouble
        return {
            "sends_to": self._http.host,
            "model": self._model,
            "today": self._requests.ledger.today.told(self._cap_usd),
            "trouble": None if trouble is None else trouble.public_text,
        }


def read_vectors(body: bytes, count: int) -> tuple[list[Vector] | None, int]:
    """The vectors of an answer to `count` texts, made 1 long, and the tokens it counts; None for what is no answer.

    The answer comes from a server that may be anything, so that every field is looked at before it is believed.
    """
    try:
        data = json.loads(body)
        rows = sorted(data["data"], key=lambda row: int(row["index"]))
        if [row["index"] for row in rows] != list(range(count)):
            return None, 0
        vectors = [_unit(row["embedding"]) for row in rows]
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None, 0
    if len({len(vector) for vector in vectors}) != 1:
        return None, 0
    usage = data.get("usage")
    tokens = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    return vectors, tokens if isinstance(tokens, int) and 0 <= tokens < 10**9 else 0


def _unit(numbers: Any) -> Vector:
    """The vector made 1 long.

    Raises:
        ValueError, TypeError, OverflowError: it is no list of finite numbers, or of none but zeros.
    """
    if not isinstance(numbers, list) or not MIN_DIMENSIONS <= len(numbers) <= MAX_DIMENSIONS:
        raise ValueError("no vector")
    values = [float(number) for number in numbers]
    length = math.hypot(*values)
    if not math.isfinite(length) or length == 0:
        raise ValueError("no direction")
    return tuple(value / length for value in values)


def build_embeddings(settings: Settings) -> OpenAiEmbeddings | None:
    """The engine, None without a key; sends nothing yet. A key or an address that cannot be one is its trouble."""
    key = settings.embeddings_api_key
    if key is None or not key.get_secret_value().strip():
        return None
    address = settings.embeddings_base_url or DEFAULT_ADDRESS
    try:
        text = checked_key(key, "SAM2_MCP_EMBEDDINGS_API_KEY", error=EmbeddingsError, meanwhile=MEANWHILE)
        address = checked_address(address, "SAM2_MCP_EMBEDDINGS_BASE_URL", error=EmbeddingsError, meanwhile=MEANWHILE)
    except EmbeddingsError as error:
        http = OpenAiHttp("", DEFAULT_ADDRESS, max_answer_bytes=MAX_ANSWER_BYTES)
        return OpenAiEmbeddings(settings, http, error)
    return OpenAiEmbeddings(settings, OpenAiHttp(text, address, max_answer_bytes=MAX_ANSWER_BYTES))
