"""One request to Claude over the official SDK: sent, streamed, and what came of it.

Owns the SDK's client; knows neither retries nor limits. Neither picture, text nor key is logged.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from dataclasses import dataclass, field
from typing import Any, cast

import anthropic
import httpx2
from anthropic.types import ModelInfo

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines.claude_errors import Failure, explain
from sam2_mcp_worker.engines.claude_prompt import SYSTEM
from sam2_mcp_worker.engines.ports import TilePicture
from sam2_mcp_worker.engines.vision_errors import VisionError
from sam2_mcp_worker.spending import Usage

# Where nothing answers at all, a request must not use up its whole time finding that out; the SDK's own figure.
CONNECT_TIMEOUT_S = 5.0
# A token is at most this many characters of the answers here; whoever sends more than allowed is no Messages API.
CHARS_PER_TOKEN = 16
# Korean takes about 1.3 tokens a syllable of three bytes, numbers and brackets about one for two bytes.
BYTES_PER_TOKEN = 2
# No request has more tokens; a server that tells more is not believed, and the sum must fit into the record of costs.
MOST_TOKENS = 10**8

# While a stream is read the HTTP client's errors come unwrapped; the last two are what unreadable events raise.
SDK_ERRORS = (
    anthropic.AnthropicError,
    httpx2.HTTPError,
    httpx2.StreamError,
    httpx2.InvalidURL,
    ValueError,
    RecursionError,
)

# At DEBUG the SDK logs requests as they are, pictures included.
for _name in ("anthropic", "httpx2", "httpcore2"):
    logging.getLogger(_name).setLevel(logging.WARNING)


@dataclass(frozen=True, slots=True)
class Question:
    """Everything that one request says, but for the picture's bytes."""

    model_id: str
    max_tokens: int
    effort: str
    picture: TilePicture
    text: str
    schema: dict[str, Any]


