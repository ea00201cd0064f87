"""Sessions opened in a station until its memory is full: how many there were, and what each of them took."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.containers.cgroup import Cgroup, Process
from tests.containers.figures import mib
from tests.containers.stack import Station

# The target; six or seven of the usual proxies fill the same station.
FEWEST_SESSIONS = 24
# Above this something other than memory must end it.
MOST_SESSIONS = 150


@dataclass(frozen=True)
class Filled:
    """`bridges` and `used_bytes` are from the moment before the session that was too much."""

    sessions: list[str]
    answering: list[str]
    bridges: list[Process]
    empty_bytes: int
    used_bytes: int

    def figures(self) -> dict[str, float]:
        return {
            "sessions": len(self.bridges),
            "lost_to_the_last": max(0, len(self.bridges) - len(self.answering)),
            "station_empty_mib": mib(self.empty_bytes),
            "used_by_all_mib": mib(self.used_bytes),
            "per_session_mib": mib((self.used_bytes - self.empty_bytes) / len(self.bridges)),
            "bridge_private_mib": self._median_mib("private_bytes"),
            "bridge_anonymous_mib": self._median_mib("anonymous_bytes"),
            "bridge_pss_mib": self._median_mib("pss_bytes"),
            "bridge_rss_mib": self._median_mib("rss_bytes"),
            "bridge_threads": statistics.median(bridge.threads for bridge in self.bridges),
        }

    def _median_mib(self, name: str) -> float:
        return mib(statistics.median(getattr(bridge, name) for bridge in self.bridges))


async def fill(station: Station, cgroup: Cgroup, serves: Callable[[str], Awaitable[bool]], *command: str) -> Filled:
    """Until the kernel ends a process; `serves` makes a call in a session and knows its answer."""
    empty_bytes = used_bytes = cgroup.usage_bytes()
    sessions: list[str] = []
    bridges: list[Process] = []
    while cgroup.oom_kills() == 0 and len(sessions) < MOST_SESSIONS:
        bridges, used_bytes = cgroup.bridges(), cgroup.usage_bytes()
        session = await station.open(*command)
        if await _started(station, session) and await serves(session):
            sessions.append(session)
    answering = [session for session in sessions if await serves(session)]
    return Filled(sessions, answering, bridges, empty_bytes, used_bytes)


def check(filled: Filled, cgroup: Cgroup) -> None:
    """What must be true however many there were."""
    assert len(filled.bridges) >= FEWEST_SESSIONS
    assert cgroup.oom_kills() >= 1, "another limit came first"
    assert cgroup.swap_bytes() == 0
    # What the kernel ended may have been the last session or another one; no more than one is gone.
    assert len(filled.answering) >= len(filled.bridges) - 1
    # The station itself was never in danger: all its bridges stand before it.
    assert all(bridge.oom_score > 0 for bridge in filled.bridges)


async def _started(station: Station, session: str) -> bool:
    """Whether the bridge has answered initialize; one that the kernel has ended never will."""
    info = await station.info(session)
    while info["status"] == "running" and not info["mcp_initialized"]:
        await asyncio.sleep(0.05)
        info = await station.info(session)
    return bool(info["status"] == "running")
