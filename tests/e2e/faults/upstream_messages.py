"""Faults of what is said: JSON-RPC, requests of the server, handshakes and sessions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from tests.e2e.faults.case import IMPATIENT_S, Case, answered, either, failed
from tests.e2e.faults.script import (
    MIB,
    SSE_HEAD,
    WANTS_SESSION,
    answering,
    first_then,
    notification,
    own_answer,
    own_event,
    script,
    server_request,
    sse,
    stall,
    tag_of,
    times,
    whole,
)
from tests.fakes.upstream import JSON, Behaviour, Call, event, hang, initialize, raw, response, tool_text


def identified(name: str, change: Callable[[Any], Any], *, right: bool = False) -> Case:
    """The answer with another id."""
    return Case(
        f"id {name}",
        answering(lambda answer: answer | {"id": change(answer["id"])}),
        answered() if right else failed("no_answer"),
    )


def shaped(name: str, change: Callable[[dict[str, Any]], Any], *codes: str) -> Case:
    return Case(name, answering(change), failed(*codes) if codes else answered())


NO_OBJECTS: dict[str, Any] = {"null": None, "a list": [], "a string": "x", "a number": 1, "true": True}


def no_object(name: str, value: Any) -> Case:
    return shaped(f"result is {name}", lambda answer: answer | {"result": value}, "no_answer")


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
    *[no_object(name, value) for name, value in NO_OBJECTS.items()],
    shaped("answer in a batch", lambda answer: [answer]),
    shaped("answer in a batch with another", lambda answer: [answer | {"id": 4711}, answer]),
    shaped("answer as a string of json in a batch", lambda answer: [json.dumps(answer)], "no_answer"),
    shaped("an empty batch", lambda _: [], "no_answer"),
    shaped("null instead of an answer", lambda _: None, "no_answer"),
    Case("an error", sse(error), failed("refused")),
    Case("an error without an id", sse(lambda call: error(call, id=None)), failed("refused")),
    Case("an error to somebody else", sse(lambda call: error(call, id=4711)), failed("no_answer")),
    Case(
        "an error of a megabyte",
        sse(lambda call: error(call, error={"code": 1, "message": "x" * MIB})),
        failed("refused"),
    ),
    Case("an error without words", sse(lambda call: error(call, error={"code": -32603})), failed("refused")),
    Case(
        "an error whose words are an object",
        sse(lambda call: error(call, error={"code": 1, "message": {}})),
        failed("refused"),
    ),
    Case("an error without a code", sse(lambda call: error(call, error={"message": "x"})), failed("no_answer")),
    Case(
        "an error whose code is a string",
        sse(lambda call: error(call, error={"code": "E1", "message": "x"})),
        failed("no_answer"),
    ),
    Case("an error that is a string", sse(lambda call: error(call, error="oops")), failed("no_answer")),
    Case("two answers", sse(own_event, lambda call: event(response(call, tool_text("second")))), answered()),
    Case("the answer twice", sse(own_event, own_event), answered()),
    Case("an answer, then an error", sse(own_event, error), answered()),
    Case("an answer, then garbage", sse(own_event, b"\xff\x00{{{" * 1000), answered()),
    Case("garbage, then an answer", sse(event("{{{"), b"data: \xff\n\n", own_event), answered()),
    Case(
        "somebody else's answer, then ours",
        sse(
            lambda call: event({"jsonrpc": "2.0", "id": call.message["id"] + 1, "result": tool_text("other")}),
            own_event,
        ),
        answered(),
    ),
    Case(
        "a thousand other answers, then ours",
        sse(times(1000, event({"jsonrpc": "2.0", "id": 10**9, "result": {}})), own_event),
        answered(),
    ),
]


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
    Case(
        "a request whose method is a number",
        sse(event({"jsonrpc": "2.0", "id": 1, "method": 5}), own_event),
        answered(),
    ),
    Case("a hundred requests", sse(*FLOOD, own_event), answered()),
    Case(
        "a request whose answer is refused",
        sse(server_request("ping", 1), own_event),
        answered(),
        others={"": raw(500, "text/plain", b"")},
    ),
    Case(
        "a request whose answer stays without one",
        sse(server_request("ping", 1), own_event),
        either("deadline"),
        deadline_s=IMPATIENT_S,
        others={"": hang()},
    ),
    Case(
        "a request in a json body", whole(200, JSON, b'{"jsonrpc":"2.0","id":1,"method":"ping"}'), failed("no_answer")
    ),
    Case(
        "logs of every level",
        sse(*(notification(level=level, data={"x": 1}) for level in ("debug", "emergency", "?")), own_event),
        answered(),
    ),
    Case(
        "progress that nobody asked for",
        sse(notification("notifications/progress", progressToken=1, progress=1, total=2), own_event),
        answered(),
    ),
    Case("progress without a token", sse(notification("notifications/progress", progress=1), own_event), answered()),
    Case(
        "lists have changed",
        sse(
            *(notification(f"notifications/{what}/list_changed") for what in ("tools", "prompts", "resources")),
            own_event,
        ),
        answered(),
    ),
    Case(
        "the server cancels our request",
        sse(lambda call: notification("notifications/cancelled", requestId=call.message["id"]), own_event),
        answered(),
    ),
    Case("a notification that nobody knows", sse(notification("notifications/x/y", a=[1]), own_event), answered()),
    Case("notifications and then nothing", sse(notification() * 10), failed("no_answer")),
    Case(
        "a notification in a json body",
        whole(200, JSON, b'{"jsonrpc":"2.0","method":"notifications/message"}'),
        failed("no_answer"),
    ),
    Case(
        "a batch of notifications and the answer",
        sse(lambda call: event([{"jsonrpc": "2.0", "method": "notifications/message"}, own_answer(call)])),
        either("no_answer"),
    ),
]


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
    handshake(
        "handshake: refused",
        sse(lambda call: event({"id": call.message["id"], "error": {"code": -1, "message": "no"}})),
        "handshake_refused",
    ),
    handshake("handshake: html", raw(200, "text/html", b"<p>"), "not_mcp"),
    handshake("handshake: 202", raw(202, "", b""), "no_answer"),
    handshake("handshake: 401", raw(401, "text/plain", b""), "unauthorized"),
    handshake("handshake: 503", raw(503, "text/plain", b""), "busy"),
    handshake("handshake: 404", raw(404, "text/plain", b""), "not_found"),
    handshake("handshake: closed", script(), "connection_broken"),
    handshake("handshake: an id of another", sse(lambda call: event({"id": 4711, "result": {}})), "no_answer"),
    handshake("handshake: stalls", script(SSE_HEAD, stall), "deadline", deadline_s=IMPATIENT_S),
    handshake("handshake: a result that is a list", sse(lambda call: event(response(call, []))), "no_answer"),
    handshake(
        "handshake: notifications first",
        sse(
            notification(),
            server_request("roots/list", 1),
            lambda call: event(response(call, {"protocolVersion": "2025-06-18"})),
        ),
    ),
    Case(
        "handshake: its end is refused",
        first_then(WANTS_SESSION, sse(own_event)),
        answered(),
        posts=2,
        others={"notifications/initialized": raw(500, "text/plain", b"")},
    ),
    Case(
        "handshake: its end is answered with a stream",
        first_then(WANTS_SESSION, sse(own_event)),
        answered(),
        posts=2,
        others={"notifications/initialized": sse(notification())},
    ),
    Case("every session is lost at once", WANTS_SESSION, failed("session_lost"), posts=2),
    Case(
        "every session is unknown",
        first_then(WANTS_SESSION, raw(404, "text/plain", b"Session not found")),
        failed("session_lost"),
        posts=2,
        others={"initialize": initialize("gone")},
    ),
]


CASES = [*RPC, *TALK, *SESSIONS]
