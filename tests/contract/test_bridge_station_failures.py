"""Obligations of the bridge towards the station: what a failing call says, and what is tried again.

Each body runs twice, as in test_bridge_station.py.
"""

import json

import pytest
from tests.contract.station_host import Start, payload
from tests.fakes import upstream as fakes
from tests.fakes.upstream import FakeUpstream
from tests.unit.bridge.mcp_host import Host, program_host, threaded_host

from sam2_mcp_bridge.upstream.responses import MAX_BODY_BYTES

PLAIN_FAILURES = {
    "401": (fakes.raw(401, "text/plain", b"no"), "[unauthorized]", "SAM2_MCP_TOKEN_FILE"),
    "403": (fakes.raw(403, "text/plain", b"Invalid Origin header"), "[forbidden]", "Invalid Origin header"),
    "404": (fakes.raw(404, "text/html", b"<p>"), "[not_found]", "SAM2_MCP_URL"),
    "413": (fakes.raw(413, "text/plain", b""), "[request_too_large]", "handle"),
    "421": (fakes.raw(421, "text/plain", b"Invalid Host header"), "[host_not_allowed]", "SAM2_MCP_ALLOWED_HOSTS"),
    "429": (fakes.raw(429, "", b""), "[busy]", "Wait a few seconds".lower()),
    "500": (fakes.raw(500, "text/plain", b"Internal Server Error"), "[worker_error]", "log"),
    "503": (fakes.raw(503, "text/html", b"<h1>"), "[busy]", "HTTP 503)"),
    "302": (fakes.raw(302, "", b"", "location: /other"), "[redirected]", "SAM2_MCP_URL"),
    "foreign redirect": (fakes.raw(307, "", b"", "location: http://127.0.0.1:9/mcp"), "[redirected]", "token"),
    "html": (fakes.raw(200, "text/html; charset=utf-8", b"<html>hello"), "[not_mcp]", "text/html"),
    "202": (fakes.raw(202, "", b""), "[no_answer]", "HTTP 202"),
    "empty json": (fakes.raw(200, fakes.JSON, b""), "[no_answer]", "HTTP 200"),
    "empty sse": (fakes.raw(200, fakes.SSE, b""), "[no_answer]", "HTTP 200"),
    "no json": (fakes.raw(200, fakes.JSON, b"oops"), "[no_answer]", "HTTP 200"),
    "other id": (fakes.raw(200, fakes.JSON, b'{"id":4711,"result":{}}'), "[no_answer]", "HTTP 200"),
    "result is no object": (fakes.stream(lambda call: fakes.event(fakes.response(call, 7))), "[no_answer]", "HTTP 200"),
    "closed": (fakes.reset(), "[connection_broken]", "not known whether the call ran"),
    "shorter than announced": (fakes.cut_short(), "[connection_broken]", "call again"),
    "huge error page": (fakes.raw(500, "text/plain", b"x" * 100_000), "[worker_error]", "HTTP 500)"),
}


def check_failure(host: Host, upstream: FakeUpstream, case: str) -> None:
    behaviour, code, hint = PLAIN_FAILURES[case]
    upstream.on["tools/call"] = behaviour
    text = host.failing_call()
    assert text.startswith(code) and hint in text
    assert len(upstream.received("tools/call")) == 1, "a tools/call is never sent twice"
    assert host.silent()


@pytest.mark.parametrize("case", PLAIN_FAILURES)
def test_a_failing_call_says_what_failed_and_what_to_do(upstream: FakeUpstream, case: str) -> None:
    with threaded_host(upstream.url) as host:
        host.initialize()
        upstream.wait_for("notifications/initialized")
        check_failure(host, upstream, case)


def test_one_session_survives_every_failure(upstream: FakeUpstream) -> None:
    with program_host(upstream.url) as host:
        host.initialize()
        upstream.wait_for("notifications/initialized")
        for case in PLAIN_FAILURES:
            upstream.on["tools/call"] = fakes.echo
            assert "isError" not in host.call()
            upstream.on["tools/call"] = PLAIN_FAILURES[case][0]
            assert host.failing_call().startswith(PLAIN_FAILURES[case][1])
        assert host.end() == [] and host.exit_code() == 0
        assert len(host.stderr.splitlines()) <= len(PLAIN_FAILURES)


def test_421_names_the_host_to_allow(host: Host, upstream: FakeUpstream) -> None:
    upstream.on["tools/call"] = fakes.raw(421, "text/plain", b"Invalid Host header")
    assert f"add 127.0.0.1:{upstream.port} to SAM2_MCP_ALLOWED_HOSTS" in host.failing_call()


