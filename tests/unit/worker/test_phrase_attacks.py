"""Wordings that a crooked advertiser writes, and honest ones that only look like them."""

from __future__ import annotations

import pytest

from sam2_mcp_worker.checks.phrase_decoys import judged_phrases
from sam2_mcp_worker.checks.phrase_grams import line_weight
from sam2_mcp_worker.checks.phrase_judge import PhraseFinding, judge_phrases
from sam2_mcp_worker.checks.phrase_search import MOST_LOOKS
from sam2_mcp_worker.checks.phrase_tokens import tokens_of
from sam2_mcp_worker.checks.phrase_units import other_units
from sam2_mcp_worker.checks.reading import Reading, ReadLine, ReadPage, Source

DEPOSITS = (
    "이 보험계약은 예금자보호법에 따라 예금보험공사가 보호하되 보호 한도는 1인당 1억원이며 "
    "1억원을 초과하는 나머지 금액은 보호하지 않습니다"
)
LIMITED = "지급한도와 면책사항에 따라 보험금 지급이 제한될 수 있습니다"
WAITING = "보장개시일은 계약일부터 90일이 지난 날의 다음날이며 가입 후 1년 미만 진단 시 50%만 지급합니다"
INCREASE = "갱신 시 보험료가 인상될 수 있습니다"
RAISED = "이 상품은 갱신형으로 갱신 시 보험료가 인상될 수 있습니다"
VALID = "2026년 7월 1일부터 2027년 6월 30일까지 유효합니다"
LESS = "해약환급금은 납입한 보험료보다 적거나 없을 수 있습니다"
SOURCES: tuple[Source, ...] = ("text_layer", "ocr")


def judged(phrase: str, *texts: str, source: Source = "ocr") -> PhraseFinding:
    lines = tuple(
        ReadLine(text, source, (0.0, 20.0 * row, 400.0, 20.0 * row + 16), 12.0, 0.95)
        for row, text in enumerate(("꼭 알아두실 사항", *texts, "준법감시인 심의필 제2026-0412호"))
    )
    pages = (ReadPage(1, "done", lines, (), (800.0, 1000.0)),)
    return judge_phrases(judged_phrases([phrase]), Reading("pdf", "px", pages))[0]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    ("phrase", "old", "new", "said"),
    [
        (WAITING, "90일", "90개월", "90일 -> 90개월"),
        (WAITING, "90일", "90년", "90일 -> 90년"),
        (WAITING, "1년 미만", "1개월 미만", "1년 -> 1개월"),
        (WAITING, "50%", "50%p", "50% -> 50%p"),
        (WAITING, "50%", "50배", "50% -> 50배"),
        (WAITING, "1년 미만", "1년 이상", "미만 -> 이상"),
        (DEPOSITS, "1억원이며", "1억달러이며", "1억원 -> 1억달러"),
        (RAISED, "인상될", "인하될", "인상 -> 인하"),
    ],
)
def test_another_unit_and_an_opposite_are_altered(phrase: str, old: str, new: str, said: str, source: Source) -> None:
    finding = judged(phrase, phrase.replace(old, new), source=source)
    assert (finding.state, finding.differences) == ("altered", (said,))


