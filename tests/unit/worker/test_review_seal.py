"""The mark of the review: read as it is really written, and held against the day."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.checks.findings import Finding
from sam2_mcp_worker.checks.reading import Reading, ReadLine, ReadPage, Source, Unread
from sam2_mcp_worker.checks.review_seal import seal_findings
from sam2_mcp_worker.checks.rule_packs import SealRules, load_rule_pack
from sam2_mcp_worker.checks.seal_reading import MAX_MARKS, crowded_pages, seals_of

RULES = load_rule_pack("korean_insurance_ads").seal
assert RULES is not None
DAY = date(2026, 11, 30)
GOOD = "[2026.01.05] 준법감시인 심의필 제2026-1179호 (유효기간 2026.12.31)"


def reading(text: str, source: Source = "text_layer", confidence: float | None = None, **page: Any) -> Reading:
    lines = tuple(ReadLine(line, source, confidence=confidence) for line in text.split("\n"))
    return Reading("pdf", "pt", (ReadPage(1, page.pop("status", "done"), lines, **page),))


def told(read: Reading, day: date = DAY, rules: SealRules | None = RULES) -> dict[str, str]:
    return {one.rule: one.verdict for one in seal_findings(rules, read, day)}


@pytest.mark.parametrize(
    ("text", "number", "reviewed", "until"),
    [
        ("2026.06.16 준법감시인 심의필 2026-1179\n(유효기간 2026.07.31.)", "2026-1179", "2026-06-16", "2026-07-31"),
        (GOOD, "2026-1179", "2026-01-05", "2026-12-31"),
        ("준법감시인 심의필 제2020-06-007호\n (2020.06.11~2021.06.10)", "2020-06-007", "2020-06-11", "2021-06-10"),
        ("준법감시인 심의필(공) 제67호, 심의일 (2021.02.24), 유효기간 현재", "67", "2021-02-24", None),
        ("준법감시인 심의필  OTA-2022-004 (2022.01.17.~2023.01.16)", "OTA-2022-004", "2022-01-17", "2023-01-16"),
        ("손해보험협회 심의필 제 36745호 (2020.12.04)", "36745", "2020-12-04", None),
        ("생명보험협회 심의필 제 2023-02901호\n(2023-07-04 ~ 2024-07-03)", "2023-02901", "2023-07-04", "2024-07-03"),
        ("준법감시인확인필-SM-2212005-1; 인쇄일자 2023.01.01", "SM-2212005-1", None, None),
        ("준법감시심의필 제 241008-004호 (2024.10.08 ~ 2025.10.07)", "241008-004", "2024-10-08", "2025-10-07"),
        (
            "준법감시인 심의필 제2026-광고-230호 (유효기간 2026.02.05 ~ 2027-02-04)",
            "2026-광고-230",
            "2026-02-05",
            "2027-02-04",
        ),
        ("준법감시인 심의필 번호 : 20201101-0007", "20201101-0007", None, None),
        ("준법감시인 심의필 (2026.01.01~2026.12.31)", None, "2026-01-01", "2026-12-31"),
        ("준법 감시인 심의 필 제2026-1호 2026년 12월 31일까지", "2026-1", None, "2026-12-31"),
        ("준법감시인 심의필 제2026-1호\n보험기간 2026.01.01 ~ 2036.01.01", "2026-1", None, None),
        ("준법감시인 심의필 제2026-1호(~2026.12.31)", "2026-1", None, "2026-12-31"),
        ("준법감시인 심의필을 받았습니다", None, None, None),
    ],
)
def test_a_mark_is_taken_apart_as_it_is_written(text: str, number: str, reviewed: str, until: str) -> None:
    (seal,) = seals_of(RULES.names if RULES else (), reading(text))
    found = (seal.number, seal.reviewed and seal.reviewed.isoformat(), seal.until and seal.until.isoformat())
    assert found == (number, reviewed, until)


def test_two_marks_in_one_line_are_two_and_one_on_every_page_is_one() -> None:
    text = "준법감시인 확인필 SM-1 / 생명보험협회 심의필 제2026-9호(2026.01.05~2026.12.31)"
    page = reading(text).pages[0]
    seals = seals_of(RULES.names if RULES else (), Reading("pdf", "pt", (page, ReadPage(2, "done", page.lines))))
    assert [(seal.said, seal.page) for seal in seals] == [
        ("준법감시인 확인필 SM-1", 1),
        ("생명보험협회 심의필 2026-9", 1),
    ]


@pytest.mark.parametrize(
    ("day", "verdict"),
    [("2026-01-04", "not_met"), ("2026-01-05", "met"), ("2026-12-31", "met"), ("2027-01-01", "not_met")],
)
def test_a_mark_holds_from_its_first_to_its_last_day(day: str, verdict: str) -> None:
    assert told(reading(GOOD), date.fromisoformat(day))["seal.expiry"] == verdict


def test_what_a_mark_does_not_tell_is_wrong_in_text_and_for_a_person_in_ocr() -> None:
    text = "준법감시인 심의필"
    assert told(reading(text)) == {"seal": "met", "seal.number": "not_met", "seal.validity": "not_met"}
    assert told(reading(text, "ocr"))["seal.number"] == "review"


def test_digits_that_ocr_was_unsure_of_are_for_a_person() -> None:
    late = date(2028, 1, 1)
    assert told(reading(GOOD, "ocr", 0.9), late)["seal.expiry"] == "not_met"
    assert told(reading(GOOD, "ocr", 0.3), late)["seal.expiry"] == "review"


def test_a_day_that_cannot_be_and_a_validity_that_is_too_long_are_told() -> None:
    assert told(reading("준법감시인 심의필 제1호 (유효기간 2026.02.30)"))["seal.day"] == "not_met"
    assert told(reading("준법감시인 심의필 제1호 (2026.01.01~2028.01.01)"))["seal.max_valid_days"] == "not_met"


def test_a_mark_that_is_read_with_a_slip_is_for_a_person() -> None:
    (found,) = seal_findings(RULES, reading("준법감시인 심의펼 제2026-1호", "ocr"), DAY)
    assert (found.rule, found.verdict, found.page) == ("seal", "review", 1)


def test_a_missing_mark_is_only_missing_in_a_document_that_was_wholly_read() -> None:
    assert told(reading("보험료 안내")) == {"seal": "not_met"}


@pytest.mark.parametrize(
    "behind",
    [
        "('26.06.16 ~ '27.06.15)",
        "(26.6.16)",
        "(유효기간: 심의일로부터 1년)",
        "(2026.06.16~12.31)",
        "(2026.06.16 / 2027.06.15)",
        "(유효기간 20261012~20271011)",
    ],
)
def test_a_last_day_in_a_form_that_is_not_read_is_for_a_person(behind: str) -> None:
    assert told(reading(f"준법감시인 심의필 제2026-1179호 {behind}"))["seal.validity"] == "review"
    assert told(reading("준법감시인 심의필 제2026-1179호 / 월 보험료 19,800원"))["seal.validity"] == "not_met"
    assert told(reading("준법감시인 심의필(2026-1179)"))["seal.number"] != "not_met"
    assert told(reading("제2026-1179호 준법감시인 심의필"))["seal.number"] != "not_met"


def test_a_validity_in_front_of_the_name_is_read() -> None:
    seal = reading("[2026.10.12 ~ 2027.10.11] 준법감시인 심의필 제2026-0412호")
    assert {one: told(seal)[one] for one in ("seal.number", "seal.validity")} == {
        "seal.number": "met",
        "seal.validity": "met",
    }
    assert told(reading("보험료 안내", unread=(Unread("too small"),))) == {"seal": "cannot_tell"}
    assert told(reading("보험료 안내", status="failed")) == {"seal": "cannot_tell"}
    assert told(reading("둷쯇 봟험캽쇵 쐒놂햚", "ocr")) == {"seal": "cannot_tell"}
    assert told(Reading("pdf", "pt", ())) == {"seal": "cannot_tell"}


def test_a_pack_may_ask_for_no_mark_or_for_nothing_in_it() -> None:
    bare = SealRules(names=("Reviewed",), need="optional", basis="house", note="ours")
    assert seal_findings(bare, reading("보험료 안내"), DAY) == ()
    assert told(reading("reviewed 12"), rules=bare) == {"seal": "met"}
    assert seal_findings(None, reading(GOOD), DAY) == ()


def test_a_finding_tells_the_place_and_whose_rule_it_is() -> None:
    line = ReadLine(GOOD, "ocr", (1.0, 2.0, 3.0, 4.0), start_s=5.0, end_s=6.0)
    found = seal_findings(RULES, Reading("image", "px", (ReadPage(1, "done", (line,)),)), DAY)
    assert {one.basis for one in found} == {"law", "practice"}
    assert all(isinstance(one, Finding) and one.box_xyxy == line.box_xyxy and one.start_s == 5.0 for one in found)


@given(
    st.lists(
        st.text(max_size=30) | st.sampled_from([GOOD, "심의필", "준법감시인", "2026.01.01~", "\u1106\u116e"]),
        max_size=6,
    )
)
def test_any_lines_are_taken_and_every_mark_lies_in_one_of_them(texts: list[str]) -> None:
    lines = tuple(ReadLine(text, "ocr") for text in texts)
    read = Reading("image", "px", (ReadPage(1, "done", lines),))
    found = seal_findings(RULES, read, DAY)
    assert found
    seals = seals_of(RULES.names if RULES else (), read)
    assert all(seal.line in lines for seal in seals)
    assert any(GOOD in text for text in texts) <= bool(seals)


def test_a_mark_under_a_name_that_the_pack_lacks_is_for_a_person() -> None:
    assert told(reading("안내\n한빛생명 심의필 제2026-0031호")) == {"seal": "review"}
    assert told(reading("안내\n심의 대상")) == {"seal": "not_met"}
    assert RULES is not None
    latin = RULES.model_copy(update={"names": ("Review mark",)})
    assert told(reading("The market"), rules=latin) == {"seal": "not_met"}
    assert told(reading("Approval mark 12"), rules=latin) == {"seal": "review"}


def test_what_a_pack_does_not_ask_of_a_mark_is_not_told() -> None:
    assert RULES is not None and RULES.format is not None
    free = RULES.format.model_copy(update={"number": False, "validity": False})
    assert told(reading("준법감시인 심의필"), rules=RULES.model_copy(update={"format": free})) == {"seal": "met"}


def test_of_names_within_one_another_the_longest_is_the_mark() -> None:
    (seal,) = seals_of(("심의필", "준법감시인 심의필"), reading(GOOD))
    assert seal.name == "준법감시인 심의필"


def test_of_a_page_full_of_marks_those_behind_the_first_ones_are_not_known() -> None:
    full = "준법감시인 심의필\n" * MAX_MARKS
    assert told(reading(full))["seal.number"] == "not_met"
    found = seal_findings(RULES, reading(full + GOOD), DAY)
    assert {one.rule: one.verdict for one in found} == {
        "seal": "cannot_tell",
        "seal.number": "review",
        "seal.validity": "review",
    }
    assert "more than 200 marks" in found[1].what


def test_a_page_of_nothing_but_marks_is_gone_through_at_once() -> None:
    many = reading("준법심의필" * 20_000)
    (seal,) = seals_of(("준법심의필", "심의필"), many)
    assert (seal.name, crowded_pages(("준법심의필",), many)) == ("준법심의필", (1,))
