"""Figures with what they are about: in lines of text, in lines on a page, in tables."""

from __future__ import annotations

from sam2_mcp_worker.checks.figures import Figure, figures_of, figures_of_table
from sam2_mcp_worker.checks.figures.words import contradict, covered, tells, words_of
from sam2_mcp_worker.checks.reading import Box, Reading, ReadLine, ReadPage, Source
from sam2_mcp_worker.checks.tables import Table


def reading(*lines: str) -> Reading:
    return Reading("text", "line", (ReadPage(1, "done", tuple(ReadLine(line, "text") for line in lines)),))


def page(*lines: tuple[str, Box], source: Source = "text_layer", confidence: float | None = None) -> Reading:
    read = tuple(ReadLine(text, source, box_xyxy=box, confidence=confidence) for text, box in lines)
    return Reading("pdf", "pt", (ReadPage(3, "done", read),))


def one(text: str, number: int = 0) -> Figure:
    return figures_of(reading(text))[number]


def words(figure: Figure) -> set[str]:
    return {word for phrase in figure.label for word in words_of(phrase)}


def test_a_figure_is_named_by_the_clause_before_it_and_a_value_begins_the_next_clause() -> None:
    first, second = figures_of(reading("암진단비 3천만원 뇌출혈진단비 2천만원"))
    assert (words(first), words(second)) == ({"암진단비"}, {"뇌출혈진단비"})
    assert words(one("보장이 든든합니다. 암진단비: 3천만원")) == {"암진단비"}
    assert words(one("상해사망, 암진단비 3천만원", 0)) == {"암진단비"}


def test_conditions_are_part_of_the_clause_and_written_in_one_form() -> None:
    premium = one("40세 남성, 월 12,300원", 1)
    assert words(premium) == {"40세", "남성"} and premium.conditions == ("40세",)
    year, months = one("암진단비 1년 이내 50%", 1), one("암진단비 12개월 이내 50%", 1)
    assert words(year) == words(months) == {"암진단비", "12개월이하"}


def test_an_amount_that_is_given_as_a_condition_ends_no_clause() -> None:
    rate = one("1천만원 이상 가입 시 2% 할인", 1)
    assert "10000000원이상" in words(rate) and rate.conditions == ("10000000원이상",)
    assert one("가입금액 1천만원 기준 월 5,000원", 1).conditions == ("10000000원",)
    assert one("암진단비 3천만원 월 5,000원", 1).conditions == ()


def test_a_bracket_behind_a_figure_holds_its_conditions_and_one_around_it_is_named_from_in_front() -> None:
    premium, age = figures_of(reading("월보험료 31,820원 (40세 여성)"))
    assert premium.around == ("40세 여성",) and premium.per == ("월",) and premium.conditions == ("40세",)
    assert words(age) == {"보험료", "여성"}
    cut = figures_of(reading("암진단비 3천만원 (1년 이내 50%)"))[2]
    assert words(cut) == {"암진단비", "12개월이하"}
    assert words(one("보험료(원) 12,300")) == {"보험료"} and one("보험료(원) 12,300").unit == "원"


def test_what_stands_right_behind_a_length_says_what_it_is_one_of() -> None:
    pay, until = figures_of(reading("암보험 20년납 100세 만기"))
    assert words(pay) == {"납입기간", "암보험"} and words(until) == {"보험기간", "암보험"}
    assert pay.conditions == until.conditions == ()


def test_words_behind_name_a_figure_that_nothing_names_in_front() -> None:
    assert words(one("만 20~60세 가입 가능")) == {"가입"}
    assert one("3천만원 암진단비 지급").label[0] == "암진단비 지급"


def test_a_line_above_names_a_figure_only_from_afar_and_a_line_with_values_names_none() -> None:
    above = figures_of(reading("암진단비", "3천만원"))[0]
    assert (words(above), above.near) == ({"암진단비"}, False)
    assert figures_of(reading("암진단비 1천만원", "3천만원"))[1].label == ()
    assert figures_of(reading("3천만원"))[0].label == ()


