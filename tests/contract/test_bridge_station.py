"""The ten obligations of the bridge towards the station (reference: station.md 1.8), over real pipes and sockets.

Each body runs twice: with the bridge as a thread of this process, and with the program as the station starts it. What
a failing call says is in test_bridge_station_failures.py.
"""

import asyncio
import time
from contextlib import suppress

import pytest
from tests.contract.station_host import Start, payload
from tests.fakes import upstream as fakes
from tests.fakes.upstream import FakeUpstream
from tests.unit.bridge.mcp_host import Host

# One line for each request, in order (obligations 1, 2, 6)


def test_a_call_goes_up_and_its_answer_comes_back(host: Host, upstream: FakeUpstream) -> None:
    upstream.on["tools/call"] = fakes.text("보험 \u2028 광고", ensure_ascii=False)
    assert host.call("echo", a=1) == fakes.tool_text("보험 \u2028 광고")
    (call,) = upstream.received("tools/call")
    assert call.message["params"] == {"name": "echo", "arguments": {"a": 1}}


def test_parallel_calls_are_answered_in_order_one_upstream_at_a_time(host: Host, upstream: FakeUpstream) -> None:
    delays = [0.3, 0.1, 0.0, 0.05]
    upstream.on["tools/call"] = fakes.in_turn(*(fakes.after(delay, fakes.echo) for delay in delays))
    for number in range(4):
        host.send("tools/call", {"name": "echo", "arguments": {"number": number}}, id=7)
    host.send("ping", id="p")
    answers = [host.answer() for _ in range(5)]
    assert [payload(answer["result"])["arguments"]["number"] for answer in answers[:4]] == [0, 1, 2, 3]
    assert [answer["id"] for answer in answers] == [7, 7, 7, 7, "p"]
    assert len({call.message["id"] for call in upstream.received("tools/call")}) == 4


def test_lines_that_are_no_requests_are_answered_as_json_rpc_demands_and_harm_nothing(host: Host) -> None:
    host.write(b'\n \r\n{"id":1,"result":{}}\n{"method":"notifications/x"}\n')
    host.write(
        b"print\n\xff\n[]\n" + b'{"id":null,"method":"ping"}\n[{"id":"a","method":"ping"},{"id":2,"method":"ping"}]\n'
    )
    codes = [host.answer()["error"]["code"] for _ in range(4)]
    assert codes == [-32700, -32700, -32600, -32600]
    assert [host.answer()["id"] for _ in range(2)] == ["a", 2]
    assert host.silent()


def test_an_eight_megabyte_argument_passes(host: Host, upstream: FakeUpstream) -> None:
    upstream.on["tools/call"] = fakes.text("got it")
    assert host.call("echo", data="x" * 2**23) == fakes.tool_text("got it")
    assert len(upstream.received("tools/call")[0].body) > 2**23


def test_a_line_above_the_limit_is_refused_and_the_next_one_works(host: Host) -> None:
    host.write(b"x" * (33 * 2**20) + b"\n")
    assert host.answer()["error"]["code"] == -32700
    assert host.silent()


def test_lone_surrogates_and_nan_never_reach_the_host(host: Host, upstream: FakeUpstream) -> None:
    upstream.on["tools/call"] = fakes.result({"content": [{"type": "text", "text": "\ud800"}], "x": float("nan")})
    assert host.call() == {"content": [{"type": "text", "text": "\ufffd"}], "x": None}


@pytest.mark.parametrize("sse", [True, False])
def test_a_result_is_passed_on_as_it_came(host: Host, upstream: FakeUpstream, sse: bool) -> None:
    value = {
        "content": [],
        "structuredContent": {"n": 10**20, "f": 0.1},
        "resultType": "complete",
        "_meta": {"a/b": []},
    }
    upstream.on["tools/call"] = fakes.result(value, sse=sse, indent=1 if not sse else None)
    assert host.call() == value


# Deadlines (obligation 2)


def test_at_the_deadline_the_host_gets_its_line_and_the_worker_sees_the_stream_close(
    start: Start, upstream: FakeUpstream
) -> None:
    for with_head in (True, False):
        upstream.on["tools/call"] = fakes.in_turn(fakes.hang(with_head=with_head), fakes.echo)
        upstream.calls.clear()
        with start(upstream.url, deadline_s=1.0) as host:
            host.initialize()
            assert host.failing_call("read_text").startswith("[deadline] read_text was not finished after 1 s")
            (call,) = upstream.received("tools/call")
            assert call.cut.wait(10)
            assert payload(host.call("echo", number=2))["arguments"] == {"number": 2}
            assert host.silent()


