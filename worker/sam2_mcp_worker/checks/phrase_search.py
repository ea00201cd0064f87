"""All places of a phrase in a document: page by page, over the ends of pages, and between the lines of other columns.

Owns the search and what of a place is believed where its lines lie apart or are hard to read. What all places together
say is told by phrase_judge.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sam2_mcp_worker.checks.phrase_coverage import gram_share
from sam2_mcp_worker.checks.phrase_decoys import JudgedPhrase
from sam2_mcp_worker.checks.phrase_grams import PhraseGrams, letter_grams
from sam2_mcp_worker.checks.phrase_letters import letters
from sam2_mcp_worker.checks.phrase_look import Sighting, absent_below, look, says_exactly, text_at
from sam2_mcp_worker.checks.phrase_pages import (
    Passage,
    PhraseLine,
    broken_up,
    crosses_pages,
    joined,
    strangers_between,
)
from sam2_mcp_worker.checks.phrase_places import MAX_PLACES, letter_likeness, most_places, places
from sam2_mcp_worker.checks.reading import Source

# Figures and negations in a line read less surely than this may be others (frames of videos: clear lines 0.89 to 0.96,
# fine print 0.68 and 0.76 with slips in its figures; a blurred leaflet: 0.75 and "없는" where "있는" is printed).
_SURE_FIGURES = 0.8
# Lines that hold a phrase share this much of its runs of letters even where 45 % of the syllables were misread.
_SHARED_RUNS = 0.2
# So that a likeness is found again that was rounded on its way.
_ROUNDING = 1e-6
# Half of the 3-grams of a phrase on one page are no chance (absent ones 0.38 at most, vision.md 6): where likeness
# finds no place all the same, the phrase may stand there in pieces.
_COVERED = 0.5
# Text that was not read loses only the runs over the breaks between its pieces: of 20 syllables in four pieces 0.67 are
# left. Of absent wordings that share boilerplate 4 % reach that, 19 % reach 0.5 (docs/accuracy.md).
_COVERED_TEXT = 0.65
# Places of one phrase on a page that are looked at where most are another wording's, or altered: 0.25 s on a page of
# 30,000 syllables of such ones. A phrase of which more are left is not called missing.
MOST_LOOKS = 64


@dataclass(frozen=True, slots=True)
class PlaceFound:
    """A place in the document."""

    sighting: Sighting
    source: Source
    lines: tuple[PhraseLine, ...]

    @property
    def rank(self) -> tuple[float, float, bool, float]:
        """What is told first: what is more alike, then what stands in the file as text, then the larger letters."""
        heights = [one.line.height for one in self.lines if one.line.height is not None]
        sure = self.source in ("text_layer", "text")
        return self.sighting.context, self.sighting.score, sure, min(heights, default=0.0)


class LineRuns:
    """Which runs of letters of which phrase stand in each line; each text is looked at once."""

    def __init__(self, phrases: Sequence[JudgedPhrase]) -> None:
        self._wanted = [letter_grams(judged.phrase.letters) for judged in phrases]
        self._phrases = PhraseGrams([judged.phrase.letters for judged in phrases])
        self._lines: dict[str, dict[int, frozenset[str]]] = {}

    def broken_up(self, passage: Passage, phrase: int) -> Iterator[Passage]:
        """Lines of a passage that may hold the phrase between others, without those others."""
        lines = enumerate(map(self._line, passage.texts))
        shared = {position: runs[phrase] for position, runs in lines if phrase in runs}
        return broken_up(passage, shared, _SHARED_RUNS * len(self._wanted[phrase]))

    def shares(self, line: PhraseLine, phrase: int) -> bool:
        """Whether a line has a run of letters of the phrase."""
        return bool(self._line(line.line.text).get(phrase))

    def _line(self, text: str) -> dict[int, frozenset[str]]:
        """The runs that a line shares with each phrase that it may hold a part of."""
        if text not in self._lines:
            found = letters(text)
            runs = letter_grams(found)
            self._lines[text] = {phrase: self._wanted[phrase] & runs for phrase in self._phrases.like(found)}
        return self._lines[text]


class PhraseSearch:
    """All places of one phrase, and where no place is what resembles it most."""

    def __init__(self, judged: JudgedPhrase, index: int, runs: LineRuns) -> None:
        self._judged, self._index, self._runs = judged, index, runs
        self._wanted = judged.phrase.letters
        self._found: list[PlaceFound] = []
        self._nearest: Passage | None = None
        self.score = self.coverage = 0.0
        self.in_pieces = self.overlooks = False

    def through(self, passage: Passage) -> None:
        """Looks through all lines of a passage, then through those that may hold the phrase between others."""
        found, others = self._look(passage, passage)
        if not any(place.sighting.state == "present" for place in found):
            for run in self._runs.broken_up(passage, self._index):
                more, of_run = self._look(run, passage)
                # What stands there in one piece is told rather than what may be put together.
                found += [place for place in more if place.sighting.state == "present" or not found]
                others = others or of_run
        if passage.seam and self._found:
            found = [place for place in found if place.sighting.state != "review"]
        self._found += found
        if not others:  # else its 3-grams are those of another wording
            share = gram_share(self._judged.phrase.text, passage.grams)
            self.coverage = max(self.coverage, share)
            self.in_pieces = self.in_pieces or share >= (_COVERED if passage.slips else _COVERED_TEXT)

    def _look(self, lines: Passage, passage: Passage) -> tuple[list[PlaceFound], bool]:
        """The places in some lines of a passage, and whether others were left out as another wording's."""
        score, at_least = letter_likeness(self._wanted, lines.letters), absent_below(self._judged, passage.slips)
        if score > self.score:
            self.score, self._nearest = score, lines
        if score < at_least:
            return [], False
        found: list[PlaceFound] = []
        others, present = False, 0
        for looks, place in enumerate(places(self._wanted, lines.letters, at_least)):
            if looks == MOST_LOOKS or present == MAX_PLACES:
                self.overlooks = True
                break
            sighting = look(self._judged, lines.read, place, passage.slips)
            others = others or sighting is None
            touched = tuple(lines.lines[line] for line in sighting.lines) if sighting else ()
            if sighting and _belongs(touched, lines, passage):
                found.append(PlaceFound(self._believed(sighting, touched, passage), passage.source, touched))
                present += found[-1].sighting.state == "present"
        return found, others

    def _believed(self, sighting: Sighting, touched: Sequence[PhraseLine], passage: Passage) -> Sighting:
        """The sighting; for review where lines may not belong together, or a figure or negation is hard to read."""
        if sighting.state == "review":
            return sighting
        reason = ""
        sure = min((one.line.confidence for one in touched if one.line.confidence is not None), default=1.0)
        inside = sighting.state == "altered" and any(not self._runs.shares(one, self._index) for one in touched[1:-1])
        if inside or strangers_between(touched, passage):
            reason = "other lines stand in the middle of it; a person has to look"
        elif sure < _SURE_FIGURES and (sighting.state == "altered" or says_exactly(self._judged.phrase)):
            reason = "the print is hard to read, and its numbers or negations may be others; a person has to look"
        return replace(sighting, state="review", reason=reason) if reason else sighting

    def places(self, state: str) -> list[PlaceFound]:
        """The places of a state, the best first."""
        of_state = (place for place in self._found if place.sighting.state == state)
        return sorted(of_state, key=lambda place: place.rank, reverse=True)

    @property
    def read_as(self) -> str:
        """The text that resembles the phrase most."""
        if self._nearest is None:
            return ""
        places = most_places(self._wanted, self._nearest.letters, self.score - _ROUNDING)
        return next((text_at(self._nearest.read, place) for place in places), "")


def _belongs(touched: Sequence[PhraseLine], lines: Passage, passage: Passage) -> bool:
    """Whether a place is not one that is found anyhow, on one of two pages or without leaving out lines."""
    if passage.seam and not crosses_pages(touched):
        return False
    return lines is passage or not joined(touched, passage)
