"""What is measured of one page beyond reading it: contrast of its lines, edges, and what its file is made of.

Owns the order of work for one page of a PDF and for a picture, and the form in which it is cached: once per content,
lines and question. What follows from it is rule_checks.py's and the judges'.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sam2_mcp_worker.checks.reading import ReadLine, ReadPage
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.boxes import rounded_out, scaled
from sam2_mcp_worker.media.image import decode_image
from sam2_mcp_worker.media.pdf import PdfFile, PdfImage, PdfPage, suggested_px_per_pt
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.pipelines.page_boxes import displayed_boxes, grown
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services

# Raise it whenever a measure means something else: it is part of the cache keys.
MEASURE_VERSION = 5
# A line as high as this has strokes of two pixels, whose colour is measured exactly (media/text_contrast.py).
SHARP_TEXT_PX = 34.0
# An A4 page at 500 dpi, which makes print of 5 pt that large; 75 MB on disk. Larger pages are drawn as they are read.
MAX_SHARP_PIXELS = 25_000_000
# A landing page has hundreds of lines; of more on one page the rest is said not to be measured.
MAX_LINES = 1_000
# Pictures that cover as much of a page are the page, and what its edges cut is cut by the page's.
PAGE_COVER = 0.8


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a page: the contrast of lines (by index), and what the file is made of.

    `bleed_mm` is how far artwork shall go on behind the trim, None where nobody asks.
    """

    lines: tuple[int, ...] = ()
    facts: bool = False
    bleed_mm: float | None = None

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.lines and not self.facts


async def measure_pdf_page(
    services: Services, pdf: PdfFile, document_key: Sequence[str], page: ReadPage, question: Question
) -> dict[str, Any]:
    """`{px_per_pt, rotation_deg, contrast: [[index, {...}]], edges, pictures, facts, facts_missing}`; boxes in points.

    `edges` as `media.page_edges` tells them, `facts` as `media.pdf_facts`; None where they were not asked for, and
    `facts_missing` says why they could not be got.

    Raises:
        WorkerError: the page cannot be decoded.
    """

    async def compute() -> dict[str, Any]:
        with services.work_directory("measure") as workdir:
            return await _PdfPage(services, pdf, page, question, document_key[0], workdir).measure()

    measured: dict[str, Any] = await services.cache.get_or_compute(measure_key(document_key, page, question), compute)
    return measured


async def measure_picture(
    services: Services, path: Path, sha256: str, page: ReadPage, question: Question
) -> dict[str, Any]:
    """`{dpi, contrast, edges, facts}` of a picture, as for a page; boxes in pixels, `facts` as `media.picture_facts`.

    Raises:
        WorkerError: the picture cannot be decoded.
    """

    async def compute() -> dict[str, Any]:
        with services.work_directory("measure") as workdir:
            return await _measure_picture(services, path, sha256, page, question, workdir)

    measured: dict[str, Any] = await services.cache.get_or_compute(measure_key((sha256,), page, question), compute)
    return measured


def measure_key(document_key: Sequence[str], page: ReadPage, question: Question) -> str:
    """Of the measures of one page: what they depend on."""
    lines = [_line_key(page.lines[index]) for index in question.lines]
    asked = [list(question.lines), lines, question.facts, question.bleed_mm]
    return cache_key("measure", MEASURE_VERSION, *document_key, page.number, *asked)


def _line_key(line: ReadLine) -> list[Any]:
    return [list(line.box_xyxy or ()), line.height, line.source]


