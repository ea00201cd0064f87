"""How requests are put to a server of a handshake revision: session header in, envelope of 2026-07-28 out.

modern.py has the same for servers of that revision. Both are values and functions of them: no I/O.
"""

from __future__ import annotations

import re
from typing import Any

from sam2_mcp_bridge.actions import HANDSHAKE_VERSIONS, MODERN_VERSION, Host, Server, as_object

# What a version may look like to fit into a header.
VISIBLE_ASCII = re.compile(r"[!-~]+")

# Keys of `_meta` that only the envelope has.
ENVELOPE_KEYS = frozenset(
    f"io.modelcontextprotocol/{name}" for name in ("protocolVersion", "clientInfo", "clientCapabilities", "logLevel")
)


class Session:
    """What the handshake agreed on; a stateless server gives no id."""

    def __init__(self, server: Server, session_id: str | None = None) -> None:
        self.server = server
        self.id = session_id

    def headers(self, method: str = "", params: Any = None) -> dict[str, str]:
        """The headers of a message; `params` as `dressed` returned them."""
        headers = {"MCP-Protocol-Version": self.server.version}
        return headers | ({} if self.id is None else {"Mcp-Session-Id": self.id})

    def dressed(self, params: Any) -> Any:
        """The params as this server wants them."""
        meta = params.get("_meta") if isinstance(params, dict) else None
        if not isinstance(meta, dict) or ENVELOPE_KEYS.isdisjoint(meta):
            return params
        rest = {key: value for key, value in meta.items() if key not in ENVELOPE_KEYS}
        return {key: value for key, value in params.items() if key != "_meta"} | ({"_meta": rest} if rest else {})

    def seen(self, method: str, result: dict[str, Any]) -> dict[str, Any]:
        """A result that passes by, as the host may see it."""
        return result


def initialize_params(host: Host) -> dict[str, Any]:
    """The params of `initialize`; a host of 2026-07-28 speaks the newest handshake revision through us."""
    version = host.version if host.version in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
    return {"protocolVersion": version, "capabilities": host.capabilities, "clientInfo": host.info}


def initialized(result: dict[str, Any]) -> Server | None:
    """The server as its InitializeResult describes it; None where it wants the revision that has no handshake."""
    version, instructions = result.get("protocolVersion"), result.get("instructions")
    if version == MODERN_VERSION:
        return None
    return Server(
        version if isinstance(version, str) and VISIBLE_ASCII.fullmatch(version) else HANDSHAKE_VERSIONS[-1],
        as_object(result.get("capabilities")),
        as_object(result.get("serverInfo")),
        instructions if isinstance(instructions, str) else None,
        result,
    )