@dataclass(slots=True)
class Answer:
    """What has arrived so far; filled while it streams, so that a cut or cancelled request leaves what it had.

    `stop_reason` is empty until the model has ended; `timed_out` says that the deadline came first. `thought_bytes` is
    what the model put out besides its answer, `told` says whether the provider told at the end what that came to.
    """

    pieces: list[str] = field(default_factory=list)
    chars: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    thought_bytes: int = 0
    told: bool = False
    begun: bool = False
    stop_reason: str = ""
    timed_out: bool = False
    failure: Failure | None = None

    @property
    def text(self) -> str:
        """The answer's text so far."""
        return "".join(self.pieces)

    def add(self, piece: str) -> None:
        """More text has come."""
        self.pieces.append(piece)
        self.chars += len(piece)

    def tokens(self, input_estimate: int) -> Usage:
        """Tokens to book. Where the provider had no time to tell, they are estimated from what was sent and came."""
        unknown = self.timed_out or self.failure is None or self.failure.how == "broken"
        if not self.begun and not unknown:
            return Usage(1, 0, 0)
        came = len(self.text.encode("utf-8", "replace")) + self.thought_bytes
        estimate = 0 if self.told else -(-came // BYTES_PER_TOKEN)
        return Usage(1, self.input_tokens or input_estimate, max(self.output_tokens, estimate))


class ClaudeClient:
    """The SDK, set up so that nothing waits or retries behind our back."""

    def __init__(self, api_key: str, base_url: str | None) -> None:
        self._key = api_key
        self._sdk = anthropic.AsyncAnthropic(
            api_key=api_key,
            base_url=base_url,
            max_retries=0,  # its retries obey any retry-after and know no deadline (reference/vision.md 1)
            timeout=httpx2.Timeout(60.0, connect=CONNECT_TIMEOUT_S),
            open_telemetry=False,
            # A redirect would carry the picture to a host that nobody has set.
            http_client=anthropic.DefaultAsyncHttpxClient(follow_redirects=False),
        )

    @property
    def host(self) -> str:
        """Where pictures go."""
        return str(self._sdk.base_url.host)

    async def close(self) -> None:
        """Close its connections."""
        await self._sdk.close()

    async def ask(self, question: Question, answer: Answer, until: Deadline, *, guarded: bool) -> None:
        """Send a question and fill `answer` until it ends, fails, or the time is over.

        `guarded` asks the API to refuse a picture that it would scale down; not every gateway knows the field. What
        goes wrong outside of this machine is in the answer too.
        """
        try:
            async with asyncio.timeout(until.remaining_s()):
                await self._stream(question, answer, until, guarded)
        except TimeoutError:
            answer.timed_out = True
        except SDK_ERRORS as error:
            answer.failure = self.explain(error, question.model_id)

    async def retrieve(self, model_id: str, timeout_s: float) -> ModelInfo | VisionError:
        """What the provider's models endpoint says of a model, or why it says nothing."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._sdk.models.retrieve(
                    model_id, timeout=httpx2.Timeout(timeout_s, connect=CONNECT_TIMEOUT_S)
                )
        except TimeoutError:
            return VisionError("timeout", f"the models endpoint gave no answer in {timeout_s:.0f} s")
        except anthropic.APIStatusError as error:
            # A gateway need not have the endpoint: only a 404 that names the model says something about the model,
            # and a key may be good for messages alone.
            named = error.type is not None and model_id in str(error.api_message)
            if error.status_code == 403 or (error.status_code == 404 and not named):
                return VisionError("gateway", f"the models endpoint answers HTTP {error.status_code}")
            return self.explain(error, model_id).error
        except SDK_ERRORS as error:
            return self.explain(error, model_id).error

    def explain(self, error: Exception, model_id: str) -> Failure:
        """What an exception of the SDK means."""
        return explain(error, model_id=model_id, secret=self._key)

    async def _stream(self, question: Question, answer: Answer, until: Deadline, guarded: bool) -> None:
        data = await asyncio.to_thread(question.picture.path.read_bytes)
        image: dict[str, Any] = {
            "type": "image",
            "source": {
                "type": "base64",
                "media_type": question.picture.mime_type,
                "data": base64.b64encode(data).decode("ascii"),
            },
        }
        if guarded:
            image["transformations"] = {"oversized_image": "error"}
        content = [image, {"type": "text", "text": question.text}]
        stream = await self._sdk.messages.create(
            model=question.model_id,
            max_tokens=question.max_tokens,
            system=SYSTEM,
            messages=cast(Any, [{"role": "user", "content": content}]),
            output_config=cast(
                Any, {"format": {"type": "json_schema", "schema": question.schema}, "effort": question.effort}
            ),
            stream=True,
            # Ours is the shorter one, so that a slow answer is told from a connection that never came about.
            timeout=httpx2.Timeout(until.remaining_s() + 5.0, connect=CONNECT_TIMEOUT_S),
        )
        async with stream:
            async for event in stream:
                take(event, answer)
                if answer.chars > question.max_tokens * CHARS_PER_TOKEN:
                    raise ValueError("an answer longer than was allowed")
        if not answer.begun:
            raise ValueError("no events")


def take(event: Any, answer: Answer) -> None:
    """Add one event of the stream. Fields are read with care: the SDK does not check what servers send."""
    kind = getattr(event, "type", None)
    if kind == "message_start":
        answer.begun = True
        _take_usage(getattr(getattr(event, "message", None), "usage", None), answer)
    elif kind == "content_block_delta":
        delta = getattr(event, "delta", None)
        text = getattr(delta, "text", None)
        if getattr(delta, "type", None) == "text_delta" and isinstance(text, str):  # thinking has deltas of other types
            answer.add(text)
        elif isinstance(thought := getattr(delta, "thinking", None), str):
            answer.thought_bytes += len(thought.encode("utf-8", "replace"))
    elif kind == "message_delta":
        reason = getattr(getattr(event, "delta", None), "stop_reason", None)
        answer.stop_reason = reason if isinstance(reason, str) else answer.stop_reason
        usage = getattr(event, "usage", None)
        answer.told = answer.told or _count(usage, "output_tokens") > 0
        _take_usage(usage, answer)


def _take_usage(usage: Any, answer: Answer) -> None:
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    answer.input_tokens = max(answer.input_tokens, sum(_count(usage, name) for name in names))
    answer.output_tokens = max(answer.output_tokens, _count(usage, "output_tokens"))


def _count(usage: Any, name: str) -> int:
    value = getattr(usage, name, None)
    return min(value, MOST_TOKENS) if isinstance(value, int) and value > 0 else 0
