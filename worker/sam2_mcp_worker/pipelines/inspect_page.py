"""Reads one PDF page completely: text layer, what the layer leaves out, regions, and what nothing could read.

Order of work: analyse, render, check the layer against the picture, read what the layer does not cover (the whole page
when there is no layer or it cannot be believed), draw the overlay. The result is JSON, kept by content hash. The layer
is checked by the local engine, whoever reads the rest: that costs nothing.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sam2_mcp_worker.engines.ports import Box, TextLine
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.boxes import rounded_out, scaled
from sam2_mcp_worker.media.pdf import PdfFile, PdfLine, PdfPage, suggested_px_per_pt
from sam2_mcp_worker.media.pdf_geometry import rendered_size_px
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.tiling import plan_tiles
from sam2_mcp_worker.pipelines.overprint import LayerLine, compare
from sam2_mcp_worker.pipelines.page_overlay import draw_page_overlay
from sam2_mcp_worker.pipelines.page_reading import PageReaders, read_page_tiles
from sam2_mcp_worker.pipelines.page_regions import regions_result
from sam2_mcp_worker.pipelines.page_room import PageRoom
from sam2_mcp_worker.pipelines.page_tiles import PageTile, tiles_of_areas, tiles_of_whole_page
from sam2_mcp_worker.pipelines.read_picture import PictureReading, to_box
from sam2_mcp_worker.pipelines.text_layer import Judgement, ReadableScripts, Verdict, choose_samples, judge
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.uploads import handle_of

# Text boxes are grown by this before they mask ink: renderers smear glyph edges over about a pixel.
COVER_PAD_PX = 3
# A picture smaller than this is a bullet or a rule: two letters of readable print are wider.
PICTURE_MIN_SIDE_PX = 16
# Two letters beside each other are about as wide as high, and longer level lines are wider.
UPRIGHT_ASPECT = 1.5
# What pdfium gives for a glyph that the font maps to no character.
UNMAPPED = "\ufffd"


@dataclass(frozen=True, slots=True)
class PageRequest:
    """One page of one document, as the job asks for it."""

    pdf: PdfFile
    page_number: int
    document_key: tuple[Any, ...]
    """Content hash and password hash: what identifies the document."""
    job: str
    readers: PageReaders
    room: PageRoom


@dataclass(frozen=True, slots=True)
class DrawnPage:
    """A page with its pixels, and the lines of its text layer that can be believed (`known`: in pixels)."""

    page: PdfPage
    pixels: PixelFile
    px_per_pt: float
    layer: list[dict[str, Any]]
    known: list[LayerLine]


class PageInspector:
    """The steps for one page, with everything that they share."""

    def __init__(self, services: Services, request: PageRequest, workdir: Path) -> None:
        self._services = services
        self._request = request
        self._workdir = workdir
        self._timeout_s = services.settings.step_timeout_s
        self._scripts = ReadableScripts(services.settings.ocr_languages)
        self.notes: list[str] = []

    async def run(self) -> dict[str, Any]:
        """The page's result.

        Raises:
            WorkerError: the page cannot be decoded, or none of it could be read.
        """
        started_s = time.monotonic()
        async with self._drawn() as drawn:
            tiles = await self._tiles(drawn)
            reading = await self._read(drawn, tiles)
            result = self._result(drawn, tiles, reading)
            result["overlay"] = await draw_page_overlay(
                self._services,
                drawn.pixels,
                result,
                drawn.px_per_pt,
                self._workdir,
                self._request.job,
                inspected=handle_of(self._request.document_key[0]),
            )
        result["elapsed_ms"] = round((time.monotonic() - started_s) * 1000)
        return result

    async def count_tiles(self) -> int:
        """How many tiles the page gives its reader."""
        async with self._drawn() as drawn:
            return len(await self._tiles(drawn))

    @asynccontextmanager
    async def _drawn(self) -> AsyncIterator[DrawnPage]:
        """The page, analysed and rendered, as long as its pixels are needed."""
        room = self._request.room
        async with AsyncExitStack() as stack:
            async with room.drawing:
                page = await self._request.pdf.read_page(
                    self._services.decoders,
                    self._request.page_number,
                    timeout_s=self._timeout_s,
                    job=self._request.job,
                )
                px_per_pt = suggested_px_per_pt(page, self._services.settings.max_picture_pixels)
                size_px = rendered_size_px(page.width_pt, page.height_pt, px_per_pt)
                await stack.enter_async_context(room.for_page(size_px))
                pixels = await self._render(px_per_pt)
            layer = await self._believed_layer(page, pixels, px_per_pt)
            known = [LayerLine(line["text"], scaled(line["box_xyxy_pt"], px_per_pt)) for line in layer]
            yield DrawnPage(page, pixels, px_per_pt, layer, known)

    async def _render(self, px_per_pt: float) -> PixelFile:
        return await self._request.pdf.render_page(
            self._services.decoders,
            self._request.page_number,
            px_per_pt=px_per_pt,
            out_path=self._workdir / "page.rgb",
            max_pixels=self._services.settings.max_picture_pixels,
            timeout_s=self._timeout_s,
            job=self._request.job,
        )

    async def _believed_layer(self, page: PdfPage, pixels: PixelFile, px_per_pt: float) -> list[dict[str, Any]]:
        """The text layer's lines, or none when the picture contradicts them."""
        if page.hidden_chars:
            self.notes.append(f"{page.hidden_chars} characters of the text layer are not visible and were left out")
        # A glyph without a mapping is printed, and only the picture tells what it is: such lines go to OCR.
        lines = [line for line in page.lines if UNMAPPED not in line.text]
        judgement = await self._judge(lines, pixels, px_per_pt)
        if judgement.verdict is Verdict.CONTRADICTED:
            self.notes.append(
                f"the text layer does not say what is printed (agreement {judgement.agreement}): "
                "it was not used, the page was read by OCR"
            )
            return []
        if judgement.verdict is Verdict.UNVERIFIED and lines:
            self.notes.append(
                "the text layer could not be checked against the picture: "
                "too little text, or a script that is not among the OCR languages"
            )
        return [_layer_line(line) for line in lines]

    async def _judge(self, lines: list[PdfLine], pixels: PixelFile, px_per_pt: float) -> Judgement:
        """Read sample lines from the picture and compare."""
        # The reader reads level lines only: what it makes of others would pass for a lie of the layer.
        lines = [line for line in lines if line.level and not _stands_upright(line)]
        fonts = choose_samples(lines, self._scripts)
        chosen = [index for group in fonts for index in group]
        if not chosen:
            return judge([], self._scripts)
        boxes = [rounded_out(scaled(lines[i].box_xyxy_pt, px_per_pt)) for i in chosen]
        seen = await self._services.reader.read_boxes(pixels, boxes, job=self._request.job, timeout_s=self._timeout_s)
        reading = dict(zip(chosen, seen, strict=True))
        return judge([[(lines[i].text, reading[i]) for i in group] for group in fonts], self._scripts)

    async def _tiles(self, drawn: DrawnPage) -> list[PageTile]:
        """What is looked at: pictures and all ink that the layer does not cover, or all of it."""
        readers, pixels = self._request.readers, drawn.pixels
        plan = plan_tiles(pixels.width_px, pixels.height_px, readers.text.tile_limit)
        if not drawn.known:
            return [PageTile(tile) for tile in plan]
        areas = await self._areas_to_read(drawn, plan)
        if readers.regions is not None:
            return tiles_of_whole_page(plan, areas)
        return tiles_of_areas(plan, areas, one_each=readers.text.costs_money)

    async def _areas_to_read(self, drawn: DrawnPage, plan: list[Box]) -> list[Box]:
        covered = [rounded_out(line.box_px, COVER_PAD_PX) for line in drawn.known]
        pictures = [rounded_out(scaled(image.box_xyxy_pt, drawn.px_per_pt)) for image in drawn.page.images]
        answer = await self._services.decoders.run(
            "uncovered_ink",
            {
                "pixels": drawn.pixels.to_params(),
                "tiles": [list(tile) for tile in plan],
                "covered": [list(box) for box in covered],
                "pictures": [list(box) for box in pictures if _may_hold_text(box)],
            },
            timeout_s=self._timeout_s,
            job=self._request.job,
        )
        return [to_box(area) for area in answer["areas"]]

    async def _read(self, drawn: DrawnPage, tiles: list[PageTile]) -> PictureReading:
        request, pixels = self._request, drawn.pixels
        reading = await read_page_tiles(
            request.readers,
            self._services.cache,
            pixels,
            tiles,
            source_key=("pdf", *request.document_key, request.page_number, pixels.width_px, pixels.height_px),
            job=request.job,
            step_timeout_s=self._timeout_s,
        )
        if reading.unread:
            reasons = sorted({reason for _, reason in reading.unread})
            self.notes.append(f"{len(reading.unread)} parts of the page could not be read ({'; '.join(reasons)[:200]})")
        self.notes += reading.notes(len(tiles))
        return reading

    def _result(self, drawn: DrawnPage, tiles: list[PageTile], reading: PictureReading) -> dict[str, Any]:
        found = compare(drawn.known, reading.lines, reading.undetected_ink, self._scripts)
        if found.printed_over:
            self.notes.append(
                f"{len(found.printed_over)} lines of the text layer are printed over by something else: "
                "what is printed was read, these lines were left out"
            )
        displayed = [line for index, line in enumerate(drawn.layer) if index not in found.printed_over]
        lines = displayed + [_ocr_line(line, drawn.px_per_pt) for line in found.new_lines]
        if reading.unread and not lines:
            raise WorkerError("page_unreadable", f"no part of the page could be read ({reading.unread[0][1]})")
        sources = {line["source"] for line in lines}
        unread_px = [*found.unread_ink, *(box for box, _ in reading.unread)]
        return {
            "page_number": self._request.page_number,
            "source": "text_layer" if "text_layer" in sources else "ocr" if sources else "none",
            "characters": sum(count_characters(line["text"]) for line in lines),
            "smallest_text_pt": smallest_size(lines),
            "width_pt": round(drawn.page.width_pt, 1),
            "height_pt": round(drawn.page.height_pt, 1),
            "rotation_deg": drawn.page.rotation_deg,
            "lines": lines,
            "undetected_ink": [_rounded(scaled(box, 1 / drawn.px_per_pt)) for box in unread_px],
            "notes": self.notes,
            "unread_parts": len(reading.unread),
            "again": bool(reading.again),
            **self._regions(drawn, tiles, reading, lines),
        }

    def _regions(
        self, drawn: DrawnPage, tiles: list[PageTile], reading: PictureReading, lines: list[dict[str, Any]]
    ) -> dict[str, Any]:
        if self._request.readers.regions is None:
            return {"regions": None, "regions_reason": ""}
        return regions_result(reading, lines, tile_count=len(tiles), px_per_pt=drawn.px_per_pt)


