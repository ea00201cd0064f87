"""A written verdict is read where it is clear, and refused where it is not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sam2_mcp_worker.evaluation.profile import ANSWER_FORM
from sam2_mcp_worker.evaluation.runs import Observed, RefusedRun
from sam2_mcp_worker.evaluation.verdict_text import MIN_VERDICT_CHARS, read_verdict

OPINION = (
    "예금자보호 안내는 본문보다 작은 글씨로 적혀 있고 갱신형 보험료가 인상될 수 있다는 안내가 첫 쪽에 없습니다. " * 6
)


def block(**facts: Any) -> str:
    return f"\n```json\n{json.dumps(facts, ensure_ascii=False)}\n```\n"


def refusal(text: str) -> str:
    with pytest.raises(RefusedRun) as refused:
        read_verdict(text)
    return refused.value.code


def test_a_block_is_read_whole() -> None:
    findings = [{"kind": "missing", "about": "예금자 보호"}, {"kind": "missing", "about": "예금자보호"}]
    verdict = read_verdict(OPINION + block(run="r-1", label="reject", findings=findings))
    assert (verdict.label, verdict.run_ids) == ("reject", frozenset({"r-1"}))
    assert verdict.findings == (Observed("missing", "예금자 보호"),)


@pytest.mark.parametrize("findings", [None, "none", [{"kind": "k"}], ["text"]])
def test_findings_that_are_no_list_of_findings_are_not_read_as_none(findings: Any) -> None:
    assert read_verdict(OPINION + block(label="approve", findings=findings)).findings is None


def test_two_blocks_that_list_different_findings_are_ambiguous() -> None:
    one = block(label="reject", findings=[{"kind": "k", "about": "a"}])
    assert read_verdict(OPINION + one + one).findings == (Observed("k", "a"),)
    assert refusal(OPINION + one + block(label="reject", findings=[])) == "verdict_ambiguous"


def test_an_empty_list_is_the_claim_that_there_are_none() -> None:
    assert read_verdict(OPINION + block(label="approve", findings=[])).findings == ()


def test_the_form_repeated_before_the_answer_is_not_the_answer() -> None:
    assert read_verdict(ANSWER_FORM + OPINION + block(label="conditional")).label == "conditional"
    assert refusal(ANSWER_FORM + OPINION) == "verdict_without_label"
    asked = "Please review." + ANSWER_FORM
    for text in (asked, "", asked + "\n" + "Done."):  # neither the form nor the block is an opinion
        with pytest.raises(RefusedRun) as caught:
            read_verdict(text + block(label="approve", findings=[{"kind": "k", "about": "x" * 300}]), asked)
        assert caught.value.code == "verdict_too_short"


@pytest.mark.parametrize("text", ["", "승인", "판정: 승인", " \n" * 1000 + "판정: 승인", "x" * (MIN_VERDICT_CHARS - 1)])
def test_a_verdict_that_is_too_short_is_refused_whatever_it_says(text: str) -> None:
    assert refusal(text) == "verdict_too_short"


@pytest.mark.parametrize(
    ("line", "label"),
    [
        ("판정: 승인", "approve"),
        ("**판정**: 조건부 승인", "conditional"),
        ("결론 : 조건부승인(글자 크기 수정)", "conditional"),
        ("심의 결과: 부적합", "reject"),
        ("심의결과: 반려", "reject"),
        ("판정: 판정 불가", "none"),
        ("Verdict: Conditional approval", "conditional"),
        ("Label: rejected", "reject"),
        ("Verdict: approve", "approve"),
        ("판정: 승인 불가", "reject"),
        ("Verdict: **approve**", "approve"),
        ("판정: **조건부 승인**", "conditional"),
        ("판정: 승인합니다 (모든 요건을 갖춤)", "approve"),
        ("판정: 불승인", "reject"),
        ("판정: 반려 - 안내를 읽기 어렵고 갱신 문구가 없음", "reject"),
        ("판정: 조건부 승인(유의사항을 읽기 어려움)", "conditional"),
    ],
)
def test_a_line_with_a_label_is_understood_by_its_longest_word(line: str, label: str) -> None:
    verdict = read_verdict(f"{OPINION}\n{line}\n")
    assert (verdict.label, verdict.findings, verdict.run_ids) == (label, None, frozenset())


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("판정: 승인할 수 없습니다", "verdict_ambiguous"),
        ("판정: 적합하지 않음", "verdict_ambiguous"),
        ("Verdict: not approved", "verdict_ambiguous"),
        ("판정: 승인\n결론: 반려", "verdict_ambiguous"),
        *(
            (f"판정: 승인{rest}", "verdict_ambiguous")
            for rest in (" 보류", "보류", " 대기", "(유보)", " 여부 미정", " 거절")
        ),
        ("판정: 승인을 권고하기 어려움", "verdict_ambiguous"),
        ("판정: 승인 - 아직 권하지 못함", "verdict_ambiguous"),
        ("결론: 조건부 승인하기 어려움", "verdict_ambiguous"),
        ("결론: 조건부 승인 보류", "verdict_ambiguous"),
        ("판정: 반려 대상이 아니다", "verdict_ambiguous"),
        ("Verdict: approve pending changes", "verdict_ambiguous"),
        ("Verdict: non-approved", "verdict_ambiguous"),
        ("Verdict: approved with conditions", "verdict_ambiguous"),
        ("판정: 보완 후 승인", "verdict_ambiguous"),
        ("판정: 미승인", "verdict_without_label"),
        ("결론: 비승인", "verdict_without_label"),
        ("판정: 비적합", "verdict_without_label"),
        ("Verdict: disapproved", "verdict_without_label"),
        ("승인하는 것이 좋겠습니다", "verdict_without_label"),
        ("판정: 검토 중", "verdict_without_label"),
        (block(label="perhaps"), "verdict_without_label"),
        (block(label="approve") + block(label="reject"), "verdict_ambiguous"),
        ("```json\n{broken}\n```", "verdict_without_label"),
    ],
)
def test_what_can_be_read_two_ways_or_not_at_all_is_refused(end: str, code: str) -> None:
    assert refusal(f"{OPINION}\n{end}\n") == code
