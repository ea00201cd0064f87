"""What a file must be like, held against what it is: size, bleed, colours, fonts, resolution, cut or empty pages. Pure.

Owns the verdicts over facts that need no reading; attached files are attachments.py's. Refuses to know how the facts
were got. What a file does not tell (the size of a picture without a resolution) is `cannot_tell`, never a defect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from sam2_mcp_worker.checks.findings import Finding, Verdict
from sam2_mcp_worker.checks.reading import Box, ReadPage
from sam2_mcp_worker.checks.rule_packs.sections import FileRules

# Boxes are written with two decimals of a point.
ROUNDING_MM = 0.05
# A page on which less differs from its commonest colour holds nothing that anybody sees: 2 mm by 3 mm of an A4 page.
EMPTY_INK_SHARE = 0.0001
# Below, and without any line of text, there may be no more than the specks of a scan.
SPECKS_INK_SHARE = 0.002
# A line whose box passes the edge of the page by this share of its height has lost ink: boxes hold ascent and descent.
CUT_HEIGHTS = 0.3
# OCR boxes that end this near to an edge may go on behind it.
TOUCHING_SHARE = 0.002
# Colour spaces that only say how a colour is made of another one's.
UNKNOWN_SPACE = "unknown"


@dataclass(frozen=True, slots=True)
class Cut:
    """Something that an edge cuts off; not `sure` where only its shape tells."""

    what: str
    sure: bool
    box_xyxy: Box | None = None


@dataclass(frozen=True, slots=True)
class BleedSide:
    """A side where artwork reaches the trim: how far the file goes on behind it, and whether the artwork does, too.

    `filled` is None where what lies behind the trim is not shown.
    """

    side: str
    margin_mm: float
    filled: bool | None = None


@dataclass(frozen=True, slots=True)
class PlacedPicture:
    """A picture as it is placed: its own pixels per inch of page."""

    dpi: float
    box_xyxy: Box | None = None


@dataclass(frozen=True, slots=True)
class PageFacts:
    """What is known of a page without reading it; None and empty where it is not known or does not apply.

    `size_mm` is that of the trimmed page. `bleed` holds the sides where artwork reaches the trim, None where nobody
    looked. `fonts` maps names to whether they are embedded. `ink_share` is of the page, 0-1; `lines` are those read.
    """

    number: int
    size_mm: tuple[float, float] | None = None
    trim_stated: bool = False
    bleed: tuple[BleedSide, ...] | None = None
    colour_spaces: tuple[str, ...] = ()
    fonts: dict[str, bool] | None = None
    pictures: tuple[PlacedPicture, ...] | None = None
    ink_share: float | None = None
    lines: int = 0
    cuts: tuple[Cut, ...] | None = None


@dataclass(frozen=True, slots=True)
class _Defect:
    """Half a finding: what a page lacks."""

    verdict: Verdict
    what: str
    measured: float | None = None
    limit: float | None = None
    unit: str = ""
    box_xyxy: Box | None = None


def file_findings(rules: FileRules | None, pages: Sequence[PageFacts]) -> tuple[Finding, ...]:
    """One finding for each rule and defect of a page; one `met` for a rule that all pages keep.

    A rule that no page has facts for gives none.
    """
    if rules is None:
        return ()
    found: list[Finding] = []
    for field, check in _CHECKS.items():
        if not _asked(rules, field):
            continue
        judged = [(page, check(rules, page)) for page in pages]
        known = [(page, list(defects)) for page, defects in judged if defects is not None]
        defects = [_finding(rules, field, page.number, defect) for page, those in known for defect in those]
        if known and not defects:
            what = f"kept on {len(known)} page{'s' if len(known) > 1 else ''}"
            defects = [_finding(rules, field, None, _Defect("met", what))]
        found += defects
    return tuple(found)


def _asked(rules: FileRules, field: str) -> bool:
    value = getattr(rules, field)
    return not value if field.endswith("_allowed") else bool(value)


def _finding(rules: FileRules, field: str, page: int | None, defect: _Defect) -> Finding:
    return Finding(
        kind="file_defect",
        rule=f"files.{field}",
        verdict=defect.verdict,
        what=defect.what,
        basis=rules.basis,
        measured=defect.measured,
        limit=defect.limit,
        unit=defect.unit,
        page=page,
        box_xyxy=defect.box_xyxy,
    )


def _page_size(rules: FileRules, page: PageFacts) -> Iterable[_Defect]:
    if page.size_mm is None:
        return [_Defect("cannot_tell", "the file tells no physical size of this page")]
    width, height = sorted(page.size_mm)
    allowed = [tuple(sorted(size)) for size in rules.page_sizes_mm]
    most = rules.page_size_tolerance_mm + ROUNDING_MM
    if any(abs(width - one[0]) <= most and abs(height - one[1]) <= most for one in allowed):
        return []
    names = ", ".join(f"{one[0]:g} x {one[1]:g}" for one in allowed)
    shown = f"{page.size_mm[0]:.0f} x {page.size_mm[1]:.0f} mm"
    return [_Defect("not_met", f"the page is {shown}; allowed are {names} mm", unit="mm")]


def _bleed(rules: FileRules, page: PageFacts) -> Iterable[_Defect] | None:
    if page.bleed is None:
        return None
    least = rules.min_bleed_mm or 0.0
    short = [side for side in page.bleed if side.margin_mm < least - ROUNDING_MM]
    if short:
        has = min(side.margin_mm for side in short)
        sides = ", ".join(side.side for side in short)
        trim = "" if page.trim_stated else "; no trim is stated, so the page itself was taken for it"
        what = (
            f"artwork reaches the trim ({sides}) and goes on for {has:.1f} mm behind it, asked are {least:g} mm{trim}"
        )
        return [_Defect("not_met", what, has, least, "mm")]
    bare = [side.side for side in page.bleed if side.filled is False]
    if bare:
        what = f"there is room for bleed, but the artwork seems to end before {least:g} mm ({', '.join(bare)})"
        return [_Defect("review", what, limit=least, unit="mm")]
    return []


def _colours(rules: FileRules, page: PageFacts) -> Iterable[_Defect] | None:
    if not page.colour_spaces:
        return None
    wrong = sorted(set(page.colour_spaces) - {*rules.colour_spaces, UNKNOWN_SPACE})
    if wrong:
        return [_Defect("not_met", f"painted in {', '.join(wrong)}; allowed are {', '.join(rules.colour_spaces)}")]
    if UNKNOWN_SPACE in page.colour_spaces:
        return [_Defect("cannot_tell", "some colours are in a space that could not be made out")]
    return []


def _resolution(rules: FileRules, page: PageFacts) -> Iterable[_Defect] | None:
    if page.pictures is None:
        return None
    least = rules.min_image_dpi or 0.0
    coarse = sorted((one for one in page.pictures if round(one.dpi) < least), key=lambda one: one.dpi)
    if not coarse:
        return []
    also = f"; {len(coarse) - 1} more pictures alike" if len(coarse) > 1 else ""
    what = f"a picture has {coarse[0].dpi:.0f} dpi as it is placed, asked are {least:g}{also}"
    return [_Defect("not_met", what, round(coarse[0].dpi, 1), least, "dpi", coarse[0].box_xyxy)]


def _fonts(rules: FileRules, page: PageFacts) -> Iterable[_Defect] | None:
    if page.fonts is None:
        return None
    missing = sorted(name for name, embedded in page.fonts.items() if not embedded)
    few = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
    return [_Defect("not_met", f"not embedded: {few}")] if missing else []


def _empty(rules: FileRules, page: PageFacts) -> Iterable[_Defect] | None:
    if page.ink_share is None:
        return None
    if page.ink_share < EMPTY_INK_SHARE:
        return [_Defect("not_met", "the page is empty", page.ink_share, EMPTY_INK_SHARE)]
    if page.ink_share < SPECKS_INK_SHARE and not page.lines:
        return [_Defect("review", "hardly anything is on the page, and no text", page.ink_share, SPECKS_INK_SHARE)]
    return []


def _cut_off(rules: FileRules, page: PageFacts) -> Iterable[_Defect] | None:
    if page.cuts is None:
        return None
    return [_Defect("not_met" if cut.sure else "review", cut.what, box_xyxy=cut.box_xyxy) for cut in page.cuts]


_CHECKS: dict[str, Callable[[FileRules, PageFacts], Iterable[_Defect] | None]] = {
    "page_sizes_mm": _page_size,
    "min_bleed_mm": _bleed,
    "colour_spaces": _colours,
    "min_image_dpi": _resolution,
    "fonts_embedded": _fonts,
    "empty_pages_allowed": _empty,
    "cut_off_allowed": _cut_off,
}


def cut_lines(page: ReadPage) -> tuple[Cut, ...]:
    """Lines that the edge of their page cuts: surely where a text layer says so, perhaps where OCR saw the rest."""
    if page.size is None:
        return ()
    found: list[Cut] = []
    for line in page.lines:
        if line.box_xyxy is None or not any(character.isalnum() for character in line.text):
            continue
        beyond = _beyond(line.box_xyxy, page.size)
        side, most = max(beyond.items(), key=lambda one: one[1])
        height = line.height or min(line.box_xyxy[2] - line.box_xyxy[0], line.box_xyxy[3] - line.box_xyxy[1])
        text = line.text[:40]
        if line.source == "ocr":
            if most >= -TOUCHING_SHARE * min(page.size):
                found.append(
                    Cut(f"text touches the {side} edge and may go on behind it: {text!r}", False, line.box_xyxy)
                )
        elif most > CUT_HEIGHTS * height:
            found.append(Cut(f"text is cut off by the {side} edge: {text!r}", True, line.box_xyxy))
    return tuple(found)


def _beyond(box: Box, size: tuple[float, float]) -> dict[str, float]:
    """How far a box passes each edge; below 0 it ends before it."""
    return {"left": -box[0], "top": -box[1], "right": box[2] - size[0], "bottom": box[3] - size[1]}
