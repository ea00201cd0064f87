"""Profile full with a host that makes a handshake, on servers of both eras."""

from typing import Any

import pytest
from tests.unit.bridge.relay_drive import (
    ASKABLE,
    CAPABILITIES,
    DOWN,
    INFO,
    LIMIT_S,
    LISTS,
    MAX_LINE_BYTES,
    MAX_PARALLEL,
    PREFIX,
    SERVERS,
    Drive,
    legacy_server,
    modern_server,
    notification,
    ready,
    server_request,
    text_of,
)

from sam2_mcp_bridge.actions import Abort, Connect, Host, Refusal, Result, Send, Server
from sam2_mcp_bridge.full.relay import INITIALIZE_WAIT_S, MAX_OPEN_REQUESTS, OWN_REQUEST_LIMIT_S, RECONNECT_PAUSE_S
from sam2_mcp_bridge.host.framing import INVALID_REQUEST, Malformed, Notification


def test_initialize_waits_for_the_server_and_tells_what_it_told() -> None:
    drive, server = Drive(), legacy_server({"tools": {}}, "2025-03-26")
    params = {"protocolVersion": "2025-06-18", "capabilities": ASKABLE, "clientInfo": {"name": "h", "version": "1"}}
    drive.request(1, "initialize", params)
    assert drive.connects == [Connect(Host("2025-06-18", ASKABLE, {"name": "h", "version": "1"}))]
    assert drive.messages == []
    drive.connected(server)
    assert drive.message == {"jsonrpc": "2.0", "id": 1, "result": server.raw}


def test_initialize_on_a_modern_server_is_made_of_its_discovery() -> None:
    drive = Drive()
    drive.request(1, "initialize", {"protocolVersion": "2025-06-18"})
    drive.connected(modern_server())
    result = {"protocolVersion": "2025-06-18", "capabilities": CAPABILITIES, "serverInfo": INFO, "instructions": "Do."}
    assert drive.message["result"] == result


@pytest.mark.parametrize("params", [None, [], {"protocolVersion": "1999-01-01", "capabilities": 5}])
def test_initialize_succeeds_whatever_the_host_wants(params: Any) -> None:
    drive = Drive()
    drive.request(1, "initialize", params)
    drive.connected(modern_server(info={}, instructions=None))
    result = drive.message["result"]
    assert result["protocolVersion"] == "2025-11-25" and result["serverInfo"]["name"] == "sam2-mcp"
    assert "instructions" not in result


def test_a_host_that_starts_before_the_server_is_told_when_it_is_there() -> None:
    drive = Drive()
    drive.request(1, "initialize", {"protocolVersion": "2025-06-18"})
    assert INITIALIZE_WAIT_S <= 3, "hosts give up early (reference: mcp.md B29)"
    drive.wait(INITIALIZE_WAIT_S - 0.01)
    assert drive.messages == []
    drive.wait(0.01)
    result = drive.message["result"]
    assert result["capabilities"] == LISTS and result["protocolVersion"] == "2025-06-18"
    drive.notify("notifications/initialized")
    drive.connected(DOWN)
    drive.wait(RECONNECT_PAUSE_S)
    assert len(drive.connects) == 2 and drive.messages == []
    drive.connected(legacy_server())
    assert {message["method"] for message in drive.messages} == {
        f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources")
    }


def test_a_failed_contact_answers_initialize_at_once_and_news_wait_until_the_host_is_ready() -> None:
    drive = Drive()
    drive.request(1, "initialize", {})
    drive.connected(DOWN)
    assert drive.message["result"]["capabilities"] == LISTS
    drive.take(drive.relay.met(modern_server(), drive.now_s))
    assert drive.messages == []
    drive.notify("notifications/initialized")
    assert len(drive.messages) == 3


@SERVERS
def test_a_server_that_is_still_the_same_is_no_news_and_another_one_is(server: Server) -> None:
    drive = ready(server)
    drive.take(drive.relay.met(server, drive.now_s))
    drive.take(drive.relay.met(None, drive.now_s))
    drive.take(drive.relay.met(server._replace(raw={"_meta": {"another": "handshake"}}), drive.now_s))
    assert drive.messages == []
    drive.take(drive.relay.met(server._replace(info={"name": "far", "version": "4"}), drive.now_s))
    assert len(drive.messages) == 3


