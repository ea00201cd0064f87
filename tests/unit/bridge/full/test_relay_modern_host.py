"""Profile full with a host that says everything in each request, on servers of both eras."""

from typing import Any

import pytest
from tests.unit.bridge.relay_drive import (
    CAPABILITIES,
    DOWN,
    INFO,
    LIMIT_S,
    PREFIX,
    SERVERS,
    Drive,
    contact,
    envelope,
    legacy_server,
    modern_server,
    notification,
    server_request,
)

from sam2_mcp_bridge.actions import Connect, Host, Listen, Refusal, Result, Send, Server
from sam2_mcp_bridge.full.asking import INPUT_LIMIT_S, MAX_PARKED_CALLS, MAX_QUESTIONS

STAMP = {PREFIX + "serverInfo": INFO}


def text_of(answer: dict[str, Any]) -> str:
    assert answer["result"]["isError"] is True and answer["result"]["resultType"] == "complete"
    return str(answer["result"]["content"][0]["text"])


def test_the_first_request_makes_contact_for_its_host_and_waits_for_it() -> None:
    drive = Drive()
    meta = envelope({"roots": {}}, **{PREFIX + "clientInfo": {"name": "h", "version": "1"}})
    drive.modern(1, "tools/call", meta, name="a")
    assert drive.connects == [Connect(Host("2026-07-28", {"roots": {}}, {"name": "h", "version": "1"}))]
    assert drive.sends == []
    drive.connected(modern_server())
    assert drive.sends == [Send(1, "tools/call", {"name": "a", "_meta": meta}, 100 + LIMIT_S)]


@pytest.mark.parametrize(
    ("meta", "code"),
    [
        ({PREFIX + "protocolVersion": 5}, -32602),
        ({PREFIX + "protocolVersion": "2026-07-28"}, -32602),
        ({PREFIX + "protocolVersion": "2026-07-28", PREFIX + "clientCapabilities": []}, -32602),
        ({PREFIX + "protocolVersion": "2099-01-01", PREFIX + "clientCapabilities": {}}, -32022),
    ],
)
def test_a_wrong_envelope_is_refused_here(meta: dict[str, Any], code: int) -> None:
    drive = Drive()
    drive.request(1, "tools/list", {"_meta": meta})
    error = drive.message["error"]
    assert error["code"] == code and drive.connects == []
    if code == -32022:
        assert error["data"] == {"supported": ["2026-07-28"], "requested": "2099-01-01"}


@pytest.mark.parametrize("params", [None, {}, {"_meta": 5}])
def test_once_modern_a_request_without_envelope_is_refused(params: Any) -> None:
    drive = contact(modern_server())
    drive.request(1, "tools/list", params)
    assert drive.message["error"]["code"] == -32602


@pytest.mark.parametrize("method", ["ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"])
def test_methods_that_the_era_has_not_are_unknown(method: str) -> None:
    drive = contact(legacy_server())
    drive.modern(1, method)
    assert drive.message["error"] == {"code": -32601, "message": f"Method not found: {method}"}


def test_a_host_may_still_make_a_handshake_and_the_envelope_keeps_deciding() -> None:
    drive = contact(legacy_server())
    drive.request(1, "initialize", {"protocolVersion": "2025-06-18"})
    drive.connected(legacy_server())
    assert drive.message["result"]["serverInfo"] == INFO and len(drive.connects) == 2
    drive.modern(2, "ping")
    drive.request(3, "ping")
    assert [message.get("result") for message in drive.messages] == [None, {}]


def test_discovery_of_a_modern_server_is_its_own() -> None:
    drive = Drive()
    drive.modern(1, "server/discover")
    assert drive.sends == []
    drive.connected(modern_server())
    drive.answer(Result({"supportedVersions": ["2026-07-28", "2027-01-01"], "odd": 1}))
    assert drive.message["result"] == {"supportedVersions": ["2026-07-28", "2027-01-01"], "odd": 1}


@pytest.mark.parametrize("instructions", ["Do.", None])
def test_discovery_of_a_legacy_server_is_made_of_its_handshake(instructions: str | None) -> None:
    drive = Drive()
    drive.modern(1, "server/discover", envelope({}))
    drive.connected(legacy_server()._replace(instructions=instructions))
    expected = {
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
        "supportedVersions": ["2026-07-28"],
        "capabilities": CAPABILITIES,
        "_meta": STAMP,
    }
    assert drive.message["result"] == expected | ({} if instructions is None else {"instructions": instructions})
    assert drive.sends == []


