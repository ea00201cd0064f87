"""Single requests of the doctor, each bounded in time whatever the server does.

What is sent goes through rpc.py and transport.py, as the bridge's own calls do.
What upstream.py mends on the way is not mended here: the doctor wants to see it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from sam2_mcp_bridge.actions import Refusal, Result
from sam2_mcp_bridge.transport.transport import Exchange, Transport
from sam2_mcp_bridge.upstream.rpc import Rpc
from sam2_mcp_bridge.upstream.session import Session

if TYPE_CHECKING:
    import httpx


class Reply(NamedTuple):
    """What came back to one request."""

    answer: Result | Refusal
    headers: httpx.Headers
    status: int


class Probe:
    """Requests that end by `deadline_s` (of time.monotonic), which may be set anew before each."""

    transport: Transport

    def __init__(self) -> None:
        self.deadline_s = 0.0

    @property
    def remaining_s(self) -> float:
        return max(0.1, self.deadline_s - time.monotonic())

    @contextmanager
    def sent(
        self, http_method: str, headers: dict[str, str], content: bytes = b"", path: str | None = None
    ) -> Iterator[httpx.Response]:
        """One HTTP exchange.

        Raises:
            Failure: there is no response, or it did not end in time.
        """
        exchange = Exchange(time.monotonic() + self.remaining_s)
        with (
            self.transport.cut_in_time(exchange),
            self.transport.send(exchange, http_method, headers, content, path) as response,
        ):
            yield response

    def ask(self, session: Session | None, method: str, params: Any) -> Reply:
        """One JSON-RPC request.

        Raises:
            Failure: there is no answer.
            SessionLost: the server does not know the session.
        """
        exchange = Exchange(time.monotonic() + self.remaining_s)
        with self.transport.cut_in_time(exchange):
            answer, response = self._rpc.ask(exchange, session, method, params)
        return Reply(answer, response.headers, response.status_code)

    @cached_property
    def _rpc(self) -> Rpc:
        return Rpc(self.transport)