def test_requests_wait_for_the_contact_and_go_up_side_by_side() -> None:
    drive = Drive()
    drive.request(0, "initialize", {})
    for id_value in range(1, MAX_PARALLEL + 3):
        drive.request(id_value, params={"name": str(id_value)})
    assert drive.sends == []
    drive.connected(legacy_server())
    calls = [send for send in drive.sends if isinstance(send, Send)]
    assert [send.params["name"] for send in calls] == [str(n) for n in range(1, MAX_PARALLEL + 1)]
    assert {send.deadline_s for send in calls} == {100 + LIMIT_S}
    drive.messages  # noqa: B018
    drive.answer(Result({"n": 3}), call=3)
    assert drive.message == {"jsonrpc": "2.0", "id": 3, "result": {"n": 3}}
    assert isinstance(drive.newest, Send) and drive.newest.params == {"name": str(MAX_PARALLEL + 1)}


def test_a_host_without_a_handshake_is_served_as_one_that_can_do_nothing() -> None:
    drive = Drive()
    drive.request(1, "ping")
    assert drive.message["result"] == {} and drive.connects == []
    drive.request(2, "tools/list")
    drive.connected(legacy_server())
    drive.stream(server_request(7, "roots/list"))
    assert drive.replies[0]["error"]["code"] == -32601
    drive.answer(Result({"tools": []}))
    drive.request(3, "tools/list")
    drive.notify("notifications/initialized")
    drive.answer(Refusal({"code": -32002, "message": "none"}))
    assert [message["id"] for message in drive.messages] == [2, 3]
    assert all(isinstance(send, Send) for send in drive.sends)


def test_a_contact_that_failed_does_not_keep_requests_from_trying_themselves() -> None:
    drive = Drive()
    drive.request(1, "tools/list")
    drive.connected(DOWN)
    assert drive.newest == Send(1, "tools/list", None, 100 + LIMIT_S)
    drive.answer(DOWN)
    assert drive.message["error"]["data"] == {"source": "bridge", "reason": "unreachable"}
    assert drive.relay.next_deadline_s is None, "only a host that was promised news is told of the server later"


@SERVERS
def test_requests_and_results_pass_untouched(server: Server) -> None:
    drive = ready(server)
    params = {"name": "a", "odd": 1, "_meta": {"x": [1.5, None]}}
    drive.request("a", params=params)
    assert drive.newest == Send(drive.newest.call, "tools/call", params, 100 + LIMIT_S)
    result = {"content": [], "resultType": "complete", "_meta": {"a": 1}, "n": 10**30}
    drive.answer(Result(result))
    assert drive.message == {"jsonrpc": "2.0", "id": "a", "result": result}
    error = {"code": -32022, "message": "no", "data": {"supported": ["x"]}}
    drive.request("a", params=params)
    drive.answer(Refusal(error))
    assert drive.message["error"] == error


def test_an_id_in_flight_cannot_be_used_again_but_its_like_can() -> None:
    drive = ready(legacy_server())
    drive.request(1)
    drive.request(1)
    assert drive.message == {
        "jsonrpc": "2.0",
        "id": 1,
        "error": {"code": INVALID_REQUEST, "message": "Invalid Request: a request with this id is not answered yet"},
    }
    drive.request("1")
    drive.answer(Result({"second": True}))
    drive.answer(Result({"first": True}))
    assert [(one["id"], *one["result"]) for one in drive.messages] == [("1", "second"), (1, "first")]
    drive.request(1, "ping")
    assert drive.message["result"] == {}


def test_malformed_messages_get_their_error_at_once() -> None:
    drive = ready(legacy_server())
    drive.receive(Malformed(None, -32700, "no JSON"))
    assert drive.message == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -32700, "message": "Invalid message: no JSON"},
    }


def test_a_host_that_asks_without_end_gets_errors_instead_of_our_memory() -> None:
    drive = ready(legacy_server())
    for id_value in range(MAX_OPEN_REQUESTS + 1):
        drive.request(id_value)
    assert drive.message["id"] == MAX_OPEN_REQUESTS