def test_without_a_server_discovery_fails_and_is_tried_again_on_the_next_call() -> None:
    drive = Drive()
    drive.modern(1, "server/discover")
    drive.connected(DOWN)
    assert drive.message["error"]["data"] == {"source": "bridge", "reason": "unreachable"}
    drive.modern(2, "server/discover")
    assert len(drive.connects) == 2
    drive.connected(legacy_server())
    assert drive.message["id"] == 2


@pytest.mark.parametrize("method", ["tools/list", "resources/templates/list", "resources/read", "tools/call"])
def test_results_of_a_legacy_server_get_what_the_era_demands(method: str) -> None:
    drive = contact(legacy_server())
    drive.modern(1, method)
    drive.answer(Result({"a": 1, "_meta": {"b": 2}}))
    caching = {} if method == "tools/call" else {"ttlMs": 0, "cacheScope": "private"}
    assert drive.message["result"] == {"resultType": "complete", "a": 1, "_meta": STAMP | {"b": 2}} | caching


def test_what_a_legacy_server_says_itself_is_kept() -> None:
    drive = contact(legacy_server()._replace(info={}))
    drive.modern(1, "tools/list")
    drive.answer(Result({"resultType": "odd", "ttlMs": 9, "cacheScope": "public"}))
    assert drive.message["result"] == {"resultType": "odd", "ttlMs": 9, "cacheScope": "public", "_meta": {}}


def test_results_of_a_modern_server_pass_untouched_and_so_does_what_it_requires() -> None:
    drive = contact(modern_server())
    for value in ({"content": []}, {"resultType": "input_required", "inputRequests": {"a": {}}, "requestState": "s"}):
        drive.modern(1, name="a")
        drive.answer(Result(value))
        assert drive.message["result"] == value
    drive.modern(2, name="a", inputResponses={"a": {}}, requestState="s")
    assert isinstance(drive.newest, Send) and drive.newest.params["requestState"] == "s"


def test_a_missing_resource_has_the_era_s_code() -> None:
    drive = contact(legacy_server())
    drive.modern(1, "resources/read", uri="a:b")
    drive.answer(Refusal({"code": -32002, "message": "none", "data": {"uri": "a:b"}}))
    assert drive.message["error"] == {"code": -32602, "message": "none", "data": {"uri": "a:b"}}


def test_a_failed_call_is_a_complete_result() -> None:
    drive = contact(legacy_server())
    drive.modern(1, name="slow")
    drive.wait(LIMIT_S)
    assert text_of(drive.message).startswith("[deadline] slow")


@SERVERS
def test_progress_needs_a_token_and_logs_need_a_level_in_the_request(server: Server) -> None:
    drive = contact(server)
    progress = notification("notifications/progress", progressToken="t", progress=1)
    log = notification("notifications/message", level="info", data="x")
    drive.modern(1, "tools/call", name="a")
    plain = drive.newest.call
    for message in (progress, log):
        drive.stream(message, plain)
    assert drive.messages == []
    drive.modern(2, "tools/call", envelope(progressToken="t", **{PREFIX + "logLevel": "info"}), name="a")
    if not server.modern:
        assert isinstance(drive.newest, Send)
        assert (drive.newest.method, drive.newest.params) == ("logging/setLevel", {"level": "info"})
        drive.answer(Result({}), drive.newest.call)
    assert isinstance(drive.newest, Send) and drive.newest.method == "tools/call"
    for message in (progress, log, notification("notifications/message", level="debug")):
        drive.stream(message, drive.newest.call)
    drive.stream(log, plain)
    assert drive.messages == [progress, log]


def test_a_legacy_server_is_told_a_level_only_where_it_is_not_loud_enough() -> None:
    drive = contact(legacy_server())
    told = []
    for id_value, level in enumerate(["warning", "error", "debug", "info", 5]):
        drive.modern(id_value, "tools/call", envelope(**{PREFIX + "logLevel": level}), name="a")
        if isinstance(drive.newest, Send) and drive.newest.method == "logging/setLevel":
            told.append(drive.newest.params["level"])
            drive.answer(Refusal({"code": -32601, "message": "whatever"}))
        drive.answer(Result({}))
    assert told == ["warning", "debug"]
    assert [message["id"] for message in drive.messages] == [0, 1, 2, 3, 4]


