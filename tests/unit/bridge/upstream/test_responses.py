"""What HTTP answers mean, on httpx responses that no network has touched."""

import json
from typing import Any

import httpx
import pytest

from sam2_mcp_bridge.actions import Refusal, Result, Server
from sam2_mcp_bridge.errors import Failure
from sam2_mcp_bridge.upstream.modern import UNKNOWN
from sam2_mcp_bridge.upstream.responses import SessionLost, messages, outcome, refusal
from sam2_mcp_bridge.upstream.session import Session
from sam2_mcp_bridge.upstream.sse import EventParser

LEGACY = Server("2025-06-18", {}, {}, None, {})
STATELESS = Session(LEGACY)
STATEFUL = Session(LEGACY, "s")
MODERN = Session(UNKNOWN)


def failure(code: str, **values: Any) -> Failure:
    return Failure(code, **{"where": "here", "detail": "", **values})


def meaning(
    status: int, session: Session | None, error: dict[str, Any] | None = None, text: str = "", id_value: Any = None
) -> Any:
    """The refusal, the failure's code, or "lost" with the outcome in case that a new session does not help."""
    body = {"jsonrpc": "2.0", "id": id_value, "error": error}
    response = httpx.Response(status, text=text) if error is None else httpx.Response(status, json=body)
    try:
        return refusal(response, session, failure).error
    except SessionLost as lost:
        found = lost.outcome
        return "lost", found.code if isinstance(found, Failure) else found.error
    except Failure as error_:
        return error_.code


UNSUPPORTED = {"code": -32022, "message": "Unsupported", "data": {"supported": ["2026-07-28"], "requested": "x"}}


@pytest.mark.parametrize("session", [STATELESS, STATEFUL, MODERN])
def test_an_unsupported_version_asks_for_another_contact_and_keeps_its_data(session: Session) -> None:
    assert meaning(400, session, UNSUPPORTED) == ("lost", UNSUPPORTED)
    assert meaning(400, None, UNSUPPORTED) == UNSUPPORTED


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("Bad Request: Missing session ID", -32600),
        ("Bad Request: Server not initialized; no valid session", -32000),
        ("Bad Request: Unsupported protocol version: 2026-07-28", -32000),
        ("Missing required MCP-Protocol-Version header", -32600),
    ],
)
def test_a_400_about_session_or_version_asks_for_another_contact(words: str, code: int) -> None:
    for session in (STATELESS, STATEFUL, MODERN):
        assert meaning(400, session, {"code": code, "message": words}) == ("lost", "session_lost")
        assert meaning(400, session, text=words) == ("lost", "session_lost")
    assert meaning(400, None, {"code": code, "message": words})["code"] == code


def test_an_error_that_a_tool_may_have_raised_is_never_a_lost_session() -> None:
    for session in (STATELESS, STATEFUL, MODERN):
        for code in (-32600, -32602, -32603, -32000):
            error = {"code": code, "message": "the session of this protocol version has expired"}
            assert meaning(400, session, error, id_value=7) == error
            assert meaning(400, session, error, id_value="server-error") == ("lost", "session_lost")


def test_a_server_that_wants_the_envelope_is_met_again() -> None:
    error = {"code": -32602, "message": "params._meta lacks io.modelcontextprotocol/protocolVersion"}
    assert meaning(400, STATELESS, error) == ("lost", "session_lost")
    assert meaning(400, MODERN, error) == error


def test_404_is_a_lost_session_only_where_there_was_one() -> None:
    not_found = {"code": -32600, "message": "Session not found"}
    unknown_method = {"code": -32601, "message": "Method not found"}
    assert meaning(404, STATEFUL, not_found) == meaning(404, STATEFUL, text="gone") == ("lost", "session_lost")
    assert meaning(404, STATELESS, not_found) == not_found
    assert meaning(404, STATELESS, text="gone") == "not_found"
    assert meaning(404, MODERN, unknown_method) == meaning(404, STATEFUL, unknown_method) == unknown_method


@pytest.mark.parametrize(
    ("status", "code"),
    [(401, "unauthorized"), (403, "forbidden"), (413, "request_too_large"), (421, "host_not_allowed"), (503, "busy")],
)
def test_where_a_better_word_is_known_it_is_used(status: int, code: str) -> None:
    assert meaning(status, MODERN, {"code": -32600, "message": "no"}) == code
    assert meaning(status, MODERN, text="no") == code


def test_an_error_with_a_code_of_its_own_passes_at_any_other_status() -> None:
    for status in (400, 404, 406, 409, 500, 501):
        error = {"code": -32004, "message": "odd", "data": [1], "extra": True}
        assert meaning(status, MODERN, error) == error
    assert meaning(500, MODERN, {"code": -32603, "message": "Internal error"}) == "worker_error"


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"7", b"no json", b'{"error": 7}', b'{"error": {"code": "x"}}', b'{"error": {"code": true}}']
)
def test_a_body_without_an_error_object_is_a_failure(body: bytes) -> None:
    with pytest.raises(Failure) as caught:
        refusal(httpx.Response(400, content=body), None, failure)
    assert caught.value.code == "http_error"


def found(content_type: str, body: bytes) -> list[dict[str, Any]]:
    answer = httpx.Response(200, headers={"content-type": content_type}, content=body)
    return list(messages(answer, EventParser(1000), failure))


def test_messages_are_found_in_both_kinds_of_body_and_in_batches() -> None:
    one, two = {"id": 1, "result": {}}, {"method": "x"}
    batch = json.dumps([one, 7, two]).encode()
    assert found("Application/JSON; charset=utf-8", batch) == found("", batch) == [one, two]
    assert found("text/event-stream", b"data: " + batch + b"\n\ndata: nothing\n\n") == [one, two]
    with pytest.raises(Failure, match=r"\[not_mcp\]"):
        found("text/html", b"")


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        ({"id": 7, "result": {"a": 1}}, Result({"a": 1})),
        (
            {"id": 7, "error": {"code": 1, "message": None, "data": 2}},
            Refusal({"code": 1, "message": "None", "data": 2}),
        ),
        ({"id": 7, "error": {"code": 1}}, Refusal({"code": 1, "message": ""})),
        ({"id": None, "error": {"code": 1, "message": ""}}, Refusal({"code": 1, "message": ""})),
        ({"error": {"code": 1, "message": ""}}, Refusal({"code": 1, "message": ""})),
        ({"id": None, "result": {}}, None),
        ({"id": "7", "result": {}}, None),
        ({"id": 7.0, "result": {}}, None),
        ({"id": 8, "error": {"code": 1, "message": ""}}, None),
        ({"id": 7}, None),
    ],
)
def test_an_answer_is_ours_by_its_id_and_an_error_without_one_too(message: dict[str, Any], answer: Any) -> None:
    assert outcome(message, 7) == answer


def test_an_empty_content_encoding_is_none() -> None:
    body = httpx.Response(200, json={"result": {}}, headers={"content-encoding": ""})
    assert list(messages(body, EventParser(1000), failure)) == [{"result": {}}]


@pytest.mark.parametrize("encoding", ["br", "gzip"])
def test_a_content_encoding_that_cannot_be_undone_is_said(encoding: str) -> None:
    headers = {"content-encoding": encoding, "content-type": "application/json"}
    body = httpx.Response(200, headers=headers, stream=httpx.ByteStream(b"no archive at all"))
    with pytest.raises(Failure) as caught:
        list(messages(body, EventParser(1000), failure))
    assert caught.value.code == "not_mcp" and encoding in str(caught.value)
