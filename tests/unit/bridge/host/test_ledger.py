"""The ledger alone, with made-up times. `Drive` does what app.py does: it calls `clock_moved` at each deadline."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.unit.bridge.drive import LIMIT_S, MAX_LINE_BYTES, Drive, unsettled

from sam2_mcp_bridge import __version__
from sam2_mcp_bridge.actions import HANDSHAKE_VERSIONS, Connect, Exit, Refusal, Result, Send
from sam2_mcp_bridge.errors import Failure
from sam2_mcp_bridge.host.framing import INVALID_REQUEST, Malformed, Notification
from sam2_mcp_bridge.host.ledger import MAX_LIST_PAGES


def text_of(answer: dict[str, Any]) -> str:
    assert answer["result"]["isError"] is True
    (block,) = answer["result"]["content"]
    return block["text"]


@dataclass
class Expected:
    tag: int
    id: int | str | None
    deadline_s: float


ids = st.sampled_from([1, 2, "1", "a"])
operations = st.lists(
    st.one_of(
        st.tuples(
            st.just("request"),
            ids,
            st.sampled_from(["tools/call", "tools/list", "resources/read", "ping", "initialize"]),
        ),
        st.tuples(st.just("malformed")),
        st.tuples(st.just("cancel"), ids | st.none()),
        st.tuples(st.just("answer"), st.sampled_from(["result", "refusal", "failure", "page", "huge", "deep"])),
        st.tuples(st.just("late"), st.integers(0, 20)),
        st.tuples(st.just("wait"), st.sampled_from([0.0, 0.5, 9.0, 26.9, 27.0, 60.0])),
        st.tuples(st.just("notification")),
    ),
    max_size=60,
)


@settings(max_examples=400)
@given(operations)
@example([("request", 1, "tools/call"), ("wait", 26.9), ("request", 1, "tools/call"), ("malformed",), ("cancel", 1)])
def test_each_request_gets_one_line_in_order_and_in_time_whatever_happens(script: list[tuple[Any, ...]]) -> None:
    drive, expected = Drive(), list[Expected]()
    for tag, operation in enumerate(script):
        match operation:
            case ("request", id_value, method):
                expected.append(Expected(tag, id_value, drive.now_s + LIMIT_S))
                drive.call(id_value, method, {"tag": tag})
            case ("malformed",):
                expected.append(Expected(tag, None, drive.now_s + LIMIT_S))
                drive.receive(Malformed(None, INVALID_REQUEST, "test"))
            case ("cancel", id_value):
                _cancel(drive, expected, id_value)
            case ("answer", kind) if drive.in_flight is not None:
                drive.answer(_answer(kind, drive.sends[-1]))
            case ("late", call) if call != drive.in_flight:
                drive.take(drive.ledger.answered(call, Result({"tag": -1}), drive.now_s))
            case ("wait", seconds):
                drive.wait(seconds)
            case ("notification",):
                drive.receive(Notification("notifications/progress", {}))
    drive.wait(LIMIT_S)
    assert [answer["id"] for answer in drive.answers] == [one.id for one in expected]
    for (at_s, answer), one in zip(drive.lines, expected, strict=True):
        assert at_s <= one.deadline_s
        if "tag" in answer.get("result", {}):
            assert answer["result"]["tag"] == one.tag
    assert drive.in_flight is None and repr(drive.ledger) == "<Ledger [Requests: 0 held, 0 unanswered]>"


def _cancel(drive: Drive, expected: list[Expected], id_value: int | str | None) -> None:
    """The oldest unanswered request with this id goes, if it is not initialize."""
    held = expected[len(drive.lines) :]
    before = len(drive.ledger._entries)
    assert before == len(held)
    methods = [entry.method for entry in drive.ledger._entries]
    drive.receive(Notification("notifications/cancelled", {"requestId": id_value}))
    for one, method in zip(held, methods, strict=True):
        if (type(one.id), one.id) == (type(id_value), id_value) and method not in ("initialize", ""):
            expected.remove(one)
            return


def _answer(kind: str, send: Send) -> Result | Refusal | Failure:
    tag = (send.params or {}).get("tag")
    match kind:
        case "result":
            return Result({"tag": tag})
        case "page":
            return Result({"tag": tag, "tools": [tag], "nextCursor": "next"})
        case "huge":
            return Result({"tag": tag, "text": "x" * MAX_LINE_BYTES})
        case "deep":
            value: Any = tag
            for _ in range(100_000):
                value = [value]
            return Result({"tag": value})
        case "refusal":
            return Refusal({"code": -32602, "message": "no", "data": tag})
        case _:
            return Failure("timeout", where="there")


def test_a_request_is_sent_with_its_params_and_deadline_and_its_result_comes_back_untouched() -> None:
    drive = unsettled()
    params = {"name": "echo", "arguments": {"a": 1}, "_meta": {"unknown": [1.5, None]}}
    drive.call("x", params=params)
    assert drive.sends == [Send(1, "tools/call", params, 127.0)]
    result = {"content": [], "structuredContent": {"n": 10**30}, "resultType": "complete", "_meta": {}}
    drive.answer(Result(result))
    assert drive.answers == [{"jsonrpc": "2.0", "id": "x", "result": result}]


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
def test_initialize_is_answered_at_once_and_contact_is_made_meanwhile(version: str) -> None:
    drive = Drive()
    drive.call(1, "initialize", {"protocolVersion": version})
    (answer,) = drive.answers
    assert answer["result"]["protocolVersion"] == version
    assert answer["result"]["serverInfo"] == {"name": "sam2-mcp", "version": __version__}
    assert answer["result"]["capabilities"] == {"tools": {}}
    assert "27 s" in answer["result"]["instructions"] and len(answer["result"]["instructions"]) < 2048
    assert drive.others == [Connect()] and drive.sends == []


@pytest.mark.parametrize("params", [None, [], {}, {"protocolVersion": "2026-07-28"}, {"protocolVersion": {}}])
def test_initialize_succeeds_whatever_the_host_wants(params: Any) -> None:
    drive = Drive()
    drive.call(1, "initialize", params)
    assert drive.answers[0]["result"]["protocolVersion"] == "2025-11-25"


def test_what_the_bridge_answers_itself_still_waits_for_its_turn() -> None:
    drive = unsettled()
    drive.call(1)
    drive.call(2, "ping")
    assert drive.lines == []
    drive.answer(Result({"tag": 1}))
    assert [answer["id"] for answer in drive.answers] == [1, 2]


def test_at_the_deadline_a_call_is_stopped_and_says_what_to_do() -> None:
    drive = unsettled()
    drive.call(1, params={"name": "inspect_pdf"})
    drive.wait(5)
    drive.call(2, params={"name": "read_text"})
    drive.wait(LIMIT_S)
    stopped, waited = (text_of(answer) for answer in drive.answers)
    assert stopped.startswith("[deadline] inspect_pdf was not finished after 27 s") and "call it again" in stopped
    # The second one had only the rest of its own time.
    assert waited.startswith("[deadline] read_text") and drive.sends[1].deadline_s == 132.0
    assert drive.aborted == [1, 2] and [at_s for at_s, _ in drive.lines] == [127.0, 132.0]


def test_a_call_that_only_waited_is_told_that_it_never_ran() -> None:
    drive = Drive()
    drive.call(1)
    drive.call(2, params={"name": "read_text"})
    drive.wait(LIMIT_S)
    assert text_of(drive.answers[1]).startswith("[not_started] read_text waited 27 s behind other calls")
    assert len(drive.sends) == 1


def test_other_methods_get_a_json_rpc_error_at_the_deadline() -> None:
    drive = Drive()
    drive.call(1, "tools/list")
    drive.wait(LIMIT_S)
    assert drive.answers[0]["error"]["code"] == -32603
    assert drive.answers[0]["error"]["data"] == {"source": "bridge", "reason": "deadline"}


def test_an_answer_that_comes_at_the_deadline_is_late() -> None:
    drive = Drive()
    drive.call(1, params={"name": "slow"})
    drive.now_s += LIMIT_S
    drive.answer(Result({"late": True}))
    assert text_of(drive.answers[0]).startswith("[deadline]")


def test_a_late_answer_is_dropped_and_the_next_call_gets_its_own() -> None:
    drive = unsettled()
    drive.call(1)
    drive.wait(LIMIT_S)
    drive.call(2)
    drive.take(drive.ledger.answered(1, Result({"late": True}), drive.now_s))
    drive.answer(Result({"own": True}))
    assert [answer.get("result") for answer in drive.answers[1:]] == [{"own": True}]


def test_a_cancelled_call_is_stopped_and_gets_no_line() -> None:
    drive = unsettled()
    drive.call(1)
    drive.call(2)
    drive.receive(Notification("notifications/cancelled", {"requestId": "1"}))  # another id
    drive.receive(Notification("notifications/cancelled", None))
    assert drive.aborted == []
    drive.receive(Notification("notifications/cancelled", {"requestId": 1}))
    assert drive.aborted == [1] and drive.in_flight == 2
    drive.answer(Result({"tag": 2}))
    assert [answer["id"] for answer in drive.answers] == [2]


def test_initialize_and_malformed_lines_cannot_be_cancelled() -> None:
    drive = unsettled()
    drive.call(7)
    drive.call(1, "initialize")
    drive.receive(Malformed(1, INVALID_REQUEST, "test"))
    drive.receive(Notification("notifications/cancelled", {"requestId": 1}))
    drive.answer(Result({}))
    assert [answer["id"] for answer in drive.answers] == [7, 1, 1]


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        ({"kwargs": {"tag": "A"}}, {"tag": "A"}),
        ({"kwargs": {}}, {}),
        ({"kwargs": {"kwargs": {"a": 1}}}, {"kwargs": {"a": 1}}),
        ({"kwargs": {"tag": "A"}, "other": 1}, {"kwargs": {"tag": "A"}, "other": 1}),
        ({"kwargs": "text"}, {"kwargs": "text"}),
        ({"tag": "A"}, {"tag": "A"}),
        (None, None),
    ],
)
def test_a_lone_kwargs_object_is_unwrapped(arguments: Any, sent: Any) -> None:
    drive = Drive()
    drive.call(1, params={"name": "echo", "arguments": arguments, "_meta": {"kept": True}})
    assert drive.sends[0].params == {"name": "echo", "arguments": sent, "_meta": {"kept": True}}


@pytest.mark.parametrize("params", [None, [1], "text", {}])
def test_odd_params_are_sent_as_they_are(params: Any) -> None:
    drive = Drive()
    drive.call(1, params=params)
    drive.answer(Result({}))
    drive.call(2, "prompts/list", params)
    assert [send.params for send in drive.sends] == [params, params]


def test_the_pages_of_a_list_are_merged_into_one_answer() -> None:
    drive = unsettled()
    drive.call(1, "tools/list", {"_meta": {"a": 1}})
    drive.answer(Result({"tools": ["one", "two"], "nextCursor": "p2", "ttlMs": 5}))
    drive.answer(Result({"nextCursor": "p3"}))
    drive.answer(Result({"tools": ["three"], "ttlMs": 9}))
    assert [send.params for send in drive.sends] == [
        {"_meta": {"a": 1}},
        {"_meta": {"a": 1}, "cursor": "p2"},
        {"_meta": {"a": 1}, "cursor": "p3"},
    ]
    assert [answer["result"] for answer in drive.answers] == [{"tools": ["one", "two", "three"], "ttlMs": 9}]
    assert {send.deadline_s for send in drive.sends} == {127.0}


def test_a_list_that_never_ends_is_cut_and_says_so() -> None:
    drive = unsettled()
    drive.call(1, "tools/list")
    for page in range(MAX_LIST_PAGES):
        drive.answer(Result({"tools": [page], "nextCursor": str(page)}))
    assert drive.answers[0]["result"] == {"tools": list(range(MAX_LIST_PAGES)), "nextCursor": str(MAX_LIST_PAGES - 1)}


def test_a_failing_page_fails_the_list_rather_than_shortening_it() -> None:
    drive = unsettled()
    drive.call(1, "tools/list")
    drive.answer(Result({"tools": [1], "nextCursor": "2"}))
    drive.answer(Failure("timeout", where="there"))
    assert drive.answers[0]["error"]["data"]["reason"] == "timeout"


def test_a_refusal_is_a_text_for_a_tool_call_and_the_same_error_for_the_rest() -> None:
    drive = unsettled()
    error = {"code": -32602, "message": "Unknown tool: x", "data": {"a": 1}, "odd": True}
    drive.call(1, params={"name": "x" * 500})
    drive.answer(Refusal(error))
    drive.call(2, "resources/read")
    drive.answer(Refusal(error))
    text = text_of(drive.answers[0])
    assert text.startswith("[refused] the worker refused " + "x" * 80 + ": Unknown tool: x (JSON-RPC error -32602)")
    assert drive.answers[1]["error"] == error


def test_a_failure_carries_the_http_status_where_there_is_one() -> None:
    drive = unsettled()
    drive.call(1, "prompts/list")
    drive.answer(Failure("busy", http_status=429, where="there", detail="HTTP 429"))
    assert drive.answers[0]["error"]["data"] == {"source": "bridge", "reason": "busy", "httpStatus": 429}


def test_an_answer_above_the_line_limit_becomes_an_error_that_says_so() -> None:
    drive = unsettled()
    for method in ("tools/call", "resources/read"):
        drive.call(1, method)
        drive.answer(Result({"text": "한" * (MAX_LINE_BYTES // 6)}))
    assert text_of(drive.answers[0]).startswith(f"[answer_too_large] the answer is larger than {MAX_LINE_BYTES} bytes")
    assert drive.answers[1]["error"]["data"]["reason"] == "answer_too_large"


def test_when_the_host_is_gone_the_call_is_stopped_and_nothing_is_written() -> None:
    drive = Drive()
    drive.call(1)
    drive.call(2)
    drive.take(drive.ledger.closed())
    assert drive.aborted == [1] and drive.others == [Exit()] and drive.lines == []
    assert drive.ledger.next_deadline_s is None
