"""When print counts as still readable after it was blurred."""

from __future__ import annotations

import pytest

from sam2_mcp_worker.engines.ports import TextLine
from sam2_mcp_worker.pipelines.redact_legible import still_legible


def lines(*texts: str) -> list[TextLine]:
    return [TextLine(text, (0, 0, 9, 9), 12.0, 0.9) for text in texts]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["고객명 홍길동"], ["고객명 홍길동"]),
        (["고객명 홍길동"], ["고객멍 홍길둥"]),
        (["first", "Nightingale"], ["other", "night", "ingale"]),
    ],
)
def test_a_line_that_is_read_again_but_for_a_third_of_its_letters_is_legible(
    before: list[str], after: list[str]
) -> None:
    assert still_legible(lines(*before), lines(*after))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["고객명 홍길동"], []),
        (["고객명 홍길동"], ["~- ^^ ,."]),
        (["고객명 홍길동"], ["서울시 강남구"]),
        ([], ["홍길동"]),
        (["A"], ["A"]),
    ],
)
def test_what_shares_less_is_not(before: list[str], after: list[str]) -> None:
    assert not still_legible(lines(*before), lines(*after))
