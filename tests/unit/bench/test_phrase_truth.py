"""Phrases whose truth is known keep their bounds in text with slips, in leaflets and seeds that nothing is tuned on."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.bench.checks import noise
from tests.bench.checks.held_out import held_out_leaflet
from tests.bench.checks.leaflets import Leaflet, leaflet
from tests.bench.checks.phrase_outcome import CLEAN, JUDGE, Condition, Outcome, area_under_curve, short_of
from tests.bench.checks.phrase_scores import SCORES, coverage
from tests.bench.checks.phrase_tables import shown
from tests.bench.checks.phrase_text import ABSENT, PAIRS
from tests.bench.checks.phrase_truth import measure, slip_conditions

SEEDS = (200, 201)


@pytest.fixture(scope="module", params=[(leaflet, SEEDS), (held_out_leaflet, SEEDS[:1])], ids=["pairs", "held-out"])
def outcomes(request: pytest.FixtureRequest) -> list[Outcome]:
    made: Callable[[int], Leaflet]
    made, seeds = request.param
    conditions = [one for one in slip_conditions() if "any" not in one.name and one.slips != 0.15]
    return [measure(condition, seeds, judges=(JUDGE,), made=made) for condition in conditions]


def test_what_is_there_is_never_missing_and_what_is_not_is_never_present(outcomes: list[Outcome]) -> None:
    assert [short_of(outcome) for outcome in outcomes] == [[]] * 4
    assert [outcome.false_missing(JUDGE) for outcome in outcomes] == [0] * 4
    assert sum(outcome.count(JUDGE, truth) for outcome in outcomes for truth in ("present", "absent")) > 300


def test_without_slips_all_that_is_there_is_present_and_nearly_all_that_is_altered_is_told(
    outcomes: list[Outcome],
) -> None:
    for clean in outcomes[:2]:
        assert clean.count(JUDGE, "present", "present") == clean.count(JUDGE, "present")
        assert clean.altered_found >= 0.95
        assert clean.count(JUDGE, "absent", "present", "altered") == 0


def test_the_bounds_are_told_when_they_are_missed() -> None:
    outcome = Outcome(Condition(CLEAN, lambda sheet: pytest.fail("nothing is read here")))
    outcome.counts[JUDGE, "present", "missing"] = 1
    outcome.counts[JUDGE, "absent", "present"] = 2
    outcome.counts[JUDGE, "altered", "altered"] = 18
    outcome.counts[JUDGE, "altered", "review"] = 2
    assert [text.split(": ")[1] for text in short_of(outcome)] == [
        "1 phrases that are there were called missing",
        "2 phrases that are not there as asked for were called present",
        "90.0% of the altered phrases were found",
    ]


def test_each_score_parts_what_is_there_from_what_is_not_and_the_tables_say_how_well(outcomes: list[Outcome]) -> None:
    clean = outcomes[1]
    for name in SCORES:
        assert area_under_curve(clean.scores[name, "present"], clean.scores[name, "absent"]) > 0.99
    assert area_under_curve([1.0, 0.5], [0.5, 0.0]) == 0.875
    tables = shown(outcomes)
    assert f"| OCR without slips | {clean.count(JUDGE, 'present')} / 0 / 0 / 0 / 0 | " in tables
    assert coverage("보험금을 지급합니다", "보험금을 지급") == 4 / 7


def test_there_are_as_many_phrases_as_are_asked_for_and_none_is_printed_that_is_absent() -> None:
    assert len(PAIRS) >= 40 and len(ABSENT) >= 40
    for seed in SEEDS:
        sheet = leaflet(seed)
        printed = "".join("".join(text.text.split()) for page in sheet.pages for text in page.texts)
        assert all("".join(phrase.split()) in printed for phrase in sheet.present[5:10])
        assert not any("".join(phrase.split()) in printed for phrase in (*sheet.absent,))


@given(st.integers(0, 10_000), st.sampled_from([noise.look_alike, noise.any_syllable]))
def test_slips_change_about_the_share_that_was_asked_for_and_never_a_digit(
    seed: int, slips: Callable[[Random, str, float], str]
) -> None:
    text = "보험계약자는 보험증권을 받은 날부터 15일 이내에 청약을 철회할 수 있습니다. " * 10
    slipped = slips(Random(seed), text, 0.3)
    assert "".join(char for char in slipped if char.isdigit()) == "15" * 10
    assert slips(Random(seed), text, 0.0) == text
    kept = [char for char in text if "가" <= char <= "힣"]
    now = [char for char in slipped if "가" <= char <= "힣"]
    assert len(kept) == len(now)
    assert 0.15 < sum(one != other for one, other in zip(kept, now, strict=True)) / len(kept) < 0.45
