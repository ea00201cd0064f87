"""Phrases in text that was read with slips: there, altered, perhaps, or not."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.checks.phrase_letters import letters
from sam2_mcp_worker.checks.phrase_tokens import differences, tokens_of
from sam2_mcp_worker.checks.phrases import (
    MAX_PHRASES,
    PhraseMatch,
    checked_phrases,
    match_phrase,
    phrase_of,
)
from sam2_mcp_worker.errors import WorkerError

PAGE = (
    "상품 안내문",
    "이 보험계약은 예금자보호법에 따라 해약환급금에 기타지급금을 합한",
    "금액이 1인당 1억원까지 보호됩니다. 자세한 3가지 사항은",
    "약관을 확인하시기 바랍니다",
    "보험금 지급이 제한될 수 있습니다",
)
DEPOSITS = "예금자보호법에 따라 해약환급금에 기타지급금을 합한 금액이 1인당 1억원까지 보호됩니다"


def found(phrase: str, lines: tuple[str, ...] = PAGE) -> PhraseMatch:
    return match_phrase(phrase_of(phrase), lines)


def misread(text: str, share: float, seed: int = 1) -> str:
    """The text with a share of its syllables read as others."""
    chance = random.Random(seed)
    return "".join(
        chr(0xAC00 + chance.randrange(11172)) if "가" <= char <= "힣" and chance.random() < share else char
        for char in text
    )


def test_a_phrase_is_there_whatever_its_spaces_and_line_ends() -> None:
    match = found("예금자 보호법에 따라 해약환급금에 기타 지급금을 합한 금액이 1인당 1억원까지")
    assert (match.state, match.score, match.lines) == ("present", 1.0, (1, 2))
    assert match.read_as.startswith("예금자보호법에") and match.read_as.endswith("1억원까지")


@pytest.mark.parametrize("share", [0.15, 0.3])
def test_slips_of_reading_leave_it_there(share: float) -> None:
    page = tuple(misread(line, share) for line in PAGE)
    assert found(DEPOSITS[:33], page).state == "present"
    assert found(DEPOSITS[:33], page).lines == (1, 2)


@pytest.mark.parametrize(
    "phrase",
    [
        "만기에 납입한 보험료 전액을 돌려드리는 상품이 아닙니다",
        "기존 계약을 해지하고 새로운 계약을 체결하면 보험료가 인상될 수 있습니다",
        "가입 전 상품설명서를 반드시 읽어 보시기 바랍니다",
    ],
)
def test_a_phrase_that_only_shares_endings_is_not_there(phrase: str) -> None:
    assert found(phrase).state in ("absent", "review")
    assert found(phrase).score < phrase_of(phrase).present_at


def test_a_phrase_of_which_one_half_is_there_and_the_other_not_is_for_a_person_to_look_at() -> None:
    match = found(
        "가입자의 직업에 따라 가입이 제한될 수 있습니다",
        ("지급한도, 면책사항 등에 따라 보험금 지급이 제한될 수 있습니다",),
    )
    assert match.state == "review" and match.score > 0.65


@pytest.mark.parametrize(
    ("phrase", "said"),
    [
        ("금액이 1인당 5천만원까지 보호됩니다", ("5천만 -> 1억",)),
        ("금액이 2인당 1억원까지 보호됩니다", ("2 -> 1",)),
        ("보험금 지급이 제한되지 않습니다", ("않 -> (nothing)",)),
        ("보험금 지급이 제한될 수 없습니다", ("없 -> (nothing)",)),
    ],
)
def test_other_numbers_and_negations_are_altered_however_alike_the_rest(phrase: str, said: tuple[str, ...]) -> None:
    match = found(phrase)
    assert (match.state, match.differences) == ("altered", said)


@pytest.mark.parametrize(
    ("phrase", "page", "said"),
    [
        ("보험금을 지급합니다", "보험금을 지급하지 않습니다", "(nothing) -> 않"),
        ("예금자보호법에 따라 보호됩니다", "예금자보호법에 따라 보호되지 않습니다", "(nothing) -> 않"),
        ("예금자보호법에 따라 보호됩니다", "예금자보호법에 따라 보호 안 됩니다", "(nothing) -> 안"),
        ("보험금을 지급합니다", "보험금을 미지급합니다", "(nothing) -> 미"),
        ("갱신형 암보험 보장", "비갱신형 암보험 보장", "(nothing) -> 비"),
        ("가능합니다", "중도 인출 불가능합니다", "(nothing) -> 불가"),
        ("무배당 종신보험", "유배당 종신보험", "무 -> 유"),
        ("만 20세 이상 가입 가능", "만 20세 이하 가입 가능", "이상 -> 이하"),
        ("최저 연 2.5% 보증", "최고 연 2.5% 보증", "최저 -> 최고"),
        ("월 보험료 인상 가능", "월 보험료 인하 가능", "인상 -> 인하"),
        ("천만원 보장합니다 지금", "백만원 보장합니다 지금", "천만 -> 백만"),
        ("이십만원 할인 제공합니다", "삼십만원 할인 제공합니다", "이십만 -> 삼십만"),
        ("연 3.5% 확정금리 제공", "연 -3.5% 확정금리 제공", "3.5 -> -3.5"),
        ("You can withdraw anytime", "You can’t withdraw anytime", "(nothing) -> n’t"),
        ("guaranteed return 5%", "non-guaranteed return 5%", "(nothing) -> non-"),
    ],
)
def test_what_says_the_opposite_is_altered_also_at_the_edge_of_a_phrase(phrase: str, page: str, said: str) -> None:
    match = found(phrase, (page,))
    assert (match.state, match.differences) == ("altered", (said,))


def test_what_is_denied_right_behind_is_for_a_person_to_look_at_and_what_stands_apart_is_not() -> None:
    assert found("최대 1억원 보장", ("최대 1억원 보장 아님",)).state == "review"
    assert found("최대 1억원 보장", ("최대 1억원 보장, 아님",)).state == "present"
    assert found("최대 1억원 보장", ("최대 1억원 보장 상품이 아님",)).state == "present"
    assert found("최대 1억원 보장", ("없음", "최대 1억원 보장", "아님")).state == "present"
    assert found("중도 인출 가능합니다", ("수수료 불가 중도 인출 가능합니다",)).state == "present"


def test_a_bad_reading_of_an_opposite_is_for_a_person_to_look_at() -> None:
    match = found(
        "만 20세 이상 고객이라면 누구나 병력에 관계하지 아니하고 간편하게 가입",
        ("만 20세 이하 컔튦이라면 누구나 쨘력에 떣떴하지 아니퇔근 간툐하게 가입",),
    )
    assert (match.state, match.differences) == ("review", ("이상 -> 이하",))
    assert found("만 20세 이상 가입 가능", ("만 20세 이싱 가입 가능",)).state == "present"


def test_what_differs_in_badly_read_text_may_be_a_slip_and_is_for_a_person_to_look_at() -> None:
    page = tuple(misread(line, 0.2, seed=3) for line in PAGE)
    assert (found(DEPOSITS, page).state, found(DEPOSITS, page).differences) == ("review", ("1억 -> 1",))
    match = found("보험금 지급이 제한될 수 있습니다", ("보헙굼 자급애 졔헌퇼 쑤 없습니다",))
    assert (match.state, match.differences) == ("review", ("(nothing) -> 없",))


def test_numbers_that_stand_beside_the_phrase_are_none_of_it() -> None:
    page = ("1 보장", "2026 금액이 1인당 1억원까지 보호됩니다 (3)")
    assert found("금액이 1인당 1억원까지 보호됩니다", page).state == "present"
    assert found("금액이 1인당 100,000,000원까지 보호됩니다", page).state == "present"


def test_of_two_places_the_one_with_the_right_numbers_counts() -> None:
    page = ("금액이 1인당 5천만원까지 보호됩니다", "종전 문구", "금액이 1인당 1억원까지 보호뒵니다")
    match = found("금액이 1인당 1억원까지 보호됩니다", page)
    assert (match.state, match.lines) == ("present", (2,))


def test_a_number_inside_a_phrase_that_has_none_is_told_and_a_place_further_down_is_looked_at() -> None:
    match = found("보험료는 매월 납입하며 만기에 환급됩니다", ("보험료는 매월 3만원 납입하며 만기에 환급됩니다",))
    assert (match.state, match.differences) == ("altered", ("(nothing) -> 3만",))
    page = ("금액이 1인당 2억원까지 보호됩니다", "금액이 1인당 1억원까지 보효돼니댜")
    match = found("금액이 1인당 1억원까지 보호됩니다", page)
    assert (match.state, match.lines) == ("present", (1,))


def test_of_several_altered_places_the_one_most_alike_is_told() -> None:
    page = ("금액이 1인당 2억원까지 보호됩니다", "금액이 1인당 5천만원까지 보호돱니닭")
    assert found("금액이 1인당 1억원까지 보호됩니다", page).differences == ("1억 -> 2억",)


def test_part_of_a_larger_number_is_another_number() -> None:
    assert found("1억원", ("11억원",)).differences == ("1억 -> 11억",)
    assert found("1억원", ("11억원", "1억원")).state == "present"


def test_short_phrases_are_there_exactly_or_not_at_all() -> None:
    assert found("안내문").state == "present"
    assert found("인내").state == "absent"
    assert found("약관을").state == "present"


def test_a_phrase_that_is_cut_off_is_for_a_person_to_look_at() -> None:
    assert found("보험금 지급이 제한될 수 있습니다", ("보험금 지급이 제한될",)).state == "review"


@pytest.mark.parametrize("lines", [(), ("",), ("  ", "\u200b")])
def test_nothing_is_there_where_nothing_was_read(lines: tuple[str, ...]) -> None:
    assert found(DEPOSITS, lines) == PhraseMatch("absent", 0.0)
    assert found("안내", lines) == PhraseMatch("absent", 0.0)


def test_english_phrases_are_found_too() -> None:
    page = ("Terms apply. Payments are", "not guaranteed and may vary")
    assert found("Payments are not guaranteed", page).state == "present"
    assert found("Payments are guaranteed and may vary", page).state == "altered"


@given(st.lists(st.text(max_size=20), max_size=6), st.integers(0, 5), st.text(min_size=1, max_size=30))
def test_whatever_stands_in_the_lines_is_found_there(before: list[str], at: int, text: str) -> None:
    if not letters(text) or tokens_of(text):
        return
    lines = (*before[:at], text, *before[at:])
    match = found(text, tuple(line for line in lines if not tokens_of(line)))
    assert match.state == "present" and match.score == 1.0 and match.lines


@given(st.text(min_size=1, max_size=40), st.lists(st.text(max_size=30), max_size=5))
def test_a_match_always_lies_within_the_lines(phrase: str, lines: list[str]) -> None:
    match = found(phrase, tuple(lines))
    assert 0 <= match.score <= 1 and all(0 <= line < len(lines) for line in match.lines)
    assert bool(match.lines) == (match.state != "absent")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1억원", ["100000000"]),
        ("1 억 5천만원", ["150000000"]),
        ("150,000,000원", ["150000000"]),
        ("1.5억", ["150000000"]),
        ("1천2백30만", ["12300000"]),
        ("l억원, 2O26년", ["100000000", "2026"]),
        ("2026.01.02", ["2026", "1", "2"]),
        ("2026년 1월 2일", ["2026", "1", "2"]),
        ("연 3.50%", ["3.5"]),
        ("1.234.5,67", ["1234567"]),
        ("보험금 지급 없음", ["없"]),
        ("환불가능", []),
        ("cannot", ["cannot"]),
        ("월 9,\n900원", ["9900"]),
        ("9,\n9000원", ["9", "9000"]),
        ("−3.5%, 1-2, - 4, 제-5호", ["-3.5", "1", "2", "4", "5"]),
        ("제2026\n-0412호", ["2026", "412"]),
        ("월9,900원, 제5호, (3), x7", ["9900", "5", "3", "7"]),
        ("천만 원, 오백원, 수백만원", ["10000000", "500"]),
        ("l인당 5천만", ["1", "50000000"]),
        ("비용, 무료, 경비보장", []),
        ("비갱신, 불포함, 일부지급, 부지급", ["비", "불", "부"]),
        ("보호 안 됨, 안됩니다, 안내, 방안 하나", ["안", "안"]),
    ],
)
def test_numbers_are_the_same_however_they_are_written(text: str, values: list[str]) -> None:
    assert [token.value for token in tokens_of(text)] == values


def test_what_is_missing_and_what_is_added_are_both_named() -> None:
    assert differences(tokens_of("1 2 3"), tokens_of("1 3 4")) == ("2 -> (nothing)", "(nothing) -> 4")


@given(st.text(alphabet="0123456789.,억만천백십조 원l|IoO%-", max_size=25))
def test_any_jumble_of_digits_and_units_has_values(text: str) -> None:
    for token in tokens_of(text):
        assert text[token.start : token.end] and token.value


def test_phrases_of_a_call_are_checked() -> None:
    assert [phrase.text for phrase in checked_phrases([" 보험금  지급 ", "보장\n내용"])] == ["보험금 지급", "보장 내용"]
    for given_phrases, code in [
        (["가나"] * (MAX_PHRASES + 1), "too_many_phrases"),
        (["  "], "phrase_invalid"),
        (["..."], "phrase_invalid"),
        (["가" * 301], "phrase_invalid"),
    ]:
        with pytest.raises(WorkerError) as caught:
            checked_phrases(given_phrases)
        assert caught.value.code == code and caught.value.next_step
