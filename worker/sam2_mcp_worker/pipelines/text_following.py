"""Which line of a frame is which line of the frames before: by text, place, and the move all lines make together.

Owns when two readings are the same item, and when an item is over. Takes the looks in order and looks only back, so
that what is over stays as it is however much is read later. Knows no phrases and no rules.
"""

from __future__ import annotations

import functools
import statistics
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rapidfuzz import fuzz

from sam2_mcp_worker.checks.phrase_letters import letters
from sam2_mcp_worker.checks.phrase_tokens import tokens_of
from sam2_mcp_worker.engines.ports import Box, TextLine
from sam2_mcp_worker.pipelines.frame_looks import FrameLook
from sam2_mcp_worker.pipelines.look_moments import hides

# A text that was away for longer and comes back is a further item: else nothing would be over before the video is.
PATIENCE_S = 10.0
# Likeness of the letters of two readings of one line: with 30 % of the syllables misread it is 0.75 (vision.md 6).
SAME_TEXT_PERCENT = 75.0
# A shorter text says too little to be known again at another place.
MOVING_MIN_LETTERS = 6
# How far apart two readings of a line that stands may lie, in heights; how unlike their heights may be.
STANDING_HEIGHTS = 0.75
HEIGHT_RATIO = 1.6
# A line is known again by its place in this many looks after it was last seen; afterwards only by its very text.
SLIP_LOOKS = 4
# Lines of print are lower than this, so the line that is looked for is in a neighbouring cell.
_CELL_PX = 96


@dataclass(slots=True, eq=False)
class Item:
    """One line of text as it was followed: the looks that show it, and what was read there."""

    number: int
    first_box: Box
    last_box: Box
    seen: list[int] = field(default_factory=list)  # indices of looks
    lines: list[TextLine] = field(default_factory=list)  # what look seen[i] read
    readings: Counter[str] = field(default_factory=Counter)  # by letters
    over_at: int | None = None  # index of the look that ended it


class Follower:
    """Takes looks in order; `over` are the items that have ended, in that order, `open` the others."""

    def __init__(self) -> None:
        self.over: list[Item] = []
        self._open: dict[int, Item] = {}  # the one seen longest ago first
        self._by_letters: dict[str, dict[int, Item]] = {}
        self._cells: dict[tuple[int, int], list[Item]] = {}
        self._recent: deque[list[Item]] = deque(maxlen=SLIP_LOOKS)  # of each of the last looks that were read
        self._count = 0
        self._last_lines: tuple[TextLine, ...] = ()
        self._times_s: list[float] = []

    @property
    def open(self) -> list[Item]:
        """The items that may go on, by their beginning."""
        return sorted(self._open.values(), key=lambda item: item.number)

    def take(self, look: FrameLook) -> None:
        """The next look; one that failed tells nothing."""
        index = len(self._times_s)
        self._times_s.append(look.time_s)
        if look.failed:
            return
        lines = tuple(line for line in look.lines if letters(line.text))
        items = self._recent[-1] if self._recent and lines == self._last_lines else self._assigned(lines)
        for line, item in zip(lines, items, strict=True):
            self._see(index, line, item)
        self._recent.append(items)
        self._last_lines = lines
        self._end_stale(index, look)

    def _assigned(self, lines: Sequence[TextLine]) -> list[Item]:
        """The item of each line, new ones included."""
        found: dict[int, Item] = {}
        taken: set[int] = set()
        moves: list[tuple[int, int]] = []
        for index, line in enumerate(lines):
            item = self._same_text(line, taken)
            if item is not None:
                found[index] = item
                taken.add(item.number)
                moves.append(_move(item.last_box, line.box_xyxy_px))
        shift = _median_move(moves)
        self._cells = self._recent_by_cell() if len(found) < len(lines) else {}
        for index, line in enumerate(lines):
            if index not in found:
                item = self._alike(line, taken, {(0, 0), shift}) or self._new(line)
                found[index] = item
                taken.add(item.number)
        return [found[index] for index in range(len(lines))]

    def _same_text(self, line: TextLine, taken: set[int]) -> Item | None:
        """The nearest item that was read letter by letter the same; a short text must stand where it stood."""
        known = self._by_letters.get(letters(line.text))
        if not known:
            return None
        moving = len(letters(line.text)) >= MOVING_MIN_LETTERS
        best: Item | None = None
        for item in known.values():
            if item.number in taken or not (moving or _stands(item.last_box, line, (0, 0))):
                continue
            if best is None or _distance(item.last_box, line) < _distance(best.last_box, line):
                best = item
        return best

    def _alike(self, line: TextLine, taken: set[int], shifts: set[tuple[int, int]]) -> Item | None:
        """The item at this place, or where it should be if it moved as the others did, that was read most alike."""
        best: tuple[float, int, Item] | None = None
        for shift in sorted(shifts):
            for item in self._near(line.box_xyxy_px, shift):
                if item.number in taken or not _stands(item.last_box, line, shift):
                    continue
                percent = _likeness(item.lines[-1].text, line.text)
                if percent >= SAME_TEXT_PERCENT and (best is None or (percent, -item.number) > best[:2]):
                    best = percent, -item.number, item
        return best[2] if best else None

    def _near(self, box: Box, shift: tuple[int, int]) -> Iterator[Item]:
        """The recent items in and beside the cell where the box was before the shift."""
        column, row = _cell((box[0] - shift[0], box[1] - shift[1], box[2] - shift[0], box[3] - shift[1]))
        for near_row in (row - 1, row, row + 1):
            for near_column in (column - 1, column, column + 1):
                yield from self._cells.get((near_column, near_row), ())

    def _recent_by_cell(self) -> dict[tuple[int, int], list[Item]]:
        cells: dict[tuple[int, int], list[Item]] = {}
        for item in {item.number: item for items in self._recent for item in items}.values():
            if item.over_at is None:
                cells.setdefault(_cell(item.last_box), []).append(item)
        return cells

    def _new(self, line: TextLine) -> Item:
        item = Item(self._count, line.box_xyxy_px, line.box_xyxy_px)
        self._count += 1
        return item

    def _see(self, index: int, line: TextLine, item: Item) -> None:
        found = letters(line.text)
        item.seen.append(index)
        item.lines.append(line)
        item.readings[found] += 1
        item.last_box = line.box_xyxy_px
        self._by_letters.setdefault(found, {})[item.number] = item
        self._open.pop(item.number, None)
        self._open[item.number] = item

    def _end_stale(self, index: int, look: FrameLook) -> None:
        """End the items that were away for longer than PATIENCE_S and surely are, by the order of their beginning."""
        stale: list[Item] = []
        for item in self._open.values():
            if look.time_s - self._times_s[item.seen[-1]] <= PATIENCE_S:
                break
            if not hides(look, item.last_box):
                stale.append(item)
        for item in sorted(stale, key=lambda item: item.number):
            item.over_at = index
            self.over.append(item)
            del self._open[item.number]
            for found in item.readings:
                known = self._by_letters[found]
                known.pop(item.number, None)
                if not known:
                    del self._by_letters[found]


