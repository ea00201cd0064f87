"""Faults of HTTP: status codes, redirects, heads, lengths, chunks, content encodings."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable

from tests.e2e.faults.case import Case, answered, either, failed, stalled
from tests.e2e.faults.script import (
    CHUNKED_JSON_HEAD,
    CHUNKED_SSE_HEAD,
    MIB,
    SSE_HEAD,
    chunked,
    forever,
    joined,
    own_event,
    own_json,
    script,
    stall,
    whole,
)
from tests.fakes.upstream import JSON, SSE, Call, head

PAGE = b"<!doctype html><html><title>Bad Gateway</title><body>nginx</body></html>"
NO_SESSION = json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "refused here"}}).encode()
HELD = b"HTTP/1.1 200 Fake\r\ncontent-type: text/event-stream\r\nconnection: close\r\n"


def status(number: int, code: str, *headers: str, body: bytes = b"", media_type: str = "text/plain") -> Case:
    name = f"status {number}" + (f" with {headers[0]}" if headers else "") + (f" and {media_type}" if body else "")
    return Case(name, whole(number, media_type, body, *headers), failed(code))


STATUSES = [
    status(202, "no_answer", media_type=""),
    status(204, "no_answer", media_type=""),
    status(205, "no_answer", media_type=""),
    status(200, "no_answer", body=b" ", media_type=JSON),
    status(400, "http_error", body=b"bad", media_type="text/plain"),
    status(400, "refused", body=NO_SESSION, media_type=JSON),
    status(401, "unauthorized", 'www-authenticate: Bearer realm="x"'),
    status(403, "forbidden"),
    status(404, "not_found", body=PAGE, media_type="text/html"),
    status(405, "http_error", "allow: GET"),
    status(406, "http_error"),
    status(408, "http_error"),
    status(409, "http_error", body=b"Conflict"),
    status(410, "http_error"),
    status(413, "request_too_large"),
    status(415, "http_error"),
    status(418, "http_error"),
    status(421, "host_not_allowed", body=b"Invalid Host header"),
    status(429, "busy"),
    status(429, "busy", "retry-after: 3600"),
    status(429, "busy", "retry-after: Fri, 31 Dec 2066 23:59:59 GMT"),
    status(429, "busy", "retry-after: soon"),
    status(500, "worker_error", body=b"Traceback (most recent call last):\n" * 50),
    status(501, "worker_error"),
    status(502, "busy", body=PAGE, media_type="text/html"),
    status(503, "busy", "retry-after: 1"),
    status(504, "busy"),
    status(599, "worker_error"),
    Case("500 with an answer in it", whole(500, JSON, own_json), failed("worker_error")),
    Case("500 whose body never ends", script(head(500, "text/plain"), forever(b"x" * 1000)), failed("worker_error")),
    stalled(
        "500 whose body stalls", script(head(500, "text/plain"), b"oops", stall), failed("worker_error", "deadline")
    ),
    Case(
        "500 with a deflated page",
        whole(500, "text/plain", zlib.compress(b"oops"), "content-encoding: deflate"),
        failed("worker_error"),
    ),
    Case("404 with binary rubbish as json", whole(404, JSON, bytes(range(256))), failed("not_found")),
    Case("401 with an error of json-rpc", whole(401, JSON, NO_SESSION), failed("unauthorized")),
    Case(
        "error with control characters in its words",
        whole(400, "text/plain", b"a\x00\x1b[31m\r\nb"),
        failed("http_error"),
    ),
    Case("status 000", script(b"HTTP/1.1 000 Zero\r\n\r\n"), failed("connection_broken", "http_error")),
    Case(
        "status 999",
        script(b"HTTP/1.1 999 Lots\r\ncontent-length: 0\r\n\r\n"),
        failed("worker_error", "connection_broken"),
    ),
    Case("100 Continue, then the answer", script(b"HTTP/1.1 100 Continue\r\n\r\n", SSE_HEAD, own_event), answered()),
    Case(
        "a hundred times 100 Continue", script(b"HTTP/1.1 100 Continue\r\n\r\n" * 100, SSE_HEAD, own_event), answered()
    ),
    Case(
        "103 Early Hints, then the answer",
        script(b"HTTP/1.1 103 Early Hints\r\nlink: </x>; rel=preload\r\n\r\n", SSE_HEAD, own_event),
        answered(),
    ),
    Case(
        "101 Switching Protocols",
        script(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\n\r\n", b"PRI * HTTP/2.0"),
        failed("connection_broken", "http_error", "redirected", "no_answer", "not_mcp"),
    ),
]


def typed(name: str, media_type: str, body: Callable[[Call], bytes], code: str | None = None) -> Case:
    return Case(name, whole(200, media_type, body), failed(code) if code else answered())


TYPES = [
    typed("html with status 200", "text/html; charset=utf-8", lambda _: PAGE, "not_mcp"),
    typed("the answer called text/plain", "text/plain", own_json, "not_mcp"),
    typed("the answer called html", "text/html", own_json, "not_mcp"),
    typed("the answer called ndjson", "application/x-ndjson", own_json, "not_mcp"),
    typed("a picture", "image/png", lambda _: b"\x89PNG\r\n", "not_mcp"),
    typed("a media type that is none", ";;;", own_json),
    typed("no media type at all", "", own_json),
    typed("json with parameters and in capitals", "Application/JSON ; charset=UTF-8", own_json),
    typed("stream with parameters", "text/event-stream;charset=utf-8", own_event),
    typed("a stream called json", JSON, own_event, "no_answer"),
    typed("json called a stream", SSE, own_json, "no_answer"),
]


def moved(name: str, number: int, location: str | None, code: str | None, posts: int = 1) -> Case:
    """`{origin}` in the location is this server's; /stolen must never be asked for."""

    def make(call: Call) -> bytes:
        if call.path.startswith("/mcp-moved") and code is None:
            return head(200, JSON, length=len(own_json(call))) + own_json(call)
        port = call.headers["host"].rpartition(":")[2]
        places = {} if location is None else {"location": location.format(origin=call.headers["host"], port=port)}
        return head(number, "", *(f"{name}: {value}" for name, value in places.items()), length=0)

    return Case(name, script(make), failed(code) if code else answered(), posts=posts)


