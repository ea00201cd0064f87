"""The leaflet's building blocks: wrapped paragraphs, tables, headings, cards and the frame of a page.

Owns measures and colours; knows no copy. Everything is drawn through a `Surface`, so the same block can stand in a
text layer or in a picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sam2_mcp_worker.demo.fonts import Face
from sam2_mcp_worker.demo.surfaces import Align, Box, Colour, Surface

WIDTH_PT, HEIGHT_PT = 595.28, 841.89  # A4
MARGIN_PT = 45.0
RIGHT_PT = WIDTH_PT - MARGIN_PT
COLUMN_PT = WIDTH_PT - 2 * MARGIN_PT

NAVY: Colour = (16, 50, 96)
BLUE: Colour = (29, 107, 191)
SKY: Colour = (230, 241, 251)
PALE: Colour = (245, 249, 253)
SUN: Colour = (247, 181, 56)
CREAM: Colour = (255, 246, 224)
CORAL: Colour = (214, 72, 43)
INK: Colour = (31, 41, 51)
GREY: Colour = (84, 96, 108)
LINE: Colour = (203, 214, 225)
WHITE: Colour = (255, 255, 255)

FINE_PT = 5.76  # 12 px at 150 dpi: the smallest print the field sends us
SMALL_PT = 7.68
BODY_PT = 9.6
LEADING = 1.62  # Korean letters fill their square, so lines need more air than Latin ones
# From the middle of a row down to the baseline, as a share of the size: Hangul sits a little below the baseline.
BASELINE_SHARE = 0.36


@dataclass(frozen=True, slots=True)
class Style:
    """How a run of text looks."""

    size_pt: float = BODY_PT
    face: Face = "body"
    colour: Colour = INK


def wrap(surface: Surface, text: str, style: Style, width_pt: float) -> list[str]:
    """Lines that fit the width, broken at spaces; a word that alone is too wide keeps a line of its own."""
    lines: list[str] = []
    for word in text.split():
        joined = f"{lines[-1]} {word}" if lines else word
        if lines and surface.measure(joined, style.size_pt, style.face) <= width_pt:
            lines[-1] = joined
        else:
            lines.append(word)
    return lines


def paragraph(surface: Surface, x: float, y: float, text: str, style: Style, width_pt: float) -> float:
    """Set wrapped text whose first line hangs from `y`; return the `y` below it."""
    step = style.size_pt * LEADING
    for line in wrap(surface, text, style, width_pt):
        surface.text((x, y + step / 2 + style.size_pt * BASELINE_SHARE), line, style.size_pt, style.face, style.colour)
        y += step
    return y


def note_panel(surface: Surface, y: float, title: str, text: str, fill: Colour, accent: Colour) -> float:
    """A tinted panel as high as its text needs; return the `y` below it."""
    style, inset = Style(BODY_PT), 20.0
    lines = len(wrap(surface, text, style, COLUMN_PT - 2 * inset))
    bottom = y + 48 + lines * style.size_pt * LEADING
    surface.panel((MARGIN_PT, y, RIGHT_PT, bottom), fill, radius=12)
    surface.text((MARGIN_PT + inset, y + 26), title, 12.48, "bold", accent)
    paragraph(surface, MARGIN_PT + inset, y + 35, text, style, COLUMN_PT - 2 * inset)
    return bottom


def bullets(surface: Surface, x: float, y: float, items: Sequence[str], style: Style, width_pt: float) -> float:
    """A list with a dot before each item, continued under the item's first word; return the `y` below it."""
    dot = "· "  # a letter and not a drawn dot, because readers read it, and the truth must say so
    indent, step = surface.measure(dot, style.size_pt, style.face), style.size_pt * LEADING
    for item in items:
        for number, line in enumerate(wrap(surface, item, style, width_pt - indent)):
            at = (x + (indent if number else 0), y + step / 2 + style.size_pt * BASELINE_SHARE)
            surface.text(at, line if number else dot + line, style.size_pt, style.face, style.colour)
            y += step
        y += style.size_pt * 0.35
    return y


