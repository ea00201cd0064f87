"""Single requests of the doctor, each bounded in time whatever the server does.

What is sent goes through transport.py and in the words of session.py and modern.py, as the bridge's own calls do.
What upstream.py mends on the way is not mended here: the doctor wants to see it.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from sam2_mcp_bridge.actions import Refusal, Result
from sam2_mcp_bridge.framing import encode
from sam2_mcp_bridge.responses import MAX_BODY_BYTES, messages, outcome, refusal
from sam2_mcp_bridge.session import Session
from sam2_mcp_bridge.sse import EventParser
from sam2_mcp_bridge.transport import Exchange, Transport

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
        self._ids = itertools.count(1)

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

    def headers(self, session: Session | None, method: str = "", params: Any = None) -> dict[str, str]:
        """The headers of a message."""
        own = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        return own | ({} if session is None else session.headers(method, params))

    def ask(self, session: Session | None, method: str, params: Any) -> Reply:
        """One JSON-RPC request.

        Raises:
            Failure: there is no answer.
            SessionLost: the server does not know the session.
        """
        request_id = next(self._ids)
        request = {"jsonrpc": "2.0", "id": request_id, "method": method}
        params = params if session is None else session.dressed(params)
        request |= {} if params is None else {"params": params}
        failure = self.transport.failure
        with self.sent("POST", self.headers(session, method, params), encode(request).encode()) as response:
            status, headers = response.status_code, response.headers
            if not response.is_success:
                return Reply(refusal(response, session, failure), headers, status)
            for message in messages(response, EventParser(MAX_BODY_BYTES), failure):
                if (answer := outcome(message, request_id)) is not None:
                    return Reply(answer, headers, status)
            raise failure("no_answer", http_status=status, detail=f"HTTP {status}")
