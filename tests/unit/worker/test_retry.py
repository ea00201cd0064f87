"""When a request to Claude is tried again, and after how long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.engines.retry import (
    LONGEST_WAIT_S,
    SHORTEST_WAIT_S,
    may_retry,
    retry_after_s,
    wait_s,
)

NOON_S = 1_796_040_000.0  # Mon, 30 Nov 2026 12:00:00 GMT


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_what_may_pass_is_tried_again(status: int) -> None:
    assert may_retry(status, {})
    assert not may_retry(status, {"x-should-retry": "false"})


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422])
def test_what_stays_wrong_is_not_tried_again_unless_the_server_says_so(status: int) -> None:
    assert not may_retry(status, {})
    assert not may_retry(status, {"x-should-retry": "perhaps"})
    assert may_retry(status, {"x-should-retry": "true"})


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-7"}, 0.0),
        ({"retry-after": "3600"}, 3600.0),
        ({"retry-after-ms": "250", "retry-after": "3"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "3"}, 3.0),
        ({"retry-after": "9" * 300}, 86_400.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "later"}, None),
        ({"retry-after": "Mon, 30 Nov 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Mon, 30 Nov 2026 11:00:00 GMT"}, 0.0),
        # The server's clock is an hour fast, which its own date shows.
        ({"retry-after": "Mon, 30 Nov 2026 13:00:30 GMT", "date": "Mon, 30 Nov 2026 13:00:00 GMT"}, 30.0),
        ({"retry-after": "Mon, 30 Nov 99999999999999 12:00:00 GMT"}, None),
    ],
)
def test_the_wait_that_a_server_asks_for_is_understood(headers: dict[str, str], expected: float | None) -> None:
    assert retry_after_s(headers, NOON_S) == expected


@given(st.text(max_size=40))
def test_any_header_is_a_number_of_seconds_or_nothing(text: str) -> None:
    told = retry_after_s({"retry-after": text}, NOON_S)
    assert told is None or told >= 0


@given(st.integers(1, 30), st.floats(0, 1))
def test_unasked_waits_grow_up_to_a_limit_and_are_spread(tries: int, spread: float) -> None:
    longest = wait_s(tries, None, 0)
    assert longest * 0.75 <= wait_s(tries, None, spread) <= longest <= LONGEST_WAIT_S
    assert wait_s(tries + 1, None, 0) >= longest


def test_a_server_that_asks_for_no_wait_gets_a_short_one() -> None:
    assert wait_s(1, 0.0, 0.5) == SHORTEST_WAIT_S
    assert wait_s(9, 12.0, 0.5) == 12.0
