"""Contact with the server: which era it speaks, whose host it is told of, and the session that comes of it.

Owns the handshake and its cache. Which requests are worth a new contact is upstream.py's decision.
"""

from __future__ import annotations

import threading
import time

from sam2_mcp_bridge.actions import MODERN_VERSION, OWN_HOST, Host, Refusal, Result
from sam2_mcp_bridge.errors import Failure
from sam2_mcp_bridge.transport.transport import Exchange
from sam2_mcp_bridge.upstream.responses import SessionLost, refuses_era
from sam2_mcp_bridge.upstream.rpc import Rpc
from sam2_mcp_bridge.upstream.session import Session, initialize_params, initialized

# The first contact is made in the background; calls behind it wait, so it must not use up their whole time.
HANDSHAKE_TIMEOUT_S = 10.0
# A request may have an hour and a subscription has no end, but others wait for the handshake that these make.
MAX_HANDSHAKE_S = 30.0
# Its answer says nothing. A server that keeps it back must not cost each call the time of a handshake.
INITIALIZED_TIMEOUT_S = 2.0
# For the DELETE of the session at the end: the station kills 3 s after SIGTERM, and others expect 1 s.
GOODBYE_TIMEOUT_S = 0.7


class Contact:
    """The current session, made when it is needed; every method may run in several threads at once."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc
        self._host = OWN_HOST
        self._lock = threading.Lock()  # one thread shakes hands, others wait for it
        self.session: Session | None = None

    def speak_for(self, host: Host) -> None:
        """Introduce ourselves as this host from now on; the session of another one ends."""
        with self._lock:
            former, changed = self.session, host != self._host
            if changed:
                self._host, self.session = host, None
        if changed:
            self._end(former)

    def established(self, exchange: Exchange) -> Session:
        """The session, after the handshake where there was none.

        Raises:
            Failure: there is no contact; SessionLost is never raised.
            Aborted: `exchange.abort` was called.
        """
        limit_s = time.monotonic() + MAX_HANDSHAKE_S
        if exchange.deadline_s > limit_s:
            bounded = Exchange(limit_s)
            with self._rpc.cut_in_time(bounded):
                return self.established(bounded)
        if not self._lock.acquire(timeout=exchange.remaining_s):
            raise self._rpc.failure("timeout")
        try:
            if self.session is None:
                self.session = self._handshake(exchange)
            return self.session
        finally:
            self._lock.release()

    def forget(self, session: Session) -> None:
        """This session is of no more use; another thread may have made a new one already."""
        with self._lock:
            self.session = None if self.session is session else self.session

    def end(self) -> None:
        """Tell the server that the session is over, if there is one, within 0.7 s."""
        self._end(self.session)

    def _end(self, session: Session | None) -> None:
        if session is not None and session.id is not None:
            exchange = Exchange(time.monotonic() + GOODBYE_TIMEOUT_S)
            farewell = threading.Thread(target=self._rpc.delete, args=(exchange, session), daemon=True)
            farewell.start()
            farewell.join(GOODBYE_TIMEOUT_S)

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
                if not refuses_era(failure):
                    raise
                refused = refused or failure
        assert refused is not None
        raise refused

    def _initialize(self, exchange: Exchange) -> Session:
        answer, response = self._rpc.ask(exchange, None, "initialize", initialize_params(self._host))
        server = initialized(answer.value) if isinstance(answer, Result) else None
        if server is None:
            raise self._refused(answer)
        session = Session(server, response.headers.get("mcp-session-id"))
        limit_s = min(exchange.deadline_s, time.monotonic() + INITIALIZED_TIMEOUT_S)
        self._rpc.notify(Exchange(limit_s), session, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        return session

    def _discover(self, exchange: Exchange) -> Session:
        # Most servers have a handshake.
        from sam2_mcp_bridge.upstream.modern import ModernSession, discovered, is_listed

        session = ModernSession(self._host)
        answer = self._discovery(exchange, session)
        if isinstance(answer, Refusal) and is_listed(answer):
            answer = self._discovery(exchange, session)
        server = discovered(answer.value) if isinstance(answer, Result) else None
        if server is None:
            raise self._refused(answer)
        return ModernSession(self._host, server)

    def _discovery(self, exchange: Exchange, session: Session) -> Result | Refusal | Failure:
        try:
            return self._rpc.ask(exchange, session, "server/discover", None)[0]
        except SessionLost as lost:
            return lost.outcome

    def _refused(self, outcome: Result | Refusal | Failure) -> Failure:
        if isinstance(outcome, Failure):
            return outcome
        detail = outcome.error["message"] if isinstance(outcome, Refusal) else "no protocol version in common"
        return self._rpc.failure("handshake_refused", detail=detail)