def test_a_late_answer_is_not_taken_for_the_next_one(start: Start, upstream: FakeUpstream) -> None:
    next_came, late_sent = asyncio.Event(), asyncio.Event()

    async def late(call: fakes.Call) -> None:
        await call.send(fakes.head(200, fakes.SSE))
        await next_came.wait()
        with suppress(ConnectionError):
            await call.send(fakes.event(fakes.response(call, fakes.tool_text("late"))))
        late_sent.set()

    async def own(call: fakes.Call) -> None:
        next_came.set()
        await late_sent.wait()
        await fakes.text("own")(call)

    upstream.on["tools/call"] = fakes.in_turn(late, own)
    with start(upstream.url, deadline_s=1.0) as host:
        host.initialize()
        assert host.failing_call().startswith("[deadline]")
        assert host.call() == fakes.tool_text("own")
        assert host.silent()


def test_the_time_in_the_queue_counts_and_the_worker_is_told_what_is_left(start: Start, upstream: FakeUpstream) -> None:
    upstream.on["tools/call"] = fakes.in_turn(fakes.after(0.5, fakes.echo), fakes.hang())
    with start(upstream.url, deadline_s=2.0) as host:
        host.initialize()
        for number in range(3):
            host.send("tools/call", {"name": f"tool{number}"}, id=number)
        first, second, third = (host.answer()["result"] for _ in range(3))
        assert "isError" not in first
        assert second["content"][0]["text"].startswith("[deadline] tool1")
        assert third["content"][0]["text"].startswith("[not_started] tool2")
        budgets = [int(call.headers["sam2-mcp-budget-ms"]) for call in upstream.received("tools/call")]
        assert len(budgets) == 2 and budgets[1] + 500 <= budgets[0] <= 2000


def test_other_methods_get_a_json_rpc_error_at_the_deadline(start: Start, upstream: FakeUpstream) -> None:
    upstream.on["resources/read"] = fakes.hang()
    with start(upstream.url, deadline_s=0.5) as host:
        assert host.request("resources/read")["error"]["data"] == {"source": "bridge", "reason": "deadline"}


# Initialize, and a worker that is not there (obligations 3, 7)


def test_initialize_succeeds_at_once_when_no_worker_is_there(start: Start) -> None:
    with start("http://127.0.0.1:9/mcp") as host:
        assert host.initialize()["protocolVersion"] == "2024-11-05"
        assert host.silent()


def test_calls_wait_for_a_worker_that_is_just_starting(start: Start) -> None:
    with FakeUpstream() as other:
        port = other.port
    with start(f"http://127.0.0.1:{port}/mcp") as host:
        host.initialize()
        host.send("tools/list", {}, id=2)
        time.sleep(0.4)  # the worker's own start; the bridge is refused meanwhile
        with FakeUpstream(port) as upstream:
            assert host.answer()["result"]["tools"][0]["name"] == "echo"
            assert len(upstream.received("initialize")) == 1


def test_a_restart_of_the_worker_costs_no_call(start: Start) -> None:
    with FakeUpstream() as upstream:
        port = upstream.port
        with start(upstream.url) as host:
            host.initialize()
            assert payload(host.call("echo", number=1))["arguments"] == {"number": 1}
            upstream.stop()
            host.send("tools/call", {"name": "echo", "arguments": {"number": 2}}, id=2)
            time.sleep(0.3)  # the restart
            with FakeUpstream(port):
                assert payload(host.answer()["result"])["arguments"] == {"number": 2}


def test_the_handshake_is_made_once_in_the_background_with_our_own_words(host: Host, upstream: FakeUpstream) -> None:
    upstream.wait_for("notifications/initialized")
    host.call()
    (handshake,) = upstream.received("initialize")
    assert handshake.message["params"]["protocolVersion"] == "2025-11-25"
    assert handshake.message["params"]["capabilities"] == {}
    assert "mcp-protocol-version" not in handshake.headers
    (call,) = upstream.received("tools/call")
    assert call.headers["mcp-protocol-version"] == "2025-11-25" and "mcp-session-id" not in call.headers


