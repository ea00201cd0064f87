"""Which of two readings of figures and signs is kept, without any network."""

from __future__ import annotations

import numpy as np
import pytest

from sam2_mcp_worker.engines.sign_reader import Run, better_reading, latin_line, runs_without_hangul
from sam2_mcp_worker.media.text_height import Symbol

SURE = 0.99


def signs(text: str, probability: float = SURE) -> list[tuple[str, float]]:
    return [(character, probability) for character in text]


def symbols(text: str) -> list[Symbol]:
    """Every character 20 px wide; a space starts a word."""
    found, x, fresh = [], 0, False
    for character in text:
        if character == " ":
            fresh = True
        else:
            found.append(Symbol(character, x, x + 20, starts_word=fresh))
            fresh = False
        x += 20
    return found


@pytest.mark.parametrize(
    ("first", "second", "alone", "kept"),
    [
        ("2.000", "2,000", False, "2,000"),  # a comma taken for a full stop
        ("1112%", "1.12%", True, "1.12%"),  # a full stop taken for a figure
        ("15", "1", False, None),  # the cut tore a figure off: beside Hangul no figure may change
        ("5,000", "5,0000", False, None),
        ("31,895", "31,895,", False, "31,895"),  # a splinter of the Hangul that follows
        ("-2", "·2", False, "·2"),
        ("100", "100川外", False, "100"),
        (r"(\\\.0200-146.6%300010)", "(www,daon-life,example)", False, "(www.daon-life.example)"),
        ("02", "①", False, "①"),
        ("@", "①", True, "①"),
        ("3", "8", True, None),  # a single figure is never changed
    ],
)
def test_the_surer_reading_is_kept_within_what_it_may_change(
    first: str, second: str, alone: bool, kept: str | None
) -> None:
    assert better_reading(first, signs(second), stands_alone=alone) == kept


def test_an_unsure_second_reading_changes_nothing() -> None:
    assert better_reading("2.000", signs("2,000", 0.7), stands_alone=False) is None
    doubtful_comma = [("2", SURE), (",", 0.6), *signs("000")]
    assert better_reading("2.000", doubtful_comma, stands_alone=False) is None
    assert better_reading("2.000", [], stands_alone=True) is None
    assert better_reading("2.000", signs("川"), stands_alone=True) is None


def test_runs_are_words_or_parts_of_words_without_hangul() -> None:
    text = symbols("월 12,000원 (1588-0000) 15세 3 A형")
    runs = runs_without_hangul(text)
    assert ["".join(s.text for s in text[run.first : run.last + 1]) for run in runs] == ["12,000", "(1588-0000)", "3"]
    assert runs[0] == Run(1, 6)


def line_of(ink: list[tuple[int, int]], width: int) -> np.ndarray:
    gray = np.full((48, width), 255, np.uint8)
    for start, end in ink:
        gray[10:38, start:end] = 0
    return gray


def test_a_line_in_other_letters_is_taken_as_a_whole() -> None:
    gray = line_of([(10, 30), (40, 60), (70, 90)], 100)
    second = [("K", 0.9, 20), ("B", 0.9, 50), ("S", 0.96, 80)]
    text, confidence = latin_line(gray, second, sure=0.8) or ("", 0.0)
    assert text == "KBS"
    assert confidence == pytest.approx(0.92)
    assert latin_line(gray, second, sure=0.95) is None


def test_a_line_with_ink_that_no_letter_stands_for_is_not_taken_as_a_whole() -> None:
    gray = line_of([(10, 30), (40, 60), (70, 90), (100, 140)], 150)  # the last is a Hangul, passed over
    second = [("K", 0.99, 20), ("B", 0.99, 50), ("S", 0.99, 80)]
    assert latin_line(gray, second, sure=0.8) is None
    assert latin_line(gray, [], sure=0.8) is None


def test_ideographs_and_bare_figures_are_not_a_line_in_other_letters() -> None:
    gray = line_of([(10, 30), (40, 60)], 70)
    assert latin_line(gray, [("川", 0.99, 20), ("B", 0.99, 50)], sure=0.8) is None
    assert latin_line(gray, [("1", 0.99, 20), ("2", 0.99, 50)], sure=0.8) is None
