"""Leaflet pages with ground truth, from a seed. Owns layout and drawing; knows nothing of any OCR engine.

A page is a list of drawing operations. A4 pages are drawn as a PDF (fpdf2) and rasterised by pdfium, as
inspect_pdf does it; landing pages are drawn straight into a bitmap (Pillow), as a browser screenshot is. Text sizes
are font sizes (em) in px: 12 px at 150 dpi is 5.76 pt.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

import cv2
import numpy as np
import pypdfium2
from fpdf import FPDF
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from tests.bench.ocr import leaflet_text as words

# Where `make` puts the fonts, then where Debian's fonts-nanum does.
FONT_DIRS = (Path(sys.prefix) / "share" / "fonts" / "nanum", Path("/usr/share/fonts/truetype/nanum"))
FONT_DIR = next((folder for folder in FONT_DIRS if (folder / "NanumGothic.ttf").is_file()), FONT_DIRS[-1])
DPI = 150
A4_PX = (1240, 1754)
LANDING_PX = (1080, 3600)
FINE_PRINT_PX = 14  # and below: reported apart, since small print is what such a review is about

Colour = tuple[int, int, int]
FAMILIES = (
    ("NanumGothic", "NanumGothicBold"),
    ("NanumMyeongjo", "NanumMyeongjoBold"),
    ("NanumSquareRoundR", "NanumSquareRoundB"),
    ("NanumBarunGothic", "NanumBarunGothicBold"),
)
PAPERS: tuple[Colour, ...] = ((255, 255, 255), (252, 250, 244), (245, 248, 252))
BRANDS: tuple[tuple[Colour, Colour], ...] = (  # panel colour, text colour on it
    ((0, 72, 153), (255, 255, 255)),
    ((230, 92, 0), (255, 255, 255)),
    ((255, 214, 51), (51, 34, 0)),
    ((34, 40, 49), (238, 238, 238)),
    ((0, 121, 107), (240, 255, 250)),
    ((226, 236, 249), (16, 54, 110)),
)
INKS: tuple[Colour, ...] = ((25, 25, 25), (51, 51, 51), (70, 60, 60))
FINE_INKS: tuple[Colour, ...] = ((68, 68, 68), (90, 90, 90), (40, 40, 40))


@dataclass(frozen=True)
class Text:
    """A run of text; `x_px`, `y_px` is the left end of its baseline."""

    x_px: float
    y_px: float
    text: str
    font: str
    size_px: int
    colour: Colour

    @property
    def box_xyxy_px(self) -> tuple[float, float, float, float]:
        left, top, right, bottom = load_font(self.font, self.size_px).getbbox(self.text, anchor="ls")
        return self.x_px + left, self.y_px + top, self.x_px + right, self.y_px + bottom


@dataclass(frozen=True)
class Rect:
    """A filled rectangle (panel, rule, cell border)."""

    x0: float
    y0: float
    x1: float
    y1: float
    colour: Colour


@dataclass
class Page:
    """Operations in drawing order, and the picture they give."""

    name: str
    size_px: tuple[int, int]
    ops: list[Text | Rect] = field(default_factory=list)
    rgb: NDArray[np.uint8] | None = None
    tilt: NDArray[np.float64] | None = None
    """2 x 3 matrix from untilted to picture coordinates; None when upright."""

    @property
    def texts(self) -> list[Text]:
        return [op for op in self.ops if isinstance(op, Text)]


@lru_cache(maxsize=256)
def load_font(name: str, size_px: int) -> ImageFont.FreeTypeFont:
    """Basic layout: the same advances whether or not the machine has libraqm and libfribidi."""
    return ImageFont.truetype(str(FONT_DIR / f"{name}.ttf"), size_px, layout_engine=ImageFont.Layout.BASIC)


def text_width(text: str, font: str, size_px: int) -> float:
    return float(load_font(font, size_px).getlength(text))


def wrap(text: str, font: str, size_px: int, width_px: float) -> list[str]:
    """Break at spaces so that no line is wider than `width_px`."""
    lines, current = [], ""
    for word in text.split(" "):
        candidate = f"{current} {word}".strip()
        if current and text_width(candidate, font, size_px) > width_px:
            lines.append(current)
            current = word
        else:
            current = candidate
    return [*lines, current]


class Writer:
    """Puts blocks onto a page from the top down and remembers where it is."""

    def __init__(self, page: Page, rng: Random) -> None:
        self.page, self.rng = page, rng
        self.regular, self.bold = rng.choice(FAMILIES)
        self.brand = rng.choice(BRANDS)
        self.ink = rng.choice(INKS)
        self.y = 0.0

    def rect(self, x0: float, y0: float, x1: float, y1: float, colour: Colour) -> None:
        self.page.ops.append(Rect(x0, y0, x1, y1, colour))

    def text(self, x: float, baseline: float, text: str, size: int, colour: Colour, *, bold: bool = False) -> None:
        self.page.ops.append(Text(x, baseline, text, self.bold if bold else self.regular, size, colour))

    def paragraph(self, x: float, width: float, text: str, size: int, colour: Colour, *, leading: float = 1.55) -> None:
        for line in wrap(text, self.regular, size, width):
            self.y += size * leading
            self.text(x, self.y, line, size, colour)

    def banner(self, margin: float, title_px: int, sub_px: int) -> None:
        """A coloured panel with headline and subhead, over the whole width."""
        colour, on_colour = self.brand
        height = title_px * 1.6 + sub_px * 2.4
        self.rect(0, self.y, self.page.size_px[0], self.y + height, colour)
        self.text(margin, self.y + title_px * 1.4, self.rng.choice(words.HEADLINES), title_px, on_colour, bold=True)
        self.text(margin, self.y + height - sub_px * 0.9, self.rng.choice(words.SUBHEADS), sub_px, on_colour)
        self.y += height + 24

    def section(self, x: float, size: int) -> None:
        self.y += size * 1.9
        self.text(x, self.y, self.rng.choice(words.SECTION_TITLES), size, self.brand[0], bold=True)
        self.y += size * 0.4

    def table(self, x: float, width: float, size: int, rows: int) -> None:
        """Ruled, with a coloured head row."""
        shares = (0.4, 0.3, 0.3)
        edges = [x, *(x + width * sum(shares[: i + 1]) for i in range(3))]
        row_px = size * 1.9
        top = self.y + size * 0.8
        heads = self.rng.sample(words.TABLE_HEADS, 3)
        colour, on_colour = self.brand
        self.rect(x, top, x + width, top + row_px, colour)
        for row in range(rows + 1):
            cells = heads if row == 0 else self.row_cells()
            baseline = top + row * row_px + row_px * 0.68
            for edge, cell in zip(edges, cells, strict=False):
                self.text(edge + size * 0.6, baseline, cell, size, on_colour if row == 0 else self.ink, bold=row == 0)
        rule = (150, 150, 150)
        for row in range(rows + 2):
            self.rect(x, top + row * row_px, x + width, top + row * row_px + 1, rule)
        for edge in edges:
            self.rect(edge, top, edge + 1, top + (rows + 1) * row_px, rule)
        self.y = top + (rows + 1) * row_px + size

    def row_cells(self) -> tuple[str, str, str]:
        return self.rng.choice(words.COVERS), self.rng.choice(words.REASONS), words.amount(self.rng)

    def columns(self, margin: float, size: int, gap: float) -> None:
        """Two columns of body text, each under its own title."""
        width = (self.page.size_px[0] - 2 * margin - gap) / 2
        top, lowest = self.y, self.y
        for column in range(2):
            self.y = top
            x = margin + column * (width + gap)
            self.section(x, size + 6)
            for sentence in self.rng.sample(words.BODY, 4):
                self.paragraph(x, width, sentence, size, self.ink)
            lowest = max(lowest, self.y)
        self.y = lowest + size

    def panel(self, margin: float, size: int, lines: int) -> None:
        """Light text on a dark or coloured panel (or the reverse)."""
        colour, on_colour = self.rng.choice(BRANDS)
        height = size * (1.7 * lines + 1.4)
        self.rect(margin, self.y, self.page.size_px[0] - margin, self.y + height, colour)
        for i in range(lines):
            line = words.figures_line(self.rng) if i % 2 else self.rng.choice(words.SUBHEADS)
            self.text(margin + size * 1.2, self.y + size * (1.7 * (i + 1)), line, size, on_colour, bold=i == 0)
        self.y += height + 20

    def fine_print(self, margin: float, size: int, sentences: int) -> None:
        colour = self.rng.choice(FINE_INKS)
        width = self.page.size_px[0] - 2 * margin
        leading = self.rng.choice((1.25, 1.45))
        for sentence in self.rng.sample(words.FINE_PRINT, sentences):
            bullet = "" if sentence[0] in "※*" else "- "
            self.paragraph(margin, width, bullet + sentence, size, colour, leading=leading)
        self.y += size * leading
        self.text(margin, self.y, words.figures_line(self.rng), size, colour)
        self.y += size

    def buttons(self, margin: float, size: int) -> None:
        x = margin
        for label in self.rng.sample(words.BUTTONS, 3):
            width = text_width(label, self.bold, size) + size * 2
            colour, on_colour = self.rng.choice(BRANDS)
            self.rect(x, self.y, x + width, self.y + size * 2.2, colour)
            self.text(x + size, self.y + size * 1.45, label, size, on_colour, bold=True)
            x += width + size
        self.y += size * 2.2 + 24


def a4_page(seed: int) -> Page:
    """An A4 leaflet at 150 dpi with 12 px (5.76 pt) and 14 px fine print."""
    rng = Random(f"a4-{seed}")
    page = Page(f"a4-{seed}", A4_PX, [Rect(0, 0, *A4_PX, rng.choice(PAPERS))])
    writer = Writer(page, rng)
    margin = 80
    writer.banner(margin, rng.choice((56, 64, 72)), rng.choice((24, 28)))
    writer.columns(margin, rng.choice((18, 20)), 50)
    writer.section(margin, 26)
    writer.table(margin, A4_PX[0] - 2 * margin, rng.choice((18, 20)), 5)
    writer.panel(margin, 22, 3)
    writer.section(margin, 24)
    for sentence in rng.sample(words.BODY, 4):
        writer.paragraph(margin, A4_PX[0] - 2 * margin, sentence, 18, writer.ink)
    writer.y += 20
    writer.buttons(margin, 20)
    writer.fine_print(margin, 14, 4)
    writer.fine_print(margin, 12, 9)
    _check_fits(writer)
    page.rgb = render_pdf(page)
    return page


def landing_page(seed: int) -> Page:
    """A 1080 x 3600 landing page with 12, 14 and 18 px print."""
    rng = Random(f"landing-{seed}")
    page = Page(f"landing-{seed}", LANDING_PX, [Rect(0, 0, *LANDING_PX, rng.choice(PAPERS))])
    writer = Writer(page, rng)
    margin = 60
    writer.banner(margin, rng.choice((60, 70)), 30)
    writer.buttons(margin, 24)
    blocks: list[Callable[[], Any]] = [
        lambda: writer.columns(margin, 18, 60),
        lambda: writer.table(margin, LANDING_PX[0] - 2 * margin, 18, 6),
        lambda: writer.panel(margin, 24, 3),
        lambda: writer.fine_print(margin, 14, 4),
        lambda: (writer.section(margin, 32), writer.columns(margin, 14, 60)),
        lambda: writer.panel(margin, 18, 4),
        lambda: writer.table(margin, LANDING_PX[0] - 2 * margin, 14, 5),
        lambda: writer.banner(margin, 48, 24),
        lambda: (writer.columns(margin, 20, 60), writer.buttons(margin, 18)),
        lambda: (writer.section(margin, 26), writer.fine_print(margin, 18, 5)),
    ]
    rng.shuffle(blocks)
    for block in blocks:
        block()
        writer.y += 60
    writer.fine_print(margin, 12, 6)
    _check_fits(writer)
    page.rgb = render_bitmap(page)
    return page


def _check_fits(writer: Writer) -> None:
    if writer.y > writer.page.size_px[1]:
        raise AssertionError(f"{writer.page.name} overflows: {writer.y}")


def tilted(page: Page, degrees: float) -> Page:
    """The page as a scanner bed would give it, turned by `degrees` on a slightly larger white sheet."""
    assert page.rgb is not None
    width, height = page.size_px
    pad = 80
    matrix = cv2.getRotationMatrix2D((width / 2, height / 2), degrees, 1.0)
    matrix[:, 2] += pad
    size = (width + 2 * pad, height + 2 * pad)
    rgb = cv2.warpAffine(page.rgb, matrix, size, flags=cv2.INTER_CUBIC, borderValue=(255, 255, 255))
    return Page(f"{page.name}-tilt{degrees}", size, page.ops, np.asarray(rgb, np.uint8), matrix)


def jpeg(page: Page, quality: int) -> Page:
    """The page after lossy compression."""
    assert page.rgb is not None
    _, data = cv2.imencode(".jpg", page.rgb[:, :, ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])
    bgr = cv2.imdecode(data, cv2.IMREAD_COLOR)
    assert bgr is not None
    return Page(
        f"{page.name}-q{quality}", page.size_px, page.ops, np.ascontiguousarray(bgr[:, :, ::-1]).astype(np.uint8)
    )


def render_bitmap(page: Page) -> NDArray[np.uint8]:
    image = Image.new("RGB", page.size_px, (255, 255, 255))
    draw = ImageDraw.Draw(image)
    for op in page.ops:
        if isinstance(op, Rect):
            draw.rectangle((op.x0, op.y0, op.x1 - 1, op.y1 - 1), fill=op.colour)
        else:
            draw.text((op.x_px, op.y_px), op.text, font=load_font(op.font, op.size_px), fill=op.colour, anchor="ls")
    return np.asarray(image, np.uint8)


def render_pdf(page: Page) -> NDArray[np.uint8]:
    scale = 72 / DPI
    width, height = page.size_px
    pdf = FPDF(unit="pt", format=(width * scale, height * scale))
    pdf.add_page()
    pdf.set_auto_page_break(False)
    for name in {op.font for op in page.texts}:
        pdf.add_font(name, fname=str(FONT_DIR / f"{name}.ttf"))
    for op in page.ops:
        if isinstance(op, Rect):
            pdf.set_fill_color(*op.colour)
            pdf.rect(op.x0 * scale, op.y0 * scale, (op.x1 - op.x0) * scale, (op.y1 - op.y0) * scale, style="F")
        else:
            pdf.set_font(op.font, size=op.size_px * scale)
            pdf.set_text_color(*op.colour)
            pdf.text(op.x_px * scale, op.y_px * scale, op.text)
    document = pypdfium2.PdfDocument(io.BytesIO(bytes(pdf.output())))
    try:
        bitmap = document[0].render(scale=DPI / 72)
        rgb = np.ascontiguousarray(bitmap.to_numpy()[:height, :width, 2::-1])
    finally:
        document.close()
    return rgb