def test_on_a_page_the_text_to_the_left_names_a_figure_and_else_the_text_above() -> None:
    left = figures_of(
        page(
            ("암진단비", (10, 100, 60, 112)),
            ("3천만원 지급", (80, 101, 150, 113)),
            ("소액암진단비", (10, 120, 70, 132)),
            ("500만원", (80, 121, 140, 133)),
            ("가입금액", (80, 80, 140, 92)),
        )
    )
    assert [words(figure) for figure in left] == [{"암진단비"}, {"소액암진단비"}]
    assert all(figure.near and figure.place.page == 3 and figure.place.line is None for figure in left)
    above = figures_of(page(("암진단비", (10, 100, 60, 112)), ("3천만원", (10, 115, 90, 135))))[0]
    assert (words(above), above.near) == ({"암진단비"}, False)
    far = figures_of(
        page(("암진단비", (10, 10, 60, 22)), ("3천만원", (10, 115, 90, 135)), ("오늘", (300, 116, 330, 134)))
    )
    assert far[0].label == ()
    named = figures_of(page(("암진단비", (10, 90, 60, 102)), ("20~60세 가입 가능", (10, 105, 90, 117))))[0]
    assert words(named) == {"가입"} and named.near


def test_what_ocr_reads_again_of_a_text_layer_counts_once_and_another_value_stays() -> None:
    box = (10.0, 100.0, 90.0, 112.0)
    layer = ReadLine("암진단비 3천만원", "text_layer", box_xyxy=box)
    for text, count in (("암 진단비 3천만원", 1), ("암진단비 8천만원", 2)):
        again = ReadLine(text, "ocr", box_xyxy=(11, 101, 91, 113), confidence=0.9)
        found = figures_of(Reading("pdf", "pt", (ReadPage(1, "done", (layer, again)),)))
        assert len(found) == count
    elsewhere = ReadLine("암진단비 3천만원", "ocr", box_xyxy=(11, 301, 91, 313), confidence=0.9)
    assert len(figures_of(Reading("pdf", "pt", (ReadPage(1, "done", (layer, elsewhere)),)))) == 2


def test_a_reading_that_is_not_certain_is_told() -> None:
    box = (10.0, 100.0, 90.0, 112.0)
    assert figures_of(page(("암진단비 3천만원", box), source="ocr", confidence=0.95))[0].unsure == ""
    assert figures_of(page(("암진단비 3천만원", box), source="ocr", confidence=0.5))[0].unsure
    assert figures_of(page(("암진단비 3천만원", box), source="ocr"))[0].unsure
    heard = ReadLine("암진단비 삼천만 원", "speech", start_s=1.5, end_s=3.0)
    figure = figures_of(Reading("sound", "s", (ReadPage(1, "done", (heard,)),)))[0]
    assert figure.unsure and (figure.place.start_s, figure.place.end_s) == (1.5, 3.0)
    broken, rest = figures_of(reading("보험금은 150,000,", "000원입니다"))
    assert broken.doubt and rest.text == "000원"


def test_a_line_of_a_few_digits_is_a_mark_and_no_figure() -> None:
    assert figures_of(reading("12")) == () and figures_of(reading("- 3 -")) == ()
    assert [figure.value for figure in figures_of(reading("23,400"))] == ["23400"]


def test_pages_that_were_not_read_have_no_figures() -> None:
    assert figures_of(Reading("pdf", "pt", (ReadPage(1, "failed"), ReadPage(2, "unreached")))) == ()


def test_long_lines_are_read_whole_and_numbers_stay_in_one_piece() -> None:
    text = " ".join(f"진단비 {index + 1},000만원" for index in range(200))
    found = figures_of(reading(text))
    assert [int(figure.low) for figure in found] == [(index + 1) * 10_000_000 for index in range(200)]
    tight = figures_of(reading("가" * 395 + "3,000만원" + "가" * 100))
    assert [figure.value for figure in tight] == ["30000000"]


BENEFITS = Table(
    "보장.xlsx",
    (
        ("담보", "지급사유", "가입금액(만원)", "월보험료(원)"),
        ("암진단비", "암보장개시일 이후 암으로 진단확정된 경우 (최초 1회한)", "3,000", "12,300"),
        ("갱신형", "갱신형", "갱신형", "갱신형"),
        ("소액암진단비", "소액암 진단확정", "500", ""),
    ),
    sheet="보장내용",
    first_row=4,
    first_column=2,
)


def test_a_cell_is_named_by_its_row_and_column_and_takes_the_unit_of_a_header() -> None:
    found = {figure.place.cell: figure for figure in figures_of_table(BENEFITS)}
    amount, premium, small = found["D5"], found["E5"], found["D7"]
    assert (amount.value, amount.unit, amount.label) == ("30000000", "원", ("암진단비", "가입금액(만원)"))
    assert (premium.value, premium.per, words(premium)) == ("12300", ("월",), {"암진단비", "보험료"})
    assert amount.place.sheet == "보장내용" and "보장내용" in amount.around
    assert "갱신형" in small.label and "갱신형" not in amount.label
    assert (found["C5"].value, found["C5"].unit) == ("1", "회")


