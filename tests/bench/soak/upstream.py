"""The other end of a soak: does to each call what the call itself asks for, restarts, and forgets its sessions."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Mapping

from tests.e2e.faults.case import Case
from tests.e2e.faults.script import arguments_of, sse, stall, tag_of
from tests.e2e.faults.script import script as scripted
from tests.fakes.upstream import JSON, SSE, Behaviour, Call, FakeUpstream, event, head, raw, response, tool_text

SESSION_NOT_FOUND = {"jsonrpc": "2.0", "id": "server-error", "error": {"code": -32600, "message": "Session not found"}}


class Nothing(list):  # type: ignore[type-arg]
    """Records nothing, so that an hour fits into memory."""

    def append(self, item: object) -> None:
        pass


def sized(call: Call) -> bytes:
    """The call's tag and as many characters behind it as the call asks for."""
    size = arguments_of(call).get("size", 0)
    return event(response(call, tool_text(tag_of(call) + "x" * size)))


class SoakUpstream:
    """One endpoint on one port for the whole soak.

    Args:
        cases: by the name that a call gives as its argument `case`.
        stateful: hand out session ids and refuse those of a former life.
        pause_s: before each call is treated.
    """

    def __init__(self, cases: Mapping[str, Case], *, stateful: bool, pause_s: float = 0.0) -> None:
        self._cases = cases
        self._lives = itertools.count(1)
        self._stateful = stateful
        self._pause_s = pause_s
        self._session = ""
        self._server = FakeUpstream()
        self._begin()

    @property
    def url(self) -> str:
        return self._server.url

    def restart(self) -> None:
        """End every call and connection, and come back on the same port."""
        port = self._server.port
        self._server.stop()
        self._server = FakeUpstream(port)
        self._begin()

    def forget_session(self) -> None:
        self._session = f"session-{next(self._lives)}" if self._stateful else ""

    def stop(self) -> None:
        self._server.stop()

    def _begin(self) -> None:
        self.forget_session()
        self._server.calls = Nothing()
        self._server.on |= {"initialize": self._initialize, "tools/call": self._call}
        self._server.__enter__()

    async def _initialize(self, call: Call) -> None:
        body = json.dumps(response(call, {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}})).encode()
        extra = [f"mcp-session-id: {self._session}"] if self._session else []
        await call.send(head(200, JSON, *extra, length=len(body)) + body)

    async def _call(self, call: Call) -> None:
        if self._session and call.headers.get("mcp-session-id") != self._session:
            await raw(404, JSON, json.dumps(SESSION_NOT_FOUND).encode())(call)
        else:
            await asyncio.sleep(self._pause_s)
            await self._behaviour(call)(call)

    def _behaviour(self, call: Call) -> Behaviour:
        wanted = str(arguments_of(call).get("case"))
        if wanted == "hang":
            return scripted(head(200, SSE), stall)
        return self._cases[wanted].behave if wanted in self._cases else sse(sized)
