"""What must not stand in a document: found whatever the spaces, excused by their company, absent for sure only."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.checks.findings import Finding
from sam2_mcp_worker.checks.forbidden_wording import MAX_PLACES, forbidden_findings
from sam2_mcp_worker.checks.reading import Reading, ReadLine, ReadPage, Unread
from sam2_mcp_worker.checks.rule_packs import ForbiddenRule, load_rule_pack

PACK = load_rule_pack("korean_insurance_ads").on(date(2026, 11, 30)).forbidden


def reading(*texts: str, unread: tuple[Unread, ...] = (), status: str = "done") -> Reading:
    lines = tuple(ReadLine(text, "ocr", (0.0, index, 9.0, index + 1.0)) for index, text in enumerate(texts))
    return Reading("image", "px", (ReadPage(1, status, lines, unread),))  # type: ignore[arg-type]


def rule(*words: str, **more: object) -> ForbiddenRule:
    return ForbiddenRule.model_validate({"id": "r", "basis": "house", "note": "ours", "words": list(words), **more})


def told(*texts: str, rules: tuple[ForbiddenRule, ...] = PACK) -> list[tuple[str, str]]:
    found = forbidden_findings(rules, reading(*texts))
    return [(one.rule, one.verdict) for one in found if one.verdict != "met"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("하루 330원으로 준비하는 암보험", [("daily_premium", "not_met")]),
        ("보험료는 1 일 1,000 원", [("daily_premium", "not_met")]),
        ("하루 3백원", [("daily_premium", "review")]),
        ("보험료 하루 삼백원", [("daily_premium", "not_met")]),
        ("매일 천원으로 준비", [("daily_premium", "not_met")]),
        ("보험료 9,900원 하루 330원", [("daily_premium", "not_met")]),
        ("골절 하루 3만원, 보험료 월 9,900원", [("daily_premium", "review")]),
        ("입원 1일당 50,000원 지급", []),
        ("입원일당 하루 5만원", []),
        ("보험료 부담은 입원일당 하루 5만원", [("daily_premium", "review")]),
        ("11일 3,000원", []),
        ("업계 최저 보험료", [("unfounded_comparison", "review")]),
        ("최고의 선택", [("superlative", "review")]),
        ("최대 1억원 보장, 최고 80세까지", []),
        ("14일 이상의 납입최고기간", []),
        ("최대 보장금액은 고급형 기준", []),
        ("최 고 의 보험", [("superlative", "review")]),
        ("무려 3배", [("enticing", "review")]),
        ("100% 보장되는 것은 아닙니다", []),
        ("１００％ 보장", [("unconditional", "review")]),
        ("묻지도, 따지지도 않고 누구나 가입", [("unasked", "review")]),
        ("묻지도 따지지도 않고 가입", [("unasked", "review")]),
        ("누구나 가입! 무심사는 아닙니다", [("unconditional", "review")]),
        ("무조건 지급! 걱정하지 않으셔도 됩니다", [("unconditional", "review")]),
        ("걱정하지 않으셔도 됩니다. 100% 보장", [("unconditional", "review")]),
        ("하루 330원! 입원비 걱정 끝", [("daily_premium", "review")]),
        ("100% 보장하지 않습니다", []),
        ("입원 1일 30,000원 지급", []),
        ("월 보험료 12,300원", []),
        ("12월 1일 3,000원", []),
    ],
)
def test_words_are_found_and_excused_by_the_company_they_stand_in(text: str, expected: list[tuple[str, str]]) -> None:
    assert told(text) == expected


def test_a_longer_word_is_found_over_the_end_of_a_line_and_a_short_one_is_not() -> None:
    assert told("보험료 하루", "1,000원 꼴") == [("daily_premium", "not_met")]
    assert told("이 제품이 최", "고운 색으로") == []


def test_what_makes_a_word_surely_wrong_stands_in_its_own_line() -> None:
    assert told("첫날부터", "하루 5만원", "월 보험료 19,800원") == [("daily_premium", "review")]


def test_words_of_latin_letters_are_whole_words() -> None:
    rules = (rule("best"),)
    assert told("the best insurance", "the BEST", rules=rules) == [("r", "review"), ("r", "review")]
    assert told("bestow, abest", "best1", rules=rules) == [("r", "review")]


@pytest.mark.parametrize("price", ["$3", "€2.50", "3 dollars", "330원", "5천만 원", "1,000 KRW"])
def test_an_amount_is_a_sum_of_any_money(price: str) -> None:
    assert told(f"Only {price} a day!", rules=(rule("only {amount}", sure=True),)) == [("r", "not_met")]
    assert told("Only 3 a day!", rules=(rule("only {amount}"),)) == []


def test_a_finding_has_the_place_of_its_line() -> None:
    (found,) = forbidden_findings((rule("무려", sure=True),), reading("가나다", "무려 3배"))
    assert found == Finding(
        "forbidden_wording", "r", "not_met", '"무려" stands there', "house", page=1, box_xyxy=(0.0, 1.0, 9.0, 2.0)
    )


def test_many_places_of_one_rule_are_told_up_to_a_number_the_sure_ones_first() -> None:
    texts = [*["최고 좋은 것"] * (MAX_PLACES + 3), "최고 보험료"]
    found = forbidden_findings((rule("최고", sure_near=["보험료"]),), reading(*texts))
    assert len(found) == MAX_PLACES and found[0].verdict == "not_met"


def test_times_of_a_video_or_sound_go_along() -> None:
    page = ReadPage(1, "done", (ReadLine("무려 3배", "speech", start_s=1.5, end_s=2.5),))
    (found,) = forbidden_findings((rule("무려"),), Reading("sound", "s", (page,)))
    assert (found.start_s, found.end_s) == (1.5, 2.5)


@pytest.mark.parametrize(
    ("read", "why"),
    [
        (reading("가나다", unread=(Unread("too small"),)), "parts of page 1 could not be read"),
        (reading("가나다", status="failed"), "page 1 was not read"),
        (reading("둷쯇 봟험캽쇵 쐒놂햚"), "page 1 was read too badly"),
        (reading("  "), "nothing was read"),
        (reading(), "nothing was read"),
        (Reading("pdf", "pt", ()), "nothing was read"),
    ],
)
def test_absence_is_only_claimed_over_what_was_wholly_read(read: Reading, why: str) -> None:
    (found,) = forbidden_findings((rule("무려"), rule("최고")), read)
    assert (found.rule, found.verdict) == ("forbidden", "cannot_tell")
    assert found.what == f"the words of 2 rules were not found, but {why}"


def test_rules_that_are_met_say_so_and_no_rules_say_nothing() -> None:
    (met,) = forbidden_findings((rule("무려"),), reading("가나다"))
    assert (met.verdict, met.what) == ("met", "none of its words was found in this sense")
    assert told("최대", "1억원 보장") == []
    assert forbidden_findings((), reading("무려")) == ()


@given(st.text(min_size=1, max_size=30).filter(lambda text: any(char.isalnum() for char in text) and "{" not in text))
def test_a_word_is_taken_literally_whatever_stands_in_it(word: str) -> None:
    found = forbidden_findings((rule(word),), reading(f"가 {word} 가"))
    assert [one.verdict for one in found] == ["review"]


@pytest.mark.parametrize("word", ["(a+)+$", "[가-힣]*", "a|b", ".*", "\\d+"])
def test_a_pattern_is_no_pattern(word: str) -> None:
    assert told("aaaaaaaaaaaaaaaaaaaaaaaa가나다 1234", rules=(rule(word),)) == []
    assert told(f"x {word} x", rules=(rule(word),)) == [("r", "review")]
