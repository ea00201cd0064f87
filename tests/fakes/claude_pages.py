"""Pages with ground truth for the scripted Claude: what is printed where, drawn and stamped (claude_stamp.py).

Owns layout and drawing. The picture of a page is made anew each time it is asked for, since long ones take 100s of MB.
"""

from __future__ import annotations

import io
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from tests.bench.ocr.leaflet_text import BODY, HEADLINES
from tests.fakes.claude_stamp import stamp
from tests.fakes.raw_pdf import Objects, pdf_bytes, stream

Box = tuple[int, int, int, int]
# As the rule pack for Korean insurance advertisements names them.
LABELS = ("coin", "banknote", "seal", "product name", "disclaimer")
# Where `make` puts the fonts, then where Debian's fonts-nanum does.
_FONT_DIRS = (Path(sys.prefix) / "share" / "fonts" / "nanum", Path("/usr/share/fonts/truetype/nanum"))
_PAPER, _INK, _FINE_INK = (255, 255, 255), (25, 25, 25), (68, 68, 68)
_MARGIN_PX = 24
_BODY_PX, _FINE_PX, _HEAD_PX = 22, 13, 44
_LEADING = 1.7


@lru_cache(maxsize=64)
def load_font(size_px: int) -> ImageFont.FreeTypeFont:
    folder = next((folder for folder in _FONT_DIRS if (folder / "NanumGothic.ttf").is_file()), _FONT_DIRS[-1])
    return ImageFont.truetype(str(folder / "NanumGothic.ttf"), size_px, layout_engine=ImageFont.Layout.BASIC)


@dataclass(frozen=True)
class TrueLine:
    """A printed line: its ink box, and where each character ends (x, from the box's left)."""

    text: str
    box: Box
    size_px: int
    ends_px: tuple[float, ...]


@dataclass(frozen=True)
class TrueRegion:
    """Something that bears a label; `text_height_px` is the size of its smallest text."""

    label: str
    box: Box
    text_height_px: float | None = None


@dataclass(frozen=True)
class _Mark:
    text: str
    x_px: int
    baseline_px: int
    size_px: int

    @property
    def line(self) -> TrueLine:
        font = load_font(self.size_px)
        left, top, right, bottom = font.getbbox(self.text, anchor="ls")
        box = (
            self.x_px + int(left),
            self.baseline_px + int(top),
            self.x_px + int(right),
            self.baseline_px + int(bottom),
        )
        ends = tuple(font.getlength(self.text[: count + 1]) - left for count in range(len(self.text)))
        return TrueLine(self.text, box, self.size_px, ends)


@dataclass(frozen=True)
class TruePage:
    """One picture, or one image page of a PDF, and all that can be seen on it."""

    name: str
    width_px: int
    height_px: int
    marks: tuple[_Mark, ...] = ()
    shapes: tuple[TrueRegion, ...] = ()
    text_regions: tuple[TrueRegion, ...] = ()

    @cached_property
    def lines(self) -> tuple[TrueLine, ...]:
        return tuple(mark.line for mark in self.marks)

    @property
    def regions(self) -> tuple[TrueRegion, ...]:
        return self.shapes + self.text_regions

    @property
    def size_px(self) -> tuple[int, int]:
        return self.width_px, self.height_px

    def rgb(self) -> NDArray[np.uint8]:
        """Height x width x 3, stamped."""
        picture = Image.new("RGB", self.size_px, _PAPER)
        draw = ImageDraw.Draw(picture)
        for shape in self.shapes:
            _draw_shape(draw, shape)
        for mark in self.marks:
            ink = _FINE_INK if mark.size_px <= _FINE_PX else _INK
            draw.text((mark.x_px, mark.baseline_px), mark.text, ink, load_font(mark.size_px), anchor="ls")
        pixels = np.array(picture)
        stamp(pixels, self.name)
        return pixels

    def encoded(self, kind: str = "PNG", **options: int) -> bytes:
        """The whole page as PNG or JPEG. A JPEG has lost the stamp, and is found by its looks (claude_looks.py)."""
        out = io.BytesIO()
        settings = {"compress_level": 1} if kind == "PNG" else {"quality": 92}
        Image.fromarray(self.rgb()).save(out, kind, **(settings | options))
        return out.getvalue()

    def write(self, folder: Path, kind: str = "PNG") -> Path:
        path = folder / f"{self.name}.{kind.lower()}"
        path.write_bytes(self.encoded(kind))
        return path