def in_middle(surface: Surface, box: Box, text: str, style: Style, align: Align = "centre", inset: float = 6) -> None:
    """One line of text in the vertical middle of a box."""
    x0, y0, x1, y1 = box
    x = {"left": x0 + inset, "centre": (x0 + x1) / 2, "right": x1 - inset}[align]
    baseline = (y0 + y1) / 2 + style.size_pt * BASELINE_SHARE
    surface.text((x, baseline), text, style.size_pt, style.face, style.colour, align=align)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under a dark head. `widths` are shares of the whole; `\\n` in a cell starts a new line."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    widths: Sequence[float]
    aligns: Sequence[Align]
    style: Style = Style(8.64)
    padding_pt: float = 6.0


def table(surface: Surface, x: float, y: float, width_pt: float, content: Table) -> float:
    """Draw the table from `y` down; return the `y` below it."""
    edges = [x]
    for share in content.widths:
        edges.append(edges[-1] + width_pt * share / sum(content.widths))
    head_style = Style(content.style.size_pt, "bold", WHITE)
    y = _row(surface, edges, y, content.head, content.aligns, head_style, content.padding_pt, NAVY)
    for number, row in enumerate(content.rows):
        fill = PALE if number % 2 else WHITE
        y = _row(surface, edges, y, row, content.aligns, content.style, content.padding_pt, fill)
        surface.panel((x, y - 0.5, x + width_pt, y), LINE)
    return y


def _row(
    surface: Surface,
    edges: list[float],
    y: float,
    cells: Sequence[str],
    aligns: Sequence[Align],
    style: Style,
    padding_pt: float,
    fill: Colour,
) -> float:
    step = style.size_pt * 1.45
    height = step * max(cell.count("\n") + 1 for cell in cells) + 2 * padding_pt
    surface.panel((edges[0], y, edges[-1], y + height), fill)
    for x0, x1, cell, align in zip(edges, edges[1:], cells, aligns, strict=False):
        lines = cell.split("\n")
        top = y + (height - step * len(lines)) / 2
        for number, line in enumerate(lines):
            face: Face = "bold" if align == "left" and x0 == edges[0] else style.face
            box = (x0, top + number * step, x1, top + (number + 1) * step)
            in_middle(surface, box, line, Style(style.size_pt, face, style.colour), align)
    return y + height


def heading(surface: Surface, y: float, kicker: str, title: str) -> float:
    """A page's opening: a small coloured line over a large one; return the `y` below it."""
    surface.panel((MARGIN_PT, y, MARGIN_PT + 26, y + 4), SUN, radius=2)
    surface.text((MARGIN_PT, y + 24), kicker, 10.56, "bold", BLUE)
    surface.text((MARGIN_PT, y + 53), title, 24, "title", NAVY)
    return y + 74


def subheading(surface: Surface, y: float, title: str, note: str = "") -> float:
    """A section's title with an optional note at the right margin; return the `y` below it."""
    surface.panel((MARGIN_PT, y + 2, MARGIN_PT + 3.5, y + 15), BLUE)
    surface.text((MARGIN_PT + 10, y + 13.2), title, 12.48, "bold", NAVY)
    if note:
        surface.text((RIGHT_PT, y + 13), note, SMALL_PT, "body", GREY, align="right")
    return y + 25


def page_frame(surface: Surface, number: int, running_title: str, notice: str) -> None:
    """Running head and foot of an inner page."""
    surface.panel((0, 0, WIDTH_PT, 10), NAVY)
    surface.panel((0, 10, WIDTH_PT, 12), SUN)
    foot = HEIGHT_PT - 34
    surface.panel((MARGIN_PT, foot, RIGHT_PT, foot + 0.6), LINE)
    surface.text((MARGIN_PT, foot + 15), running_title, 7.2, "body", GREY)
    surface.text((WIDTH_PT / 2, foot + 15), notice, 7.2, "body", GREY, align="centre")
    surface.text((RIGHT_PT, foot + 15.5), str(number), 9.6, "title", NAVY, align="right")
