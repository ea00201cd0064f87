"""Takes drawings and pictures under the regions out of a page's content, forms included. Runs in redact children.

Owns the walk through content streams: paths and clips are cut (redact_paths.py), pictures blanked
(redact_pdf_pictures.py), replacement texts of marked content dropped; form XObjects are copied before they are changed,
since other pages may show them too. Text is the business of redact_pdf_glyphs.py. What it meets and cannot cut is
named, so that the page can become a picture.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pikepdf
from pikepdf import Dictionary, Name, Operator

from sam2_mcp_worker.media.pdf_geometry import IDENTITY, Matrix, bounds_after, multiply
from sam2_mcp_worker.media.redact_path_builder import (
    PATH_OPERATORS,
    PathBuilder,
    applied,
    as_matrix,
    inverse,
    placed,
    same,
)
from sam2_mcp_worker.media.redact_paths import Rect, Subpath, bounds, cut_fill, cut_stroke, overlap
from sam2_mcp_worker.media.redact_pdf_pictures import UndecodableError, blanked, from_inline, is_decodable
from sam2_mcp_worker.media.redact_pdf_syntax import name_text, page_resources

# As in pdf_objects: deeper nesting is not seen in real files; cyclic forms are.
MAX_DEPTH = 8
# Texts that a marked piece of content carries for readers and search engines beside what is drawn.
REPLACEMENT_KEYS = ("/ActualText", "/Alt", "/E")
# Boxes that only touch are looked at: a line has no height.
_TOUCHING = -1e-6
_DRAWN_INSIDE = {"Tj", "TJ", "'", '"', "Do", "BI", "INLINE IMAGE", "sh"}

_FILLS = {"f": "f", "F": "f", "f*": "f*", "B": "f", "B*": "f*", "b": "f", "b*": "f*"}
_STROKES = {"S", "s", "B", "B*", "b", "b*"}
_CLOSES = {"s", "b", "b*"}
_PAINTS = {*_FILLS, *_STROKES, "n"}


@dataclass(slots=True)
class PageDrawings:
    """What the walk did: paths cut or dropped, and why the page had better become a picture (empty: no reason)."""

    paths: int = 0
    pictures: int = 0
    obstacles: list[str] = field(default_factory=list)


def clean_page_content(pdf: pikepdf.Pdf, page: pikepdf.Page, rects: Sequence[Rect]) -> PageDrawings:
    """Rewrite the page's content in place, with resources of its own.

    Args:
        rects: regions in the PDF's own coordinates of the page.
    """
    report = PageDrawings()
    resources = _own_resources(page)
    walk = _Walk(pdf, rects, report, resources, IDENTITY, 0, frozenset())
    content = walk.run(page.obj)
    page.obj.Contents = pdf.make_stream(content if content is not None else _raw_content(page))
    page.obj.Resources = walk.resources
    return report


def has_odd_pictures(resources: Any, depth: int = 0) -> bool:
    """Whether there are pictures that redact_pdf_pictures cannot unpack, in forms too."""
    entries = resources.get("/XObject") if isinstance(resources, Dictionary) else None
    if not isinstance(entries, Dictionary) or depth > MAX_DEPTH:
        return False
    return any(
        not is_decodable(entry)
        if entry.get("/Subtype") == Name.Image
        else has_odd_pictures(entry.get("/Resources"), depth + 1)
        for entry in entries.values()
        if isinstance(entry, pikepdf.Stream)
    )


def _raw_content(page: pikepdf.Page) -> bytes:
    return pikepdf.unparse_content_stream(pikepdf.parse_content_stream(page))


def _own_resources(page: pikepdf.Page) -> Dictionary:
    """A copy as deep as names go: pages share resources."""
    return _copied(page_resources(page))


def _copied(resources: Any) -> Dictionary:
    copies: dict[str, Any] = {}
    for key, value in resources.items():
        copies[key] = Dictionary(dict(value.items())) if isinstance(value, Dictionary) else value
    return Dictionary(copies)


class _Walk:
    """One content stream in the space that `matrix` places on the page."""

    def __init__(
        self,
        pdf: pikepdf.Pdf,
        rects: Sequence[Rect],
        report: PageDrawings,
        resources: Dictionary,
        matrix: Matrix,
        depth: int,
        parents: frozenset[tuple[int, int]],
    ) -> None:
        self.pdf, self.rects, self.report, self.resources = pdf, rects, report, resources
        self.matrix = matrix
        self.depth, self.parents = depth, parents
        self.stack: list[Matrix] = []
        self.out: list[Any] = []
        self.path = PathBuilder()
        self.changed = False

    def run(self, holder: Any) -> bytes | None:
        """The new content, or None when nothing had to change."""
        handlers: dict[str, Callable[[Any], bool]] = {
            "q": self._save, "Q": self._restore, "cm": self._concat, "Do": self._do, "gs": self._graphics_state,
            "scn": self._pattern, "SCN": self._pattern, "BDC": self._marked, "DP": self._marked,
            "INLINE IMAGE": self._inline,
        }  # fmt: skip
        for instruction in pikepdf.parse_content_stream(holder):
            operator = str(instruction.operator)
            if operator in PATH_OPERATORS:
                self.path.instructions.append(instruction)
                self.path.add(operator, [float(number) for number in instruction.operands])
            elif operator in ("W", "W*"):
                self.path.instructions.append(instruction)
                self.path.clip = operator
            elif operator in _PAINTS:
                self._paint(operator, instruction)
            elif operator not in handlers or not handlers[operator](instruction):
                self.out.append(instruction)
        return pikepdf.unparse_content_stream(self.out) if self.changed else None

    def _save(self, _: Any) -> bool:
        self.stack.append(self.matrix)
        return False

    def _restore(self, _: Any) -> bool:
        if self.stack:
            self.matrix = self.stack.pop()
        return False

    def _concat(self, instruction: Any) -> bool:
        if len(instruction.operands) == 6:
            self.matrix = multiply(as_matrix(instruction.operands), self.matrix)
        return False

    def _marked(self, instruction: Any) -> bool:
        operands = list(instruction.operands)
        if len(operands) != 2 or not isinstance(operands[1], Dictionary):
            return False
        kept = {key: value for key, value in operands[1].items() if key not in REPLACEMENT_KEYS}
        if len(kept) == len(operands[1].keys()):
            return False
        self._emit(str(instruction.operator), operands[0], Dictionary(kept))
        return True

    def _pattern(self, instruction: Any) -> bool:
        name = instruction.operands[-1] if instruction.operands else None
        pattern = self._resource("/Pattern", name)
        if isinstance(pattern, pikepdf.Stream) and _draws(pattern):
            self._obstacle("a tiling pattern holds text or pictures")
        return False

    def _graphics_state(self, instruction: Any) -> bool:
        state = self._resource("/ExtGState", instruction.operands[0] if instruction.operands else None)
        mask = state.get("/SMask") if isinstance(state, Dictionary) else None
        group = mask.get("/G") if isinstance(mask, Dictionary) else None
        if isinstance(group, pikepdf.Stream) and _draws(group):
            self._obstacle("a soft mask holds text or pictures")
        return False

    def _obstacle(self, reason: str) -> None:
        if reason not in self.report.obstacles:
            self.report.obstacles.append(reason)

    def _resource(self, kind: str, name: Any) -> Any:
        entries = self.resources.get(kind)
        return entries.get(name_text(name)) if isinstance(name, Name) and isinstance(entries, Dictionary) else None

    def _do(self, instruction: Any) -> bool:
        name = instruction.operands[0] if instruction.operands else None
        form = self._resource("/XObject", name)
        if not isinstance(form, pikepdf.Stream):
            return False
        if form.get("/Subtype") == Name.Image:
            return self._picture(form)
        matrix = multiply(as_matrix(form.get("/Matrix")), self.matrix)
        if not self._touches(bounds_after(matrix, *map(float, form.get("/BBox", [0, 0, 0, 0])))):
            return False
        if self.depth >= MAX_DEPTH or form.objgen in self.parents:
            self._obstacle("form XObjects are nested without end")
            return False
        copied = self._clean_form(form, matrix)
        if copied is None:
            return False
        self._emit("Do", self._new_name(copied))
        return True

    def _inline(self, instruction: Any) -> bool:
        if not self._touches(bounds_after(self.matrix, 0.0, 0.0, 1.0, 1.0)):
            return False
        return self._picture(from_inline(self.pdf, instruction.iimage, self.resources.get("/ColorSpace")))

    def _picture(self, picture: Any) -> bool:
        if not self._touches(bounds_after(self.matrix, 0.0, 0.0, 1.0, 1.0)):
            return False
        try:
            copied = blanked(self.pdf, picture, self.matrix, self.rects)
        except UndecodableError:
            self._obstacle("a picture cannot be unpacked")
            return False
        if copied is None:
            return False
        self.report.pictures += 1
        self._emit("Do", self._new_name(copied))
        return True

    def _clean_form(self, form: pikepdf.Stream, matrix: Matrix) -> pikepdf.Stream | None:
        own = form.get("/Resources")
        resources = self.resources if own is None else _copied(own)
        parents = self.parents | {form.objgen}
        walk = _Walk(self.pdf, self.rects, self.report, resources, matrix, self.depth + 1, parents)
        content = walk.run(form)
        if content is None:
            return None
        copied = self.pdf.make_stream(content)
        for key, value in form.items():
            if key not in ("/Length", "/Filter", "/DecodeParms", "/Resources"):
                copied[key] = value
        copied.Resources = resources
        return copied

    def _new_name(self, item: Any) -> Name:
        if "/XObject" not in self.resources:
            self.resources.XObject = Dictionary()
        taken = self.resources.XObject
        name = next(candidate for i in range(len(taken) + 1) if (candidate := f"/Cut{i}") not in taken)
        taken[name] = item
        return Name(name)

    def _touches(self, box: Rect) -> bool:
        return any(overlap(box, rect, _TOUCHING) for rect in self.rects)

    def _paint(self, operator: str, instruction: Any) -> None:
        path, self.path = self.path, PathBuilder()
        on_page = [placed(subpath, self.matrix) for subpath in path.subpaths]
        box = bounds(on_page)
        back = inverse(self.matrix)
        if box is None or back is None or not self._touches(box):
            self.out += [*path.instructions, instruction]
            return
        if operator in _CLOSES and on_page:
            on_page[-1].closed = True
        outline, strokes = on_page, on_page
        for rect in self.rects:
            outline, strokes = cut_fill(outline, rect), cut_stroke(strokes, rect)
        if same(outline, on_page) and (operator not in _STROKES or same(strokes, on_page)):
            self.out += [*path.instructions, instruction]
            return
        self.report.paths += 1
        if operator in _FILLS and outline:
            self._draw(outline, back, _FILLS[operator])
        if operator in _STROKES and strokes:
            self._draw(strokes, back, "S")
        if path.clip:
            self._clip(outline, back, path.clip)
        self.changed = True

    def _clip(self, outline: list[Subpath], back: Matrix, operator: str) -> None:
        if outline:
            self._construct(outline, back)
        else:
            self._emit("re", 0, 0, 0, 0)  # of what was clipped to it nothing is seen outside of the region
        self._emit(operator)
        self._emit("n")

    def _draw(self, subpaths: list[Subpath], back: Matrix, operator: str) -> None:
        self._construct(subpaths, back)
        self._emit(operator)

    def _construct(self, subpaths: list[Subpath], back: Matrix) -> None:
        for subpath in subpaths:
            self._emit("m", *applied(back, subpath.start))
            for segment in subpath.segments:
                numbers = [number for point in segment[1:] for number in applied(back, point)]
                self._emit("l" if len(segment) == 2 else "c", *numbers)
            if subpath.closed:
                self._emit("h")

    def _emit(self, operator: str, *operands: Any) -> None:
        values = [_number(value) if isinstance(value, float) else value for value in operands]
        self.out.append(pikepdf.ContentStreamInstruction(values, Operator(operator)))
        self.changed = True


def _draws(stream: pikepdf.Stream) -> bool:
    """Whether a pattern cell or mask holds more than plain paths."""
    try:
        return any(str(instruction.operator) in _DRAWN_INSIDE for instruction in pikepdf.parse_content_stream(stream))
    except pikepdf.PdfError:
        return True


def _number(value: float) -> Decimal:
    """Eight digits, never in the exponent form that PDF does not know."""
    return Decimal(format(Decimal(f"{value:.8g}"), "f"))
