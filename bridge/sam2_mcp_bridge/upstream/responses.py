"""What an HTTP answer of an MCP server means: its messages, its refusal, or that it knows our session no more.

Owns the reading of bodies and the words for broken ones. Sends nothing, and remembers nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sam2_mcp_bridge.actions import Refusal, Result
from sam2_mcp_bridge.errors import Failure, code_of_status
from sam2_mcp_bridge.host.framing import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, UNSUPPORTED_VERSION, decode
from sam2_mcp_bridge.upstream.sse import EventParser, EventTooLarge

if TYPE_CHECKING:
    import httpx

    from sam2_mcp_bridge.upstream.session import Session

# Above this an answer is given up while it still arrives. The line limit is lower, but it counts escaped characters.
MAX_BODY_BYTES = 32 * 2**20
# An error page larger than this has no words worth repeating.
MAX_ERROR_BODY_BYTES = 64 * 1024

UNPACKED_CHUNK_BYTES = 64 * 1024

# The words with which servers say, in a 400, that they want another session or revision.
_CHANGED_WORDS = ("session", "protocol version", "protocol-version")
_ENVELOPE = "io.modelcontextprotocol/"

# Where an answer says that the address is wrong, or that nobody may come in, another era changes nothing.
_NO_REFUSALS = ("unauthorized", "forbidden", "host_not_allowed", "busy", "redirected", "answer_too_large")

MakeFailure = Callable[..., Failure]


class SessionLost(Exception):
    """The server does not know our session or our era any more; nothing was run.

    Args:
        outcome: what the request brings if a new session does not help.
    """

    def __init__(self, outcome: Refusal | Failure) -> None:
        self.outcome = outcome
        super().__init__(outcome)


def messages(response: httpx.Response, parser: EventParser, failure: MakeFailure) -> Iterator[dict[str, Any]]:
    """The JSON-RPC messages in a body, as they come; what is none is left out.

    Raises:
        Failure: the body is of another kind, or too large.
    """
    for data in _pieces(response, parser, failure):
        value = _value(data)
        for message in value if isinstance(value, list) else [value]:
            if isinstance(message, dict):
                yield message


def _pieces(response: httpx.Response, parser: EventParser, failure: MakeFailure) -> Iterator[bytes | bytearray]:
    media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        if media_type == "text/event-stream":
            parser.restart()
            for chunk in _chunks(response, failure):
                yield from parser.feed(chunk)
        elif media_type in ("application/json", ""):
            yield read_body(response, MAX_BODY_BYTES, failure)
        else:
            raise failure("not_mcp", http_status=response.status_code, detail=media_type)
    except EventTooLarge as error:
        raise failure("answer_too_large", limit=MAX_BODY_BYTES) from error


def outcome(message: dict[str, Any], request_id: int) -> Result | Refusal | None:
    """The answer in a message, if it is one and to this request."""
    found = message.get("id")
    # An error without an id is to ours: the server could not read the request's.
    ours = found == request_id if type(found) is int else found is None and "error" in message
    return _response(message) if ours else None


def refusal(response: httpx.Response, session: Session | None, failure: MakeFailure) -> Refusal:
    """The JSON-RPC error in an HTTP error.

    Raises:
        SessionLost: another handshake may help.
        Failure: there is none, or a better word is known.
    """
    status, body = response.status_code, bytearray()
    with suppress(EventTooLarge, Failure):
        body = read_body(response, MAX_ERROR_BODY_BYTES, failure)
    value = _value(body)
    answer = _response(value) if isinstance(value, dict) else None
    refused = answer if isinstance(answer, Refusal) else None
    text = _plain_text(response, body) if refused is None else refused.error["message"]
    rpc_code = None if refused is None else refused.error["code"]
    detail = f"HTTP {status}: {text}" if text else f"HTTP {status}"
    if session is not None and rpc_code == UNSUPPORTED_VERSION and refused is not None:
        raise SessionLost(refused)
    # Whoever names the request in an error has looked at it, and may have run it.
    is_named = isinstance(value, dict) and type(value.get("id")) is int
    if session is not None and _is_lost(status, rpc_code, text.lower(), is_named, session):
        raise SessionLost(
            refused if is_named and refused else failure("session_lost", http_status=status, detail=detail)
        )
    code = code_of_status(status)
    explained = code in ("http_error", "not_found") or (code == "worker_error" and rpc_code != INTERNAL_ERROR)
    if refused is not None and explained:
        return refused
    raise failure(code, http_status=status, detail=detail)


def refuses_era(failure: Failure) -> bool:
    """Whether it speaks against the era of the handshake."""
    return failure.code == "handshake_refused" or (failure.http_status is not None and failure.code not in _NO_REFUSALS)


def _is_lost(status: int, rpc_code: int | None, text: str, is_named: bool, session: Session) -> bool:
    if status == 404:
        return session.id is not None and rpc_code != METHOD_NOT_FOUND
    changed = not is_named and any(word in text for word in _CHANGED_WORDS)
    lacks_envelope = not session.server.modern and rpc_code == INVALID_PARAMS and _ENVELOPE in text
    return status == 400 and (changed or lacks_envelope)


def _chunks(response: httpx.Response, failure: MakeFailure) -> Iterator[bytes]:
    """The body as it comes, unpacked in small pieces: httpx would make 64 MB of 64 KB of a bomb."""
    encoding = response.headers.get("content-encoding", "").strip().lower() or "identity"
    if encoding == "identity":
        yield from response.iter_bytes()
        return
    if encoding not in ("gzip", "deflate"):
        raise failure("not_mcp", http_status=response.status_code, detail=f"content-encoding {encoding}")
    import zlib  # only for gateways that compress although identity was asked for

    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32)  # either header
    try:
        for chunk in response.iter_raw():
            while chunk:
                yield unpacker.decompress(chunk, UNPACKED_CHUNK_BYTES)
                chunk = unpacker.unconsumed_tail
    except zlib.error as error:
        detail = f"content-encoding {encoding} and other bytes"
        raise failure("not_mcp", http_status=response.status_code, detail=detail) from error


def read_body(response: httpx.Response, limit_bytes: int, failure: MakeFailure) -> bytearray:
    """The body, unpacked where it is compressed.

    Raises:
        EventTooLarge: it is longer than that; no more than that was kept.
        Failure: it is packed in a way that nobody asked for.
    """
    body = bytearray()
    for chunk in _chunks(response, failure):
        body += chunk
        if len(body) > limit_bytes:
            raise EventTooLarge
    return body


def _value(data: bytes | bytearray) -> Any:
    try:
        return decode(data, "replace")
    except ValueError:
        return None


def _response(message: dict[str, Any]) -> Result | Refusal | None:
    if isinstance(message.get("result"), dict):
        return Result(message["result"])
    error = message.get("error")
    if isinstance(error, dict) and type(error.get("code")) is int:
        return Refusal(error | {"message": str(error.get("message", ""))})
    return None


def _plain_text(response: httpx.Response, body: bytearray) -> str:
    """The words of a plain error body, or where a redirect leads; a page of HTML has none worth repeating."""
    if response.has_redirect_location:
        return f"to {response.headers['location']}"
    plain = response.headers.get("content-type", "").startswith(("text/plain", "application/json"))
    return " ".join(body.decode("utf-8", "replace").split()) if plain else ""
