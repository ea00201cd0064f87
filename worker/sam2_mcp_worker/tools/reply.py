"""How a result leaves: one compact JSON text, the same data structured, then links to what people look at.

Hosts differ in what they pass on (reference/station.md 1.6, mcp.md 7): the first text block alone carries every fact.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from mcp_types import CallToolResult, ContentBlock, ResourceLink, TextContent
from pydantic import BaseModel

from sam2_mcp_worker.artifacts import Artifact


def reply(
    result: BaseModel,
    links: Sequence[Artifact] = (),
    *,
    extra: dict[str, Any] | None = None,
    meta: dict[str, Any] | None = None,
) -> CallToolResult:
    """A tool's answer: text JSON first, structured content beside it, resource links last.

    `extra` are facts beside those of the model; `meta` is for programs. Pictures leave by picture_road.py.
    """
    text, structured = result_text(result, extra)
    content: list[ContentBlock] = [TextContent(type="text", text=text)]
    content.extend(
        ResourceLink(
            type="resource_link", uri=link.uri, name=link.name, mime_type=link.mime_type, size=link.size_bytes or None
        )
        for link in links
    )
    return CallToolResult(content=content, structured_content=structured, _meta=meta or None)


def result_text(result: BaseModel, extra: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
    """The facts as compact JSON, and the same as an object."""
    data = result.model_dump(mode="json", exclude_none=True) | (extra or {})
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # A lone surrogate would leave the SDK with an empty body (reference/mcp.md 1.6).
    clean = text.encode("utf-8", "replace").decode("utf-8")
    return clean, data if clean == text else json.loads(clean)
