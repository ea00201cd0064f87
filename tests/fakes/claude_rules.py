"""What the Messages API refuses, as the 5.5 models do, and what its standard tier would silently scale down.

Owns the rules and their texts; says nothing about answers. Figures: shared/reference/vision.md, section 1. The texts
are those of public reports where there are any (prefill, sizes, credit, extra inputs); nobody may depend on the others.
"""

from __future__ import annotations

import base64
import binascii
import io
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from PIL import Image
from tests.fakes.claude_schema_rules import schema_fault

MAX_BODY_BYTES = 32 * 1024**2
MAX_BASE64 = 5 * 1024**2
MAX_SIDE_PX, MANY_IMAGES, MAX_SIDE_OF_MANY_PX, MAX_IMAGES = 8000, 20, 2000, 600
# The standard tier's native resolution: above it a picture is scaled down without a word.
NATIVE_SIDE_PX, NATIVE_TOKENS, PATCH_PX = 1568, 1568, 28
MAX_CACHE_MARKS = 4
VERSIONS = ("2023-06-01", "2026-10-21")
EFFORTS = ("low", "medium", "high", "xhigh", "max")
_FORMATS = {"JPEG": "image/jpeg", "PNG": "image/png", "GIF": "image/gif", "WEBP": "image/webp"}
_FIELDS = frozenset({"model", "messages", "max_tokens", "stream", "system", "output_config", "thinking", "tools"})
_FIELDS |= {"tool_choice", "metadata", "stop_sequences", "service_tier", "speed", "cache_control", "container"}
_FIELDS |= {"diagnostics", "inference_geo"}
_SAMPLING = ("temperature", "top_p", "top_k")


@dataclass(frozen=True)
class Model:
    """What the models endpoint tells, and the kinds of `thinking` that are accepted."""

    name: str
    max_tokens: int = 128_000
    thinking: tuple[str, ...] = ("adaptive",)
    sees: bool = True


MODELS = {
    "claude-haiku-5-5": Model("Claude Haiku 5.5"),
    "claude-sonnet-5-5": Model("Claude Sonnet 5.5", thinking=("adaptive", "between_tools")),
    "claude-opus-5-5": Model("Claude Opus 5.5"),
    "claude-fable-5-2": Model("Claude Fable 5.2"),
}


