"""Cursors survive the trip, and nothing but our own is taken."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.cursors import belongs, decode_cursor, encode_cursor, number_ranges, parse_ranges
from sam2_mcp_worker.errors import WorkerError

KEY = "ab" * 32


@given(
    st.dictionaries(
        st.text("defgh", min_size=1, max_size=3), st.one_of(st.integers(-(2**53), 2**53), st.text()), max_size=4
    )
)
def test_what_goes_in_comes_out(state: dict[str, object]) -> None:
    cursor = encode_cursor("inspect_pdf", KEY, state)
    assert cursor.isascii()
    decoded = decode_cursor(cursor, "inspect_pdf", KEY)
    assert {name: decoded[name] for name in state} == state


@given(st.text(max_size=200))
def test_no_made_up_text_is_a_cursor(text: str) -> None:
    with pytest.raises(WorkerError) as caught:
        decode_cursor(text, "inspect_pdf", KEY)
    assert caught.value.code == "cursor_invalid"


@pytest.mark.parametrize(
    "cursor",
    [
        encode_cursor("read_text", KEY, {}),
        encode_cursor("inspect_pdf", "cd" * 32, {}),
        base64.urlsafe_b64encode(b"[1]").decode(),
        base64.urlsafe_b64encode(json.dumps([[]] * 10).encode()).decode(),
        "A" * 30_000,
        base64.urlsafe_b64encode(b"[" * 9000).decode(),
    ],
)
def test_cursors_of_other_requests_and_damaged_ones_say_what_to_do(cursor: str) -> None:
    with pytest.raises(WorkerError, match="without cursor"):
        decode_cursor(cursor, "inspect_pdf", KEY)


def test_numbers_of_every_kind_come_back_and_those_without_end_do_not() -> None:
    assert decode_cursor(encode_cursor("t", KEY, {"d": 1.5}), "t", KEY)["d"] == 1.5
    for number in ("1e999", "-1e999", "9" * 40):
        text = f'{{"t":"t","k":"{KEY[:16]}","d":{number}}}'
        with pytest.raises(WorkerError, match="without cursor"):
            decode_cursor(base64.urlsafe_b64encode(text.encode()).decode(), "t", KEY)


@given(st.sets(st.integers(1, 300), min_size=1))
def test_ranges_are_the_inverse_of_number_ranges(numbers: set[int]) -> None:
    assert parse_ranges(number_ranges(sorted(numbers)), limit=300) == sorted(numbers)


@pytest.mark.parametrize(
    "text", ["", "0", "4", "3-1", "a", "1-", "-1", "1--2", "1,,2", "1.5", "１", "9" * 5000, "1-999999999999"]
)
def test_bad_ranges_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"range|outside"):
        parse_ranges(text, limit=3)


@pytest.mark.parametrize(
    "number", ["Infinity", "-Infinity", "NaN", "1e999", "-1e400", "9" * 300, "-" + "9" * 17, "1e300", "9" * 5000]
)
@pytest.mark.parametrize("form", ['{"t":"inspect_pdf","k":"%s","d":%s}', '{"t":"inspect_pdf","k":"%s","n":{"1":[%s]}}'])
def test_a_number_that_no_document_has_makes_a_cursor_invalid(form: str, number: str) -> None:
    text = form % (KEY[:16], number)
    with pytest.raises(WorkerError, match="without cursor") as caught:
        decode_cursor(base64.urlsafe_b64encode(text.encode("ascii")).decode("ascii"), "inspect_pdf", KEY)
    assert caught.value.code == "cursor_invalid"


@given(st.binary(max_size=200))
def test_no_made_up_bytes_are_a_cursor(data: bytes) -> None:
    with pytest.raises(WorkerError) as caught:
        decode_cursor(base64.urlsafe_b64encode(data).decode("ascii"), "inspect_pdf", KEY)
    assert caught.value.code == "cursor_invalid"


def test_a_text_of_ranges_that_is_longer_than_needed_is_refused_unread() -> None:
    with pytest.raises(ValueError, match=r"ranges have 2001 characters; at most 2000"):
        parse_ranges("x" * 2001, limit=300)
    assert parse_ranges(("1," * 1000)[:-1], limit=300) == [1]


@pytest.mark.parametrize("pages", [range(1, 2001, 2), [n for n in range(1, 2001) if n % 3]])
def test_scattered_pages_of_the_longest_document_are_read_back(pages: list[int]) -> None:
    text = number_ranges(list(pages))
    assert len(text) > 2000
    assert parse_ranges(text, limit=2000) == list(pages)


def test_a_cursor_belongs_to_its_own_request_alone() -> None:
    cursor = encode_cursor("read_text", KEY, {})
    assert belongs(cursor, "read_text", KEY)
    assert not any(belongs(*wrong) for wrong in [(cursor, "read_text", "cd" * 32), (cursor, "t", KEY), ("", "t", KEY)])
