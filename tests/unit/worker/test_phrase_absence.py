"""What was not read, and which phrases it may hide."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.checks.phrase_absence import Absence
from sam2_mcp_worker.checks.reading import Reading, ReadLine, ReadPage, Unit, Unread

PHRASE = "보험금 지급이 제한될 수 있습니다"  # 14 letters without spaces
TEXT = (ReadLine("상품 안내", "ocr"),)


def page(number: int = 1, *unread: Unread, lines: tuple[ReadLine, ...] = TEXT) -> ReadPage:
    return ReadPage(number, "done", lines, unread)


def why(*pages: ReadPage, unit: Unit = "px") -> str:
    return Absence(Reading("pdf", unit, pages)).why_unsure(PHRASE)


def ink(width: float, height: float) -> Unread:
    return Unread("ink that was not read", (0.0, 0.0, width, height))


def test_over_a_whole_reading_absence_is_sure() -> None:
    assert why(page()) == ""
    assert why(page(), page(2, lines=())) == ""


def test_pages_that_failed_or_were_not_reached_may_hold_it() -> None:
    pages = [page(), ReadPage(2, "failed"), *(ReadPage(number, "unreached") for number in (3, 4, 5, 7))]
    assert why(*pages) == "page 2 could not be read; pages 3-5, 7 not reached yet"


@pytest.mark.parametrize(
    ("unit", "unread", "hides"),
    [
        ("px", ink(6, 6), False),  # room for two letters
        ("px", ink(60, 6), True),  # for twenty
        ("pt", ink(3, 2), False),
        ("pt", ink(30, 6), True),
        ("px", Unread("unknown place"), True),
        ("line", Unread("cut off", (0, 0, 1, 1)), True),
        ("s", Unread("noise", start_s=3.0, end_s=3.1), False),
        ("s", Unread("noise", start_s=3.0, end_s=5.0), True),
    ],
)
def test_what_is_unread_hides_a_phrase_only_where_it_has_room_for_it(unit: Unit, unread: Unread, hides: bool) -> None:
    said = why(page(1, unread), unit=unit)
    assert bool(said) == hides
    assert not said or said == f"page 1 read in part: {unread.reason}"


def test_small_unread_parts_count_together_and_with_the_next_page() -> None:
    assert why(page(1, ink(6, 6))) == ""
    assert why(page(1, *[ink(6, 6)] * 3)).startswith("page 1 read in part")
    assert why(page(1, ink(6, 6)), page(2, ink(6, 6))).startswith("page 1 read in part")


def test_a_page_of_syllables_that_no_text_uses_was_read_too_badly() -> None:
    bad = tuple(ReadLine(text, "ocr") for text in ("뷁쀍뎖 보험금을", "지급하지 뙗늚"))
    assert why(page(1, lines=bad)).startswith("page 1 read too badly")
    assert why(page(1, lines=(ReadLine("똠양꿍 세트 안내", "ocr"),))) == ""  # a name
    assert why(page(1, lines=(ReadLine("terms apply", "ocr"),))) == ""


def test_a_clean_text_layer_does_not_vouch_for_a_picture_that_was_misread() -> None:
    layer = tuple(ReadLine("보험금 지급에 관한 안내를 꼭 읽어 보시기 바랍니다", "text_layer") for _ in range(20))
    misread, clean = ReadLine("둷쯇 봟험캽쇵 쐒놂햚", "ocr"), ReadLine("보험상품 안내", "ocr")
    assert why(page(1, lines=(*layer, misread))).startswith("page 1 read too badly")
    assert why(page(1, lines=(*layer, clean))) == ""


@given(st.lists(st.sampled_from(["", " ", "\u200b", "\t"]), max_size=4))
def test_without_a_letter_nothing_was_read(texts: list[str]) -> None:
    assert why(page(1, lines=tuple(ReadLine(text, "text") for text in texts))) == "no text was read at all"