def test_units_that_are_slips_of_one_another_or_names_of_one_count_are_no_difference() -> None:
    def differing(wanted: str, found: str, *, slips: bool) -> tuple[str, ...]:
        return other_units(wanted, tokens_of(wanted), found, tokens_of(found), slips=slips)

    assert differing("1억원 한도", "1억엔 한도", slips=False) == ("1억원 -> 1억엔",)
    assert differing("1억원 한도", "1억엔 한도", slips=True) == ()
    assert differing("3개월 이내", "3개 이내", slips=False) == ("3개월 -> 3개",)
    assert differing("3개월 이내", "3개 이내", slips=True) == ()
    assert differing("1인당 5회", "1명당 5번", slips=False) == ()
    assert differing("5% 이하가 아님", "5 이하가 아님", slips=False) == ()
    assert differing("5년", "6개월", slips=False) == ()  # told by the number


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    ("phrase", "old", "new"),
    [
        (LIMITED, "보험금", "보험료"),
        (LESS, "적거나", "많거나"),
        (WAITING, "계약일", "청약일"),
        (LIMITED, "있습니다", "있습니다만 당사는 예외입니다"),
        (DEPOSITS, "1억원", "壹億원"),
        (WAITING, "90일", "구십일"),
    ],
)
def test_another_word_a_sentence_taken_back_and_numbers_in_words_are_for_a_person(
    phrase: str, old: str, new: str, source: Source
) -> None:
    assert judged(phrase, phrase.replace(old, new), source=source).state == "review"


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    "shown",
    [
        "{} 라는 말은 사실이 아닙니다",
        "{}라는 말은 사실이 아닙니다",
        "{}.”라던 약속",
        '"{}"는 옛말',
        "“{}” 는 옛말",
        "「{}」은 옛말",
        "“{}”\n라고 하던 때는 지났습니다",
    ],
)
def test_a_sentence_that_is_quoted_to_deny_it_is_for_a_person(shown: str, source: Source) -> None:
    for phrase in (INCREASE, INCREASE + "."):
        assert judged(phrase, *shown.format(INCREASE).split("\n"), source=source).state == "review"


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    "shown", ["{}\n만 15세부터", "{} 고객센터", "“{}”\n만 15세부터", "{}. 만 15세부터", "「{}」", '"{}". 이 상품은']
)
def test_what_follows_a_sentence_does_not_take_it_back(shown: str, source: Source) -> None:
    assert judged(INCREASE, *shown.format(INCREASE).split("\n"), source=source).state == "present"


@pytest.mark.parametrize("source", SOURCES)
def test_places_of_another_wording_do_not_hide_the_own_one(source: Source) -> None:
    phrase = "보험계약 체결 전 상품설명서 및 약관을 반드시 확인하시기 바랍니다"
    other = "보험계약 청약 전 상품설명서 및 안내장을 반드시 확인하시기 바랍니다"
    own = "보험계약 체결 전 상품설명서 및 약관을 읽어 보시고 결정해 주세요"

    def states(*texts: str) -> list[str]:
        lines = tuple(
            ReadLine(text, source, (0.0, 20.0 * row, 400.0, 20.0 * row + 16)) for row, text in enumerate(texts)
        )
        pages = (ReadPage(1, "done", lines, (), (800.0, 2000.0)),)
        return [one.state for one in judge_phrases(judged_phrases([phrase, other]), Reading("pdf", "px", pages))]

    assert states(*[other] * 9, own) == states(own, *[other] * 40) == ["review", "present"]
    assert states(*[other] * 9, phrase) == ["present", "present"]
    assert states(*[other] * 9) == ["missing", "present"]
    assert states(*[other] * MOST_LOOKS) == ["missing", "present"]
    assert states(*[other] * (MOST_LOOKS + 1)) == ["review", "present"]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("mark", ["1)", "¹⁾", "²"])
def test_marks_of_footnotes_are_no_numbers(mark: str, source: Source) -> None:
    marked = DEPOSITS.replace("예금보험공사가", f"예금보험공사{mark}가")
    assert judged(DEPOSITS, marked, source=source).state == "present"


def test_numbers_in_brackets_are_no_marks_of_footnotes() -> None:
    assert [token.value for token in tokens_of("한도(최대50) 1억원")] == ["50", "100000000"]
    assert tokens_of("암진단비1) 3천만원")[0].value == "30000000"


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    ("phrase", "shown"),
    [
        ("최고 5천만원", "최고 5,000만원"),
        ("최고 5천만원", "최고 50,000,000원"),
        ("보호 한도 1억원", "보호 한도 100,000,000원"),
        (VALID, "2026.07.01부터 2027.06.30까지 유효합니다"),
        (VALID, "2026-07-01부터 2027-06-30까지 유효합니다"),
    ],
)
def test_numbers_and_dates_in_another_writing_are_not_missing(phrase: str, shown: str, source: Source) -> None:
    finding = judged(phrase, shown, source=source)
    assert finding.state == "review" and ("another way" in finding.reason or "look" in finding.reason)
    assert judged(phrase, shown.replace("2", "3").replace("5", "6").replace("1", "7"), source=source).state == "missing"


