"""Mandatory and stale wordings: one of several is enough, what applies is needed, what is out of date is told."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from typing import Literal

import pytest

from sam2_mcp_worker.checks.findings import Finding
from sam2_mcp_worker.checks.phrase_decoys import judged_phrases
from sam2_mcp_worker.checks.phrase_judge import judge_phrases
from sam2_mcp_worker.checks.phrase_rules import Judged, applies, phrase_findings, phrases_for, texts_of
from sam2_mcp_worker.checks.reading import Box, Reading, ReadLine, ReadPage, Unread
from sam2_mcp_worker.checks.rule_packs import PhraseRule, RulePack, load_rule_pack

PACK = load_rule_pack("korean_insurance_ads")
TODAY, BEFORE = date(2026, 11, 30), date(2025, 8, 31)
NOTICE = """무배당 든든한 암보험
보험계약자가 기존 보험계약을 해지하고 새로운 보험계약을 체결할 경우 인수거절, 보험료 인상, 보장내용 축소 등
불이익이 생길 수 있습니다.
보험계약 체결 전 상품설명서 및 약관을 반드시 확인하시기 바랍니다.
금융소비자는 해당 상품에 대하여 설명을 받을 권리가 있습니다.
이 보험계약은 예금자보호법에 따라 해약환급금(또는 만기 시 보험금)에 기타지급금을 합한 금액이 1인당
"1억원까지"(본 보험회사의 여타 보호상품과 합산) 보호됩니다. 이와 별도로 본 보험회사 보호상품의 사고보험금을
합산한 금액이 1인당 "1억원까지" 보호됩니다.
약관에 따른 지급 제한 사유 발생 시, 보험금 지급이 제한될 수 있습니다."""
State = Literal["present", "altered", "missing", "review", "cannot_tell"]


@dataclass(frozen=True)
class One:
    """What became of a wording, as the judge tells it."""

    state: State
    score: float = 0.5
    reason: str = "so it is"
    read_as: str = "as it was read"
    differences: tuple[str, ...] = ("1억 -> 5천만",)
    boxes: tuple[tuple[int, Box], ...] = ()
    page_number: int | None = None
    start_s: float | None = None
    end_s: float | None = None


def reading(text: str, unread: tuple[Unread, ...] = ()) -> Reading:
    lines = tuple(ReadLine(line, "text") for line in text.split("\n"))
    return Reading("text", "line", (ReadPage(1, "done", lines, unread),))


def judged(text: str, day: date) -> dict[str, tuple[str, str]]:
    """Rule -> kind and verdict, by the real judge."""
    pack, read = PACK.on(day), reading(text)
    wordings, stale = texts_of(phrases_for(pack, "text")), texts_of(pack.stale)
    found = [*judge_phrases(judged_phrases(wordings), read), *judge_phrases(judged_phrases(stale, wordings), read)]
    findings = phrase_findings(pack, {one.phrase: one for one in found}, read)
    return {one.rule: (one.kind, one.verdict) for one in findings}


def rule(**more: object) -> PhraseRule:
    texts = ["one wording", "other wording"]
    entry = {"id": "r", "basis": "house", "note": "ours", "texts": texts, "need": "always"}
    return PhraseRule.model_validate(entry | more)


def findings_of(one: PhraseRule, states: dict[str, One], read: Reading | None = None) -> tuple[Finding, ...]:
    pack = replace(PACK, phrases=(one,), stale=())
    known: dict[str, Judged] = dict(states.items())
    return phrase_findings(pack, known, read or reading("nothing"))


def test_a_notice_as_it_should_be_meets_every_phrase_that_applies_to_it() -> None:
    found = judged(NOTICE, TODAY)
    assert set(found) == {
        "replacement", "read_terms", "right_to_explanation", "deposit_protection", "deposit_protection_claims",
        "limits_of_payment",
    }  # fmt: skip
    assert set(found.values()) == {("phrase_missing", "met")}


def test_the_old_limit_is_stale_after_its_day_and_right_before_it() -> None:
    old = NOTICE.replace("1억원", "5천만원")
    now = judged(old, TODAY)
    assert now["deposit_limit_50m"] == now["deposit_limit_50m_claims"] == ("phrase_stale", "not_met")
    assert "deposit_protection" not in now
    then = judged(old, BEFORE)
    assert then["deposit_protection"] == ("phrase_missing", "met")
    assert not any(kind == "phrase_stale" for kind, _ in then.values())


def test_the_new_limit_is_wrong_before_its_day() -> None:
    assert judged(NOTICE, BEFORE)["deposit_protection"] == ("phrase_altered", "not_met")


def test_a_notice_that_is_left_out_is_missing() -> None:
    assert judged("무배당 든든한 암보험", TODAY)["replacement"] == ("phrase_missing", "not_met")


def test_what_applies_by_its_signs_is_needed_and_its_opposite_is_no_sign() -> None:
    assert judged(f"{NOTICE}\n갱신형 특약", TODAY)["renewal"] == ("phrase_missing", "not_met")
    assert "renewal" not in judged(f"{NOTICE}\n비갱신형 상품", TODAY)


@pytest.mark.parametrize(
    ("text", "unread", "expected"),
    [
        ("갱신형 특약", (), "yes"),
        ("갱 신 형 특약", (Unread("too small"),), "yes"),
        ("비갱신형", (), "no"),
        ("비갱신형과 갱신형", (), "yes"),
        ("이 상품은 갱신\n형입니다", (), "not_known"),
        ("이 상품은 비\n갱신형입니다", (), "no"),
        ("갱신형이 아닌 상품", (), "not_known"),
        ("갱신형이 아닌 상품과 갱신형 특약", (), "yes"),
        ("암보험", (), "no"),
        ("암보험", (Unread("too small"),), "not_known"),
        ("둷쯇 봟험캽쇵 쐒놂햚", (), "not_known"),
        ("", (), "not_known"),
    ],
)
def test_whether_a_phrase_applies_is_only_denied_over_a_whole_reading(
    text: str, unread: tuple[Unread, ...], expected: str
) -> None:
    renewal = rule(need="when_it_applies", when="it renews", signs=["갱신형"])
    assert applies(renewal, reading(text, unread=unread)) == expected
    assert applies(rule(), reading(text)) == "yes"
    assert applies(rule(need="when_it_applies", when="it renews"), reading(text)) == "not_known"


@pytest.mark.parametrize(
    ("sign", "text", "expected"),
    [
        ("갱신형", "갱싄형 특약 포함", "not_known"),
        ("갱신형", "갱신 영 특약", "not_known"),
        ("갱신형", "갱\n싄형 특약", "not_known"),
        ("갱신형", "비갱신형 상품", "no"),
        ("갱신형", "갱신할 수 없는 상품", "no"),
        ("갱신형", "감액 없는 암보험", "no"),
        ("저해지", "저헤지 환급형", "not_known"),
        ("저해지", "정해진 기간", "no"),
        ("예시", "에시 포함", "no"),
    ],
)
def test_a_sign_that_may_have_been_misread_is_no_sign_that_is_missing(sign: str, text: str, expected: str) -> None:
    one = rule(need="when_it_applies", when="it renews", signs=[sign])
    lines = text.split("\n")
    for source in ("ocr", "speech"):
        page = ReadPage(1, "done", tuple(ReadLine(line, source) for line in lines))  # type: ignore[arg-type]
        assert applies(one, Reading("image", "px", (page,))) == expected
    assert applies(one, reading(text)) == "no"


@pytest.mark.parametrize(
    ("states", "kind", "verdict"),
    [
        (("missing", "present"), "phrase_missing", "met"),
        (("altered", "present"), "phrase_missing", "met"),
        (("missing", "altered"), "phrase_altered", "not_met"),
        (("missing", "review"), "phrase_missing", "review"),
        (("missing", "missing"), "phrase_missing", "not_met"),
        (("missing", "cannot_tell"), "phrase_missing", "cannot_tell"),
        (("review", "cannot_tell"), "phrase_missing", "review"),
    ],
)
def test_of_several_wordings_the_one_that_is_there_most_counts(
    states: tuple[State, State], kind: str, verdict: str
) -> None:
    first, second = states
    (found,) = findings_of(rule(), {"one wording": One(first), "other wording": One(second)})
    assert (found.kind, found.verdict, found.rule, found.basis) == (kind, verdict, "r", "house")


def test_between_a_changed_and_a_doubtful_wording_the_more_alike_one_counts() -> None:
    (found,) = findings_of(rule(), {"one wording": One("altered", 0.7), "other wording": One("review", 0.8)})
    assert found.verdict == "review"


def test_where_nobody_knows_whether_it_applies_a_missing_phrase_is_for_a_person() -> None:
    states = {"one wording": One("missing")}
    (found,) = findings_of(rule(need="when_it_applies", when="it renews"), states)
    assert found.verdict == "review" and "it renews" in found.what


@pytest.mark.parametrize(("state", "told"), [("review", 0), ("missing", 0), ("altered", 1), ("present", 1)])
def test_of_a_phrase_that_is_not_needed_only_what_surely_stands_there_is_told(state: State, told: int) -> None:
    unneeded = rule(need="when_it_applies", when="it renews", signs=["갱신형"])
    assert len(findings_of(unneeded, {"one wording": One(state)})) == told


def test_a_finding_has_the_place_and_the_times() -> None:
    one = One("altered", boxes=((2, (1.0, 2.0, 3.0, 4.0)),), page_number=2, start_s=1.0, end_s=2.0)
    (found,) = findings_of(rule(), {"one wording": one})
    assert (found.page, found.box_xyxy, found.start_s, found.end_s) == (2, (1.0, 2.0, 3.0, 4.0), 1.0, 2.0)
    assert "1억 -> 5천만" in found.what


def test_rules_none_of_whose_wordings_was_judged_say_nothing() -> None:
    assert findings_of(rule(), {}) == ()


@pytest.mark.parametrize(
    ("stale", "current", "expected"),
    [
        ("present", "altered", {"deposit_limit_50m": "not_met"}),
        ("present", "present", {"deposit_limit_50m": "not_met", "deposit_protection": "met"}),
        ("review", "missing", {"deposit_limit_50m": "review", "deposit_protection": "not_met"}),
        ("review", "present", {"deposit_protection": "met"}),
        ("altered", "present", {"deposit_protection": "met"}),
        ("missing", "present", {"deposit_protection": "met"}),
    ],
)
def test_a_stale_wording_is_told_once_and_never_in_place_of_the_right_one(
    stale: State, current: State, expected: dict[str, str]
) -> None:
    pack: RulePack = PACK.on(TODAY)
    right = next(one for one in pack.phrases if one.id == "deposit_protection")
    wrong = next(one for one in pack.stale if one.id == "deposit_limit_50m")
    states: dict[str, Judged] = {right.texts[0]: One(current, 0.6), wrong.texts[0]: One(stale, 0.7)}
    found = phrase_findings(pack, states, reading("nothing"))
    assert {one.rule: one.verdict for one in found} == expected


def test_a_doubtful_wording_that_is_more_like_the_right_one_is_not_called_stale() -> None:
    pack = PACK.on(TODAY)
    right, wrong = pack.phrases[3], pack.stale[0]
    states: dict[str, Judged] = {right.texts[0]: One("review", 0.9), wrong.texts[0]: One("review", 0.8)}
    assert [one.rule for one in phrase_findings(pack, states, reading("nothing"))] == [wrong.instead]
    alone: dict[str, Judged] = {wrong.texts[0]: One("review", 0.8)}
    assert [one.rule for one in phrase_findings(pack, alone, reading("nothing"))] == [wrong.id]


def test_nothing_is_shown_in_a_sound_and_nothing_spoken_on_paper() -> None:
    pack = replace(PACK, phrases=(rule(channel="shown"), rule(id="s", channel="spoken"), rule(id="a", channel="any")))
    assert [one.id for one in phrases_for(pack, "sound")] == ["s", "a"]
    assert [one.id for one in phrases_for(pack, "pdf")] == ["r", "a"]
    assert [one.id for one in phrases_for(pack, "video")] == ["r", "s", "a"]