REDIRECTS = [
    *[moved(f"{number} on the same origin", number, "/stolen", "redirected") for number in (301, 302, 303)],
    *[moved(f"{number} on the same origin", number, "/mcp-moved", None, posts=2) for number in (307, 308)],
    *[
        moved(f"{number} to another host", number, "http://localhost:{port}/stolen", "redirected")
        for number in (301, 302, 303, 307, 308)
    ],
    moved("307 to another port", 307, "http://127.0.0.1:9/stolen", "redirected"),
    moved("307 to https", 307, "https://{origin}/stolen", "redirected"),
    moved("307 to a host with a user", 307, "http://user:word@{origin}/stolen", "redirected"),
    moved("307 to where it came from, for ever", 307, "/mcp", "redirected", posts=2),
    moved("307 from place to place, for ever", 308, "/mcp/again", "redirected", posts=2),
    moved("307 without a location", 307, None, "redirected"),
    moved("307 with an empty location", 307, "", "redirected", posts=2),
    moved("307 to no address", 307, "http://[", "redirected"),
    moved("307 to a script", 307, "javascript:alert(1)", "redirected"),
    moved("307 to a file", 307, "file:///etc/passwd", "redirected"),
    moved("307 to a name without a host", 307, "http:///stolen", "redirected"),
    moved("300 Multiple Choices", 300, None, "redirected"),
    moved("304 Not Modified", 304, None, "redirected"),
]


def headed(name: str, lines: bytes, code: str | None = None) -> Case:
    """A head with these lines before a good answer."""
    expect = failed(code, "not_mcp") if code else answered()
    return Case(name, script(HELD + lines + b"\r\n", own_event), expect)


