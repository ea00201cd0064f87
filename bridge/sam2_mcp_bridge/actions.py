"""What a profile asks app.py to do, and what comes back from upstream: plain values, shared by all profiles."""

from __future__ import annotations

from typing import Any, NamedTuple

from sam2_mcp_bridge import __version__
from sam2_mcp_bridge.errors import Failure

# The revisions with a handshake ("legacy" here), and the one where each request carries an envelope ("modern").
HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSION = "2026-07-28"

# A server that pages for ever would be followed until the deadline; no real list is this long.
MAX_LIST_PAGES = 100


class Result(NamedTuple):
    """The result of an upstream response."""

    value: dict[str, Any]


class Refusal(NamedTuple):
    """The error object of an upstream response: an integer `code`, a string `message`, whatever else came."""

    error: dict[str, Any]


Answer = Result | Refusal | Failure


class Host(NamedTuple):
    """Whom the bridge speaks for: the version asked for, the capabilities and `clientInfo` declared."""

    version: str
    capabilities: dict[str, Any]
    info: dict[str, Any]


# Whom the bridge speaks for when the host does not matter: nothing is offered, so nothing is asked.
OWN_HOST = Host(HANDSHAKE_VERSIONS[-1], {}, {"name": "sam2-mcp-bridge", "version": __version__})


class Server(NamedTuple):
    """What a server told in its handshake or its discovery; `raw` is that result as it came."""

    version: str
    capabilities: dict[str, Any]
    info: dict[str, Any]
    instructions: str | None
    raw: dict[str, Any]

    @property
    def modern(self) -> bool:
        return self.version == MODERN_VERSION


class Connect(NamedTuple):
    """Make contact upstream, so that the first call need not; with a host, as that host, and report it."""

    host: Host | None = None


class Send(NamedTuple):
    """Send this request upstream and report with `answered(call, ...)`."""

    call: int
    method: str
    params: Any
    deadline_s: float


class Listen(NamedTuple):
    """Open a subscription, without a deadline, and report like a request; `params` are of subscriptions/listen."""

    call: int
    params: dict[str, Any]


class Extend(NamedTuple):
    """This call now has until then."""

    call: int
    deadline_s: float


class Abort(NamedTuple):
    """Close the stream of this call, if it still runs, and tell the server; nobody waits for its answer."""

    call: int
    reason: str | None = None


class Reply(NamedTuple):
    """Pass a response or a notification of the host on to the server."""

    message: dict[str, Any]


class Write(NamedTuple):
    """Write this line."""

    line: str


class Exit(NamedTuple):
    """The host is gone."""


Action = Connect | Send | Listen | Extend | Abort | Reply | Write | Exit


def as_object(value: Any) -> dict[str, Any]:
    """The value itself where it is a JSON object; messages of others may hold anything."""
    return value if isinstance(value, dict) else {}
