"""Pairs of figures that are not about the same thing, and errors that are plain, as insurers write them."""

from __future__ import annotations

import pytest
from tests.bench.checks.figure_pairs import reading_of

from sam2_mcp_worker.checks.figure_compare import Evidence, FigureFinding, compare_figures
from sam2_mcp_worker.checks.figures import Figure, figures_of, figures_of_table
from sam2_mcp_worker.checks.reading import Reading, ReadLine, ReadPage, Source
from sam2_mcp_worker.checks.tables import Table

REFUNDS = Table(
    "환급.csv",
    (
        ("경과기간", "납입보험료", "해약환급금", "환급률"),
        ("1년", "120", "0", "0.0%"),
        ("5년", "600", "300", "50.0%"),
        ("10년", "1,200", "1,200", "100.0%"),
    ),
    title="(단위: 만원)",
)


def found(line: str, *evidence: str | Table) -> list[FigureFinding]:
    files = [
        Evidence(one.name, figures_of_table(one))
        if isinstance(one, Table)
        else Evidence("약관", figures_of(reading_of([one])))
        for one in evidence
    ]
    return list(compare_figures(figures_of(reading_of([line])), files))


def figure(text: str) -> Figure:
    (only,) = figures_of(reading_of([text]))
    return only


def test_the_unit_of_a_title_holds_for_rows_that_are_named_by_years_and_ages() -> None:
    money = [one for one in figures_of_table(REFUNDS) if one.kind == "amount"]
    assert [int(one.low) for one in money] == [1200000, 0, 6000000, 3000000, 12000000, 12000000]
    ages = Table("료.csv", (("나이", "남성", "여성"), ("40세", "12,300", "10,900")), title="월보험료 (단위: 원)")
    assert [one.unit for one in figures_of_table(ages)] == ["세", "원", "원"]
    assert found("40세 여성 월 10,900원", ages)[1].state == "match"
    wrong = [one for one in found("10년 경과 시 해약환급금 1,300만원", REFUNDS) if one.state == "mismatch"]
    assert [one.figure.text for one in wrong] == ["1,300만원"]


@pytest.mark.parametrize(
    ("line", "filed"),
    [
        ("총 납입보험료 1,200만원", "납입보험료 120만원"),
        ("합계 보장 3천만원", "보장 1천만원"),
        ("월 보험료 12,300원 (40세 남성)", "40세 남성 연 보험료 147,600원"),
        ("할인 후 28,500원", "할인 전 30,000원"),
        ("공시이율 3.5%", "공시이율 0.5%p 인상"),
        ("상해사망 1억원", "대중교통이용중 상해사망 2억원"),
        ("암진단비(유사암 제외) 3천만원", "암진단비(유사암) 600만원"),
        ("급여 자기부담금 20%", "비급여 자기부담금 30%"),
        ("암 진단 시 3천만원, 재진단 시 2천만원", "암 재진단 시 1천만원"),
        ("2종 암진단비 3천만원", "1종 암진단비 2천만원"),
    ],
)
def test_what_only_looks_like_the_same_thing_is_no_mismatch(line: str, filed: str) -> None:
    assert all(one.state != "mismatch" for one in found(line, filed))


@pytest.mark.parametrize(
    ("line", "filed", "text"),
    [
        ("공시이율 연 3.5%", "공시이율 연 3.0%", "연 3.5%"),
        ("면책기간 90일", "면책기간 60일", "90일"),
        ("비급여 자기부담금 20%", "급여 자기부담금 20%, 비급여 자기부담금 30%", "20%"),
        ("월 보험료 12,300원 (40세 남성)", "40세 남성 월 보험료 13,200원", "월 12,300원"),
        ("암진단비 3천만원 / 뇌졸중진단비 2천만원", "암진단비 3천만원 / 뇌졸중진단비 1천만원", "2천만원"),
    ],
)
def test_a_plain_error_is_found(line: str, filed: str, text: str) -> None:
    wrong = [one.figure.text for one in found(line, filed) if one.state == "mismatch"]
    assert [one.split()[-1] for one in wrong] == [text.split()[-1]]


def test_what_hinders_a_mismatch_is_told() -> None:
    assert found("누적 고객 5대", "누적 고객 7대")[0].reason.endswith("it may name one of several.")
    assert "it has no unit" in found("지점 수 120", "지점 수 130")[0].reason
    (finding,) = found("암진단비 3천만원", "암진단비 2천만원", "암진단비 최초 3천만원")
    assert finding.state != "mismatch"
    read = ReadLine("암진단비 2천만원", "ocr", (10, 10, 90, 22), confidence=0.5)
    blurred = figures_of(Reading("image", "px", (ReadPage(1, "done", (read,)),)))
    (unsure,) = compare_figures(figures_of(reading_of(["암진단비 3천만원"])), [Evidence("그림", blurred)])
    assert unsure.state == "cannot_compare" and "the reading is not certain" in unsure.reason


