"""The approximate search against the textbook's table of edit distances."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.media.bit_search import approximate

letters = st.text(alphabet="abc가", max_size=40)


def edit_distance(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        last, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (a != b))
    return row[-1]


def fewest_errors(pattern: str, text: str) -> int:
    """Of the best place: a match may begin anywhere, so the first row of the table is zero."""
    row = list(range(len(pattern) + 1))
    best = row[-1]
    for char in text:
        last = row[0]
        for j, wanted in enumerate(pattern, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (wanted != char))
        best = min(best, row[-1])
    return best


@given(st.text(alphabet="abc가", min_size=1, max_size=9), letters, st.integers(0, 4))
def test_something_is_found_exactly_when_a_place_has_few_enough_errors(pattern: str, text: str, errors: int) -> None:
    found = approximate(pattern, text, errors)
    assert bool(found) == (len(pattern) > errors and fewest_errors(pattern, text) <= errors)


@given(st.text(alphabet="abc가", min_size=1, max_size=9), letters, st.integers(0, 4))
def test_each_place_is_as_far_from_the_pattern_as_it_says_and_places_do_not_overlap(
    pattern: str, text: str, errors: int
) -> None:
    found = approximate(pattern, text, errors)
    for place in found:
        assert edit_distance(pattern, text[place.start : place.end]) == place.errors <= errors
    for before, after in itertools.pairwise(found):
        assert before.end <= after.start


@given(st.text(alphabet="abc", min_size=3, max_size=9), letters, letters)
def test_every_exact_occurrence_is_covered_by_a_place(pattern: str, before: str, after: str) -> None:
    found = approximate(pattern, before + pattern + after, 1)
    start, end = len(before), len(before) + len(pattern)
    assert any(place.start < end and place.end > start for place in found)


def test_the_better_of_two_overlapping_places_is_taken() -> None:
    assert [(place.start, place.end, place.errors) for place in approximate("abcdef", "xxabcdefxabcxef", 1)] == [
        (2, 8, 0),
        (9, 15, 1),
    ]
