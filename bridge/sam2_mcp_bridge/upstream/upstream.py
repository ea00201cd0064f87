"""The worker at the other end of HTTP, as an MCP server of whatever revision it speaks.

Owns what is repeated: a request is sent again only when that cannot run anything twice, that is before a connection
stood, when the server refused its session or its headers, or when the method only reads. Session and era are
contact.py's business, how a request looks session.py's and modern.py's, the sending rpc.py's. Knows nothing of the
host's order or deadlines.
"""

from __future__ import annotations

import math
import re
import time
from typing import Any

from sam2_mcp_bridge.actions import MAX_LIST_PAGES, Host, Refusal, Result, Server
from sam2_mcp_bridge.config import Config
from sam2_mcp_bridge.errors import Failure, code_of_status
from sam2_mcp_bridge.transport.transport import Exchange, Transport
from sam2_mcp_bridge.upstream.contact import HANDSHAKE_TIMEOUT_S, Contact
from sam2_mcp_bridge.upstream.responses import SessionLost
from sam2_mcp_bridge.upstream.rpc import SERVER_REQUEST_TIMEOUT_S, OnMessage, Rpc
from sam2_mcp_bridge.upstream.session import Session

READING_METHOD = re.compile(r".+/(list|read|get|discover)")
READING_PAUSES_S = (0.2, 0.5)

# Nobody waits for it, and the stream is closed anyway.
CANCEL_TIMEOUT_S = 2.0

HEADER_MISMATCH = -32020


class Upstream:
    """Requests to one MCP server. Methods block, and may run in several threads at once.

    Raises:
        SetupError: the address cannot be used.
    """

    def __init__(self, config: Config) -> None:
        self._transport = Transport(config)
        self.rpc = Rpc(self._transport)
        self.contact = Contact(self.rpc)

    def host_is(self, profile: str) -> None:
        """Tell the server from now on that the host is treated so."""
        self._transport.profile = profile

    @property
    def server(self) -> Server | None:
        """The server that we are in contact with."""
        session = self.contact.session
        return None if session is None else session.server

    def connect(self, host: Host | None = None) -> Server:
        """Make contact before the first call, which tries again if this fails.

        Args:
            host: whom to speak for from now on; nobody in particular where None.

        Raises:
            Failure: there is no contact yet.
        """
        if host is not None:
            self.contact.speak_for(host)
        exchange = _lasting(HANDSHAKE_TIMEOUT_S)
        with self.rpc.cut_in_time(exchange):
            return self.contact.established(exchange).server

    def request(
        self, exchange: Exchange, method: str, params: Any, on_message: OnMessage | None = None
    ) -> Result | Refusal:
        """Send one request and wait for its answer; repeat one that only reads after a failure that may pass.

        Args:
            params: as the host gave them, whichever era it is of.
            on_message: gets, in this thread, every notification and request of the server that comes before the
                answer, and the caller must then abort the exchange at its deadline, which may move. Where None,
                notifications are dropped and requests refused.

        Raises:
            Failure: there is no answer; the text says why and what to do.
            Aborted: `exchange.abort` was called.
        """
        exchange.watched = on_message is not None
        pauses = iter(READING_PAUSES_S if READING_METHOD.fullmatch(method) else ())
        while True:
            try:
                return self._in_session(exchange, method, params, on_message)
            except Failure as failure:
                exchange.pause(0)  # a connection that we cut has not failed
                pause = next(pauses, math.inf) if failure.transient else math.inf
                if pause >= exchange.remaining_s:
                    raise
            exchange.pause(pause)

    def listen(self, exchange: Exchange, params: dict[str, Any], on_message: OnMessage) -> Result | Refusal:
        """Pass on what the server reports without being asked, until it ends that or the exchange is aborted.

        Args:
            params: of subscriptions/listen. A server with a handshake gets `resources/subscribe` for the resources in
                it and is listened to on its GET stream; that stream carries everything, asked for or not, and is
                opened again whenever it ends.
            on_message: gets notifications (of a modern server tagged with the id of *our* request) and requests.

        Raises:
            Failure: the stream broke (modern), or the server cannot be reached for a reason that will not pass.
            Aborted: `exchange.abort` was called.
        """
        exchange.watched = True
        if self.contact.established(exchange).server.modern:
            return self.request(exchange, "subscriptions/listen", params, on_message)
        # Only hosts that subscribe need it.
        from sam2_mcp_bridge.upstream.listen import LegacyListener

        return LegacyListener(self, exchange, params, on_message).run()

    def reply(self, message: dict[str, Any]) -> None:
        """Pass on a response or a notification of the host; a modern server wants neither.

        Raises:
            Failure: it did not arrive.
        """
        session = self.contact.session
        if session is None or session.server.modern:
            return
        with self.rpc.post(_lasting(SERVER_REQUEST_TIMEOUT_S), session, message) as response:
            status = response.status_code
            if not response.is_success:
                code = "session_lost" if status in (400, 404) else code_of_status(status)
                raise self.rpc.failure(code, http_status=status, detail=f"HTTP {status}")

    def cancelled(self, exchange: Exchange, reason: str | None = None) -> None:
        """Tell the server that nobody waits for the request of this exchange; a modern one sees its stream close.

        Before or after `exchange.abort`. Takes at most 2 s; that it did not arrive is no matter.
        """
        session, request_id = self.rpc.sent(exchange)
        if session is not None and not session.server.modern:
            params = {"requestId": request_id} | ({} if reason is None else {"reason": reason})
            message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
            self.rpc.notify(_lasting(CANCEL_TIMEOUT_S), session, message)

    def close(self) -> None:
        """End the session, if there is one, within 0.7 s."""
        self.contact.end()

    def _in_session(
        self, exchange: Exchange, method: str, params: Any, on_message: OnMessage | None
    ) -> Result | Refusal:
        session = self.contact.established(exchange)
        try:
            return self._ask(exchange, session, method, params, on_message)
        except SessionLost:
            self.contact.forget(session)
        try:
            return self._ask(exchange, self.contact.established(exchange), method, params, on_message)
        except SessionLost as lost:
            if isinstance(lost.outcome, Failure):
                raise lost.outcome from lost
            return lost.outcome

    def _ask(
        self, exchange: Exchange, session: Session, method: str, params: Any, on_message: OnMessage | None
    ) -> Result | Refusal:
        answer, _ = self.rpc.ask(exchange, session, method, params, on_message)
        mismatch = isinstance(answer, Refusal) and answer.error["code"] == HEADER_MISMATCH
        if mismatch and method == "tools/call" and session.server.modern:
            self._list_tools(exchange, session)
            answer, _ = self.rpc.ask(exchange, session, method, params, on_message)
        return Result(session.seen(method, answer.value)) if isinstance(answer, Result) else answer

    def _list_tools(self, exchange: Exchange, session: Session) -> None:
        """Learn from the whole list which arguments the server wants in headers."""
        params: dict[str, Any] = {}
        for _ in range(MAX_LIST_PAGES):
            page, _ = self.rpc.ask(exchange, session, "tools/list", params)
            cursor = session.seen("tools/list", page.value).get("nextCursor") if isinstance(page, Result) else None
            if not cursor or not isinstance(cursor, str):
                break
            params = {"cursor": cursor}


def _lasting(seconds: float) -> Exchange:
    return Exchange(time.monotonic() + seconds)
