"""Faults of the host: lines that no host should send, and how many lines come back.

Every case is bytes on stdin and, in the order of the requests in them, what must come back for each.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.e2e.faults.script import MIB

PARSE_ERROR = -32700
INVALID_REQUEST = -32600


@dataclass(frozen=True)
class Line:
    """One line that must come back: its id; the error's code, None for a result, ANY where both are right."""

    id: Any
    code: int | None = None
    any: bool = False

    def fits(self, answer: dict[str, Any]) -> bool:
        if type(answer.get("id")) is not type(self.id) or answer["id"] != self.id:
            return False
        return self.any or answer.get("error", {}).get("code") == self.code


@dataclass(frozen=True)
class HostCase:
    """Args:
    data: what the host writes, made when it is needed where it is large.
    fresh: the host says this before anything else, on a bridge of its own.
    """

    name: str
    data: bytes | Callable[[], bytes]
    lines: tuple[Line, ...] = ()
    fresh: bool = False

    @property
    def written(self) -> bytes:
        return self.data if isinstance(self.data, bytes) else self.data()


def ping(id_value: Any = "p", **fields: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id_value, "method": "ping"} | fields).encode()


def call(id_value: Any = "c", params: Any = None, **fields: Any) -> bytes:
    params = {"name": "echo", "arguments": {"tag": "t"}} if params is None else params
    return json.dumps({"jsonrpc": "2.0", "id": id_value, "method": "tools/call", "params": params} | fields).encode()


def batch(*elements: bytes) -> bytes:
    return b"[" + b",".join(elements) + b"]\n"


def cancel(request_id: Any, **params: Any) -> bytes:
    params = {"requestId": request_id, **params}
    return json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}).encode() + b"\n"


NOTHING = b'{"jsonrpc":"2.0","method":"notifications/x"}'
INVALID = Line(None, INVALID_REQUEST)
UNREADABLE = Line(None, PARSE_ERROR)

FRAMING = [
    HostCase("blank lines", b"\n\n \n\t\n\r\n\r\r\n"),
    HostCase("CRLF", ping() + b"\r\n", (Line("p"),)),
    HostCase("CR alone does not end a line", ping("a") + b"\r" + ping("b") + b"\n", (UNREADABLE,)),
    HostCase("space around", b" \t" + ping() + b"  \r\n", (Line("p"),)),
    HostCase("ten lines in one write", b"".join(ping(n) + b"\n" for n in range(10)), tuple(Line(n) for n in range(10))),
    HostCase("words", b"hello\n", (UNREADABLE,)),
    HostCase("half a message", ping()[:20] + b"\n", (UNREADABLE,)),
    HostCase("two messages on one line", ping() + ping() + b"\n", (UNREADABLE,)),
    HostCase("a header of another framing", b"Content-Length: 40\r\n\r\n" + ping() + b"\n", (UNREADABLE, Line("p"))),
    HostCase("NUL bytes", b"\x00\x00\x00\n", (UNREADABLE,)),
    HostCase("every byte", bytes(set(range(256)) - {10}) + b"\n", (UNREADABLE,)),
    HostCase("invalid UTF-8", b"\xff\xfe\n", (UNREADABLE,)),
    HostCase("invalid UTF-8 in a string", ping(x="@").replace(b"@", b"\xff") + b"\n", (UNREADABLE,)),
    HostCase("a surrogate in bytes", ping(x="@").replace(b"@", b"\xed\xa0\x80") + b"\n", (UNREADABLE,)),
    HostCase("Latin-1", ping(x="@").replace(b"@", "é".encode("latin-1")) + b"\n", (UNREADABLE,)),
    HostCase(
        "line separators in a string",
        json.dumps({"id": "p", "method": "ping", "x": "\u2028\u2029\u0085\x0b"}, ensure_ascii=False).encode() + b"\n",
        (Line("p"),),
    ),
    HostCase("a BOM in the middle of the session", b"\xef\xbb\xbf" + ping() + b"\n", (Line("p"),)),
    HostCase("a BOM before everything", b"\xef\xbb\xbf" + ping() + b"\n", (Line("p"),), fresh=True),
    HostCase("8 MiB of garbage", lambda: b"x" * (8 * MIB) + b"\n", (UNREADABLE,)),
    HostCase("8 MiB of nothing", lambda: b" " * (8 * MIB) + b"\n"),
    HostCase("8 MiB of brackets", lambda: b"[" * (8 * MIB) + b"\n", (UNREADABLE,)),
    HostCase("as many empty messages as a batch may have", b"[" + b"1," * 999 + b"1]\n", (INVALID,) * 1000),
    HostCase("a batch of more messages than it may have", b"[" + b"1," * 1000 + b"1]\n", (INVALID,)),
    HostCase(
        "a call of 8 MiB",
        lambda: call(params={"name": "echo", "arguments": {"tag": "t", "x": "y" * (8 * MIB)}}) + b"\n",
        (Line("c"),),
    ),
    HostCase("a notification of 8 MiB", lambda: NOTHING[:-1] + b',"params":{"x":"' + b"y" * (8 * MIB) + b'"}}\n'),
    HostCase("a line above 32 MiB", lambda: ping(x="y" * (33 * MIB)) + b"\n", (UNREADABLE,)),
    HostCase("a line far above 32 MiB", lambda: b"x" * (80 * MIB) + b"\n", (UNREADABLE,)),
    HostCase(
        "garbage as the first line", b"warning: something\n" + ping() + b"\n", (UNREADABLE, Line("p")), fresh=True
    ),
]

