"""Faults of what is said: SSE syntax, Unicode, JSON, JSON-RPC, sizes, requests of the server, sessions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from tests.e2e.faults.case import IMPATIENT_S, Case, answered, either, failed, stalled
from tests.e2e.faults.script import (
    JSON_HEAD,
    WANTS_SESSION,
    MIB,
    SSE_HEAD,
    answering,
    first_then,
    forever,
    joined,
    notification,
    own_answer,
    own_event,
    own_json,
    script,
    server_request,
    sse,
    stall,
    tag_of,
    texts,
    times,
    whole,
)
from tests.fakes.upstream import JSON, Behaviour, Call, event, hang, initialize, raw, response, tool_text

LIMIT_BYTES = 32 * MIB


def lines(make: Callable[[bytes], bytes]) -> Behaviour:
    """A stream whose bytes are made from those of the answer's JSON."""
    return sse(lambda call: make(own_json(call)))


SYNTAX = [
    Case("CR line ends", lines(lambda data: b"event: message\rdata: " + data + b"\r\r"), answered()),
    Case("LF line ends", lines(lambda data: b"event: message\ndata: " + data + b"\n\n"), answered()),
    Case("mixed line ends", lines(lambda data: b"event: message\rdata: " + data + b"\r\n\n"), answered()),
    Case("data without a space", lines(lambda data: b"data:" + data + b"\n\n"), answered()),
    Case("data on many lines", sse(
        lambda call: b"data: " + json.dumps(own_answer(call), indent=1).replace("\n", "\ndata: ").encode() + b"\n\n"), answered()),
    Case("data, field order turned", lines(lambda data: b"data: " + data + b"\nid: 7\nevent: message\n\n"), answered()),
    Case("fields that nobody knows", lines(lambda data: b"x: y\nz\ndata: " + data + b"\n\n"), answered()),
    Case("an empty event name", lines(lambda data: b"event:\ndata: " + data + b"\n\n"), answered()),
    Case("comments everywhere", lines(lambda data: b":\n: a\ndata: " + data + b"\n: b\n\n"), answered()),
    Case("a priming event with empty data", lines(lambda data: b"id: 0\nretry: 5\ndata:\n\ndata: " + data + b"\n\n"), answered()),
    Case("retry that is no number", lines(lambda data: b"retry: soon\ndata: " + data + b"\n\n"), answered()),
    Case("a BOM before the stream", lines(lambda data: b"\xef\xbb\xbfdata: " + data + b"\n\n"), answered()),
    Case("a BOM before the data", lines(lambda data: b"data: \xef\xbb\xbf" + data + b"\n\n"), answered()),
    Case("a BOM before a json body", whole(200, JSON, lambda call: b"\xef\xbb\xbf" + own_json(call)), answered()),
    Case("a json body with space around", whole(200, JSON, lambda call: b"\r\n\t " + own_json(call) + b" \r\n\r\n"), answered()),
    Case("a json body in UTF-16", whole(200, JSON, lambda call: own_json(call).decode().encode("utf-16")),
         failed("no_answer")),
    Case("the answer in an event of another name", lines(lambda data: b"event: endpoint\ndata: " + data + b"\n\n"),
         failed("no_answer")),
    Case("data in the field's name", lines(lambda data: b" data: " + data + b"\n\n"), failed("no_answer")),
    Case("an event without its blank line", lines(lambda data: b"data: " + data + b"\n"), failed("no_answer")),
    Case("an event without its line end", lines(lambda data: b"data: " + data), failed("no_answer")),
    Case("nothing but line ends", sse(b"\r\n\r\r\n\n" * 1000), failed("no_answer")),
    Case("NUL bytes between events", lines(lambda data: b"\x00\x00\n\ndata: " + data + b"\n\n"), answered()),
]  # fmt: skip


def said(name: str, sent: str, arrives: str | None = None, **dumps: Any) -> Case:
    """The tag and `sent` behind it, of which the host reads `arrives`."""
    behave = sse(lambda call: event(response(call, tool_text(tag_of(call) + sent)), **dumps))
    return Case(name, behave, answered(lambda tag: tag + (sent if arrives is None else arrives)))


def with_bytes(name: str, sent: bytes, arrives: str, *, sse_stream: bool = True) -> Case:
    """The answer with `sent` in its text, below the level of JSON."""

    def make(call: Call) -> bytes:
        return json.dumps(response(call, tool_text(tag_of(call) + "@@"))).encode().replace(b"@@", sent)

    behave = sse(lambda call: b"data: " + make(call) + b"\n\n") if sse_stream else whole(200, JSON, make)
    return Case(name, behave, answered(lambda tag: tag + arrives))


