import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sam2_mcp_bridge.upstream.sse import DEFAULT_RETRY_S, MIN_RETRY_S, EventParser, EventTooLarge

LIMIT = 1000
data_lines = st.text(st.characters(exclude_characters="\r\n", exclude_categories=("Cs",))).map(str.encode)
events = st.lists(st.lists(data_lines, min_size=1, max_size=3), max_size=5)
line_ends = st.sampled_from([b"\n", b"\r", b"\r\n"])


def parse(chunks: list[bytes]) -> list[bytes]:
    parser = EventParser(LIMIT * 1000)
    return [data for chunk in chunks for data in parser.feed(chunk)]


@given(events, line_ends, st.booleans(), st.lists(st.integers(0, 300)))
@example([[b"a"]], b"\r\n", True, [1, 2, 3, 9, 10, 11])
def test_events_do_not_depend_on_chunks_and_line_ends(
    expected: list[list[bytes]], end: bytes, with_noise: bool, cuts: list[int]
) -> None:
    noise = (
        b": ping - \xe2\x80\xa8" + end + b"id: 1" + end + b"retry: 5" + end + b"event: message" + end
        if with_noise
        else b""
    )
    stream = b"".join(noise + b"".join(b"data: " + line + end for line in lines) + end for lines in expected)
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    chunks = [stream[start:stop] for start, stop in pairwise(edges)]
    assert parse(chunks) == [b"\n".join(lines) for lines in expected]


@pytest.mark.parametrize(
    "text", ["보험 광고", "a\u2028b\u2029c\u0085d", "\x0b\x0c\x1c\x1d\x1e", "  two spaces", ":colon", "data: data", ""]
)
def test_only_real_line_ends_split(text: str) -> None:
    assert parse([f"data: {text}\n\n".encode()]) == [text.encode()]


def test_the_stream_may_start_with_a_byte_order_mark() -> None:
    assert parse([b"\xef\xbb\xbfdata: a\n\ndata: b\n\n"]) == [b"a", b"b"]


def test_events_of_other_names_and_events_without_data_are_dropped() -> None:
    assert parse([b"event: ping\ndata: x\n\nid: 7\n\nevent: message\n\ndata\n\nevent: message\ndata:y\n\n"]) == [
        b"",
        b"y",
    ]


def test_every_cut_of_a_stream_gives_the_events_that_were_complete() -> None:
    stream = b"data: one\r\n\r\n: ping\r\ndata: two\r\n\r\n"
    for at in range(len(stream) + 1):
        complete = [b"one"] * (at >= 12) + [b"two"] * (at >= len(stream) - 1)
        assert parse([stream[:at]]) == complete
        parser = EventParser(LIMIT)
        assert [*parser.feed(stream[:at]), *parser.feed(stream[at:])] == [b"one", b"two"]


@pytest.mark.parametrize("stream", [b"data: " + b"x" * LIMIT, b"data: 12345678\n" * 200, b":" + b" " * LIMIT])
def test_an_event_above_the_limit_ends_the_stream(stream: bytes) -> None:
    with pytest.raises(EventTooLarge):
        list(EventParser(LIMIT).feed(stream))


def test_many_events_below_the_limit_are_no_problem() -> None:
    assert len(list(EventParser(LIMIT).feed(b"data: 12345678\n\n" * 200))) == 200


def test_an_event_of_lines_without_data_has_the_same_limit() -> None:
    parser = EventParser(LIMIT)
    with pytest.raises(EventTooLarge):
        list(parser.feed(b"data\n" * (LIMIT + 2)))


def test_the_id_of_the_last_complete_event_is_kept_even_of_one_without_data() -> None:
    parser = EventParser(LIMIT)
    seen = []
    for chunk in (b"id: 1\ndata: a\n\n", b"data: b\n\n", b"id: 2\ndata:\n\n", b"id: 3\n\n", b"id: 4\ndata: cut"):
        list(parser.feed(chunk))
        seen.append(parser.last_event_id)
    assert seen == ["1", "1", "2", "3", "3"]
    parser.restart()
    assert list(parser.feed(b"data: c\n\n")) == [b"c"] and parser.last_event_id == "3"
    list(parser.feed(b"id\ndata: d\n\n"))
    assert parser.last_event_id == ""


@pytest.mark.parametrize("field", ["id: 한", "id: a\0b", "id: a\tb", "id: a ", "id:  a"])
def test_an_id_that_fits_into_no_header_is_none(field: str) -> None:
    parser = EventParser(LIMIT)
    list(parser.feed(f"id: ok\n\n{field}\n\n".encode()))
    assert parser.last_event_id == "ok"


@pytest.mark.parametrize(
    ("field", "retry_s"),
    [
        ("retry: 2500", 2.5),
        ("retry:0", MIN_RETRY_S),
        ("retry: soon", DEFAULT_RETRY_S),
        ("retry", DEFAULT_RETRY_S),
        ("retry: " + "9" * 5000, DEFAULT_RETRY_S),
    ],
)
def test_the_server_says_when_to_come_back(field: str, retry_s: float) -> None:
    parser = EventParser(10_000)
    list(parser.feed(f"{field}\n\n".encode()))
    assert parser.retry_s == retry_s


def test_a_large_event_is_copied_once_while_it_comes_and_then_kept_by_nobody_else() -> None:
    size, parser = 4_000_000, EventParser(8_000_000)
    stream = b"data: " + b"x" * size + b"\n\n"
    chunks = [stream[start : start + 65536] for start in range(0, len(stream), 65536)]
    tracemalloc.start()
    try:
        for data in (data for chunk in chunks for data in parser.feed(chunk)):
            now, peak = tracemalloc.get_traced_memory()
            assert len(data) == size and now < 1.3 * size and peak < 2.4 * size
    finally:
        tracemalloc.stop()