def test_the_request_headers_are_those_of_the_specification(start: Start, upstream: FakeUpstream) -> None:
    with start(upstream.url, token="secret") as host:
        host.call()
    headers = upstream.received("tools/call")[0].headers
    assert headers["authorization"] == "Bearer secret"
    assert headers["accept"] == "application/json, text/event-stream"
    assert headers["content-type"] == "application/json"
    assert headers["accept-encoding"] == "identity"
    assert "origin" not in headers


def test_a_server_that_keeps_sessions_gets_its_id_back_and_a_lost_session_costs_nothing(
    start: Start, upstream: FakeUpstream
) -> None:
    sessions = ["first"]
    upstream.on["initialize"] = fakes.in_turn(fakes.initialize("first", "2025-06-18"), fakes.initialize("second"))
    upstream.on["tools/call"] = fakes.stateful(sessions, fakes.echo)
    with start(upstream.url) as host:
        host.initialize()
        host.call("echo", number=1)
        sessions.append("second")  # the server was restarted
        assert payload(host.call("echo", number=2))["arguments"] == {"number": 2}
        host.end()
        (farewell,) = upstream.wait_for("DELETE")
    calls = upstream.received("tools/call")
    assert [call.headers["mcp-session-id"] for call in calls] == ["first", "first", "second"]
    assert calls[0].headers["mcp-protocol-version"] == "2025-06-18"
    assert all("mcp-session-id" not in call.headers for call in upstream.received("initialize"))
    assert farewell.headers["mcp-session-id"] == "second"


def test_a_server_that_begins_to_want_a_session_gets_one(host: Host, upstream: FakeUpstream) -> None:
    upstream.wait_for("notifications/initialized")
    upstream.on["initialize"] = fakes.initialize("new")
    upstream.on["tools/call"] = fakes.stateful(["new"], fakes.echo)
    assert "isError" not in host.call()


def test_a_server_that_loses_every_session_is_named(host: Host, upstream: FakeUpstream) -> None:
    upstream.on["tools/call"] = fakes.stateful(["never"], fakes.echo)
    assert "[session_lost]" in host.failing_call()
    assert len(upstream.received("tools/call")) == 2


# What the server sends besides (obligation 4)


def test_notifications_and_requests_of_the_server_never_reach_the_host(host: Host, upstream: FakeUpstream) -> None:
    noise = (
        {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}},
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}},
        {"jsonrpc": "2.0", "id": "r", "method": "roots/list"},
        {"jsonrpc": "2.0", "id": 0, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {}},
        "no json",
        {"jsonrpc": "2.0", "id": 4711, "result": {"other": True}},
        ["a", "batch"],
    )
    upstream.on["tools/call"] = fakes.text("answer", before=noise)
    assert host.call() == fakes.tool_text("answer")
    assert host.silent()
    replies = {reply.message["id"]: reply.message for reply in upstream.received("")}
    assert replies["r"]["result"] == {"roots": []} and replies[0]["result"] == {}
    assert replies[1]["error"]["code"] == -32601


def test_the_first_of_two_answers_counts(host: Host, upstream: FakeUpstream) -> None:
    def twice(call: fakes.Call) -> bytes:
        return b"".join(fakes.event(fakes.response(call, fakes.tool_text(text))) for text in ("first", "second"))

    upstream.on["tools/call"] = fakes.stream(twice)
    assert host.call() == fakes.tool_text("first")
    assert host.silent()


# tools/list and kwargs (obligation 5, station.md 1.6)


def test_the_pages_of_tools_list_come_as_one_answer(host: Host, upstream: FakeUpstream) -> None:
    upstream.on["tools/list"] = fakes.in_turn(
        fakes.result({"tools": [{"name": "a"}], "nextCursor": "2"}), fakes.result({"tools": [{"name": "b"}]}, sse=False)
    )
    assert host.request("tools/list", {})["result"] == {"tools": [{"name": "a"}, {"name": "b"}]}
    assert [call.message["params"] for call in upstream.received("tools/list")] == [{}, {"cursor": "2"}]


def test_arguments_wrapped_by_the_loader_are_unwrapped(host: Host) -> None:
    assert payload(host.call("echo", kwargs={"tag": "A"})) == {"name": "echo", "arguments": {"tag": "A"}}


# The end (obligation 9)


def test_at_the_end_of_stdin_the_call_is_stopped_and_nothing_is_written(host: Host, upstream: FakeUpstream) -> None:
    upstream.on["tools/call"] = fakes.hang()
    host.send("tools/call", {"name": "slow"}, id=2)
    (call,) = upstream.wait_for("tools/call")
    assert host.end() == []
    assert call.cut.wait(10)
