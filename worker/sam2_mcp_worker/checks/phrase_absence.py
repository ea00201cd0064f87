"""Whether what was not read of a document may hold a phrase that was not found: only else is the phrase missing.

Owns the reasons why absence cannot be told. Knows nothing of how phrases are found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sam2_mcp_worker.checks.hearing import MOST_SYLLABLES_PER_S
from sam2_mcp_worker.checks.phrase_letters import letters
from sam2_mcp_worker.checks.phrase_slips import is_usual, odd_share
from sam2_mcp_worker.checks.reading import Reading, ReadPage, Source, Unit, Unread

# A letter of print that can be read is at least 6 px high and half as wide; in points that is what 150 dpi make of it.
_LETTER_AREA = {"px": 18.0, "pt": 18.0 * (72 / 150) ** 2}
# Where what is unread has no room for more than this share of a phrase, the rest of it must have been read: 85 % of a
# phrase are more like it than anything that counts as absent, even with 30 % of its syllables wrong (0.75 * 0.85).
_ROOM_SHARE = 0.15
# Of a page's syllables: with 15 % of them read as any others 12 % are such, with look-alikes 5 %; texts have none.
_MOST_ODD = 0.08
# Different ones: a name may have one ("똠양꿍"), and in 12 syllables, the most of which a single one is over 8 %, a
# phrase with one or two slips is still found.
_FEWEST_ODD = 2


class Absence:
    """What of a reading was not read, for all phrases that are looked for in it."""

    def __init__(self, reading: Reading) -> None:
        pages = reading.pages
        self._nothing = not any(letters(line.text) for _, line in reading.lines())
        self._whole_pages = [
            _named([page.number for page in pages if page.status == "failed"], "could not be read"),
            _named([page.number for page in pages if page.status == "unreached"], "not reached yet"),
            _named(illegible_pages(reading), "read too badly: many of the syllables there are none that texts use"),
        ]
        rooms = [_room(page, reading.unit) for page in pages]
        # A phrase may begin on a page and end on the next one.
        self._rooms = [
            (page, room + behind)
            for page, room, behind in zip(pages, rooms, [*rooms[1:], 0.0], strict=False)
            if room > 0
        ]

    def why_unsure(self, phrase: str) -> str:
        """Why a phrase that was not found may be there all the same; empty where that is excluded."""
        if self._nothing:
            return "no text was read at all"
        return "; ".join(reason for reason in (*self._whole_pages, self._unread(phrase)) if reason)

    def _unread(self, phrase: str) -> str:
        """What is unread on pages that were read, where it has room for the phrase."""
        needed = _ROOM_SHARE * sum(not char.isspace() for char in phrase)
        hiding = [page for page, room in self._rooms if room > needed]
        if not hiding:
            return ""
        reasons = dict.fromkeys(unread.reason for page in hiding for unread in page.unread)
        return f"{_named([page.number for page in hiding], 'read in part')}: {', '.join(reasons)}"


def illegible_pages(reading: Reading) -> list[int]:
    """The numbers of the pages that were read too badly: many of the syllables there are none that texts use."""
    return [page.number for page in reading.pages if _is_illegible(page)]


def _is_illegible(page: ReadPage) -> bool:
    """Whether a source misread what it gives of the page: a clean text layer says nothing of the page's pictures."""
    texts: dict[Source, list[str]] = {}
    for line in page.lines:
        texts.setdefault(line.source, []).append(line.text)
    return any(_is_misread("".join(of_source)) for of_source in texts.values())


def _is_misread(text: str) -> bool:
    odd = {char for char in text if not is_usual(char)}
    return len(odd) >= _FEWEST_ODD and odd_share(text) > _MOST_ODD


def _room(page: ReadPage, unit: Unit) -> float:
    """How many letters may stand, or be said, in what is unread on a page."""
    return sum(_letters(unread, unit) for unread in page.unread)


def _letters(unread: Unread, unit: Unit) -> float:
    if unread.start_s is not None and unread.end_s is not None:
        return (unread.end_s - unread.start_s) * MOST_SYLLABLES_PER_S
    if unread.box_xyxy is not None and unit in _LETTER_AREA:
        x0, y0, x1, y1 = unread.box_xyxy
        return max(0.0, x1 - x0) * max(0.0, y1 - y0) / _LETTER_AREA[unit]
    return float("inf")


def _named(numbers: Sequence[int], what: str) -> str:
    if not numbers:
        return ""
    return f"page{'s' if len(numbers) > 1 else ''} {', '.join(_ranges(numbers))} {what}"


def _ranges(numbers: Iterable[int]) -> list[str]:
    """Rising numbers, neighbours together: "1", "3-5"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
