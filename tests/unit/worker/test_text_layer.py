"""Whether a text layer is believed: confirmed, contradicted, or not to be judged."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.pipelines.text_layer import ReadableScripts, Verdict, choose_samples, judge

KOREAN = ReadableScripts(["kor"])


@dataclass
class LayerLine:
    text: str
    font: str = "Nanum"


@dataclass
class Seen:
    text: str
    confidence: float = 0.9


CLAIM = "이 보험계약은 예금자보호법에 따라 보호됩니다"


@pytest.mark.parametrize(
    ("seen", "verdict"),
    [
        (Seen(CLAIM), Verdict.CONFIRMED),
        (Seen("이 보혐계약은 예금자보호범에 따라 보호됩니다"), Verdict.CONFIRMED),  # look-alikes of bad print
        (Seen("전혀 다른 문구가 여기에 인쇄되어 있다"), Verdict.CONTRADICTED),
        (Seen("", 1.0), Verdict.CONTRADICTED),  # bare paper
        (Seen("N3MAucm 22 14", 0.2), Verdict.CONTRADICTED),  # whatever it is, it is not Hangul
        (Seen("이 보혐쉙갹은 뷁훍", 0.3), Verdict.UNVERIFIED),  # the reader could not make it out
    ],
)
def test_one_font_is_judged_by_what_was_seen(seen: Seen, verdict: Verdict) -> None:
    assert judge([[(CLAIM, seen)]], KOREAN).verdict is verdict


def test_one_lying_font_among_honest_ones_contradicts_the_layer() -> None:
    honest, lie = (CLAIM, Seen(CLAIM)), (CLAIM, Seen("Completely different printed words"))
    assert judge([[honest], [lie]], KOREAN).verdict is Verdict.CONTRADICTED


def test_a_font_is_believed_when_one_of_its_lines_agrees() -> None:
    assert judge([[(CLAIM, Seen("", 1.0)), (CLAIM, Seen(CLAIM))]], KOREAN).verdict is Verdict.CONFIRMED


def test_latin_print_that_could_not_be_read_does_not_contradict() -> None:
    unreadable = [("R cos v sin u", Seen("", 0.0)), ("Fall 1 of 2", Seen("고", 0.3))]
    assert judge([unreadable], KOREAN).verdict is Verdict.UNVERIFIED


def test_nothing_to_compare_is_unverified() -> None:
    assert judge([], KOREAN).verdict is Verdict.UNVERIFIED
    assert judge([], KOREAN).agreement is None


@pytest.mark.parametrize(
    "text", ["السلام عليكم ورحمة", "保険契約の注意事項です", "·····", "가", "Grüße aus Köln über Österreich ßßß äöü"]
)
def test_lines_that_the_reader_cannot_read_are_not_samples(text: str) -> None:
    assert choose_samples([LayerLine(text)], KOREAN) == []


def test_a_language_without_a_table_takes_all_letters() -> None:
    assert choose_samples([LayerLine("Bonjour à tous")], ReadableScripts(["fra"])) == [[0]]


def test_every_font_is_sampled_most_used_first_with_lines_of_a_good_length() -> None:
    lines = [
        LayerLine("짧은 글자들", "A"),
        LayerLine("서른 글자쯤 되는 줄이 가장 좋은 표본이라서 이것을 고른다", "A"),
        LayerLine("아주 " * 60, "A"),
        LayerLine("다른 글꼴의 한 줄", "B"),
    ]
    groups = choose_samples(lines, KOREAN)
    assert groups[0][0] == 1
    assert len(groups[0]) == 2
    assert groups[1] == [3]


@given(st.lists(st.tuples(st.text(max_size=40), st.sampled_from("ABCDEFG")), max_size=30))
def test_samples_are_few_distinct_and_inside_the_list(lines: list[tuple[str, str]]) -> None:
    groups = choose_samples([LayerLine(*line) for line in lines], KOREAN)
    flat = [index for group in groups for index in group]
    assert len(groups) <= 4
    assert all(1 <= len(group) <= 2 for group in groups)
    assert len(set(flat)) == len(flat)
    assert all(0 <= index < len(lines) for index in flat)
