"""What is said of a transcription beside its words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sam2_mcp_worker.media.audio import SoundFacts, SoundStretch
from sam2_mcp_worker.pipelines.hear_piece import HeardPiece
from sam2_mcp_worker.pipelines.listening import Listening
from sam2_mcp_worker.pipelines.speech_notes import engine_notes, file_notes, languages_of
from sam2_mcp_worker.pipelines.transcript import (
    MAX_LISTED_SPANS,
    MAX_REASON_CHARS,
    Said,
    SoundSpan,
    listed,
    total_s,
)

FACTS = SoundFacts(0.0, 30.0, "aac", "mov", 2, 48_000, None, 1, 1, False, None)


def piece(start_s: float, *, language: str | None = None, stood_in: str = "", timed: bool = True) -> HeardPiece:
    said = (Said(start_s, start_s + 2, "words"),)
    spans = (SoundSpan(start_s, start_s + 2, "heard"),)
    return HeardPiece(said, spans, "local", language=language, stood_in=stood_in, timed=timed)


def test_an_ordinary_file_heard_by_the_first_engine_needs_no_notes() -> None:
    assert file_notes(None, Listening(FACTS, 0.0, 30.0, range(1))) == ()
    assert engine_notes([piece(0.0), piece(5.0)]) == ()


@pytest.mark.parametrize(
    ("facts", "asked_end_s", "goes_on", "words"),
    [
        (replace(FACTS, tracks=3, track=2), None, False, "3 sound tracks; track 2"),
        (replace(FACTS, stated_end_s=90.0), None, False, "was cut off"),
        (replace(FACTS, stated_end_s=90.0, container="avi"), None, False, "behind the damage are off"),
        (FACTS, None, True, "goes on behind 30.0 s"),
        (FACTS, 45.0, False, "ends at 30.000 s, before end_s"),
    ],
)
def test_what_the_file_is_otherwise_is_said(
    facts: SoundFacts, asked_end_s: float | None, goes_on: bool, words: str
) -> None:
    listening = Listening(facts, 0.0, 30.0, range(1))
    listening.stretches[0] = SoundStretch(0, 0.0, 30.0, (), (), (), goes_on=goes_on)
    [note] = file_notes(asked_end_s, listening)
    assert words in note


def test_who_stood_in_is_said_once_for_each_reason_with_the_part_that_it_heard() -> None:
    heard = [piece(1.0, stood_in="busy"), piece(9.0), piece(20.0, stood_in="busy"), piece(40.0, stood_in="cap")]
    notes = engine_notes(heard)
    assert notes[0] == "local heard 2 of the pieces from 1.0 s to 22.0 s in place of the first engine (busy)"
    assert len(notes) == 2 and "(cap)" in notes[1]


def test_segments_that_span_their_pieces_are_said_to() -> None:
    assert "no times" in engine_notes([piece(0.0), piece(5.0, timed=False)])[0]


def test_the_language_that_was_spoken_longest_comes_first() -> None:
    heard = [piece(0.0, language="ko"), piece(5.0, language="en"), piece(9.0, language="en"), piece(12.0)]
    assert languages_of(heard) == ("en", "ko")


def test_only_some_spans_are_listed_with_reasons_of_a_clause() -> None:
    spans = [SoundSpan(number, number + 1, "failed", "because " * 60) for number in range(50)]
    named = listed(spans)
    assert len(named) == MAX_LISTED_SPANS and {len(span.reason) for span in named} == {MAX_REASON_CHARS}
    assert listed([SoundSpan(0, 1, "failed", "short")])[0].reason == "short"


def test_lengths_are_those_of_the_told_borders() -> None:
    assert total_s([SoundSpan(0.0004, 1.0006, "heard"), SoundSpan(1.0006, 2.0, "heard")]) == 2.0
