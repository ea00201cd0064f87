"""What was compared is kept for the next call, and changes no answer."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sam2_mcp_worker.checks.phrases import Phrase, PhraseMatch, checked_phrases, match_phrase
from sam2_mcp_worker.engines.ports import TextLine
from sam2_mcp_worker.pipelines import phrase_lines
from sam2_mcp_worker.pipelines.frame_looks import FrameLook
from sam2_mcp_worker.pipelines.phrase_lines import FrameLines

TEXTS = ["월 보험료 9,900원", "월 보험료 9,800원", "보험금 지급이", "제한될 수 있습니다", "coins", "보험료 9.900원"]
PHRASES = checked_phrases(["월 보험료 9,900원", "보험금 지급이 제한될 수 있습니다"])


def looks(count: int) -> list[FrameLook]:
    lines = [TextLine(text, (0, 20 * row, 200, 20 * row + 16), 14.0, 0.9) for row, text in enumerate(TEXTS)]
    return [FrameLook(float(number), "grid", lines=tuple(lines[: 1 + number % len(lines)])) for number in range(count)]


def answers() -> list[object]:
    frames = FrameLines(looks(12), PHRASES)
    return [(frames.matches(index), frames.closest(index)) for index in range(len(PHRASES))]


@pytest.mark.parametrize("most", [250_000, 2])
def test_a_repeated_search_says_the_same_and_compares_nothing_again_while_there_is_room(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(phrase_lines, "_MOST_ENTRIES", most)
    phrase_lines._memory_of.cache_clear()
    first = answers()
    compared: list[object] = []

    def compare(phrase: Phrase, lines: Sequence[str]) -> PhraseMatch:
        compared.append(lines)
        return match_phrase(phrase, lines)

    monkeypatch.setattr(phrase_lines, "match_phrase", compare)
    assert answers() == first
    assert bool(compared) == (most == 2)
    assert {match.state for match, _ in FrameLines(looks(12), PHRASES).matches(0)} == {"present"}