UNICODE = [
    said("line separators as they are", "a\u2028b\u2029c\u0085d\u000b\u000ce\u001c\u001d\u001ef", ensure_ascii=False),
    said("line separators escaped", "a\u2028b\u2029c\u0085d"),
    said("Korean", "보험료 1만 원", ensure_ascii=False),
    said("beyond the basic plane", "\U0001f600\U0001f468\u200d\U0001f469", ensure_ascii=False),
    said("NUL and other controls", "\x00\x01\x1b\x7f\x9f"),
    said("a BOM inside", "\ufeffx\ufffe\uffff", ensure_ascii=False),
    said("a lone high surrogate, escaped", "\ud800x", "\ufffdx"),
    said("a lone low surrogate, escaped", "x\udfff", "x\ufffd"),
    said("surrogates in the wrong order", "\udc00\ud800", "\ufffd\ufffd"),
    said("line ends and backslashes", '\r\n\\n\\"\\ud800"'),
    with_bytes("a lone surrogate in bytes", b"\xed\xa0\x80", "\ufffd" * 3),
    with_bytes("a surrogate pair in bytes", b"\xed\xa0\xbd\xed\xb8\x80", "\ufffd" * 6),
    with_bytes("bytes that are no UTF-8", b"\xff\xfe\x80", "\ufffd" * 3),
    with_bytes("bytes that are no UTF-8, in a json body", b"\xff\xfe\x80", "\ufffd" * 3, sse_stream=False),
    with_bytes("UTF-8 longer than allowed", b"\xc0\xaf", "\ufffd" * 2),
    with_bytes("a character cut in two", b"\xeb\xb3", "\ufffd"),
]


def with_member(name: str, member: str) -> Case:
    """One more member of the result, in words of JSON or not; the text must still arrive."""

    def make(call: Call) -> str:
        return json.dumps(own_answer(call)).replace('"result": {', f'"result": {{{member}, ')

    return Case(name, texts(make), answered())


def nested(depth: int) -> str:
    return '"x": ' + "[" * depth + "]" * depth


JSON_CASES = [
    with_member("NaN and Infinity", '"x": [NaN, Infinity, -Infinity]'),
    with_member("numbers beyond every float", '"x": [1e400, -1e400, 1e-400]'),
    with_member("an integer of 4000 digits", f'"x": {"9" * 4000}'),
    with_member("duplicate keys", '"x": 1, "x": 2, "content": []'),
    with_member("a list 200 deep", nested(200)),
    with_member("a key of 100 kB", json.dumps("k" * 100_000) + ": 1"),
    with_member("an empty key", '"": {"": null}'),
    Case("a list 2000 deep", with_member("", nested(2000)).behave, either("internal", "no_answer")),
    Case("a list 100000 deep", with_member("", nested(100_000)).behave, failed("internal", "no_answer")),
    Case("objects 100000 deep", texts(lambda _: '{"a":' * 100_000), failed("no_answer")),
    Case("an integer of 5000 digits", with_member("", f'"x": {"9" * 5000}').behave, either("no_answer")),
    Case("no json", texts(lambda _: "oops"), failed("no_answer")),
    Case("json in single quotes", texts(lambda call: str(own_answer(call))), failed("no_answer")),
    Case("json with a comma too many", texts(lambda call: json.dumps(own_answer(call))[:-1] + ",}"), failed("no_answer")),
    Case("json and then more", texts(lambda call: json.dumps(own_answer(call)) + " x"), failed("no_answer")),
    Case("a json body and then another", whole(200, JSON, lambda call: own_json(call) * 2), failed("no_answer")),
]  # fmt: skip


def identified(name: str, change: Callable[[Any], Any], *, right: bool = False) -> Case:
    """The answer with another id."""
    return Case(
        f"id {name}",
        answering(lambda answer: answer | {"id": change(answer["id"])}),
        answered() if right else failed("no_answer"),
    )


def shaped(name: str, change: Callable[[dict[str, Any]], Any], *codes: str) -> Case:
    return Case(name, answering(change), failed(*codes) if codes else answered())


def without(answer: dict[str, Any], *names: str, **others: Any) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name not in names} | others


def error(call: Call, **fields: Any) -> bytes:
    return event({"jsonrpc": "2.0", "id": call.message["id"], "error": {"code": -32602, "message": "no such"}} | fields)


