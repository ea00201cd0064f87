"""What is known of a recording: every second accounted for, every word delivered once, whatever settles when."""

from __future__ import annotations

import itertools
import random as randoms
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.fanout import Coverage
from sam2_mcp_worker.media.audio import (
    DamagedSpan,
    SilentSpan,
    SoundFacts,
    SoundPiece,
    SoundStretch,
    stretch_count,
    stretches_of,
)
from sam2_mcp_worker.pipelines.hear_piece import HeardPiece
from sam2_mcp_worker.pipelines.listening import Listening, piece_unit
from sam2_mcp_worker.pipelines.speech_delivery import Told, deliver, fills_a_result, from_cursor, to_cursor
from sam2_mcp_worker.pipelines.transcript import Said, SoundSpan, total_s

KEY = "ab" * 32


def facts(end_s: float, *, start_s: float = 0.0, stated_end_s: float | None = None) -> SoundFacts:
    return SoundFacts(start_s, end_s, "aac", "mov", 2, 48_000, None, 1, 1, False, stated_end_s)


def cut(of: SoundFacts, seed: int) -> list[SoundStretch]:
    """Stretches of a file, each divided into speech, quiet and damage at random, as the scan child tells them."""
    random = randoms.Random(seed)
    count = stretch_count(of)
    edges = [of.begins_s]
    edges += [of.begins_s + 60.0 * number + random.uniform(0, 20) for number in range(1, count)] + [of.end_s]
    return [divided(number, edges[number], edges[number + 1], random) for number in range(count)]


def divided(number: int, start_s: float, end_s: float, random: randoms.Random) -> SoundStretch:
    borders = sorted({start_s, end_s, *(random.uniform(start_s, end_s) for _ in range(random.randrange(5)))})
    pieces: list[SoundPiece] = []
    silent: list[SilentSpan] = []
    damaged: list[DamagedSpan] = []
    for first, last in itertools.pairwise(borders):
        kind = random.choice(("piece", "piece", "silent", "damaged"))
        if kind == "piece":
            pieces.append(SoundPiece(first, last - first, Path(), -20.0, (), f"{number}-{first}"))
        elif kind == "silent":
            silent.append(SilentSpan(first, last, -70.0))
        else:
            damaged.append(DamagedSpan(first, last, "broken"))
    return SoundStretch(number, start_s, end_s, tuple(pieces), tuple(silent), tuple(damaged))


def heard(piece: SoundPiece, words: int = 1) -> HeardPiece:
    end_s = piece.start_s + piece.duration_s
    step_s = piece.duration_s / max(1, words)
    said = [
        Said(piece.start_s + n * step_s, piece.start_s + (n + 1) * step_s, f"{piece.sha256}/{n}") for n in range(words)
    ]
    return HeardPiece(tuple(said), (SoundSpan(piece.start_s, end_s, "heard"),), "engine")


def failed(piece: SoundPiece) -> HeardPiece:
    return HeardPiece((), (SoundSpan(piece.start_s, piece.start_s + piece.duration_s, "failed", "timeout"),))


def begin(of: SoundFacts, start_s: float, end_s: float) -> tuple[Listening, Coverage[int, Any]]:
    listening = Listening(of, start_s, end_s, stretches_of(of, start_s, end_s))
    return listening, Coverage(tuple(listening.numbers))


def work(
    listening: Listening, coverage: Coverage[int, Any], stretches: list[SoundStretch], random: Any, trouble: float
) -> None:
    """One step of the job: some stretch or piece settles, well or (with a chance of `trouble`) badly."""
    number = random.choice(coverage.unreached)
    stretch = listening.stretches.get(number)
    if stretch is None:
        if random.random() < trouble:
            coverage.mark_failed(number, WorkerError("decoder_timeout", "stopped"))
        else:
            listening.stretches[number] = stretches[number]
        return
    pending = [index for index in listening.pieces(number) if piece_unit(number, index) not in listening.heard]
    if not pending:
        coverage.mark_done(number, None)
        return
    index = random.choice(pending)
    made = failed(stretch.pieces[index]) if random.random() < trouble else heard(stretch.pieces[index], index % 3)
    listening.heard[piece_unit(number, index)] = made


@given(
    st.floats(0.5, 700),
    st.floats(-3, 3),
    st.tuples(st.floats(0, 1), st.floats(0, 1)),
    st.integers(0, 10**6),
    st.randoms(use_true_random=False),
)
def test_every_second_of_the_range_is_accounted_for_at_any_moment(
    length_s: float, begins_s: float, part: tuple[float, float], seed: int, random: Any
) -> None:
    of = facts(begins_s + length_s, start_s=begins_s) if begins_s + length_s > 0.2 else facts(length_s)
    first, last = sorted(of.begins_s + share * (of.end_s - of.begins_s) for share in part)
    if last - first < 0.01:
        first, last = of.begins_s, of.end_s
    listening, coverage = begin(of, first, last)
    stretches = cut(of, seed)
    while coverage.unreached:
        spans = listening.spans(coverage)
        assert spans[0].start_s == round(first, 3) and spans[-1].end_s == round(last, 3)
        assert all(a.end_s == b.start_s for a, b in itertools.pairwise(spans))
        assert total_s(spans) == pytest.approx(round(last, 3) - round(first, 3), abs=1e-6)
        work(listening, coverage, stretches, random, 0.1)
    spans = listening.spans(coverage)
    assert all(span.became != "unreached" for span in spans)
    assert all(a.end_s == b.start_s for a, b in itertools.pairwise(spans))


