"""PDFs as the server sees them: opened, read and drawn in decoder children. Nothing here parses a byte of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sam2_mcp_worker.execution.port import TaskRunner
from sam2_mcp_worker.media.decoder import MAX_PIXELS
from sam2_mcp_worker.media.pdf_geometry import BoxPt, rendered_size_px
from sam2_mcp_worker.media.pixels import PixelFile

# 150 dpi: measured error rate 0.9-1.2 % down to print of 5.76 pt, which is 12 px high then (reference/vision.md 2).
DEFAULT_PX_PER_PT = 150 / 72
# A scan gains nothing in reading above 200 dpi, and costs the square of it.
MAX_IMAGE_PX_PER_PT = 200 / 72
# Print of 12 px is read without loss.
MIN_TEXT_PX = 12.0
# The long edge of A1. Longer pages are captures of screens, where a point is a pixel and a dpi figure means nothing.
PAPER_PT = 2384.0
# Pictures that cover so much of a page are the page.
_DOMINANT_COVER = 0.8
# Smaller ones of them (logos on a landing page) do not decide its resolution.
_RELEVANT_COVER = 0.1


@dataclass(frozen=True, slots=True)
class PdfLine:
    """A displayed line of the text layer. `size_pt` is its usual em, `min_size_pt` the smallest two glyphs have.

    `level`: it is displayed from left to right, neither turned nor upside down.
    """

    text: str
    box_xyxy_pt: BoxPt
    size_pt: float
    min_size_pt: float
    font: str
    level: bool = True


@dataclass(frozen=True, slots=True)
class PdfImage:
    """An embedded picture: displayed box (clipped to the page), own size, own pixels per displayed point."""

    box_xyxy_pt: BoxPt
    width_px: int
    height_px: int
    px_per_pt: float


@dataclass(frozen=True, slots=True)
class PdfPage:
    """What a page says of itself. Points, origin top left of the page as displayed (crop box and rotation applied).

    `hidden_chars` are in the text layer and not displayed; `unmapped_chars` are displayed, and U+FFFD in the lines;
    `vector_paths` counts drawings that may be lettering in outlines; `annotations` those that draw something. The
    last two are seen in the rendered picture and never in `lines`.
    """

    page_number: int
    width_pt: float
    height_pt: float
    rotation_deg: int
    lines: tuple[PdfLine, ...]
    images: tuple[PdfImage, ...]
    hidden_chars: int
    unmapped_chars: int
    vector_paths: int
    annotations: int

    @property
    def has_vector_ink(self) -> bool:
        """Whether drawings are there that may be lettering."""
        return self.vector_paths > 0

    @classmethod
    def from_result(cls, page_number: int, result: dict[str, Any]) -> PdfPage:
        """Read the answer of the task `pdf_page`."""
        return cls(
            page_number=page_number,
            lines=tuple(PdfLine(**{**line, "box_xyxy_pt": tuple(line["box_xyxy_pt"])}) for line in result["lines"]),
            images=tuple(
                PdfImage(**{**image, "box_xyxy_pt": tuple(image["box_xyxy_pt"])}) for image in result["images"]
            ),
            **{name: result[name] for name in _PLAIN},
        )


_PLAIN = ("width_pt", "height_pt", "rotation_deg", "hidden_chars", "unmapped_chars", "vector_paths", "annotations")


@dataclass(frozen=True, slots=True)
class PdfFile:
    """A PDF on disk and the password that opens it."""

    path: Path
    password: str = field(default="", repr=False)

    def _params(self, **more: Any) -> dict[str, Any]:
        return {"path": str(self.path), "password": self.password, **more}

    async def page_count(self, decoders: TaskRunner, *, timeout_s: float, job: str) -> int:
        """Open it and count its pages.

        Raises:
            WorkerError: pdf_empty, not_a_pdf, pdf_damaged, password_required, wrong_password, encryption_unsupported,
                too_many_pages, or one of the runner's own.
        """
        result = await decoders.run("pdf_open", self._params(), timeout_s=timeout_s, job=job)
        return int(result["page_count"])

    async def read_page(self, decoders: TaskRunner, page_number: int, *, timeout_s: float, job: str) -> PdfPage:
        """Text layer, pictures and counts of one page, counted from 1.

        Raises:
            WorkerError: as for `page_count`; page_out_of_range, page_damaged, page_size, page_too_complex.
        """
        params = self._params(page_number=page_number)
        return PdfPage.from_result(page_number, await decoders.run("pdf_page", params, timeout_s=timeout_s, job=job))

    async def render_page(
        self,
        decoders: TaskRunner,
        page_number: int,
        *,
        px_per_pt: float,
        out_path: Path,
        max_pixels: int = MAX_PIXELS,
        timeout_s: float,
        job: str,
    ) -> PixelFile:
        """Draw one page on white into the raw RGB file `out_path`, which is complete only after success.

        Raises:
            WorkerError: as for `read_page`; page_too_large, no_space.
        """
        params = self._params(
            page_number=page_number, px_per_pt=px_per_pt, out_path=str(out_path), max_pixels=max_pixels
        )
        result = await decoders.run("pdf_render", params, timeout_s=timeout_s, job=job)
        return PixelFile(out_path, int(result["width_px"]), int(result["height_px"]))


def suggested_px_per_pt(page: PdfPage, max_pixels: int = MAX_PIXELS) -> float:
    """The scale at which a page is best read by OCR.

    150 dpi, unless embedded pictures cover at least 80 % of the page: then their own resolution, since more shows
    nothing new, up to 200 dpi. A landing page of 1916 x 19983 px on as many points is drawn 1:1. Text above such
    pictures raises it until it is 12 px high, and drawings that may be lettering, on pages of paper size, raise it to
    150 dpi, or a coarse background photo would blur them. Whatever it is, it is lowered until the page has at most
    `max_pixels`.
    """
    native = _native_px_per_pt(page)
    scale = DEFAULT_PX_PER_PT if native is None else max(min(native, MAX_IMAGE_PX_PER_PT), _overprint_px_per_pt(page))
    scale = min(scale, math.sqrt(max_pixels / (page.width_pt * page.height_pt)))
    while math.prod(rendered_size_px(page.width_pt, page.height_pt, scale)) > max_pixels:
        scale *= 0.999  # rounding to whole pixels went over
    return scale


def _overprint_px_per_pt(page: PdfPage) -> float:
    """What the text and the drawings above the pictures need, up to 150 dpi; 0 when there are none."""
    if page.has_vector_ink and max(page.width_pt, page.height_pt) <= PAPER_PT:
        return DEFAULT_PX_PER_PT
    smallest_pt = min((line.min_size_pt for line in page.lines if line.min_size_pt > 0), default=math.inf)
    return min(MIN_TEXT_PX / smallest_pt, DEFAULT_PX_PER_PT)


def _native_px_per_pt(page: PdfPage) -> float | None:
    """The resolution of the pictures that are the page, or None when it has other content."""
    covers = [(_cover(page, image), image) for image in page.images]
    if sum(cover for cover, _ in covers) < _DOMINANT_COVER:
        return None
    largest = max(cover for cover, _ in covers)
    return max(image.px_per_pt for cover, image in covers if cover >= min(_RELEVANT_COVER, largest))


def _cover(page: PdfPage, image: PdfImage) -> float:
    x0, y0, x1, y1 = image.box_xyxy_pt
    return (x1 - x0) * (y1 - y0) / (page.width_pt * page.height_pt)
