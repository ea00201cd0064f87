"""How a notice is spoken beside the rest: speed, loudness and share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.checks.spoken import (
    Comparison,
    Spoken,
    compare_spoken,
    mean_loudness_dbfs,
    speech_rate,
    syllables,
)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("보험료가 오릅니다", 8),
        ("이 1,000원", 3),
        ("10 개", 2),
        ("2026년", 6),  # 이천이십육년
        ("5천만원", 4),
        ("100,000,000원", 3),  # 일억원
        ("11만", 3),  # 십일만
        ("1200만", 4),  # 천이백만
        ("120000명", 4),  # 십이만명
        ("0원", 2),
        ("Premium rises", 4),
        ("12 coins", 3),
        ("保険です。", 4),
        ("Страховка", 3),
        ("", 0),
    ],
)
def test_syllables_are_those_that_are_spoken(text: str, count: int) -> None:
    assert syllables(text) == count


def test_a_notice_read_twice_as_fast_and_at_half_the_power_is_told_as_such() -> None:
    notice = [Spoken(10, 12, "가나다라" * 5, -23.01)]
    rest = [Spoken(0, 4, "가나다라" * 5, -20.0), Spoken(5, 9, "가나다라" * 5, -20.0)]
    found = compare_spoken(notice, rest)
    assert found.share == 0.2 and found.rate_ratio == 2.0 and found.louder_db == pytest.approx(-3.01)


@pytest.mark.parametrize("rest", [[], [Spoken(0, 0, "")]])
def test_without_anything_to_compare_with_nothing_is_said(rest: list[Spoken]) -> None:
    assert compare_spoken([Spoken(0, 1, "가", -20)], rest) == Comparison(1.0, None, None)
    assert compare_spoken([], rest) == Comparison(None, None, None)


def test_a_level_below_all_numbers_is_none() -> None:
    assert mean_loudness_dbfs([Spoken(0, 1, "", float("-inf"))]) is None
    assert speech_rate([Spoken(0, 0.4, "가나다")]) is None


@given(st.lists(st.tuples(st.floats(0.1, 30), st.floats(-90, 0)), min_size=1, max_size=8))
def test_the_mean_level_lies_between_the_quietest_and_the_loudest(pieces: list[tuple[float, float]]) -> None:
    mean = mean_loudness_dbfs([Spoken(0, seconds, "", level) for seconds, level in pieces])
    levels = [level for _, level in pieces]
    assert mean is not None and min(levels) - 1e-6 <= mean <= max(levels) + 1e-6


@given(st.text(max_size=40), st.text(max_size=40))
def test_syllables_never_get_fewer_with_more_text(one: str, two: str) -> None:
    assert syllables(one + " 가 " + two) >= max(syllables("가 " + one), syllables("가 " + two)) > 0
