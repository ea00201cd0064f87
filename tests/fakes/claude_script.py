"""What the scripted Claude does to each request: how long it takes, and what goes wrong. Data only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, log
from random import Random
from typing import Any, Literal

from tests.fakes.claude_rules import MODELS, Model

KEY = "sk-ant-test-scripted"
# Of the standard normal distribution.
_P95 = 1.6449
Ending = Literal["whole", "max_tokens", "reset", "stall", "error", "refusal"]


@dataclass(frozen=True)
class Latency:
    """Log-normal, by its median and 95th percentile; both 0 answers at once."""

    median_s: float = 0.0
    p95_s: float = 0.0

    def draw(self, random: Random) -> float:
        if self.median_s <= 0:
            return 0.0
        return exp(random.gauss(log(self.median_s), log(self.p95_s / self.median_s) / _P95))


# The distribution of the schedule.
REAL = Latency(2.0, 4.5)


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong.

    With a `status` of 400 or more the request gets that error. Otherwise it is answered: of the answer's text only
    the share `sent` goes out, then comes the `ending`; `rewrite` changes the text, `answer` the items before.
    """

    name: str
    status: int = 200
    error: str = "api_error"
    message: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    html: str = ""
    delay_s: float = 0.0
    sent: float = 1.0
    ending: Ending = "whole"
    rewrite: Callable[[str], str] | None = None
    answer: Callable[[dict[str, Any]], dict[str, Any]] | None = None


@dataclass
class Script:
    """`faults` meet the first requests in their order, None leaving one alone; `always` meets all others, each of
    `chances` by its probability (from `seed`), and `choose` decides by request number and page name instead.

    Seconds are multiplied by `time_scale`, except those in headers. `unknown_fields` is what a gateway does not know
    (`transformations`, `output_config`, `effort` ...). `box_error_px` is how far boxes are off; `override` is the
    answer to pictures that are no known page, which otherwise are answered with empty lists and counted.
    """

    faults: Sequence[Fault | None] = ()
    always: Fault | None = None
    chances: Mapping[Fault, float] = field(default_factory=dict)
    choose: Callable[[int, str], Fault | None] | None = None
    latency: Latency = Latency()
    seed: int = 0
    time_scale: float = 1.0
    key: str = KEY
    models: Mapping[str, Model] = field(default_factory=lambda: dict(MODELS))
    models_endpoint: bool = True
    unknown_fields: tuple[str, ...] = ()
    box_error_px: int = 2
    thinks: bool = False
    override: dict[str, Any] | None = None


def rate_limited(retry_after: str = "1") -> Fault:
    """429; `retry_after` is seconds or an HTTP date, empty for none."""
    headers = (("retry-after", retry_after),) if retry_after else ()
    text = "This request would exceed your organization's rate limit of 50 requests per minute."
    return Fault("rate_limited", 429, "rate_limit_error", text, (*headers, ("x-should-retry", "true")))


def overloaded(retry_after: str = "") -> Fault:
    headers = (("retry-after", retry_after),) if retry_after else ()
    return Fault("overloaded", 529, "overloaded_error", "Overloaded", (*headers, ("x-should-retry", "true")))


def server_error(status: int = 500) -> Fault:
    return Fault("server_error", status, "api_error", "Internal server error", (("x-should-retry", "true"),))


def gateway_page(status: int = 502) -> Fault:
    """A gateway's own error page, which is no JSON."""
    return Fault("gateway_page", status, html=f"<html><h1>{status} Bad Gateway</h1></html>")


def no_api() -> Fault:
    """Something else lives at this address: a page, with status 200."""
    return Fault("no_api", 200, html="<html><h1>Welcome</h1></html>")


def slow(seconds: float) -> Fault:
    return Fault("slow", delay_s=seconds)


def stall(sent: float = 0.5) -> Fault:
    """Goes quiet in the middle, the connection stays open."""
    return Fault("stall", sent=sent, ending="stall")


def cut(sent: float = 0.5) -> Fault:
    """Out of tokens in the middle of the JSON."""
    return Fault("cut", sent=sent, ending="max_tokens")


def reset(sent: float = 0.5) -> Fault:
    """The connection breaks in the middle."""
    return Fault("reset", sent=sent, ending="reset")


def error_event(sent: float = 0.5) -> Fault:
    """An `error` event in the middle of the stream."""
    return Fault("error_event", 200, "overloaded_error", "Overloaded", sent=sent, ending="error")


def refusal(sent: float = 0.0) -> Fault:
    """The model declines: HTTP 200, and what was sent before must be thrown away."""
    return Fault("refusal", sent=sent, ending="refusal")


def prose() -> Fault:
    """A gateway that ignores the schema: JSON in a fence, with talk around it."""
    return Fault("prose", rewrite=lambda text: f"Here is what I can see:\n\n```json\n{text}\n```\nLet me know!")


def not_json() -> Fault:
    return Fault("not_json", rewrite=lambda _: "I'm sorry, I cannot read this image.")


TOO_LARGE = Fault(
    "too_large", 400, "invalid_request_error", "messages.0.content.0.image.source.base64: image exceeds 5 MB maximum"
)
BODY_TOO_LARGE = Fault("body_too_large", 413, "invalid_request_error", "Request exceeds the maximum size")
WRONG_KEY = Fault("wrong_key", 401, "authentication_error", "invalid x-api-key")
NO_PERMISSION = Fault(
    "no_permission", 403, "permission_error", "Your API key does not have permission to use the specified resource."
)
_CREDIT = (
    "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to purchase credits."
)
NO_CREDIT = Fault("no_credit", 400, "invalid_request_error", _CREDIT)
PAYMENT_REQUIRED = Fault("payment_required", 402, "billing_error", _CREDIT)
UNKNOWN_MODEL = Fault("unknown_model", 404, "not_found_error", "model: claude-none")


def _each(answer: dict[str, Any], change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    return {
        name: [change(dict(item)) if isinstance(item, dict) else item for item in value]
        if isinstance(value, list)
        else value
        for name, value in answer.items()
    }


def _mislabel(item: dict[str, Any]) -> dict[str, Any]:
    return {name: "gold bar" if name in ("label", "kind", "class") else value for name, value in item.items()}


def _nonsense_box(item: dict[str, Any]) -> dict[str, Any]:
    return {
        name: [90, 90, 20, -5] if isinstance(value, list) and len(value) == 4 else value for name, value in item.items()
    }


WRONG_LABELS = Fault("wrong_labels", answer=lambda answer: _each(answer, _mislabel))
WRONG_BOXES = Fault("wrong_boxes", answer=lambda answer: _each(answer, _nonsense_box))
EVERY_FAULT: tuple[Fault, ...] = (
    rate_limited(),
    rate_limited("3600"),
    rate_limited(""),
    overloaded(),
    server_error(),
    gateway_page(),
    no_api(),
    slow(3.0),
    stall(),
    cut(),
    reset(),
    error_event(),
    refusal(),
    refusal(0.5),
    prose(),
    not_json(),
    TOO_LARGE,
    BODY_TOO_LARGE,
    WRONG_KEY,
    NO_PERMISSION,
    NO_CREDIT,
    PAYMENT_REQUIRED,
    UNKNOWN_MODEL,
    WRONG_LABELS,
    WRONG_BOXES,
)
