"""An answer that ends at any of its bytes is the whole answer or a failure that says so, never half of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from tests.e2e.faults.case import PATIENT_S, answered, either, failed
from tests.e2e.faults.lanes import Outcomes, chosen, side_by_side
from tests.e2e.faults.script import (
    CHUNKED_SSE_HEAD,
    JSON_HEAD,
    SSE_HEAD,
    WANTS_SESSION,
    chunked,
    first_then,
    own_event,
    own_json,
    reset,
    script,
    sse,
)
from tests.e2e.faults.session import PROFILES
from tests.e2e.faults.stage import Stage
from tests.e2e.faults.upstream_connection import measured_json_head, real_answer
from tests.fakes.upstream import Behaviour, Call, FakeUpstream, event, response

Whole = Callable[[Call], bytes]


# All cases of a test run before its first one is asked for.
pytestmark = pytest.mark.timeout(300)


@contextmanager
def own_stage() -> Iterator[Stage]:
    with FakeUpstream() as upstream, Stage(upstream) as stage:
        yield stage


@pytest.fixture(scope="module")
def cut_calls(request: pytest.FixtureRequest) -> Outcomes:
    cases = chosen(request, "test_a_call_whose_answer_is_cut_at_any_byte")
    return side_by_side(own_stage, check_cut_calls, cases)


@pytest.fixture(scope="module")
def cut_handshakes(request: pytest.FixtureRequest) -> Outcomes:
    return side_by_side(own_stage, check_cut_handshakes, chosen(request, "test_a_handshake_that_is_cut_at_any_byte"))


def handshake(call: Call) -> bytes:
    result = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}
    return SSE_HEAD + event(response(call, result))


# How an answer is sent, and which of its last bytes may be missing without harm.
ANSWERS: dict[str, tuple[Whole, int]] = {
    "a stream": (lambda call: SSE_HEAD + b"".join(real_answer(call)), 1),
    "a stream in chunks": (
        lambda call: CHUNKED_SSE_HEAD + b"".join(map(chunked, real_answer(call))) + chunked(b""),
        # The end of the last chunk is no part of the event: its CRLF, the closing chunk, and the event's own last byte.
        8,
    ),
    "a json body with a length": (lambda call: measured_json_head(call) + own_json(call), 0),
    "a json body without a length": (lambda call: JSON_HEAD + own_json(call), 0),
}


def cut(whole: Whole, length: int, torn: bool) -> Behaviour:
    def part(call: Call) -> bytes:
        return whole(call)[:length]

    return script(part, reset) if torn else script(part)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("torn", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize("name", ANSWERS)
def test_a_call_whose_answer_is_cut_at_any_byte(
    cut_calls: Outcomes, request: pytest.FixtureRequest, name: str, torn: bool, profile: str
) -> None:
    cut_calls.check(request)


def check_cut_calls(stage: Stage, name: str, torn: bool, profile: str) -> None:
    whole, spare = ANSWERS[name]
    upstream = stage.upstream
    with stage.bridge(profile, PATIENT_S) as host:
        stage.rest()
        upstream.on["tools/call"] = script(whole)
        tag, result = host.tagged_call("whole")
        length = len(whole(upstream.calls[-1])) + 5  # tags may grow
        assert answered().mistake(result, tag) is None
        for sent in range(length):
            upstream.on["tools/call"] = cut(whole, sent, torn)
            tag, result = host.tagged_call("struck")
            complete = sent >= len(whole(upstream.calls[-1])) - spare
            codes = ("connection_broken", "no_answer")
            expect = (either(*codes) if torn else answered()) if complete else failed(*codes)
            assert expect.mistake(result, tag) is None, sent
            upstream.calls.clear()
            upstream.on["tools/call"] = sse(own_event)
            tag, result = host.tagged_call("next")
            assert answered().mistake(result, tag) is None, sent
        assert host.quiet()


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("torn", [False, True], ids=["closed", "reset"])
def test_a_handshake_that_is_cut_at_any_byte(
    cut_handshakes: Outcomes, request: pytest.FixtureRequest, torn: bool, profile: str
) -> None:
    cut_handshakes.check(request)


def check_cut_handshakes(stage: Stage, torn: bool, profile: str) -> None:
    upstream = stage.upstream
    with stage.bridge(profile, PATIENT_S) as host:
        length = 400
        sent = 0
        while sent < length:
            upstream.on["tools/call"] = first_then(WANTS_SESSION, sse(own_event))
            upstream.on["initialize"] = cut(handshake, sent, torn)
            tag, result = host.tagged_call("struck")
            length = len(handshake(upstream.received("initialize")[-1]))
            complete = sent >= length - 1
            codes = ("connection_broken", "no_answer")
            expect = (either(*codes) if torn else answered()) if complete else failed(*codes)
            assert expect.mistake(result, tag) is None, sent
            upstream.calls.clear()
            stage.rest()
            tag, result = host.tagged_call("next")
            assert answered().mistake(result, tag) is None, sent
            sent += 1
        assert host.quiet()