def test_ranges_of_different_things_stay_two_figures() -> None:
    assert [one.text for one in figures_of(reading_of(["보장 1년~60세"]))] == ["1년", "60세"]
    assert [one.text for one in figures_of(reading_of(["보장 1년~60일"]))] == ["1년", "60일"]


def test_a_bracket_that_is_no_unit_does_not_hide_the_one_behind_it() -> None:
    table = Table("표.csv", (("담보", "가입금액(기본계약)(만원)"), ("암진단비", "3,000")))
    assert [int(one.low) for one in figures_of_table(table)] == [30000000]


def test_terms_that_other_words_part_are_named_each_by_its_own() -> None:
    first, second = figures_of(reading_of(["주계약 20년 만기, 특약 30년 만기"]))
    assert "주계약" in " ".join(first.label) and "주계약" not in " ".join(second.label)


def test_more_years_than_anybody_lives_are_no_age() -> None:
    assert [figure(text).kind for text in ("199세", "200세")] == ["age", "count"]


def test_eight_digits_that_no_calendar_has_are_no_day() -> None:
    assert all(one.kind != "date" for one in figures_of(reading_of(["작성일 20260231"])))
    assert figure("작성일 20261231").kind == "date"


def test_a_range_whose_end_is_in_words_shares_no_power_of_ten() -> None:
    assert [one.text for one in figures_of(reading_of(["보장 3~천만원"]))] == ["3", "천만원"]


def test_limits_in_opposite_directions_are_not_compared() -> None:
    (finding,) = found("암수술비 최대 3천만원", "암수술비 최소 5천만원")
    assert finding.state == "cannot_compare" and "limits it in another way" in finding.reason


def test_a_doubtful_figure_with_nothing_near_it_in_the_evidence_names_no_other() -> None:
    (finding,) = found("암진단비 1O만원", "자동차 수리 7만원")
    assert finding.state == "cannot_compare" and finding.evidence is None and "not certain" in finding.reason


def test_a_value_that_the_evidence_gives_under_a_condition_as_well_is_no_mismatch() -> None:
    (finding,) = found("암진단비 3천만원", "암진단비 2천만원", "암진단비 3천만원 고액암")
    assert finding.state == "cannot_compare" and "as well, for" in finding.reason


@pytest.mark.parametrize("word", ["주계약", "특약", "보험계약", "청약"])
def test_words_that_end_like_about_do_not_say_about(word: str) -> None:
    assert (figure(f"{word} 3천만원").bound, figure(f"{word} 3천만원").text) == ("", "3천만원")
    assert figure("가입금액 약 3천만원").bound == "about"
    assert [one.state for one in found(f"{word} 3천만원", f"{word} 2천만원")] == ["mismatch"]


def test_a_name_above_in_another_column_is_none() -> None:
    def label(left: float) -> str:
        name = ReadLine("암진단비", "text_layer", (left, 0.0, left + 60.0, 10.0))
        value = ReadLine("3천만원", "text_layer", (200.0, 20.0, 260.0, 30.0))
        (only,) = figures_of(Reading("image", "px", (ReadPage(1, "done", (name, value)),)))
        return " ".join(only.label)

    assert (label(200.0), label(20.0), label(400.0)) == ("암진단비", "", "")


def test_a_value_that_begins_its_sentence_has_conditions_too() -> None:
    figures = figures_of(reading_of(["1만원 40세 여성의 월보험료"]))
    assert [(one.text, one.of_a_value) for one in figures] == [("1만원", False), ("40세", True)]


@pytest.mark.parametrize("age", ["15세", "60세", "30세"])
def test_an_end_of_a_range_or_what_lies_in_it_is_no_mismatch(age: str) -> None:
    assert found(f"가입나이 {age}", "가입나이 15세~60세")[0].state == "cannot_compare"
    assert found("가입나이 61세", "가입나이 15세~60세")[0].state == "mismatch"


def test_a_value_of_another_sentence_makes_no_condition() -> None:
    for text in ("40세 여성 대상. 보험료 1만원", "보험료 1만원. 40세 여성 대상"):
        assert [one.of_a_value for one in figures_of(reading_of([text])) if one.unit == "세"] == [False]


