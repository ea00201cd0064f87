"""A phrase held against a place, syllable by syllable: other words, slips, and where it ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.checks.phrase_coverage import coverage
from sam2_mcp_worker.checks.phrase_letters import LetterLines, letters
from sam2_mcp_worker.checks.phrase_places import most_places
from sam2_mcp_worker.checks.phrase_slips import certainly_other, is_usual, odd_share
from sam2_mcp_worker.checks.phrase_wording import Alignment
from sam2_mcp_worker.checks.phrases import phrase_of

NOTICE = "납입기간 중 계약을 해지하면 해약환급금을 지급합니다"


def laid(phrase: str, *lines: str) -> Alignment:
    page = LetterLines(lines)
    return Alignment(phrase, page, next(most_places(letters(phrase), page.letters, 0.3)))


def read_as(phrase: str, *lines: str) -> str:
    found = laid(phrase, *lines)
    return LetterLines(lines).text[found.first : found.last]


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        (NOTICE, ()),
        ("납임기간 중 계악을 해지하면 헤약환급금을 지급합니다", ()),
        ("납입기간 중 계약을 변경하면 해약환급금을 지급합니다", ("해지 -> 변경",)),
        ("납입기간 중 계약을 해지하면 해약환급금과 이자를 지급합니다", ("(nothing) -> 과이자를",)),
        ("납입기간 중 계약을 해지하면 지급합니다", ("해약환급금을 -> (nothing)",)),
        ("납입기간 중 계약을 해지하면 해약환급금을 지급하치 앟습니다", ("(nothing) -> 치앟습",)),
    ],
)
def test_other_words_are_told_and_look_alike_syllables_are_not(shown: str, said: tuple[str, ...]) -> None:
    found = laid(NOTICE, "상품 안내", shown, "보험료").swapped(tokens_differ=False, slips=True)
    assert found == said


def test_one_syllable_is_another_word_where_it_keeps_no_letters_and_a_particle_is_none() -> None:
    asked = "질병으로 수술을 받은 고객에게 보험금을 드립니다"
    assert laid(asked, asked.replace("병", "벙")).swapped(tokens_differ=False, slips=True) == ()
    assert laid(asked, asked.replace("병", "0")).swapped(tokens_differ=False, slips=True) == ()
    assert laid(asked, asked.replace("병", "환")).swapped(tokens_differ=False, slips=True) == ("병 -> 환",)
    assert laid(asked, asked.replace("병", "환")).swapped(tokens_differ=False, slips=False) == ("병 -> 환",)
    assert laid(asked, asked.replace("수술을", "수술이")).swapped(tokens_differ=False, slips=False) == ()


def test_a_misread_yes_may_have_been_a_no() -> None:
    asked = "청약을 철회할 수 있습니다"
    assert laid(asked, "청약을 철회할 수 엇습니다").swapped(tokens_differ=False, slips=True) == ("있 -> 엇",)


def test_what_changes_with_a_negation_is_no_other_word() -> None:
    asked = "보험금 지급이 제한될 수 있습니다"
    found = laid(asked, "보험금 지급이 제한되지 않습니다")
    assert found.swapped(tokens_differ=True, slips=True) == ()
    assert found.swapped(tokens_differ=False, slips=True) != ()
    turned = laid("보험금 지급이 제한되지 않습니다", asked)
    assert turned.swapped(tokens_differ=True, slips=True) == ()
    lost = laid("보험금 지급이 제한되지 않습니다", "보험금 지급이 제한")
    assert lost.swapped(tokens_differ=True, slips=True) == ()


@pytest.mark.parametrize(
    ("phrase", "lines", "reached"),
    [
        (
            "고의로 자신을 해친 경우에는 보험금을 지급하지 않습니다.",
            ("고의로 자신을 해친 경우에는 보험금을 지급합니다.", "유사암은 일반암 진단보험금의 20%를 지급하며"),
            "고의로 자신을 해친 경우에는 보험금을 지급합니다",
        ),
        (
            "기준: 40년 만기 전기납, 가입금액 기본형 1,000만원, 고급형 2,000만원",
            ("기준: 20년 만기 전기납, 가입금액 기본형 1,000만원,", "고급형 2,000만원"),
            "기준: 20년 만기 전기납, 가입금액 기본형 1,000만원,\n고급형 2,000만원",
        ),
        (NOTICE, ("유의사항", NOTICE, "유사암은 진단보험금의 20%"), NOTICE),
        (
            "납입기간 중 해약환급금을 지급하지 않습니다",
            ("납입기간 중 해약환급금을 지급합니다. 유사암은 다릅니다",),
            "납입기간 중 해약환급금을 지급합니다",
        ),
        (
            "납입기간 중 해약환급금을 지급합니다",
            ("납입기간 중 해약환급금을 지급하지 않습니다. 유사암은 다릅니다",),
            "납입기간 중 해약환급금을 지급하지 않습니다",
        ),
        (
            "보험계약 전 상품설명서를 읽어 주십시오",
            ("꼭 알아두실 사항", "계약 전 상품설명서를 읽어 주십시오"),
            "계약 전 상품설명서를 읽어 주십시오",
        ),
        (
            "상품설명서를 읽어 주십시오 감사합니다",
            ("상품설명서를 읽어 주십시오", "꽃나무"),
            "상품설명서를 읽어 주십시오",
        ),
    ],
)
def test_a_phrase_reaches_as_far_as_its_own_words_do(phrase: str, lines: tuple[str, ...], reached: str) -> None:
    assert read_as(phrase, *lines) == reached


@pytest.mark.parametrize(
    ("asked", "shown", "certain"),
    [
        ("최대 1억원까지 보장합니다", "최대 5천만원까지 보장합니다", True),
        ("최대 5천만원까지 보장합니다", "최대 5천맏원까지 보장합니다", False),  # the unit was misread
        ("최대 5천만원까지 보장합니다", "최대 5천원까지 보장합니다", True),
        ("최대 3,000만원까지 보장", "최대 3.000만원까지 보장", False),
        ("최대 3,000만원까지 보장", "최대 33000만원까지 보장", False),
        ("최대 3,000만원까지 보장", "최대 8,000만원까지 보장", True),
        ("최대 3,000만원까지 보장", "최대 3.,000만원까지 보장", False),
        ("2026.07.01부터 보장합니다", "2026,07,01부터 보장합니다", False),
        ("1년 안에 진단되면 지급합니다", "[년 안에 진단되면 지급합니다", False),
        ("보험금을 지급하지 않습니다", "보험금을 지급하지 앉습니다", False),
        ("보험금을 지급하지 않습니다", "보험금을 지급하지 캻습니다", False),  # no text uses that syllable
        ("보험금을 지급하지 않습니다", "보험금을 지급하지 는습니다", True),
        ("보험금을 지급하지 않습니다", "보험금을 지급합니다", True),
        ("청약을 철회할 수 없습니다", "청약을 철회할 수 있습니다", True),
        ("청약을 철회할 수 있습니다", "청약을 철회할 수 없습니다", True),
        ("무배당 건강보험 상품입니다", "모배당 건강보험 상품입니다", False),
        ("보험료는 매월 냅니다", "못험료는 매월 냅니다", False),  # a syllable misread as a negation
        ("보험료는 매월 냅니다", "보험료는 못 매월 냅니다", True),
        ("가입 나이는 만 15세부터입니다", "가없 나이는 만 15세부터입니다", False),
        ("의료비는 보장에 포함됩니다", "의료비는 보장에 제외됩니다", True),
        ("보험료는 매월 냅니다", "보험료는 매월 냅니다", True),
    ],
)
def test_a_token_that_may_only_be_misread_is_no_certain_other(asked: str, shown: str, certain: bool) -> None:
    assert certainly_other(phrase_of(asked).tokens, laid(asked, shown)) == certain


def test_syllables_that_no_text_uses_are_known() -> None:
    assert is_usual("값") and is_usual("닭") and is_usual("A") and is_usual("漢")
    assert not is_usual("뷁") and not is_usual("쀍")
    assert odd_share("보험 뷁쀍 1") == 0.5 and odd_share("") == odd_share("ABC") == 0.0


def test_coverage_is_the_share_of_runs_of_three_syllables() -> None:
    assert coverage("보험료 인상", "갱신 시 보험료인상 가능") == 1.0
    assert coverage("보험료가나다", "보험료 보험금") == 0.25
    assert coverage("무배", "무배당 상품") == 1.0 and coverage("유배", "무배당 상품") == 0.0
    assert coverage("", "무배당") == coverage("무배당", "") == 0.0


SYLLABLES = "보험료금을지급합니다않없있1억."


@given(st.text(SYLLABLES, min_size=8, max_size=30), st.text(SYLLABLES + " ", max_size=40))
def test_an_alignment_lies_within_the_text_and_its_shares_within_0_and_1(phrase: str, text: str) -> None:
    page = LetterLines((text,))
    for place in most_places(letters(phrase), page.letters, 0.5):
        found = Alignment(phrase, page, place)
        assert 0 <= found.first < found.last <= len(page.text)
        assert 0 <= found.context <= 1
        for slips in (False, True):
            assert all(" -> " in one for one in found.swapped(tokens_differ=False, slips=slips))
        for token in phrase_of(phrase).tokens:
            assert 0 <= found.kept(token) <= 1
