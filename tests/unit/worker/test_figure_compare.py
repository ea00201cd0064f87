"""Figures of an advertisement against those of its evidence: match, mismatch, or not to be compared and why."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.bench.checks.figure_pairs import PAIRS, counts, pair, reading_of

from sam2_mcp_worker.checks.figure_compare import Evidence, FigureFinding, compare_figures
from sam2_mcp_worker.checks.figures import figures_of, figures_of_table
from sam2_mcp_worker.checks.reading import Reading, ReadLine, ReadPage, Source
from sam2_mcp_worker.checks.tables import Table

BENEFITS = Table(
    "보장.xlsx",
    (
        ("담보", "가입금액(만원)", "월보험료(원)"),
        ("암진단비", "3,000", "12,300"),
        ("소액암진단비", "500", "1,150"),
        ("뇌출혈진단비", "2,000", "5,600"),
    ),
)
CONDITIONS = Table(
    "조건.csv",
    (("가입나이", "20~60세"), ("보험기간", "100세 만기"), ("납입기간", "20년"), ("판매기간", "2026.01.02~2026.12.31")),
)
PREMIUMS = Table(
    "료.csv",
    (("나이", "남성 월보험료", "여성 월보험료"), ("30세", "9,800원", "8,700원"), ("40세", "12,300원", "10,100원")),
)
ALL = (BENEFITS, CONDITIONS, PREMIUMS)


def evidence(*tables: Table, unread: str = "") -> list[Evidence]:
    return [Evidence(table.name, figures_of_table(table), unread) for table in tables]


def text_evidence(*lines: str, name: str = "약관.txt") -> Evidence:
    return Evidence(name, figures_of(reading_of(lines)))


def judged(line: str, given: Sequence[Evidence], number: int = 0) -> FigureFinding:
    return compare_figures(figures_of(reading_of([line])), given)[number]


def seen(line: str, *, confidence: float = 0.95, source: Source = "ocr") -> Reading:
    read = ReadLine(line, source, box_xyxy=(10, 10, 90, 22), confidence=confidence)
    return Reading("image", "px", (ReadPage(1, "done", (read,)),))


def test_without_evidence_nothing_is_a_mismatch() -> None:
    for given_evidence in ([], [Evidence("빈.csv", ())], [Evidence("그림.pdf", (), "page 1 failed")]):
        finding = judged("암진단비 5천만원", given_evidence)
        assert finding.state == "cannot_compare" and finding.evidence is None
    assert "page 1 failed" in judged("암진단비 5천만원", [Evidence("그림.pdf", (), "page 1 failed")]).reason


@pytest.mark.parametrize(
    ("line", "number"),
    [
        ("든든하게 보장하는 암 진단비 최대 3천만원!", 0),
        ("소액암진단비 5백만원을 드립니다", 0),
        ("만 20세부터 60세까지 가입 가능", 0),
        ("가입연령: 만 20세 이상 60세 이하", 0),
        ("60세까지 가입 가능", 0),
        ("20년납 100세 만기", 0),
        ("20년납 100세 만기", 1),
        ("판매기간 2026년 1월 2일부터 2026년 12월 31일까지", 0),
        ("40세 남성 월 보험료 12,300원", 1),
        ("40세 남성 월 12,300원", 0),
        ("월보험료 10,100원 (40세 여성)", 0),
    ],
)
def test_the_same_figure_for_the_same_thing_matches_however_it_is_written(line: str, number: int) -> None:
    finding = judged(line, evidence(*ALL), number)
    assert (finding.state, bool(finding.evidence)) == ("match", True), finding.reason


@pytest.mark.parametrize(
    ("line", "number", "cell"),
    [
        ("암진단비 5천만원", 0, "B2"),
        ("암 진단비 3억원", 0, "B2"),
        ("소액암진단비 3천만원", 0, "B3"),
        ("만 20세부터 65세까지 가입 가능", 0, "B1"),
        ("30년납 100세 만기", 0, "B3"),
        ("판매기간 2027.01.02~2027.12.31", 0, "B4"),
        ("40세 여성 월보험료 9,900원", 1, "C3"),
    ],
)
def test_another_figure_for_the_same_thing_is_a_mismatch_with_its_place(line: str, number: int, cell: str) -> None:
    finding = judged(line, evidence(*ALL), number)
    assert finding.state == "mismatch" and finding.evidence is not None, finding.reason
    assert finding.evidence.place.cell == cell and finding.evidence.text in finding.reason


@pytest.mark.parametrize(
    ("line", "number", "reason"),
    [
        ("치매진단비 1천만원", 0, "nothing with a comparable context"),
        ("갑상선암진단비 3천만원", 0, "context is another"),
        ("재진단 암진단비 5천만원", 0, "only alike"),
        ("3천만원", 0, "context is another"),
        ("암진단비 $5,000", 0, "no figure in this unit (달러)"),
        ("암진단비 5,000", 0, "without a unit"),
        ("암진단비 5O00만원", 0, "not certain"),
        ("암진단비 약 2,900만원", 0, "only about so much"),
        ("40세 남성 월 9,900원", 1, "only alike"),
        ("50세 남성 월 12,300원", 1, "context is another"),
        ("월보험료 9,900원", 0, "only alike"),
        ("가입금액 1천만원 기준 40세 남성 월보험료 5,000원", 2, "only alike"),
        ("2026년 3월 1일 판매기간", 0, "lies within"),
        ("고급형 3천만원", 0, "context is another"),
    ],
)
def test_what_is_not_surely_the_same_thing_is_not_compared_and_says_why(line: str, number: int, reason: str) -> None:
    finding = judged(line, evidence(*ALL), number)
    assert finding.state == "cannot_compare" and reason in finding.reason, finding.reason


def test_a_name_above_the_line_is_not_certain_enough_for_a_mismatch() -> None:
    found = compare_figures(figures_of(reading_of(["암진단비", "5천만원"])), evidence(BENEFITS))
    assert found[0].state == "cannot_compare" and "another line" in found[0].reason
    assert compare_figures(figures_of(reading_of(["암진단비", "3천만원"])), evidence(BENEFITS))[0].state == "match"


def test_evidence_that_was_not_read_whole_may_hold_the_figure() -> None:
    finding = judged("암진단비 5천만원", [*evidence(BENEFITS), Evidence("약관.pdf", (), "page 3 failed")])
    assert finding.state == "cannot_compare" and "약관.pdf: page 3 failed" in finding.reason
    assert judged("암진단비 3천만원", evidence(BENEFITS, unread="rows after 10000")).state == "match"


def test_evidence_that_disagrees_with_itself_decides_nothing() -> None:
    given_evidence = [*evidence(BENEFITS), text_evidence("암진단비 5천만원")]
    for line in ("암진단비 3천만원", "암진단비 5천만원"):
        finding = judged(line, given_evidence)
        assert finding.state == "cannot_compare" and "disagrees" in finding.reason
    assert judged("암진단비 7천만원", given_evidence).state == "mismatch"


def test_figures_that_may_be_misread_are_no_mismatch() -> None:
    table = evidence(BENEFITS)
    assert compare_figures(figures_of(seen("암진단비 5천만원")), table)[0].state == "mismatch"
    for line in ("암진단비 8천만원", "암진단비 33,000만원"):
        finding = compare_figures(figures_of(seen(line)), table)[0]
        assert finding.state == "cannot_compare" and "slip of reading" in finding.reason, line
    unsure = compare_figures(figures_of(seen("암진단비 5천만원", confidence=0.4)), table)[0]
    assert unsure.state == "cannot_compare" and "not certain" in unsure.reason
    assert compare_figures(figures_of(seen("암진단비 3천만원", confidence=0.4)), table)[0].state == "match"


def test_evidence_that_may_be_misread_or_is_rounded_is_no_mismatch() -> None:
    ad = figures_of(reading_of(["공시이율 3.5%"]))
    table = Table("율.xlsx", (("공시이율", "2.5%"),), doubtful=frozenset({(0, 1)}))
    finding = compare_figures(ad, evidence(table))[0]
    assert finding.state == "cannot_compare" and "another value" in finding.reason
    scanned = Evidence("스캔.png", figures_of(seen("공시이율 2.S% 2.5%")))
    assert compare_figures(ad, [scanned])[0].state != "match"
    doubtful = [text_evidence("암진단비 3,00만원", "암진단비 2천만원")]
    finding = judged("암진단비 5천만원", doubtful)
    assert finding.state == "cannot_compare" and "cannot be read with certainty" in finding.reason
    finding = judged("암진단비 3백만원", [text_evidence("암진단비 3,00만원")])
    assert finding.state == "cannot_compare" and finding.evidence is not None


@pytest.mark.parametrize(
    ("ad", "filed", "state"),
    [
        ("가입나이 20세 이상", "가입나이 20세 이상", "match"),
        ("가입나이 20세 이상", "가입나이 20세 초과", "mismatch"),
        ("가입나이 20세", "가입나이 20세 이상", "cannot_compare"),
        ("암진단비 1억원", "암진단비 최대 1억원", "cannot_compare"),
        ("암진단비 최대 1억원", "암진단비 1억원", "match"),
        ("암진단비 약 1억원", "암진단비 최대 1억원", "cannot_compare"),
        ("암진단비 5천만원", "암진단비 최대 1억원", "cannot_compare"),
        ("암진단비 2억원", "암진단비 최대 1억원", "mismatch"),
        ("암진단비 5천만원", "암진단비 최소 1억원", "mismatch"),
        ("암진단비 최대 2억원", "암진단비 최소 1억원", "cannot_compare"),
        ("가입나이 55세", "가입나이 20~60세", "cannot_compare"),
        ("가입나이 65세", "가입나이 20~60세", "mismatch"),
        ("가입나이 60세까지", "가입나이 20~60세", "match"),
        ("가입나이 20~60세", "가입나이 60세", "cannot_compare"),
        ("공시이율 연 2.5%", "공시이율 2.5%", "match"),
        ("공시이율 연 3.5%", "공시이율 2.5%", "mismatch"),
        ("공시이율 0.5%p 인상", "공시이율 0.5%", "cannot_compare"),
        ("보장기간 1년", "보장기간 12개월", "match"),
        ("보장기간 1년", "보장기간 365일", "cannot_compare"),
        ("판매기간 2026년 1월", "판매기간 2026.01.02", "cannot_compare"),
        ("월 50만원 생활비", "월 30만원 생활비", "cannot_compare"),
        ("3대 질병 진단", "5대 질병 진단", "cannot_compare"),
        ("보험료 10% 할인", "보험료 10% 인상", "cannot_compare"),
        ("보험료 10% 할인", "보험료 5% 할인 (건강체)", "cannot_compare"),
        ("보험료 10% 할인", "보험료 5% 할인", "mismatch"),
        ("보험료 1만원 할인", "보험료 3만원", "cannot_compare"),
        ("암진단비 5천만원을 드립니다", "암진단비 3천만원을 지급합니다.", "mismatch"),
        ("암진단비 5천만원", "암진단비 3천만원 (최초 1회한)", "cannot_compare"),
        ("약관 2026.01.01 개정", "약관 2025.09.01 개정", "mismatch"),
        ("2026.01.01 시행", "2025.09.01 시행", "cannot_compare"),
        ("사망보험금 1억원", "사망보험금 80세 이후 5천만원", "cannot_compare"),
        ("한도 100", "한도 200", "cannot_compare"),
        ("보험금 한도 3,000만원", "보험금 한도 30,000,000", "cannot_compare"),
    ],
)
def test_limits_ranges_and_units_are_held_against_each_other(ad: str, filed: str, state: str) -> None:
    finding = judged(ad, [text_evidence(filed)])
    assert finding.state == state, finding.reason


def test_a_number_without_a_unit_is_named_where_it_stands() -> None:
    finding = judged("총보험금 3,000만원", [text_evidence("자료 30,000,000", "나이 20세")])
    assert finding.state == "cannot_compare" and "names no unit" in finding.reason and finding.evidence is not None


def test_a_condition_matches_where_its_premium_does_and_only_there() -> None:
    right, _ = compare_figures(figures_of(reading_of(["40세 남성 월보험료 12,300원"])), evidence(PREMIUMS))
    wrong, _ = compare_figures(figures_of(reading_of(["40세 남성 월보험료 9,900원"])), evidence(PREMIUMS))
    assert right.state == "match" and "condition of" in right.reason
    assert wrong.state == "cannot_compare"


def test_a_condition_for_which_the_evidence_has_other_values_is_no_mismatch() -> None:
    for line in ("50세 남성 월보험료 12,300원", "월보험료 12,300원 (50세 남성)"):
        given_evidence = [text_evidence("40세 남성 월보험료 12,300원", "30세 여성 월보험료 9,800원")]
        found = compare_figures(figures_of(reading_of([line])), given_evidence)
        assert {finding.state for finding in found} == {"cannot_compare"}, line
    ages = Table("료.csv", (("가입나이", "보험료"), ("30세", "9,800원"), ("40세", "12,300원")))
    finding = judged("가입나이 65세까지", evidence(ages))
    assert finding.state == "cannot_compare" and "condition of other figures" in finding.reason
    across = Table("료.csv", (("구분", "가입나이 30세", "가입나이 40세"), ("보험료", "9,800원", "12,300원")))
    assert judged("가입나이 65세", evidence(across)).state == "cannot_compare"


def test_no_pair_of_advertisement_and_evidence_has_a_false_mismatch_or_a_false_match() -> None:
    found = counts([pair(seed) for seed in range(PAIRS)])
    assert found["backed", "mismatch"] == found["silent", "mismatch"] == 0
    assert found["wrong", "match"] == found["silent", "match"] == 0
    assert found["backed", "match"] >= 0.9 * sum(found["backed", state] for state in ("match", "cannot_compare"))
    assert found["wrong", "mismatch"] >= 0.75 * sum(found["wrong", state] for state in ("mismatch", "cannot_compare"))


LINES = st.lists(
    st.text(st.sampled_from("암진단비가입나이보험료월만천억원세년%,.~()-0123456789 최대이상"), max_size=30), max_size=4
)


@given(LINES, LINES, st.booleans())
def test_any_text_gets_a_finding_for_every_figure_and_no_mismatch_without_whole_evidence(
    ad: list[str], filed: list[str], whole: bool
) -> None:
    figures = figures_of(reading_of(ad))
    given_evidence = [Evidence("자료.txt", figures_of(reading_of(filed)), "" if whole else "page 2 failed")]
    findings = compare_figures(figures, given_evidence)
    assert [finding.figure for finding in findings] == list(figures)
    assert all(finding.reason.endswith((".", ").")) for finding in findings)
    assert whole or all(finding.state != "mismatch" for finding in findings)


@given(LINES)
def test_a_text_is_never_a_mismatch_with_itself(lines: list[str]) -> None:
    figures = figures_of(reading_of(lines))
    findings = compare_figures(figures, [Evidence("자기.txt", figures)])
    assert all(finding.state != "mismatch" for finding in findings)
