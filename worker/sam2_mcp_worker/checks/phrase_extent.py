"""From where to where a phrase reaches at a place: a place is as long as the phrase, whatever was added or left out.

Owns the two ends. What stands between them is compared by phrase_wording.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from rapidfuzz.distance import Indel, Levenshtein, Opcode

from sam2_mcp_worker.checks.phrase_letters import LetterLines
from sam2_mcp_worker.checks.phrase_places import Place

# A place is as long as the phrase: where words were added, the end of the phrase stands this far behind it.
_REACH_LETTERS = 16
# Runs of letters that are no chance: a syllable and more.
_STRONG_LETTERS = 4
# Runs of more letters are no chance at all.
_CHANCE_LETTERS = 8
# So many of its last letters tell where a phrase ends ("ㅂ니다").
_TAIL_LETTERS = 5
# Of the letters of a line at the edge of a place this share is the phrase's, two and more in a row: of its own lines
# half with 45 % of the syllables misread, of another text a sixth.
_LINE_SHARE = 0.35


def extent_of(wanted: str, page: LetterLines, place: Place) -> tuple[int, int]:
    """The first letter of the page and the one behind the last that a phrase, given as its letters, takes up there."""
    start, end = max(0, place.start - _REACH_LETTERS), min(len(page.letters), place.end + _REACH_LETTERS)
    start, end = _trimmed(wanted, page.letters[start:end], start)
    return _without_strange_lines(wanted, page, start, end)


def _trimmed(wanted: str, around: str, start: int) -> tuple[int, int]:
    """From where to where a phrase reaches within some letters, the first of which is letter `start` of the page."""
    equal = [op for op in Indel.opcodes(wanted, around) if op.tag == "equal"]
    longest = max(op.src_end - op.src_start for op in equal)
    strong = [op for op in equal if op.src_end - op.src_start >= min(longest, _STRONG_LETTERS)]
    head, tail = wanted[strong[0].src_start : strong[0].src_end], wanted[strong[-1].src_start : strong[-1].src_end]
    first, last = strong[0].dest_start, strong[-1].dest_end
    # The same few letters may stand nearer, and were not taken for others farther away that happen to be the same.
    if len(strong) > 1 and len(tail) <= _CHANCE_LETTERS:
        ending = tail[-_TAIL_LETTERS:]
        last = around.find(ending, strong[-2].dest_end) + len(ending)
    if len(strong) > 1 and len(head) <= _CHANCE_LETTERS:
        first = around.rfind(head, 0, min(strong[1].dest_start, last))
    return start + max(0, first - strong[0].src_start), start + _end(wanted[strong[-1].src_end :], around, last)


def _without_strange_lines(wanted: str, page: LetterLines, start: int, end: int) -> tuple[int, int]:
    """The stretch without lines at its ends of which little is the phrase's, as a headline above it."""
    first, last = page.line_of(start), page.line_of(end - 1)
    if first == last:
        return start, end
    ops = [op for op in Levenshtein.opcodes(wanted, page.letters[start:end]) if op.tag == "equal"]
    head, tail = page.start_of(first + 1), page.start_of(last)
    first_share = _equal(ops, 0, head - start) / (head - start)
    last_share = _equal(ops, tail - start, end - start) / (end - tail)
    ending = ops[-1].dest_end - max(ops[-1].dest_start, tail - start) if ops else 0  # "|않습니다" for "|됩니다"
    if first_share < _LINE_SHARE:
        return _without_strange_lines(wanted, page, head, end)
    if last_share < _LINE_SHARE and ending < _STRONG_LETTERS:
        return _without_strange_lines(wanted, page, start, tail)
    return start, end


def _equal(ops: Sequence[Opcode], first: int, last: int) -> int:
    """How many letters from `first` to before `last` of the place are the phrase's; single ones may be chance."""
    pairs = [op for op in ops if op.dest_end - op.dest_start > 1]
    return sum(max(0, min(op.dest_end, last) - max(op.dest_start, first)) for op in pairs)


def _end(rest: str, around: str, begin: int) -> int:
    """Where the rest of a phrase ends that goes on at `begin`: with its last letters, or where it is as long."""
    plain = rest.rstrip("".join(char for char in rest if not char.isalnum()))
    for length in range(min(_TAIL_LETTERS, len(plain)), _STRONG_LETTERS - 1, -1):
        at = around.find(plain[-length:], begin)
        if at >= 0:
            return at + length
    return min(len(around), begin + len(rest))
