"""What the agent finally sees: the XGEN loader's side of a tool call, for tests and the demo. Needs httpx."""

from typing import Any

import httpx

# The loader's HTTP client gives up here, on the very second on which the station does.
CALL_TIMEOUT_S = 30.0
# Sessions and tool lists are fetched with less patience, and a failure means an agent without tools.
FETCH_TIMEOUT_S = 10.0


async def call_tool(
    client: httpx.AsyncClient, session_id: str, name: str, arguments: dict[str, Any], timeout_s: float = CALL_TIMEOUT_S
) -> str:
    """One tools/call, as the text the language model gets. `client` has the station's address as its base_url.

    Only the first content block counts, `isError` is not looked at, and a failure is a text like any other.
    """
    body = {"session_id": session_id, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    try:
        response = await client.post("/api/mcp/mcp-request", json=body, timeout=timeout_s)
        answer = response.raise_for_status().json()
    except (httpx.HTTPError, ValueError) as error:
        return f"Error calling tool: {error}"  # str() of a read timeout is empty: the model reads no reason at all
    return _as_text(answer)


async def list_tools(
    client: httpx.AsyncClient, session_id: str, timeout_s: float = FETCH_TIMEOUT_S
) -> list[dict[str, Any]]:
    """The session's tools; empty, in silence, whatever went wrong."""
    try:
        response = await client.get(f"/api/mcp/sessions/{session_id}/tools", timeout=timeout_s)
        tools: list[dict[str, Any]] = response.raise_for_status().json()["tools"]
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        return []
    return tools


def _as_text(answer: dict[str, Any]) -> str:
    if not answer.get("success"):
        return f"Error: {answer.get('error')}"
    result = answer.get("data")
    content = result.get("content") if isinstance(result, dict) else None
    if content and "text" in content[0]:
        return str(content[0]["text"])
    return str(result)
