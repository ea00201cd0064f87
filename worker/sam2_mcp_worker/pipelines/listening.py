"""What is known of a recording by now, from stretches that settle in any order: words in order, and what became of each
second. Pure, apart from being filled while the work runs.

A piece has a number: `PIECES_PER_STRETCH` times that of its stretch (from 1), plus its place in it (from 1); the number
with place 0 stands for the stretch as a whole. Numbers rise with time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.fanout import Coverage
from sam2_mcp_worker.media.audio import STRETCH_S, SoundFacts, SoundPiece, SoundStretch, stretch_count
from sam2_mcp_worker.pipelines.hear_piece import HeardPiece
from sam2_mcp_worker.pipelines.transcript import SoundSpan

# A stretch lasts 80 s at most and a piece of speech 0.1 s at least.
PIECES_PER_STRETCH = 1000


@dataclass(frozen=True, slots=True)
class Unit:
    """What is delivered as a whole: a piece, or a stretch whose pieces are not known. `heard` is None while pending."""

    number: int
    heard: HeardPiece | None


@dataclass(slots=True)
class Listening:
    """One request's range `start_s` to `end_s` of a recording; `stretches` and `heard` are filled by the job."""

    facts: SoundFacts
    start_s: float
    end_s: float
    numbers: range
    stretches: dict[int, SoundStretch] = field(default_factory=dict)
    heard: dict[int, HeardPiece] = field(default_factory=dict)

    def pieces(self, number: int) -> dict[int, SoundPiece]:
        """Pieces of a known stretch that touch the range, by their place in it."""
        found = enumerate(self.stretches[number].pieces)
        return {i: one for i, one in found if one.start_s < self.end_s and one.start_s + one.duration_s > self.start_s}

    @property
    def goes_on(self) -> bool:
        """Whether the file has sound behind the end that it states, of which nobody knows anything."""
        return any(stretch.goes_on for stretch in self.stretches.values())

    def units(self, coverage: Coverage[int, Any]) -> Iterator[Unit]:
        """All that there is to deliver, in order."""
        for number in self.numbers:
            error = coverage.failed.get(number)
            if number not in self.stretches:
                yield Unit(stretch_unit(number), self._failed_stretch(number, error) if error else None)
                continue
            for index, piece in self.pieces(number).items():
                unit = piece_unit(number, index)
                known = self.heard.get(unit)
                yield Unit(
                    unit, known or (_failed(piece.start_s, piece.start_s + piece.duration_s, error) if error else None)
                )

    def spans(self, coverage: Coverage[int, Any]) -> tuple[SoundSpan, ...]:
        """The range divided by what became of it, neighbours of one kind joined; borders are whole milliseconds."""
        found: list[SoundSpan] = []
        for number in self.numbers:
            found += self._stretch_spans(number, coverage.failed.get(number))
        cut_off_s = self.facts.stated_end_s
        if cut_off_s is not None:
            found.append(
                SoundSpan(
                    self.facts.end_s,
                    cut_off_s,
                    "failed",
                    "the file claims to be longer: it was cut off here, or damaged before",
                )
            )
        return _joined(found, self.start_s, self.end_s)

    def _stretch_spans(self, number: int, error: WorkerError | None) -> list[SoundSpan]:
        stretch = self.stretches.get(number)
        if stretch is None:
            start_s, end_s = self._place(number)
            return [SoundSpan(start_s, end_s, "failed" if error else "unreached", error.reason if error else "")]
        spans = [SoundSpan(one.start_s, one.end_s, "silent") for one in stretch.silent]
        spans += [SoundSpan(one.start_s, one.end_s, "failed", one.reason) for one in stretch.damaged]
        for index, piece in enumerate(stretch.pieces):
            heard = self.heard.get(piece_unit(number, index))
            end_s = piece.start_s + piece.duration_s
            if heard is None and error is not None:
                heard = _failed(piece.start_s, end_s, error)
            spans += heard.spans if heard else [SoundSpan(piece.start_s, end_s, "unreached")]
        return sorted(spans, key=lambda span: span.start_s)

    def _failed_stretch(self, number: int, error: WorkerError) -> HeardPiece:
        return _failed(*self._place(number), error)

    def _place(self, number: int) -> tuple[float, float]:
        """Where a stretch lies that was not scanned: between its neighbours, else at its place in the grid."""
        before, after = self.stretches.get(number - 1), self.stretches.get(number + 1)
        start_s = before.end_s if before else self.facts.begins_s + number * STRETCH_S
        end_s = after.start_s if after else self.facts.begins_s + (number + 1) * STRETCH_S
        if number == stretch_count(self.facts) - 1:
            end_s = self.facts.end_s
        return start_s, max(start_s, end_s)


def stretch_unit(number: int) -> int:
    """The number that stands for a stretch as a whole."""
    return (number + 1) * PIECES_PER_STRETCH


def piece_unit(number: int, index: int) -> int:
    """The number of a piece: `index` from 0 in stretch `number` from 0."""
    return stretch_unit(number) + index + 1


def _failed(start_s: float, end_s: float, error: WorkerError) -> HeardPiece:
    return HeardPiece((), (SoundSpan(start_s, end_s, "failed", error.reason),), again=True)


def _joined(spans: list[SoundSpan], start_s: float, end_s: float) -> tuple[SoundSpan, ...]:
    """Clipped to the range; rounded borders stay common borders, so that nothing is lost between two spans."""
    joined: list[SoundSpan] = []
    for span in spans:
        first, last = round(max(span.start_s, start_s), 3), round(min(span.end_s, end_s), 3)
        if last <= first:
            continue
        clipped = replace(span, start_s=first, end_s=last)
        before = joined[-1] if joined else None
        if before and (before.became, before.reason, before.end_s) == (span.became, span.reason, first):
            joined[-1] = replace(before, end_s=last)
        else:
            joined.append(clipped)
    return tuple(joined)
