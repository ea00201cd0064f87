"""How requests are put to a server of revision 2026-07-28: envelope, standard headers, mirrored arguments.

The counterpart of session.py, imported when such a server is met. No I/O.
"""

from __future__ import annotations

from typing import Any

from sam2_mcp_bridge.actions import MODERN_VERSION, Host, Refusal, Server, as_object
from sam2_mcp_bridge.upstream.param_headers import ParamHeaders, header_value
from sam2_mcp_bridge.upstream.session import VISIBLE_ASCII, Session

# The parameter that header Mcp-Name repeats.
NAME_PARAMETERS = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

# Before it was asked.
UNKNOWN = Server(MODERN_VERSION, {}, {}, None, {})

_META = "io.modelcontextprotocol/"
_VERSION_KEY = _META + "protocolVersion"


class ModernSession(Session):
    """Nothing is agreed on with such a server: each request says everything."""

    def __init__(self, host: Host, server: Server = UNKNOWN) -> None:
        super().__init__(server)
        self._envelope = {
            _VERSION_KEY: MODERN_VERSION,
            _META + "clientCapabilities": host.capabilities,
            _META + "clientInfo": host.info,
        }
        self.param_headers = ParamHeaders()

    def headers(self, method: str = "", params: Any = None) -> dict[str, str]:
        params = as_object(params)
        version = as_object(params.get("_meta")).get(_VERSION_KEY)
        plain = isinstance(version, str) and VISIBLE_ASCII.fullmatch(version)
        headers = {
            "MCP-Protocol-Version": str(version) if plain else MODERN_VERSION,
            "Mcp-Method": header_value(method),
        }
        name = params.get(NAME_PARAMETERS.get(method, ""))
        if isinstance(name, str):
            headers["Mcp-Name"] = header_value(name)
        if method == "tools/call":
            headers |= self.param_headers.of(name, params.get("arguments"))
        return headers

    def dressed(self, params: Any) -> Any:
        if params is not None and not isinstance(params, dict):
            return params
        meta = as_object((params or {}).get("_meta"))
        # A host's own envelope is its own affair, whatever it lacks.
        return params if _VERSION_KEY in meta else {**(params or {}), "_meta": self._envelope | meta}

    def seen(self, method: str, result: dict[str, Any]) -> dict[str, Any]:
        return self.param_headers.learned(result) if method == "tools/list" else result


def is_listed(refusal: Refusal) -> bool:
    """Whether a server refuses our version and yet lists it: then the specification wants another try with it."""
    supported = as_object(refusal.error.get("data")).get("supported")
    return isinstance(supported, list) and MODERN_VERSION in supported


def discovered(result: dict[str, Any]) -> Server | None:
    """The server as its DiscoverResult describes it; None where it does not serve this revision."""
    versions, instructions = result.get("supportedVersions"), result.get("instructions")
    if not isinstance(versions, list) or MODERN_VERSION not in versions:
        return None
    return Server(
        MODERN_VERSION,
        as_object(result.get("capabilities")),
        as_object(as_object(result.get("_meta")).get(_META + "serverInfo")),
        instructions if isinstance(instructions, str) else None,
        result,
    )
