"""The label that follows from findings: always the same, never milder with more, no approval of what is undone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.checks.findings import Basis, Finding, FindingKind, Verdict
from sam2_mcp_worker.checks.rule_packs import Room, VerdictRow, VerdictTable, load_rule_pack
from sam2_mcp_worker.checks.verdict import SEVERITY, LabelName, label_of
from sam2_mcp_worker.evaluation.observing import most_severe
from sam2_mcp_worker.settings import Settings

KINDS: Sequence[FindingKind] = get_args(FindingKind)
PACK = load_rule_pack(Settings().rule_pack).verdict


def finding(
    kind: FindingKind = "text_too_small", verdict: Verdict = "met", basis: Basis = "house", rule: str = "r"
) -> Finding:
    return Finding(kind, rule, verdict, "said", basis)


findings = st.builds(
    finding,
    st.sampled_from(KINDS),
    st.sampled_from(get_args(Verdict)),
    st.sampled_from(get_args(Basis)),
    st.sampled_from("abcdefgh"),
)
rows = st.builds(
    VerdictRow,
    kind=st.sampled_from(KINDS),
    verdict=st.sampled_from(["not_met", "review", "cannot_tell"]),
    basis=st.sampled_from([*get_args(Basis), "any"]),
    at_least=st.integers(1, 3),
    label=st.sampled_from(["conditional", "reject"]),
)
any_rows = st.builds(VerdictRow, kind=st.just("any"), verdict=st.just("review"), label=st.just("reject"))
tables = st.builds(VerdictTable, rows=st.lists(rows | any_rows, max_size=6).map(tuple)) | st.just(PACK)


def severity(label: LabelName) -> int:
    return SEVERITY.index(label)


@given(st.lists(findings, min_size=1, max_size=8), findings, tables, st.booleans())
def test_one_more_finding_never_makes_the_label_milder(
    held: list[Finding], more: Finding, table: VerdictTable, complete: bool
) -> None:
    before, after = label_of(held, complete, table), label_of([*held, more], complete, table)
    assert severity(after.label) >= severity(before.label)
    assert severity(label_of(held, False, table).label) >= severity(label_of(held, True, table).label)


@given(st.lists(findings, max_size=8), tables, st.booleans(), st.randoms())
def test_the_order_of_findings_changes_nothing(
    held: list[Finding], table: VerdictTable, complete: bool, random: Random
) -> None:
    mixed = list(held)
    random.shuffle(mixed)
    assert label_of(mixed, complete, table) == label_of(held, complete, table)


@given(st.lists(findings, max_size=10), tables, st.booleans())
def test_only_what_was_judged_wholly_and_is_met_is_approved(
    held: list[Finding], table: VerdictTable, complete: bool
) -> None:
    found = label_of(held, complete, table)
    all_met = bool(held) and all(one.verdict == "met" for one in held)
    assert (found.label == "approve") == (all_met and complete)
    assert found.because and all(found.because)


@given(st.lists(findings, min_size=1, max_size=12), tables)
def test_the_label_of_the_whole_is_the_most_severe_one_of_the_tools(held: list[Finding], table: VerdictTable) -> None:
    # check_figures tells of this kind and of no other, check_phrases of all others.
    parts = [[one for one in held if (one.kind == "figure_mismatch") == figures] for figures in (True, False)]
    labels = [label_of(part, True, table).label for part in parts if part]
    assert most_severe(labels) == most_severe(labels[::-1]) == label_of(held, True, table).label


def test_without_findings_there_is_no_label() -> None:
    assert label_of([], True, PACK).label == "none"


def test_what_could_not_be_told_gives_no_label_and_what_is_for_a_person_a_condition() -> None:
    met = finding()
    assert label_of([met, finding(verdict="cannot_tell")], True, VerdictTable()).label == "none"
    assert label_of([met, finding(verdict="review")], True, VerdictTable()).label == "conditional"
    assert label_of([met, finding(verdict="not_met")], True, VerdictTable()).label == "conditional"


def test_a_label_says_what_it_follows_from_by_the_names_of_the_rules() -> None:
    wrong = [finding("phrase_missing", "not_met", "law", rule=name) for name in "gfedcba"]
    assert label_of(wrong, True, PACK).because == ("phrase_missing not_met: 7 (a, b, c, d, e and 2 more)",)
    assert label_of([finding()], False, PACK).because == ("not everything was gone through",)


def test_a_number_of_findings_may_weigh_more_than_one() -> None:
    missing = finding("phrase_missing", "not_met", "practice", rule="a")
    assert label_of([missing], True, PACK).label == "conditional"
    assert label_of([missing, replace(missing, rule="b")], True, PACK).label == "reject"


def test_there_is_room_for_discretion_only_where_it_can_change_the_label() -> None:
    missing, altered = finding("phrase_missing", "not_met", "law"), finding("phrase_altered", "not_met", "law")
    (room,) = label_of([missing], True, PACK).discretion
    assert isinstance(room, Room) and room.id == "other_words" and room.may == "conditional"
    said = label_of([missing], True, PACK).said
    assert len(said) == 2 and "may give conditional instead (other_words)" in said[1], "the report says it, too"
    assert label_of([missing, altered], True, PACK).discretion == ()
    # Nothing milder than the rest allows, and no approval of what is not known.
    (room,) = label_of([missing, finding("phrase_missing", "review")], False, PACK).discretion
    assert room.may == "conditional"
    small, unknown = finding("text_too_small", "not_met"), finding(verdict="cannot_tell")
    assert [room.may for room in label_of([small], True, PACK).discretion] == ["approve"]
    assert label_of([small, unknown], True, PACK).discretion == ()
    assert label_of([small], False, PACK).discretion == ()
