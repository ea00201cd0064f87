"""Faults of what is written: SSE syntax, Unicode, JSON, sizes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.e2e.faults.case import Case, answered, either, failed, stalled
from tests.e2e.faults.script import (
    JSON_HEAD,
    MIB,
    forever,
    joined,
    notification,
    own_answer,
    own_event,
    own_json,
    script,
    sse,
    tag_of,
    texts,
    times,
    whole,
)
from tests.fakes.upstream import JSON, Behaviour, Call, event, response, tool_text

LIMIT_BYTES = 32 * MIB


def lines(make: Callable[[bytes], bytes]) -> Behaviour:
    """A stream whose bytes are made from those of the answer's JSON."""
    return sse(lambda call: make(own_json(call)))


SYNTAX = [
    Case("CR line ends", lines(lambda data: b"event: message\rdata: " + data + b"\r\r"), answered()),
    Case("LF line ends", lines(lambda data: b"event: message\ndata: " + data + b"\n\n"), answered()),
    Case("mixed line ends", lines(lambda data: b"event: message\rdata: " + data + b"\r\n\n"), answered()),
    Case("data without a space", lines(lambda data: b"data:" + data + b"\n\n"), answered()),
    Case(
        "data on many lines",
        sse(
            lambda call: b"data: " + json.dumps(own_answer(call), indent=1).replace("\n", "\ndata: ").encode() + b"\n\n"
        ),
        answered(),
    ),
    Case("data, field order turned", lines(lambda data: b"data: " + data + b"\nid: 7\nevent: message\n\n"), answered()),
    Case("fields that nobody knows", lines(lambda data: b"x: y\nz\ndata: " + data + b"\n\n"), answered()),
    Case("an empty event name", lines(lambda data: b"event:\ndata: " + data + b"\n\n"), answered()),
    Case("comments everywhere", lines(lambda data: b":\n: a\ndata: " + data + b"\n: b\n\n"), answered()),
    Case(
        "a priming event with empty data",
        lines(lambda data: b"id: 0\nretry: 5\ndata:\n\ndata: " + data + b"\n\n"),
        answered(),
    ),
    Case("retry that is no number", lines(lambda data: b"retry: soon\ndata: " + data + b"\n\n"), answered()),
    Case("a BOM before the stream", lines(lambda data: b"\xef\xbb\xbfdata: " + data + b"\n\n"), answered()),
    Case("a BOM before the data", lines(lambda data: b"data: \xef\xbb\xbf" + data + b"\n\n"), answered()),
    Case("a BOM before a json body", whole(200, JSON, lambda call: b"\xef\xbb\xbf" + own_json(call)), answered()),
    Case(
        "a json body with space around",
        whole(200, JSON, lambda call: b"\r\n\t " + own_json(call) + b" \r\n\r\n"),
        answered(),
    ),
    Case(
        "a json body in UTF-16",
        whole(200, JSON, lambda call: own_json(call).decode().encode("utf-16")),
        failed("no_answer"),
    ),
    Case(
        "the answer in an event of another name",
        lines(lambda data: b"event: endpoint\ndata: " + data + b"\n\n"),
        failed("no_answer"),
    ),
    Case("data in the field's name", lines(lambda data: b" data: " + data + b"\n\n"), failed("no_answer")),
    Case("an event without its blank line", lines(lambda data: b"data: " + data + b"\n"), failed("no_answer")),
    Case("an event without its line end", lines(lambda data: b"data: " + data), failed("no_answer")),
    Case("nothing but line ends", sse(b"\r\n\r\r\n\n" * 1000), failed("no_answer")),
    Case("NUL bytes between events", lines(lambda data: b"\x00\x00\n\ndata: " + data + b"\n\n"), answered()),
]


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
    Case(
        "json with a comma too many", texts(lambda call: json.dumps(own_answer(call))[:-1] + ",}"), failed("no_answer")
    ),
    Case("json and then more", texts(lambda call: json.dumps(own_answer(call)) + " x"), failed("no_answer")),
    Case("a json body and then another", whole(200, JSON, lambda call: own_json(call) * 2), failed("no_answer")),
]


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
    Case(
        "an endless event", sse(b"data: ", forever(b"x" * MIB, 0.0)), failed("answer_too_large"), heavy=True, cut=True
    ),
    Case(
        "an endless event of many lines",
        sse(forever((b"data: " + b"x" * 500 + b"\n") * 100, 0.0)),
        failed("answer_too_large"),
        heavy=True,
        cut=True,
    ),
    stalled("an endless event of empty lines", sse(forever(b"data\n" * 20_000, 0.0))),
    Case("an endless comment", sse(b":", forever(b"x" * MIB, 0.0)), failed("answer_too_large"), heavy=True, cut=True),
    Case(
        "an endless json body",
        script(JSON_HEAD, forever(b" " * MIB, 0.0)),
        failed("answer_too_large"),
        heavy=True,
        cut=True,
    ),
    Case(
        "a big answer to somebody else, then ours",
        sse(event({"jsonrpc": "2.0", "id": 4711, "result": tool_text("y" * MIB)}), own_event),
        answered(),
    ),
    Case(
        "an answer of escapes that grows beyond the line limit",
        sse(lambda call: event(response(call, tool_text(tag_of(call) + "한" * (3 * MIB // 2))), ensure_ascii=False)),
        failed("answer_too_large"),
        heavy=True,
    ),
    Case(
        "a hundred thousand notifications",
        sse(times(1000, notification(data="x") * 100), own_event),
        answered(),
        heavy=True,
    ),
]


CASES = [*SYNTAX, *UNICODE, *JSON_CASES, *SIZES]
