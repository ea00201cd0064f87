from typing import Any

import pytest

from sam2_mcp_bridge.errors import Failure
from sam2_mcp_bridge.host import outcomes

MESSAGE: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "result": {}}


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({}, "hint"),
        ({"instructions": ""}, "hint"),
        ({"instructions": 5}, "hint"),
        ({"instructions": "Do."}, "Do. hint"),
    ],
)
def test_a_hint_goes_behind_what_the_server_says(told: dict[str, Any], expected: str) -> None:
    assert outcomes.with_hint(told | {"odd": 1}, "hint") == {"odd": 1, "instructions": expected}
    assert outcomes.with_hint(told, outcomes.hint_of(())) is told


def test_a_message_is_one_line() -> None:
    assert outcomes.line(MESSAGE, 100) == '{"jsonrpc":"2.0","id":1,"result":{}}'


@pytest.mark.parametrize(
    ("message", "code"),
    [(MESSAGE | {"result": "x" * 100}, "answer_too_large"), (MESSAGE | {"result": nested(100_000)}, "internal")],
)
def test_a_message_that_cannot_be_written_is_a_failure(message: dict[str, Any], code: str) -> None:
    with pytest.raises(Failure) as caught:
        outcomes.line(message, 100)
    assert caught.value.code == code


def test_a_message_for_which_there_is_no_memory_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(_: Any) -> str:
        raise MemoryError

    monkeypatch.setattr(outcomes, "encode", no_memory)
    with pytest.raises(Failure) as caught:
        outcomes.line(MESSAGE, 100)
    assert "no memory" in str(caught.value)


@pytest.mark.parametrize(
    ("method", "params", "named"),
    [
        ("tools/call", {"name": "x" * 200}, "x" * 80),
        ("tools/call", {"name": 5}, "tools/call"),
        ("tools/call", None, "tools/call"),
        ("prompts/get", {"name": "p"}, "prompts/get"),
    ],
)
def test_a_failure_names_the_tool_or_the_method(method: str, params: Any, named: str) -> None:
    assert outcomes.subject(method, params) == named


def test_a_failed_call_is_a_text_and_anything_else_an_error_that_says_whose() -> None:
    failure = Failure("busy", http_status=503, where="there", detail="HTTP 503")
    assert outcomes.of_failure("tools/call", failure) == {
        "result": {"content": [{"type": "text", "text": str(failure)}], "isError": True}
    }
    data = {"source": "bridge", "reason": "busy", "httpStatus": 503}
    assert outcomes.of_failure("tools/list", failure) == {
        "error": {"code": -32603, "message": str(failure), "data": data}
    }
