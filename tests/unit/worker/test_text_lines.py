"""Glyphs to lines, and boxes to reading order: pure functions."""

from __future__ import annotations

import math
import random

from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.media.reading_order import reading_order
from sam2_mcp_worker.media.text_lines import Glyph, build_lines

EM = 10.0


def place(text: str, x: float, y: float, angle: float = 0.0, em: float = EM, pitch: float = 0.6) -> list[Glyph]:
    """Glyphs of a line that starts at x, y and runs at an angle; their boxes are upright, as pdfium gives them."""
    ux, uy = math.cos(angle), math.sin(angle)
    glyphs = []
    for n, letter in enumerate(text):
        ox, oy = x + n * pitch * em * ux, y + n * pitch * em * uy
        along = [0.0, pitch * em]
        across = [-0.95 * em, 0.25 * em]  # 1.2 em high, y down
        xs = [ox + a * ux - c * uy for a in along for c in across]
        ys = [oy + a * uy + c * ux for a in along for c in across]
        glyphs.append(Glyph(letter, (min(xs), min(ys), max(xs), max(ys)), (ox, oy), (ux, uy), em))
    return glyphs


def texts(glyphs: list[Glyph]) -> list[str]:
    return [line.text for line in build_lines(glyphs)]


WORDS = st.text("abc가나다ㄱ1.", min_size=1, max_size=6)


@given(st.lists(WORDS, min_size=1, max_size=5), st.floats(-math.pi, math.pi))
def test_a_line_stays_one_line_at_any_angle(words: list[str], angle: float) -> None:
    text = " ".join(words)
    assert texts(place(text, 300, 300, angle)) == [text]


@given(st.lists(st.lists(WORDS, min_size=1, max_size=4).map(" ".join), min_size=1, max_size=6), st.randoms())
def test_no_letter_is_lost_or_doubled_in_whatever_order_lines_are_drawn(lines: list[str], rng: random.Random) -> None:
    numbered = list(enumerate(lines))
    rng.shuffle(numbered)
    glyphs = [glyph for n, line in numbered for glyph in place(line, 50, 50 + 2 * EM * n)]
    assert texts(glyphs) == lines


@given(st.lists(st.integers(0, 30), min_size=1, max_size=20), st.randoms())
def test_glyphs_strewn_over_a_page_are_all_kept(cells: list[int], rng: random.Random) -> None:
    glyphs = [glyph for cell in set(cells) for glyph in place("x", 40 * (cell % 6), 40 * (cell // 6))]
    rng.shuffle(glyphs)
    assert "".join(texts(glyphs)).replace(" ", "").count("x") == len(set(cells))


def test_a_wide_gap_is_a_space_and_a_wider_one_another_line() -> None:
    near = place("ab", 0, 50) + place("cd", 0.6 * EM * 2 + 0.4 * EM, 50)
    assert texts(near) == ["ab cd"]
    far = place("ab", 0, 50) + place("cd", 0.6 * EM * 2 + 2 * EM, 50)
    assert texts(far) == ["ab", "cd"]


def test_a_superscript_stays_in_its_line_and_the_next_line_does_not() -> None:
    assert texts(place("x", 0, 50) + place("2", 6, 46, em=6)) == ["x2"]
    assert texts(place("x", 0, 50) + place("y", 6, 62)) == ["x", "y"]


def test_words_printed_twice_a_hair_apart_are_one() -> None:
    assert texts(place("bold", 0, 50) + place("bold", 0.4, 50)) == ["bold"]
    assert texts(place("bobo", 0, 50)) == ["bobo"]


def test_lines_of_white_space_vanish() -> None:
    assert texts(place("   ", 0, 50)) == []
    assert texts([]) == []


def test_two_glyphs_of_a_size_make_it_the_smallest() -> None:
    (line,) = build_lines(place("big", 0, 50, em=20) + place("(tiny)", 40, 50, em=5))
    assert (line.size_pt, line.min_size_pt) == (5, 5)
    (line,) = build_lines(place("bigger", 0, 50, em=20) + place("*", 75, 50, em=5))
    assert (line.size_pt, line.min_size_pt) == (20, 20)


BOXES = st.lists(
    st.tuples(st.integers(0, 500), st.integers(0, 500), st.integers(0, 300), st.integers(0, 30)).map(
        lambda b: (float(b[0]), float(b[1]), float(b[0] + b[2]), float(b[1] + b[3]))
    ),
    max_size=40,
)


@given(BOXES)
def test_the_reading_order_holds_every_box_once(boxes: list[tuple[float, float, float, float]]) -> None:
    assert sorted(reading_order(boxes)) == list(range(len(boxes)))


@given(BOXES, st.integers(1, 7))
def test_the_reading_order_does_not_depend_on_the_unit(boxes: list[tuple[float, float, float, float]], k: int) -> None:
    scale = 2.0**k
    assert reading_order(boxes) == reading_order([tuple(side * scale for side in box) for box in boxes])  # type: ignore[misc]


def test_tables_are_read_row_by_row() -> None:
    cells = [(x, y, x + 40.0, y + 10.0) for y in (0.0, 20.0, 40.0) for x in (0.0, 100.0, 200.0)]
    assert reading_order(cells) == list(range(9))


def test_running_text_is_read_column_by_column_under_its_headline() -> None:
    headline = (0.0, 0.0, 420.0, 20.0)
    left = [(0.0, y, 200.0, y + 10.0) for y in (40.0, 54.0, 68.0)]
    right = [(220.0, y, 420.0, y + 10.0) for y in (40.0, 54.0, 68.0)]
    footer = (0.0, 100.0, 420.0, 108.0)
    mixed = [headline, *(box for pair in zip(left, right, strict=True) for box in pair), footer]
    assert [mixed[i] for i in reading_order(mixed)] == [headline, *left, *right, footer]


def test_a_thousand_lines_are_ordered_without_deep_recursion() -> None:
    boxes = [(0.0, 12.0 * n, 300.0, 12.0 * n + 10) for n in range(2000)]
    assert reading_order(boxes[::-1]) == list(range(1999, -1, -1))
