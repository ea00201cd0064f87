"""The worker at the other end of HTTP, as an MCP server of whatever revision it speaks.

Owns the contact (which era, which session), what is repeated, and the ids upstream. How a request looks is session.py's
and modern.py's business, what an answer means that of responses.py, connections that of transport.py. Knows nothing of
the host's order or deadlines.

A request is sent again only when that cannot run anything twice: before a connection stood, when the server refused
its session or its headers, or when the method only reads.
"""

from __future__ import annotations

import itertools
import math
import re
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from sam2_mcp_bridge import responses
from sam2_mcp_bridge.actions import MODERN_VERSION, Host, Refusal, Result, Server
from sam2_mcp_bridge.config import Config
from sam2_mcp_bridge.errors import Failure, code_of_status
from sam2_mcp_bridge.framing import encode
from sam2_mcp_bridge.responses import MAX_BODY_BYTES, METHOD_NOT_FOUND, SessionLost
from sam2_mcp_bridge.session import OWN_HOST, Session, initialize_params, initialized
from sam2_mcp_bridge.sse import EventParser
from sam2_mcp_bridge.transport import Exchange, Transport

if TYPE_CHECKING:
    import httpx

READING_METHOD = re.compile(r".+/(list|read|get)")
READING_PAUSES_S = (0.2, 0.5)

# The first contact is made in the background; calls behind it wait, so it must not use up their whole time.
HANDSHAKE_TIMEOUT_S = 10.0
SERVER_REQUEST_TIMEOUT_S = 5.0
# Nobody waits for it, and the stream is closed anyway.
CANCEL_TIMEOUT_S = 2.0
# For the DELETE of the session at the end: the station kills 3 s after SIGTERM, and others expect 1 s.
GOODBYE_TIMEOUT_S = 0.7

# A server that pages for ever would be followed until the deadline; no real list is this long.
MAX_LIST_PAGES = 100

HEADER_MISMATCH = -32020

# Where an answer says that the address is wrong, or that nobody may come in, another era changes nothing.
_NO_REFUSALS = ("unauthorized", "forbidden", "host_not_allowed", "busy", "redirected", "answer_too_large")

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


