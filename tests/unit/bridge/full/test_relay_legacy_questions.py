"""Profile full: what a server asks a host that makes a handshake, in the way of either era."""

from typing import Any

import pytest
from tests.unit.bridge.relay_drive import (
    LIMIT_S,
    MAX_LINE_BYTES,
    MAX_PARALLEL,
    legacy_server,
    modern_server,
    notification,
    ready,
    server_request,
    text_of,
)

from sam2_mcp_bridge.actions import Result, Send
from sam2_mcp_bridge.full.asking import INPUT_LIMIT_S, MAX_INPUT_ROUNDS, MAX_QUESTIONS, STATE_ONLY_PAUSE_S
from sam2_mcp_bridge.host.framing import Response


def test_requests_of_a_legacy_server_are_passed_on_under_ids_of_our_own() -> None:
    drive = ready(legacy_server())
    drive.request("call", params={"name": "ask"})
    call = drive.newest.call
    for id_value in ("same", "same2"):
        drive.stream(server_request(id_value, "elicitation/create", message="?", odd=1))
    first, second = drive.messages
    assert (first["method"], first["params"]) == ("elicitation/create", {"message": "?", "odd": 1})
    drive.respond(second["id"], error={"code": -1, "message": "no"})
    drive.respond(first["id"], result={"action": "accept"})
    drive.respond(first["id"], result={"action": "twice"})
    drive.receive(Response("odd", {"result": {}}))
    assert drive.replies == [
        {"jsonrpc": "2.0", "id": "same2", "error": {"code": -1, "message": "no"}},
        {"jsonrpc": "2.0", "id": "same", "result": {"action": "accept"}},
    ]
    drive.answer(Result({}), call)
    assert drive.message["id"] == "call"


def test_what_the_host_has_not_declared_is_refused_and_ping_is_answered_here() -> None:
    drive = ready(legacy_server(), {"sampling": {}})
    for method in ("elicitation/create", "roots/list", "odd/method", "ping"):
        drive.stream(server_request(1, method))
    assert [reply.get("error", {}).get("code") for reply in drive.replies] == [-32601, -32601, -32601, None]
    assert drive.replies[-1]["result"] == {} and drive.messages == []


@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/list", "tasks/cancel"])
def test_a_server_may_ask_for_the_tasks_that_the_host_makes_of_its_questions(method: str) -> None:
    drive = ready(legacy_server(), {"sampling": {}, "tasks": {"requests": {"sampling": {"createMessage": {}}}}})
    drive.stream(server_request(7, method, taskId="t"))
    asked = drive.message
    assert (asked["method"], asked["params"]) == (method, {"taskId": "t"})
    drive.respond(asked["id"], result={"status": "working"})
    assert drive.replies == [{"jsonrpc": "2.0", "id": 7, "result": {"status": "working"}}]


@pytest.mark.parametrize("id_value", [None, {}, True, ["deep"]])
def test_a_question_that_nobody_could_answer_is_none(id_value: Any) -> None:
    drive = ready(legacy_server())
    drive.stream(server_request(id_value, "roots/list"))
    assert drive.messages == [] and drive.replies == []


def test_a_question_too_large_for_the_host_is_refused() -> None:
    drive = ready(legacy_server())
    drive.stream(server_request(1, "sampling/createMessage", messages="x" * MAX_LINE_BYTES))
    assert drive.replies[0]["error"]["code"] == -32603 and drive.messages == []


def test_a_server_that_asks_without_end_gets_errors() -> None:
    drive = ready(legacy_server())
    for id_value in range(MAX_QUESTIONS + 1):
        drive.stream(server_request(id_value, "roots/list"))
    assert len(drive.messages) == MAX_QUESTIONS
    assert [(reply["id"], reply["error"]["code"]) for reply in drive.replies] == [(MAX_QUESTIONS, -32603)]


def test_the_clock_of_a_call_stands_still_while_its_host_is_asked() -> None:
    drive = ready(legacy_server())
    drive.request(1, params={"name": "ask"})
    call = drive.newest.call
    drive.wait(20)
    drive.stream(server_request(1, "elicitation/create"))
    drive.stream(server_request(2, "roots/list"))
    assert drive.deadlines_s[call] == 120 + INPUT_LIMIT_S
    form, roots = drive.messages
    drive.wait(100)
    drive.respond(form["id"], result={})
    drive.wait(100)
    drive.respond(roots["id"], result={})
    assert drive.deadlines_s[call] == 320 + 7
    drive.wait(7)
    assert text_of(drive.message).startswith("[deadline]") and drive.aborted == [call]