def _stands(box: Box, line: TextLine, shift: tuple[int, int]) -> bool:
    """Whether the line is where this box is after the shift: half of the narrower width, and the same height."""
    x0, y0, x1, y1 = line.box_xyxy_px
    height, other = y1 - y0, box[3] - box[1]
    lower, taller = (height, other) if height < other else (other, height)
    if abs(y0 + y1 - box[1] - box[3] - 2 * shift[1]) > 2 * STANDING_HEIGHTS * taller or taller > HEIGHT_RATIO * lower:
        return False
    common = min(x1, box[2] + shift[0]) - max(x0, box[0] + shift[0])
    return 2 * common >= min(x1 - x0, box[2] - box[0])


def _distance(box: Box, line: TextLine) -> int:
    dx, dy = _move(box, line.box_xyxy_px)
    return abs(dx) + abs(dy)


def _move(box: Box, other: Box) -> tuple[int, int]:
    return (other[0] + other[2] - box[0] - box[2]) // 2, (other[1] + other[3] - box[1] - box[3]) // 2


def _median_move(moves: Sequence[tuple[int, int]]) -> tuple[int, int]:
    if not moves:
        return 0, 0
    return statistics.median_low(dx for dx, _ in moves), statistics.median_low(dy for _, dy in moves)


def _cell(box: Box) -> tuple[int, int]:
    """By the left edge, which stays when a line is read longer or shorter, and the middle."""
    return box[0] // _CELL_PX, (box[1] + box[3]) // (2 * _CELL_PX)


def _likeness(one: str, other: str) -> float:
    """How alike two readings are, in percent; 0 where they hold different numbers or negations."""
    percent = fuzz.ratio(letters(one), letters(other), score_cutoff=SAME_TEXT_PERCENT)
    return percent if percent > 0 and _values(one) == _values(other) else 0.0


# Readings of one long video; an entry is some 300 bytes.
_TEXTS = 32768


@functools.lru_cache(maxsize=_TEXTS)
def _values(text: str) -> tuple[str, ...]:
    return tuple(token.value for token in tokens_of(text))
