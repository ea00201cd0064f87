"""How large text is, physically where that is known, beside the largest text, and held against minimums. Pure.

Owns what a height means and how sure it is. Refuses to know who measured it. Heights are font sizes (em).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sam2_mcp_worker.checks.findings import Finding, Verdict
from sam2_mcp_worker.checks.reading import Reading, ReadLine, ReadPage
from sam2_mcp_worker.checks.rule_packs.sections import TextRules

LineRef = tuple[int, int]
"""The number of a page and the index of a line in `ReadPage.lines`."""

PT_PER_INCH = 72.0
MM_PER_PT = 25.4 / PT_PER_INCH
# Heights of OCR may be off by so many pixels of the picture that was read: what field reviews give to a person.
NEAR_BORDER_PX = 3.0
# Sizes of a text layer come rounded to hundredths, and 6 pt that were scaled in a layout program are 5.98.
EXACT_TO = 0.05
# Below, an OCR line is hardly readable (as in pipelines/text_tracks.py), and its height is that of something else.
SURE = 0.5
# A mark or a letter alone is more often a bullet, a stain or an ornament than text.
MIN_LETTERS = 2
# Programs write 72 or 96 dpi into pictures when nobody said any: that tells nothing of their size on paper.
MAX_DEFAULT_DPI = 96.0

_SEVERITY: tuple[Verdict, ...] = ("not_met", "review", "cannot_tell", "met")


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
    `doubt` says why the height itself is in doubt.
    """

    size: float
    unit: Literal["pt", "px"]
    uncertainty: float
    share_of_largest: float | None = None
    share_uncertainty: float = 0.0
    doubt: str = ""

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
    return TextSize(height * factor, "px" if scale.pt_per_unit is None else "pt", off, doubt=doubt)


def _largest(reading: Reading, sizes: Mapping[LineRef, TextSize], unit: str) -> TextSize | None:
    """The largest that is surely text."""
    found = [
        sizes[page.number, index]
        for page in reading.pages
        for index, line in enumerate(page.lines)
        if (page.number, index) in sizes and _is_text(line)
    ]
    return max((one for one in found if one.unit == unit and not one.doubt), key=lambda one: one.size, default=None)


def _is_text(line: ReadLine) -> bool:
    return sum(character.isalnum() for character in line.text) >= MIN_LETTERS


def _beside(size: TextSize, largest: TextSize | None) -> TextSize:
    if largest is None:
        return size
    share = min(1.0, size.size / largest.size)
    # Both may be off, each the other way.
    least = max(0.0, size.size - size.uncertainty) / (largest.size + largest.uncertainty)
    return TextSize(size.size, size.unit, size.uncertainty, share, share - min(share, least), size.doubt)


def size_findings(
    rules: TextRules | None, reading: Reading, sizes: Mapping[LineRef, TextSize], lines: Mapping[LineRef, str]
) -> tuple[Finding, ...]:
    """One finding for each minimum and each phrase (`lines`: which lines carry it, by its name), or for each page.

    It is told by its worst line. The largest text of a document that was not read whole may be larger.
    """
    if rules is None:
        return ()
    found: list[Finding] = []
    for name, refs in grouped(reading, lines, rules.applies_to).items():
        judged = [(ref, sizes[ref]) for ref in refs if ref in sizes]
        minimums = (("min_height_pt", "pt", rules.min_height_pt), ("min_height_px", "px", rules.min_height_px))
        for field, unit, minimum in minimums:
            if minimum is not None:
                of_unit = [(ref, size) for ref, size in judged if size.unit == unit]
                found += _worst(rules, reading, name, field, minimum, of_unit)
        if rules.min_share_of_largest is not None:
            known = [(ref, size) for ref, size in judged if size.share_of_largest is not None]
            found += _worst(rules, reading, name, "min_share_of_largest", rules.min_share_of_largest, known)
    return tuple(found)


def grouped(
    reading: Reading, lines: Mapping[LineRef, str], applies_to: Literal["phrases", "all"]
) -> dict[str, list[LineRef]]:
    """Which lines are judged together: those of a phrase by its name, else all text of a page."""
    groups: dict[str, list[LineRef]] = {}
    if applies_to == "phrases":
        for ref, name in sorted(lines.items()):
            groups.setdefault(name, []).append(ref)
        return groups
    for page in reading.pages:
        refs = [(page.number, index) for index, line in enumerate(page.lines) if _is_text(line)]
        if page.status == "done" and refs:
            groups[f"page {page.number}"] = refs
    return groups


def line_at(reading: Reading, ref: LineRef) -> tuple[ReadPage, ReadLine]:
    """The line that a reference names.

    Raises:
        KeyError: there is no such page.
    """
    pages = {page.number: page for page in reading.pages}
    return pages[ref[0]], pages[ref[0]].lines[ref[1]]


def _worst(
    rules: TextRules,
    reading: Reading,
    name: str,
    field: str,
    minimum: float,
    judged: Sequence[tuple[LineRef, TextSize]],
) -> list[Finding]:
    """The finding of the worst line; none where there is nothing to judge."""
    if not judged:
        return []
    share = field == "min_share_of_largest"
    told = [(_verdict(size, minimum, share, reading.whole), ref, size) for ref, size in judged]
    (verdict, reason), ref, size = min(
        told, key=lambda one: (_SEVERITY.index(one[0][0]), one[2].share_of_largest if share else one[2].size, one[1])
    )
    others = sum(one[0][0] == verdict for one in told) - 1
    measured = size.share_of_largest if share else size.size
    page, line = line_at(reading, ref)
    shown = f"{measured:.3f} of the largest text ({size.told()})" if share else size.told()
    least = f"{minimum:g}" if share else f"{minimum:g} {size.unit}"
    also = f"; {others} more lines alike" if others and verdict != "met" else ""
    return [
        Finding(
            kind="text_too_small",
            rule=f"text.{field}",
            verdict=verdict,
            what=f"{name}: {shown}, the minimum is {least}" + (f": {reason}" if reason else "") + also,
            basis=rules.basis,
            measured=measured,
            limit=minimum,
            uncertainty=size.share_uncertainty if share else size.uncertainty,
            unit="" if share else size.unit,
            page=page.number,
            box_xyxy=line.box_xyxy,
        )
    ]


def _verdict(size: TextSize, minimum: float, share: bool, whole: bool) -> tuple[Verdict, str]:
    measured, off = (size.share_of_largest or 0.0, size.share_uncertainty) if share else (size.size, size.uncertainty)
    exact_to = EXACT_TO * minimum if share else EXACT_TO
    if size.doubt:
        return "review", f"the line is {size.doubt}, its height is not sure"
    if off and abs(measured - minimum) < off:
        return "review", "nearer to the minimum than heights can be measured in pictures"
    if measured < minimum - exact_to:
        return "not_met", ""
    if share and not whole:
        return "cannot_tell", "not all was read, and larger text may stand there"
    return "met", ""
