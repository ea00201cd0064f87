"""PDFs and pictures as documents that can be read: their pages become a `Reading`, with everything that nobody read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sam2_mcp_worker.checks.illegible import illegible_parts
from sam2_mcp_worker.checks.reading import Box, Kind, ReadLine, ReadPage, Unread
from sam2_mcp_worker.checks.reading import Reading as DocumentReading
from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines.ports import Wanted
from sam2_mcp_worker.fanout import Coverage
from sam2_mcp_worker.jobs import Progress
from sam2_mcp_worker.media.pdf import DEFAULT_PX_PER_PT
from sam2_mcp_worker.pipelines.delivery import MODELS
from sam2_mcp_worker.pipelines.image_facts import ImageFacts
from sam2_mcp_worker.pipelines.page_readers import provider_identity
from sam2_mcp_worker.pipelines.pdf_job import PdfPages, choice_of
from sam2_mcp_worker.pipelines.picture_job import PictureJob, picture_of
from sam2_mcp_worker.pipelines.read_documents import NOT_ASKED, NOT_REACHED, UNREAD_INK, ReadDocument, settled_parts
from sam2_mcp_worker.pipelines.read_picture import PictureReading, in_reading_order
from sam2_mcp_worker.pipelines.reading_choice import Mode
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.uploads import StoredFile

# A picture's reader is told by this much of its key in cursors.
BEGAN_CHARS = 16


@dataclass(frozen=True, slots=True)
class PdfDocument:
    """Pages of a PDF; lines and boxes in points of the page as it is displayed."""

    pages: PdfPages
    mode: Mode

    @property
    def name(self) -> str:
        """Of the file."""
        return self.pages.stored.name

    @property
    def kind(self) -> Kind:
        """A PDF."""
        return "pdf"

    @property
    def file(self) -> StoredFile:
        """The file."""
        return self.pages.stored

    @property
    def key(self) -> str:
        """As `Document`."""
        return self.pages.cursor_key("read_pdf", self.mode, ())

    async def read(
        self, deadline: Deadline, *, began_with: str = "", retry: bool = True, progress: Progress | None = None
    ) -> ReadDocument:
        """As `Document`."""
        chosen = await self.pages.choose(self.mode, MODELS.get(began_with, ""), (), deadline)
        async with self.pages.join(chosen, retry=retry) as job:
            choice = choice_of(job, chosen)
            await job.wait_telling(deadline, progress)
            job.raise_error()
            coverage, spent = settled_parts(job), job.spent.take()
        asked = {number: _pdf_page(number, coverage) for number in coverage.items}
        # What nobody asked for was not read: a phrase may stand there, and pages around it are no neighbours.
        pages = (
            asked.get(number) or ReadPage(number, "unreached", reason=NOT_ASKED)
            for number in range(1, self.pages.page_count + 1)
        )
        reading = DocumentReading("pdf", "pt", tuple(pages))
        return ReadDocument(
            self, reading, coverage, choice.engine, choice.notes, began_with=choice.model, spent=spent, unit="page"
        )


def _pdf_page(number: int, coverage: Coverage[int, Any]) -> ReadPage:
    if number in coverage.failed:
        return ReadPage(number, "failed", reason=coverage.failed[number].reason)
    result = coverage.done.get(number)
    if result is None:
        return ReadPage(number, "unreached", reason=NOT_REACHED)
    lines = tuple(_pdf_line(line) for line in result["lines"])
    ink = (Unread(UNREAD_INK, _box(box)) for box in result["undetected_ink"])
    unread = (*ink, *illegible_parts(lines, DEFAULT_PX_PER_PT))
    return ReadPage(number, "done", lines, unread, (result["width_pt"], result["height_pt"]))


def _pdf_line(line: dict[str, Any]) -> ReadLine:
    # Of a line in several sizes the smallest counts: that is what a reader has to be able to read.
    usual = line["size_pt"]
    height, box = line.get("min_size_pt", usual), _box(line["box_xyxy_pt"])
    return ReadLine(line["text"], line["source"], box, height, line.get("confidence"), usual_height=usual)


def _box(values: Any) -> Box:
    x0, y0, x1, y1 = (float(value) for value in values)
    return x0, y0, x1, y1


@dataclass(frozen=True, slots=True)
class PictureDocument:
    """One picture; lines and boxes in its pixels. Of a file with several pictures only the first is read."""

    services: Services
    stored: StoredFile
    image: ImageFacts
    mode: Mode

    @property
    def name(self) -> str:
        """Of the file."""
        return self.stored.name

    @property
    def kind(self) -> Kind:
        """A picture."""
        return "image"

    @property
    def file(self) -> StoredFile:
        """The file."""
        return self.stored

    @property
    def key(self) -> str:
        """As `Document`."""
        identities = [self.services.reader.identity, provider_identity(self.services)]
        return cache_key("read_image", self.stored.sha256, self.mode, identities)

    async def read(
        self, deadline: Deadline, *, began_with: str = "", retry: bool = True, progress: Progress | None = None
    ) -> ReadDocument:
        """As `Document`."""
        picture = await picture_of(
            self.services,
            "read_text",
            self.stored,
            mode=self.mode,
            wanted=Wanted(text=True),
            fits=lambda key: key[:BEGAN_CHARS] == began_with,
        )
        async with picture.join(retry=retry) as job:
            await job.wait_telling(deadline, progress)
            _, merged = await picture.reading(job, frozenset())
            coverage, spent = settled_parts(job), job.spent.take()
        page = _picture_page(picture, coverage, in_reading_order(merged))
        return ReadDocument(
            self,
            DocumentReading("image", "px", (page,)),
            coverage,
            picture.choice.engine,
            tuple(picture.notes(merged)),
            began_with=picture.key[:BEGAN_CHARS],
            spent=spent,
            unit="tile",
        )


def _picture_page(picture: PictureJob, coverage: Coverage[int, Any], merged: PictureReading) -> ReadPage:
    size = float(picture.image.width_px), float(picture.image.height_px)
    lines = tuple(
        ReadLine(line.text, "ocr", _box(line.box_xyxy_px), line.height_px or None, line.confidence)
        for line in merged.lines
    )
    unread = (*_unread(picture, coverage, merged), *illegible_parts(lines))
    if coverage.done:
        return ReadPage(1, "done", lines, unread, size)
    reasons = sorted({error.reason for error in coverage.failed.values()})
    if coverage.unreached:
        return ReadPage(1, "unreached", size=size, reason=NOT_REACHED)
    return ReadPage(1, "failed", size=size, reason="; ".join(reasons))


def _unread(picture: PictureJob, coverage: Coverage[int, Any], merged: PictureReading) -> Iterator[Unread]:
    for box in merged.undetected_ink:
        yield Unread(UNREAD_INK, _box(box))
    for area, reason in merged.unread:
        yield Unread(reason, _box(area))
    for number in coverage.unreached:
        yield Unread(NOT_REACHED, _box(picture.tiles[number - 1]))
    if picture.image.frames != 1:
        count = picture.image.frames or "several"
        yield Unread(f"the file holds {count} pictures, and only the first was read")
