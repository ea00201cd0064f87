"""What all pages, places and sources together say of a phrase."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.checks.phrase_decoys import judged_phrases
from sam2_mcp_worker.checks.phrase_judge import PhraseFinding, judge_phrases
from sam2_mcp_worker.checks.phrase_letters import letters
from sam2_mcp_worker.checks.reading import Box, Reading, ReadLine, ReadPage, Source, Unread

LIMITED = "지급한도와 면책사항에 따라 보험금 지급이 제한될 수 있습니다"
DEPOSITS = "이 보험계약은 예금자보호법에 따라 1인당 1억원까지 보호됩니다"
OTHER = ("꼭 알아두실 사항", "계약 전 상품설명서와 약관을 확인하시기 바랍니다", "준법감시인 심의필")


def line(text: str, source: Source = "ocr", box: Box | None = None, confidence: float | None = 0.95) -> ReadLine:
    return ReadLine(text, source, box, 12.0, confidence)


def page(*lines: ReadLine | str, number: int = 1, unread: Sequence[Unread] = ()) -> ReadPage:
    """Texts are lines of OCR, one below the other."""
    made = [
        line(one, box=(0.0, 20.0 * row, 400.0, 20.0 * row + 16)) if isinstance(one, str) else one
        for row, one in enumerate(lines)
    ]
    return ReadPage(number, "done", tuple(made), tuple(unread), (800.0, 1000.0))


def judged(phrase: str, *pages: ReadPage, others: Sequence[str] = ()) -> PhraseFinding:
    (finding,) = judge_phrases(judged_phrases([phrase], others), Reading("pdf", "px", pages))
    return finding


def test_a_phrase_that_is_there_is_told_with_its_lines_their_boxes_and_the_pages_gone_through() -> None:
    finding = judged(LIMITED, page(*OTHER), page(OTHER[0], LIMITED[:14], LIMITED[14:], OTHER[2], number=2))
    assert (finding.state, finding.source, finding.reason) == ("present", "ocr", "")
    assert (finding.page_number, [one.index for one in finding.lines], finding.rests_on) == (2, [1, 2], (1, 2))
    assert finding.boxes == ((2, (0.0, 20.0, 400.0, 36.0)), (2, (0.0, 40.0, 400.0, 56.0)))
    assert (finding.score, finding.coverage, finding.further_places, finding.start_s) == (1.0, 1.0, 0, None)
    assert letters(finding.read_as) == letters(LIMITED)


def test_a_phrase_that_is_nowhere_is_missing_and_the_nearest_text_is_told() -> None:
    finding = judged(LIMITED, page(*OTHER, "보험금은 청구한 날부터 지급됩니다"))
    assert (finding.state, finding.source, finding.lines, finding.page_number) == ("missing", None, (), None)
    assert 0 < finding.score < 0.55 and finding.read_as
    assert finding.reason == "not in what was read"
    two = judged(LIMITED, page(*OTHER), page(*OTHER, number=2))
    assert two.reason == "on none of the 2 pages that were read"


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        ("이 보험계약은 예금자보호법에 따라 1인당 5천만원까지 보호됩니다", ("1억 -> 5천만",)),
        ("이 보험계약은 예금자보호법에 따라 1인당 1억원까지 보호되지 않습니다", ("(nothing) -> 않",)),
        ("이 보험계약은 예금자보호법에 따라 1인당 1억원까지 보호됩니다 아님", None),
    ],
)
def test_other_numbers_and_negations_are_altered(shown: str, said: tuple[str, ...] | None) -> None:
    finding = judged(DEPOSITS, page(*OTHER, shown, OTHER[0]))
    if said is None:
        assert finding.state == "review" and "turn its meaning" in finding.reason
    else:
        assert (finding.state, finding.differences) == ("altered", said)
        assert finding.page_number == 1 and "numbers, amounts, dates or negations" in finding.reason


def test_of_several_places_the_right_one_counts_and_the_altered_one_is_told() -> None:
    old = DEPOSITS.replace("1억", "5천만")
    finding = judged(DEPOSITS, page(old), page(DEPOSITS, *OTHER, DEPOSITS, number=2))
    assert (finding.state, finding.page_number, finding.further_places) == ("present", 2, 1)
    assert finding.reason == "it also stands there altered (1억 -> 5천만), on page 1"


def test_present_in_one_of_two_readings_of_a_page_is_present() -> None:
    lines = (*(line(text, "text_layer") for text in OTHER), *(line(text) for text in (OTHER[1], LIMITED)))
    finding = judged(LIMITED, page(*lines))
    assert (finding.state, finding.source, finding.lines[0].index) == ("present", "ocr", 4)
    assert judged(LIMITED, page(line(LIMITED, "text_layer"), line("흐림"))).source == "text_layer"


def test_in_text_that_has_no_slips_another_word_is_for_a_person_and_another_particle_is_not() -> None:
    shown = LIMITED.replace("면책사항에", "감액사항에")
    assert judged(LIMITED, page(line(shown, "text"))).state == "review"
    assert judged(LIMITED, page(line(LIMITED.replace("지급이", "지급은"), "text"))).state == "present"
    assert judged(
        "만기환급금은 공시이율에 따라 달라집니다", page(line("연금액은 공시이율에 따라 정해집니다", "text"))
    ).state in (
        "missing",
        "review",
    )


def test_a_phrase_over_a_page_s_end_is_found_with_a_footer_and_a_title_between() -> None:
    first = page(OTHER[1], "지급한도와 면책사항에 따라", "- 1 -")
    second = page("상품 안내", "보험금 지급이 제한될 수 있습니다", *OTHER, number=2)
    finding = judged(LIMITED, first, second)
    assert (finding.state, [(one.page_number, one.index) for one in finding.lines]) == ("present", [(1, 1), (2, 1)])
    assert judged(LIMITED, page(OTHER[1], LIMITED[:14]), page(LIMITED[14:], number=2)).state == "present"
    part = judged(LIMITED, page(*OTHER, "지급한도와 면책사항에 따라 보험금"), page(*OTHER, number=2))
    assert (part.state, part.page_number, part.further_places) == ("review", 1, 0)
    above = judged(LIMITED, page("지급한도와 면책사항에 따라 보험금", *OTHER), page(*OTHER, number=2))
    assert (above.state, above.further_places, len(above.lines)) == ("review", 0, 1)
    apart = judged(LIMITED, first, page("상품 안내", "보험금 지급이 제한될 수 있습니다", number=3))
    assert apart.state != "present"


def test_a_phrase_in_a_column_is_found_between_the_lines_of_the_other_column() -> None:
    left, right = (0.0, 300.0), (320.0, 700.0)
    columns = [
        line(text, box=(x[0], 20.0 * row, x[1], 20.0 * row + 16))
        for row, (one, two) in enumerate(
            [
                ("상품의 특징", "꼭 알아두실 사항"),
                ("가입 나이는 만 15세부터", "지급한도와 면책사항에"),
                ("65세까지 누구나 간편하게", "따라 보험금 지급이"),
                ("가입하실 수 있는 상품", "제한될 수 있습니다"),
            ]
        )
        for text, x in ((one, left), (two, right))
    ]
    finding = judged(LIMITED, page(*columns))
    assert (finding.state, [one.index for one in finding.lines]) == ("present", [3, 5, 7])


def test_what_only_lines_apart_make_together_is_for_a_person() -> None:
    texts = (
        "지급한도와 면책사항에",
        "꽃과 나무와 바다와 하늘",
        "따라 보험금 지급이",
        "별과 달과 해와 구름",
        "제한될 수 있습니다",
    )
    for apart in (page(*texts), page(*(line(text) for text in texts))):
        finding = judged(LIMITED, apart)
        assert finding.state == "review" and finding.lines


def test_a_word_of_the_next_sentence_turns_nothing() -> None:
    asked = "계약의 부활을 청약할 수 있습니다."
    assert judged(asked, page(line(f"{asked} 비갱신형 상품입니다", "text"))).state == "present"
    assert judged("갱신형 건강보험 상품입니다", page("비경신형 건강보험 상품입니다")).state == "review"
    assert judged("갱신형 건강보험 상품입니다", page("대비 갱신형 건강보험 상품입니다")).state == "present"


def test_a_footer_or_a_line_of_another_column_with_a_number_alters_nothing() -> None:
    first, second = (
        page(OTHER[1], "지급한도와 면책사항에 따라", "- 17 -"),
        page("보험금 지급이 제한될 수 있습니다", number=2),
    )
    assert judged(LIMITED, first, second).state == "present"


def test_figures_and_negations_in_print_that_is_hard_to_read_are_for_a_person() -> None:
    for shown in (DEPOSITS, DEPOSITS.replace("1억", "5천만")):
        finding = judged(DEPOSITS, page(line(shown, confidence=0.7), *OTHER))
        assert finding.state == "review" and "hard to read" in finding.reason
    plain = "계약 전 상품설명서와 약관을 확인하시기 바랍니다"
    assert judged(plain, page(line(plain, confidence=0.7))).state == "present"


@pytest.mark.parametrize(
    ("shown", "why"),
    [
        ("이 대출상품은 예금자보호법에 따라 1인당 5천만원까지 보호됩니다", "other words as well"),
        ("이 보험계약은 예금자보호법에 따라 [인당 1억원까지 보호됩니다", "slip of reading"),
        ("저 보험상품은 금융감독원에 따라 2인당 5천만원까지 보호됩니다", "so does the rest"),
    ],
)
def test_other_numbers_among_other_words_are_for_a_person(shown: str, why: str) -> None:
    finding = judged(DEPOSITS, page(shown))
    assert finding.state == "review" and why in finding.reason


@pytest.mark.parametrize(
    ("shown", "why"),
    [
        ("지급한도와 면책사항에 따라 환급금 인출이 제한될 수 있습니다", "other words"),
        ("지급한도와 면책사항에 따라 보험금", "something like it"),
        ("지급한도와 면책사항에 따라 보험금 지급이 제한될 수 엇습니다", "other words"),
    ],
)
def test_what_resembles_a_phrase_without_being_it_is_for_a_person(shown: str, why: str) -> None:
    finding = judged(LIMITED, page(*OTHER, shown))
    assert finding.state == "review" and why in finding.reason


def test_a_place_of_another_wording_of_the_pack_is_none_of_this_one() -> None:
    asked = "보험료 납입이 연체되면 계약이 해지되고 보장이 중단될 수 있습니다"
    other = "보험료 납입이 면제되면 계약이 유지되고 보장이 계속될 수 있습니다"
    assert judged(asked, page(other, *OTHER)).state == "review"
    assert judged(asked, page(other, *OTHER), others=[other]).state == "missing"
    assert judged(asked, page(other, *OTHER, asked), others=[other]).state == "present"


def test_words_of_a_phrase_that_stand_scattered_over_a_page_make_it_doubtful_and_not_missing() -> None:
    words = LIMITED.split()
    scattered = [
        f"{word} {filler}" for word, filler in zip(words, ["꽃과 나무와 바다 위의 배"] * len(words), strict=True)
    ]
    finding = judged(LIMITED, page(*reversed(scattered)))
    assert finding.state == "missing"
    halves = page(
        "보험금 지급이 제한될 수 있습니다 하늘과 땅",
        "산과 들",
        "강과 바다",
        "별과 달과 해",
        "지급한도와 면책사항에 따라",
    )
    assert judged(LIMITED, halves).state == "review"


def test_words_that_any_text_of_the_kind_has_are_no_pieces_of_a_phrase_in_a_text_layer() -> None:
    shown = (
        "이 계약의 적용이율은 보험기간이 끝날 때까지 같습니다",
        "약관에 따라 다릅니다",
        "계약체결이 거부되거나 보장내용이 변경될 수 있습니다",
    )
    phrase = "특약의 보험기간이 끝나면 재가입 시점의 약관에 따라 보장내용이 변경될 수 있습니다"
    finding = judged(phrase, page(*(line(text, "text_layer") for text in shown)))
    assert finding.state == "missing" and finding.coverage > 0.5
    pieces = ("보장내용이 변경될", "특약의 보험기간이", "수 있습니다", "끝나면 재가입 시점의 약관에 따라")
    assert judged(phrase, page(*(line(text, "text_layer") for text in pieces))).state == "review"


def test_a_reading_without_a_letter_tells_nothing() -> None:
    for pages in ((), (page(),), (page("", " \u200b"),), (ReadPage(1, "failed", reason="broken"),)):
        finding = judged(LIMITED, *pages)
        assert (finding.state, finding.lines, finding.score) == ("cannot_tell", (), 0.0)
        assert "no text was read at all" in finding.reason


def test_what_was_not_read_keeps_a_phrase_from_being_missing_and_is_told_with_what_was_found() -> None:
    failed = ReadPage(2, "failed", reason="broken")
    assert judged(LIMITED, page(*OTHER), failed).reason == "not found in what was read, but page 2 could not be read"
    assert judged(LIMITED, page(*OTHER), failed).state == "cannot_tell"
    altered = judged(DEPOSITS, page(DEPOSITS.replace("1억", "5천만")), failed)
    assert altered.state == "altered" and altered.reason.endswith("(not everything was read: page 2 could not be read)")
    assert judged(LIMITED, page(LIMITED), failed).state == "present"


def test_speech_has_times() -> None:
    said = (
        ReadLine(LIMITED[:20], "speech", start_s=1.0, end_s=3.0),
        ReadLine(LIMITED[20:], "speech", start_s=3.0, end_s=5.5),
    )
    (finding,) = judge_phrases(judged_phrases([LIMITED]), Reading("sound", "s", (ReadPage(1, "done", said),)))
    assert (finding.state, finding.source, finding.start_s, finding.end_s) == ("present", "speech", 1.0, 5.5)
    assert finding.boxes == ()


def test_a_phrase_of_which_each_other_syllable_looks_otherwise_is_for_a_person() -> None:
    asked = "계약을 해지하면 해약환급금이 납입한 보험료보다 적습니다"
    plain = asked.replace(" ", "")
    finals = [chr(ord(char) + 1) if at % 2 else char for at, char in enumerate(plain[:-2])]  # the next final letter
    shown = "".join(finals) + plain[-2:]
    finding = judged(asked, page(*OTHER, shown))
    assert finding.state == "review" and finding.score > 0.65 and finding.coverage < 0.2
    assert "read too badly" in finding.reason


def test_a_text_of_one_long_line_is_gone_through() -> None:
    finding = judged(LIMITED, page(line(f"{'꽃과 나무 ' * 200}{LIMITED} {'하늘과 땅 ' * 200}{LIMITED}", "text")))
    assert (finding.state, finding.source, finding.further_places) == ("present", "text", 0)


def test_short_phrases_are_there_exactly_or_for_a_person() -> None:
    assert judged("무배당", page("무배당 건강보험")).state == "present"
    assert judged("무배당", page("무배딩 건강보험")).state == "review"
    assert judged("3개월", page("6개월 안에")).state == "review"
    assert judged("무배당", page("꽃과 나무")).state == "missing"


LINES = st.lists(st.text("가나다라마바사아자차 보험료금지급수있습니다1억5천만원않없.", max_size=30), max_size=6)


@given(
    phrase=st.text("보험료금지급이수있습니다1억5천만원않없 ", min_size=1, max_size=40),
    pages=st.lists(LINES, max_size=3),
)
def test_any_phrase_in_any_lines_has_one_finding_that_agrees_with_itself(phrase: str, pages: list[list[str]]) -> None:
    if not letters(phrase):
        return
    finding = judged(phrase, *(page(*lines, number=number) for number, lines in enumerate(pages, start=1)))
    assert 0 <= finding.score <= 1 and 0 <= finding.coverage <= 1
    assert bool(finding.lines) == (finding.state in ("present", "altered", "review") and finding.source is not None)
    assert finding.reason or finding.state == "present"
    assert finding.further_places >= 0 and finding.rests_on == tuple(range(1, len(pages) + 1))
    texts = ["".join(letters(text) for text in lines) for lines in pages]
    if finding.state == "missing":
        assert any(texts) and not any(letters(phrase) in text for text in texts)
    if not any(texts):
        assert finding.state == "cannot_tell"


@given(
    st.lists(st.text("보험료금지급이제한될수다", min_size=8, max_size=30), min_size=1, max_size=4), st.integers(0, 3)
)
def test_a_phrase_that_stands_there_word_by_word_is_present(lines: list[str], at: int) -> None:
    phrase = lines[at % len(lines)]
    assert judged(phrase, page(*lines)).state == "present"


def test_of_equal_places_the_text_of_the_file_is_told_then_the_larger_letters_and_the_others_beside_it() -> None:
    def at(y: float, source: Source, height: float) -> ReadLine:
        return ReadLine(DEPOSITS, source, (0.0, y, 400.0, y + 16), height, None if source == "text_layer" else 0.95)

    first = page(at(100, "ocr", 20.0), at(300, "text_layer", 9.0), at(301, "ocr", 9.5))
    finding = judged(DEPOSITS, first, page(at(100, "text_layer", 11.0), number=2))
    assert (finding.state, finding.source, finding.page_number) == ("present", "text_layer", 2)
    assert [[(one.page_number, one.index) for one in lines] for lines in finding.elsewhere] == [[(1, 1)], [(1, 0)]]