def test_a_stream_cut_at_any_byte_is_either_the_whole_answer_or_a_failure(start: Start, upstream: FakeUpstream) -> None:
    def whole(call: fakes.Call) -> bytes:
        return fakes.event(fakes.response(call, {"content": []}))

    with start(upstream.url) as host:
        host.initialize()
        upstream.on["tools/call"] = fakes.stream(whole)
        assert host.call() == {"content": []}
        length = len(whole(upstream.received("tools/call")[0]))
        for missing in range(0, length, 1 if start is threaded_host else 9):
            upstream.on["tools/call"] = fakes.stream(lambda call, missing=missing: whole(call)[: -missing or None])
            text = "".join(block["text"] for block in host.call()["content"])
            assert text == "" if missing <= 1 else text.startswith("[no_answer]")


def test_an_answer_above_the_line_limit_becomes_a_text(start: Start, upstream: FakeUpstream) -> None:
    upstream.on["tools/call"] = fakes.text("한" * 20_000)
    with start(upstream.url, max_answer_bytes=100_000) as host:
        assert host.failing_call().startswith("[answer_too_large]")
        assert host.silent()


@pytest.mark.parametrize("media_type", [fakes.SSE, fakes.JSON])
def test_an_endless_answer_is_given_up_while_it_arrives(host: Host, upstream: FakeUpstream, media_type: str) -> None:
    async def endless(call: fakes.Call) -> None:
        await call.send(fakes.head(200, media_type) + b"data: ")
        while True:
            await call.send(b"x" * 2**20)

    upstream.on["tools/call"] = endless
    assert host.failing_call().startswith(f"[answer_too_large] the answer is larger than {MAX_BODY_BYTES} bytes")
    assert host.silent()


def test_a_json_rpc_error_is_a_text_for_a_call_and_itself_for_the_rest(host: Host, upstream: FakeUpstream) -> None:
    error = {"code": -32602, "message": "Unknown thing", "data": {"known": ["a"]}}
    body = json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
    for status in (200, 400):
        upstream.on["tools/call"] = upstream.on["resources/read"] = fakes.raw(status, fakes.JSON, body)
        assert host.failing_call("nope").startswith("[refused] the worker refused nope: Unknown thing")
        assert host.request("resources/read", {})["error"] == error
    upstream.on["resources/read"] = fakes.raw(404, fakes.JSON, body)
    assert host.request("resources/read", {})["error"] == error
    upstream.on["resources/read"] = fakes.raw(401, fakes.JSON, body)
    answer = host.request("resources/read", {})["error"]
    assert "HTTP 401: Unknown thing" in answer["message"] and answer["data"]["httpStatus"] == 401


# Retries


def test_what_only_reads_is_tried_again(host: Host, upstream: FakeUpstream) -> None:
    tools = {"tools": [{"name": "a"}]}
    upstream.on["tools/list"] = fakes.in_turn(fakes.reset(), fakes.raw(503, "", b""), fakes.result(tools))
    assert host.request("tools/list", {})["result"] == tools
    upstream.on["tools/list"] = fakes.raw(503, "", b"")
    assert host.request("tools/list", {})["error"]["data"]["httpStatus"] == 503
    assert len(upstream.received("tools/list")) == 6


def test_a_permanent_redirect_on_the_same_origin_is_followed_and_remembered(host: Host, upstream: FakeUpstream) -> None:
    upstream.on["tools/call"] = fakes.in_turn(fakes.raw(308, "", b"", "location: /mcp/"), fakes.echo)
    assert "isError" not in host.call()
    assert "isError" not in host.call()
    assert [call.path for call in upstream.received("tools/call")] == ["/mcp", "/mcp/", "/mcp/"]


def test_a_refused_handshake_is_named_and_tried_again_with_the_next_call(start: Start, upstream: FakeUpstream) -> None:
    refusal = {"jsonrpc": "2.0", "id": None, "error": {"code": -32601, "message": "no handshake"}}
    upstream.on["initialize"] = fakes.raw(404, fakes.JSON, json.dumps(refusal).encode())
    with start(upstream.url) as host:
        host.initialize()
        assert host.failing_call().startswith("[handshake_refused]")
        upstream.on["initialize"] = fakes.initialize()
        assert "isError" not in host.call()


def test_a_cancelled_call_is_stopped_upstream_and_gets_no_line(host: Host, upstream: FakeUpstream) -> None:
    upstream.on["tools/call"] = fakes.in_turn(fakes.hang(), fakes.echo)
    host.send("tools/call", {"name": "slow"}, id="c")
    (call,) = upstream.wait_for("tools/call")
    host.send("notifications/cancelled", {"requestId": "c"})
    assert call.cut.wait(10)
    assert payload(host.call("echo", number=2))["arguments"] == {"number": 2}
    assert host.silent()
