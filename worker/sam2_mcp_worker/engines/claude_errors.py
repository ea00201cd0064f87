"""What went wrong with a request to Claude, from the SDK's exceptions to a VisionError and what may help.

Messages of servers are never shown to agents and only in part to the log: a gateway may echo the picture or the key.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import anthropic
import httpx2

from sam2_mcp_worker.engines import provider_errors
from sam2_mcp_worker.engines.network_errors import NOT_SENT, may_open, network_reason, scrub
from sam2_mcp_worker.engines.provider_errors import Kind
from sam2_mcp_worker.engines.retry import may_retry, retry_after_s
from sam2_mcp_worker.engines.vision_errors import VisionError

MEANWHILE = "texts are read by the local engine meanwhile"
ASK_OPERATOR = f"the operator runs `sam2-mcp-worker doctor`; {MEANWHILE}"
# Errors inside a stream come after the status line, so that their type must stand for it.
STATUS_OF_TYPE = {
    "rate_limit_error": 429,
    "overloaded_error": 529,
    "api_error": 500,
    "timeout_error": 504,
    "authentication_error": 401,
    "permission_error": 403,
    "billing_error": 402,
    "not_found_error": 404,
    "request_too_large": 413,
    "invalid_request_error": 400,
}
SPEND_CODES = (
    "contract_spend_limit_reached",
    "enforced_spend_limit_reached",
    "linked_organization_spend_limit_reached",
    "ramp_limit_exceeded",
)


Failure = provider_errors.Failure[VisionError]


def explain(error: Exception, *, model_id: str, secret: str) -> Failure:
    """The failure behind an exception of the SDK or its HTTP client."""
    if isinstance(error, anthropic.APIStatusError):
        return _explain_status(error, model_id, secret)
    cause = error.__cause__ if isinstance(error, anthropic.APIConnectionError) and error.__cause__ else error
    if isinstance(cause, NOT_SENT):
        return Failure(_unreachable(cause, secret), retry=may_open(cause), how="unsent")
    if isinstance(cause, httpx2.UnsupportedProtocol | httpx2.InvalidURL | httpx2.LocalProtocolError):
        return Failure(_vision("gateway", "the address or a header of the requests is not valid", cause, secret))
    if isinstance(cause, httpx2.TransportError | httpx2.StreamError | anthropic.APIConnectionError):
        return Failure(_vision("unreachable", "the connection broke off", cause, secret), retry=True, how="broken")
    return Failure(_no_messages_api("its answer is not in the format of the Messages API", cause, secret), how="broken")


def _explain_status(error: anthropic.APIStatusError, model_id: str, secret: str) -> Failure:
    in_stream = error.status_code < 300
    status = STATUS_OF_TYPE.get(str(error.type), 500) if in_stream else error.status_code
    headers: Mapping[str, str] = error.response.headers
    message = str(error.api_message or "")
    if status == 402 or error.error_code in SPEND_CODES or "credit balance" in message.lower():
        return Failure(
            _status_error("credit", "the account has no credit or has reached its spend limit", error, secret)
        )
    # What the SDK's headers say about a stream that began well tells nothing about its failure.
    if may_retry(status, {} if in_stream else headers):
        asked = None if in_stream else retry_after_s(headers, time.time())
        told = f"the provider is overloaded or limits our rate (HTTP {status})"
        reason = _status_error("overloaded", told, error, secret)
        return Failure(reason, retry=True, asked_s=asked, limits_rate=status == 429)
    if status == 407:
        return Failure(_status_error("unreachable", "the proxy wants a name and password", error, secret))
    if error.type is None:
        what = f"it answered HTTP {status} in a form that the Messages API does not have"
        # A gateway that checks requests by itself complains of unknown fields in its own words.
        return Failure(_no_messages_api(what, error, secret), plainer=status in (400, 422))
    return _explain_typed(status, message.lower(), error, model_id, secret)


def _explain_typed(status: int, message: str, error: anthropic.APIStatusError, model_id: str, secret: str) -> Failure:
    if status in (401, 403):
        told = "does not accept the API key" if status == 401 else "does not permit this to the API key"
        return Failure(_status_error("auth", f"the provider {told}", error, secret))
    if status == 404:
        return Failure(_status_error("model", f"the provider does not know the model {model_id}", error, secret))
    if status == 413 or error.error_code == "image_dimensions_too_large" or _about_size(message):
        return Failure(_status_error("too_large", "the provider refused this picture for its size", error, secret))
    if "content filter" in message:
        return Failure(_status_error("refused", "the provider's filter held this answer back", error, secret))
    if status in (400, 422) and not _about_fields(message) and "image" in message:
        return Failure(_status_error("refused", "the provider could not process this picture", error, secret))
    what = "the provider, or a gateway before it, does not understand our requests"
    return Failure(_status_error("gateway", what, error, secret), plainer=status in (400, 422))


def _about_size(message: str) -> bool:
    return "image" in message and any(word in message for word in ("exceed", "too large", "maximum"))


def _about_fields(message: str) -> bool:
    return any(
        word in message for word in ("transformations", "extra inputs", "unknown", "unexpected", "output_config")
    )


NEXT_STEPS: dict[Kind, str] = {
    "auth": f"the operator sets a valid ANTHROPIC_API_KEY; {MEANWHILE}",
    "credit": f"the operator adds credit or raises the limit in the provider's console; {MEANWHILE}",
    "model": "the operator sets SAM2_MCP_CLAUDE_FAST_MODEL or SAM2_MCP_CLAUDE_ACCURATE_MODEL to a model that the "
    f"account may use; {MEANWHILE}",
    "gateway": f"the operator checks ANTHROPIC_BASE_URL; {MEANWHILE}",
    "unreachable": f"the operator checks network, proxy and ANTHROPIC_BASE_URL; {MEANWHILE}",
    "overloaded": "call again",
    "too_large": "the local engine reads this part",
    "refused": "the local engine reads this part",
}


def _vision(kind: Kind, what: str, cause: BaseException, secret: str) -> VisionError:
    return VisionError(
        kind, what, next_step=NEXT_STEPS[kind], private=scrub(f"{type(cause).__name__}: {cause}", secret)
    )


def _status_error(kind: Kind, what: str, error: anthropic.APIStatusError, secret: str) -> VisionError:
    told = f"HTTP {error.status_code} {error.type or ''} {error.error_code or ''} {error.request_id or ''}"
    if "HTTP" not in what:
        what = f"{what} (HTTP {error.status_code}{f' {error.type}' if error.type else ''})"
    private = scrub(f"{' '.join(told.split())}: {error.api_message or ''}", secret)
    return VisionError(kind, what, next_step=NEXT_STEPS[kind], private=private)


def _no_messages_api(what: str, cause: BaseException, secret: str) -> VisionError:
    # The body is not quoted: it may be a whole page, or our own request.
    private = type(cause).__name__
    if isinstance(cause, anthropic.APIStatusError):
        private = f"HTTP {cause.status_code}"
    told = f"what answers at ANTHROPIC_BASE_URL is no Messages API: {what}"
    return VisionError("gateway", told, next_step=NEXT_STEPS["gateway"], private=scrub(private, secret))


def _unreachable(cause: BaseException, secret: str) -> VisionError:
    return _vision("unreachable", f"no connection to the provider: {network_reason(cause)}", cause, secret)


def cap_reached(cap_usd: float, spent_usd: float) -> VisionError:
    """The day's money is spent, or too little is left."""
    return VisionError(
        "cap",
        f"today's cap of {cap_usd:.2f} US dollars leaves no room for a request ({spent_usd:.4f} spent)",
        rule="a request is sent when its worst case fits; the day ends at 0:00 UTC",
        next_step=f"the operator raises SAM2_MCP_CLAUDE_DAILY_CAP_USD, or tomorrow; {MEANWHILE}",
    )


def no_time() -> VisionError:
    """The deadline came first."""
    return VisionError("timeout", "the model gave nothing usable in the time there was", next_step="call again")


def broken_off() -> VisionError:
    """The stream ended before the answer did."""
    return VisionError("unreachable", "the model's answer broke off", next_step=f"call again; {MEANWHILE}")


def rate_limited() -> VisionError:
    """What the provider has told another request."""
    return VisionError("overloaded", "the provider limits our rate", next_step="call again")


def unwritable() -> VisionError:
    """Nobody could tell what is spent."""
    return VisionError(
        "cap",
        "the record of what Claude costs cannot be written, so nothing is spent",
        next_step=f"the operator checks the folder `spending` in the data folder; {MEANWHILE}",
    )
