"""Phrases in lines that were read: over white space, case and line ends, with look-alikes in OCR only."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.pipelines.redact_phrases import ReadLine, closest_reading, find_phrases, normalised

hangul = st.text(alphabet=[chr(code) for code in range(ord("가"), ord("힣") + 1, 97)], min_size=2, max_size=12)


def ocr(*texts: str) -> list[ReadLine]:
    return [ReadLine(text, (0, 40 * row, 400, 40 * row + 30), exact=False) for row, text in enumerate(texts)]


def layer(*texts: str) -> list[ReadLine]:
    return [ReadLine(line.text, line.box, exact=True) for line in ocr(*texts)]


def found(phrase: str, lines: list[ReadLine]) -> list[tuple[tuple[int, ...], str]]:
    return [(match.lines, match.kind) for match in find_phrases([phrase], lines)]


@pytest.mark.parametrize(
    ("phrase", "text"),
    [
        ("홍길동", "고객 홍 길 동 님"),
        ("Secret Plan", "the SECRETPLAN of"),
        (unicodedata.normalize("NFD", "보험료"), "보험료는"),
        ("보험료", unicodedata.normalize("NFD", "보험료는")),
        ("office", "the o\ufb03ce"),  # one character for f, f and i
        ("１２３", "no. 123"),
        ("re\u00addact", "we redact"),  # a soft hyphen prints nothing
    ],
)
def test_white_space_case_and_the_way_of_writing_do_not_matter(phrase: str, text: str) -> None:
    assert found(phrase, layer(text)) == [((0,), "exact")]


def test_a_phrase_is_found_over_the_end_of_a_line_and_both_lines_are_told() -> None:
    assert found("서울시 종로구 1번지", layer("주소 서울시", "종로구 1번지 2층")) == [((0, 1), "exact")]


@pytest.mark.parametrize(("phrase", "lines"), [("Kims", ("we saw Ki-", "ms there")), ("A-12", ("no. A-", "12 is"))])
def test_a_hyphen_at_the_end_of_a_line_belongs_to_the_phrase_or_not(phrase: str, lines: tuple[str, str]) -> None:
    assert found(phrase, ocr(*lines)) == [((0, 1), "exact")]
    assert found(phrase, ocr(lines[0].replace("-", "- and"), lines[1])) == []


def test_a_phrase_that_wraps_within_a_column_is_found_though_another_column_lies_between() -> None:
    left, right = ["계약번호 A-12", "34-5678 입니다"], ["오른쪽 첫 줄", "오른쪽 둘째 줄"]
    lines = [
        ReadLine(text, (300 * column, 40 * row, 300 * column + 200, 40 * row + 30), exact=True)
        for row in range(2)
        for column, text in enumerate([left[row], right[row]])
    ]
    assert found("A-1234-5678", lines) == [((0, 2), "exact")]


def test_every_place_is_found() -> None:
    assert found("홍길동", layer("홍길동과 홍길동", "다른 줄", "또 홍길동")) == [((0,), "exact"), ((2,), "exact")]


def test_a_misread_letter_is_a_near_match_in_ocr_and_none_in_a_text_layer() -> None:
    assert found("보험계약자 홍길동", ocr("보혐계약자 홍길둥 귀하")) == [((0,), "near")]
    assert found("보험계약자 홍길동", layer("보혐계약자 홍길둥 귀하")) == []


def test_what_a_look_alike_was_read_as_is_told() -> None:
    assert find_phrases(["Nightingale"], ocr("project Nightlngale"))[0].read_as == "project Nightlngale"


@pytest.mark.parametrize("phrase", ["김", "AB", "1억"])
def test_short_phrases_are_found_exactly_or_not_at_all(phrase: str) -> None:
    assert found(phrase, ocr("금 박 AC 2억")) == []


def test_other_sentences_are_no_look_alikes() -> None:
    lines = ocr("보험계약을 해지하기 전에 약관을 확인하시기 바랍니다", "가입금액 1억원까지 보장합니다")
    assert found("개인정보 수집에 동의합니다", lines) == []
    assert closest_reading("개인정보 수집에 동의합니다", lines) is None


def test_the_closest_reading_of_a_phrase_that_was_not_found_is_told() -> None:
    closest = closest_reading("홍길동님", ocr("안내 말씀", "홍길숙님께"))
    assert closest is not None
    assert (closest.line, closest.text) == (1, "홍길숙님께")
    assert 0.55 <= closest.similarity < 1


@given(st.lists(hangul, max_size=4), hangul, st.lists(hangul, max_size=4), st.data())
def test_a_phrase_that_is_there_is_found_wherever_lines_end(
    before: list[str], phrase: str, after: list[str], data: st.DataObject
) -> None:
    text = " ".join([*before, phrase, *after])
    cut = data.draw(st.integers(0, len(text)))
    lines = layer(text[:cut], text[cut:])
    holding = set()
    position = normalised("".join(before)).__len__()
    for place in range(position, position + len(normalised(phrase))):
        holding.add(0 if place < len(normalised(text[:cut])) else 1)
    assert (tuple(sorted(holding)), "exact") in found(phrase, lines)


@given(hangul, st.data())
def test_one_syllable_with_another_vowel_is_still_found_in_ocr(phrase: str, data: st.DataObject) -> None:
    if len(phrase) < 4:
        phrase = phrase * 2
    at = data.draw(st.integers(0, len(phrase) - 1))
    code = ord(phrase[at]) - ord("가")
    vowel = code // 28 % 21
    other = chr(ord("가") + code + 28 * ((vowel + 1) % 21 - vowel))
    misread = phrase[:at] + other + phrase[at + 1 :]
    assert [kind for _, kind in found(phrase, ocr(f"앞 {misread} 뒤"))]
