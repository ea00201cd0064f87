"""Subscriptions to a server with a handshake: its GET stream, kept open, and `resources/subscribe`.

Imported when a host subscribes. Servers of 2026-07-28 have a request for that, which is one like all others.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from sam2_mcp_bridge.actions import Refusal, Result, as_object
from sam2_mcp_bridge.errors import Failure
from sam2_mcp_bridge.host.framing import METHOD_NOT_FOUND
from sam2_mcp_bridge.transport.transport import Exchange
from sam2_mcp_bridge.upstream import responses
from sam2_mcp_bridge.upstream.responses import MAX_BODY_BYTES, SessionLost
from sam2_mcp_bridge.upstream.session import Session
from sam2_mcp_bridge.upstream.sse import EventParser

if TYPE_CHECKING:
    import httpx

    from sam2_mcp_bridge.upstream.rpc import OnMessage
    from sam2_mcp_bridge.upstream.upstream import Upstream

SUBSCRIBE_TIMEOUT_S = 10.0
# A server that is down for long must not cost CPU.
MAX_PAUSE_S = 10.0

# A session has one stream, and that a former one of ours is closed reaches the server late.
CONFLICT = 409

# These pass; the stream is opened again.
_PASSING = ("connection_broken", "no_answer", "busy", "unreachable", "timeout")

NO_STREAM = Refusal({"code": METHOD_NOT_FOUND, "message": "the server offers no stream of notifications"})


class LegacyListener:
    """One subscription. It ends when its exchange is aborted, or the server refuses it.

    Args:
        params: of subscriptions/listen.
        on_message: gets everything that comes on the stream, asked for or not.
    """

    def __init__(self, upstream: Upstream, exchange: Exchange, params: Any, on_message: OnMessage) -> None:
        self._upstream = upstream
        self._exchange = exchange
        self._wanted = as_object(as_object(params).get("notifications"))
        uris = self._wanted.get("resourceSubscriptions")
        self._uris = [uri for uri in uris if isinstance(uri, str)] if isinstance(uris, list) else []
        self._on_message = on_message
        self._parser = EventParser(MAX_BODY_BYTES)
        self._session: Session | None = None  # the one that knows our subscriptions
        self._losses = self._failures = 0  # of a session, of the server; since the stream was last open

    def run(self) -> Result | Refusal:
        """Pass on messages until the end.

        Raises:
            Failure: the server cannot be reached for a reason that will not pass.
            Aborted: `exchange.abort` was called.
        """
        while True:
            try:
                if refusal := self._listen():
                    return refusal
            except Failure as failure:
                if failure.code not in _PASSING:
                    raise
                self._failures += 1
            # As the server wished, in this stream at the latest.
            pause_s, failures = self._parser.retry_s, self._failures
            self._exchange.pause(min(MAX_PAUSE_S, pause_s * 2 ** min(failures, 10)) if failures else pause_s)

    def _listen(self) -> Refusal | None:
        """Open the stream and follow it to its end; a refusal where there is no use in opening it again."""
        session = self._upstream.contact.established(self._exchange)
        if session.id is None and not self._wanted:
            return NO_STREAM  # the server's requests are all that could come, and without a session there are none
        if session is not self._session:
            self._parser = EventParser(MAX_BODY_BYTES)  # event ids are a session's own
        with self._upstream.rpc.get(self._exchange, session, self._parser.last_event_id) as response:
            if not response.is_success:
                return self._refused(response, session)
            if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
                return NO_STREAM
            self._losses = self._failures = 0
            if session is not self._session and (refusal := self._subscribe()):
                return refusal
            self._session = session
            for message in responses.messages(response, self._parser, self._upstream.rpc.failure):
                if "method" in message:
                    self._on_message(message)
        return None

    def _subscribe(self) -> Refusal | None:
        """Only now, when nothing can be missed any more."""
        for uri in self._uris:
            # An exchange of its own: the stream's must stay the one that an abort cuts.
            exchange = Exchange(time.monotonic() + SUBSCRIBE_TIMEOUT_S)
            with self._upstream.rpc.cut_in_time(exchange):
                answer = self._upstream.request(exchange, "resources/subscribe", {"uri": uri}, self._on_message)
            if isinstance(answer, Refusal):
                return answer
        return None

    def _refused(self, response: httpx.Response, session: Session) -> Refusal | None:
        if response.status_code == CONFLICT:
            raise self._upstream.rpc.failure("busy", http_status=CONFLICT, detail="it still holds an earlier stream")
        try:
            responses.refusal(response, session, self._upstream.rpc.failure)
        except SessionLost:
            self._upstream.contact.forget(session)
            self._losses += 1
            return NO_STREAM if self._losses > 1 else None
        except Failure as failure:
            if failure.code not in ("http_error", "not_found"):
                raise
        return NO_STREAM
