"""Two surfaces with one drawing vocabulary: a PDF page with a text layer, and a picture of a page.

Each surface records every line of text that it sets, with its box, so that the leaflet's ground truth is what was
drawn and not what somebody copied down. Coordinates are points from the top left corner. Knows no copy and no layout.
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fpdf import FPDF
from PIL import Image, ImageDraw

from sam2_mcp_worker.demo.fonts import MEASURING_SIZE_PX, Face, ink_box_px, load_font

Box = tuple[float, float, float, float]
"""x0, y0, x1, y1 in points, origin top left."""
Point = tuple[float, float]
Colour = tuple[int, int, int]
Align = Literal["left", "centre", "right"]

POINTS_PER_INCH = 72
PRINT_DPI = 150  # what advertising departments export leaflets at; 12 px print is then 5.76 pt
# Shapes are drawn larger and reduced, because Pillow's own edges are jagged. Text is antialiased by FreeType already.
SHAPE_OVERSAMPLING = 2
JPEG_QUALITY = 90  # mild ringing around letters, as in exported leaflets


@dataclass(frozen=True, slots=True)
class TruthLine:
    """One line of text as it was set: `box_xyxy_pt` holds its ink, `size_pt` is the font size (the em, not the ink)."""

    text: str
    box_xyxy_pt: Box
    size_pt: float
    in_text_layer: bool


class Surface(ABC):
    """What page layouts draw on. `lines` grows with every call of `text`."""

    in_text_layer: bool

    def __init__(self, fonts: dict[Face, Path]) -> None:
        self.fonts = fonts
        self.lines: list[TruthLine] = []

    def measure(self, text: str, size_pt: float, face: Face) -> float:
        """Advance width in points."""
        return float(load_font(self.fonts[face], MEASURING_SIZE_PX).getlength(text)) * size_pt / MEASURING_SIZE_PX

    def text(self, at: Point, text: str, size_pt: float, face: Face, colour: Colour, *, align: Align = "left") -> None:
        """Set one line with its baseline at `at`."""
        share = {"left": 0.0, "centre": 0.5, "right": 1.0}[align]
        x = at[0] - share * self.measure(text, size_pt, face)
        box = self._set_line(x, at[1], text, size_pt, face, colour)
        self.lines.append(TruthLine(text, box, self.real_size(size_pt), self.in_text_layer))

    def real_size(self, size_pt: float) -> float:
        """The font size that comes out when `size_pt` is asked for."""
        return size_pt

    @abstractmethod
    def panel(self, box: Box, fill: Colour, *, radius: float = 0) -> None:
        """A filled rectangle, with round corners if `radius` is given."""

    @abstractmethod
    def ellipse(self, box: Box, fill: Colour) -> None:
        """A filled ellipse inside the box."""

    @abstractmethod
    def polygon(self, points: Sequence[Point], fill: Colour) -> None:
        """A filled polygon."""

    @abstractmethod
    def _set_line(self, x: float, y: float, text: str, size_pt: float, face: Face, colour: Colour) -> Box:
        """Draw the line from `x` on with its baseline at `y`; return the box of its ink."""


class PdfSurface(Surface):
    """The current page of a PDF; its text becomes a text layer with embedded font subsets."""

    in_text_layer = True

    def __init__(self, pdf: FPDF, fonts: dict[Face, Path]) -> None:
        super().__init__(fonts)
        self.pdf: Any = pdf

    def panel(self, box: Box, fill: Colour, *, radius: float = 0) -> None:
        x0, y0, x1, y1 = box
        self.pdf.set_fill_color(*fill)
        rounded = {"round_corners": True, "corner_radius": radius} if radius else {}
        self.pdf.rect(x0, y0, x1 - x0, y1 - y0, style="F", **rounded)

    def ellipse(self, box: Box, fill: Colour) -> None:
        x0, y0, x1, y1 = box
        self.pdf.set_fill_color(*fill)
        self.pdf.ellipse(x0, y0, x1 - x0, y1 - y0, style="F")

    def polygon(self, points: Sequence[Point], fill: Colour) -> None:
        self.pdf.set_fill_color(*fill)
        self.pdf.polygon(list(points), style="F")

    def picture(self, box: Box, picture: PictureSurface) -> None:
        """Place a picture; its lines join this page's truth, outside the text layer."""
        x0, y0, x1, y1 = box
        self.pdf.image(io.BytesIO(picture.jpeg()), x=x0, y=y0, w=x1 - x0, h=y1 - y0)
        scale_x, scale_y = (x1 - x0) / picture.width_pt, (y1 - y0) / picture.height_pt
        for line in picture.lines:
            left, top, right, bottom = line.box_xyxy_pt
            moved = (x0 + left * scale_x, y0 + top * scale_y, x0 + right * scale_x, y0 + bottom * scale_y)
            self.lines.append(TruthLine(line.text, moved, line.size_pt * scale_y, in_text_layer=False))

    def _set_line(self, x: float, y: float, text: str, size_pt: float, face: Face, colour: Colour) -> Box:
        self.pdf.set_font(face, size=size_pt)
        self.pdf.set_text_color(*colour)
        self.pdf.text(x, y, text)
        left, top, right, bottom = ink_box_px(load_font(self.fonts[face], MEASURING_SIZE_PX), text)
        scale = size_pt / MEASURING_SIZE_PX
        return x + left * scale, y + top * scale, x + right * scale, y + bottom * scale


