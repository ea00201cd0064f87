import json
import math
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sam2_mcp_bridge.host import framing
from sam2_mcp_bridge.host.framing import (
    INVALID_REQUEST,
    MAX_BATCH_MESSAGES,
    MAX_ID_CHARACTERS,
    PARSE_ERROR,
    LineSplitter,
    Malformed,
    Notification,
    Request,
    Response,
    decode,
    encode,
    parse,
)

any_text = st.text(st.characters(exclude_categories=()))  # lone surrogates too
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | any_text,
    lambda children: st.lists(children) | st.dictionaries(any_text, children),
)


def without_lone_surrogates(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def cut(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(min(at, len(data)) for at in cuts), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


@given(json_values)
def test_what_is_encoded_is_one_ascii_line_of_strict_json(value: object) -> None:
    line = encode(value)
    assert line.isascii() and len(line.splitlines()) == 1
    json.dumps(json.loads(line, parse_constant=pytest.fail), ensure_ascii=False).encode()  # no lone surrogate is left


@given(any_text)
@example("\ud800\udc00\ud800")
@example("\\ud800 \\\\\ud800")
@example("\u2028\u0085\u007f보험")
def test_text_survives_but_for_lone_surrogates(text: str) -> None:
    assert decode(encode([text]).encode()) == [without_lone_surrogates(text)]


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_keep_their_value_and_kind(number: float) -> None:
    back = decode(encode([number]).encode())[0]
    assert (back, type(back)) == (number, type(number))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400"])
def test_a_number_that_json_cannot_express_becomes_null(number: str) -> None:
    assert decode(f"[{number}, 1.5]".encode()) == [None, 1.5]


def test_nan_is_never_emitted() -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode([math.nan])


@given(st.lists(st.binary().map(lambda line: line.replace(b"\n", b""))), st.lists(st.integers(0, 200)))
def test_lines_do_not_depend_on_the_chunks(lines: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(line + b"\n" for line in lines) + b"unfinished"
    splitter = LineSplitter()
    assert [line for chunk in cut(stream, cuts) for line in splitter.feed(chunk)] == lines


@given(st.lists(st.integers(0, 30)), st.lists(st.integers(0, 200)))
def test_a_line_above_the_limit_is_reported_once_and_the_stream_goes_on(lengths: list[int], cuts: list[int]) -> None:
    splitter = LineSplitter(limit_bytes=10)
    stream = b"".join(b"x" * length + b"\n" for length in lengths)
    got = [line for chunk in cut(stream, cuts) for line in splitter.feed(chunk)]
    assert got == [b"x" * length if length <= 10 else None for length in lengths]


@pytest.mark.parametrize("line", [b"", b" \t ", b"\r", b'{"jsonrpc":"2.0","id":null,"result":{}}'])
def test_blank_lines_and_responses_to_nothing_vanish(line: bytes) -> None:
    assert parse(line) == []


def test_a_response_is_a_message_with_what_the_host_said() -> None:
    assert parse(b'{"jsonrpc":"2.0","id":1,"result":{"a":1}}') == [Response(1, {"result": {"a": 1}})]
    assert parse(b'{"id":"x","error":{"code":1}}') == [Response("x", {"error": {"code": 1}})]


@pytest.mark.parametrize("line", [b"{", b"print", b'{"a":1} {}', b"\xff", b"[" * 100_000, None])
def test_what_is_not_json_gets_one_parse_error_without_id(line: bytes | None) -> None:
    (message,) = parse(line)
    assert isinstance(message, Malformed) and (message.id, message.code) == (None, PARSE_ERROR)


@given(st.binary() | json_values.map(lambda value: encode(value).encode()))
def test_any_line_whatever_gives_messages_or_an_error_and_never_raises(line: bytes) -> None:
    assert all(isinstance(message, Request | Notification | Response | Malformed) for message in parse(line))


@pytest.mark.parametrize("id_text", ["null", "1.0", "true", "{}", "[1]", '"' + "x" * (MAX_ID_CHARACTERS + 1) + '"'])
def test_an_id_that_is_neither_string_nor_integer_is_refused(id_text: str) -> None:
    (message,) = parse(b'{"method":"ping","id":' + id_text.encode() + b"}")
    assert isinstance(message, Malformed) and (message.id, message.code) == (None, INVALID_REQUEST)


@pytest.mark.parametrize(
    ("line", "id_value"), [(b"1", None), (b"[]", None), (b'{"id":3}', 3), (b'{"id":3,"method":4}', 3)]
)
def test_json_that_is_no_message_is_an_invalid_request(line: bytes, id_value: int | None) -> None:
    (message,) = parse(line)
    assert isinstance(message, Malformed) and (message.id, message.code) == (id_value, INVALID_REQUEST)


def test_ids_keep_their_type_and_params_are_optional() -> None:
    assert parse(b'{"id":1,"method":"a","params":{"x":null}}\r') == [Request(1, "a", {"x": None})]
    assert parse(b'{"id":"1","method":"a"}') == [Request("1", "a", None)]


def test_a_batch_is_taken_apart_element_by_element() -> None:
    batch = b'[{"id":1,"method":"a"},{"method":"n"},7,{"id":2,"result":{}},{"id":1.5,"method":"b"}]'
    messages = parse(batch)
    assert messages[:2] == [Request(1, "a", None), Notification("n", None)]
    assert [type(message) for message in messages[2:]] == [Malformed, Response, Malformed]


def test_a_batch_of_more_messages_than_anybody_sends_is_one_error() -> None:
    assert len(parse(json.dumps([1] * MAX_BATCH_MESSAGES).encode())) == MAX_BATCH_MESSAGES
    (message,) = parse(json.dumps([1] * (MAX_BATCH_MESSAGES + 1)).encode())
    assert isinstance(message, Malformed) and message.code == -32600 and "up to 1000" in message.reason


class Full(bytearray):
    """The line under way when memory ends."""

    def __iadd__(self, piece: bytes) -> "Full":  # type: ignore[override]
        if piece:
            raise MemoryError
        return self

    def __bytes__(self) -> bytes:
        raise MemoryError


@pytest.mark.parametrize("rest", [b"more\nnext\n", b"\nnext\n"])
def test_a_line_for_which_there_is_no_memory_is_skipped_and_the_stream_goes_on(rest: bytes) -> None:
    splitter = LineSplitter()
    splitter._line = Full(b"large")
    assert splitter.feed(rest) == [None, b"next"]


def test_a_message_for_which_there_is_no_memory_gets_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(_: bytes) -> None:
        raise MemoryError

    monkeypatch.setattr(framing, "decode", no_memory)
    (message,) = parse(b"{}")
    assert isinstance(message, Malformed) and message.code == PARSE_ERROR
