"""Phrases over page breaks, with what stands at the foot and the head of pages."""

from __future__ import annotations

import pytest

from sam2_mcp_worker.pipelines.redact_page_breaks import over_page_break
from sam2_mcp_worker.pipelines.redact_phrases import ReadLine


def page(*texts: str) -> list[ReadLine]:
    return [ReadLine(text, (0, 40 * row, 400, 40 * row + 30), exact=True) for row, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        (["for Hong"], ["Gildong only"], ((0,), (0,))),
        (["one", "for Hong", "- 7 -"], ["Gildong only", "two"], ((1,), (0,))),
        (["one", "for Hong", "note", "- 7 -"], ["Title", "Section", "Gildong only"], ((1,), (2,))),
        (["for Ho", "ng"], ["Gil", "dong only"], ((0, 1), (0, 1))),
        (["for Hong Gil-"], ["dong only"], ((0,), (0,))),
    ],
)
def test_both_halves_are_told(
    before: list[str], after: list[str], lines: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    (found,) = over_page_break(["Hong Gildong"], page(*before), page(*after))
    assert (found.before, found.after) == lines


def test_phrases_of_one_page_and_other_words_are_not_told() -> None:
    assert over_page_break(["Hong Gildong"], page("Hong Gildong"), page("Hong Gildong")) == []
    assert over_page_break(["Hong Gildong"], page("Hong"), page("Gil is")) == []
    assert over_page_break(["Hong Gildong"], [], page("Hong Gildong")) == []
