"""What a host hears of a notification of the server: pure functions.

Progress only of a request with a token, log messages only on opt-in, the rest only as the host's era allows and as it
was subscribed to.
"""

from __future__ import annotations

from typing import Any

from sam2_mcp_bridge.actions import as_object
from sam2_mcp_bridge.full import eras
from sam2_mcp_bridge.full.host_session import HostSession
from sam2_mcp_bridge.full.requests import Entry, Requests


def heard(
    message: dict[str, Any], entry: Entry | None, requests: Requests, session: HostSession | None
) -> list[dict[str, Any]]:
    """The notifications to write for this one.

    Args:
        entry: the request on whose stream it came; None for a stream of the server's own.
        requests: all that are not answered.
        session: of the legacy host, if there is one.
    """
    method, params = message["method"], as_object(message.get("params"))
    if method == "notifications/progress":
        return _progress(message, params, entry, requests)
    if method == "notifications/message":
        of_session = None if session is None else session.log_level
        wanted = entry.log_level if entry is not None and entry.modern else of_session
        return [message] if eras.is_loud_enough(params.get("level"), wanted) else []
    if entry is not None and entry.method == "subscriptions/listen":
        return [eras.tagged(message, entry.id)]
    found = [eras.untagged(message)] if session is not None and session.may_hear(method) else []
    served = [one for one in requests if one.filter is not None and eras.lets_through(one.filter, message)]
    return found + [eras.tagged(message, one.id) for one in served]


def _progress(
    message: dict[str, Any], params: dict[str, Any], entry: Entry | None, requests: Requests
) -> list[dict[str, Any]]:
    """A server may send progress on its own stream; then the token says whose it is."""
    token = params.get("progressToken")
    owner = entry or next((one for one in requests if one.call is not None and one.token == token), None)
    if owner is None or owner.token is None:
        return []
    return [message | {"params": params | {"progressToken": owner.token}}]