class _PdfPage:
    """One page with everything that the steps share."""

    def __init__(
        self, services: Services, pdf: PdfFile, page: ReadPage, question: Question, job: str, workdir: Path
    ) -> None:
        self._services, self._pdf, self._page, self._question = services, pdf, page, question
        self._job, self._workdir = job, workdir
        self._timeout_s = services.settings.step_timeout_s

    async def measure(self) -> dict[str, Any]:
        number = self._page.number
        found = await self._pdf.read_page(self._services.decoders, number, timeout_s=self._timeout_s, job=self._job)
        facts, facts_missing = await self._facts() if self._question.facts else (None, "")
        most_pixels = self._services.settings.max_picture_pixels
        own_px_per_pt = suggested_px_per_pt(found, most_pixels)
        px_per_pt = max(own_px_per_pt, self._sharp_px_per_pt(found))
        pixels = await self._pdf.render_page(
            self._services.decoders,
            number,
            px_per_pt=px_per_pt,
            out_path=self._workdir / "page.rgb",
            max_pixels=most_pixels,
            timeout_s=self._timeout_s,
            job=self._job,
        )
        own = {"text_layer": px_per_pt, "ocr": own_px_per_pt}
        lines = [(index, self._page.lines[index]) for index in self._question.lines]
        contrast = await measure_contrast(self._services, pixels, lines, px_per_pt, own, self._job)
        edges = await self._edges(found, pixels, px_per_pt, facts) if self._question.facts else None
        return {
            "px_per_pt": own_px_per_pt,
            "contrast": contrast,
            "edges": edges,
            "pictures": [_picture(image) for image in found.images] if self._question.facts else None,
            "rotation_deg": found.rotation_deg,
            "facts": facts,
            "facts_missing": facts_missing,
        }

    async def _facts(self) -> tuple[dict[str, Any] | None, str]:
        """What another library can tell of the file; a file that only it refuses is still measured."""
        params = {"path": str(self._pdf.path), "password": self._pdf.password, "page_number": self._page.number}
        try:
            return await self._services.redactors.run(
                "pdf_page_facts", params, timeout_s=self._timeout_s, job=self._job
            ), ""
        except WorkerError as error:
            return None, error.reason

    def _sharp_px_per_pt(self, found: PdfPage) -> float:
        """What makes the smallest line of the text layer large enough to measure its colour exactly."""
        asked = (self._page.lines[index] for index in self._question.lines)
        smallest_pt = min(
            (line.height for line in asked if line.source == "text_layer" and line.height), default=math.inf
        )
        most = math.sqrt(MAX_SHARP_PIXELS / (found.width_pt * found.height_pt))
        return min(SHARP_TEXT_PX / smallest_pt, most)

    async def _edges(
        self, found: PdfPage, pixels: PixelFile, px_per_pt: float, facts: dict[str, Any] | None
    ) -> dict[str, Any]:
        boxes = displayed_boxes(found.rotation_deg, facts)
        bands = {}
        if boxes and self._question.bleed_mm is not None:
            bleed_pt = self._question.bleed_mm / boxes.mm_per_unit
            bands = {"trim": boxes.trim, "bleed": grown(boxes.trim, bleed_pt)}
        ignored = [image.box_xyxy_pt for image in found.images if not _is_page(found, image)]
        params = {
            "pixels": pixels.to_params(),
            "ignored": [list(scaled(box, px_per_pt)) for box in ignored],
            "bands": {name: list(rounded_out(scaled(box, px_per_pt))) for name, box in bands.items()},
        }
        edges = await self._services.decoders.run("page_edges", params, timeout_s=self._timeout_s, job=self._job)
        for cut in edges["cuts"]:
            cut["box"] = [round(side / px_per_pt, 1) for side in cut["box"]]
        return edges


def _is_page(found: PdfPage, image: PdfImage) -> bool:
    x0, y0, x1, y1 = image.box_xyxy_pt
    return (x1 - x0) * (y1 - y0) >= PAGE_COVER * found.width_pt * found.height_pt


def _picture(image: PdfImage) -> dict[str, Any]:
    return {
        "box": [round(side, 1) for side in image.box_xyxy_pt],
        "px_per_pt": round(image.px_per_pt, 4),
        "size_px": [image.width_px, image.height_px],
    }


async def _measure_picture(
    services: Services, path: Path, job: str, page: ReadPage, question: Question, workdir: Path
) -> dict[str, Any]:
    timeout_s, most = services.settings.step_timeout_s, services.settings.max_picture_pixels
    decoded = await decode_image(
        services.decoders, path, workdir / "picture.rgb", max_pixels=most, timeout_s=timeout_s, job=job
    )
    lines = [(index, page.lines[index]) for index in question.lines]
    contrast = await measure_contrast(services, decoded.pixels, lines, 1.0, {"ocr": 1.0}, job)
    facts = edges = None
    if question.facts:
        facts = await services.decoders.run(
            "picture_facts", {"path": str(path), "max_pixels": most}, timeout_s=timeout_s, job=job
        )
        edges = await services.decoders.run(
            "page_edges", {"pixels": decoded.pixels.to_params()}, timeout_s=timeout_s, job=job
        )
    return {"dpi": decoded.dpi, "contrast": contrast, "edges": edges, "facts": facts}


async def measure_contrast(
    services: Services,
    pixels: PixelFile,
    lines: Sequence[tuple[int, ReadLine]],
    px_per_unit: float,
    own_px_per_unit: dict[str, float],
    job: str,
) -> list[Any]:
    """`[[index, answer]]` of `media.text_contrast` for each of these lines that has a box.

    `own_px_per_unit`: for each source of lines, the pixels that they were made of per unit of the reading.
    """
    placed = [(index, line) for index, line in lines if line.box_xyxy is not None]
    if not placed:
        return []
    asked = [_asked(line, px_per_unit, own_px_per_unit.get(line.source, px_per_unit)) for _, line in placed]
    answer = await services.decoders.run(
        "text_contrast",
        {"pixels": pixels.to_params(), "lines": asked},
        timeout_s=services.settings.step_timeout_s,
        job=job,
    )
    return [[index, told] for (index, _), told in zip(placed, answer["lines"], strict=True)]


def _asked(line: ReadLine, px_per_unit: float, own_px_per_unit: float) -> dict[str, Any]:
    box = line.box_xyxy or (0.0, 0.0, 0.0, 0.0)
    height = line.height or min(box[2] - box[0], box[3] - box[1])
    return {
        "box": [side * px_per_unit for side in box],
        "height_px": height * px_per_unit,
        "own_px": height * own_px_per_unit,
    }