RPC = [
    identified("of another request", lambda own: own + 1),
    identified("of an earlier request", lambda own: own - 1),
    identified("as a string", str),
    identified("as a float", float),
    identified("as true", lambda _: True),
    identified("null, with a result", lambda _: None),
    identified("as a list", lambda own: [own]),
    identified("negative", lambda own: -own),
    shaped("id missing", lambda answer: without(answer, "id"), "no_answer"),
    shaped("jsonrpc missing", lambda answer: without(answer, "jsonrpc")),
    shaped("jsonrpc of another version", lambda answer: answer | {"jsonrpc": "1.0"}),
    shaped("members that nobody knows", lambda answer: answer | {"x": [1], "error": None}),
    shaped("neither result nor error", lambda answer: without(answer, "result"), "no_answer"),
    shaped("result and error", lambda answer: answer | {"error": {"code": 1, "message": "x"}}),
    *[
        shaped(f"result is {name}", lambda answer, value=value: answer | {"result": value}, "no_answer")
        for name, value in {"null": None, "a list": [], "a string": "x", "a number": 1, "true": True}.items()
    ],
    shaped("answer in a batch", lambda answer: [answer]),
    shaped("answer in a batch with another", lambda answer: [answer | {"id": 4711}, answer]),
    shaped("answer as a string of json in a batch", lambda answer: [json.dumps(answer)], "no_answer"),
    shaped("an empty batch", lambda _: [], "no_answer"),
    shaped("null instead of an answer", lambda _: None, "no_answer"),
    Case("an error", sse(error), failed("refused")),
    Case("an error without an id", sse(lambda call: error(call, id=None)), failed("refused")),
    Case("an error to somebody else", sse(lambda call: error(call, id=4711)), failed("no_answer")),
    Case("an error of a megabyte", sse(lambda call: error(call, error={"code": 1, "message": "x" * MIB})), failed("refused")),
    Case("an error without words", sse(lambda call: error(call, error={"code": -32603})), failed("refused")),
    Case("an error whose words are an object", sse(lambda call: error(call, error={"code": 1, "message": {}})), failed("refused")),
    Case("an error without a code", sse(lambda call: error(call, error={"message": "x"})), failed("no_answer")),
    Case("an error whose code is a string", sse(lambda call: error(call, error={"code": "E1", "message": "x"})),
         failed("no_answer")),
    Case("an error that is a string", sse(lambda call: error(call, error="oops")), failed("no_answer")),
    Case("two answers", sse(own_event, lambda call: event(response(call, tool_text("second")))), answered()),
    Case("the answer twice", sse(own_event, own_event), answered()),
    Case("an answer, then an error", sse(own_event, error), answered()),
    Case("an answer, then garbage", sse(own_event, b"\xff\x00{{{" * 1000), answered()),
    Case("garbage, then an answer", sse(event("{{{"), b"data: \xff\n\n", own_event), answered()),
    Case("somebody else's answer, then ours", sse(
        lambda call: event({"jsonrpc": "2.0", "id": call.message["id"] + 1, "result": tool_text("other")}), own_event),
        answered()),
    Case("a thousand other answers, then ours", sse(
        times(1000, event({"jsonrpc": "2.0", "id": 10**9, "result": {}})), own_event), answered()),
]  # fmt: skip


def sized(name: str, size: int, code: str | None, *, streamed: bool = True) -> Case:
    """A tag and `size` characters behind it, written in pieces so that the test holds them once."""

    def make(call: Call) -> bytes:
        return json.dumps(response(call, tool_text(tag_of(call) + "x" * size))).encode()

    behave = sse(joined(b"data: ", make, b"\n\n")) if streamed else whole(200, JSON, make)
    expect = failed(code) if code else answered(lambda tag: tag + "x" * size)
    return Case(name, behave, expect, heavy=size > 4 * MIB)


