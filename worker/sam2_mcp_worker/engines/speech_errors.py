"""What went wrong with a request to a speech endpoint, from HTTP to a SpeechError and what may help.

Messages of servers are never shown to agents and only in part to the log: a gateway may echo the key.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, ClassVar

import httpx2

from sam2_mcp_worker.engines import provider_errors
from sam2_mcp_worker.engines.network_errors import NOT_SENT, may_open, network_reason, scrub
from sam2_mcp_worker.engines.openai_errors import Told, kind_of, read_error
from sam2_mcp_worker.engines.provider_errors import Kind, ProviderError
from sam2_mcp_worker.engines.retry import retry_after_s

MEANWHILE = "local Whisper hears meanwhile where it is installed"
# What endpoints say that know no times of segments, or not for this model.
PLAINER_WORDS = ("response_format", "verbose_json", "timestamp_granularities")
# So they speak of any field, and of sound that they cannot read ("unknown audio format").
VAGUE_WORDS = ("extra inputs", "unknown", "unexpected")
SOUND_WORDS = ("audio", "file format", "decode", "too short", "corrupted")


class SpeechError(ProviderError):
    """Its code is `speech_` plus the kind."""

    family: ClassVar[str] = "speech"


Failure = provider_errors.Failure[SpeechError]

NEXT_STEPS: dict[Kind, str] = {
    "auth": f"the operator sets a valid OPENAI_API_KEY; {MEANWHILE}",
    "credit": f"the operator adds credit or raises the limit in the provider's console; {MEANWHILE}",
    "model": f"the operator sets SAM2_MCP_SPEECH_MODEL to a model that the account may use; {MEANWHILE}",
    "gateway": f"the operator checks OPENAI_BASE_URL, below which `audio/transcriptions` has to lie; {MEANWHILE}",
    "unreachable": f"the operator checks network, proxy and OPENAI_BASE_URL; {MEANWHILE}",
    "overloaded": "call again",
    "too_large": "the rest of the recording is not concerned",
    "refused": "the rest of the recording is not concerned",
}


def explain_status(status: int, headers: Mapping[str, str], body: bytes, *, model: str, secret: str) -> Failure:
    """The failure behind an answer other than 200."""
    told = read_error(body)

    def failure(kind: Kind, what: str, **more: Any) -> Failure:
        about = " ".join(part for part in (f"HTTP {status}", told.type, told.code) if part)
        private = scrub(f"{about}: {told.message}", secret)
        error = SpeechError(kind, f"{what} (HTTP {status})", next_step=NEXT_STEPS[kind], private=private)
        return Failure(error, **more)

    kind = kind_of(status, headers, told, model)
    if kind == "overloaded":
        asked_s = retry_after_s(headers, time.time())
        return failure(
            kind,
            "the speech endpoint is overloaded or limits our rate",
            retry=True,
            asked_s=asked_s,
            limits_rate=status == 429,
        )
    if kind is not None:
        return failure(kind, _meaning(kind, status, model))
    return failure(*_complaint(status, told), plainer=_wants_plainer(status, told))


def _meaning(kind: Kind, status: int, model: str) -> str:
    if kind == "credit":
        return "the account has no credit or has reached its spend limit"
    if kind == "auth":
        what = "does not accept the API key" if status == 401 else "does not permit this to the API key"
        return f"the speech endpoint {what}"
    if kind == "unreachable":
        return "the proxy wants a name and password"
    if kind == "model":
        return f"the speech endpoint does not know the model {model}"
    return "the speech endpoint refused this piece for its size"


def _complaint(status: int, told: Told) -> tuple[Kind, str]:
    if status in (400, 422) and not _wants_plainer(status, told) and any(w in told.words for w in SOUND_WORDS):
        return "refused", "the speech endpoint could not hear this piece"
    if 300 <= status < 400:
        return "gateway", "the speech endpoint sends requests on to another address, which sound does not follow"
    return "gateway", "what answers at OPENAI_BASE_URL does not understand our requests"


def _wants_plainer(status: int, told: Told) -> bool:
    """Whether the endpoint may understand a request for text alone."""
    named, vague, sound = (
        any(word in told.words for word in words) for words in (PLAINER_WORDS, VAGUE_WORDS, SOUND_WORDS)
    )
    return status in (400, 422) and (named or (vague and not sound))


def explain(error: Exception, *, secret: str) -> Failure:
    """The failure behind an exception of the HTTP client."""

    def failure(kind: Kind, what: str, **more: Any) -> Failure:
        private = scrub(f"{type(error).__name__}: {error}", secret)
        return Failure(SpeechError(kind, what, next_step=NEXT_STEPS[kind], private=private), **more)

    if isinstance(error, NOT_SENT):
        what = f"no connection to the speech endpoint: {network_reason(error)}"
        return failure("unreachable", what, retry=may_open(error), how="unsent")
    if isinstance(error, httpx2.UnsupportedProtocol | httpx2.InvalidURL | httpx2.LocalProtocolError):
        return failure("gateway", "the address or a header of the requests is not valid")
    return failure("unreachable", "the connection to the speech endpoint broke off", retry=True, how="broken")


def no_endpoint(what: str, *, status: int = 200) -> Failure:
    """Something else lives at this address. Its body is not quoted: it may be a whole page."""
    told = f"what answers at OPENAI_BASE_URL is no speech endpoint: {what}"
    error = SpeechError("gateway", told, next_step=NEXT_STEPS["gateway"], private=f"HTTP {status}")
    return Failure(error, how="broken")


def cap_reached(cap_usd: float, spent_usd: float) -> SpeechError:
    """The day's money is spent, or too little is left."""
    return SpeechError(
        "cap",
        f"today's cap of {cap_usd:.2f} US dollars for speech leaves no room for a request ({spent_usd:.4f} spent)",
        rule="a request is sent when its price fits; the day ends at 0:00 UTC",
        next_step=f"the operator raises SAM2_MCP_SPEECH_DAILY_CAP_USD, or tomorrow; {MEANWHILE}",
    )


def unwritable() -> SpeechError:
    """Nobody could tell what is spent."""
    return SpeechError(
        "cap",
        "the record of what speech costs cannot be written, so nothing is spent",
        next_step=f"the operator checks the folder `spending` in the data folder; {MEANWHILE}",
    )


def no_time() -> SpeechError:
    """The deadline came first."""
    return SpeechError("timeout", "the speech endpoint gave no answer in the time there was", next_step="call again")


def rate_limited() -> SpeechError:
    """What the provider has told another request."""
    return SpeechError("overloaded", "the speech endpoint limits our rate", next_step="call again")