HEADS = [
    headed("a thousand headers", b"".join(b"x-%d: y\r\n" % number for number in range(1000))),
    headed("a header of 60 KiB", b"x-long: " + b"y" * 60_000 + b"\r\n"),
    headed("a header of 1 MiB", b"x-long: " + b"y" * MIB + b"\r\n", "connection_broken"),
    headed("a header without a colon", b"nonsense\r\n", "connection_broken"),
    headed("a header with a NUL", b"x: a\x00b\r\n", "connection_broken"),
    headed("a header in Latin-1", "x-name: caf\u00e9\r\n".encode("latin-1")),
    headed("a header in UTF-8", "x-name: 보험\r\n".encode()),
    headed("a folded header", b"x-a: one\r\n two\r\n"),
    headed("a header twice", b"x-a: 1\r\nx-a: 2\r\n"),
    headed("an empty header", b"x-a:\r\n"),
    Case(
        "endless headers",
        script(HELD, forever(b"x-y: " + b"z" * 1000 + b"\r\n", 0.0)),
        failed("connection_broken", "not_mcp"),
    ),
    Case(
        "an endless status line",
        script(b"HTTP/1.1 200 ", forever(b"O" * 1000, 0.0)),
        failed("connection_broken", "not_mcp"),
    ),
    Case("LF instead of CRLF in the head", script(HELD.replace(b"\r\n", b"\n") + b"\n", own_event), answered()),
    Case("HTTP/1.0", script(HELD.replace(b"1.1", b"1.0") + b"\r\n", own_event), answered()),
    Case("no head, the answer at once", script(own_json), failed("connection_broken", "not_mcp")),
    Case("another protocol's greeting", script(b"SSH-2.0-OpenSSH_9.2\r\n"), failed("connection_broken", "not_mcp")),
    Case("HTTP/2 frames", script(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00"), failed("connection_broken", "not_mcp")),
    Case("a TLS alert", script(b"\x15\x03\x01\x00\x02\x02\x46"), failed("connection_broken", "not_mcp")),
    Case(
        "a second response behind the answer",
        script(
            lambda call: head(200, JSON, length=len(own_json(call))) + own_json(call), head(200, JSON, length=2) + b"{}"
        ),
        answered(),
    ),
]


def measured(name: str, length: str, code: str | None) -> Case:
    """A content-length as given; `{n}` is the right one, plus or minus what follows."""

    def make(call: Call) -> bytes:
        body = own_json(call)
        shown = str(len(body) + int(length)) if length.startswith(("+", "-")) and length != "-" else length
        lines = f"HTTP/1.1 200 Fake\r\ncontent-type: {JSON}\r\ncontent-length: {shown}\r\n\r\n"
        return lines.encode() + body

    return Case(name, script(make), failed(code, "not_mcp") if code else answered())


LENGTHS = [
    measured("a length that is too long", "+100", "connection_broken"),
    measured("a length that is too short", "-10", "no_answer"),
    measured("a length of nothing", "0", "no_answer"),
    measured("a length of minus one", " -1", "connection_broken"),
    measured("a length in words", "many", "connection_broken"),
    measured("a length of 50 digits", "9" * 50, "connection_broken"),
    Case(
        "two lengths that differ",
        script(
            b"HTTP/1.1 200 F\r\ncontent-type: application/json\r\ncontent-length: 5\r\ncontent-length: 9\r\n\r\n",
            own_json,
        ),
        failed("connection_broken", "not_mcp"),
    ),
    Case(
        "length and chunks together",
        script(CHUNKED_JSON_HEAD[:-2] + b"content-length: 3\r\n\r\n", lambda call: chunked(own_json(call), b"")),
        either("connection_broken", "not_mcp", "no_answer"),
    ),
    Case("chunks", script(CHUNKED_JSON_HEAD, lambda call: chunked(own_json(call), b"")), answered()),
    Case(
        "chunks with extensions and trailers",
        script(
            CHUNKED_JSON_HEAD,
            lambda call: b"%x;a=b;c\r\n%b\r\n0\r\nx-t: 1\r\n\r\n" % (len(own_json(call)), own_json(call)),
        ),
        answered(),
    ),
    Case(
        "a chunk size that is no number",
        script(CHUNKED_SSE_HEAD, b"zz\r\n", own_event),
        failed("connection_broken", "not_mcp"),
    ),
    Case(
        "a chunk size of minus one",
        script(CHUNKED_SSE_HEAD, b"-1\r\n", own_event),
        failed("connection_broken", "not_mcp"),
    ),
    Case(
        "a chunk size of 30 digits",
        script(CHUNKED_SSE_HEAD, b"f" * 30 + b"\r\n", own_event),
        failed("connection_broken", "not_mcp"),
    ),
    Case(
        "a chunk longer than said",
        script(CHUNKED_JSON_HEAD, lambda call: b"5\r\n" + own_json(call) + b"\r\n0\r\n\r\n"),
        failed("connection_broken", "not_mcp"),
    ),
    Case("no chunks though announced", script(CHUNKED_JSON_HEAD, own_json), failed("connection_broken", "not_mcp")),
    Case(
        "an encoding of the transfer that nobody knows",
        script(b"HTTP/1.1 200 F\r\ncontent-type: application/json\r\ntransfer-encoding: gzip\r\n\r\n", own_json),
        either("connection_broken", "not_mcp"),
    ),
]


def packed(name: str, encoding: str, pack: Callable[[bytes], bytes], code: str | None = None) -> Case:
    """The answer in a content encoding, though identity was asked for."""
    behave = whole(200, JSON, lambda call: pack(own_json(call)), f"content-encoding: {encoding}")
    return Case(name, behave, failed(code, "not_mcp", "connection_broken") if code else answered())


BOMB = gzip.compress(b" " * (200 * MIB), 9)

ENCODINGS = [
    packed("gzip", "gzip", gzip.compress),
    packed("deflate", "deflate", zlib.compress),
    packed("gzip twice", "gzip, gzip", lambda body: gzip.compress(gzip.compress(body)), "not_mcp"),
    Case(
        "gzip in a stream",
        script(SSE_HEAD[:-2] + b"content-encoding: gzip\r\n\r\n", lambda call: gzip.compress(own_event(call))),
        answered(),
    ),
    packed("gzip that is none", "gzip", lambda body: body, "no_answer"),
    packed("gzip cut short", "gzip", lambda body: gzip.compress(body)[:-20], "no_answer"),
    packed("identity, said so", "identity", lambda body: body),
    packed("an encoding that nobody knows", "sdch", lambda body: body[::-1], "no_answer"),
    Case(
        "a gzip bomb",
        whole(200, JSON, BOMB, "content-encoding: gzip"),
        failed("answer_too_large", "not_mcp", "no_answer"),
        heavy=True,
    ),
    Case(
        "a gzip bomb in a stream",
        script(SSE_HEAD[:-2] + b"content-encoding: gzip\r\n\r\n", joined(BOMB)),
        failed("answer_too_large", "not_mcp", "no_answer"),
        heavy=True,
    ),
    Case(
        "a gzip bomb in an error page",
        whole(500, "text/plain", BOMB, "content-encoding: gzip"),
        failed("worker_error"),
        heavy=True,
    ),
]

CASES = [*STATUSES, *TYPES, *REDIRECTS, *HEADS, *LENGTHS, *ENCODINGS]