BATCHES = [
    HostCase("a batch of one", batch(ping()), (Line("p"),)),
    HostCase("a batch of a hundred", batch(*(ping(n) for n in range(100))), tuple(Line(n) for n in range(100))),
    HostCase(
        "a batch of everything",
        batch(ping(1), b"7", NOTHING, b"{}", call(2), b'{"id":3,"result":{}}', ping(4)),
        (Line(1), INVALID, INVALID, Line(2), Line(4)),
    ),
    HostCase("an empty batch", b"[]\n", (INVALID,)),
    HostCase("a batch of an empty batch", b"[[]]\n", (INVALID,)),
    HostCase("a batch in a batch", batch(batch(ping()).strip(), ping(2)), (INVALID, Line(2))),
    HostCase("a batch of notifications", batch(NOTHING, NOTHING)),
    HostCase("a batch of responses", batch(b'{"id":1,"result":{}}', b'{"id":2,"error":{}}')),
    HostCase("a batch with one id twice", batch(ping(5), ping(5)), (Line(5), Line(5))),
    HostCase(
        "a batch with a call and its cancellation", batch(call("gone"), cancel("gone").strip(), ping(6)), (Line(6),)
    ),
    HostCase("a batch cut short", batch(ping(1), ping(2))[:-3] + b"\n", (UNREADABLE,)),
]


def identified(name: str, id_value: Any) -> HostCase:
    return HostCase(f"id {name}", ping(id_value) + b"\n", (Line(id_value),))


def misidentified(name: str, text: str) -> HostCase:
    data = f'{{"jsonrpc":"2.0","id":{text},"method":"ping"}}\n'.encode()
    return HostCase(f"id {name}", data, (INVALID,))


IDS = [
    identified("of zero", 0),
    identified("below zero", -1),
    identified("beyond 64 bits", 2**70),
    identified("empty", ""),
    identified("in Korean", "요청-1"),
    identified("with quotes and line ends", 'a"\\\n\u2028'),
    identified("that looks like a number", "1"),
    identified("of 1000 characters", "i" * 1000),
    misidentified("null", "null"),
    misidentified("a float", "1.5"),
    misidentified("a float without a fraction", "1.0"),
    misidentified("true", "true"),
    misidentified("an object", '{"a":1}'),
    misidentified("a list", "[1]"),
    misidentified("NaN", "NaN"),
    misidentified("of 100 kB", json.dumps("i" * 100_000)),
    misidentified("of 2000 digits", "9" * 2000),
    HostCase(
        "id of 5000 digits", b'{"id":' + b"9" * 5000 + b',"method":"ping"}\n', (Line(None, PARSE_ERROR, any=True),)
    ),
    HostCase("id with a lone surrogate", b'{"id":"\\ud800","method":"ping"}\n', (Line("\ufffd"),)),
    HostCase("id twice in one message", b'{"id":1,"id":2,"method":"ping"}\n', (Line(2),)),
    HostCase('1 and "1" at once', ping(1) + b"\n" + ping("1") + b"\n", (Line(1), Line("1"))),
]


def called(name: str, params: str) -> HostCase:
    """A tools/call whatever the worker says to it."""
    data = f'{{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{params}}}\n'.encode()
    return HostCase(f"params {name}", data, (Line("c", any=True),))