def test_at_the_deadline_a_call_is_stopped_and_what_waited_is_told_so() -> None:
    drive = ready(legacy_server())
    for id_value in range(MAX_PARALLEL + 1):
        drive.request(id_value, params={"name": "slow"})
    drive.request("list", "tools/list")
    drive.wait(LIMIT_S)
    answers = {message["id"]: message for message in drive.messages}
    assert text_of(answers[0]).startswith("[deadline] slow was not finished after 27 s")
    assert text_of(answers[MAX_PARALLEL]).startswith("[still_queued] slow waited 27 s and was not started")
    assert answers["list"]["error"]["data"]["reason"] == "still_queued"
    assert len(drive.aborted) == MAX_PARALLEL
    drive.answer(Result({"late": True}), call=drive.aborted[0])
    drive.stream(notification("notifications/progress", progressToken=1, progress=1), call=drive.aborted[0])
    assert drive.messages == []


def test_an_answer_above_the_line_limit_becomes_an_error_and_a_large_notice_is_left_out() -> None:
    drive = ready(legacy_server())
    drive.request(1, params={"name": "big", "_meta": {"progressToken": 1}})
    drive.stream(notification("notifications/progress", progressToken=1, progress=1, message="x" * MAX_LINE_BYTES))
    drive.answer(Result({"text": "x" * MAX_LINE_BYTES}))
    assert text_of(drive.message).startswith("[answer_too_large]")


def test_a_cancelled_request_is_stopped_and_gets_no_line() -> None:
    drive = ready(legacy_server())
    for id_value in range(MAX_PARALLEL + 1):
        drive.request(id_value)
    drive.notify("notifications/cancelled", requestId="0")
    drive.notify("notifications/cancelled", requestId=[0])
    drive.notify("notifications/cancelled")
    assert drive.aborted == []
    drive.notify("notifications/cancelled", requestId=MAX_PARALLEL)
    first = next(send for send in drive.sends if isinstance(send, Send))
    enough = Notification("notifications/cancelled", {"requestId": 0, "reason": "enough"})
    actions = drive.relay.received(enough, drive.now_s)
    assert actions[0] == Abort(first.call, "enough")
    drive.take(actions)
    drive.answer(Result({}), call=first.call)
    assert drive.messages == []


def test_initialize_cannot_be_cancelled() -> None:
    drive = Drive()
    drive.request(1, "initialize", {})
    drive.notify("notifications/cancelled", requestId=1)
    drive.connected(legacy_server())
    assert drive.message["id"] == 1


def test_modern_methods_are_unknown_to_a_host_with_a_session() -> None:
    drive = ready(legacy_server())
    for method in ("server/discover", "subscriptions/listen"):
        drive.request(1, method, {})
        assert drive.message["error"] == {"code": -32601, "message": f"Method not found: {method}"}


@SERVERS
def test_progress_needs_a_token(server: Server) -> None:
    drive = ready(server)
    progress = notification("notifications/progress", progressToken="t", progress=1, odd=[1])
    drive.request(1, params={"name": "a"})
    drive.stream(progress)
    drive.request(2, params={"name": "a", "_meta": {"progressToken": "t"}})
    drive.stream(progress)
    assert drive.message == progress
    drive.answer(Result({}))
    drive.stream(progress, call=max(drive.sends, key=lambda send: send.call).call)
    assert [message["id"] for message in drive.messages] == [2]


def test_progress_on_the_server_s_own_stream_belongs_to_the_request_with_its_token() -> None:
    drive = ready(legacy_server())
    (listen,) = drive.sends
    drive.request(1, params={"_meta": {"progressToken": 5}})
    for token in (6, 5):
        drive.stream(notification("notifications/progress", progressToken=token, progress=1), call=listen.call)
    assert drive.message["params"]["progressToken"] == 5


@SERVERS
def test_log_messages_need_a_level_and_are_not_below_it(server: Server) -> None:
    drive = ready(server)
    drive.request(1, params={"name": "a"})
    call = drive.newest.call
    drive.stream(notification("notifications/message", level="error", data="before"), call)
    assert drive.messages == []
    drive.request(2, "logging/setLevel", {"level": "warning"})
    if not server.modern:
        assert isinstance(drive.newest, Send) and drive.newest.method == "logging/setLevel"
        drive.answer(Result({}))
    assert drive.message == {"jsonrpc": "2.0", "id": 2, "result": {}}
    for level in ("info", "warning", "emergency", "odd"):
        drive.stream(notification("notifications/message", level=level, data=level), call)
    assert [message["params"]["data"] for message in drive.messages] == ["warning", "emergency", "odd"]
    drive.request(3, params={"name": "b", "_meta": {"kept": 1}})
    assert isinstance(drive.newest, Send)
    assert drive.newest.params == {"name": "b", "_meta": {"kept": 1, PREFIX + "logLevel": "warning"}}


