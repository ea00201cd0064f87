"""The session of a legacy host: what it was told in the handshake, and what it has set since. No I/O, no clock.

A modern host has none: each of its requests says everything.
"""

from __future__ import annotations

from typing import Any

from sam2_mcp_bridge.actions import Host, Server, as_object
from sam2_mcp_bridge.full import eras


class HostSession:
    """From `initialize` to the end of the process, or to another `initialize`."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.ready = False  # for what it did not ask for: `notifications/initialized` came
        self.log_level: str | None = None
        self._uris: dict[str, None] = {}  # subscribed to, in order
        self._told: Server | None = None
        self._told_capabilities: dict[str, Any] = {}

    def greet(self, server: Server | None) -> dict[str, Any]:
        """The result of initialize."""
        result = eras.initialize_result(server, self.host)
        self._told, self._told_capabilities = server, as_object(result.get("capabilities"))
        return result

    def news(self, server: Server | None) -> list[dict[str, Any]]:
        """What the host must hear if this is not the server that it was told about: its lists are others now."""
        if not self.ready or server is None or _described(self._told) == _described(server):
            return []
        self._told = server
        return eras.list_changes(self._told_capabilities)

    def set(self, method: str, params: Any) -> None:
        """Remember what a request of the host sets, because a server may lose it or may not keep such things."""
        if not eras.is_setting(method, params):
            return
        if method == "logging/setLevel":
            self.log_level = params["level"]
        elif method == "resources/subscribe":
            self._uris[params["uri"]] = None
        else:
            self._uris.pop(params["uri"], None)

    def settings(self) -> list[tuple[str, dict[str, Any]]]:
        """The requests with which a server that has lost everything gets it back."""
        level = [] if self.log_level is None else [("logging/setLevel", {"level": self.log_level})]
        return [*level, *(("resources/subscribe", {"uri": uri}) for uri in self._uris)]

    def wanted(self, server: Server) -> dict[str, Any] | None:
        """The subscription filter for this host; None where such a server has nothing to say of its own accord."""
        wanted = eras.offered_filter(server)
        if server.modern:
            wanted |= {"resourceSubscriptions": list(self._uris)} if self._uris else {}
        speaks = wanted or (
            not server.modern and (self._uris or self.host.capabilities or "logging" in server.capabilities)
        )
        return wanted if self.ready and speaks else None

    def may_hear(self, method: str) -> bool:
        """Whether a notification that belongs to no request may be written."""
        if method == "notifications/elicitation/complete":
            return self.ready and eras.offers(self.host, "elicitation/create")
        return self.ready and method != "notifications/subscriptions/acknowledged"


def _described(server: Server | None) -> tuple[Any, ...] | None:
    """What a host knows of a server; `raw` may hold what differs from handshake to handshake."""
    return server and (server.version, server.capabilities, server.info, server.instructions)
