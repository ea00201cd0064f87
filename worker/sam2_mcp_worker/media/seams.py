"""Puts the readings of overlapping tiles together: every line once, and nothing lost at a seam.

Owns the rules of the seams. Knows no pixels and no engine. All boxes are in pixels of the whole picture.

What a tile's cut edge does to a line, and what follows:

* cut lengthways (the box reaches the upper or lower cut edge): the glyphs are cut, the text is worthless. It counts as
  ink, and is reported as such unless another tile read a line there.
* cut across (left or right): the text is right but for a glyph at the cut. It is absorbed by a neighbour's line that
  contains it, or fitted to the neighbour's piece by the characters that both saw.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import Field, dataclass, replace
from math import inf
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from sam2_mcp_worker.media.tiling import Box


class Line(Protocol):
    """A dataclass with at least these fields; its other fields are kept as they are."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def text(self) -> str: ...
    @property
    def box_xyxy_px(self) -> Box: ...
    @property
    def height_px(self) -> float: ...
    @property
    def confidence(self) -> float: ...


L = TypeVar("L", bound=Line)
L_co = TypeVar("L_co", bound=Line, covariant=True)


class Reading(Protocol[L_co]):
    """What one tile gave."""

    @property
    def lines(self) -> Sequence[L_co]: ...
    @property
    def undetected_ink(self) -> Sequence[Box]: ...


@dataclass(frozen=True, slots=True)
class MergedReading(Generic[L]):
    """The readings of all tiles as one; lines from the top down, ink boxes disjoint."""

    lines: tuple[L, ...]
    undetected_ink: tuple[Box, ...]


CUT_MARGIN_PX = 2  # the detector's boxes are rounded and may stop short of an edge that cuts them
SAME_IOU = 0.5  # two tiles' boxes of one line differ by margins; neighbours in print overlap by less, tilted ones too
SAME_ROW = 0.5  # of the lower box's height
CONTAINED = 0.8  # of the shorter box's width: the rest is the margin of its box
SAME_END_PX = 3  # a detector's box moves that much with the phase of the tile
COVERED = 0.6  # of an ink box's area under a line of another tile
SHIFT_COST = 1.5  # in characters of a common run: repeated characters, as in 000, make longer runs in wrong places
LEVEL = 2.0  # box height over text height: above it the box of a tilted line also holds its neighbours


@dataclass(frozen=True, slots=True)
class _Piece(Generic[L]):
    line: L
    tiles: frozenset[int]
    cut_left: bool
    cut_right: bool
    """It ends at an edge beyond which there are other tiles: its last glyph there may be half a glyph."""

    @property
    def box(self) -> Box:
        return self.line.box_xyxy_px

    @property
    def level(self) -> bool:
        return self.box[3] - self.box[1] <= LEVEL * max(1.0, self.line.height_px)


def merge_readings(tiles: Sequence[Box], readings: Sequence[Reading[L] | None]) -> MergedReading[L]:
    """One reading of the whole picture from one reading a tile: `readings[i]` belongs to `tiles[i]`.

    Give all tiles of the plan, with None for those not read: what borders on an unread tile is then known to be cut,
    and is reported as ink instead of as half a line.
    """
    read: list[_Piece[L]] = []
    ink: list[tuple[int, Box]] = []
    for i, reading in enumerate(readings):
        if reading is None:
            continue
        ink += [(i, box) for box in reading.undetected_ink]
        for line in reading.lines:
            if any(_cut(line.box_xyxy_px, i, tiles, axis=1)):
                ink.append((i, line.box_xyxy_px))
            else:
                read.append(_Piece(line, frozenset({i}), *_cut(line.box_xyxy_px, i, tiles, axis=0)))
    unexplained = _unexplained(ink, read)
    lines = sorted((piece.line for piece in _each_once(read)), key=lambda line: line.box_xyxy_px[1::-1])
    return MergedReading(tuple(lines), tuple(_united(unexplained)))


def _cut(box: Box, index: int, tiles: Sequence[Box], *, axis: int) -> tuple[bool, bool]:
    """Whether the box reaches the first or last edge of its tile in x (axis 0) or y (axis 1), with others beyond it."""
    tile, end = tiles[index], axis + 2
    before = tile[axis] > min(t[axis] for t in tiles) and box[axis] <= tile[axis] + CUT_MARGIN_PX
    after = tile[end] < max(t[end] for t in tiles) and box[end] >= tile[end] - CUT_MARGIN_PX
    return before, after


