"""Takes from fonts what tells of letters that are not shown any more. Runs in redact children.

A writer numbers the glyphs of an embedded font in the order of their first use: the table from codes to letters spells
out a removed name. Tables lose the codes that no text shows, Type 3 fonts the drawings of them. The outlines themselves
are subset by MuPDF (redact_pdf_glyphs.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import pikepdf
from pikepdf import Array, Dictionary, Name

from sam2_mcp_worker.media.redact_pdf_syntax import name_text, page_resources

ObjGen = tuple[int, int]
_TEXT_OPERATORS = "q Q Tf gs Tj TJ ' \""
_TWO_BYTES = {"/Identity-H", "/Identity-V"}
_SECTION = re.compile(rb"(\d+\s+)?begin(bfchar|bfrange)(.*?)end\2", re.DOTALL)
_CHAR = re.compile(rb"<([0-9A-Fa-f\s]+)>\s*<([0-9A-Fa-f\s]*)>")
_RANGE = re.compile(rb"<([0-9A-Fa-f\s]+)>\s*<([0-9A-Fa-f\s]+)>\s*(<[0-9A-Fa-f\s]*>|\[[^\]]*\])")
_HEX = re.compile(rb"<([0-9A-Fa-f\s]*)>")
# A CMap section holds at most this many lines (Adobe technical note 5014).
_SECTION_LINES = 100
# Ranges claiming more codes than two bytes have are forged.
_MAX_CODES = 65536


@dataclass(slots=True)
class _Usage:
    """Codes that are shown, by font; `unknown` when a font was set where it cannot be followed."""

    codes: dict[ObjGen, set[int]] = field(default_factory=dict)
    unknown: set[ObjGen] = field(default_factory=set)


def prune_fonts(pdf: pikepdf.Pdf) -> int:
    """Prune every font that is an object of its own; returns how many tables or drawings were shortened.

    None where forms borrow the resources of whatever shows them (PDF 1.1): what they write in cannot be told.
    """
    if any(_borrows(item) for item in pdf.objects):
        return 0
    usage = _Usage()
    for page in pdf.pages:
        _follow(page.obj, page_resources(page), usage)
    for item in pdf.objects:
        if isinstance(item, pikepdf.Stream) and (item.get("/Subtype") == Name.Form or "/PatternType" in item):
            _follow(item, item.get("/Resources"), usage)
        elif isinstance(item, Dictionary) and item.get("/Subtype") == Name.Type3:
            for drawing in item.get("/CharProcs", Dictionary()).values():
                _follow(drawing, item.get("/Resources"), usage)
    _keep_form_fonts(pdf, usage)
    fonts = [item for item in pdf.objects if isinstance(item, Dictionary) and item.get("/Type") == Name.Font]
    return sum(_prune(pdf, font, usage) for font in fonts if font.objgen not in usage.unknown)


def _borrows(item: Any) -> bool:
    is_form = isinstance(item, pikepdf.Stream) and item.get("/Subtype") == Name.Form and "/Resources" not in item
    return is_form and b"Tf" in item.read_bytes()


def _keep_form_fonts(pdf: pikepdf.Pdf, usage: _Usage) -> None:
    """Viewers write with them whatever is filled in later."""
    form = pdf.Root.get("/AcroForm")
    resources = form.get("/DR") if isinstance(form, Dictionary) else None
    fonts = resources.get("/Font") if isinstance(resources, Dictionary) else None
    if isinstance(fonts, Dictionary):
        usage.unknown.update(font.objgen for font in fonts.values())


def _follow(holder: Any, resources: Any, usage: _Usage) -> None:
    """Note the codes that one content stream shows."""
    fonts = resources.get("/Font") if isinstance(resources, Dictionary) else None
    if not isinstance(fonts, Dictionary):
        return
    try:
        instructions = pikepdf.parse_content_stream(holder, _TEXT_OPERATORS)
    except (pikepdf.PdfError, TypeError):  # no content that can be read
        usage.unknown.update(font.objgen for font in fonts.values())
        return
    current: Dictionary | None = None
    stack: list[Dictionary | None] = []
    for instruction in instructions:
        operator, operands = str(instruction.operator), instruction.operands
        if operator == "q":
            stack.append(current)
        elif operator == "Q":
            current = stack.pop() if stack else current
        elif operator == "Tf":
            font = fonts.get(name_text(operands[0])) if operands else None
            current = font if isinstance(font, Dictionary) else None
        elif operator == "gs":
            current = _font_of_state(resources, operands, current, usage)
        elif current is not None and operands:
            codes = usage.codes.setdefault(current.objgen, set())
            codes.update(_codes(current, operands[-1]))


def _font_of_state(resources: Any, operands: Any, current: Dictionary | None, usage: _Usage) -> Dictionary | None:
    states = resources.get("/ExtGState")
    state = states.get(name_text(operands[0])) if operands and isinstance(states, Dictionary) else None
    setting = state.get("/Font") if isinstance(state, Dictionary) else None
    if not isinstance(setting, Array) or not len(setting):
        return current
    usage.unknown.add(setting[0].objgen)
    return None


def _codes(font: Dictionary, shown: Any) -> set[int]:
    pieces = [
        bytes(piece) for piece in (shown if isinstance(shown, Array) else [shown]) if isinstance(piece, pikepdf.String)
    ]
    if font.get("/Subtype") != Name.Type0:
        return {code for piece in pieces for code in piece}
    return {int.from_bytes(piece[i : i + 2], "big") for piece in pieces for i in range(0, len(piece), 2)}


def _prune(pdf: pikepdf.Pdf, font: Dictionary, usage: _Usage) -> int:
    is_composite = font.get("/Subtype") == Name.Type0
    if is_composite and name_text(font.get("/Encoding")) not in _TWO_BYTES:
        return 0  # codes of other lengths
    codes = usage.codes.get(font.objgen, set())
    changed = 0
    table = font.get("/ToUnicode")
    if isinstance(table, pikepdf.Stream):
        before = table.read_bytes()
        after = pruned_table(before, codes)
        if after != before:
            font.ToUnicode = pdf.make_stream(after)
            changed += 1
    if font.get("/Subtype") == Name.Type3:
        changed += _prune_drawings(font, codes)
    return changed


def _prune_drawings(font: Dictionary, codes: set[int]) -> int:
    encoding, drawings = font.get("/Encoding"), font.get("/CharProcs")
    if not isinstance(encoding, Dictionary) or not isinstance(drawings, Dictionary):
        return 0
    used: set[str] = set()
    code = 0
    kept: list[Any] = []
    for entry in encoding.get("/Differences", Array()):
        if not isinstance(entry, Name):
            code = int(entry)
            continue
        if code in codes:
            used.add(name_text(entry))
            kept += [code, entry]
        code += 1
    doomed = [name for name in drawings.keys() if name not in used]  # noqa: SIM118 (not a dict)
    if doomed:
        font.CharProcs = Dictionary({name: drawing for name, drawing in drawings.items() if name in used})
        font.Encoding = Dictionary(Type=Name.Encoding, Differences=Array(kept))
    return len(doomed)


def pruned_table(table: bytes, codes: set[int]) -> bytes:
    """A ToUnicode CMap with the lines of these codes only, in the order of the letters that they stand for."""
    lines: dict[bytes, bytes] = {}
    for section in _SECTION.finditer(table):
        if section.group(2) == b"bfchar":
            lines.update((_digits(code), _digits(target)) for code, target in _CHAR.findall(section.group(3)))
        else:
            for low, high, target in _RANGE.findall(section.group(3)):
                lines.update(_range_lines(_digits(low), _digits(high), target))
    kept = sorted((target, code) for code, target in lines.items() if code and int(code, 16) in codes)
    if len(kept) == len(lines):
        return table
    sections = [kept[i : i + _SECTION_LINES] for i in range(0, len(kept), _SECTION_LINES)]
    body = b"\n".join(
        b"%d beginbfchar\n" % len(part)
        + b"".join(b"<%b> <%b>\n" % (code, target) for target, code in part)
        + b"endbfchar"
        for part in sections
    )
    places = list(_SECTION.finditer(table))
    return table[: places[0].start()] + body + table[places[-1].end() :]


def _digits(token: bytes) -> bytes:
    return re.sub(rb"\s", b"", token)


def _range_lines(low: bytes, high: bytes, target: bytes) -> dict[bytes, bytes]:
    first, last = int(low, 16), int(high, 16)
    last = min(last, first + _MAX_CODES - 1)
    if target.startswith(b"["):
        targets = [_digits(match) for match in _HEX.findall(target)]
    else:
        start = _digits(target[1:-1]) or b"0"
        targets = [b"%0*X" % (len(start), int(start, 16) + i) for i in range(last - first + 1)]
    return {b"%0*X" % (len(low), first + i): value for i, value in enumerate(targets[: last - first + 1])}
