"""How large text is, physically where that is known, beside the largest text, and held against minimums. Pure.

Owns what a height means and how sure it is. Refuses to know who measured it. Heights are font sizes (em).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sam2_mcp_worker.checks.findings import Finding, Verdict
from sam2_mcp_worker.checks.line_groups import SEVERITY, PhrasePlaces, best_place, grouped, is_text, lines_by_ref
from sam2_mcp_worker.checks.line_groups import LineRef as LineRef
from sam2_mcp_worker.checks.reading import Reading, ReadLine
from sam2_mcp_worker.checks.rule_packs.sections import TextRules

PT_PER_INCH = 72.0
MM_PER_PT = 25.4 / PT_PER_INCH
# Heights of OCR may be off by so many pixels of the picture that was read: what field reviews give to a person.
NEAR_BORDER_PX = 3.0
# Sizes of a text layer come rounded to hundredths, and 6 pt that were scaled in a layout program are 5.98.
EXACT_TO = 0.05
# Below, an OCR line is hardly readable (as in pipelines/text_tracks.py), and its height is that of something else.
SURE = 0.5
# Programs write 72 or 96 dpi into pictures when nobody said any: that tells nothing of their size on paper.
MAX_DEFAULT_DPI = 96.0

# Names of phrases in one sentence.
_FEW_NAMES = 5


@dataclass(frozen=True, slots=True)
class PageScale:
    """`pt_per_unit` turns heights of the reading into points on paper; None where no physical size is known.

    `px_per_unit` are the pixels of the picture that OCR read, per unit of the reading.
    """

    pt_per_unit: float | None
    px_per_unit: float


@dataclass(frozen=True, slots=True)
class TextSize:
    """The font size of a line: in points on paper, or in pixels (of a picture; points of a captured screen are such).

    `uncertainty` is in the same unit, 0 for sizes of a text layer. `share_of_largest` is 0-1, `share_uncertainty` too.
    `doubt` says why the height itself is in doubt. `usual` is the size of most of the line's letters, where `size` is
    only that of its smallest.
    """

    size: float
    unit: Literal["pt", "px"]
    uncertainty: float
    share_of_largest: float | None = None
    share_uncertainty: float = 0.0
    doubt: str = ""
    usual: float | None = None

    @property
    def mm(self) -> float | None:
        """The same in millimetres; None where no physical size is known."""
        return self.size * MM_PER_PT if self.unit == "pt" else None

    def told(self) -> str:
        """For people: `5.8 pt (2.0 mm)`."""
        near = f"about {self.size:.1f}" if self.uncertainty else f"{self.size:.1f}"
        return f"{near} {self.unit}" + (f" ({self.mm:.1f} mm)" if self.mm is not None else "")


def picture_scale(dpi: float | None) -> PageScale:
    """The scale of a picture that states this resolution."""
    known = dpi is not None and dpi > MAX_DEFAULT_DPI
    return PageScale(PT_PER_INCH / dpi if dpi is not None and known else None, 1.0)


def sizes_of(
    reading: Reading, scales: Mapping[int, PageScale], near_border_px: float = NEAR_BORDER_PX
) -> dict[LineRef, TextSize]:
    """The sizes of all lines with a height, on pages whose scale is known; shares are of the largest in that unit."""
    sizes: dict[LineRef, TextSize] = {}
    for page in reading.pages:
        scale = scales.get(page.number)
        for index, line in enumerate(page.lines):
            if scale is not None and line.height:
                sizes[page.number, index] = _size(line, line.height, scale, near_border_px)
    largest = {unit: _largest(reading, sizes, unit) for unit in ("pt", "px")}
    return {ref: _beside(size, largest[size.unit]) for ref, size in sizes.items()}


def _size(line: ReadLine, height: float, scale: PageScale, near_border_px: float) -> TextSize:
    factor = 1.0 if scale.pt_per_unit is None else scale.pt_per_unit
    off = near_border_px / scale.px_per_unit * factor if line.source == "ocr" else 0.0
    doubt = "hardly readable" if line.confidence is not None and line.confidence < SURE else ""
    usual = None if line.usual_height is None else line.usual_height * factor
    return TextSize(height * factor, "px" if scale.pt_per_unit is None else "pt", off, doubt=doubt, usual=usual)


def _largest(reading: Reading, sizes: Mapping[LineRef, TextSize], unit: str) -> TextSize | None:
    """The largest that is surely text."""
    found = [
        sizes[page.number, index]
        for page in reading.pages
        for index, line in enumerate(page.lines)
        if (page.number, index) in sizes and is_text(line)
    ]
    usual = [replace(one, size=one.usual or one.size) for one in found if one.unit == unit and not one.doubt]
    return max(usual, key=lambda one: one.size, default=None)


def _beside(size: TextSize, largest: TextSize | None) -> TextSize:
    if largest is None:
        return size
    share = min(1.0, size.size / largest.size)
    # Both may be off, each the other way.
    least = max(0.0, size.size - size.uncertainty) / (largest.size + largest.uncertainty)
    return replace(size, share_of_largest=share, share_uncertainty=share - min(share, least))


def size_findings(
    rules: TextRules | None,
    reading: Reading,
    sizes: Mapping[LineRef, TextSize],
    phrases: PhrasePlaces,
) -> tuple[Finding, ...]:
    """One finding for each minimum and each of the `phrases`, or for each page.

    A place is told by its worst line, a phrase by the best of its places. What could not be read of a document may
    hold larger text, as large as it is itself: where a share is not sure for that reason, it is told once.
    """
    if rules is None:
        return ()
    judge = _Judge(rules, reading, sizes)
    found: list[Finding] = []
    for name, of_name in grouped(reading, phrases, rules.applies_to).items():
        found += best_place(finding for refs in of_name for finding in judge.place(name, refs))
    return (*(one for one in found if not _hidden(one)), *_once([one for one in found if _hidden(one)]))


def largest_unread(reading: Reading) -> float:
    """How high text may be, in units of the reading, that nobody could read: as its place is; 0 where all was read."""
    if any(page.status != "done" for page in reading.pages):
        return math.inf
    unread = [one.box_xyxy for page in reading.pages for one in page.unread]
    if None in unread:
        return math.inf
    return max((min(box[2] - box[0], box[3] - box[1]) for box in unread if box is not None), default=0.0)


def _hidden(finding: Finding) -> bool:
    return finding.verdict == "cannot_tell"


def _once(found: Sequence[Finding]) -> list[Finding]:
    """One finding for all of which the same is not known."""
    if len(found) < 2:
        return list(found)
    names = [one.what.split(":")[0] for one in found]
    few = ", ".join(names[:_FEW_NAMES]) + (f" and {len(names) - _FEW_NAMES} more" if len(names) > _FEW_NAMES else "")
    smallest = min(found, key=lambda one: one.measured or 0.0)
    return [replace(smallest, what=f"{few}{smallest.what[smallest.what.index(':') :]}")]


class _Judge:
    """Holds lines against the minimums, with what is looked up once for all of them."""

    def __init__(self, rules: TextRules, reading: Reading, sizes: Mapping[LineRef, TextSize]) -> None:
        self._rules, self._sizes = rules, sizes
        self._lines = lines_by_ref(reading)
        self._unread = largest_unread(reading)

    def place(self, name: str, refs: Sequence[LineRef]) -> list[Finding]:
        """The findings at one place, one for each minimum that applies to it."""
        rules, judged = self._rules, [(ref, self._sizes[ref]) for ref in refs if ref in self._sizes]
        of_unit = {unit: [one for one in judged if one[1].unit == unit] for unit in ("pt", "px")}
        known = [one for one in judged if one[1].share_of_largest is not None]
        found = [
            self._worst(name, "min_height_pt", rules.min_height_pt, of_unit["pt"]),
            self._worst(name, "min_height_px", rules.min_height_px, of_unit["px"]),
            self._worst(name, "min_share_of_largest", rules.min_share_of_largest, known),
        ]
        return [finding for finding in found if finding is not None]

    def _worst(
        self, name: str, field: str, minimum: float | None, judged: Sequence[tuple[LineRef, TextSize]]
    ) -> Finding | None:
        """The finding of the worst line; None where there is no minimum or nothing to judge."""
        if minimum is None or not judged:
            return None
        share = field == "min_share_of_largest"
        told = [(_verdict(size, minimum, share, self._may_be_dwarfed(ref, minimum)), ref, size) for ref, size in judged]
        (verdict, reason), ref, size = min(
            told, key=lambda one: (SEVERITY.index(one[0][0]), one[2].share_of_largest if share else one[2].size, one[1])
        )
        others = sum(one[0][0] == verdict for one in told) - 1
        shown = f"{size.share_of_largest:.3f} of the largest text ({size.told()})" if share else size.told()
        least = f"{minimum:g}" if share else f"{minimum:g} {size.unit}"
        also = f"; {others} more lines alike" if others and verdict != "met" else ""
        return Finding(
            kind="text_too_small",
            rule=f"text.{field}",
            verdict=verdict,
            what=f"{name}: {shown}, the minimum is {least}" + (f": {reason}" if reason else "") + also,
            basis=self._rules.basis,
            measured=size.share_of_largest if share else size.size,
            limit=minimum,
            uncertainty=size.share_uncertainty if share else size.uncertainty,
            unit="" if share else size.unit,
            page=ref[0],
            box_xyxy=self._lines[ref].box_xyxy,
        )

    def _may_be_dwarfed(self, ref: LineRef, minimum: float) -> bool:
        """Whether what could not be read has room for text beside which this line is smaller than the minimum share."""
        return (self._lines[ref].height or 0.0) / minimum < self._unread


def _verdict(size: TextSize, minimum: float, share: bool, hidden: bool) -> tuple[Verdict, str]:
    measured, off = (size.share_of_largest or 0.0, size.share_uncertainty) if share else (size.size, size.uncertainty)
    exact_to = EXACT_TO * minimum if share else EXACT_TO
    if size.doubt:
        return "review", f"the line is {size.doubt}, its height is not sure"
    if off and abs(measured - minimum) < off:
        return "review", "nearer to the minimum than heights can be measured in pictures"
    if measured < minimum - exact_to:
        if size.usual is not None and measured * size.usual / size.size >= minimum - exact_to:
            return "review", f"most letters of the line are {size.usual:.1f} {size.unit}; the small ones may be a mark"
        return "not_met", ""
    if share and hidden:
        return "cannot_tell", "not all was read, and far larger text may stand there"
    return "met", ""