def test_a_server_without_logs_is_not_told_a_level() -> None:
    drive = contact(legacy_server({}))
    drive.modern(1, "tools/call", envelope(**{PREFIX + "logLevel": "info"}), name="a")
    assert isinstance(drive.newest, Send) and drive.newest.method == "tools/call"


def ask(drive: Drive, id_value: int = 1, server_id: Any = 7) -> dict[str, Any]:
    """A call whose legacy server asks for something; what the host is told."""
    drive.modern(id_value, name="ask")
    drive.stream(server_request(server_id, "elicitation/create", message="?"), drive.newest.call)
    result = drive.message["result"]
    assert isinstance(result, dict)
    return result


def retry(drive: Drive, id_value: int, told: dict[str, Any], answers: dict[str, Any]) -> None:
    drive.modern(id_value, name="ask", inputResponses=answers, requestState=told["requestState"])


def test_a_question_of_a_legacy_server_ends_the_call_and_the_next_one_takes_it_up() -> None:
    drive = contact(legacy_server())
    told = ask(drive)
    call = drive.newest.call
    assert told["resultType"] == "input_required"
    ((key, request),) = told["inputRequests"].items()
    assert request == {"method": "elicitation/create", "params": {"message": "?"}}
    assert drive.deadlines_s[call] == 100 + INPUT_LIMIT_S
    drive.stream(notification("notifications/progress", progressToken=1, progress=1), call)
    drive.wait(300)
    retry(drive, 2, told, {key: {"action": "accept"}})
    assert drive.replies == [{"jsonrpc": "2.0", "id": 7, "result": {"action": "accept"}}]
    assert drive.deadlines_s[call] == 400 + LIMIT_S and drive.messages == []
    drive.answer(Result({"content": []}), call)
    assert drive.message == {
        "jsonrpc": "2.0",
        "id": 2,
        "result": {"resultType": "complete", "content": [], "_meta": STAMP},
    }


def test_progress_of_a_call_that_waits_for_its_host_is_not_taken_for_that_of_another_call() -> None:
    drive = contact(legacy_server())
    drive.modern(1, _meta=envelope(progressToken="t"), name="ask")
    waiting = drive.newest.call
    drive.stream(server_request(7, "elicitation/create", message="?"))
    drive.messages.clear()
    drive.modern(2, _meta=envelope(progressToken="t"), name="other")
    drive.stream(notification("notifications/progress", progressToken="t", progress=1), waiting)
    assert drive.messages == []
    drive.stream(notification("notifications/progress", progressToken="t", progress=2))
    assert drive.message["params"]["progress"] == 2


def test_questions_that_are_still_open_are_put_again() -> None:
    drive = contact(legacy_server())
    told = ask(drive)
    call = drive.newest.call
    drive.stream(server_request("second", "roots/list"), call)
    (key,) = told["inputRequests"]
    retry(drive, 2, told, {key: {"action": "accept"}, "unknown": {}})
    again = drive.message["result"]
    assert [request["method"] for request in again["inputRequests"].values()] == ["roots/list"]
    (key,) = again["inputRequests"]
    retry(drive, 3, again, {key: "no object"})
    assert drive.message["result"] == again
    retry(drive, 4, again, {key: {"roots": []}})
    assert [reply["id"] for reply in drive.replies] == [7, "second"]
    drive.stream(server_request("third", "roots/list"), call)
    assert drive.message["result"]["resultType"] == "input_required"


def test_a_server_that_asks_without_end_gets_errors() -> None:
    drive = contact(legacy_server())
    ask(drive, server_id=0)
    for id_value in range(1, MAX_QUESTIONS + 1):
        drive.stream(server_request(id_value, "roots/list"), drive.newest.call)
    assert [(reply["id"], reply["error"]["code"]) for reply in drive.replies] == [(MAX_QUESTIONS, -32603)]


def test_a_server_that_does_not_wait_has_its_answer_kept() -> None:
    drive = contact(legacy_server())
    told = ask(drive)
    drive.answer(Result({"content": ["early"]}))
    retry(drive, 2, told, {key: {"action": "accept"} for key in told["inputRequests"]})
    assert drive.message["result"]["content"] == ["early"]
    assert drive.replies == [], "the server asks with this id again by now, or not at all"
    retry(drive, 3, told, {})
    assert text_of(drive.message).startswith("[input_expired] ask no longer waits")