@pytest.mark.parametrize("source", SOURCES)
def test_lines_of_something_else_in_the_middle_alter_nothing_for_sure(source: Source) -> None:
    halves = DEPOSITS[:30], DEPOSITS[30:]
    assert judged(DEPOSITS, halves[0], "보험금 3,000만원", "월 12,300원", halves[1], source=source).state == "review"


def test_every_ending_of_a_denial_is_one() -> None:
    words = ("아닙니다", "아닌", "아닐", "아님", "아니며")
    assert {token.value for word in words for token in tokens_of(f"보호 대상이 {word}")} == {"아니"}
    shown = "이 상품은 예금자보호 대상이 아닙니다"
    assert judged("이 상품은 예금자보호 대상입니다", shown).state == "altered"


def test_of_many_places_some_are_told_and_all_are_counted() -> None:
    lines = tuple(ReadLine(LIMITED, "text_layer", (0.0, 40.0 * row, 400.0, 40.0 * row + 16), 12.0) for row in range(8))
    pages = tuple(ReadPage(number, "done", lines, (), (800.0, 1000.0)) for number in (1, 2))
    (finding,) = judge_phrases(judged_phrases([LIMITED]), Reading("pdf", "px", pages))
    assert (finding.state, finding.further_places, len(finding.elsewhere)) == ("present", 15, 8)


def test_a_line_of_few_letters_is_a_part_of_a_phrase_only_where_all_of_it_is() -> None:
    assert (line_weight("abcdefghij", "cde"), line_weight("abcdefghij", "xyz")) == (0.3, 0.0)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    "phrase", [WAITING, DEPOSITS, VALID, "최근 3개월 이내 입원한 분은 제외되며 이 상품은 예금이 아닙니다"]
)
def test_a_phrase_is_there_wherever_its_lines_end_and_with_signs_that_are_drawn_as_nothing(
    phrase: str, source: Source
) -> None:
    cuts = [cut for cut in range(1, len(phrase)) if not phrase[cut - 1 : cut + 1].isdigit()]
    states = {cut: judged(phrase, phrase[:cut], phrase[cut:], source=source).state for cut in cuts}
    assert {cut: state for cut, state in states.items() if state != "present"} == {}
    assert judged(phrase, "\u200b".join(phrase), source=source).state == "present"


def test_a_benefit_for_a_disadvantage_is_altered() -> None:
    notice = "기존 계약을 해지하고 새로운 계약을 체결할 경우 보장내용 축소 등 불이익이 생길 수 있습니다"
    assert judged(notice, notice.replace("불이익", "이익")).state == "altered"


@pytest.mark.parametrize("source", SOURCES)
def test_spaces_alone_alter_nothing_and_a_longer_number_does(source: Source) -> None:
    turned = "이 상품은 비갱신형 무배당 상품으로 1일부터 15일까지 청약할 수 있습니다"
    assert judged(turned, turned.replace(" ", ""), source=source).state == "present"
    assert judged(turned, turned.replace("15", "1 5"), source=source).state == "present"
    assert judged("1억원까지 보호하는 상품입니다", "11억원까지 보호하는 상품입니다", source=source).state != "present"


def test_numbers_in_another_writing_are_found_on_a_page_without_others() -> None:
    page = ReadPage(1, "done", (ReadLine("최고 5,000만원", "text"),))
    (finding,) = judge_phrases(judged_phrases(["최고 5천만원"]), Reading("text", "line", (page,)))
    assert finding.state == "review" and "another way" in finding.reason
