"""Which lines of which frames are worth comparing with a phrase, and the best of them.

Most lines of a long video have nothing of a phrase. Runs of a few letters tell that cheaply, the likeness of a single
line more dearly, and only what is left is looked at closely. What a likeness means is told by checks/phrases.py, and
what resembles a phrase only as other wordings of its field do by checks/phrase_judge.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from sam2_mcp_worker.checks.phrase_decoys import JudgedPhrase, judged_phrases
from sam2_mcp_worker.checks.phrase_grams import WORTH_SHARE, PhraseGrams
from sam2_mcp_worker.checks.phrase_judge import judge_phrases
from sam2_mcp_worker.checks.phrase_letters import letters
from sam2_mcp_worker.checks.phrases import MatchState, Phrase, PhraseMatch, likeness, match_phrase
from sam2_mcp_worker.checks.reading import Reading, ReadLine, ReadPage
from sam2_mcp_worker.pipelines.frame_looks import FrameLook

STATES_BY_RANK: tuple[MatchState, ...] = ("present", "altered", "review")
"""What a match may be, the best first."""

_JUDGED: dict[str, MatchState] = {"present": "present", "altered": "altered", "review": "review"}

# Every call of a long inspection looks at all frames anew, most of which an earlier call has seen: what was compared
# for the last few lists of phrases is kept. An hour of frames of which no two are alike makes 180,000 entries, 40 MB.
_LISTS_KEPT = 4
_MOST_ENTRIES = 250_000

FrameMatch = tuple[PhraseMatch, tuple[int, ...]]
"""A match, and the positions in the look of the lines that it touches."""


class FrameLines:
    """The different texts of all looks, and how much of which phrase may be in each. Equal looks are one frame.

    `decoys` are other wordings of the phrases' field, which share words and endings with them.
    """

    def __init__(self, looks: Sequence[FrameLook], phrases: Sequence[Phrase], decoys: Sequence[str] = ()) -> None:
        self._phrases = phrases
        numbers: dict[str, int] = {}
        frames: dict[tuple[int, ...], int] = {}
        self._frame_of_look: list[int] = []
        for look in looks:
            frame = tuple([numbers.setdefault(line.text, len(numbers)) for line in look.lines])
            self._frame_of_look.append(frames.setdefault(frame, len(frames)))
        self._frames = list(frames)
        self._texts = list(numbers)
        self._weights: list[dict[int, float]] = [{} for _ in phrases]
        self._memory = _memory_of(tuple(phrases), tuple(decoys))
        for number, text in enumerate(self._texts):
            for index, weight in self._memory.weights_of(text):
                self._weights[index][number] = weight

    def matches(self, phrase: int) -> list[FrameMatch]:
        """What became of the phrase in each look."""
        of_frame = [self._best_match(numbers, phrase) for numbers in self._frames]
        return [of_frame[frame] for frame in self._frame_of_look]

    def closest(self, phrase: int) -> tuple[str, float]:
        """The line that has most of the phrase, and how alike they are, 0-1; empty where no line has anything of it."""
        weights = self._weights[phrase]
        if not weights:
            return "", 0.0
        text = self._texts[max(weights, key=lambda number: (weights[number], -number))]
        return text, likeness(self._phrases[phrase], text)

    def _best_match(self, numbers: Sequence[int], phrase: int) -> FrameMatch:
        """The best match in any choice of lines."""
        best: FrameMatch = PhraseMatch("absent", 0.0), ()
        for positions in self._worth_a_look(numbers, phrase):
            found = self._memory.compared(phrase, tuple([self._texts[numbers[position]] for position in positions]))
            match = found, tuple(positions[line] for line in found.lines)
            if _rank(match[0]) > _rank(best[0]) or _turns(match, best):
                best = match
            if best[0].state == "present" and best[0].score == 1.0:
                break
        return best

    def _worth_a_look(self, numbers: Sequence[int], phrase: int) -> list[list[int]]:
        """Positions of the lines of a frame to look at for a phrase: those that may hold some of it, then these with
        their neighbours; none where there is too little.

        A line that holds the end of a phrase and much else resembles it too little by itself, but stands beside one
        that does not. A line of another column that stands between two of the phrase's is none of the first.
        """
        weights = self._weights[phrase]
        likely = [position for position, number in enumerate(numbers) if number in weights]
        if sum(weights[numbers[position]] for position in likely) < WORTH_SHARE:
            return []
        near = {position + step for position in likely for step in (-1, 0, 1)}
        return [likely, sorted(position for position in near if 0 <= position < len(numbers))]


class _Memory:
    """What was found out about texts for one list of phrases and decoys; it depends on nothing else."""

    def __init__(self, phrases: tuple[Phrase, ...], decoys: tuple[str, ...]) -> None:
        self._phrases = phrases
        self._judged = judged_phrases([phrase.text for phrase in phrases], decoys)
        self._grams = PhraseGrams([phrase.letters for phrase in phrases])
        self._weights: dict[str, tuple[tuple[int, float], ...]] = {}
        self._compared: dict[tuple[int, tuple[str, ...]], PhraseMatch] = {}

    def weights_of(self, text: str) -> tuple[tuple[int, float], ...]:
        """The phrases of which some may be in the text, and how much."""
        known = self._weights.get(text)
        if known is None:
            known = tuple(self._grams.weights(letters(text)))
            self._keep(self._weights, text, known)
        return known

    def compared(self, phrase: int, lines: tuple[str, ...]) -> PhraseMatch:
        """What `match_phrase` says, and the judge of documents confirms."""
        known = self._compared.get((phrase, lines))
        if known is None:
            known = _confirmed(match_phrase(self._phrases[phrase], lines), self._judged[phrase], lines)
            self._keep(self._compared, (phrase, lines), known)
        return known

    @staticmethod
    def _keep(memory: dict[Any, Any], key: Any, value: Any) -> None:
        if len(memory) >= _MOST_ENTRIES:
            memory.clear()
        memory[key] = value


def _confirmed(match: PhraseMatch, judged: JudgedPhrase, lines: Sequence[str]) -> PhraseMatch:
    """The match, or what the judge of documents says instead, who knows rivals of a phrase and swapped words."""
    if match.state == "absent" or match.score == 1.0:
        return match
    page = ReadPage(1, "done", tuple(ReadLine(text, "ocr") for text in lines))
    (found,) = judge_phrases((judged,), Reading("image", "px", (page,)))
    state = _JUDGED.get(found.state, "absent")
    if state == match.state or state == "absent":
        return match if state == match.state else PhraseMatch("absent", match.score)
    touched = tuple(line.index for line in found.lines)
    return PhraseMatch(state, found.score, touched, found.read_as, found.differences)


_memory_of = lru_cache(maxsize=_LISTS_KEPT)(_Memory)


def _turns(wider: FrameMatch, match: FrameMatch) -> bool:
    """Whether what was alike says the opposite with the lines above and below: "지급하지" above "않습니다"."""
    if wider[0].state != "altered" or match[0].state != "present" or wider[0].score < match[0].score:
        return False
    return not any(match[1][0] < position < match[1][-1] for position in set(wider[1]) - set(match[1]))


def _rank(match: PhraseMatch) -> tuple[int, float]:
    return (0 if match.state == "absent" else len(STATES_BY_RANK) - STATES_BY_RANK.index(match.state)), match.score
