"""Profiles full and auto over real pipes and sockets: what app.py carries between relay and upstream."""

from __future__ import annotations

import asyncio
import json
import queue
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import upstream as fakes
from tests.fakes.upstream import Behaviour, Call, FakeUpstream
from tests.unit.bridge.mcp_host import PATIENCE_S, STATION_INITIALIZE, Host, threaded_host

from sam2_mcp_bridge import app
from sam2_mcp_bridge.app import MAX_REPLYING, MAX_STREAMED_AHEAD, station_asks
from sam2_mcp_bridge.host.framing import Request

HOST_INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"elicitation": {}},
    "clientInfo": {"name": "host", "version": "1"},
}
DISCOVER = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
}
NOBODY_LISTENS = "http://127.0.0.1:9/mcp"


def start(host: Host) -> dict[str, Any]:
    result = host.request("initialize", HOST_INITIALIZE)["result"]
    host.send("notifications/initialized")
    assert isinstance(result, dict)
    return result


def test_of_two_handshakes_at_once_the_later_one_counts() -> None:
    with FakeUpstream() as fake, threaded_host(fake.url, profile="full") as host:
        for number in range(8):
            names = [f"{which} {number}" for which in ("first", "second")]
            params = [{"clientInfo": {"name": name, "version": "1"}} for name in names]
            lines = [
                {"jsonrpc": "2.0", "id": one, "method": "initialize", "params": two}
                for one, two in zip(names, params, strict=True)
            ]
            host.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
            assert {host.answer()["id"] for _ in names} == set(names)
            for _ in range(50):  # the later handshake may be under way still
                host.call()
                introduced = fake.received("initialize")[-1].message["params"]["clientInfo"]["name"]
                if introduced == f"second {number}":
                    break
            assert introduced == f"second {number}"


def progress(number: int) -> dict[str, Any]:
    params = {"progressToken": "t", "progress": number}
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


def test_the_host_is_told_what_the_server_told_in_the_host_s_name() -> None:
    with FakeUpstream() as fake, threaded_host(fake.url, profile="full") as host:
        assert start(host)["serverInfo"] == {"name": "fake", "version": "1"}
        (call,) = fake.received("initialize")
        assert call.message["params"] == HOST_INITIALIZE
        assert host.call(a=1)["content"] == [{"type": "text", "text": '{"name": "echo", "arguments": {"a": 1}}'}]


def test_more_notifications_than_are_kept_ahead_come_in_order_before_the_answer() -> None:
    count = 3 * MAX_STREAMED_AHEAD
    with FakeUpstream() as fake, threaded_host(fake.url, profile="full") as host:
        start(host)
        fake.on["tools/call"] = fakes.text("done", before=tuple(progress(number) for number in range(count)))
        host.send("tools/call", {"name": "echo", "_meta": {"progressToken": "t"}}, id=9)
        assert [host.answer()["params"]["progress"] for _ in range(count)] == list(range(count))
        assert host.answer()["id"] == 9


def asks(then: Behaviour) -> Behaviour:
    """A call for which the server first wants something of the host."""

    async def behave(call: Call) -> None:
        question = {"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {"message": "?"}}
        await call.send(fakes.head(200, fakes.SSE) + fakes.event(question))
        await then(call)

    return behave


def test_an_answer_of_the_host_reaches_the_server_that_asked() -> None:
    with FakeUpstream() as fake, threaded_host(fake.url, profile="full") as host:
        start(host)
        fake.on["tools/call"] = asks(fakes.hang(with_head=False))
        host.send("tools/call", {"name": "ask"}, id=9)
        question = host.answer()
        assert question["method"] == "elicitation/create"
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}}
        host.write(json.dumps(answer).encode() + b"\n")
        (reply,) = fake.wait_for("")
        assert reply.message == {"jsonrpc": "2.0", "id": "q", "result": {"action": "accept"}}


@pytest.mark.parametrize(
    ("profile", "method", "params"),
    [
        ("station", "initialize", STATION_INITIALIZE["params"]),
        ("full", "initialize", HOST_INITIALIZE),
        ("full", "server/discover", DISCOVER),
    ],
)
def test_a_host_is_told_of_shared_folders(profile: str, method: str, params: Any, tmp_path: Path) -> None:
    hint = f"Files below the shared folders ({tmp_path}) may be given by absolute path and are sent to the worker."
    with FakeUpstream() as fake, threaded_host(fake.url, profile=profile, share=(tmp_path,)) as host:
        assert host.request(method, params)["result"]["instructions"].endswith(hint)


@pytest.fixture
def complaints(monkeypatch: pytest.MonkeyPatch) -> queue.SimpleQueue[str]:
    """What would be written to stderr."""
    found: queue.SimpleQueue[str] = queue.SimpleQueue()
    monkeypatch.setattr(app, "complain", found.put)
    return found


def test_an_answer_that_the_server_does_not_take_is_complained_of_and_the_bridge_goes_on(
    complaints: queue.SimpleQueue[str],
) -> None:
    with FakeUpstream() as fake, threaded_host(fake.url, profile="full") as host:
        start(host)
        fake.on["notifications/odd"] = fakes.raw(500, "text/plain", b"no")
        host.send("notifications/odd")
        assert complaints.get(timeout=PATIENCE_S).startswith("[worker_error]")
        assert "isError" not in host.call()


