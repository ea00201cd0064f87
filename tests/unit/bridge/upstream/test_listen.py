"""Subscriptions upstream: the request of modern servers, the GET stream of those with a handshake."""

import json
import math
import queue
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.fakes import upstream as fakes
from tests.fakes.sdk_server import sdk_server
from tests.fakes.upstream import FakeUpstream
from tests.unit.bridge.upstream.test_upstream_eras import error, lasting
from tests.unit.bridge.upstream.test_upstream_streams import HOST, PROGRESS, QUESTION, connected, modern

from sam2_mcp_bridge.actions import Refusal, Result
from sam2_mcp_bridge.config import Config
from sam2_mcp_bridge.errors import Failure
from sam2_mcp_bridge.transport.transport import Aborted, Exchange
from sam2_mcp_bridge.upstream import listen
from sam2_mcp_bridge.upstream.upstream import Upstream

URI = "test://static-text"
PARAMS = {"notifications": {"toolsListChanged": True, "resourceSubscriptions": [URI]}}
CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


class Listener:
    """One subscription in a thread of its own."""

    def __init__(self, upstream: Upstream, params: Any) -> None:
        self.exchange = Exchange(math.inf)
        self._seen: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._outcome: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, args=(upstream, params), daemon=True)
        self._thread.start()

    def _run(self, upstream: Upstream, params: Any) -> None:
        try:
            self._outcome.put(upstream.listen(self.exchange, params, self._seen.put))
        except (Failure, Aborted) as error_:
            self._outcome.put(error_)

    def next(self) -> dict[str, Any]:
        return self._seen.get(timeout=20)

    def outcome(self) -> Any:
        """How it ended."""
        found = self._outcome.get(timeout=20)
        self._thread.join(20)
        return found


@contextmanager
def listening(upstream: Upstream, params: Any = PARAMS) -> Iterator[Listener]:
    listener = Listener(upstream, params)
    yield listener
    listener.exchange.abort()
    assert isinstance(listener.outcome(), Aborted)


def events(*messages: Any, then: Callable[[fakes.Call], Any] | None = None, first_id: int = 1) -> fakes.Behaviour:
    async def behave(call: fakes.Call) -> None:
        await call.send(fakes.head(200, fakes.SSE) + b"retry: 1\n\n")
        for number, message in enumerate(messages, first_id):
            await call.send(f"id: {number}\n".encode() + fakes.event(message))
        if then is not None:
            await then(call)

    return behave


quiet = fakes.hang(with_head=False)


def test_everything_on_the_stream_is_passed_on_and_a_closed_stream_is_opened_after_its_last_event() -> None:
    with FakeUpstream() as fake:
        upstream = connected(fake)
        fake.on["resources/subscribe"] = fakes.result({})
        fake.on["GET"] = fakes.in_turn(
            events(CHANGED, {"id": 1, "result": {}}, QUESTION), fakes.reset(), events(PROGRESS, first_id=9, then=quiet)
        )
        with listening(upstream) as listener:
            assert [listener.next() for _ in range(3)] == [CHANGED, QUESTION, PROGRESS]
        gets = fake.received("GET")
        assert [get.headers.get("last-event-id") for get in gets] == [None, "3", "3"]
        assert {get.headers["mcp-session-id"] for get in gets} == {"s"}
        assert "sam2-mcp-budget-ms" not in gets[0].headers
        (subscription,) = fake.received("resources/subscribe")
        assert subscription.message["params"] == {"uri": URI}
        assert gets[-1].cut.wait(10)


@pytest.mark.parametrize("params", [{}, None, {"notifications": {"resourceSubscriptions": "x"}}])
def test_without_resources_nothing_is_subscribed(params: Any) -> None:
    with FakeUpstream() as fake:
        upstream = connected(fake)
        fake.on["GET"] = events(CHANGED, then=quiet)
        with listening(upstream, params) as listener:
            assert listener.next() == CHANGED
        assert fake.received("resources/subscribe") == []


NO_STREAMS = {
    "405": fakes.raw(405, "text/plain", b"Method Not Allowed"),
    "404 without a session": fakes.raw(404, "text/html", b"<p>"),
    "error object": error(405, code=-32600),
    "a page": fakes.raw(200, "text/html", b"<p>"),
    "json": fakes.raw(200, fakes.JSON, b"{}"),
}


