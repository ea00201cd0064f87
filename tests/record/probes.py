"""Requests at the edges of the API: does it refuse what the scripted Claude refuses? Refusals cost nothing."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from typing import Any

from PIL import Image

SIZES_PX = (
    (1, 1),
    (28, 28),
    (29, 29),
    (1092, 1092),
    (1540, 784),
    (1568, 1000),
    (1568, 1568),
    (2000, 1500),
    (2576, 1400),
    (2576, 2576),
    (4032, 3024),
)
"""Pictures whose visual tokens are counted, from one patch to far above the standard tier."""


def picture(width: int, height: int, **more: Any) -> dict[str, Any]:
    out = io.BytesIO()
    Image.new("RGB", (width, height), (255, 255, 255)).save(out, "PNG")
    data = base64.b64encode(out.getvalue()).decode("ascii")
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}, **more}


def request(model: str, *pictures: dict[str, Any], **more: Any) -> dict[str, Any]:
    content = [*pictures, {"type": "text", "text": "Say yes."}]
    return {"model": model, "max_tokens": 16, "messages": [{"role": "user", "content": content}], **more}


def _schema(**limit: Any) -> dict[str, Any]:
    part = {"type": "object", "properties": {"a": limit}, "required": ["a"], "additionalProperties": False}
    return {"output_config": {"format": {"type": "json_schema", "schema": part}}}


def probes(model: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and body. `plain` is the one that both must take."""
    yield "plain", request(model, picture(28, 28))
    for name, change in (
        ("temperature", {"temperature": 0}),
        ("forced tool", {"tool_choice": {"type": "any"}, "tools": [_tool()]}),
        ("thinking budget", {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2048}),
        ("thinking disabled", {"thinking": {"type": "disabled"}}),
        ("unknown field", {"colour": "red"}),
        ("output_format", {"output_format": {"type": "json_schema", "schema": {"type": "object"}}}),
        ("schema maxItems", _schema(type="array", items={"type": "string"}, maxItems=3)),
        ("schema minimum", _schema(type="integer", minimum=0)),
        ("schema open object", _schema(type="object", properties={})),
        ("schema plain", _schema(type="string")),
    ):
        yield name, request(model, picture(28, 28), **change)
    prefilled = request(model, picture(28, 28))
    prefilled["messages"].append({"role": "assistant", "content": "{"})
    yield "prefill", prefilled
    yield "side 8001", request(model, picture(8001, 1))
    yield "21 images of 2001", request(model, *[picture(2001, 1)] * 21)
    guard = {"transformations": {"oversized_image": "error"}}
    yield "guarded, fits", request(model, picture(1540, 784, **guard))
    yield "guarded, too large", request(model, picture(4032, 3024, **guard))
    wrong = picture(28, 28)
    wrong["source"]["media_type"] = "image/jpeg"
    yield "wrong media type", request(model, wrong)
    yield "unknown model", request("claude-none-0-0", picture(28, 28))


def _tool() -> dict[str, Any]:
    return {"name": "x", "description": "x", "input_schema": {"type": "object", "properties": {}}}