def test_a_question_nobody_answers_ends_its_call_and_is_taken_back() -> None:
    drive = ready(legacy_server())
    drive.request(1, params={"name": "ask"})
    drive.stream(server_request(1, "elicitation/create"))
    asked = drive.message
    drive.wait(INPUT_LIMIT_S)
    answer, withdrawn = drive.messages
    assert text_of(answer).startswith("[no_input] ask needs an answer of this host's user, and none came within 600 s")
    assert withdrawn == notification("notifications/cancelled", requestId=asked["id"])


def test_calls_that_wait_for_the_host_leave_their_place_to_others() -> None:
    drive = ready(legacy_server())
    for id_value in range(MAX_PARALLEL):
        drive.request(id_value)
    drive.request("next")
    waiting = drive.newest
    drive.stream(server_request(1, "roots/list"))
    assert drive.newest.call == waiting.call + 1


def test_a_server_takes_back_its_question() -> None:
    drive = ready(legacy_server())
    drive.request(1)
    call = drive.newest.call
    for id_value in (7, 8):
        drive.stream(server_request(id_value, "elicitation/create"))
    first, _ = drive.messages
    drive.stream(notification("notifications/cancelled", requestId=7))
    drive.stream(notification("notifications/cancelled", requestId=7))
    assert drive.message == notification("notifications/cancelled", requestId=first["id"])
    drive.respond(first["id"], result={})
    assert drive.replies == []
    drive.stream(notification("notifications/cancelled", requestId=8))
    assert drive.deadlines_s[call] == 100 + LIMIT_S


def test_a_question_on_the_server_s_own_stream_stops_no_clock() -> None:
    drive = ready(legacy_server())
    drive.stream(server_request(7, "roots/list"))
    drive.respond(drive.message["id"], result={"roots": []})
    assert drive.replies == [{"jsonrpc": "2.0", "id": 7, "result": {"roots": []}}]


def test_a_question_of_an_ended_session_is_taken_back_because_its_id_is_used_again_in_the_next() -> None:
    drive = ready(legacy_server())
    drive.stream(server_request(0, "roots/list"))
    asked = drive.message
    drive.take(drive.relay.met(legacy_server(), drive.now_s))
    assert drive.message == notification("notifications/cancelled", requestId=asked["id"])
    drive.respond(asked["id"], result={"roots": []})
    assert drive.replies == []


def wants(requests: dict[str, Any] | None = None, state: str | None = None) -> Result:
    fields = {"inputRequests": requests, "requestState": state}
    return Result({"resultType": "input_required"} | {key: value for key, value in fields.items() if value is not None})


def test_input_that_a_modern_server_requires_is_asked_for_and_the_call_made_again() -> None:
    drive = ready(modern_server())
    params = {"name": "ask", "arguments": {"a": 1}}
    drive.request(1, params=params)
    drive.wait(20)
    form = {"method": "elicitation/create", "params": {"message": "?"}}
    drive.answer(wants({"form": form, "roots": {"method": "roots/list"}}, "s1"))
    asked, roots = drive.messages
    assert asked == {"jsonrpc": "2.0", "id": asked["id"], **form} and "params" not in roots
    drive.wait(100)
    drive.respond(roots["id"], result={"roots": []})
    drive.respond(asked["id"], result={"action": "accept"})
    inputs = {"form": {"action": "accept"}, "roots": {"roots": []}}
    again = params | {"inputResponses": inputs, "requestState": "s1"}
    assert drive.newest == Send(drive.newest.call, "tools/call", again, 220 + 7)
    drive.answer(wants({"form": form}))
    drive.respond(drive.message["id"], result={"action": "decline"})
    assert isinstance(drive.newest, Send)
    assert drive.newest.params == params | {"inputResponses": {"form": {"action": "decline"}}}
    drive.answer(Result({"content": []}))
    assert drive.message == {"jsonrpc": "2.0", "id": 1, "result": {"content": []}}


