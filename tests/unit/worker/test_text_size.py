"""Sizes of text: what a height means on paper, how sure it is, and what follows for a minimum."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.checks.findings import Finding
from sam2_mcp_worker.checks.reading import Reading, ReadLine, ReadPage, Source, Unread
from sam2_mcp_worker.checks.rule_packs.sections import TextRules
from sam2_mcp_worker.checks.text_size import PageScale, picture_scale, size_findings, sizes_of

PAPER = PageScale(1.0, 150 / 72)
SCREEN = PageScale(None, 1.0)


def rules(**minimums: float | str) -> TextRules:
    return TextRules(basis="house", note="ours", **minimums)


def line(height: float | None, source: Source = "text_layer", confidence: float | None = None) -> ReadLine:
    return ReadLine("보험료", source, (10.0, 20.0, 90.0, 32.0), height, confidence)


def reading(*lines: ReadLine, whole: bool = True) -> Reading:
    pages = [ReadPage(1, "done", lines)]
    return Reading("pdf", "pt", tuple(pages if whole else [*pages, ReadPage(2, "unreached")]))


def verdicts(found: tuple[Finding, ...]) -> list[tuple[str, str]]:
    return [(one.rule, one.verdict) for one in found]


def judged(made: TextRules, read: Reading, scale: PageScale = PAPER) -> tuple[Finding, ...]:
    sizes = sizes_of(read, {1: scale}, made.near_border_px)
    return size_findings(made, read, sizes, {"notice": [[(1, index) for index in range(len(read.pages[0].lines))]]})


def test_points_of_a_page_are_points_on_paper_and_millimetres():
    size = sizes_of(reading(line(10.0)), {1: PAPER})[1, 0]
    assert (size.size, size.unit, size.uncertainty) == (10.0, "pt", 0.0)
    assert size.mm == pytest.approx(3.53, abs=0.01)
    assert size.told() == "10.0 pt (3.5 mm)"


def test_ocr_heights_carry_the_uncertainty_of_three_pixels_of_the_picture_that_was_read():
    size = sizes_of(reading(line(10.0, "ocr")), {1: PAPER})[1, 0]
    assert size.uncertainty == pytest.approx(3 * 72 / 150)
    assert size.told().startswith("about 10.0 pt")


@pytest.mark.parametrize(
    ("dpi", "size", "unit"), [(300.0, 6.0, "pt"), (96.0, 25.0, "px"), (72.0, 25.0, "px"), (None, 25.0, "px")]
)
def test_pixels_are_points_only_where_the_file_states_a_resolution_that_somebody_chose(dpi, size, unit):
    found = sizes_of(reading(line(25.0, "ocr")), {1: picture_scale(dpi)})[1, 0]
    assert (found.size, found.unit) == (pytest.approx(size), unit)
    assert (found.mm is None) == (unit == "px")


def test_shares_are_of_the_largest_text_that_is_surely_text():
    bullet = dataclasses.replace(line(80.0), text="●")
    smudge = line(60.0, "ocr", confidence=0.3)
    found = sizes_of(reading(line(40.0), line(10.0), bullet, smudge), {1: PAPER})
    assert found[1, 0].share_of_largest == 1.0
    assert found[1, 1].share_of_largest == pytest.approx(0.25)
    assert found[1, 2].share_of_largest == 1.0


def test_lines_without_a_height_or_a_scale_have_no_size():
    assert sizes_of(reading(line(None), line(10.0)), {1: PAPER}).keys() == {(1, 1)}
    assert sizes_of(reading(line(10.0)), {}) == {}


@pytest.mark.parametrize(
    ("height", "source", "verdict"),
    [
        (6.0, "text_layer", "met"),
        (5.98, "text_layer", "met"),
        (5.5, "text_layer", "not_met"),
        (5.0, "ocr", "review"),
        (6.5, "ocr", "review"),
        (4.0, "ocr", "not_met"),
        (8.0, "ocr", "met"),
    ],
)
def test_near_the_minimum_a_measured_height_is_for_a_person_and_a_stated_one_is_not(height, source, verdict):
    assert verdicts(judged(rules(min_height_pt=6.0), reading(line(height, source)))) == [
        ("text.min_height_pt", verdict)
    ]


def test_a_mark_in_small_letters_makes_no_line_too_small_and_no_headline_smaller():
    marked = dataclasses.replace(line(4.0), usual_height=9.0)
    (found,) = judged(rules(min_height_pt=6.0), reading(marked))
    assert found.verdict == "review" and "most letters of the line are 9.0 pt" in found.what
    assert (
        judged(rules(min_height_pt=6.0), reading(dataclasses.replace(marked, usual_height=5.0)))[0].verdict == "not_met"
    )
    headline = dataclasses.replace(line(10.0), usual_height=40.0)
    assert sizes_of(reading(headline, line(10.0)), {1: PAPER})[1, 1].share_of_largest == 0.25


def test_what_is_hardly_readable_is_never_called_too_small():
    (found,) = judged(rules(min_height_pt=6.0), reading(line(1.0, "ocr", confidence=0.2)))
    assert found.verdict == "review" and "hardly readable" in found.what


def test_each_minimum_holds_for_its_own_unit_alone():
    made = rules(min_height_pt=6.0, min_height_px=12.0)
    assert verdicts(judged(made, reading(line(5.0)))) == [("text.min_height_pt", "not_met")]
    assert verdicts(judged(made, reading(line(5.0)), SCREEN)) == [("text.min_height_px", "not_met")]


def test_a_finding_tells_the_smallest_line_its_place_and_how_many_more_are_like_it():
    (found,) = judged(rules(min_height_pt=6.0), reading(line(5.0), line(4.0), line(9.0)))
    assert (found.kind, found.measured, found.limit, found.unit, found.page) == ("text_too_small", 4.0, 6.0, "pt", 1)
    assert found.box_xyxy == (10.0, 20.0, 90.0, 32.0)
    assert found.what == "notice: 4.0 pt (1.4 mm), the minimum is 6 pt; 1 more lines alike"


def test_a_share_of_the_largest_text_is_only_kept_when_all_was_read():
    made = rules(min_share_of_largest=0.2)
    assert verdicts(judged(made, reading(line(40.0), line(10.0)))) == [("text.min_share_of_largest", "met")]
    assert verdicts(judged(made, reading(line(40.0), line(10.0), whole=False))) == [
        ("text.min_share_of_largest", "cannot_tell")
    ]
    assert verdicts(judged(made, reading(line(40.0), line(4.0), whole=False))) == [
        ("text.min_share_of_largest", "not_met")
    ]


@pytest.mark.parametrize(
    ("box", "verdict"),
    [((0.0, 0.0, 300.0, 45.0), "met"), ((0.0, 0.0, 300.0, 60.0), "cannot_tell"), (None, "cannot_tell")],
)
def test_what_could_not_be_read_holds_no_larger_text_than_has_room_there(box, verdict):
    page = ReadPage(1, "done", (line(40.0), line(10.0)), (Unread("ink", box),))
    (found,) = judged(rules(min_share_of_largest=0.2), Reading("pdf", "pt", (page,)))
    assert found.verdict == verdict


def test_all_text_of_a_page_is_one_finding_where_the_pack_says_all():
    made = rules(min_height_pt=6.0, applies_to="all")
    read = reading(line(9.0), line(4.0), dataclasses.replace(line(1.0), text="·"))
    (found,) = size_findings(made, read, sizes_of(read, {1: PAPER}), {})
    assert (found.verdict, found.measured) == ("not_met", 4.0)
    assert found.what.startswith("page 1: ")


def test_without_rules_phrases_or_measures_nothing_is_found():
    read = reading(line(4.0))
    assert size_findings(None, read, sizes_of(read, {1: PAPER}), {"a": [[(1, 0)]]}) == ()
    assert size_findings(rules(min_height_pt=6.0), read, sizes_of(read, {1: PAPER}), {}) == ()
    assert size_findings(rules(min_height_pt=6.0), read, {}, {"a": [[(1, 0)]]}) == ()
    assert size_findings(rules(), read, sizes_of(read, {1: PAPER}), {"a": [[(1, 0)]]}) == ()


def test_a_phrase_is_large_enough_where_one_of_its_places_is():
    read = reading(line(4.0), line(9.0), line(5.0), line(9.5))
    sizes, made = sizes_of(read, {1: PAPER}), rules(min_height_pt=6.0)
    (found,) = size_findings(made, read, sizes, {"notice": [[(1, 0)], [(1, 1), (1, 2)], [(1, 3)]]})
    assert (found.verdict, found.measured) == ("met", 9.5)
    (found,) = size_findings(made, read, sizes, {"notice": [[(1, 0), (1, 1)], [(1, 2), (1, 3)]]})
    assert (found.verdict, found.measured) == ("not_met", 5.0)


def test_two_phrases_on_one_line_are_both_judged():
    read = reading(line(4.0))
    found = size_findings(
        rules(min_height_pt=6.0), read, sizes_of(read, {1: PAPER}), {"a": [[(1, 0)]], "b": [[(1, 0)]]}
    )
    assert [(one.verdict, one.what[:2]) for one in found] == [("not_met", "a:"), ("not_met", "b:")]


def test_what_is_not_known_of_many_phrases_is_told_once():
    read = reading(line(40.0), *[line(10.0 + index) for index in range(7)], whole=False)
    made, names = rules(min_share_of_largest=0.2), {f"notice_{index}": [[(1, index)]] for index in range(1, 8)}
    (found,) = size_findings(made, read, sizes_of(read, {1: PAPER}), names)
    assert found.verdict == "cannot_tell" and found.measured == 0.25
    assert found.what.startswith("notice_1, notice_2, notice_3, notice_4, notice_5 and 2 more: 0.250 of the largest")


@given(st.floats(0.5, 100), st.floats(0.5, 100), st.sampled_from(["ocr", "text_layer"]))
def test_a_larger_letter_is_never_judged_worse(smaller: float, minimum: float, source: Source):
    order = ["not_met", "review", "cannot_tell", "met"]
    made = rules(min_height_pt=minimum)
    at = [
        order.index(judged(made, reading(line(smaller * factor, source)))[0].verdict) for factor in (1.0, 1.3, 2.0, 9.0)
    ]
    assert at == sorted(at)