def test_a_server_that_holds_notifications_back_costs_a_few_threads_and_gets_all_of_them() -> None:
    released = threading.Event()

    async def hold(call: Call) -> None:
        await asyncio.to_thread(released.wait, PATIENCE_S)
        await fakes.raw(202, "", b"")(call)

    with FakeUpstream() as fake, threaded_host(fake.url, profile="full") as host:
        start(host)
        fake.on["notifications/odd"] = hold
        for _ in range(2 * MAX_REPLYING):
            host.send("notifications/odd")
        fake.wait_for("notifications/odd", MAX_REPLYING)
        assert "isError" not in host.call()
        assert len(fake.received("notifications/odd")) == MAX_REPLYING
        released.set()
        fake.wait_for("notifications/odd", 2 * MAX_REPLYING)


def test_an_answer_that_cannot_be_written_is_complained_of(
    monkeypatch: pytest.MonkeyPatch, complaints: queue.SimpleQueue[str]
) -> None:
    def too_deep(*_: object) -> None:
        raise RecursionError

    with FakeUpstream() as fake, threaded_host(fake.url, profile="full") as host:
        start(host)
        monkeypatch.setattr(app.Upstream, "reply", too_deep)
        host.send("notifications/odd")
        assert "nested too deeply" in complaints.get(timeout=PATIENCE_S)
        assert "isError" not in host.call()


def test_a_cancelled_call_is_cut_and_the_server_is_told() -> None:
    with FakeUpstream() as fake, threaded_host(fake.url, profile="full") as host:
        start(host)
        fake.on["tools/call"] = fakes.hang()
        fake.on["notifications/cancelled"] = fakes.raw(202, "", b"")
        host.send("tools/call", {"name": "slow"}, id=9)
        (call,) = fake.wait_for("tools/call")
        host.send("notifications/cancelled", {"requestId": 9, "reason": "enough"})
        (told,) = fake.wait_for("notifications/cancelled")
        assert told.message["params"] == {"requestId": call.message["id"], "reason": "enough"}
        assert call.cut.wait(10) and host.silent()


def test_a_call_that_cannot_be_stopped_any_more_is_no_error() -> None:
    with FakeUpstream() as fake, threaded_host(fake.url, profile="full") as host:
        start(host)
        host.call()
        host.send("notifications/cancelled", {"requestId": host._ids})
        assert host.silent()


def test_a_server_that_is_down_costs_the_start_nothing_but_its_news(capfd: pytest.CaptureFixture[str]) -> None:
    with threaded_host(NOBODY_LISTENS, profile="full") as host:
        assert start(host)["serverInfo"]["name"] == "sam2-mcp"
        assert host.failing_call().startswith("[unreachable]")
    assert "[unreachable]" in capfd.readouterr().err


def test_a_defect_while_making_contact_costs_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app.Upstream, "connect", lambda *_: 1 / 0)
    with FakeUpstream() as fake, threaded_host(fake.url, profile="full") as host:
        assert start(host)["serverInfo"]["name"] == "sam2-mcp"
        host.send("tools/call", {"name": "echo"}, id=9)
        news = [host.answer()["method"] for _ in range(3)]
        assert all(method.endswith("/list_changed") for method in news)
        assert host.answer()["id"] == 9


def test_without_threads_each_request_has_its_answer_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeUpstream() as fake, threaded_host(fake.url, profile="full") as host:
        assert host.request("ping")["result"] == {}  # the reader has its thread

        def no_thread(*_: object) -> None:
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr(app, "start", no_thread)
        assert start(host)["serverInfo"]["name"] == "sam2-mcp"
        assert host.failing_call().startswith("[internal] the bridge failed inside (no thread)")


@pytest.mark.parametrize(
    ("version", "name", "station"),
    [
        ("2025-06-18", "mcp-station", True),
        ("2025-06-18", "XGEN agent", True),
        ("2024-11-05", "anything", True),
        ("2025-06-18", "claude-code", False),
        ("2025-11-25", None, False),
    ],
)
def test_a_station_is_known_by_its_name_or_by_the_oldest_revision(version: str, name: Any, station: bool) -> None:
    info = {} if name is None else {"clientInfo": {"name": name}}
    assert station_asks(Request(1, "initialize", {"protocolVersion": version} | info)) is station


@pytest.mark.parametrize(
    "request_", [Request(1, "ping", {}), Request(1, "initialize", None), Request(1, "initialize", [])]
)
def test_what_is_no_handshake_is_no_station_s(request_: Request) -> None:
    assert station_asks(request_) is False


def test_auto_becomes_the_station_s_profile_when_a_station_asks_first() -> None:
    with FakeUpstream() as fake, threaded_host(fake.url, profile="auto") as host:
        host.write(b"garbage\n")
        assert host.answer()["error"]["code"] == -32700
        assert host.request("ping")["result"] == {}
        host.write(json.dumps(STATION_INITIALIZE).encode() + b"\n")
        assert host.answer()["result"]["serverInfo"]["name"] == "sam2-mcp"
        assert host.call(kwargs={"a": 1})["content"][0]["text"] == '{"name": "echo", "arguments": {"a": 1}}'
        assert fake.received("tools/call")[0].headers["sam2-mcp-profile"].startswith("station;")


def test_auto_stays_full_for_any_other_host() -> None:
    with FakeUpstream() as fake, threaded_host(fake.url, profile="auto") as host:
        assert start(host)["serverInfo"] == {"name": "fake", "version": "1"}
        host.write(json.dumps(STATION_INITIALIZE).encode() + b"\n")
        assert host.answer()["result"]["serverInfo"]["name"] == "fake"
        host.call()
        assert fake.received("tools/call")[0].headers["sam2-mcp-profile"].startswith("full;")
