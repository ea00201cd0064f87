"""Upstream by itself: what the contract tests cannot reach from the host's side."""

import asyncio
import gc
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.fakes import upstream as fakes
from tests.fakes.upstream import FakeUpstream

from sam2_mcp_bridge.actions import Refusal, Server
from sam2_mcp_bridge.config import Config
from sam2_mcp_bridge.errors import Failure, SetupError
from sam2_mcp_bridge.transport import transport as module
from sam2_mcp_bridge.transport.transport import CONNECT_PATIENCE_S, OUTAGE_MEMORY_S, Aborted, Exchange, Outage
from sam2_mcp_bridge.upstream import contact
from sam2_mcp_bridge.upstream import upstream as upstream_module
from sam2_mcp_bridge.upstream.session import Session
from sam2_mcp_bridge.upstream.upstream import Upstream


def lasting(seconds: float = 20.0) -> Exchange:
    return Exchange(time.monotonic() + seconds)


def code_of(upstream: Upstream, exchange: Exchange, method: str = "tools/call") -> str:
    with pytest.raises(Failure) as caught:
        upstream.request(exchange, method, {"name": "x"})
    return caught.value.code


@contextmanager
def in_thread(target: Any, *args: Any) -> Iterator[None]:
    thread = threading.Thread(target=target, args=args)
    thread.start()
    yield
    thread.join(20)
    assert not thread.is_alive()


def aborts(upstream: Upstream, exchange: Exchange) -> None:
    with pytest.raises(Aborted):
        upstream.request(exchange, "tools/list", {})


def test_a_restart_is_worth_waiting_for_and_a_long_outage_is_not() -> None:
    outage = Outage()
    assert outage.failed(1000.0)
    assert outage.failed(1000.0 + CONNECT_PATIENCE_S - 0.1)
    assert not outage.failed(1000.0 + CONNECT_PATIENCE_S)
    assert not outage.failed(1000.0 + CONNECT_PATIENCE_S + OUTAGE_MEMORY_S)
    assert outage.failed(1000.0 + CONNECT_PATIENCE_S + 2 * OUTAGE_MEMORY_S + 0.1)  # a new outage


def test_a_refused_connection_is_tried_again_for_as_long_as_the_call_has(monkeypatch: pytest.MonkeyPatch) -> None:
    upstream = Upstream(Config(url="http://127.0.0.1:9/mcp"))
    started_s = time.monotonic()
    assert code_of(upstream, lasting(0.3)) == "unreachable"
    assert time.monotonic() - started_s >= 0.1
    monkeypatch.setattr(module, "CONNECT_PATIENCE_S", 0.0)
    exchange = lasting()
    assert code_of(upstream, exchange) == "unreachable"
    assert exchange.remaining_s > 1, "a server that is off costs each call all its time"


def test_a_host_name_that_does_not_exist_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CONNECT_PATIENCE_S", 0.0)
    assert code_of(Upstream(Config(url="http://no-such-host.invalid/mcp")), lasting()) == "unreachable"