class Refusal(Exception):
    """An error reply of the API."""

    def __init__(self, status: int, error: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.status, self.error, self.message, self.details = status, error, message, details


def bad(message: str, **details: Any) -> Refusal:
    return Refusal(400, "invalid_request_error", message, details or None)


@dataclass(frozen=True)
class SentPicture:
    """One image block: its bytes, its size, and the factor by which the standard tier would scale it."""

    path: str
    data: bytes
    width_px: int
    height_px: int

    @property
    def tokens(self) -> int:
        return ceil(self.width_px / PATCH_PX) * ceil(self.height_px / PATCH_PX)

    @property
    def scale(self) -> float:
        side = min(1.0, NATIVE_SIDE_PX / max(self.width_px, self.height_px))
        return min(side, (NATIVE_TOKENS / self.tokens) ** 0.5) if self.tokens > NATIVE_TOKENS else side


@dataclass
class Asked:
    """A request that the API would accept."""

    model: str
    max_tokens: int
    stream: bool
    schema: dict[str, Any] | None
    effort: str
    text: str
    """All text of system prompt and messages."""
    pictures: list[SentPicture] = field(default_factory=list)

    @property
    def text_tokens(self) -> int:
        return ceil(len(self.text.encode("utf-8")) / 3)

    @property
    def input_tokens(self) -> int:
        return self.text_tokens + sum(picture.tokens for picture in self.pictures)


def check_request(body: Any, models: dict[str, Model], *, max_tokens_needed: bool = True) -> Asked:
    """Everything that the API looks at before it asks a model.

    Raises:
        Refusal: the error it would send.
    """
    if not isinstance(body, dict):
        raise bad("The request body must be a JSON object")
    _check_fields(body)
    name = body.get("model")
    if not isinstance(name, str) or not name:
        raise bad("model: Field required")
    if name not in models:
        raise Refusal(404, "not_found_error", f"model: {name}")
    max_tokens = _check_max_tokens(body, models[name], name) if max_tokens_needed else 0
    _check_thinking(body.get("thinking"), models[name])
    _check_tools(body)
    schema, effort = _check_output_config(body.get("output_config"))
    blocks = list(_blocks(body))
    _check_cache_marks(body, blocks)
    texts = [str(block.get("text", "")) for _, block in blocks if block["type"] == "text"]
    asked = Asked(name, max_tokens, bool(body.get("stream", False)), schema, effort, "\n".join(texts))
    asked.pictures = list(_check_pictures([(path, block) for path, block in blocks if block["type"] == "image"]))
    if asked.pictures and not models[name].sees:
        raise bad(f"{asked.pictures[0].path}: this model does not take images")
    return asked


def _check_fields(body: dict[str, Any]) -> None:
    for name in body:
        if name in _SAMPLING:
            raise bad(f"`{name}` is deprecated for this model.")
        if name == "output_format":
            raise bad("output_format: This field is deprecated. Use 'output_config.format' instead.")
        if name not in _FIELDS:
            raise bad(f"{name}: Extra inputs are not permitted")


def _check_max_tokens(body: dict[str, Any], model: Model, name: str) -> int:
    wanted = body.get("max_tokens")
    if wanted is None:
        raise bad("max_tokens: Field required")
    if not isinstance(wanted, int) or isinstance(wanted, bool) or wanted < 1:
        raise bad("max_tokens: Input should be greater than or equal to 1")
    if wanted > model.max_tokens:
        most = f"{model.max_tokens}, which is the maximum allowed number of output tokens for {name}"
        raise bad(f"max_tokens: {wanted} > {most}")
    return wanted


def _check_thinking(thinking: Any, model: Model) -> None:
    if thinking is None:
        return
    kind = thinking.get("type") if isinstance(thinking, dict) else None
    if kind not in model.thinking:
        raise bad(f'"thinking.type.{kind}" is not supported for this model.')
    if "budget_tokens" in thinking:
        raise bad(f"thinking.{kind}.budget_tokens: Extra inputs are not permitted")


def _check_tools(body: dict[str, Any]) -> None:
    kind = (body.get("tool_choice") or {}).get("type", "auto")
    if kind in ("any", "tool"):
        raise bad(f'tool_choice: "{kind}" is not supported for this model.')


def _check_output_config(config: Any) -> tuple[dict[str, Any] | None, str]:
    if config is None:
        return None, "high"
    for name in config:
        if name not in ("format", "effort"):
            raise bad(f"output_config.{name}: Extra inputs are not permitted")
    effort = config.get("effort") or "high"
    if effort not in EFFORTS:
        raise bad(f"output_config.effort: Input should be {', '.join(EFFORTS)}")
    answer = config.get("format")
    if answer is None:
        return None, effort
    if set(answer) != {"type", "schema"} or answer["type"] != "json_schema" or not isinstance(answer["schema"], dict):
        raise bad("output_config.format: Input should be an object of `type` 'json_schema' and `schema`")
    if fault := schema_fault(answer["schema"]):
        raise bad(f"output_config.format.schema: {fault}")
    return answer["schema"], effort


def _blocks(body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every content block with its path: system first."""
    system = body.get("system", [])
    yield from _content("system", system, ("text",))
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise bad("messages: at least one message is required")
    for index, message in enumerate(messages):
        if set(message) != {"role", "content"} or message["role"] not in ("user", "assistant"):
            raise bad(f"messages.{index}: Input should have the fields `role` and `content`")
        yield from _content(f"messages.{index}.content", message["content"], ("text", "image"))
    if messages[-1]["role"] == "assistant":
        raise bad(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )


_BLOCK_FIELDS = {
    "text": {"type", "text", "cache_control"},
    "image": {"type", "source", "cache_control", "transformations"},
}


def _content(path: str, content: Any, kinds: tuple[str, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(content, str):
        content = [{"type": "text", "text": content}] if content else []
    for index, block in enumerate(content):
        kind = block.get("type")
        if kind not in kinds:
            raise bad(f"{path}.{index}: Input tag '{kind}' found, this fake takes {' and '.join(kinds)} here")
        if extra := set(block) - _BLOCK_FIELDS[kind]:
            raise bad(f"{path}.{index}.{kind}.{min(extra)}: Extra inputs are not permitted")
        if kind == "text" and not str(block.get("text", "")).strip():
            raise bad("messages: text content blocks must contain non-whitespace text")
        yield f"{path}.{index}", block


def _check_cache_marks(body: dict[str, Any], blocks: list[tuple[str, dict[str, Any]]]) -> None:
    marks = sum(block.get("cache_control") is not None for _, block in blocks) + (body.get("cache_control") is not None)
    if marks > MAX_CACHE_MARKS:
        raise bad(f"A maximum of {MAX_CACHE_MARKS} blocks with cache_control may be provided. Found {marks}.")


def _check_pictures(blocks: list[tuple[str, dict[str, Any]]]) -> Iterator[SentPicture]:
    if len(blocks) > MAX_IMAGES:
        raise bad(f"messages: Too much media: {len(blocks)} images > {MAX_IMAGES}")
    limit = MAX_SIDE_OF_MANY_PX if len(blocks) > MANY_IMAGES else MAX_SIDE_PX
    for path, block in blocks:
        picture = _decode(f"{path}.image", block.get("source"))
        if max(picture.width_px, picture.height_px) > limit:
            many = " for many-image requests" if len(blocks) > MANY_IMAGES else ""
            raise _too_long(
                picture, limit, f"At least one of the image dimensions exceed max allowed size{many}: {limit} pixels"
            )
        wish = _oversized_wish(path, block.get("transformations"))
        if wish == "error" and picture.scale < 1:
            size = f"{picture.width_px}x{picture.height_px}"
            raise _too_long(
                picture, NATIVE_SIDE_PX, f"the image of {size} pixels exceeds the model's maximum image size"
            )
        yield picture


def _too_long(picture: SentPicture, limit: int, what: str) -> Refusal:
    return bad(
        f"{picture.path}.source.base64.data: {what}",
        error_code="image_dimensions_too_large",
        max_side_length_pixels=limit,
        paths=[picture.path.removesuffix(".image")],
    )


def _oversized_wish(path: str, transformations: Any) -> str:
    wish = (transformations or {}).get("oversized_image", "downsize")
    if set(transformations or {}) - {"oversized_image"} or wish not in ("downsize", "error"):
        raise bad(f"{path}.image.transformations: Input should be oversized_image: 'downsize' or 'error'")
    return str(wish)


def _decode(path: str, source: Any) -> SentPicture:
    if not isinstance(source, dict) or set(source) != {"type", "media_type", "data"} or source["type"] != "base64":
        raise bad(f"{path}.source: this fake takes base64 sources only")
    data = source["data"]
    if source["media_type"] not in _FORMATS.values():
        raise bad(f"{path}.source.base64.media_type: Input should be {', '.join(_FORMATS.values())}")
    if len(data) > MAX_BASE64:
        raise bad(f"{path}.source.base64: image exceeds 5 MB maximum: {len(data)} bytes > {MAX_BASE64} bytes")
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise bad(f"{path}.source.base64.data: Invalid base64 data") from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        try:
            with Image.open(io.BytesIO(raw)) as image:
                kind, size = image.format, image.size
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
            raise bad(f"{path}.source.base64.data: Could not process image") from None
    if _FORMATS.get(str(kind)) != source["media_type"]:
        raise bad(f"{path}.source.base64.data: Image does not match the provided media type {source['media_type']}")
    return SentPicture(path, raw, *size)