def test_a_question_that_the_server_takes_back_is_not_put_again() -> None:
    drive = contact(legacy_server())
    told = ask(drive)
    drive.stream(notification("notifications/cancelled", requestId=7), drive.newest.call)
    retry(drive, 2, told, {key: {} for key in told["inputRequests"]})
    assert drive.replies == [] and drive.messages == []
    drive.answer(Result({}))
    assert drive.message["id"] == 2


def test_a_call_that_nobody_takes_up_is_stopped_at_last() -> None:
    drive = contact(legacy_server())
    told = ask(drive)
    drive.wait(INPUT_LIMIT_S)
    assert drive.aborted == [drive.newest.call]
    retry(drive, 2, told, {})
    assert text_of(drive.message).startswith("[input_expired]")


def test_a_state_that_was_never_given_is_refused_and_each_question_has_its_own() -> None:
    drive = contact(legacy_server())
    first = ask(drive)
    given = first["requestState"]
    for id_value, state in enumerate((given + "-", given + "0", "sam2-mcp-bridge/1"), 2):
        retry(drive, id_value, {"requestState": state}, {})
        assert drive.message["error"]["code"] == -32602
    retry(drive, 9, first, {key: {} for key in first["inputRequests"]})
    drive.stream(server_request(8, "elicitation/create", message="?"), drive.newest.call)
    assert drive.message["result"]["requestState"] != first["requestState"]


ASK = server_request(7, "elicitation/create", message="?")


def test_a_legacy_server_may_ask_on_its_own_stream_and_means_the_only_call_there_is() -> None:
    drive = contact(legacy_server({}), {"elicitation": {}})
    stream = drive.newest
    assert stream == Listen(stream.call, {"notifications": {}})
    drive.stream(ASK, stream.call)
    assert drive.replies.pop()["error"]["code"] == -32601, "nobody could have been meant"
    drive.modern(1, name="ask")
    drive.modern(2, _meta=envelope({"sampling": {}}), name="cannot be asked this")
    drive.stream(ASK, stream.call)
    told = drive.messages[-1]
    assert told["id"] == 1 and told["result"]["resultType"] == "input_required"
    drive.stream(server_request(8, "elicitation/create", message="and?"), stream.call)
    retry(drive, 3, told["result"], {key: {} for key in told["result"]["inputRequests"]})
    assert drive.messages[-1]["result"]["resultType"] == "input_required"
    assert drive.replies == [{"jsonrpc": "2.0", "id": 7, "result": {}}]


def test_a_question_on_the_servers_own_stream_that_may_be_for_several_calls_is_refused() -> None:
    drive = contact(legacy_server({}), {"elicitation": {}})
    stream = drive.newest
    drive.modern(1, name="a")
    drive.modern(2, name="b")
    drive.stream(ASK, stream.call)
    assert drive.replies[-1]["error"]["code"] == -32601 and drive.messages == []


def test_not_any_number_of_calls_waits_for_hosts_that_may_not_come_back() -> None:
    drive = contact(legacy_server())
    for id_value in range(MAX_PARKED_CALLS + 1):
        ask(drive, id_value, server_id=id_value)
    assert len(drive.aborted) == 1 and len(drive.open) == MAX_PARKED_CALLS
    drive.take(drive.relay.closed())
    assert drive.open == {}


def test_questions_to_a_host_that_does_not_offer_it_are_refused_and_no_request_is_ever_written() -> None:
    drive = contact(legacy_server())
    drive.modern(1, "tools/call", envelope({"roots": {}}), name="ask")
    for method in ("elicitation/create", "ping"):
        drive.stream(server_request(1, method))
    assert [reply.get("error", {}).get("code") for reply in drive.replies] == [-32601, None]
    assert drive.messages == []


def test_a_question_is_refused_where_no_call_could_wait_for_its_answer() -> None:
    drive = contact(legacy_server())
    drive.modern(1, "tools/call", envelope(**{PREFIX + "logLevel": "info"}), name="a")
    drive.stream(server_request(1, "roots/list"))
    drive.take(drive.relay.met(modern_server(), drive.now_s))
    drive.modern("sub", "subscriptions/listen", notifications={})
    drive.stream(server_request(2, "roots/list"))
    assert [reply["error"]["code"] for reply in drive.replies] == [-32601, -32601] and drive.messages == []


def test_notifications_of_the_host_other_than_cancelled_mean_nothing() -> None:
    drive = contact(legacy_server())
    drive.notify("notifications/initialized")
    drive.notify("notifications/roots/list_changed")
    assert drive.replies == [] and drive.messages == []