def _draw_shape(draw: ImageDraw.ImageDraw, shape: TrueRegion) -> None:
    x0, y0, x1, y1 = shape.box
    whole, inner = (x0, y0, x1 - 1, y1 - 1), (x0 + 6, y0 + 6, x1 - 7, y1 - 7)
    if shape.label == "banknote":
        draw.rectangle(whole, (96, 140, 104), (30, 80, 40), 3)
        draw.ellipse(
            ((x0 + x1) // 2 - (y1 - y0) // 4, y0 + 8, (x0 + x1) // 2 + (y1 - y0) // 4, y1 - 9), (200, 220, 196)
        )
    elif shape.label == "seal":
        draw.ellipse(whole, None, (190, 20, 30), 4)
        draw.rectangle(
            (x0 + (x1 - x0) // 3, y0 + (y1 - y0) // 3, x1 - (x1 - x0) // 3, y1 - (y1 - y0) // 3), (190, 20, 30)
        )
    else:
        draw.ellipse(whole, (222, 178, 60), (130, 96, 20), 3)
        draw.ellipse(inner, None, (130, 96, 20), 1)


def make_page(
    name: str,
    width_px: int = 1240,
    height_px: int = 1754,
    *,
    density: float = 0.5,
    shapes: Sequence[str] = (),
    fine_lines: int = 3,
    columns: int = 1,
) -> TruePage:
    """A page with a headline, body text, small print and one shape per label in `shapes`.

    `density` is the share of rows that hold text: 1 is dense, 0 none. Every line's text is unique on the page.
    """
    random = Random(name)
    rows = list(_rows(width_px, height_px, columns, fine_lines))
    shape_regions = _shape_regions(shapes, width_px, height_px)
    taken = [region.box for region in shape_regions]
    marks: list[_Mark] = []
    for size, x, baseline, room in rows:
        keep = size != _BODY_PX or random.random() < density
        if density > 0 and keep:
            free = _free_width((x, baseline - size, x + room, baseline + size // 2), taken)
            text = _fitting(_text(random, size, len(marks)), size, free)
            if text:
                marks.append(_Mark(text, x, baseline, size))
    return TruePage(name, width_px, height_px, tuple(marks), tuple(shape_regions), tuple(_text_regions(marks)))


def page_of_texts(
    name: str, texts: Sequence[str], width_px: int = 1240, height_px: int = 900, *, shapes: Sequence[str] = ()
) -> TruePage:
    """A page with exactly these lines of body text from the top, and the shapes down its right-hand side."""
    regions = _shape_regions(shapes, width_px, height_px)
    pitch = int(_BODY_PX * _LEADING)
    marks = tuple(_Mark(text, _MARGIN_PX, _MARGIN_PX + (row + 1) * pitch, _BODY_PX) for row, text in enumerate(texts))
    if any(mark.line.box[2] > width_px or mark.line.box[3] > height_px for mark in marks):
        raise ValueError(f"a text does not fit {width_px} x {height_px} px")
    return TruePage(name, width_px, height_px, marks, tuple(regions))


def page_of_prints(
    name: str,
    size_px: tuple[int, int],
    prints: Sequence[tuple[str, int, int, int]],
    shapes: Sequence[TrueRegion] = (),
    labelled: Sequence[tuple[str, int]] = (),
) -> TruePage:
    """A page laid out by its caller: `prints` are text, x, baseline, size in px; `labelled` labels, and of which."""
    marks = tuple(_Mark(*each) for each in prints)
    regions = tuple(TrueRegion(label, marks[i].line.box, float(marks[i].size_px)) for label, i in labelled)
    return TruePage(name, *size_px, marks, tuple(shapes), regions)


def _rows(width: int, height: int, columns: int, fine_lines: int) -> Iterator[tuple[int, int, int, int]]:
    """Size, x, baseline and width of every place for a line, from the top."""
    room = (width - (columns + 1) * _MARGIN_PX) // columns
    if room < _FINE_PX:
        return
    y = _MARGIN_PX + _HEAD_PX
    if y < height:
        yield _HEAD_PX, _MARGIN_PX, y, width - 2 * _MARGIN_PX
    fine_top = height - int(fine_lines * _FINE_PX * _LEADING) - _MARGIN_PX
    while (y := y + int(_BODY_PX * _LEADING)) < fine_top:
        for column in range(columns):
            yield _BODY_PX, _MARGIN_PX + column * (room + _MARGIN_PX), y, room
    for index in range(fine_lines):
        baseline = fine_top + int((index + 1) * _FINE_PX * _LEADING)
        if baseline > _MARGIN_PX + _HEAD_PX + _FINE_PX:
            yield _FINE_PX, _MARGIN_PX, baseline, width - 2 * _MARGIN_PX


def _text(random: Random, size_px: int, number: int) -> str:
    if size_px == _HEAD_PX:
        return random.choice(HEADLINES)
    return f"{number:04d} " + " ".join(random.choice(BODY) for _ in range(6))


def _fitting(text: str, size_px: int, room_px: int) -> str:
    font = load_font(size_px)
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if font.getlength(text[:middle]) <= room_px else (low, middle - 1)
    return text[:low].rstrip()


def _shape_regions(labels: Sequence[str], width: int, height: int) -> list[TrueRegion]:
    """Shapes down the right-hand side, evenly."""
    regions = []
    for index, label in enumerate(labels):
        side = max(24, min(160, width // 4, height // (2 * len(labels))))
        wide = side * 2 if label == "banknote" and side * 2 < width // 2 else side
        x1 = width - _MARGIN_PX - (index % 3) * 10
        y0 = _MARGIN_PX * 4 + (height - _MARGIN_PX * 6) * index // len(labels)
        if x1 - wide > 0 and y0 + side < height:
            regions.append(TrueRegion(label, (x1 - wide, y0, x1, y0 + side)))
    return regions


def _text_regions(marks: Sequence[_Mark]) -> Iterator[TrueRegion]:
    for label, size in (("product name", _HEAD_PX), ("disclaimer", _FINE_PX)):
        boxes = [mark.line.box for mark in marks if mark.size_px == size]
        if boxes:
            x0, y0, x1, y1 = zip(*boxes, strict=True)
            yield TrueRegion(label, (min(x0), min(y0), max(x1), max(y1)), float(size))


def _free_width(place: Box, taken: Sequence[Box]) -> int:
    """How much of the place is free, from its left, with a gap before what stands in it."""
    x0, y0, x1, y1 = place
    starts = [box[0] - _MARGIN_PX for box in taken if box[0] < x1 and x0 < box[2] and box[1] < y1 and y0 < box[3]]
    return max(0, min([x1, *starts]) - x0)


def pdf_of(pages: Sequence[TruePage], px_per_pt: float = 2.0) -> bytes:
    """A PDF of image pages. inspect_pdf draws pictures of up to 200/72 px per point 1:1, so the stamp survives."""
    objects: Objects = {1: b"<< /Type /Catalog /Pages 2 0 R >>"}
    kids = []
    for index, page in enumerate(pages):
        number = 10 + index * 3
        size = b"%.4f %.4f" % (page.width_px / px_per_pt, page.height_px / px_per_pt)
        width, height = size.split()
        objects[number] = (
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 "
            + size
            + b"] /Contents %d 0 R " % (number + 1)
            + b"/Resources << /XObject << /X %d 0 R >> >> >>" % (number + 2)
        )
        objects[number + 1] = stream(width + b" 0 0 " + height + b" 0 0 cm /X Do")
        objects[number + 2] = _image_object(page)
        kids.append(b"%d 0 R" % number)
    objects[2] = b"<< /Type /Pages /Kids [" + b" ".join(kids) + b"] /Count %d >>" % len(pages)
    return pdf_bytes(objects)


def _image_object(page: TruePage) -> bytes:
    data = zlib.compress(page.rgb().tobytes(), 1)
    header = b"/Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /DeviceRGB /BitsPerComponent 8"
    return (
        b"<< /Length %d /Filter /FlateDecode " % len(data)
        + header % page.size_px
        + b" >>\nstream\n"
        + data
        + b"\nendstream"
    )
