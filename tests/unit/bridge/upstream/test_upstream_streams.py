"""What comes besides the answer, cancellation, and streams that are cut and taken up again."""

import json
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.fakes import upstream as fakes
from tests.fakes.sdk_server import sdk_server
from tests.fakes.upstream import FakeUpstream

from sam2_mcp_bridge.actions import MODERN_VERSION, Answer, Host, Result
from sam2_mcp_bridge.config import Config
from sam2_mcp_bridge.errors import Failure
from sam2_mcp_bridge.transport.transport import Aborted, Exchange
from sam2_mcp_bridge.upstream.upstream import Upstream

HOST = Host("2025-11-25", {"elicitation": {}}, {"name": "host", "version": "1"})
MODERN_HOST = Host(MODERN_VERSION, {}, {"name": "new", "version": "1"})
PROGRESS = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "p", "progress": 1}}
QUESTION = {"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {"message": "?"}}
CALL = {"name": "x", "arguments": {}}


def lasting(seconds: float = 20.0) -> Exchange:
    return Exchange(time.monotonic() + seconds)


def connected(fake: FakeUpstream, session_id: str | None = "s") -> Upstream:
    fake.on["initialize"] = fakes.initialize(session_id)
    upstream = Upstream(Config(url=fake.url))
    upstream.connect(HOST)
    return upstream


def modern(fake: FakeUpstream) -> Upstream:
    fake.on["server/discover"] = fakes.result({"supportedVersions": [MODERN_VERSION], "capabilities": {}})
    upstream = Upstream(Config(url=fake.url))
    upstream.connect(MODERN_HOST)
    return upstream


def in_background(ask: Callable[[], Answer]) -> tuple[threading.Thread, list[Any]]:
    """A thread that asks, and the list that will hold what came of it."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(ask())
        except (Aborted, Failure) as error:
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, outcome


def ended(thread: threading.Thread) -> None:
    thread.join(20)
    assert not thread.is_alive()


def code_of(outcome: list[Any]) -> str:
    assert isinstance(outcome[0], Failure)
    return outcome[0].code


# Messages before the answer


def test_everything_before_the_answer_is_passed_on_in_order_before_the_return() -> None:
    with FakeUpstream() as fake:
        upstream = connected(fake)
        fake.on["tools/call"] = fakes.text("done", before=(PROGRESS, QUESTION, 7, PROGRESS))
        seen: list[Any] = []
        answer = upstream.request(lasting(), "tools/call", CALL, seen.append)
        assert answer == Result(fakes.tool_text("done"))
        assert seen == [PROGRESS, QUESTION, PROGRESS]
        assert fake.received("") == []  # nobody has answered for the host


def test_a_modern_server_may_notify_but_not_ask() -> None:
    with FakeUpstream() as fake:
        upstream = modern(fake)
        fake.on["tools/call"] = fakes.text("done", before=(PROGRESS, QUESTION))
        seen: list[Any] = []
        upstream.request(lasting(), "tools/call", CALL, seen.append)
        assert seen == [PROGRESS]
        upstream.request(lasting(), "tools/call", CALL)
        assert fake.received("") == []


def test_the_hosts_replies_go_into_the_session() -> None:
    with FakeUpstream() as fake:
        upstream = connected(fake)
        upstream.reply({"jsonrpc": "2.0", "id": "q", "result": {"action": "accept"}})
        (reply,) = fake.received("")
        assert reply.message == {"jsonrpc": "2.0", "id": "q", "result": {"action": "accept"}}
        assert reply.headers["mcp-session-id"] == "s"


@pytest.mark.parametrize(
    ("status", "code"), [(404, "session_lost"), (400, "session_lost"), (401, "unauthorized"), (500, "worker_error")]
)
def test_a_reply_that_nobody_took_is_a_failure(status: int, code: str) -> None:
    with FakeUpstream() as fake:
        upstream = connected(fake)
        fake.on[""] = fakes.raw(status, "", b"")
        with pytest.raises(Failure) as caught:
            upstream.reply({"jsonrpc": "2.0", "id": "q", "result": {}})
        assert caught.value.code == code


def test_without_a_session_and_to_a_modern_server_nothing_is_replied() -> None:
    with FakeUpstream() as fake:
        Upstream(Config(url=fake.url)).reply({"jsonrpc": "2.0", "id": 1, "result": {}})
        modern(fake).reply({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
        assert [call.rpc_method for call in fake.calls] == ["server/discover"]


def test_a_real_server_asks_and_gets_its_answer_while_the_call_runs() -> None:
    with sdk_server("legacy") as server:
        upstream = Upstream(Config(url=server.url))
        upstream.connect(HOST)

        def answer(message: dict[str, Any]) -> None:
            if message["method"] == "elicitation/create":
                content = {"action": "accept", "content": {"username": "kim", "email": "a@b.c"}}
                upstream.reply({"jsonrpc": "2.0", "id": message["id"], "result": content})

        params = {"name": "test_elicitation", "arguments": {"message": "who?"}}
        result = upstream.request(lasting(), "tools/call", params, answer)
        assert isinstance(result, Result) and "kim" in result.value["content"][0]["text"]


# Deadlines that move, and none


def test_a_deadline_may_move_while_the_call_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sam2_mcp_bridge.transport.transport.TIMEOUT_GRACE_S", 0.0)
    with FakeUpstream() as fake:
        upstream = connected(fake)
        fake.on["tools/call"] = fakes.after(0.4, fakes.echo)
        exchange = lasting(0.2)
        thread, outcome = in_background(lambda: upstream.request(exchange, "tools/call", CALL, print))
        fake.wait_for("tools/call")
        exchange.deadline_s += 20
        ended(thread)
        assert isinstance(outcome[0], Result)


def test_a_call_without_a_deadline_works_and_tells_none() -> None:
    with FakeUpstream() as fake:
        upstream = Upstream(Config(url=fake.url))
        assert isinstance(upstream.request(Exchange(float("inf")), "tools/call", CALL, print), Result)
        assert "sam2-mcp-budget-ms" not in fake.received("tools/call")[0].headers
        assert "sam2-mcp-budget-ms" in fake.received("initialize")[0].headers


# Cancellation


@pytest.mark.parametrize("abort_first", [True, False])
def test_a_server_with_a_handshake_is_told_by_the_id_upstream(abort_first: bool) -> None:
    with FakeUpstream() as fake:
        upstream = connected(fake)
        fake.on["tools/call"] = fakes.hang()
        fake.on["notifications/cancelled"] = fakes.raw(202, "", b"")
        exchange = lasting()
        thread, outcome = in_background(lambda: upstream.request(exchange, "tools/call", CALL))
        (call,) = fake.wait_for("tools/call")
        if abort_first:
            exchange.abort()
            ended(thread)
        upstream.cancelled(exchange, None if abort_first else "enough")
        exchange.abort()
        ended(thread)
        assert isinstance(outcome[0], Aborted) and call.cut.wait(10)
        (told,) = fake.received("notifications/cancelled")
        reason = {} if abort_first else {"reason": "enough"}
        assert told.message["params"] == {"requestId": call.message["id"], **reason}
        assert told.headers["mcp-session-id"] == "s"


def test_a_modern_server_sees_only_its_stream_close() -> None:
    with FakeUpstream() as fake:
        upstream = modern(fake)
        fake.on["tools/call"] = fakes.hang()
        exchange = lasting()
        thread, _ = in_background(lambda: upstream.request(exchange, "tools/call", CALL))
        (call,) = fake.wait_for("tools/call")
        upstream.cancelled(exchange)
        exchange.abort()
        ended(thread)
        assert call.cut.wait(10)
        assert fake.received("notifications/cancelled") == []


def test_what_was_never_sent_and_a_server_that_is_gone_need_no_word() -> None:
    with FakeUpstream() as fake:
        upstream = connected(fake)
        upstream.cancelled(lasting())
        fake.on["initialize"] = fakes.hang()
        fresh, exchange = Upstream(Config(url=fake.url)), lasting()
        thread, _ = in_background(lambda: fresh.request(exchange, "tools/call", CALL))
        fake.wait_for("initialize", 2)
        fresh.cancelled(exchange)
        exchange.abort()
        ended(thread)
        exchange = lasting()
        upstream.request(exchange, "tools/call", CALL)
        assert fake.received("notifications/cancelled") == []
    upstream.cancelled(exchange)


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("stateless", [True, False])
def test_a_real_server_stops_the_tool(era: str, stateless: bool) -> None:
    with sdk_server(era, stateless=stateless) as server:
        upstream = Upstream(Config(url=server.url))
        exchange = lasting()
        thread, outcome = in_background(lambda: upstream.request(exchange, "tools/call", {"name": "slow"}))
        assert server.started.wait(20)
        exchange.abort()
        upstream.cancelled(exchange, "enough")
        ended(thread)
        assert isinstance(outcome[0], Aborted)
        assert server.cancelled.wait(20)
        upstream.close()


# Streams that are cut


def with_ids(*messages: Any, retry_ms: int = 0) -> bytes:
    """Events with ids e1, e2, ..."""
    body = f"retry: {retry_ms}\n".encode()
    for number, message in enumerate(messages, 1):
        body += f"id: e{number}\ndata: {'' if message is None else json.dumps(message)}\n\n".encode()
    return body


def test_a_stream_that_ends_early_is_taken_up_after_its_last_event() -> None:
    with FakeUpstream() as fake:
        upstream = connected(fake)
        fake.on["tools/call"] = fakes.stream(lambda call: with_ids(None, PROGRESS))

        async def rest(get: fakes.Call) -> None:
            answer = fakes.response(fake.received("tools/call")[0], fakes.tool_text("late"))
            await get.send(fakes.head(200, fakes.SSE) + with_ids(None, None, None, answer))

        once_more = fakes.stream(lambda call: with_ids(None, None, PROGRESS))
        fake.on["GET"] = fakes.in_turn(once_more, fakes.cut_short(), fakes.reset(), rest)
        seen: list[Any] = []
        answer = upstream.request(lasting(), "tools/call", CALL, seen.append)
        assert answer == Result(fakes.tool_text("late"))
        assert seen == [PROGRESS, PROGRESS]
        gets = fake.received("GET")
        assert [get.headers["last-event-id"] for get in gets] == ["e2", "e3", "e3", "e3"]
        assert {get.headers["mcp-session-id"] for get in gets} == {"s"}
        assert len(fake.received("tools/call")) == 1


@pytest.mark.parametrize(
    "get", [fakes.raw(405, "", b""), fakes.raw(404, "", b""), fakes.raw(503, "", b"")], ids=["405", "404", "503"]
)
def test_a_stream_that_cannot_be_taken_up_is_a_cut_one(get: fakes.Behaviour) -> None:
    with FakeUpstream() as fake:
        upstream = connected(fake)
        fake.on["tools/call"] = fakes.stream(lambda call: with_ids(None))
        fake.on["GET"] = get
        thread, outcome = in_background(lambda: upstream.request(lasting(), "tools/call", CALL))
        ended(thread)
        assert code_of(outcome) == "no_answer"
        assert len(fake.received("tools/call")) == len(fake.received("GET")) == 1


def test_a_page_of_html_in_place_of_the_rest_is_named() -> None:
    with FakeUpstream() as fake:
        upstream = connected(fake)
        fake.on["tools/call"] = fakes.stream(lambda call: with_ids(None))
        fake.on["GET"] = fakes.raw(200, "text/html", b"<html>")
        thread, outcome = in_background(lambda: upstream.request(lasting(), "tools/call", CALL))
        ended(thread)
        assert code_of(outcome) == "not_mcp"


def test_where_the_time_is_too_short_to_come_back_nothing_is_waited_for() -> None:
    with FakeUpstream() as fake:
        upstream = connected(fake)
        fake.on["tools/call"] = fakes.stream(lambda call: with_ids(None, retry_ms=600_000))
        thread, outcome = in_background(lambda: upstream.request(lasting(60), "tools/call", CALL))
        ended(thread)
        assert code_of(outcome) == "no_answer"
        assert fake.received("GET") == []


def test_a_server_that_goes_away_meanwhile_may_have_run_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sam2_mcp_bridge.transport.transport.CONNECT_PATIENCE_S", 0.0)
    with FakeUpstream() as fake:
        upstream = connected(fake)
        fake.on["tools/call"] = fakes.stream(lambda call: with_ids(None, retry_ms=500))
        thread, outcome = in_background(lambda: upstream.request(lasting(), "tools/call", CALL))
        fake.wait_for("tools/call")
    ended(thread)
    assert code_of(outcome) in ("no_answer", "connection_broken")


def test_an_abort_ends_the_waiting_for_the_rest() -> None:
    with FakeUpstream() as fake:
        upstream = connected(fake)
        fake.on["tools/call"] = fakes.stream(lambda call: with_ids(None))
        fake.on["GET"] = fakes.hang()
        exchange = lasting()
        thread, outcome = in_background(lambda: upstream.request(exchange, "tools/call", CALL))
        fake.wait_for("GET")
        exchange.abort()
        ended(thread)
        assert isinstance(outcome[0], Aborted)


def test_the_stream_of_a_modern_server_is_never_taken_up() -> None:
    with FakeUpstream() as fake:
        upstream = modern(fake)
        fake.on["tools/call"] = fakes.stream(lambda call: with_ids(PROGRESS))
        thread, outcome = in_background(lambda: upstream.request(lasting(), "tools/call", CALL))
        ended(thread)
        assert code_of(outcome) == "no_answer" and fake.received("GET") == []


def test_a_real_server_closes_its_stream_and_is_asked_again() -> None:
    with sdk_server("legacy", resumable=True) as server:
        upstream = Upstream(Config(url=server.url))
        answer = upstream.request(lasting(), "tools/call", {"name": "test_reconnection", "arguments": {}})
        assert isinstance(answer, Result)
        assert answer.value["content"][0]["text"] == "answered on another stream"
