"""Faults of the connection: it ends, it stalls, it trickles, at every stage of an answer."""

from __future__ import annotations

import json

from tests.e2e.faults.case import Case, Expect, answered, either, failed, stalled
from tests.e2e.faults.script import (
    CHUNKED_JSON_HEAD,
    CHUNKED_SSE_HEAD,
    JSON_HEAD,
    SSE_HEAD,
    Step,
    chunked,
    forever,
    in_pieces,
    joined,
    notification,
    own_event,
    own_json,
    reset,
    script,
    stall,
)
from tests.fakes.upstream import JSON, SSE, Call, head

STATUS_LINE = b"HTTP/1.1 200 O"
HALF_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/ev"
PROGRESS = notification("notifications/progress", progressToken="x", progress=1)


def half(make: Step) -> Step:
    """The first half of the bytes."""
    assert callable(make)

    def cut(call: Call) -> bytes:
        data = make(call)
        assert isinstance(data, bytes)
        return data[: len(data) // 2]

    return cut


def measured_json_head(call: Call) -> bytes:
    return head(200, JSON, length=len(own_json(call)))


def kept_open_sse_head(_: Call) -> bytes:
    """Without a length and without a close: such a stream ends when the server says so."""
    return f"HTTP/1.1 200 Fake\r\ncontent-type: {SSE}\r\n\r\n".encode()


def chunk_of(make: Step) -> Step:
    assert callable(make)

    def whole(call: Call) -> bytes:
        data = make(call)
        assert isinstance(data, bytes)
        return chunked(data)

    return whole


# At which point of an answer the connection ends: what was sent, what an orderly end and what a reset means there.
STAGES: dict[str, tuple[tuple[Step, ...], Expect, Expect]] = {
    "before the head": ((), failed("connection_broken"), failed("connection_broken")),
    "in the status line": ((STATUS_LINE,), failed("connection_broken"), failed("connection_broken")),
    "in the head": ((HALF_HEAD,), failed("connection_broken"), failed("connection_broken")),
    "after the head of a stream": ((SSE_HEAD,), failed("no_answer"), failed("connection_broken")),
    "after the first event": ((SSE_HEAD, PROGRESS), failed("no_answer"), failed("connection_broken")),
    "in the answer's event": (
        (SSE_HEAD, PROGRESS, half(own_event)),
        failed("no_answer"),
        failed("connection_broken"),
    ),
    "in a chunk of a stream": (
        (CHUNKED_SSE_HEAD, half(chunk_of(own_event))),
        failed("connection_broken"),
        failed("connection_broken"),
    ),
    "between two chunks of a stream": (
        (CHUNKED_SSE_HEAD, chunked(PROGRESS)),
        failed("connection_broken"),
        failed("connection_broken"),
    ),
    "after the answer's chunk": ((CHUNKED_SSE_HEAD, chunk_of(own_event)), answered(), either("connection_broken")),
    "in a json body with a length": (
        (measured_json_head, half(own_json)),
        failed("connection_broken"),
        failed("connection_broken"),
    ),
    "in a json body without a length": (
        (JSON_HEAD, half(own_json)),
        failed("no_answer"),
        failed("connection_broken"),
    ),
    "after a json body with a length": ((measured_json_head, own_json), answered(), either("connection_broken")),
    "after the last chunk but one of a json body": (
        (CHUNKED_JSON_HEAD, chunk_of(own_json)),
        failed("connection_broken"),
        failed("connection_broken"),
    ),
    "after the whole stream": ((SSE_HEAD, own_event), answered(), either("connection_broken")),
}

CUTS = [Case(f"closed {stage}", script(*steps), closed) for stage, (steps, closed, _) in STAGES.items()]
CUTS += [Case(f"reset {stage}", script(*steps, reset), torn) for stage, (steps, _, torn) in STAGES.items()]

STALLS = [
    stalled("stalls before the head", script(stall)),
    stalled("stalls in the status line", script(STATUS_LINE, stall)),
    stalled("stalls in the head", script(HALF_HEAD, stall)),
    stalled("stalls after the head of a stream", script(SSE_HEAD, stall)),
    stalled("stalls after the first event", script(SSE_HEAD, PROGRESS, stall)),
    stalled("stalls in the answer's event", script(SSE_HEAD, PROGRESS, half(own_event), stall)),
    stalled("stalls before the answer's blank line", script(SSE_HEAD, lambda call: own_event(call)[:-2], stall)),
    stalled("stalls in a json body with a length", script(measured_json_head, half(own_json), stall)),
    stalled("stalls after a json body whose end it does not tell", script(
        f"HTTP/1.1 200 Fake\r\ncontent-type: {JSON}\r\n\r\n".encode(), own_json, stall)),
    stalled("stalls in a chunk", script(CHUNKED_SSE_HEAD, half(chunk_of(own_event)), stall)),
    stalled("stalls after 100 Continue", script(b"HTTP/1.1 100 Continue\r\n\r\n", stall)),
    stalled("comments for ever", script(SSE_HEAD, forever(b": ping\r\n\r\n"))),
    stalled("blank lines for ever", script(SSE_HEAD, forever(b"\r\n"))),
    stalled("notifications for ever", script(SSE_HEAD, forever(PROGRESS))),
    stalled("one byte of the head at a time, for ever", script(b"HTTP/1.1 200 OK\r\nx: ", forever(b"x"))),
    stalled("one byte of an event at a time, for ever", script(SSE_HEAD, b"data: ", forever(b"x"))),
    stalled("one byte of a json body at a time, for ever", script(JSON_HEAD, b'"', forever(b"x"))),
    stalled("a flood of comments for ever", script(SSE_HEAD, forever(b": ping\r\n\r\n" * 5000, pause_s=0.0))),
]  # fmt: skip

# The answer is there; whatever the server does with the connection then is of no interest.
KEPT_OPEN = [
    Case("stream kept open after the answer", script(SSE_HEAD, own_event, stall), answered(), cut=True),
    Case("stream without close kept open", script(kept_open_sse_head, own_event, stall), answered(), cut=True),
    Case("json body complete, connection kept open", script(measured_json_head, own_json, stall), answered(), cut=True),
    Case("comments for ever after the answer", script(SSE_HEAD, own_event, forever(b":\n")), answered(), cut=True),
    Case("one byte a segment", script(SSE_HEAD, in_pieces(own_event)), answered()),
    Case("one byte a segment, head included", script(in_pieces(joined(SSE_HEAD, own_event))), answered()),
    Case("one byte a chunk", script(CHUNKED_SSE_HEAD, in_pieces(
        lambda call: b"".join(chunked(bytes([byte])) for byte in own_event(call)) + chunked(b""), 6)), answered()),
    Case("a slow trickle that ends in time", script(SSE_HEAD, in_pieces(own_event, 4, 0.002)), answered()),
]  # fmt: skip

CASES = [*CUTS, *STALLS, *KEPT_OPEN]


def real_answer(call: Call) -> list[bytes]:
    """An answer as the SDK's server gives it: priming event with id and retry, a comment, progress, the result."""
    message = json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}})
    answer = own_event(call).replace(b"event: message\r\n", b"event: message\r\nid: 2\r\n")
    return [b"id: 0\r\nretry: 3000\r\ndata: \r\n\r\n", b": ping\r\n\r\n", f"id: 1\r\ndata: {message}\r\n\r\n".encode(), answer]