def test_ages_in_headers_are_conditions_and_pairs_of_name_and_value_have_no_headers() -> None:
    rates = Table(
        "료.csv", (("구분", "30세", "40세"), ("남성", "9,800원", "12,300원"), ("여성", "8,700원", "10,100원"))
    )
    found = {figure.place.cell: figure for figure in figures_of_table(rates)}
    assert found["C2"].label == ("남성", "40세") and found["B3"].label == ("여성", "30세")
    pairs = Table("조건.csv", (("가입나이", "20~60세"), ("납입기간", "20년")))
    assert [(figure.value, words(figure)) for figure in figures_of_table(pairs)] == [
        ("20~60", {"가입"}),
        ("20", {"납입기간"}),
    ]


def test_the_unit_of_a_title_is_that_of_amounts_and_of_nothing_else() -> None:
    rows = (("담보", "가입금액", "가입나이", "횟수"), ("암진단비", "3,000", "60", "2"))
    table = Table("보장.csv", rows, title="보장내용 (단위: 만원)", page=2, box_xyxy=(0, 0, 9, 9))
    found = figures_of_table(table)
    assert [(figure.value, figure.unit) for figure in found] == [("30000000", "원"), ("60", ""), ("2", "")]
    assert found[0].place.page == 2 and found[0].place.box_xyxy == (0, 0, 9, 9)
    noted = Table("보장.csv", (("(단위: 천원)", ""), ("담보", "가입금액"), ("암진단비", "3,000")))
    assert [figure.value for figure in figures_of_table(noted)] == ["3000000"]


def test_titles_are_weak_context_and_their_conditions_hold_for_all_figures_below() -> None:
    rows = (
        ("환급금 예시", ""),
        ("40세 남자 기준", ""),
        ("경과 기간", "해약환급금"),
        ("1년", "10만원"),
        ("3년", "50만원"),
    )
    found = {figure.place.cell: figure for figure in figures_of_table(Table("환급.xlsx", rows))}
    assert found["B4"].label == ("12개월", "해약환급금") and found["B4"].conditions == ("40세",)
    assert found["B4"].around == ("환급금 예시", "40세 남자 기준")


def test_headers_of_two_levels_name_together_and_a_section_names_what_is_below_it() -> None:
    rows = (
        ("담보", "기본형", "기본형", "고급형"),
        ("담보", "30세", "40세", "30세"),
        ("암진단비", "1만원", "2만원", "3만원"),
        ("갱신형 특약", "", "", ""),
        ("수술비", "4만원", "5만원", "6만원"),
    )
    found = {figure.place.cell: figure for figure in figures_of_table(Table("료.csv", rows))}
    assert found["C3"].label == ("암진단비", "기본형", "40세")
    assert found["D5"].label == ("수술비", "갱신형 특약", "고급형", "30세")


def test_a_cell_whose_display_is_rounded_is_not_certain() -> None:
    table = Table("율.xlsx", (("이율", "2.5%"),), doubtful=frozenset({(0, 1)}))
    assert figures_of_table(table)[0].unsure
    assert figures_of_table(Table("빈.csv", ())) == () and figures_of_table(Table("빈.csv", (("",), ()))) == ()


def test_words_are_compared_whole_and_whatever_their_spaces() -> None:
    assert words_of("든든하게 보장하는 암 진단비는") == ("암", "진단비")
    assert covered(("암", "진단비"), ("암진단비",)) == [True, True]
    assert covered(("암진단비",), ("암", "진단비")) == [True]
    assert covered(("소액암진단비",), ("암진단비",)) == [False]
    assert covered(("질병입원일당", "입원"), ("질병입원일당",)) == [True, True]
    assert words_of("진단급여금") == words_of("진단비") and words_of("가입연령") == words_of("가입나이")


def test_contexts_that_name_different_ones_of_a_kind_contradict_each_other() -> None:
    assert contradict(("40세", "남성"), ("30세", "남성")) and contradict(("남성",), ("여성", "40세"))
    assert contradict(("실속형",), ("고급형",)) and not contradict(("40세", "남성"), ("40세",))
    assert not contradict(("암진단비",), ("40세",))


def test_one_choice_does_not_say_which_figure_is_meant() -> None:
    assert not tells(("고급형",)) and not tells(("30세",)) and not tells(())
    assert tells(("30세", "여성")) and tells(("암진단비",)) and tells(("고급형", "암진단비"))
