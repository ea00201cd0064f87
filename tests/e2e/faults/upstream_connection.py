"""Faults of the connection: it ends, it stalls, it trickles, at every stage of an answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.e2e.faults.case import IMPATIENT_S, Case, Expect, answered, either, failed, stalled
from tests.e2e.faults.script import (
    CHUNKED_JSON_HEAD,
    CHUNKED_SSE_HEAD,
    JSON_HEAD,
    MIB,
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
from tests.fakes.upstream import JSON, SSE, Behaviour, Call, event, head, raw

STATUS_LINE = b"HTTP/1.1 200 O"
HALF_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/ev"
PROGRESS = notification("notifications/progress", progressToken="x", progress=1)


def half(make: Callable[[Call], bytes]) -> Callable[[Call], bytes]:
    """The first half of the bytes."""

    def cut(call: Call) -> bytes:
        data = make(call)
        return data[: len(data) // 2]

    return cut


def measured_json_head(call: Call) -> bytes:
    return head(200, JSON, length=len(own_json(call)))


def kept_open_sse_head(_: Call) -> bytes:
    """Without a length and without a close: such a stream ends when the server says so."""
    return f"HTTP/1.1 200 Fake\r\ncontent-type: {SSE}\r\n\r\n".encode()


def chunk_of(make: Callable[[Call], bytes]) -> Callable[[Call], bytes]:
    return lambda call: chunked(make(call))


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
    stalled(
        "stalls after a json body whose end it does not tell",
        script(f"HTTP/1.1 200 Fake\r\ncontent-type: {JSON}\r\n\r\n".encode(), own_json, stall),
    ),
    stalled("stalls in a chunk", script(CHUNKED_SSE_HEAD, half(chunk_of(own_event)), stall)),
    stalled("stalls after 100 Continue", script(b"HTTP/1.1 100 Continue\r\n\r\n", stall)),
    stalled("comments for ever", script(SSE_HEAD, forever(b": ping\r\n\r\n"))),
    stalled("blank lines for ever", script(SSE_HEAD, forever(b"\r\n"))),
    stalled("notifications for ever", script(SSE_HEAD, forever(PROGRESS))),
    stalled("one byte of the head at a time, for ever", script(b"HTTP/1.1 200 OK\r\nx: ", forever(b"x"))),
    stalled("one byte of an event at a time, for ever", script(SSE_HEAD, b"data: ", forever(b"x"))),
    stalled("one byte of a json body at a time, for ever", script(JSON_HEAD, b'"', forever(b"x"))),
    stalled("a flood of comments for ever", script(SSE_HEAD, forever(b": ping\r\n\r\n" * 5000, pause_s=0.0))),
]

# The answer is there; whatever the server does with the connection then is of no interest.
KEPT_OPEN = [
    Case("stream kept open after the answer", script(SSE_HEAD, own_event, stall), answered(), cut=True),
    Case("stream without close kept open", script(kept_open_sse_head, own_event, stall), answered(), cut=True),
    Case("json body complete, connection kept open", script(measured_json_head, own_json, stall), answered(), cut=True),
    Case("comments for ever after the answer", script(SSE_HEAD, own_event, forever(b":\n")), answered(), cut=True),
    Case("one byte a segment", script(SSE_HEAD, in_pieces(own_event)), answered()),
    Case("one byte a segment, head included", script(in_pieces(joined(SSE_HEAD, own_event))), answered()),
    Case(
        "one byte a chunk",
        script(
            CHUNKED_SSE_HEAD,
            in_pieces(lambda call: b"".join(chunked(bytes([byte])) for byte in own_event(call)) + chunked(b""), 6),
        ),
        answered(),
    ),
    Case("a slow trickle that ends in time", script(SSE_HEAD, in_pieces(own_event, 4, 0.002)), answered()),
]


def real_answer(call: Call) -> list[bytes]:
    """An answer as the SDK's server gives it: a priming event with retry, a comment, progress, the result."""
    return [b"retry: 3000\r\ndata: \r\n\r\n", b": ping - 2026\r\n\r\n", PROGRESS, own_event(call)]


