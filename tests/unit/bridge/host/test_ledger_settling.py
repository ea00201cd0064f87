"""When lines are written: at once for a lone request, at a distance where requests overlap, never late."""

from itertools import pairwise

import pytest
from tests.unit.bridge.drive import LIMIT_S, Drive

from sam2_mcp_bridge.actions import Result
from sam2_mcp_bridge.host.framing import Request
from sam2_mcp_bridge.host.ledger import MAX_HOLD_S, SETTLE_S, TOGETHER_S


def test_a_lone_request_is_answered_at_once_when_none_can_have_been_made_together_with_it() -> None:
    drive = Drive()
    drive.call(1)
    drive.wait(TOGETHER_S * 1.01)
    drive.answer(Result({}))
    assert [at_s for at_s, _ in drive.lines] == [pytest.approx(100 + TOGETHER_S * 1.01)]


def test_an_answer_that_is_very_quick_waits_for_requests_made_together_with_its_own() -> None:
    drive = Drive()
    drive.call(1)
    drive.answer(Result({}))
    assert drive.lines == []
    drive.wait(TOGETHER_S)
    assert [at_s for at_s, _ in drive.lines] == [pytest.approx(100 + TOGETHER_S)]


def test_a_request_made_together_with_one_that_was_answered_very_quickly_settles_both() -> None:
    drive = Drive()
    drive.call(1)
    drive.answer(Result({}))
    drive.wait(TOGETHER_S / 2)
    drive.call(2)
    drive.answer(Result({}))
    drive.wait(1)
    assert [at_s for at_s, _ in drive.lines] == pytest.approx(
        [100 + TOGETHER_S / 2 + SETTLE_S, 100 + TOGETHER_S / 2 + 2 * SETTLE_S]
    )


def test_initialize_is_answered_at_once() -> None:
    drive = Drive()
    drive.take(drive.ledger.received(Request(1, "initialize", {}), drive.now_s))
    assert [at_s for at_s, _ in drive.lines] == [100.0]


def test_lines_of_requests_that_overlap_keep_their_distance() -> None:
    drive = Drive()
    for tag in (1, 2, 3):
        drive.call(tag)
    for tag in (1, 2, 3):
        drive.answer(Result({"tag": tag}))  # the next one is upstream while the line before it settles
    assert drive.lines == []
    drive.wait(1)
    times_s = [at_s for at_s, _ in drive.lines]
    assert [answer["id"] for answer in drive.answers] == [1, 2, 3]
    assert times_s == pytest.approx([100 + SETTLE_S, 100 + 2 * SETTLE_S, 100 + 3 * SETTLE_S])


def test_a_line_waits_until_the_newest_request_has_settled() -> None:
    drive = Drive()
    drive.call(1)
    drive.call(2)
    drive.wait(SETTLE_S / 2)
    drive.answer(Result({}))
    drive.call(3)
    drive.wait(SETTLE_S * 0.9)
    assert drive.lines == []
    drive.wait(SETTLE_S * 0.2)
    assert [answer["id"] for answer in drive.answers] == [1]


def test_a_host_that_never_pauses_gets_its_answer_all_the_same() -> None:
    drive = Drive()
    drive.call(1)
    drive.call(2)
    drive.answer(Result({}))
    for tag in range(3, 60):
        drive.wait(SETTLE_S / 2)
        drive.call(tag)
    assert drive.answers[0]["id"] == 1
    assert drive.lines[0][0] == pytest.approx(100 + MAX_HOLD_S)


def test_calls_that_expire_together_keep_their_distance_and_their_deadline() -> None:
    drive = Drive()
    for tag in range(1, 7):
        drive.call(tag)
    drive.wait(LIMIT_S)
    times_s = [at_s for at_s, _ in drive.lines]
    assert [answer["id"] for answer in drive.answers] == [1, 2, 3, 4, 5, 6]
    assert all(later - earlier >= SETTLE_S * 0.99 for earlier, later in pairwise(times_s))
    assert times_s[-1] <= 100 + LIMIT_S
    assert len(drive.sends) == 1, "a call that is about to be given up is not started"


def test_a_line_that_filled_the_pipe_counts_from_when_it_was_through() -> None:
    drive = Drive()
    for tag in (1, 2):
        drive.call(tag)
        drive.wait(0)
    drive.answer(Result({"tag": 1}))
    drive.answer(Result({"tag": 2}))
    drive.wait(SETTLE_S)
    drive.ledger.written(drive.now_s + 0.2)
    drive.wait(0.3 + SETTLE_S)
    assert [at_s for at_s, _ in drive.lines] == pytest.approx([100 + SETTLE_S, 100 + 2 * SETTLE_S + 0.2])


def test_a_request_whose_line_was_read_before_the_last_write_does_not_turn_the_clock_back() -> None:
    drive = Drive()
    drive.call(1)
    drive.call(2)
    drive.answer(Result({}))
    drive.answer(Result({}))
    drive.wait(SETTLE_S)
    drive.take(drive.ledger.received(Request(3, "ping", None), drive.now_s - 1))
    drive.wait(SETTLE_S / 2)
    assert len(drive.lines) == 1