def test_a_doubt_about_one_limit_is_one_about_the_range() -> None:
    for text in ("가입금액 1O만원 이상 50만원 이하", "가입금액 10만원 이상 5O만원 이하"):
        assert figure(text).doubt


SPLIT = "암 진단비 3천만원 (1년 미만 1,500만원)"


@pytest.mark.parametrize(
    ("line", "filed"),
    [
        (SPLIT, "암 진단비 3천만원 (1년 미만 50% 지급)"),
        (SPLIT, Table("보장.csv", (("담보", "보험금"), ("암 진단비", "3천만원 (1년 미만 50% 지급)")))),
    ],
)
def test_a_value_beside_the_one_that_the_evidence_gives_is_no_mismatch(line: str, filed: str | Table) -> None:
    assert [one.state for one in found(line, filed)] == ["match", "match", "cannot_compare"]
    assert found(line, filed)[2].reason == "The evidence says that for 3천만원 beside it."


def test_another_value_beside_one_that_matches_is_still_a_mismatch() -> None:
    states = [
        one.state for one in found("암진단비 3천만원, 골절진단비 2천만원", "암진단비 3천만원, 골절진단비 3천만원")
    ]
    assert states == ["match", "mismatch"]


def test_a_file_that_agrees_does_not_mend_one_that_disagrees_with_itself() -> None:
    both = filed_of("암 진단비 3천만원", "암 진단비 1천만원")
    for filed in ([both, filed_of("암 진단비 3천만원")], [filed_of("암 진단비 3천만원"), both]):
        (finding,) = compare_figures(figures_of(reading_of(["암 진단비 3천만원"])), filed)
        assert finding.state == "cannot_compare" and "disagrees with itself" in finding.reason


def filed_of(*lines: str | ReadLine) -> Evidence:
    read = tuple(ReadLine(line, "text") if isinstance(line, str) else line for line in lines)
    return Evidence("약관", figures_of(Reading("text", "line", (ReadPage(1, "done", read),))))


def boxed(text: str, left: float, top: float, source: Source = "text_layer") -> ReadLine:
    return ReadLine(text, source, (left, top, left + 60.0, top + 10.0), confidence=0.95)


@pytest.mark.parametrize("line", ["암 진단비 3천만원", "암 진단비 1천만원", "1종 암 진단비 3천만원"])
def test_a_file_that_gives_two_values_for_one_thing_decides_nothing(line: str) -> None:
    for filed in (
        filed_of("암 진단비 3천만원", "암진단비 1천만원"),
        filed_of(boxed("암 진단비 3천만원", 0, 0), boxed("암 진단비 1천만원", 0, 20)),
        Evidence(
            "표", figures_of_table(Table("표", (("담보", "보험금"), ("암진단비", "3천만원"), ("암진단비", "1천만원"))))
        ),
    ):
        finding = compare_figures(figures_of(reading_of([line])), [filed])[-1]
        assert finding.state == "cannot_compare" and "disagrees with itself" in finding.reason, finding.reason
        assert "3천만원" in finding.reason and "1천만원" in finding.reason and filed.name in finding.reason


@pytest.mark.parametrize(
    ("line", "filed"),
    [
        ("암 진단비 3천만원", filed_of("암 진단비 3천만원", "암 진단비 30,000,000원")),
        ("기본형 암 진단비 3천만원", filed_of("기본형 암 진단비 3천만원", "고급형 암 진단비 1천만원")),
        ("암 진단비 3천만원", filed_of("암 진단비 3천만원", "암 진단비 1년 이내 1천만원")),
        ("3대 질병", filed_of("3대 질병", "5대 질병")),
        ("40세 남성 월보험료 9,800원", filed_of("40세 남성 월보험료 9,800원", "30세 남성 월보험료 9,100원")),
        ("암 진단비 3천만원", filed_of(boxed("암 진단비", 0, 0), boxed("3천만원", 70, 0), boxed("1천만원", 135, 1))),
        ("암 진단비 3천만원", Evidence("표", figures_of_table(Table("표", (("암 진단비", "3천만원", "1천만원"),))))),
        ("암 진단비 3천만원", filed_of(boxed("암 진단비 3천만원", 0, 0), boxed("암 진단비 8천만원", 0, 20, "ocr"))),
    ],
)
def test_plans_conditions_columns_and_other_ways_to_write_it_are_no_disagreement(line: str, filed: Evidence) -> None:
    assert {one.state for one in compare_figures(figures_of(reading_of([line])), [filed])} == {"match"}
