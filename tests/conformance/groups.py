"""Which program is held to which scenarios, in which mix of protocol eras, and what does not concern it.

`Program under test` and `other side` are put together here; what a group expects to fail stands in baselines/, and
why a scenario does not concern a group stands beside the group.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

LEGACY = "2025-11-25"
MODERN = "2026-07-28"
BASELINES = Path(__file__).parent / "baselines"

# The HTTP that the suite sees of the bridge is the shim's, so what these are about cannot be seen of the bridge.
HTTP_LEGACY = {
    "dns-rebinding-protection": "Host and Origin belong to HTTP; hosts reach the bridge by stdio",
    "server-session-lifecycle": "sessions belong to HTTP; over stdio the process is the session",
    "server-sse-polling": "event streams belong to HTTP; over stdio there are lines",
}
HTTP_MODERN = {
    "dns-rebinding-protection": HTTP_LEGACY["dns-rebinding-protection"],
    "http-*": "headers belong to HTTP; hosts reach the bridge by stdio",
}
NO_AUTHORIZATION = {
    "auth/*": "OAuth: the bridge sends the token that it was given and runs no authorization flow",
}


@dataclass(frozen=True)
class ServerGroup:
    """Server scenarios of one protocol version against the worker, or against the bridge in front of a server."""

    key: str
    title: str
    version: str
    program: Literal["worker", "bridge"]
    upstream_era: str = "dual"
    not_applicable: Mapping[str, str] = field(default_factory=dict)
    profile: Literal["full", "station"] = "full"
    requirements: bool = False
    quick: bool = True
    side: Literal["server"] = "server"


@dataclass(frozen=True)
class ClientGroup:
    """Client scenarios, whose server speaks one protocol version, against the bridge with a host of either era."""

    key: str
    title: str
    version: str
    host_era: Literal["legacy", "modern"]
    not_applicable: Mapping[str, str] = field(default_factory=lambda: NO_AUTHORIZATION)
    quick: bool = True
    side: Literal["client"] = "client"


Group = ServerGroup | ClientGroup

SERVER_GROUPS = (
    ServerGroup("worker-legacy", f"worker, {LEGACY}", LEGACY, "worker"),
    ServerGroup("worker-modern", f"worker, {MODERN}", MODERN, "worker"),
    ServerGroup(
        "bridge-legacy",
        f"bridge, host {LEGACY}, server of both",
        LEGACY,
        "bridge",
        not_applicable=HTTP_LEGACY,
    ),
    ServerGroup(
        "bridge-modern",
        f"bridge, host {MODERN}, server of both",
        MODERN,
        "bridge",
        not_applicable=HTTP_MODERN,
    ),
    ServerGroup(
        "bridge-legacy-on-modern",
        f"bridge, host {LEGACY}, server {MODERN}",
        LEGACY,
        "bridge",
        "modern",
        HTTP_LEGACY,
        quick=False,
    ),
    ServerGroup(
        "bridge-modern-on-legacy",
        f"bridge, host {MODERN}, server {LEGACY}",
        MODERN,
        "bridge",
        "legacy",
        HTTP_MODERN,
        quick=False,
    ),
    ServerGroup(
        "bridge-station",
        f"bridge in profile station, host {LEGACY}",
        LEGACY,
        "bridge",
        not_applicable=HTTP_LEGACY,
        profile="station",
        quick=False,
    ),
    ServerGroup(
        "worker-requirements",
        f"worker, the frozen requirements of {MODERN}",
        MODERN,
        "worker",
        requirements=True,
        quick=False,
    ),
)

CLIENT_GROUPS = (
    ClientGroup("client-legacy", f"host {LEGACY}, server {LEGACY}", LEGACY, "legacy"),
    ClientGroup("client-modern", f"host {MODERN}, server {MODERN}", MODERN, "modern"),
    ClientGroup("client-legacy-on-modern", f"host {LEGACY}, server {MODERN}", MODERN, "legacy", quick=False),
    ClientGroup("client-modern-on-legacy", f"host {MODERN}, server {LEGACY}", LEGACY, "modern", quick=False),
)
