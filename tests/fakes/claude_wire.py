"""The Messages API on the wire: server-sent events, messages, errors and headers. Says nothing about their content."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any

from tests.fakes.claude_rules import Asked, Model, Refusal

# Deltas of one answer; a real stream has more, which costs these tests time and shows nothing new.
_MOST_DELTAS = 24
_SMALLEST_DELTA = 12


def text_tokens(text: str) -> int:
    """As the newer tokenizer counts, roughly: a Hangul syllable about one token, three other characters another."""
    wide = sum(ord(char) > 0x2E7F for char in text)
    return ceil(wide + (len(text) - wide) / 3)


def cut_to_tokens(text: str, max_tokens: int) -> str:
    """As much of it as `max_tokens` hold."""
    if text_tokens(text) <= max_tokens:
        return text
    spent = 0.0
    for index, char in enumerate(text):
        spent += 1.0 if ord(char) > 0x2E7F else 1 / 3
        if spent > max_tokens:
            return text[:index]
    return text


def event(kind: str, **data: Any) -> bytes:
    body = json.dumps({"type": kind, **data}, ensure_ascii=False, separators=(",", ":"))
    return f"event: {kind}\ndata: {body}\n\n".encode()


def error_body(refusal: Refusal, request_id: str) -> dict[str, Any]:
    error: dict[str, Any] = {"type": refusal.error, "message": refusal.message}
    if refusal.details:
        error["details"] = refusal.details
    return {"type": "error", "error": error, "request_id": request_id}


def message(message_id: str, asked: Asked, content: list[dict[str, Any]], output_tokens: int) -> dict[str, Any]:
    """A message that has not stopped yet."""
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": content,
        "stop_reason": None,
        "stop_sequence": None,
        "stop_details": None,
        "usage": {
            "input_tokens": asked.input_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": output_tokens,
            "service_tier": "standard",
        },
    }


def pieces(text: str) -> Iterator[str]:
    size = max(_SMALLEST_DELTA, ceil(len(text) / _MOST_DELTAS))
    for start in range(0, len(text), size):
        yield text[start : start + size]


def stop(reason: str) -> dict[str, Any]:
    details = {"type": "refusal", "category": "general_harms", "explanation": None} if reason == "refusal" else None
    return {"stop_reason": reason, "stop_sequence": None, "stop_details": details}


def limit_headers(request_id: str) -> dict[str, str]:
    reset = (datetime.now(UTC) + timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    headers = {"request-id": request_id, "anthropic-organization-id": "00000000-0000-0000-0000-000000000000"}
    for name, limit in (("requests", 4000), ("input-tokens", 2_000_000), ("output-tokens", 400_000)):
        headers |= {
            f"anthropic-ratelimit-{name}-limit": str(limit),
            f"anthropic-ratelimit-{name}-remaining": str(limit - 1),
            f"anthropic-ratelimit-{name}-reset": reset,
        }
    return headers


def model_info(model_id: str, model: Model) -> dict[str, Any]:
    def able(names: tuple[str, ...], of: tuple[str, ...]) -> dict[str, Any]:
        return {name: {"supported": name in names} for name in of}

    return {
        "type": "model",
        "id": model_id,
        "display_name": model.name,
        "created_at": "2026-08-01T00:00:00Z",
        "lifecycle": "active",
        "line": None,
        "deprecated_at": None,
        "retires_at": None,
        "max_input_tokens": 1_000_000,
        "max_tokens": model.max_tokens,
        "capabilities": {
            **able(
                ("batch", "citations", "pdf_input", "structured_outputs", *(("image_input",) if model.sees else ())),
                ("batch", "citations", "code_execution", "image_input", "pdf_input", "structured_outputs"),
            ),
            "context_management": {"supported": False},
            "server_tools": {"supported": False, **able((), ("code_execution", "web_search"))},
            "effort": {"supported": True, **able(("low", "medium", "high"), ("low", "medium", "high", "xhigh", "max"))},
            "thinking": {
                "supported": True,
                "types": able(model.thinking, ("adaptive", "between_tools", "disabled", "enabled")),
            },
        },
    }