class Upstream:
    """Requests to one MCP server. Methods block unless they say so, and may run in several threads at once.

    Raises:
        SetupError: the address cannot be used.
    """

    def __init__(self, config: Config) -> None:
        self._transport = Transport(config)
        self.failure = self._transport.failure
        self._ids = itertools.count(1)
        self._host = OWN_HOST
        self._session: Session | None = None
        self._handshake_lock = threading.Lock()
        # The newest request of each exchange, for as long as somebody holds that.
        self._sent: WeakKeyDictionary[Exchange, tuple[Session | None, int]] = WeakKeyDictionary()

    @property
    def server(self) -> Server | None:
        """The server that we are in contact with."""
        session = self._session
        return None if session is None else session.server

    def connect(self, host: Host | None = None) -> Server:
        """Make contact before the first call, which tries again if this fails.

        Args:
            host: whom to speak for from now on; nobody in particular where None.

        Raises:
            Failure: there is no contact yet.
        """
        if host is not None and host != self._host:
            self.close()
            self._host, self._session = host, None
        return self.established(_lasting(HANDSHAKE_TIMEOUT_S)).server

    def request(
        self, exchange: Exchange, method: str, params: Any, on_message: OnMessage | None = None
    ) -> Result | Refusal:
        """Send one request and wait for its answer; repeat one that only reads after a failure that may pass.

        Args:
            params: as the host gave them, whichever era it is of.
            on_message: gets, in this thread, every notification and request of the server that comes before the
                answer, and the caller must then end the exchange at its deadline, which may move. Where None,
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
                it and is listened to on its GET stream; that stream carries everything, asked for or not.
            on_message: gets notifications (of a modern server tagged with the id of *our* request) and requests.

        Raises:
            Failure: the stream broke (modern), or the server cannot be reached for a reason that will not pass.
            Aborted: `exchange.abort` was called.
        """
        exchange.watched = True
        if self.established(exchange).server.modern:
            return self.request(exchange, "subscriptions/listen", params, on_message)
        # Only hosts that subscribe need it.
        from sam2_mcp_bridge.listen import LegacyListener

        return LegacyListener(self, exchange, params, on_message).run()

    def reply(self, message: dict[str, Any]) -> None:
        """Pass on a response or a notification of the host; a modern server wants neither.

        Raises:
            Failure: it did not arrive.
        """
        session = self._session
        if session is None or session.server.modern:
            return
        with self._posted(_lasting(SERVER_REQUEST_TIMEOUT_S), session, message) as response:
            status = response.status_code
            if not response.is_success:
                code = "session_lost" if status in (400, 404) else code_of_status(status)
                raise self.failure(code, http_status=status, detail=f"HTTP {status}")

    def cancelled(self, exchange: Exchange, reason: str | None = None) -> None:
        """Tell the server that nobody waits for the request of this exchange; a modern one sees its stream close.

        Before or after `exchange.abort`. Takes at most 2 s; that it did not arrive is no matter.
        """
        session, request_id = self._sent.get(exchange, (None, 0))
        if session is not None and not session.server.modern:
            params = {"requestId": request_id} | ({} if reason is None else {"reason": reason})
            message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
            self._notify(_lasting(CANCEL_TIMEOUT_S), session, message)

    def close(self) -> None:
        """End the session, if there is one, within 0.7 s."""
        session = self._session
        if session is not None and session.id is not None:
            farewell = threading.Thread(target=self._delete, args=(session,), daemon=True)
            farewell.start()
            farewell.join(GOODBYE_TIMEOUT_S)

    def _delete(self, session: Session) -> None:
        exchange = _lasting(GOODBYE_TIMEOUT_S)
        with suppress(Failure), self._transport.send(exchange, "DELETE", _headers(exchange, session)):
            pass

    # Contact

    def established(self, exchange: Exchange) -> Session:
        """The session, after the handshake where there was none. One thread shakes hands, others wait for it."""
        # A subscription has no deadline, but others wait for a handshake that it makes.
        bounded = exchange if math.isfinite(exchange.deadline_s) else _lasting(HANDSHAKE_TIMEOUT_S)
        if not self._handshake_lock.acquire(timeout=bounded.remaining_s):
            raise self.failure("timeout")
        try:
            if self._session is None:
                self._session = self._handshake(bounded)
            return self._session
        finally:
            self._handshake_lock.release()

    def forget(self, session: Session) -> None:
        """This session is of no more use; the next request makes another one."""
        with self._handshake_lock:
            self._session = None if self._session is session else self._session

    def _handshake(self, exchange: Exchange) -> Session:
        """Contact in the host's era, or in the other one where the server refuses that."""
        eras = [self._initialize, self._discover]
        if self._host.version == MODERN_VERSION:
            eras.reverse()
        refused: Failure | None = None
        for contact in eras:
            try:
                return contact(exchange)
            except Failure as failure:
                if not _is_refusal(failure):
                    raise
                refused = refused or failure
        assert refused is not None
        raise refused

    def _initialize(self, exchange: Exchange) -> Session:
        call = self._new_call(exchange, None)
        answer, headers = self._exchange(call, "initialize", initialize_params(self._host))
        server = initialized(answer.value) if isinstance(answer, Result) else None
        if server is None:
            raise self._handshake_refused(answer)
        session = Session(server, headers.get("mcp-session-id"))
        self._notify(exchange, session, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        return session

    def _discover(self, exchange: Exchange) -> Session:
        # Most servers have a handshake.
        from sam2_mcp_bridge.modern import ModernSession, discovered

        try:
            answer, _ = self._exchange(self._new_call(exchange, ModernSession(self._host)), "server/discover", None)
        except SessionLost as lost:
            raise self._handshake_refused(lost.outcome) from lost
        server = discovered(answer.value) if isinstance(answer, Result) else None
        if server is None:
            raise self._handshake_refused(answer)
        return ModernSession(self._host, server)

    def _handshake_refused(self, outcome: Result | Refusal | Failure) -> Failure:
        if isinstance(outcome, Failure):
            return outcome
        detail = outcome.error["message"] if isinstance(outcome, Refusal) else "no protocol version in common"
        return self.failure("handshake_refused", detail=detail)

    # One request

    def _in_session(
        self, exchange: Exchange, method: str, params: Any, on_message: OnMessage | None
    ) -> Result | Refusal:
        session = self.established(exchange)
        try:
            return self._call(exchange, session, method, params, on_message)
        except SessionLost:
            self.forget(session)
        try:
            return self._call(exchange, self.established(exchange), method, params, on_message)
        except SessionLost as lost:
            if isinstance(lost.outcome, Failure):
                raise lost.outcome from lost
            return lost.outcome

    def _call(
        self, exchange: Exchange, session: Session, method: str, params: Any, on_message: OnMessage | None
    ) -> Result | Refusal:
        call = self._new_call(exchange, session, on_message)
        answer, _ = self._exchange(call, method, params)
        if call.modern and isinstance(answer, Refusal) and answer.error["code"] == HEADER_MISMATCH:
            self._list_tools(exchange, session)
            answer, _ = self._exchange(self._new_call(exchange, session, on_message), method, params)
        return Result(session.seen(method, answer.value)) if isinstance(answer, Result) else answer

    def _list_tools(self, exchange: Exchange, session: Session) -> None:
        """Learn from the whole list which arguments the server wants in headers."""
        params: dict[str, Any] = {}
        for _ in range(MAX_LIST_PAGES):
            page, _headers = self._exchange(self._new_call(exchange, session), "tools/list", params)
            cursor = session.seen("tools/list", page.value).get("nextCursor") if isinstance(page, Result) else None
            if not cursor or not isinstance(cursor, str):
                break
            params = {"cursor": cursor}

    def _new_call(self, exchange: Exchange, session: Session | None, on_message: OnMessage | None = None) -> _Call:
        return _Call(exchange, session, next(self._ids), on_message)

    def _exchange(self, call: _Call, method: str, params: Any) -> tuple[Result | Refusal, Mapping[str, str]]:
        """Post a request and read its answer, and the headers that came with it."""
        parser = EventParser(MAX_BODY_BYTES)
        params = params if call.session is None else call.session.dressed(params)
        request = {"jsonrpc": "2.0", "id": call.id, "method": method} | ({} if params is None else {"params": params})
        self._sent[call.exchange] = call.session, call.id
        try:
            with self._posted(call.exchange, call.session, request) as response:
                if not response.is_success:
                    return responses.refusal(response, call.session, self.failure), response.headers
                return self._answer(response, parser, call), response.headers
        except Failure as failure:
            if failure.code not in _CUT or not parser.last_event_id or call.modern:
                raise
            return self._resumed(call, parser, failure), {}

    def _answer(self, response: httpx.Response, parser: EventParser, call: _Call) -> Result | Refusal:
        """Read messages until the response to our request."""
        for message in responses.messages(response, parser, self.failure):
            if "method" in message:
                self._received(message, call)
            elif answer := responses.outcome(message, call.id):
                return answer
        detail = f"HTTP {response.status_code}"
        raise self.failure("no_answer", http_status=response.status_code, detail=detail)

    def _resumed(self, call: _Call, parser: EventParser, cut: Failure) -> Result | Refusal:
        """The rest of a stream that was cut, or closed by a server that wants to be asked again (2025-11-25)."""
        exchange = call.exchange
        while parser.retry_s < exchange.remaining_s:
            exchange.pause(parser.retry_s)
            try:
                with self.get(exchange, call.session, parser.last_event_id) as response:
                    if not response.is_success:
                        break
                    return self._answer(response, parser, call)
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
        self._notify(Exchange(limit_s), call.session, {"jsonrpc": "2.0", "id": message["id"], **reply})

    def _notify(self, exchange: Exchange, session: Session | None, message: dict[str, Any]) -> None:
        """Send what has no answer; that it did not arrive shows in what follows."""
        with suppress(Failure), self._posted(exchange, session, message):
            pass

    def _posted(
        self, exchange: Exchange, session: Session | None, message: dict[str, Any]
    ) -> AbstractContextManager[httpx.Response]:
        headers = _headers(exchange, session, message.get("method", ""), message.get("params"))
        return self._transport.send(exchange, "POST", headers, encode(message).encode())

    def get(
        self, exchange: Exchange, session: Session | None, last_event_id: str
    ) -> AbstractContextManager[httpx.Response]:
        """Open the stream on which a server with sessions reports by itself, or a cut one after that event."""
        headers = _headers(exchange, session) | ({"Last-Event-ID": last_event_id} if last_event_id else {})
        return self._transport.send(exchange, "GET", headers)


def _lasting(seconds: float) -> Exchange:
    return Exchange(time.monotonic() + seconds)


def _headers(exchange: Exchange, session: Session | None, method: str = "", params: Any = None) -> dict[str, str]:
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    if math.isfinite(exchange.deadline_s):
        headers["Sam2-Mcp-Budget-Ms"] = str(int(exchange.remaining_s * 1000))
    # Without a session it is a handshake; a server of the newer era may get it too, and wants the method in a header.
    return headers | ({"Mcp-Method": method} if session is None else session.headers(method, params))


def _is_refusal(failure: Failure) -> bool:
    """Whether it speaks against the era of the handshake."""
    return failure.code == "handshake_refused" or (failure.http_status is not None and failure.code not in _NO_REFUSALS)