class _ByRow(Generic[L]):
    """Pieces filed by the bands of rows that they touch, so that thousands are each compared with few."""

    BAND_PX = 64  # a few lines of print

    def __init__(self, pieces: Sequence[_Piece[L]] = ()) -> None:
        self._bands: dict[int, list[_Piece[L]]] = {}
        for piece in pieces:
            self.add(piece)

    def _bands_of(self, box: Box) -> range:
        return range(box[1] // self.BAND_PX, box[3] // self.BAND_PX + 1)

    def add(self, piece: _Piece[L]) -> None:
        for band in self._bands_of(piece.box):
            self._bands.setdefault(band, []).append(piece)

    def remove(self, piece: _Piece[L]) -> None:
        for band in self._bands_of(piece.box):
            self._bands[band] = [other for other in self._bands[band] if other is not piece]

    def near(self, box: Box) -> Iterator[_Piece[L]]:
        """All pieces that may overlap `box`; a tall one more than once."""
        for band in self._bands_of(box):
            yield from self._bands.get(band, ())

    def all(self) -> list[_Piece[L]]:
        return list({id(piece): piece for band in self._bands.values() for piece in band}.values())


def _unexplained(ink: list[tuple[int, Box]], read: list[_Piece[L]]) -> list[Box]:
    lines = _ByRow(read)
    return [
        box
        for tile, box in ink
        # A line of the same tile does not explain it: that tile saw both.
        if not any(
            piece.tiles != {tile} and _common(piece.box, box) >= COVERED * _area(box) for piece in lines.near(box)
        )
    ]


def _each_once(read: list[_Piece[L]]) -> list[_Piece[L]]:
    kept: _ByRow[L] = _ByRow()
    # The widest first: a piece then meets the line that contains it.
    for piece in sorted(read, key=lambda p: p.box[0] - p.box[2]):
        current = piece
        while (partner := next((p for p in kept.near(current.box) if _same_line(p, current)), None)) is not None:
            kept.remove(partner)
            current = _merged(partner, current)
        kept.add(current)
    return kept.all()


def _same_line(a: _Piece[L], b: _Piece[L]) -> bool:
    if a.tiles == b.tiles and len(a.tiles) == 1:
        return False  # what one tile tells apart stays apart
    if _iou(a.box, b.box) >= SAME_IOU:
        return True
    low, narrow = (min(a.box[i + 2] - a.box[i], b.box[i + 2] - b.box[i]) for i in (1, 0))
    rows, columns = _shared(a.box, b.box)
    # Boxes of neighbouring cells overlap by their margins; pieces of one line by the overlap of the tiles, or wholly.
    if rows < SAME_ROW * low or columns < min(low, CONTAINED * narrow):
        return False
    return (a.level and b.level) or _longest_run(a.line.text, b.line.text) >= min(
        len(a.line.text), len(b.line.text)
    ) / 2


def _merged(a: _Piece[L], b: _Piece[L]) -> _Piece[L]:
    """The better of two sights of one line, or the line that two pieces make."""
    tiles = a.tiles | b.tiles
    left, right = sorted((a, b), key=lambda p: (p.box[0], -p.box[2]))
    same_ends = all(abs(left.box[i] - right.box[i]) <= SAME_END_PX for i in (0, 2))
    if same_ends and _only_end_cut(left) == -_only_end_cut(right) != 0:
        left, right = sorted((a, b), key=_only_end_cut, reverse=True)  # each knows the end that the other lacks
    elif same_ends:
        return replace(max(a, b, key=lambda p: (-p.cut_left - p.cut_right, p.line.confidence)), tiles=tiles)
    right_knows_the_end = left.cut_right and not right.cut_right and right.box[2] >= left.box[2] - SAME_END_PX
    if not same_ends and right.box[2] <= left.box[2] and not right_knows_the_end:
        return replace(left, tiles=tiles)  # the other one lies inside
    line = replace(
        left.line,
        text=join_text(left.line.text, left.box, right.line.text, right.box),
        box_xyxy_px=_union(left.box, right.box),
        confidence=min(left.line.confidence, right.line.confidence),
    )
    return _Piece(line, tiles, left.cut_left, right.cut_right)


def _only_end_cut(piece: _Piece[L]) -> int:
    """-1 for a piece that is cut at its left end only, 1 at its right end only, else 0."""
    return piece.cut_right - piece.cut_left


def join_text(left: str, left_box: Box, right: str, right_box: Box) -> str:
    """Two readings of one line, the second from further right, as one text.

    They are joined in the longest run of characters that both have, near where the boxes say that it must be. What the
    left one has after the run and the right one before it are glyphs at their cut, read wrongly.
    """
    shift = round((right_box[0] - left_box[0]) / _pitch(left, left_box))
    slack = 2 + len(left) // 4  # glyphs are not all equally wide
    # Without a common character the boxes alone say how much of the right one the left one has already.
    overlap = round((left_box[2] - right_box[0]) / _pitch(right, right_box))
    best, cut_left, cut_right = -inf, len(left), max(0, overlap) if left else 0
    for offset in range(max(0, shift - slack), min(len(left), shift + slack + 1)):
        start, size = _run_at(left, right, offset)
        score = size - SHIFT_COST * abs(offset - shift)
        if size and score > best:
            best, cut_left, cut_right = score, offset + start + size, start + size
    return left[:cut_left] + right[cut_right:]


def _pitch(text: str, box: Box) -> float:
    return max(1.0, (box[2] - box[0]) / max(1, len(text)))


def _run_at(left: str, right: str, offset: int) -> tuple[int, int]:
    """Start in `right` and length of the longest run where left[offset + k] == right[k]."""
    best = run = 0
    end = 0
    for k in range(min(len(left) - offset, len(right))):
        run = run + 1 if left[offset + k] == right[k] else 0
        if run > best:
            best, end = run, k + 1
    return end - best, best


def _longest_run(a: str, b: str) -> int:
    forward = max((_run_at(a, b, offset)[1] for offset in range(len(a))), default=0)
    return max([forward, *(_run_at(b, a, offset)[1] for offset in range(len(b)))])


def _united(boxes: list[Box]) -> list[Box]:
    """Overlapping boxes as their common hull, until none overlap. The order of uniting does not change the result.

    A sweep costs n log n, and one that unites nothing proves that nothing overlaps. What a sweep misses is what a hull
    grows back over; turning the plane between sweeps lets one of the next four run the way that the hulls grow.
    """
    turns, before = 0, -1
    while len(boxes) != before:
        before = len(boxes)
        boxes = [_turned(box) for box in _swept(boxes)]
        turns += 1
    for _ in range(-turns % 4):
        boxes = [_turned(box) for box in boxes]
    return sorted(boxes, key=lambda b: b[1::-1])


def _turned(box: Box) -> Box:
    """The box in a plane turned by 90 degrees."""
    return -box[3], box[0], -box[1], box[2]


def _swept(boxes: list[Box]) -> list[Box]:
    """One sweep from the top down that unites each box with those before it that still reach below its top.

    These are apart, so that they share no column, and stand in `front` from left to right.
    """
    front: list[Box] = []
    passed = [box for box in boxes if not _area(box)]  # nothing can overlap them
    for box in sorted((b for b in boxes if _area(b)), key=lambda b: b[1]):
        hull = box
        while True:
            start = bisect_right(front, hull[0], key=lambda b: b[2])
            stop = bisect_left(front, hull[2], start, key=lambda b: b[0])
            reached = [b for b in front[start:stop] if b[3] > hull[1]]
            passed += [b for b in front[start:stop] if b[3] <= hull[1]]
            front[start:stop] = []
            if not reached:
                break
            for other in reached:
                hull = _union(hull, other)
        front.insert(start, hull)
    return passed + front


def _shared(a: Box, b: Box) -> tuple[int, int]:
    """Rows and columns that both boxes have; 0 where they are apart."""
    return max(0, min(a[3], b[3]) - max(a[1], b[1])), max(0, min(a[2], b[2]) - max(a[0], b[0]))


def _common(a: Box, b: Box) -> int:
    rows, columns = _shared(a, b)
    return rows * columns


def _area(box: Box) -> int:
    return (box[2] - box[0]) * (box[3] - box[1])


def _iou(a: Box, b: Box) -> float:
    common = _common(a, b)
    return common / max(1, _area(a) + _area(b) - common)


def _union(a: Box, b: Box) -> Box:
    return min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])
