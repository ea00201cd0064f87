"""What went wrong with a request to an embeddings endpoint, from HTTP to an EmbeddingsError and what may help."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, ClassVar

import httpx2

from sam2_mcp_worker.engines import provider_errors
from sam2_mcp_worker.engines.network_errors import NOT_SENT, may_open, network_reason, scrub
from sam2_mcp_worker.engines.openai_errors import kind_of, read_error
from sam2_mcp_worker.engines.provider_errors import Kind, ProviderError
from sam2_mcp_worker.engines.retry import retry_after_s

MEANWHILE = "without it phrases are judged by their letters alone"
ADDRESS = "SAM2_MCP_EMBEDDINGS_BASE_URL"


class EmbeddingsError(ProviderError):
    """Its code is `embeddings_` plus the kind."""

    family: ClassVar[str] = "embeddings"


Failure = provider_errors.Failure[EmbeddingsError]

WHATS: dict[Kind, str] = {
    "auth": "the embeddings endpoint does not accept the API key",
    "credit": "the account of the embeddings endpoint has no credit",
    "model": "the embeddings endpoint does not know its model",
    "gateway": f"what answers at {ADDRESS} does not understand our requests",
    "unreachable": "the proxy wants a name and password",
    "overloaded": "the embeddings endpoint is overloaded or limits our rate",
    "too_large": "the embeddings endpoint refused this request for its size",
}
NEXT_STEPS: dict[Kind, str] = {
    "auth": f"the operator sets a valid SAM2_MCP_EMBEDDINGS_API_KEY; {MEANWHILE}",
    "credit": f"the operator adds credit in the provider's console; {MEANWHILE}",
    "model": f"the operator sets SAM2_MCP_EMBEDDINGS_MODEL to a model that the account may use; {MEANWHILE}",
    "gateway": f"the operator checks {ADDRESS}, below which `embeddings` has to lie; {MEANWHILE}",
    "unreachable": f"the operator checks network, proxy and {ADDRESS}; {MEANWHILE}",
    "overloaded": "call again",
    "too_large": MEANWHILE,
}


def explain_status(status: int, headers: Mapping[str, str], body: bytes, *, model: str, secret: str) -> Failure:
    """The failure behind an answer other than 200."""
    told = read_error(body)
    kind = kind_of(status, headers, told, model) or "gateway"
    private = scrub(f"HTTP {status} {told.type} {told.code}: {told.message}", secret)
    error = EmbeddingsError(kind, f"{WHATS[kind]} (HTTP {status})", next_step=NEXT_STEPS[kind], private=private)
    if kind == "overloaded":
        asked_s = retry_after_s(headers, time.time())
        return Failure(error, retry=True, asked_s=asked_s, limits_rate=status == 429)
    return Failure(error, plainer=status in (400, 422) and "encoding_format" in told.words)


def explain(error: Exception, *, secret: str) -> Failure:
    """The failure behind an exception of the HTTP client."""

    def failure(kind: Kind, what: str, **more: Any) -> Failure:
        private = scrub(f"{type(error).__name__}: {error}", secret)
        return Failure(EmbeddingsError(kind, what, next_step=NEXT_STEPS[kind], private=private), **more)

    if isinstance(error, NOT_SENT):
        what = f"no connection to the embeddings endpoint: {network_reason(error)}"
        return failure("unreachable", what, retry=may_open(error), how="unsent")
    if isinstance(error, httpx2.UnsupportedProtocol | httpx2.InvalidURL | httpx2.LocalProtocolError):
        return failure("gateway", "the address or a header of the requests is not valid")
    return failure("unreachable", "the connection to the embeddings endpoint broke off", retry=True, how="broken")


def no_endpoint() -> Failure:
    """Something else lives at this address. Its body is not quoted: it may be a whole page."""
    what = f"what answers at {ADDRESS} is no embeddings endpoint: its answer is not in their format"
    return Failure(EmbeddingsError("gateway", what, next_step=NEXT_STEPS["gateway"]), how="broken")


def cap_reached(cap_usd: float, spent_usd: float) -> EmbeddingsError:
    """The day's money is spent, or too little is left."""
    return EmbeddingsError(
        "cap",
        f"today's cap of {cap_usd:.2f} US dollars for embeddings leaves no room for a request ({spent_usd:.4f} spent)",
        rule="a request is sent when its worst case fits; the day ends at 0:00 UTC",
        next_step=f"the operator raises SAM2_MCP_EMBEDDINGS_DAILY_CAP_USD, or tomorrow; {MEANWHILE}",
    )


def unwritable() -> EmbeddingsError:
    """Nobody could tell what is spent."""
    return EmbeddingsError(
        "cap",
        "the record of what embeddings cost cannot be written, so nothing is spent",
        next_step=f"the operator checks the folder `spending` in the data folder; {MEANWHILE}",
    )


def no_time() -> EmbeddingsError:
    """The deadline came first."""
    return EmbeddingsError("timeout", "the embeddings endpoint gave no answer in the time left", next_step="call again")


def rate_limited() -> EmbeddingsError:
    """What the provider has told another request."""
    return EmbeddingsError("overloaded", "the embeddings endpoint limits our rate", next_step="call again")