@settings(max_examples=50)
@given(
    st.integers(10, 400), st.integers(0, 10**6), st.randoms(use_true_random=False), st.integers(1, 600), st.booleans()
)
def test_over_all_calls_every_heard_word_comes_exactly_once_also_after_restarts(
    length_s: int, seed: int, random: Any, max_chars: int, restarts: bool
) -> None:
    of = facts(float(length_s))
    stretches = cut(of, seed)
    trouble = 0.3
    listening, coverage = begin(of, 0.0, float(length_s))
    told: list[str] = []
    cursor: str | None = ""
    for call in range(1000):
        for _ in range(random.randrange(1, 12)):
            if coverage.unreached:
                work(listening, coverage, stretches, random, trouble)
        units = list(listening.units(coverage))
        before = from_cursor(cursor or "", "transcribe_audio", KEY, listening.numbers.stop)
        delivery = deliver(units, before, max_chars)
        if fills_a_result(units, before, max_chars):
            assert delivery.pieces
        told += [said.text for piece in delivery.pieces for said in piece.said]
        cursor = to_cursor("transcribe_audio", KEY, delivery)
        if cursor is None:
            break
        if restarts and random.random() < 0.2 and call < 50:
            listening, coverage = begin(of, 0.0, float(length_s))  # the worker was restarted; less fails now
            trouble /= 2
    assert cursor is None
    assert len(told) == len(set(told))
    known = [said.text for piece in listening.heard.values() for said in piece.said]
    assert set(known) <= set(told)
    if not restarts:
        assert told == sorted(told, key=known_order(stretches))


def known_order(stretches: list[SoundStretch]) -> Any:
    order = {piece.sha256: place for place, piece in enumerate(p for stretch in stretches for p in stretch.pieces)}
    return lambda text: (order[text.rsplit("/", 1)[0]], text)


def test_what_was_cut_off_behind_the_end_of_the_sound_has_failed() -> None:
    listening, coverage = begin(facts(30.0, stated_end_s=90.0), 0.0, 90.0)
    listening.stretches[0] = SoundStretch(0, 0.0, 30.0, (), (SilentSpan(0.0, 30.0, None),), ())
    coverage.mark_done(0, None)
    assert [(span.became, span.start_s, span.end_s) for span in listening.spans(coverage)] == [
        ("silent", 0.0, 30.0),
        ("failed", 30.0, 90.0),
    ]


def test_a_piece_longer_than_a_result_comes_all_the_same() -> None:
    listening, coverage = begin(facts(20.0), 0.0, 20.0)
    piece = SoundPiece(0.0, 20.0, Path(), -20.0, (), "x" * 500)
    listening.stretches[0] = SoundStretch(0, 0.0, 20.0, (piece,), (), ())
    listening.heard[piece_unit(0, 0)] = heard(piece)
    delivery = deliver(list(listening.units(coverage)), Told(), 10)
    assert len(delivery.pieces) == 1 and delivery.complete


def test_a_stretch_that_failed_half_told_after_a_restart_is_told_to_its_end_later() -> None:
    of = facts(30.0)
    pieces = tuple(SoundPiece(10.0 * n, 10.0, Path(), -20.0, (), str(n)) for n in range(3))
    known = SoundStretch(0, 0.0, 30.0, pieces, (), ())
    listening, coverage = begin(of, 0.0, 30.0)
    listening.stretches[0] = known
    listening.heard[piece_unit(0, 0)] = heard(pieces[0])
    first = deliver(list(listening.units(coverage)), Told(), 10_000)
    listening, coverage = begin(of, 0.0, 30.0)  # a restart, and this time the scan fails
    coverage.mark_failed(0, WorkerError("decoder_timeout", "stopped"))
    second = deliver(list(listening.units(coverage)), first.told, 10_000)
    assert second.complete and second.pieces[0].failed
    listening, coverage = begin(of, 0.0, 30.0)  # another one, and all is well
    assert not deliver(list(listening.units(coverage)), second.told, 10_000).complete
    listening.stretches[0] = known
    listening.heard = {piece_unit(0, index): heard(one) for index, one in enumerate(pieces)}
    third = deliver(list(listening.units(coverage)), second.told, 10_000)
    assert [said.text for one in third.pieces for said in one.said] == ["1/0", "2/0"]
    assert third.complete and not third.told.failed & {piece_unit(0, 1), piece_unit(0, 2)}


@pytest.mark.parametrize("state", ["", {"p": "x", "f": ""}, {"p": 1}, {"p": 5, "f": "9-1"}, {"p": [], "f": ""}])
def test_a_damaged_cursor_is_refused(state: Any) -> None:
    from sam2_mcp_worker.cursors import encode_cursor

    cursor = encode_cursor("transcribe_audio", KEY, state) if state else "%%%"
    with pytest.raises(WorkerError, match=r"^\[cursor_invalid\]"):
        from_cursor(cursor, "transcribe_audio", KEY, 3)
