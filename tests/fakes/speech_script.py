"""What the scripted speech endpoint does to each request: how long it takes, and what goes wrong. Data only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.claude_script import Fault, Latency

KEY = "sk-test-speech-scripted"
AT_ONCE = Latency()


@dataclass
class SpeechScript:
    """`faults` meet the first requests in their order, None leaving one alone; `always` meets all others, and `choose`
    decides by request number and the piece's place in the known sound (None for unknown sound) instead.

    Seconds are multiplied by `time_scale`, except those in headers. A gateway with `verbose` False knows no
    `verbose_json`: it refuses it, or, with `ignores` True, answers with text alone. `invents` are words over sound in
    which nobody speaks, with the probabilities that Whisper gives them.
    """

    faults: Sequence[Fault | None] = ()
    always: Fault | None = None
    choose: Callable[[int, float | None], Fault | None] | None = None
    latency: Latency = AT_ONCE
    seed: int = 0
    time_scale: float = 1.0
    key: str = KEY
    models: tuple[str, ...] = ("whisper-1",)
    models_endpoint: bool = True
    verbose: bool = True
    ignores: bool = False
    language: str = "english"
    invents: tuple[dict[str, Any], ...] = ()
    tells: Mapping[str, Any] = field(default_factory=dict)
    """Put into every answer, over what is there: for answers that make no sense."""


def _error(status: int, message: str, kind: str, code: str | None, *, retry_after: str = "") -> Fault:
    headers = (("retry-after", retry_after),) if retry_after else ()
    name = code or kind
    return Fault(name, status, kind, message, (*headers, ("x-error-code", code or "")))


def rate_limited(retry_after: str = "1") -> Fault:
    message = "Rate limit reached for whisper-1 on requests per min (RPM): Limit 50, Used 50, Requested 1."
    return _error(429, message, "requests", "rate_limit_exceeded", retry_after=retry_after)


def server_error(status: int = 500) -> Fault:
    return _error(
        status, "The server had an error while processing your request. Sorry about that!", "server_error", None
    )


WRONG_KEY = _error(401, "Incorrect API key provided: sk-***d.", "invalid_request_error", "invalid_api_key")
NO_PERMISSION = _error(403, "You have insufficient permissions for this operation.", "invalid_request_error", None)
NO_CREDIT = _error(
    429,
    "You exceeded your current quota, please check your plan and billing details.",
    "insufficient_quota",
    "insufficient_quota",
)
UNKNOWN_MODEL = _error(
    404,
    "The model `whisper-1` does not exist or you do not have access to it.",
    "invalid_request_error",
    "model_not_found",
)
BODY_TOO_LARGE = _error(413, "413: Maximum content size limit (26214400) exceeded", "server_error", None)
BAD_SOUND = _error(400, "Audio file might be corrupted or unsupported", "invalid_request_error", "invalid_value")
REDIRECT = Fault("redirect", 307, headers=(("location", "http://127.0.0.1:9/v1/audio/transcriptions"),), html="moved")
# Whisper's well-known inventions over sound without speech, and how sure it is of them.
OVER_SILENCE: tuple[dict[str, Any], ...] = (
    {"text": " Thank you for watching!", "no_speech_prob": 0.93, "avg_logprob": -0.61, "compression_ratio": 0.75},
)
A_LOOP: tuple[dict[str, Any], ...] = (
    {"text": " and so on" * 40, "no_speech_prob": 0.2, "avg_logprob": -0.15, "compression_ratio": 16.0},
)
