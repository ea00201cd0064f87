"""One JSON-RPC message to the server and what comes of it, over one HTTP exchange or, where that is cut, several.

Owns the ids upstream and the reading of streams. Decides nothing about sessions and repeats no request: that is
contact.py's and upstream.py's business.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from sam2_mcp_bridge.actions import Refusal, Result
from sam2_mcp_bridge.errors import Failure
from sam2_mcp_bridge.host.framing import METHOD_NOT_FOUND, encode
from sam2_mcp_bridge.transport.transport import Exchange, Transport
from sam2_mcp_bridge.upstream import responses
from sam2_mcp_bridge.upstream.responses import MAX_BODY_BYTES
from sam2_mcp_bridge.upstream.session import Session
from sam2_mcp_bridge.upstream.sse import EventParser

if TYPE_CHECKING:
    import httpx

SERVER_REQUEST_TIMEOUT_S = 5.0

# What servers may ask of a host that offers nothing (reference: station.md 1.8, point 4).
OWN_ANSWERS: dict[str, dict[str, Any]] = {"roots/list": {"roots": []}, "ping": {}}

# A stream with these ends can be taken up where it was cut, if its events had ids.
_CUT = ("connection_broken", "no_answer")

OnMessage = Callable[[dict[str, Any]], None]


class _Call(NamedTuple):
    """One request upstream; `session` is None in the handshake that makes it."""

    exchange: Exchange
    session: Session | None
    id: int
    on_message: OnMessage | None

    @property
    def modern(self) -> bool:
        return self.session is not None and self.session.server.modern


class Rpc:
    """Messages to one server; every method may run in several threads at once."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.failure = transport.failure
        self.cut_in_time = transport.cut_in_time
        self._ids = itertools.count(1)
        # The newest request of each exchange, for as long as somebody holds that.
        self._sent: WeakKeyDictionary[Exchange, tuple[Session | None, int]] = WeakKeyDictionary()

    def ask(
        self,
        exchange: Exchange,
        session: Session | None,
        method: str,
        params: Any,
        on_message: OnMessage | None = None,
    ) -> tuple[Result | Refusal, httpx.Response]:
        """Post a request; its answer, and the response that brought it, read and closed.

        Args:
            on_message: gets what the server sends before the answer; where None, the server's requests get an answer
                of our own.

        Raises:
            SessionLost: the server refused it together with our session.
            Failure, Aborted: as of Transport.send, or there is no answer in what came.
        """
        call = _Call(exchange, session, next(self._ids), on_message)
        params = params if session is None else session.dressed(params)
        request = {"jsonrpc": "2.0", "id": call.id, "method": method} | ({} if params is None else {"params": params})
        parser = EventParser(MAX_BODY_BYTES)
        self._sent[exchange] = session, call.id
        try:
            with self.post(exchange, session, request) as response:
                if not response.is_success:
                    return responses.refusal(response, session, self.failure), response
                return self._answer(response, parser, call), response
        except Failure as failure:
            # A modern server has promised that closing the stream ends the request.
            if failure.code not in _CUT or not parser.last_event_id or session is None or call.modern:
                raise
            return self._resumed(call, parser, failure)

    def sent(self, exchange: Exchange) -> tuple[Session | None, int]:
        """The session and id of the newest request of this exchange."""
        return self._sent.get(exchange, (None, 0))

    def notify(self, exchange: Exchange, session: Session | None, message: dict[str, Any]) -> None:
        """Send what has no answer; that it did not arrive shows in what follows."""
        with suppress(Failure), self.post(exchange, session, message):
            pass

    def post(
        self, exchange: Exchange, session: Session | None, message: dict[str, Any]
    ) -> AbstractContextManager[httpx.Response]:
        headers = message_headers(session, message.get("method", ""), message.get("params"))
        return self._transport.send(exchange, "POST", headers, encode(message).encode())

    def get(
        self, exchange: Exchange, session: Session | None, last_event_id: str
    ) -> AbstractContextManager[httpx.Response]:
        """Open the stream on which a server with a handshake reports by itself, or a cut one after that event."""
        headers = message_headers(session) | ({"Last-Event-ID": last_event_id} if last_event_id else {})
        return self._transport.send(exchange, "GET", headers)

    def delete(self, exchange: Exchange, session: Session) -> None:
        """End the session; some servers do not allow that."""
        with suppress(Failure), self._transport.send(exchange, "DELETE", message_headers(session)):
            pass

    def _answer(self, response: httpx.Response, parser: EventParser, call: _Call) -> Result | Refusal:
        """Read messages until the response to our request."""
        for message in responses.messages(response, parser, self.failure):
            if "method" in message:
                self._received(message, call)
            elif answer := responses.outcome(message, call.id):
                return answer
        detail = f"HTTP {response.status_code}"
        raise self.failure("no_answer", http_status=response.status_code, detail=detail)

    def _resumed(self, call: _Call, parser: EventParser, cut: Failure) -> tuple[Result | Refusal, httpx.Response]:
        """The rest of a stream that was cut, or closed by a server that wants to be asked again (2025-11-25)."""
        exchange = call.exchange
        while parser.retry_s < exchange.remaining_s:
            exchange.pause(parser.retry_s)
            try:
                with self.get(exchange, call.session, parser.last_event_id) as response:
                    if not response.is_success:
                        break
                    return self._answer(response, parser, call), response
            except Failure as failure:
                if failure.code == "unreachable":  # its words say that nothing was run
                    break
                if failure.code not in _CUT:
                    raise
        raise cut

    def _received(self, message: dict[str, Any], call: _Call) -> None:
        asks = "id" in message
        if asks and call.modern:
            return  # not allowed there, and nobody would take the answer
        if call.on_message is not None:
            call.on_message(message)
        elif asks:
            self._serve(message, call)

    def _serve(self, message: dict[str, Any], call: _Call) -> None:
        """Answer a request of the server, on a connection of its own; the server waits for that before it goes on."""
        own = OWN_ANSWERS.get(str(message["method"]))
        error = {"code": METHOD_NOT_FOUND, "message": "not supported by this client"}
        reply = {"error": error} if own is None else {"result": own}
        limit_s = min(call.exchange.deadline_s, time.monotonic() + SERVER_REQUEST_TIMEOUT_S)
        self.notify(Exchange(limit_s), call.session, {"jsonrpc": "2.0", "id": message["id"], **reply})


def message_headers(session: Session | None, method: str = "", params: Any = None) -> dict[str, str]:
    """The headers of a message; `params` as `session.dressed` returned them."""
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    # Without a session it is a handshake; a server of the newer era may get it too, and wants the method in a header.
    return headers | ({"Mcp-Method": method} if session is None else session.headers(method, params))