def test_a_modern_server_without_logs_or_subscriptions_refuses_them() -> None:
    drive = ready(modern_server({"tools": {}}))
    drive.request(1, "logging/setLevel", {"level": "info"})
    drive.request(2, "resources/subscribe", {"uri": "a:b"})
    assert [message["error"]["code"] for message in drive.messages] == [-32601, -32601]


@pytest.mark.parametrize("level", ["loud", None, 5, []])
def test_a_level_that_is_none_is_refused_and_spoils_no_later_call(level: Any) -> None:
    drive = ready(modern_server())
    drive.request(1, "logging/setLevel", {"level": level})
    drive.request(2, "resources/subscribe", {"uri": level} if level != "loud" else None)
    assert [message["error"]["code"] for message in drive.messages] == [-32602, -32602]
    drive.request(3, params={"name": "a"})
    assert drive.newest == Send(drive.newest.call, "tools/call", {"name": "a"}, 100 + LIMIT_S)


def test_what_a_legacy_server_has_to_refuse_is_not_set_again() -> None:
    drive = ready(legacy_server())
    drive.request(1, "logging/setLevel", {"level": "loud"})
    drive.answer(Refusal({"code": -32602, "message": "no"}))
    assert drive.message["error"]["code"] == -32602
    count = len(drive.sends)
    drive.take(drive.relay.met(legacy_server(), drive.now_s))
    assert drive.sends[count:] == []


def test_settings_without_a_session_are_the_server_s_affair() -> None:
    drive = Drive()
    drive.request(1, "logging/setLevel", {"level": "info"})
    drive.connected(legacy_server())
    assert isinstance(drive.newest, Send) and drive.newest.method == "logging/setLevel"
    drive.answer(Result({}))
    drive.lines.clear()
    drive.take(drive.relay.met(modern_server(), drive.now_s))
    drive.request(2, "logging/setLevel", {"level": "info"})
    assert isinstance(drive.newest, Send) and drive.newest.method == "logging/setLevel"
    drive.answer(Refusal({"code": -32601, "message": "no"}))
    assert drive.message["error"]["code"] == -32601


def test_what_a_host_has_set_is_set_again_in_a_new_session() -> None:
    drive = ready(legacy_server())
    drive.request(1, "logging/setLevel", {"level": "info"})
    drive.answer(Result({}))
    for id_value, uri in ((2, "a:1"), (3, "a:2")):
        drive.request(id_value, "resources/subscribe", {"uri": uri})
        drive.answer(Result({}))
    drive.request(4, "resources/unsubscribe", {"uri": "a:1"})
    drive.answer(Result({}))
    drive.lines.clear()
    drive.take(drive.relay.met(legacy_server(), drive.now_s))
    level, uri = drive.sends[-2:]
    assert isinstance(level, Send) and isinstance(uri, Send)
    assert (level.method, level.params) == ("logging/setLevel", {"level": "info"})
    assert (uri.method, uri.params) == ("resources/subscribe", {"uri": "a:2"})
    drive.answer(Result({}), level.call)
    drive.wait(OWN_REQUEST_LIMIT_S)
    assert drive.aborted == [uri.call] and drive.messages == []


def test_notifications_of_the_host_reach_a_server_that_knows_them() -> None:
    drive = Drive()
    drive.request(0, "initialize", {})
    drive.notify("notifications/roots/list_changed")
    drive.connected(legacy_server())
    drive.notify("notifications/roots/list_changed")
    drive.notify("notifications/odd", a=1)
    assert drive.replies == [notification("notifications/roots/list_changed"), notification("notifications/odd", a=1)]


def test_when_the_host_is_gone_everything_is_stopped() -> None:
    drive = ready(legacy_server())
    drive.request(1)
    drive.request(2, "logging/setLevel", {"level": "info"})
    drive.answer(Result({}))
    drive.lines.clear()
    drive.take(drive.relay.met(legacy_server(), drive.now_s))
    drive.take(drive.relay.closed())
    assert drive.exited and drive.open == {} and drive.messages == []
