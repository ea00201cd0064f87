"""How wide text runs is told well enough to place its characters and to miss words."""

from __future__ import annotations

import pytest
from tests.bench.ocr.pages import load_font

from sam2_mcp_worker.media.text_widths import symbols_along, width_em


@pytest.mark.parametrize("font", ["NanumGothic", "NanumMyeongjoBold", "NanumSquareRoundR", "NanumBarunGothic"])
@pytest.mark.parametrize(
    "text",
    [
        "해약환급금이 납입보험료보다 적거나 없을 수 있습니다",
        "준법감시인 심의필 제2026-3567호 (2026.07.01)",
        "DAON LIFE Insurance 1588-0000",
        "※ 월 보험료 39,800원 (40세 남자, 20년납)",
    ],
)
def test_widths_are_those_of_real_faces_within_a_sixth(font: str, text: str) -> None:
    assert width_em(text) == pytest.approx(load_font(font, 100).getlength(text) / 100, rel=1 / 6)


def test_characters_stand_in_order_where_a_face_puts_them() -> None:
    text = "보험료 12% (A)"
    font = load_font("NanumGothic", 100)
    whole = font.getlength(text)
    symbols = symbols_along(text, round(whole))
    assert "".join((" " if s.starts_word else "") + s.text for s in symbols) == text
    at = 0
    for symbol in symbols:
        at = text.index(symbol.text, at)
        assert symbol.x0 == pytest.approx(font.getlength(text[:at]), abs=40)
        assert symbol.x0 <= symbol.x1


@pytest.mark.parametrize("text", ["", "   "])
def test_text_without_characters_has_no_symbols(text: str) -> None:
    assert symbols_along(text, 100) == []
