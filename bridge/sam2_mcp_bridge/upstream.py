"""The worker at the other end of HTTP, as an MCP server.

Owns the MCP session, retries and the meaning of every HTTP answer. Knows nothing of the host or of order, and leaves
connections to transport.py. One request is one POST.

A request is sent again only when that cannot run anything twice: before a connection stood, when the server refused
its session, or when the method only reads.
"""

from __future__ import annotations

import itertools
import math
import re
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from sam2_mcp_bridge import __version__
from sam2_mcp_bridge.actions import Refusal, Result
from sam2_mcp_bridge.config import Config
from sam2_mcp_bridge.errors import Failure, code_of_status
from sam2_mcp_bridge.framing import decode, encode
from sam2_mcp_bridge.sse import EventParser, EventTooLarge
from sam2_mcp_bridge.transport import Exchange, Transport

if TYPE_CHECKING:
    import httpx

# The newest revision with a handshake; a server that knows only older ones answers with one of those.
PROTOCOL_VERSION = "2025-11-25"

READING_METHOD = re.compile(r".+/(list|read|get)")
READING_PAUSES_S = (0.2, 0.5)

# The first contact is made in the background; calls behind it wait, so it must not use up their whole time.
HANDSHAKE_TIMEOUT_S = 10.0
SERVER_REQUEST_TIMEOUT_S = 5.0
# For the DELETE of the session at the end: the station kills 3 s after SIGTERM, and others expect 1 s.
GOODBYE_TIMEOUT_S = 0.7

# Above this an answer is given up while it still arrives. The line limit is lower, but it counts escaped characters.
MAX_BODY_BYTES = 32 * 2**20
# An error page larger than this has no words worth repeating.
MAX_ERROR_BODY_BYTES = 64 * 1024


# What servers may ask of a host that offers nothing (reference: station.md 1.8, point 4).
OWN_ANSWERS: dict[str, dict[str, Any]] = {"roots/list": {"roots": []}, "ping": {}}


class Session(NamedTuple):
    """What the handshake agreed on; a stateless server gives no id."""

    id: str | None
    version: str


class _SessionLost(Failure):
    """The server does not know our session any more, or wants one."""


