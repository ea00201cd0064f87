"""Which words of a speech engine are believed: every second is words, or lost with a reason, or a pause."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.checks.hearing import LONGEST_PAUSE_S, NO_WORDS, Lost, Said, judge

SENTENCE = "The premium may rise when the contract is renewed."

# Many different signs of a script whose syllables nobody counts here.
THAI = "".join(chr(0x0E01 + number * 7 % 46) + chr(0x0E01 + number * 11 % 46) for number in range(100))


def said(text: str, start_s: float = 0, end_s: float = 4, *, no_speech: float = 0.1, log_prob: float = -0.3) -> Said:
    return Said(start_s, end_s, text, no_speech, log_prob)


@pytest.mark.parametrize(
    "believed",
    [
        said(SENTENCE),
        said("보험료는 갱신할 때 오를 수 있습니다."),
        said("Yes.", 0, 0.5, no_speech=0.62, log_prob=-0.77),
        said("Call 1 800 555 0199", log_prob=-0.94),
        said("1588-0000, 1588-0000, 1588-0000"),
        said("시청해 주셔서 감사합니다."),
        Said(0, 4, SENTENCE),
    ],
)
def test_ordinary_words_are_believed(believed: Said) -> None:
    assert judge([believed], 4) == ([believed], [])


@pytest.mark.parametrize(
    ("invented", "reason"),
    [
        (said("you", 0, 2, no_speech=0.74, log_prob=-1.06), "not sure of its words"),
        (said("I'm going to do it.", no_speech=0.92, log_prob=-0.5), "no speech"),
        (said("2.5% de rame, " * 30), "again and again"),
        (said("이 정도는", log_prob=-2.35), "not sure of its words"),
        (said(SENTENCE, 0, 0.2), "more words than can be said"),
        (
            said("".join(chr(0x0E01 + number * 7 % 46) + chr(0x0628 + number % 19) for number in range(140)), 0, 1),
            "more",
        ),
    ],
)
def test_invented_words_are_a_lost_span_with_a_reason(invented: Said, reason: str) -> None:
    believed, (lost, *rest) = judge([invented], 4)
    assert believed == []
    assert lost.start_s == 0
    assert lost.end_s == pytest.approx(invented.end_s if invented.end_s > 0.5 else invented.end_s + 0.5)
    assert reason in lost.reason
    # Nothing is known of the rest of the piece either.
    assert rest == ([Lost(lost.end_s, 4, NO_WORDS)] if lost.end_s < 4 else [])


def test_a_slogan_said_three_times_is_believed_and_an_endless_one_is_not() -> None:
    thrice = [said("지금 전화하세요!", number, number + 1) for number in range(3)]
    assert judge(thrice, 3) == (thrice, [])
    loop = [said("지금 전화하세요." if number % 2 else "지금 전화하세요", number, number + 1) for number in range(9)]
    believed, (lost,) = judge([*loop, said("다음 문장입니다", 9, 10)], 10)
    assert [one.start_s for one in believed] == [0, 9]
    assert (lost.start_s, lost.end_s) == (1, 9)


def test_a_long_stretch_without_words_is_lost_and_a_pause_is_not() -> None:
    first, last = said("one", 0, 1), said("two", 1 + LONGEST_PAUSE_S, 8)
    assert judge([first, last], 8) == ([first, last], [])
    assert judge([first], 8) == ([first], [Lost(1, 8, NO_WORDS)])
    assert judge([said(" ")], 8) == ([], [Lost(0, 8, NO_WORDS)])
    assert judge([], 8) == ([], [Lost(0, 8, NO_WORDS)])


def test_times_behind_the_end_are_set_to_it_and_words_behind_the_end_are_none() -> None:
    believed, lost = judge([said("padded", 1, 30), said("behind", 9, 12)], 8)
    assert [(one.start_s, one.end_s, one.text) for one in believed] == [(1, 8, "padded")]
    assert lost == []


def test_quick_words_of_a_moment_are_believed_and_a_pause_is_counted_from_the_last_word() -> None:
    moment, long, within = said("네 가입하세요", 1.0, 1.1), said("one two three", 2, 9), said("aside", 3, 4)
    assert judge([moment, long, within], 10) == ([moment, long, within], [])


def test_words_that_are_not_believed_within_others_leave_one_span() -> None:
    outer, inner = said("a b", 0, 5, log_prob=-2), said("c d", 1, 2, log_prob=-2)
    assert [(span.start_s, span.end_s) for span in judge([outer, inner], 5)[1]] == [(0, 5)]
    loop = [said(text, number, number + 0.9) for number, text in enumerate(("Thanks.", "thanks", "THANKS!", "Thanks"))]
    assert judge(loop, 4)[0] == loop[:1]


def test_a_lost_span_ends_where_believed_words_begin() -> None:
    loop, words = said("no " * 90, 1, 7), said("believed", 3, 4)
    believed, lost = judge([loop, words], 7)
    alone = judge([loop], 8)[1]
    assert [alone[0], alone[2]] == [Lost(0, 1, NO_WORDS), Lost(7, 8, NO_WORDS)]
    assert believed == [words]
    assert [(span.start_s, span.end_s) for span in lost] == [(1, 3), (4, 7)]
    assert judge([words, said("no " * 90, 3, 4)], 7)[1] == []


def test_lost_spans_that_overlap_are_told_once() -> None:
    inner, outer = said("a b", 2, 3, log_prob=-2), said("no " * 90, 0, 5)
    assert [(span.start_s, span.end_s) for span in judge([inner, outer], 5)[1]] == [(0, 5)]
    later = said("a b", 4, 7, log_prob=-2)
    assert [(span.start_s, span.end_s) for span in judge([later, outer], 7)[1]] == [(0, 5), (5, 7)]


TIMES = st.floats(0, 40, allow_nan=False)
SAID = st.builds(
    lambda start, length, text, no_speech, log_prob: Said(start, start + length, text, no_speech, log_prob),
    TIMES,
    st.floats(0, 12),
    st.sampled_from(["", " ", "네", SENTENCE, "no " * 60, "보험료는 갱신할 때 오를 수 있습니다."]),
    st.none() | st.floats(0, 1),
    st.none() | st.floats(-3, 0),
)


@given(st.lists(SAID, max_size=8), st.floats(0.1, 30))
def test_spans_rise_lie_inside_and_never_overlap_believed_words(segments: list[Said], duration_s: float) -> None:
    believed, lost = judge(segments, duration_s)
    assert believed == sorted(believed, key=lambda one: (one.start_s, one.end_s))
    for one in [*believed, *lost]:
        assert 0 <= one.start_s <= one.end_s <= duration_s
    for span in lost:
        assert span.reason
        assert span.start_s < span.end_s
        assert not any(one.start_s < span.end_s and span.start_s < one.end_s for one in believed)
    assert all(before.end_s <= after.start_s for before, after in pairwise(lost))


@given(st.lists(SAID, max_size=8), st.floats(0.1, 30))
def test_no_span_with_words_is_left_out_without_a_reason(segments: list[Said], duration_s: float) -> None:
    believed, lost = judge(segments, duration_s)
    told = [*believed, *lost]
    for one in segments:
        middle_s = (one.start_s + min(one.end_s, duration_s)) / 2
        if one.text.strip() and one.start_s < min(one.end_s, duration_s):
            assert any(other.start_s <= middle_s <= other.end_s for other in told)
    assert told