def test_a_server_that_accepts_and_says_nothing_runs_into_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TIMEOUT_GRACE_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        upstream = Upstream(Config(url=f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"))
        assert code_of(upstream, lasting(0.1)) == "timeout"


def test_a_call_behind_a_hanging_handshake_ends_in_its_own_time() -> None:
    with FakeUpstream() as fake:
        fake.on["initialize"] = fakes.hang()
        upstream = Upstream(Config(url=fake.url))
        first = lasting()
        with in_thread(aborts, upstream, first):
            fake.wait_for("initialize")
            assert code_of(upstream, lasting(0.1)) == "timeout"
            first.abort()


async def murmurs(call: fakes.Call) -> None:
    """Comments and no answer: HTTP sees that something comes."""
    await call.send(fakes.head(200, fakes.SSE))
    while True:
        await call.send(b": ping\n\n")
        await asyncio.sleep(0.02)


def test_a_handshake_in_which_only_comments_come_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream_module, "HANDSHAKE_TIMEOUT_S", 0.3)
    monkeypatch.setattr(contact, "MAX_HANDSHAKE_S", 0.3)
    with FakeUpstream() as fake:
        fake.on["initialize"] = murmurs
        upstream = Upstream(Config(url=fake.url))
        with pytest.raises(Failure, match="timeout"):
            upstream.connect()
        assert code_of(upstream, lasting(3600)) == "timeout"
        fake.on["initialize"] = fakes.initialize()
        assert upstream.connect().info["name"] == "fake"


def test_a_server_that_keeps_back_the_answer_to_a_notification_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(contact, "INITIALIZED_TIMEOUT_S", 0.1)
    monkeypatch.setattr(module, "TIMEOUT_GRACE_S", 0.0)
    with FakeUpstream() as fake:
        fake.on["notifications/initialized"] = fakes.hang(with_head=False)
        exchange = lasting()
        exchange.watched = True
        assert Upstream(Config(url=fake.url)).request(exchange, "tools/list", {}, print)
        assert exchange.remaining_s > 0


def test_an_error_about_the_request_itself_is_told_as_it_came_also_with_status_404() -> None:
    async def not_found(call: fakes.Call) -> None:
        error = {"code": -32002, "message": "Resource not found"}
        body = {"jsonrpc": "2.0", "id": call.message["id"], "error": error}
        await fakes.raw(404, fakes.JSON, json.dumps(body).encode())(call)

    with FakeUpstream() as fake:
        fake.on |= {"initialize": fakes.initialize("s"), "resources/read": not_found}
        answer = Upstream(Config(url=fake.url)).request(lasting(), "resources/read", {"uri": "a:b"})
        assert answer == Refusal({"code": -32002, "message": "Resource not found"})


@pytest.mark.parametrize("with_head", [True, False])
def test_an_aborted_call_ends_at_once_and_closes_its_connection(with_head: bool) -> None:
    with FakeUpstream() as fake:
        fake.on["tools/list"] = fakes.hang(with_head=with_head)
        upstream = Upstream(Config(url=fake.url))
        exchange = lasting()
        with in_thread(aborts, upstream, exchange):
            (call,) = fake.wait_for("tools/list")
            exchange.abort()
        assert call.cut.wait(10)
        assert len(fake.received("tools/list")) == 1


def test_a_call_aborted_before_it_connects_sends_nothing() -> None:
    with FakeUpstream() as fake:
        exchange = lasting()
        exchange.abort()
        aborts(Upstream(Config(url=fake.url)), exchange)
        assert fake.calls == []
        exchange.abort()  # its socket is closed by now


def test_a_handshake_without_a_version_is_taken_as_ours() -> None:
    with FakeUpstream() as fake:
        fake.on["initialize"] = fakes.result({"capabilities": {}})
        Upstream(Config(url=fake.url)).request(lasting(), "tools/list", None)
        assert fake.received("tools/list")[0].headers["mcp-protocol-version"] == "2025-11-25"


def test_a_session_that_another_thread_has_renewed_is_used_as_it_is() -> None:
    with FakeUpstream() as fake:
        fake.on["initialize"] = fakes.initialize("old")
        upstream = Upstream(Config(url=fake.url))
        upstream.connect()
        answer = fakes.stateful(["new"], fakes.result({"tools": []}))

        async def renewed_meanwhile(call: fakes.Call) -> None:
            upstream.contact.session = Session(Server("2025-11-25", {}, {}, None, {}), "new")
            await answer(call)

        fake.on["tools/list"] = fakes.in_turn(renewed_meanwhile, answer)
        upstream.request(lasting(), "tools/list", None)
        assert [call.headers["mcp-session-id"] for call in fake.received("tools/list")] == ["old", "new"]
        assert len(fake.received("initialize")) == 1


def test_the_end_of_a_session_is_told_to_the_server_even_if_it_is_gone() -> None:
    with FakeUpstream() as fake:
        fake.on["initialize"] = fakes.initialize("s")
        upstream = Upstream(Config(url=fake.url))
        upstream.connect()
        upstream.close()
        assert fake.wait_for("DELETE")[0].headers["mcp-session-id"] == "s"
    upstream.close()


def test_without_a_session_nothing_is_told() -> None:
    with FakeUpstream() as fake:
        upstream = Upstream(Config(url=fake.url))
        upstream.close()
        upstream.connect()
        upstream.close()
        assert fake.received("DELETE") == []


def test_an_address_that_httpx_refuses_is_a_setup_error() -> None:
    with pytest.raises(SetupError, match="SAM2_MCP_URL"):
        Upstream(Config(url="http://[::1:80/mcp"))


def test_a_session_that_is_lost_under_many_calls_at_once_costs_none_of_them() -> None:
    sessions = ["0"]
    with FakeUpstream() as fake:

        async def initialize(call: fakes.Call) -> None:
            sessions.append(str(len(sessions)))
            await fakes.initialize(sessions[-1])(call)

        async def lossy(call: fakes.Call) -> None:
            if len(fake.received("tools/call")) == 7:
                sessions.append(str(len(sessions)))  # the server was restarted
            await fakes.stateful(sessions, fakes.echo)(call)

        fake.on |= {"initialize": initialize, "tools/call": lossy}
        upstream = Upstream(Config(url=fake.url))
        upstream.connect()
        answers: list[Any] = []

        def call_twice(number: int) -> None:
            params = {"name": str(number)}
            answers.extend([upstream.request(lasting(), "tools/call", params) for _ in range(2)])

        threads = [threading.Thread(target=call_twice, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        names = sorted(json.loads(answer.value["content"][0]["text"])["name"] for answer in answers)
        assert names == sorted(str(number) for number in range(8) for _ in range(2))


def test_nothing_is_kept_of_calls_that_are_over() -> None:
    with FakeUpstream() as fake:
        upstream = Upstream(Config(url=fake.url))
        for _ in range(3):
            upstream.request(lasting(), "tools/call", {"name": "x"})
        gc.collect()
        assert len(upstream.rpc._sent) == 0