MESSAGES = [
    HostCase("jsonrpc missing", b'{"id":"p","method":"ping"}\n', (Line("p"),)),
    HostCase("jsonrpc of another version", ping(jsonrpc="1.0") + b"\n", (Line("p"),)),
    *[
        HostCase(f"a line that is {text}", text.encode() + b"\n", (INVALID,))
        for text in ("null", "true", "1", '"x"', "{}")
    ],
    HostCase("method missing", b'{"jsonrpc":"2.0","id":1}\n', (Line(1, INVALID_REQUEST),)),
    *[
        HostCase(f"method is {text}", f'{{"id":1,"method":{text}}}\n'.encode(), (Line(1, INVALID_REQUEST),))
        for text in ("null", "1", "{}", "[]", "true")
    ],
    *[
        HostCase(
            f"method {name}",
            json.dumps({"jsonrpc": "2.0", "id": 1, "method": method}).encode() + b"\n",
            (Line(1, any=True),),
        )
        for name, method in {
            "empty": "",
            "unknown": "x/y",
            "in Korean": "도구/호출",
            "with line ends": "a\r\nb",
            "in capitals": "PING",
            "of 100 kB": "m" * 100_000,
            "with a NUL": "a\x00",
            "with a lone surrogate": "\ud800",
            "of the bridge's own": "notifications/initialized",
        }.items()
    ],
    *[
        called(name, params)
        for name, params in {
            "null": "null",
            "a list": '["echo"]',
            "a string": '"echo"',
            "a number": "1",
            "true": "true",
            "empty": "{}",
            "without arguments": '{"name":"echo"}',
            "with a name that is a number": '{"name":5}',
            "with a name that is null": '{"name":null}',
            "with arguments that are a list": '{"name":"echo","arguments":[1]}',
            "with arguments that are a string": '{"name":"echo","arguments":"x"}',
            "with NaN": '{"name":"echo","arguments":{"x":NaN}}',
            "with 1e400": '{"name":"echo","arguments":{"x":1e400}}',
            "with lone surrogates": '{"name":"\\ud800","arguments":{}}',
            "with a name in Korean": '{"name":"도구","arguments":{}}',
            "with _meta that is a list": '{"name":"echo","_meta":[]}',
            "with a huge number": '{"name":"echo","arguments":{"x":' + "9" * 4000 + "}}",
            "500 deep": '{"name":"echo","arguments":{"x":' + "[" * 500 + "]" * 500 + "}}",
        }.items()
    ],
    HostCase(
        "params 100000 deep",
        b'{"id":1,"method":"tools/call","params":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
        (UNREADABLE,),
    ),
    HostCase(
        "params with a number of 5000 digits", call().replace(b'"t"', b"9" * 5000) + b"\n", (Line(None, PARSE_ERROR),)
    ),
    *[
        HostCase(
            f"progress token {name}",
            call(params={"name": "echo", "arguments": {"tag": "t"}, "_meta": {"progressToken": token}}) + b"\n",
            (Line("c"),),
        )
        for name, token in {
            "null": None,
            "a float": 1.5,
            "a list": [1],
            "an object": {"a": 1},
            "true": True,
            "empty": "",
            "of 10 kB": "t" * 10_000,
        }.items()
    ],
    HostCase("a response that nobody asked for", b'{"jsonrpc":"2.0","id":1,"result":{}}\n'),
    HostCase("an error that nobody asked for", b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}\n'),
    HostCase("an error without an id", b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}\n'),
    HostCase("a notification that nobody knows", NOTHING + b"\n"),
    HostCase("a request that is also a response", b'{"id":1,"method":"ping","result":{}}\n', (Line(1),)),
    HostCase("a notification named like a request", b'{"jsonrpc":"2.0","method":"ping"}\n'),
    HostCase("a call without an id", b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo"}}\n'),
]

INITIALIZE = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}


def initialize(id_value: Any = "i", params: Any = INITIALIZE) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id_value, "method": "initialize", "params": params}).encode() + b"\n"


PARAMS: dict[str, Any] = {
    "without params": None,
    "with a list": [],
    "with a version that is a number": INITIALIZE | {"protocolVersion": 1},
    "with a version of the future": INITIALIZE | {"protocolVersion": "2099-01-01"},
    "with capabilities that are a list": INITIALIZE | {"capabilities": []},
    "with a client that is null": INITIALIZE | {"clientInfo": None},
    "of 1 MiB": INITIALIZE | {"x": "y" * MIB},
}

ORDER = [
    HostCase(
        "cancels nothing that is known", cancel(4711) + cancel("x") + cancel(None) + cancel(1.5) + cancel({"a": 1})
    ),
    HostCase(
        "cancels without saying what",
        b'{"jsonrpc":"2.0","method":"notifications/cancelled"}\n'
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}\n',
    ),
    HostCase(
        "cancels with reasons of every kind",
        cancel(1, reason=None) + cancel(1, reason={"a": 1}) + cancel(1, reason="r" * 10**5),
    ),
    HostCase("cancels what is answered", ping("done") + b"\n" + cancel("done"), (Line("done", any=True),)),
    HostCase('cancels 1 and means "1"', call(1) + b"\n" + cancel("1"), (Line(1),)),
    HostCase('cancels "1" and means 1', call("1") + b"\n" + cancel(1), (Line("1"),)),
    HostCase("cancels initialize", initialize() + cancel("i"), (Line("i"),)),
    HostCase("a second initialize", initialize("i1"), (Line("i1", any=True),)),
    HostCase(
        "a third initialize, of another version",
        initialize("i2", INITIALIZE | {"protocolVersion": "2025-06-18"}),
        (Line("i2", any=True),),
    ),
    HostCase(
        "requests before initialize",
        ping(1) + b"\n" + b'{"id":2,"method":"tools/list"}\n' + call(3) + b"\n",
        (Line(1, any=True), Line(2, any=True), Line(3, any=True)),
        fresh=True,
    ),
    HostCase("initialize twice at once", initialize(1) + initialize(2), (Line(1), Line(2, any=True)), fresh=True),
    *[
        HostCase(f"initialize {name}", initialize("i", params), (Line("i", any=True),), fresh=True)
        for name, params in PARAMS.items()
    ],
]

CASES = [*FRAMING, *BATCHES, *IDS, *MESSAGES, *ORDER]
