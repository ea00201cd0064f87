"""How the outcome of a request becomes a line: what the profiles have in common. No I/O."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sam2_mcp_bridge.actions import as_object
from sam2_mcp_bridge.errors import Failure
from sam2_mcp_bridge.host.framing import INTERNAL_ERROR, encode

# Longer names are cut where a failure names the tool.
MAX_SUBJECT_CHARACTERS = 80


def subject(method: str, params: Any) -> str:
    """What a failure calls the request: the tool's name, else the method."""
    name = as_object(params).get("name")
    return name[:MAX_SUBJECT_CHARACTERS] if method == "tools/call" and isinstance(name, str) else method


def hint_of(shared: Iterable[Path]) -> str:
    """What an agent must know of the shared folders; "" where there are none."""
    folders = ", ".join(map(str, shared))
    words = f"Files below the shared folders ({folders}) may be given by absolute path and are sent to the worker."
    return words if folders else ""


def with_hint(result: dict[str, Any], hint: str) -> dict[str, Any]:
    """The result of initialize or server/discover with this behind its instructions."""
    told = result.get("instructions")
    own = [told] if isinstance(told, str) and told else []
    return result | {"instructions": " ".join([*own, hint])} if hint else result


def of_failure(method: str, failure: Failure) -> dict[str, Any]:
    """`result` or `error` of a request that brought no answer.

    tools/call never gets a JSON-RPC error for it: the station's loader shows that as the tool's answer, or as nothing,
    and of a result it shows the first text block (station.md 1.6); other hosts hide it from the model.
    """
    if method == "tools/call":
        meta = {"_meta": failure.meta} if failure.meta else {}
        return {"result": {"content": [{"type": "text", "text": str(failure)}], "isError": True} | meta}
    data: dict[str, Any] = {"source": "bridge", "reason": failure.code}
    data |= {"httpStatus": failure.http_status} if failure.http_status else {}
    return {"error": {"code": INTERNAL_ERROR, "message": str(failure), "data": data}}


def line(message: dict[str, Any], max_line_bytes: int) -> str:
    """The line of this message.

    Raises:
        Failure: it cannot be written, or is longer than that.
    """
    try:
        text = encode(message)
    except RecursionError as error:
        raise Failure("internal", detail="the answer is nested too deeply") from error
    except MemoryError as error:
        raise Failure("internal", detail="no memory for the answer") from error
    if len(text) > max_line_bytes:
        raise Failure("answer_too_large", limit=max_line_bytes)
    return text
