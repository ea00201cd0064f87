"""Contrast ratios of text against its ground as WCAG 2 defines them, held against minimums. Pure.

Owns what follows from a range. Refuses to know how colours are measured; the formula stands in luminance.py.
Source: WCAG 2.2, success criterion 1.4.3, and its definition of large text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sam2_mcp_worker.checks.findings import Finding, Verdict
from sam2_mcp_worker.checks.line_groups import SEVERITY, LineRef, PhrasePlaces, best_place, grouped, lines_by_ref
from sam2_mcp_worker.checks.reading import Reading, ReadLine
from sam2_mcp_worker.checks.rule_packs.sections import ContrastRules
from sam2_mcp_worker.checks.text_size import TextSize

# WCAG counts bold text as large from 14 pt where other text needs 18 pt: the same share of the pack's `large_from_pt`.
BOLD_LARGE_SHARE = 14 / 18
# A point is 4/3 of a CSS pixel, in which pictures for screens are made.
CSS_PX_PER_PT = 4 / 3


@dataclass(frozen=True, slots=True)
class ContrastRange:
    """Between which ratios (1-21) a line's contrast lies: `low` where it is weakest, `high` for most of the line.

    With a `reason` nothing could be measured; `unseen` says that there is no ink where the line stands, or only in a
    part of it.
    """

    low: float
    high: float
    reason: str = ""
    unseen: bool = False

    def told(self) -> str:
        """For people: `4.2` or `3.1 to 4.6`."""
        low, high = f"{self.low:.1f}", f"{self.high:.1f}"
        return low if low == high else f"{low} to {high}"


def contrast_findings(
    rules: ContrastRules | None,
    reading: Reading,
    sizes: Mapping[LineRef, TextSize],
    contrasts: Mapping[LineRef, ContrastRange],
    phrases: PhrasePlaces,
) -> tuple[Finding, ...]:
    """One finding for each of the `phrases` or each page.

    A place is told by its worst line, a phrase by the best of its places.
    """
    if rules is None or (rules.min_ratio is None and rules.min_ratio_large is None):
        return ()
    read = lines_by_ref(reading)
    found: list[Finding] = []
    for name, of_name in grouped(reading, phrases, rules.applies_to).items():
        told = [
            [(*_judged(rules, contrasts[ref], sizes.get(ref)), ref) for ref in refs if ref in contrasts]
            for refs in of_name
        ]
        at_places = [_worst(rules, read, name, contrasts, of_place) for of_place in told if of_place]
        found += sorted(best_place(at_places), key=lambda one: SEVERITY.index(one.verdict))[-1:]
    return tuple(found)


def _worst(
    rules: ContrastRules,
    read: Mapping[LineRef, ReadLine],
    name: str,
    contrasts: Mapping[LineRef, ContrastRange],
    told: Sequence[tuple[Verdict, float, str, LineRef]],
) -> Finding:
    verdict, minimum, reason, ref = min(
        told, key=lambda one: (SEVERITY.index(one[0]), contrasts[one[3]].high / one[1], one[3])
    )
    contrast = contrasts[ref]
    others = sum(one[0] == verdict for one in told) - 1
    also = f"; {others} more lines alike" if others and verdict != "met" else ""
    measured = None if contrast.reason else (contrast.low + contrast.high) / 2
    shown = "contrast" if contrast.reason else f"contrast {contrast.told()}"
    return Finding(
        kind="contrast_too_low",
        rule="contrast.min_ratio_large" if minimum == rules.min_ratio_large else "contrast.min_ratio",
        verdict=verdict,
        what=f"{name}: {shown}, the minimum is {minimum:g}" + (f": {reason}" if reason else "") + also,
        basis=rules.basis,
        measured=measured,
        limit=minimum,
        uncertainty=(contrast.high - contrast.low) / 2,
        unit=":1",
        page=ref[0],
        box_xyxy=read[ref].box_xyxy,
    )


def _judged(rules: ContrastRules, contrast: ContrastRange, size: TextSize | None) -> tuple[Verdict, float, str]:
    """The verdict, the minimum it is held against, and the reason of a doubt."""
    surely_large, perhaps_large = _large(rules, size)
    normal = rules.min_ratio if rules.min_ratio is not None else 1.0
    large = rules.min_ratio_large if rules.min_ratio_large is not None else normal
    asked, at_least = (large, large) if surely_large else (normal, large if perhaps_large else normal)
    if contrast.reason:
        return "cannot_tell", asked, contrast.reason
    if contrast.low >= asked:
        return "met", asked, ""
    if contrast.high < at_least:
        return "not_met", at_least, ""
    if contrast.low >= at_least:
        return "review", asked, f"for large text {at_least:g} is enough, and whether this is large is not sure"
    return "review", asked, "it changes along the line, or the print is too fine to measure it better"


def _large(rules: ContrastRules, size: TextSize | None) -> tuple[bool, bool]:
    """Whether the text is surely, and whether it is perhaps large: bold counts earlier, and is not known here."""
    if size is None:
        return False, True
    if size.unit == "px":  # how large a pixel is shown is not known: it may be a CSS pixel
        return False, size.size + size.uncertainty >= rules.large_from_pt * BOLD_LARGE_SHARE * CSS_PX_PER_PT
    return (
        size.size - size.uncertainty >= rules.large_from_pt,
        size.size + size.uncertainty >= rules.large_from_pt * BOLD_LARGE_SHARE,
    )