def test_a_server_that_only_wants_another_try_gets_it_a_moment_later() -> None:
    drive = ready(modern_server())
    drive.request(1, "prompts/get")
    drive.answer(wants(state="later"))
    count = len(drive.sends)
    drive.wait(STATE_ONLY_PAUSE_S * 0.9)
    assert len(drive.sends) == count
    drive.wait(STATE_ONLY_PAUSE_S * 0.2)
    assert isinstance(drive.newest, Send) and drive.newest.params == {"requestState": "later"}
    for _ in range(MAX_INPUT_ROUNDS):
        drive.answer(wants(state="later"))
        drive.wait(STATE_ONLY_PAUSE_S)
    assert drive.message["error"]["data"]["reason"] == "input_rounds"


def test_another_try_waits_for_a_question_that_is_still_open_without_turning_in_circles() -> None:
    drive = ready(legacy_server())
    drive.request(1)
    first = drive.newest
    drive.stream(server_request(7, "roots/list"))
    asked = drive.message
    drive.answer(wants(state="s"))
    drive.wait(STATE_ONLY_PAUSE_S)
    assert drive.relay.next_deadline_s is not None and drive.relay.next_deadline_s > drive.now_s
    assert drive.newest is first
    drive.respond(asked["id"], result={"roots": []})
    assert drive.newest is not first and drive.newest.params == {"requestState": "s"}


@pytest.mark.parametrize("request_", [{"method": "roots/list"}, {"method": "odd"}, {}, 5])
def test_input_that_the_host_does_not_offer_ends_the_call(request_: Any) -> None:
    drive = ready(modern_server(), {"elicitation": {}})
    drive.request(1, params={"name": "ask"})
    drive.answer(wants({"a": {"method": "elicitation/create"}, "b": request_}))
    assert text_of(drive.message).startswith("[no_such_input] ask needs")


def test_a_host_that_refuses_to_answer_ends_the_call_and_other_questions_are_taken_back() -> None:
    drive = ready(modern_server())
    drive.request(1, params={"name": "ask"})
    drive.answer(wants({"a": {"method": "roots/list"}, "b": {"method": "roots/list"}}))
    first, second = drive.messages
    drive.respond(first["id"], error={"code": -1, "message": "not now"})
    answer, withdrawn = drive.messages
    assert "[input_refused]" in text_of(answer) and "not now" in text_of(answer)
    assert withdrawn["params"] == {"requestId": second["id"]}


def test_input_too_large_to_be_asked_for_ends_the_call() -> None:
    drive = ready(modern_server())
    drive.request(1, params={"name": "ask"})
    drive.answer(wants({"a": {"method": "roots/list", "params": {"x": "x" * MAX_LINE_BYTES}}}))
    assert text_of(drive.message).startswith("[input_too_large]")


def test_more_input_than_can_be_asked_for_ends_the_call_once_and_for_all() -> None:
    drive = ready(modern_server())
    drive.request(1, params={"name": "ask"})
    drive.answer(wants({str(key): {"method": "roots/list"} for key in range(MAX_QUESTIONS + 2)}))
    (answer,) = [message for message in drive.messages if message.get("id") == 1 and "result" in message]
    assert text_of(answer).startswith("[input_too_large]")
    drive.request(2, params={"name": "ask"})
    too_large = {"method": "roots/list", "params": {"x": "x" * MAX_LINE_BYTES}}
    drive.answer(wants({"a": too_large, "b": too_large, "c": {"method": "roots/list"}}))
    assert text_of(drive.message).startswith("[input_too_large]")


def test_a_refusal_that_comes_when_time_is_up_is_no_second_answer() -> None:
    drive = ready(modern_server())
    drive.request(1, params={"name": "ask"})
    drive.answer(wants({"a": {"method": "roots/list"}}))
    asked = drive.message
    drive.now_s += INPUT_LIMIT_S
    drive.respond(asked["id"], error={"code": -1, "message": "no"})
    assert text_of(drive.message).startswith("[no_input]")


def test_a_cancelled_call_takes_its_questions_back() -> None:
    drive = ready(modern_server())
    drive.request(1, params={"name": "ask"})
    drive.answer(wants({"a": {"method": "roots/list"}}))
    asked = drive.message
    drive.notify("notifications/cancelled", requestId=1)
    assert drive.message["params"] == {"requestId": asked["id"]} and drive.aborted == []