class Upstream:
    """Requests to one MCP server. Methods block; `request` may run in several threads at once.

    Raises:
        SetupError: the address cannot be used.
    """

    def __init__(self, config: Config) -> None:
        self._transport = Transport(config)
        self._ids = itertools.count(1)
        self._session: Session | None = None
        self._handshake_lock = threading.Lock()

    def connect(self) -> None:
        """Make contact before the first call, which tries again if this fails.

        Raises:
            Failure: there is no contact yet.
        """
        self._established(Exchange(time.monotonic() + HANDSHAKE_TIMEOUT_S))

    def request(self, exchange: Exchange, method: str, params: Any) -> Result | Refusal:
        """Send one request and wait for its answer; repeat one that only reads after a failure that may pass.

        Raises:
            Failure: there is no answer; the text says why and what to do.
            Aborted: `exchange.abort` was called.
        """
        pauses = iter(READING_PAUSES_S if READING_METHOD.fullmatch(method) else ())
        while True:
            try:
                return self._in_session(exchange, method, params)
            except Failure as failure:
                exchange.pause(0)  # a connection that we cut has not failed
                pause = next(pauses, math.inf) if failure.transient else math.inf
                if pause >= exchange.remaining_s:
                    raise
            exchange.pause(pause)

    def close(self) -> None:
        """End the session, if there is one, within 0.7 s."""
        session = self._session
        if session is not None and session.id is not None:
            farewell = threading.Thread(target=self._delete, args=(session,), daemon=True)
            farewell.start()
            farewell.join(GOODBYE_TIMEOUT_S)

    def _delete(self, session: Session) -> None:
        exchange = Exchange(time.monotonic() + GOODBYE_TIMEOUT_S)
        with suppress(Failure), self._transport.send(exchange, "DELETE", _headers(session, exchange)):
            pass

    def _in_session(self, exchange: Exchange, method: str, params: Any) -> Result | Refusal:
        session = self._established(exchange)
        try:
            return self._exchange(exchange, session, method, params)[0]
        except _SessionLost:
            with self._handshake_lock:
                self._session = None if self._session is session else self._session
        return self._exchange(exchange, self._established(exchange), method, params)[0]

    def _established(self, exchange: Exchange) -> Session:
        """The session, after the handshake where there was none. One thread shakes hands, others wait for it."""
        if not self._handshake_lock.acquire(timeout=exchange.remaining_s):
            raise self._transport.failure("timeout")
        try:
            if self._session is None:
                self._session = self._handshake(exchange)
            return self._session
        finally:
            self._handshake_lock.release()

    def _handshake(self, exchange: Exchange) -> Session:
        client = {"name": "sam2-mcp-bridge", "version": __version__}
        params = {"protocolVersion": PROTOCOL_VERSION, "capabilities": {}, "clientInfo": client}
        answer, headers = self._exchange(exchange, None, "initialize", params)
        if isinstance(answer, Refusal):
            raise self._transport.failure("handshake_refused", detail=answer.error["message"])
        version = answer.value.get("protocolVersion")
        session = Session(headers.get("mcp-session-id"), version if isinstance(version, str) else PROTOCOL_VERSION)
        self._notify(exchange, session, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        return session

    def _exchange(
        self, exchange: Exchange, session: Session | None, method: str, params: Any
    ) -> tuple[Result | Refusal, httpx.Headers]:
        request = {"jsonrpc": "2.0", "id": next(self._ids), "method": method}
        request |= {} if params is None else {"params": params}
        with self._posted(exchange, session, request) as response:
            if not response.is_success:
                return self._refusal(response, session), response.headers
            return self._answer(response, request["id"], exchange, session), response.headers

    def _notify(self, exchange: Exchange, session: Session | None, message: dict[str, Any]) -> None:
        """Send what has no answer; that it did not arrive shows in what follows."""
        with suppress(Failure), self._posted(exchange, session, message):
            pass

    def _posted(
        self, exchange: Exchange, session: Session | None, message: Any
    ) -> AbstractContextManager[httpx.Response]:
        return self._transport.send(exchange, "POST", _headers(session, exchange), encode(message).encode())

    def _refusal(self, response: httpx.Response, session: Session | None) -> Refusal:
        """The JSON-RPC error in an HTTP error; where there is none, or a better word is known, a failure."""
        status, body = response.status_code, b""
        with suppress(EventTooLarge):
            body = _read(response, MAX_ERROR_BODY_BYTES)
        answer = _response(_object(body))
        text = answer.error["message"] if isinstance(answer, Refusal) else _plain_text(response, body)
        code = code_of_status(status)
        detail = f"HTTP {status}: {text}" if text else f"HTTP {status}"
        if (status == 404 and session and session.id) or (status == 400 and "session" in text.lower()):
            raise _SessionLost("session_lost", http_status=status, where=self._transport.where, detail=detail)
        if isinstance(answer, Refusal) and code in ("http_error", "not_found"):
            return answer
        raise self._transport.failure(code, http_status=status, detail=detail)

    def _answer(
        self, response: httpx.Response, request_id: Any, exchange: Exchange, session: Session | None
    ) -> Result | Refusal:
        """Read messages until the response to our request; serve the server's requests, swallow the rest."""
        for data in self._messages(response):
            message = _object(data)
            answer = _response(message)
            if "method" in message and "id" in message:
                self._serve(message, exchange, session)
            elif answer is not None and _concerns(message, request_id):
                return answer
        detail = f"HTTP {response.status_code}"
        raise self._transport.failure("no_answer", http_status=response.status_code, detail=detail)

    def _messages(self, response: httpx.Response) -> Iterator[bytes]:
        media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        try:
            if media_type == "text/event-stream":
                parser = EventParser(MAX_BODY_BYTES)
                for chunk in response.iter_bytes():
                    yield from parser.feed(chunk)
            elif media_type in ("application/json", ""):
                yield _read(response, MAX_BODY_BYTES)
            else:
                raise self._transport.failure("not_mcp", http_status=response.status_code, detail=media_type)
        except EventTooLarge as error:
            raise self._transport.failure("answer_too_large", limit=MAX_BODY_BYTES) from error

    def _serve(self, message: dict[str, Any], exchange: Exchange, session: Session | None) -> None:
        """Answer a request of the server, on a connection of its own; the server waits for that before it goes on."""
        own = OWN_ANSWERS.get(str(message["method"]))
        error = {"code": -32601, "message": "not supported by this client"}
        reply = {"error": error} if own is None else {"result": own}
        limit_s = min(exchange.deadline_s, time.monotonic() + SERVER_REQUEST_TIMEOUT_S)
        self._notify(Exchange(limit_s), session, {"jsonrpc": "2.0", "id": message["id"], **reply})


def _headers(session: Session | None, exchange: Exchange) -> dict[str, str]:
    headers = {
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "Sam2-Mcp-Budget-Ms": str(int(exchange.remaining_s * 1000)),
    }
    if session is not None:
        headers["MCP-Protocol-Version"] = session.version
        headers |= {"Mcp-Session-Id": session.id} if session.id is not None else {}
    return headers


def _read(response: httpx.Response, limit_bytes: int) -> bytes:
    body = bytearray()
    for chunk in response.iter_bytes():
        body += chunk
        if len(body) > limit_bytes:
            raise EventTooLarge
    return bytes(body)


def _object(data: bytes) -> dict[str, Any]:
    """The message; an empty one where it is none."""
    try:
        message = decode(data, "replace")
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def _response(message: dict[str, Any]) -> Result | Refusal | None:
    if isinstance(message.get("result"), dict):
        return Result(message["result"])
    error = message.get("error")
    if isinstance(error, dict) and isinstance(error.get("code"), int):
        return Refusal(error | {"message": str(error.get("message", ""))})
    return None


def _concerns(message: dict[str, Any], request_id: int) -> bool:
    """Whether a response is to our request. An error without an id is: the server could not read the request's."""
    found = message.get("id")
    return found == request_id if type(found) is int else found is None and "error" in message


def _plain_text(response: httpx.Response, body: bytes) -> str:
    """The words of a plain error body; a page of HTML has none worth repeating."""
    plain = response.headers.get("content-type", "").startswith(("text/plain", "application/json"))
    return " ".join(body.decode("utf-8", "replace").split()) if plain else ""