def _stands_upright(line: PdfLine) -> bool:
    """Whether a line runs up or down the page, as far as its box tells."""
    x0, y0, x1, y1 = line.box_xyxy_pt
    return len(line.text) > 1 and y1 - y0 > UPRIGHT_ASPECT * (x1 - x0)


def _may_hold_text(box_px: Box) -> bool:
    return min(box_px[2] - box_px[0], box_px[3] - box_px[1]) >= PICTURE_MIN_SIDE_PX


def _layer_line(line: PdfLine) -> dict[str, Any]:
    return {
        "text": line.text,
        "box_xyxy_pt": _rounded(line.box_xyxy_pt),
        "size_pt": round(line.size_pt, 2),
        "min_size_pt": round(line.min_size_pt, 2),
        "source": "text_layer",
    }


def _ocr_line(line: TextLine, px_per_pt: float) -> dict[str, Any]:
    return {
        "text": line.text,
        "box_xyxy_pt": _rounded(scaled(line.box_xyxy_px, 1 / px_per_pt)),
        "size_pt": round(line.height_px / px_per_pt, 2),
        "source": "ocr",
        "confidence": round(line.confidence, 2),
    }


def _rounded(box: tuple[float, float, float, float]) -> list[float]:
    return [round(value, 1) for value in box]


def count_characters(text: str) -> int:
    """Characters without spaces: what the field's OCR volumes count."""
    return sum(not char.isspace() for char in text)


def smallest_size(lines: list[dict[str, Any]]) -> float | None:
    """The smallest text size on the page in points. Specks of one character are left out: they may be stains."""
    sizes = [
        line.get("min_size_pt", line["size_pt"]) for line in lines if sum(char.isalnum() for char in line["text"]) >= 2
    ]
    return round(min(sizes), 1) if sizes else None


async def inspect_page(services: Services, request: PageRequest) -> dict[str, Any]:
    """Inspect one page in a work directory of its own.

    Raises:
        WorkerError: why this page failed.
    """
    with services.work_directory("page") as workdir:
        return await PageInspector(services, request, workdir).run()


async def count_tiles(services: Services, request: PageRequest) -> int:
    """How many tiles of a page its reader would be given.

    Raises:
        WorkerError: the page cannot be decoded.
    """
    with services.work_directory("page") as workdir:
        return await PageInspector(services, request, workdir).count_tiles()