SIZES = [
    sized("an event of 3 MiB", 3 * MIB, None),
    sized("a json body of 3 MiB", 3 * MIB, None, streamed=False),
    sized("an event of 7.9 MiB", int(7.9 * MIB), None),
    sized("an event above the line limit", 9 * MIB, "answer_too_large"),
    sized("an event just below 32 MiB", LIMIT_BYTES - 4096, "answer_too_large"),
    sized("an event just above 32 MiB", LIMIT_BYTES + 1, "answer_too_large"),
    sized("a json body just below 32 MiB", LIMIT_BYTES - 4096, "answer_too_large", streamed=False),
    sized("a json body of 50 MB", 50_000_000, "answer_too_large", streamed=False),
    Case("an endless event", sse(b"data: ", forever(b"x" * MIB, 0.0)), failed("answer_too_large"), heavy=True, cut=True),
    Case("an endless event of many lines", sse(forever((b"data: " + b"x" * 500 + b"\n") * 100, 0.0)), failed("answer_too_large"), heavy=True, cut=True),
    stalled("an endless event of empty lines", sse(forever(b"data\n" * 20_000, 0.0))),
    Case("an endless comment", sse(b":", forever(b"x" * MIB, 0.0)), failed("answer_too_large"), heavy=True, cut=True),
    Case("an endless json body", script(JSON_HEAD, forever(b" " * MIB, 0.0)), failed("answer_too_large"), heavy=True, cut=True),
    Case("a big answer to somebody else, then ours", sse(
        event({"jsonrpc": "2.0", "id": 4711, "result": tool_text("y" * MIB)}), own_event), answered()),
    Case("an answer of escapes that grows beyond the line limit", sse(
        lambda call: event(response(call, tool_text(tag_of(call) + "한" * (3 * MIB // 2))), ensure_ascii=False)),
        failed("answer_too_large"), heavy=True),
    Case("a hundred thousand notifications", sse(times(1000, notification(data="x") * 100), own_event), answered(), heavy=True),
]  # fmt: skip


async def reply(call: Call) -> None:
    """The server goes on when the bridge has answered its request."""
    replied = _replies[tag_of(call)]
    await asyncio.wait_for(replied.wait(), 15)


_replies: dict[str, asyncio.Event] = {}


def asking(method: str, id_value: Any, **params: Any) -> Behaviour:
    """Ask something in the middle of the call, and answer the call only when that is answered."""

    async def ask(call: Call) -> None:
        _replies[tag_of(call)] = asyncio.Event()
        await call.send(server_request(method, id_value if id_value != "{tag}" else tag_of(call), **params))

    return sse(ask, reply, own_event)


async def take_reply(call: Call) -> None:
    """What the upstream does with an answer of the bridge: wake the call that waits for it."""
    waiting = _replies.get(str(call.message.get("id")))
    for replied in [waiting] if waiting else list(_replies.values()):
        replied.set()
    await raw(202, "", b"")(call)


def asks(name: str, method: str, id_value: Any = "{tag}", **params: Any) -> Case:
    return Case(name, asking(method, id_value, **params), answered(), others={"": take_reply})


FLOOD = [server_request("ping", number) for number in range(100)]

TALK = [
    asks("roots/list in the middle", "roots/list"),
    asks("ping in the middle", "ping"),
    asks("sampling in the middle", "sampling/createMessage", messages=[], maxTokens=1),
    asks("elicitation in the middle", "elicitation/create", message="?", requestedSchema={"type": "object"}),
    asks("a request that nobody knows", "x/y"),
    asks("a request with the id of our own", "ping", 1),
    asks("a request with an id of 0", "ping", 0),
    asks("a request with an empty id", "ping", ""),
    asks("a request with a float as id", "ping", 1.5),
    asks("a request with a huge id", "ping", "i" * 10_000),
    Case("a request with a null id", sse(server_request("ping", None), own_event), answered()),
    Case("a request without params", sse(event({"jsonrpc": "2.0", "id": 1, "method": "ping"}), own_event), answered()),
    Case("a request whose method is a number", sse(event({"jsonrpc": "2.0", "id": 1, "method": 5}), own_event), answered()),
    Case("a hundred requests", sse(*FLOOD, own_event), answered()),
    Case("a request whose answer is refused", sse(server_request("ping", 1), own_event), answered(),
         others={"": raw(500, "text/plain", b"")}),
    Case("a request whose answer stays without one", sse(server_request("ping", 1), own_event),
         either("deadline"), deadline_s=IMPATIENT_S, others={"": hang()}),
    Case("a request in a json body", whole(200, JSON, b'{"jsonrpc":"2.0","id":1,"method":"ping"}'), failed("no_answer")),
    Case("logs of every level", sse(*(notification(level=level, data={"x": 1}) for level in ("debug", "emergency", "?")),
         own_event), answered()),
    Case("progress that nobody asked for", sse(
        notification("notifications/progress", progressToken=1, progress=1, total=2), own_event), answered()),
    Case("progress without a token", sse(notification("notifications/progress", progress=1), own_event), answered()),
    Case("lists have changed", sse(*(notification(f"notifications/{what}/list_changed") for what in (
        "tools", "prompts", "resources")), own_event), answered()),
    Case("the server cancels our request", sse(
        lambda call: notification("notifications/cancelled", requestId=call.message["id"]), own_event), answered()),
    Case("a notification that nobody knows", sse(notification("notifications/x/y", a=[1]), own_event), answered()),
    Case("notifications and then nothing", sse(notification() * 10), failed("no_answer")),
    Case("a notification in a json body", whole(200, JSON, b'{"jsonrpc":"2.0","method":"notifications/message"}'),
         failed("no_answer")),
    Case("a batch of notifications and the answer", sse(
        lambda call: event([{"jsonrpc": "2.0", "method": "notifications/message"}, own_answer(call)])),
        either("no_answer")),
]  # fmt: skip


def handshake(name: str, behave: Behaviour, *codes: str, **options: Any) -> Case:
    """The handshake that the call needs goes like this; the call itself would be answered."""
    expect = failed(*codes) if codes else answered()
    return Case(
        name, first_then(WANTS_SESSION, sse(own_event)), expect, others={"initialize": behave}, posts=2, **options
    )


def session_id(value: bytes) -> Behaviour:
    async def behave(call: Call) -> None:
        body = json.dumps(response(call, {"protocolVersion": "2025-06-18", "capabilities": {}})).encode()
        lines = b"HTTP/1.1 200 Fake\r\ncontent-type: application/json\r\nmcp-session-id: " + value
        await call.send(lines + b"\r\ncontent-length: %d\r\n\r\n" % len(body) + body)

    return behave


def version(value: Any) -> Behaviour:
    return sse(lambda call: event(response(call, {"protocolVersion": value, "capabilities": {}})))


SESSIONS = [
    handshake("handshake: a session begins", initialize("new")),
    *[
        handshake(f"handshake: session id {name}", session_id(value), *codes)
        for name, value, codes in [
            ("empty", b"", ()),
            ("with spaces", b"a b  c", ()),
            ("with every visible character", bytes(range(0x21, 0x7F)), ()),
            ("of 8 KiB", b"s" * 8192, ()),
            ("in Latin-1", b"s\xe9ssion", ()),
            ("in UTF-8", "세션".encode(), ()),
            ("with a tab", b"a\tb", ()),
            ("with a NUL", b"a\x00b", ("connection_broken", "not_mcp")),
            ("twice", b"one\r\nmcp-session-id: two", ()),
        ]
    ],
    *[
        handshake(f"handshake: version {name}", version(value))
        for name, value in {
            "of the future": "2099-01-01",
            "of 2024": "2024-11-05",
            "a number": 20250618,
            "null": None,
            "empty": "",
            "in Korean": "이천이십오",
            "with a line end": "2025-06-18\r\nX-Injected: 1",
            "of 100 kB": "v" * 100_000,
        }.items()
    ],
    handshake("handshake: nothing but a result", sse(lambda call: event(response(call, {})))),
    handshake("handshake: refused", sse(lambda call: event({"id": call.message["id"], "error": {"code": -1, "message": "no"}})),
              "handshake_refused"),
    handshake("handshake: html", raw(200, "text/html", b"<p>"), "not_mcp"),
    handshake("handshake: 202", raw(202, "", b""), "no_answer"),
    handshake("handshake: 401", raw(401, "text/plain", b""), "unauthorized"),
    handshake("handshake: 503", raw(503, "text/plain", b""), "busy"),
    handshake("handshake: 404", raw(404, "text/plain", b""), "not_found"),
    handshake("handshake: closed", script(), "connection_broken"),
    handshake("handshake: an id of another", sse(lambda call: event({"id": 4711, "result": {}})), "no_answer"),
    handshake("handshake: stalls", script(SSE_HEAD, stall), "deadline", deadline_s=IMPATIENT_S),
    handshake("handshake: a result that is a list", sse(lambda call: event(response(call, []))), "no_answer"),
    handshake("handshake: notifications first", sse(
        notification(), server_request("roots/list", 1), lambda call: event(response(call, {"protocolVersion": "2025-06-18"})))),
    Case("handshake: its end is refused", first_then(WANTS_SESSION, sse(own_event)), answered(), posts=2,
         others={"notifications/initialized": raw(500, "text/plain", b"")}),
    Case("handshake: its end is answered with a stream", first_then(WANTS_SESSION, sse(own_event)), answered(), posts=2,
         others={"notifications/initialized": sse(notification())}),
    Case("every session is lost at once", WANTS_SESSION, failed("session_lost"), posts=2),
    Case("every session is unknown", first_then(WANTS_SESSION, raw(404, "text/plain", b"Session not found")),
         failed("session_lost"), posts=2, others={"initialize": initialize("gone")}),
]  # fmt: skip

CASES = [*SYNTAX, *UNICODE, *JSON_CASES, *RPC, *SIZES, *TALK, *SESSIONS]