# Streams whose events have ids: a server of 2025-11-25 lets the client take them up again by GET.
def event_id(number: int) -> bytes:
    return b"id: %d\r\nretry: 1\r\ndata: \r\n\r\n" % number


def resumed(name: str, get: Behaviour, expect: Expect, **options: Any) -> Case:
    """The stream is cut after an event with an id; the bridge may take it up again."""
    behave = script(remember, SSE_HEAD, event_id(1), half(own_event))
    return Case(f"resumed: {name}", behave, expect, others={"GET": get}, **options)


_waiting: list[Call] = []


async def remember(call: Call) -> None:
    """The call whose answer the next GET brings."""
    _waiting[:] = [call]


def late(make: Callable[[Call], bytes]) -> Step:
    """What the cut call would have got."""
    return lambda _: make(_waiting[0])


def turns(*behaviours: Behaviour) -> Behaviour:
    """One for each GET of a call, from the first again for the next call."""
    taken: dict[int, int] = {}

    async def behave(call: Call) -> None:
        number = taken[id(_waiting[0])] = taken.get(id(_waiting[0]), -1) + 1
        await behaviours[min(number, len(behaviours) - 1)](call)

    return behave


RESUMED = [
    resumed("with the rest", script(SSE_HEAD, late(own_event)), answered()),
    resumed("with everything once more", script(SSE_HEAD, event_id(1), PROGRESS, late(own_event)), answered()),
    resumed("with the answer twice", script(SSE_HEAD, late(own_event), late(own_event)), answered()),
    resumed(
        "cut twice, then the rest",
        turns(script(SSE_HEAD, event_id(2), late(half(own_event))), script(SSE_HEAD, late(own_event))),
        answered(),
    ),
    resumed("refused with 405", raw(405, "", b""), failed("no_answer")),
    resumed("refused with 404", raw(404, "text/plain", b"Session not found"), failed("no_answer", "session_lost")),
    resumed("with a page", raw(200, "text/html", b"<p>"), failed("no_answer", "not_mcp")),
    resumed(
        "with the answer to somebody else",
        script(SSE_HEAD, event({"jsonrpc": "2.0", "id": 10**9, "result": {}})),
        failed("deadline", "no_answer"),
        deadline_s=IMPATIENT_S,
    ),
    resumed("closed every time", script(), failed("deadline", "no_answer"), deadline_s=IMPATIENT_S),
    resumed("stalls", script(SSE_HEAD, stall), failed("deadline"), deadline_s=IMPATIENT_S),
    Case("retry in an hour", script(SSE_HEAD, b"id: 1\nretry: 3600000\ndata: \n\n"), failed("no_answer")),
    Case(
        "retry of 5000 digits", script(SSE_HEAD, b"id: 1\nretry: " + b"9" * 5000 + b"\ndata: \n\n"), failed("no_answer")
    ),
    Case(
        "retry below zero",
        script(SSE_HEAD, b"id: 1\nretry: -1\ndata: \n\n"),
        failed("no_answer"),
        others={"GET": raw(405, "", b"")},
    ),
    Case(
        "an event id of 1 MiB",
        script(SSE_HEAD, b"id: " + b"i" * MIB + b"\nretry: 1\ndata: \n\n"),
        failed("no_answer"),
        others={"GET": raw(405, "", b"")},
    ),
    Case(
        "an event id in Korean",
        script(SSE_HEAD, "id: 사건\nretry: 1\ndata: \n\n".encode()),
        failed("no_answer"),
        others={"GET": raw(405, "", b"")},
    ),
    Case(
        "an event id with a NUL",
        script(SSE_HEAD, b"id: a\x00b\nretry: 1\ndata: \n\n"),
        failed("no_answer"),
        others={"GET": raw(405, "", b"")},
    ),
]

CASES = [*CUTS, *STALLS, *KEPT_OPEN, *RESUMED]
