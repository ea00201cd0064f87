"""One upstream and a few bridges for a whole table of cases: each bridge lives as long as it behaves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType

from tests.e2e.faults.case import Case
from tests.e2e.faults.script import own_event, sse
from tests.e2e.faults.session import Session, session
from tests.fakes.upstream import JSON, Call, FakeUpstream, event, raw, response

STOLEN = "/stolen"


# A server of 2026-07-28 only: no handshake, discovery instead.
DISCOVERED = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}},
    "ttlMs": 0,
    "cacheScope": "private",
}
UNKNOWN = {"jsonrpc": "2.0", "id": None, "error": {"code": -32601, "message": "Method not found"}}
MODERN = {
    "initialize": raw(404, JSON, json.dumps(UNKNOWN).encode()),
    "server/discover": sse(lambda call: event(response(call, DISCOVERED))),
}


class Stage:
    """Bridges by profile and deadline, started when first used; one that failed a case is replaced."""

    def __init__(self, upstream: FakeUpstream, *, modern: bool = False) -> None:
        self.upstream = upstream
        # A stateless upstream that answers each call with its own tag.
        self._quiet = upstream.on | {"tools/call": sse(own_event)} | (MODERN if modern else {})
        upstream.on = dict(self._quiet)
        self._bridges: dict[tuple[str, float], tuple[Session, ExitStack]] = {}

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for key in list(self._bridges):
            self._end(key)

    @contextmanager
    def bridge(self, profile: str, deadline_s: float) -> Iterator[Session]:
        """A bridge in order, with a quiet upstream."""
        key = (profile, deadline_s)
        if key not in self._bridges:
            stack = ExitStack()
            host = stack.enter_context(session(self.upstream.url, profile, deadline_s))
            host.begin()
            self._bridges[key] = host, stack
            host.tagged_call()
        try:
            yield self._bridges[key][0]
        except BaseException:
            self._end(key)
            raise

    def _end(self, key: tuple[str, float]) -> None:
        self._bridges.pop(key)[1].close()

    def strike(self, case: Case) -> list[Call]:
        """Let the case's fault wait for the next call; the calls that it meets are put into the list."""
        struck: list[Call] = []

        async def behave(call: Call) -> None:
            struck.append(call)
            await case.behave(call)

        self.upstream.calls.clear()
        self.upstream.on = self._quiet | {"tools/call": behave, **case.others}
        return struck

    def rest(self) -> None:
        """No fault any more; what was asked must not have gone astray."""
        assert not [call for call in self.upstream.calls if call.path.startswith(STOLEN)], "a redirect was followed"
        self.upstream.on = dict(self._quiet)