class PictureSurface(Surface):
    """A picture of a page or of a part of one, at `PRINT_DPI`. Its text exists as pixels alone."""

    in_text_layer = False

    def __init__(self, width_pt: float, height_pt: float, fonts: dict[Face, Path], paper: Colour) -> None:
        super().__init__(fonts)
        self.width_pt = width_pt
        self.height_pt = height_pt
        self._px_per_pt = PRINT_DPI / POINTS_PER_INCH
        size_px = (round(width_pt * self._px_per_pt), round(height_pt * self._px_per_pt))
        self._shapes = Image.new("RGB", (size_px[0] * SHAPE_OVERSAMPLING, size_px[1] * SHAPE_OVERSAMPLING), paper)
        self._draw = ImageDraw.Draw(self._shapes)
        self._letters: list[tuple[float, float, str, int, Face, Colour]] = []

    def panel(self, box: Box, fill: Colour, *, radius: float = 0) -> None:
        self._draw.rounded_rectangle(self._scaled(box), radius * self._shape_scale, fill=fill)

    def ellipse(self, box: Box, fill: Colour) -> None:
        self._draw.ellipse(self._scaled(box), fill=fill)

    def polygon(self, points: Sequence[Point], fill: Colour) -> None:
        self._draw.polygon([(x * self._shape_scale, y * self._shape_scale) for x, y in points], fill=fill)

    def gradient(self, box: Box, top: Colour, bottom: Colour) -> None:
        """A vertical blend from `top` to `bottom`."""
        x0, y0, x1, y1 = (round(edge) for edge in self._scaled(box))
        for y in range(y0, y1):
            share = (y - y0) / max(1, y1 - y0 - 1)
            mixed = tuple(round(a + (b - a) * share) for a, b in zip(top, bottom, strict=True))
            self._draw.line((x0, y, x1, y), fill=mixed)

    def jpeg(self) -> bytes:
        """The finished picture: shapes reduced, letters set on top."""
        size_px = (self._shapes.width // SHAPE_OVERSAMPLING, self._shapes.height // SHAPE_OVERSAMPLING)
        page = self._shapes.resize(size_px, Image.Resampling.BOX)
        draw = ImageDraw.Draw(page)
        for x_px, y_px, text, size, face, colour in self._letters:
            draw.text((x_px, y_px), text, font=load_font(self.fonts[face], size), fill=colour, anchor="ls")
        buffer = io.BytesIO()
        page.save(buffer, "JPEG", quality=JPEG_QUALITY, subsampling=0, dpi=(PRINT_DPI, PRINT_DPI))
        return buffer.getvalue()

    def measure(self, text: str, size_pt: float, face: Face) -> float:
        """Advance width as the pixels will have it: at 12 px, hinting makes it differ from the outline's."""
        return float(load_font(self.fonts[face], self._whole_px(size_pt)).getlength(text)) / self._px_per_pt

    def real_size(self, size_pt: float) -> float:
        """Letters come in whole pixels."""
        return self._whole_px(size_pt) / self._px_per_pt

    @property
    def _shape_scale(self) -> float:
        return self._px_per_pt * SHAPE_OVERSAMPLING

    def _scaled(self, box: Box) -> Box:
        x0, y0, x1, y1 = box
        scale = self._shape_scale
        return x0 * scale, y0 * scale, x1 * scale - 1, y1 * scale - 1

    def _whole_px(self, size_pt: float) -> int:
        return round(size_pt * self._px_per_pt)

    def _set_line(self, x: float, y: float, text: str, size_pt: float, face: Face, colour: Colour) -> Box:
        x_px, y_px = round(x * self._px_per_pt), round(y * self._px_per_pt)
        size = self._whole_px(size_pt)
        self._letters.append((x_px, y_px, text, size, face, colour))
        left, top, right, bottom = ink_box_px(load_font(self.fonts[face], size), text)
        scale = self._px_per_pt
        return (x_px + left) / scale, (y_px + top) / scale, (x_px + right) / scale, (y_px + bottom) / scale
