"""What a page is painted with: colour spaces and fonts that are really used, forms and patterns included.

Owns the walk through content streams that only looks. Runs in redact children (pikepdf). What it cannot make sense of
it passes over, as viewers do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pikepdf
from pikepdf import Array, Dictionary, Name

from sam2_mcp_worker.media.redact_pdf_syntax import name_text, page_resources

# As in pdf_objects: deeper nesting is not seen in real files; cyclic forms are.
MAX_DEPTH = 8
# A form that a page places a thousand times is looked at once; so many different ones nobody draws by hand.
MAX_STREAMS = 2_000
# Invisible text (the layer under a scan) needs no font and no colour.
_INVISIBLE, _STROKED, _BOTH = (3, 7), (1, 5), (2, 6)
# What wrong operands and missing entries raise.
_BROKEN = (
    pikepdf.PdfError, pikepdf.DependencyError, TypeError, ValueError, AttributeError, KeyError, IndexError,
    ArithmeticError,
)  # fmt: skip

_FILLS = ("f", "F", "f*")
_STROKES = ("S", "s")
_FILLS_AND_STROKES = ("B", "B*", "b", "b*")
_TEXTS = ("Tj", "TJ", "'", '"')
_DEVICE = {"g": "gray", "rg": "rgb", "k": "cmyk", "G": "gray", "RG": "rgb", "K": "cmyk"}
_FAMILIES = {
    "/DeviceGray": "gray", "/G": "gray", "/CalGray": "gray",
    "/DeviceRGB": "rgb", "/RGB": "rgb", "/CalRGB": "rgb",
    "/DeviceCMYK": "cmyk", "/CMYK": "cmyk",
    "/Lab": "lab", "/Separation": "spot", "/DeviceN": "spot",
}  # fmt: skip
_OF_COMPONENTS = {1: "gray", 3: "rgb", 4: "cmyk"}
# All that changes the state or paints; the rest is never made into objects.
_OTHERS = ("q", "Q", "cs", "CS", "scn", "SCN", "Tf", "Tr", "Do", "sh", "BI", "ID", "EI")
_OPERATORS = " ".join((*_OTHERS, *_DEVICE, *_FILLS, *_STROKES, *_FILLS_AND_STROKES, *_TEXTS))


@dataclass(slots=True)
class PagePaints:
    """Colour spaces (gray, rgb, cmyk, lab, spot, unknown), and fonts by name with whether they are in the file."""

    spaces: set[str] = field(default_factory=set)
    fonts: dict[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _State:
    """Of the graphics state what decides about paints; a colour is a set of spaces, since patterns have several."""

    fill: frozenset[str] = frozenset({"gray"})
    stroke: frozenset[str] = frozenset({"gray"})
    font: Any = None
    mode: int = 0


def page_paints(page: pikepdf.Page) -> PagePaints:
    """Look through what the page draws; annotations are left out."""
    paints = PagePaints()
    _Walk(paints, page_resources(page), 0, set()).run(page, _State())
    return paints


class _Walk:
    """One content stream with its resources; `seen` are the streams that were walked already."""

    def __init__(self, paints: PagePaints, resources: Any, depth: int, seen: set[tuple[int, int]]) -> None:
        self.paints, self.resources, self.depth, self.seen = paints, resources, depth, seen
        self.state = _State()
        self.stack: list[_State] = []
        self._handlers: dict[str, Callable[[list[Any]], None]] = {
            "q": self._save, "Q": self._restore, "Tf": self._font, "Tr": self._mode, "Do": self._do, "sh": self._shade,
            "cs": lambda operands: self._set("fill", self._space(operands[0])),
            "CS": lambda operands: self._set("stroke", self._space(operands[0])),
            "scn": lambda operands: self._pattern("fill", operands),
            "SCN": lambda operands: self._pattern("stroke", operands),
        }  # fmt: skip
        for operators, paints_with in (
            (_FILLS, lambda _: self._used(self.state.fill)),
            (_STROKES, lambda _: self._used(self.state.stroke)),
            (_FILLS_AND_STROKES, lambda _: self._used(self.state.fill | self.state.stroke)),
            (_TEXTS, self._text),
        ):
            self._handlers |= dict.fromkeys(operators, paints_with)

    def run(self, holder: Any, state: _State) -> None:
        self.state = state
        for instruction in pikepdf.parse_content_stream(holder, _OPERATORS):
            operator = str(instruction.operator)
            try:
                if isinstance(instruction, pikepdf.ContentStreamInlineImage):
                    self._picture(instruction.iimage.obj)
                elif operator in _DEVICE:
                    self._set("stroke" if operator.isupper() else "fill", frozenset({_DEVICE[operator]}))
                elif operator in self._handlers:
                    self._handlers[operator](list(instruction.operands))
            except _BROKEN:
                continue

    def _save(self, _: list[Any]) -> None:
        self.stack.append(self.state)

    def _restore(self, _: list[Any]) -> None:
        if self.stack:
            self.state = self.stack.pop()

    def _set(self, side: str, spaces: frozenset[str]) -> None:
        self.state = replace(self.state, fill=spaces) if side == "fill" else replace(self.state, stroke=spaces)

    def _used(self, spaces: frozenset[str]) -> None:
        self.paints.spaces |= spaces

    def _font(self, operands: list[Any]) -> None:
        self.state = replace(self.state, font=self._resource("/Font", operands[0]))

    def _mode(self, operands: list[Any]) -> None:
        self.state = replace(self.state, mode=int(operands[0]))

    def _text(self, _: list[Any]) -> None:
        state = self.state
        if state.mode in _INVISIBLE:
            return
        fills, strokes = state.mode not in _STROKED, state.mode in (*_STROKED, *_BOTH)
        self._used((state.fill if fills else frozenset()) | (state.stroke if strokes else frozenset()))
        if isinstance(state.font, Dictionary):
            name = font_name(state.font)
            self.paints.fonts[name] = self.paints.fonts.get(name, True) and is_embedded(state.font)

    def _shade(self, operands: list[Any]) -> None:
        self._used(self._family(self._resource("/Shading", operands[0]).get("/ColorSpace")))

    def _do(self, operands: list[Any]) -> None:
        item = self._resource("/XObject", operands[0])
        if item.get("/Subtype") == Name.Image:
            self._picture(item)
        elif item.get("/Subtype") == Name.Form:
            self._inner(item, self.state)

    def _picture(self, picture: Any) -> None:
        if picture.get("/ImageMask", picture.get("/IM", False)):
            self._used(self.state.fill)
            return
        self._used(self._space(picture.get("/ColorSpace", picture.get("/CS"))))

    def _inner(self, stream: Any, state: _State) -> None:
        """Walk a form or a pattern, each once."""
        key = stream.objgen
        if self.depth >= MAX_DEPTH or key in self.seen or len(self.seen) >= MAX_STREAMS:
            return
        self.seen.add(key)
        own = stream.get("/Resources")
        resources = own if isinstance(own, Dictionary) else self.resources
        _Walk(self.paints, resources, self.depth + 1, self.seen).run(stream, state)

    def _pattern(self, side: str, operands: list[Any]) -> None:
        if not operands or not isinstance(operands[-1], Name):
            return  # components of the space that cs has set
        pattern = self._resource("/Pattern", operands[-1])
        if pattern.get("/PatternType") == 2:
            self._set(side, self._family(pattern.get("/Shading").get("/ColorSpace")))
        elif pattern.get("/PaintType") == 1:  # coloured: it paints with colours of its own
            self._set(side, frozenset())
            self._inner(pattern, _State())

    def _resource(self, kind: str, name: Any) -> Any:
        return self.resources.get(kind)[name_text(name)]

    def _space(self, value: Any) -> frozenset[str]:
        """The families of a colour space that is given itself, or by its name among the resources."""
        if isinstance(value, Name) and name_text(value) not in _FAMILIES:
            named = self.resources.get("/ColorSpace")
            value = named.get(name_text(value)) if isinstance(named, Dictionary) else None
        return self._family(value)

    def _family(self, value: Any, depth: int = 0) -> frozenset[str]:
        if isinstance(value, Name):
            return frozenset({_FAMILIES.get(name_text(value), "unknown")})
        if not isinstance(value, Array) or not len(value) or depth > MAX_DEPTH:
            return frozenset({"unknown"})
        kind = name_text(value[0])
        if kind == "/ICCBased":
            return frozenset({_OF_COMPONENTS.get(int(value[1].get("/N", 0)), "unknown")})
        if kind in ("/Indexed", "/I", "/Pattern"):
            return self._family(value[1], depth + 1) if len(value) > 1 else frozenset()
        return frozenset({_FAMILIES.get(kind, "unknown")})


def font_name(font: Any) -> str:
    """As people know it, without the mark of a subset; Korean programs write names in their own encoding."""
    own = font.get("/BaseFont")
    name = _decoded(bytes(own)[1:]) if isinstance(own, Name) else "a font without a name"
    subset, plus, rest = name.partition("+")
    return rest if plus and len(subset) == 6 else name


def _decoded(name: bytes) -> str:
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        return name.decode("cp949", errors="replace")


def is_embedded(font: Any) -> bool:
    """Whether its shapes are in the file. Of Type 3 they always are; the 14 standard fonts may be left out and are."""
    if font.get("/Subtype") == Name.Type3:
        return True
    if font.get("/Subtype") == Name.Type0:
        font = font.get("/DescendantFonts")[0]
    descriptor = font.get("/FontDescriptor")
    if not isinstance(descriptor, Dictionary):
        return False
    return any(isinstance(descriptor.get(key), pikepdf.Stream) for key in ("/FontFile", "/FontFile2", "/FontFile3"))