@pytest.mark.parametrize("case", NO_STREAMS)
def test_a_server_without_a_stream_says_so(case: str) -> None:
    with FakeUpstream() as fake:
        upstream = connected(fake, None)
        fake.on["GET"] = NO_STREAMS[case]
        outcome = Listener(upstream, PARAMS).outcome()
        assert isinstance(outcome, Refusal) and outcome.error["code"] == -32601
        assert len(fake.received("GET")) == 1


def test_a_server_that_reports_nothing_and_keeps_no_session_is_not_even_asked() -> None:
    with FakeUpstream() as fake:
        outcome = Listener(connected(fake, None), {"notifications": {}}).outcome()
        assert isinstance(outcome, Refusal) and fake.received("GET") == []


def test_a_refused_subscription_ends_it() -> None:
    with FakeUpstream() as fake:
        upstream = connected(fake)
        fake.on["GET"] = events(then=quiet)
        fake.on["resources/subscribe"] = error(200, code=-32602, message="no such resource")
        assert Listener(upstream, PARAMS).outcome() == Refusal({"code": -32602, "message": "no such resource"})


def test_a_subscription_without_an_answer_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listen, "SUBSCRIBE_TIMEOUT_S", 0.2)
    with FakeUpstream() as fake:
        fake.on["GET"] = events(then=quiet)
        fake.on["resources/subscribe"] = fakes.in_turn(quiet, fakes.result({}))
        upstream = connected(fake, HOST)
        with listening(upstream):
            fake.wait_for("resources/subscribe", 2)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was paused, in order."""
    noted: list[float] = []
    pause = Exchange.pause

    def note(exchange: Exchange, seconds: float) -> None:
        noted.append(seconds)
        pause(exchange, seconds)

    monkeypatch.setattr(Exchange, "pause", note)
    return noted


def test_a_stream_that_breaks_after_it_was_open_is_no_outage(pauses: list[float]) -> None:
    async def breaks(call: fakes.Call) -> None:
        await call.send(fakes.head(200, fakes.SSE, length=1000) + b"retry: 1\n\n" + fakes.event(CHANGED))

    with FakeUpstream() as fake:
        fake.on["GET"] = fakes.in_turn(breaks, breaks, breaks, events(PROGRESS, then=quiet))
        upstream = connected(fake)
        with listening(upstream, {}) as listener:
            assert [listener.next() for _ in range(4)] == [CHANGED, CHANGED, CHANGED, PROGRESS]
        assert pauses[:3] == [0.2, 0.2, 0.2]


def test_a_stream_is_opened_again_when_it_wished_to_be(pauses: list[float]) -> None:
    with FakeUpstream() as fake:
        fake.on["GET"] = fakes.in_turn(fakes.stream(lambda call: b"retry: 300\n\n"), events(CHANGED, then=quiet))
        upstream = connected(fake)
        with listening(upstream, {}) as listener:
            assert listener.next() == CHANGED
        assert pauses[0] == 0.3


def test_a_closed_door_ends_it() -> None:
    with FakeUpstream() as fake:
        upstream = connected(fake)
        fake.on["GET"] = fakes.raw(401, "", b"")
        outcome = Listener(upstream, PARAMS).outcome()
        assert isinstance(outcome, Failure) and outcome.code == "unauthorized"


def test_a_server_that_still_holds_the_former_stream_or_is_starting_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listen, "MAX_PAUSE_S", 0.05)
    with FakeUpstream() as fake:
        upstream = connected(fake)
        refusals = (fakes.raw(409, "", b""), fakes.raw(503, "", b""))
        fake.on["GET"] = fakes.in_turn(*refusals, events(CHANGED, then=quiet))
        with listening(upstream, {}) as listener:
            assert listener.next() == CHANGED


def test_a_new_session_is_subscribed_anew_and_knows_no_former_events() -> None:
    with FakeUpstream() as fake:
        upstream = connected(fake, "old")
        fake.on["initialize"] = fakes.initialize("new")
        fake.on["resources/subscribe"] = fakes.result({})
        lost = fakes.raw(404, fakes.JSON, json.dumps({"id": None, "error": {"code": -32600, "message": ""}}).encode())
        fake.on["GET"] = fakes.in_turn(events(CHANGED), lost, events(PROGRESS, then=quiet))
        with listening(upstream) as listener:
            assert [listener.next(), listener.next()] == [CHANGED, PROGRESS]
        assert [call.headers["mcp-session-id"] for call in fake.received("resources/subscribe")] == ["old", "new"]
        gets = [(get.headers["mcp-session-id"], get.headers.get("last-event-id")) for get in fake.received("GET")]
        assert gets == [("old", None), ("old", "1"), ("new", None)]


def test_a_server_that_knows_no_session_at_its_stream_has_none() -> None:
    with FakeUpstream() as fake:
        upstream = connected(fake)
        fake.on["GET"] = fakes.raw(404, "", b"")
        outcome = Listener(upstream, PARAMS).outcome()
        assert isinstance(outcome, Refusal) and outcome.error["code"] == -32601
        assert len(fake.received("GET")) == 2


def test_a_handshake_for_a_subscription_does_not_hang_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sam2_mcp_bridge.upstream.contact.MAX_HANDSHAKE_S", 0.1)
    monkeypatch.setattr("sam2_mcp_bridge.transport.transport.TIMEOUT_GRACE_S", 0.0)
    with FakeUpstream() as fake:
        fake.on["initialize"] = fakes.hang()
        outcome = Listener(Upstream(Config(url=fake.url)), PARAMS).outcome()
        assert isinstance(outcome, Failure) and outcome.code == "timeout"


def test_a_stream_without_a_deadline_notices_that_the_other_end_is_gone() -> None:
    with FakeUpstream() as fake:
        upstream = connected(fake)
        fake.on["GET"] = events(CHANGED, then=quiet)
        with listening(upstream, {}) as listener:
            listener.next()
            connection = listener.exchange._socket
            assert connection is not None
            assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) <= 60


# Modern servers


def test_a_modern_server_is_sent_the_request_and_everything_it_says_is_passed_on() -> None:
    with FakeUpstream() as fake:
        upstream = modern(fake)
        acknowledged = {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {}}
        fake.on["subscriptions/listen"] = fakes.result({"resultType": "complete"}, before=(acknowledged, CHANGED))
        listener = Listener(upstream, PARAMS)
        assert listener.outcome() == Result({"resultType": "complete"})
        assert [listener.next(), listener.next()] == [acknowledged, CHANGED]
        (call,) = fake.received("subscriptions/listen")
        assert call.message["params"]["notifications"] == PARAMS["notifications"]
        assert call.headers["mcp-method"] == "subscriptions/listen"


def test_a_modern_stream_that_breaks_is_a_failure_and_an_aborted_one_closes() -> None:
    with FakeUpstream() as fake:
        upstream = modern(fake)
        fake.on["subscriptions/listen"] = fakes.stream(lambda call: fakes.event(CHANGED))
        outcome = Listener(upstream, PARAMS).outcome()
        assert isinstance(outcome, Failure) and outcome.code == "no_answer"
        fake.on["subscriptions/listen"] = fakes.hang()
        with listening(upstream):
            _, call = fake.wait_for("subscriptions/listen", 2)
        assert call.cut.wait(10)


# Real servers


def test_a_real_server_with_sessions_reports_and_a_restart_is_survived() -> None:
    report = {"name": "report", "arguments": {"uri": URI}}
    updated = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": URI}}
    with sdk_server("legacy", resumable=True) as server:
        upstream = Upstream(Config(url=server.url))
        upstream.connect(HOST)
        listener = Listener(upstream, PARAMS)
        assert server.subscribed.wait(20)
        upstream.request(lasting(), "tools/call", report)
        assert [listener.next(), listener.next()] == [CHANGED, updated]
        port = server.port
    with sdk_server("legacy", resumable=True, port=port) as server:
        assert server.subscribed.wait(20)
        upstream.request(lasting(), "tools/call", report)
        assert [listener.next(), listener.next()] == [CHANGED, updated]
        listener.exchange.abort()
        assert isinstance(listener.outcome(), Aborted)
        upstream.close()


def test_a_real_modern_server_acknowledges_and_reports() -> None:
    with sdk_server("modern") as server:
        upstream = Upstream(Config(url=server.url))
        with listening(upstream) as listener:
            acknowledged = listener.next()
            assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
            upstream.request(lasting(), "tools/call", {"name": "test_trigger_tool_change", "arguments": {}})
            assert listener.next()["method"] == "notifications/tools/list_changed"
