"""Redacts a PDF: regions, and phrases in text layers and in what OCR reads; verified by text, picture and OCR.

What is removed from the file, and how that is proved on its data, is media/pdf_redaction.py's. Here phrases become
regions, and the pages that changed are drawn from the output and read once more.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines.ports import TextLine
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.fanout import Coverage, fan_out
from sam2_mcp_worker.jobs import JOB_LIMIT_S
from sam2_mcp_worker.media.boxes import overlap, rounded_out, same_line, scaled
from sam2_mcp_worker.media.pdf import PdfFile, suggested_px_per_pt
from sam2_mcp_worker.media.pdf_geometry import BoxPt
from sam2_mcp_worker.media.pdf_redaction import PdfRedaction, PdfRegion, RedactedPage, find_words, redact_pdf
from sam2_mcp_worker.media.redact_words import MIN_CHARS, plain
from sam2_mcp_worker.media.tiling import plan_tiles
from sam2_mcp_worker.pipelines.inspect_page import PageRequest
from sam2_mcp_worker.pipelines.page_readers import local_readers
from sam2_mcp_worker.pipelines.page_reading import PAGE_LIMIT_S
from sam2_mcp_worker.pipelines.page_room import PageRoom
from sam2_mcp_worker.pipelines.pdf_job import count_pages, key_of, page_result, pages_in_flight
from sam2_mcp_worker.pipelines.read_picture import PictureReader
from sam2_mcp_worker.pipelines.redact_findings import Findings, keep, output_name, unverified
from sam2_mcp_worker.pipelines.redact_page_breaks import over_page_break
from sam2_mcp_worker.pipelines.redact_phrases import Match, ReadLine, find_phrases
from sam2_mcp_worker.pipelines.redact_task import RedactionTask

# Beyond the box of a line, as in pictures (redact_image.py): a tenth of its height may stick out.
LINE_MARGIN = 0.15
LINE_MARGIN_PT = 0.5
# With a line gone the detector may see a neighbour that it missed before. Each round covers what the last one showed.
ROUNDS = 3
MAX_TOLD_PAGES = 50


@dataclass(frozen=True, slots=True)
class _PageLines:
    """Lines of one page, and where each came from."""

    page_number: int
    lines: tuple[ReadLine, ...]

    @classmethod
    def of(cls, result: dict[str, Any]) -> _PageLines:
        """From the result of `inspect_page`."""
        lines = tuple(
            ReadLine(line["text"], _box(line["box_xyxy_pt"]), exact=line["source"] == "text_layer")
            for line in result["lines"]
        )
        return cls(result["page_number"], lines)


class PdfRedactor:
    """The steps for one document, with what they share."""

    def __init__(self, task: RedactionTask) -> None:
        self._task = task
        self._file = PdfFile(task.stored.path, task.request.password)
        self._findings = Findings(task.request.phrases)
        self._regions: list[PdfRegion] = []
        self._pages: dict[int, _PageLines] = {}

    async def run(self) -> dict[str, Any]:
        """The result, with the handle of the redacted document.

        Raises:
            WorkerError: the document cannot be opened, a region is wrong, or the output did not pass its check.
        """
        document_key = key_of(self._task.stored, self._task.request.password)
        page_count = await count_pages(self._task.services, self._file, document_key)
        self._plan_regions(page_count)
        if self._task.request.phrases:
            await self._plan_words(page_count)
            await self._plan_read_lines(page_count, document_key)
        if not self._regions:
            return self._findings.to_json("fill", None)
        out = await self._redact_and_check()
        if self._task.request.phrases:
            self._findings.not_verified += _limits(self._task.request.phrases)
        name = output_name(self._task.stored.name, ".pdf", self._task.request.phrases)
        artifact = await keep(self._task.services, out, name=name, mime_type="application/pdf")
        return self._findings.to_json("fill", artifact)

    def _plan_regions(self, page_count: int) -> None:
        for region in self._task.request.regions:
            assert region.page_number is not None
            assert region.box_xyxy_pt is not None
            if region.page_number > page_count:
                raise WorkerError(
                    "page_out_of_range",
                    f"region {region.number} is on page {region.page_number}",
                    rule=f"the PDF has {page_count} pages (1-{page_count})",
                    next_step="correct the region and call again",
                )
            self._regions.append(PdfRegion(region.page_number, region.box_xyxy_pt))
            about = _about(self._regions[-1], "box")
            self._findings.cover_region(region.number, **about)

    async def _plan_words(self, page_count: int) -> None:
        """The phrases' own characters in the text layers, hidden ones included."""
        self._task.tell("searching the text layers")
        words = await find_words(
            self._task.services.redactors,
            self._file,
            self._task.request.phrases,
            page_count=page_count,
            job=self._task.job,
        )
        by_form = {plain(phrase): index for index, phrase in enumerate(self._task.request.phrases)}
        for word in words:
            self._regions.append(word.region)
            match = Match(by_form[word.word], (), "exact", "")
            self._findings.cover_match(match, **_about(word.region, "text_layer"))

    async def _plan_read_lines(self, page_count: int, document_key: tuple[str, str]) -> None:
        """Phrases in lines that OCR read, and in lines of the layer whose characters were not found as such."""
        coverage = await self._read_pages(page_count, document_key)
        results = [coverage.done[number] for number in sorted(coverage.done)]
        pages = [_PageLines.of(result) for result in results]
        self._pages = {page.page_number: page for page in pages}
        for page in pages:
            await self._plan_matches(page)
        for before, after in itertools.pairwise(pages):
            if after.page_number == before.page_number + 1:
                await self._plan_over_break(before, after)
        lines = [line for page in pages for line in page.lines]
        places = [
            {"page_number": page.page_number, "box_xyxy_pt": [round(v, 1) for v in line.box]}
            for page in pages
            for line in page.lines
        ]
        await asyncio.to_thread(self._findings.miss, lines, places)
        self._tell_unread(coverage, results)

    async def _read_pages(self, page_count: int, document_key: tuple[str, str]) -> Coverage[int, dict[str, Any]]:
        coverage: Coverage[int, dict[str, Any]] = Coverage(tuple(range(1, page_count + 1)))
        services, job = self._task.services, self._task.job
        # Whoever covers a phrase may not want the page to leave the machine: the local engine reads here, key or not.
        readers = local_readers(services)
        room = PageRoom(drawn_at_once=services.settings.decoder_processes)

        async def work(number: int) -> dict[str, Any]:
            self._task.tell(f"reading pages: {coverage.settled} of {page_count} done")
            return await page_result(services, PageRequest(self._file, number, document_key, job, readers, room))

        limit = pages_in_flight(services, readers)
        return await fan_out(coverage, work, deadline=Deadline.after(JOB_LIMIT_S), limit=limit)

    async def _plan_matches(self, page: _PageLines) -> bool:
        """Plan whole lines for what is not covered yet; whether there was any."""
        planned = False
        for match in await asyncio.to_thread(find_phrases, self._task.request.phrases, page.lines):
            for index in match.lines:
                line = page.lines[index]
                if self._covers_word(page.page_number, line) or self._is_no_such_line(match, page.page_number, line):
                    continue
                region = PdfRegion(page.page_number, _with_margin(line.box))
                self._regions.append(region)
                self._findings.cover_match(match, **_about(region, "text_layer" if line.exact else "ocr"))
                planned = True
        return planned

    async def _plan_over_break(self, before: _PageLines, after: _PageLines) -> None:
        """Plan whole lines for phrases that one page begins and the next ends."""
        phrases = self._task.request.phrases
        for broken in await asyncio.to_thread(over_page_break, phrases, before.lines, after.lines):
            for page, indices in ((before, broken.before), (after, broken.after)):
                for line in (page.lines[index] for index in indices):
                    region = PdfRegion(page.page_number, _with_margin(line.box))
                    if region not in self._regions:
                        self._regions.append(region)
                        about = _about(region, "text_layer" if line.exact else "ocr")
                        self._findings.cover_match(broken.match, **about)

    def _covers_word(self, page_number: int, line: ReadLine) -> bool:
        """Whether the characters themselves were found in this line of the text layer."""
        return line.exact and any(
            region.page_number == page_number and overlap(region.box_xyxy_pt, line.box) > 0
            for region in self._regions[len(self._task.request.regions) :]
        )

    def _is_no_such_line(self, match: Match, page_number: int, line: ReadLine) -> bool:
        """Whether a look-alike is a line that the text layer tells exactly, and tells otherwise."""
        known = self._pages[page_number].lines if page_number in self._pages else ()
        return match.kind == "near" and any(other.exact and same_line(line.box, other.box) for other in known)

    def _tell_unread(self, coverage: Coverage[int, Any], results: Sequence[dict[str, Any]]) -> None:
        """Why a phrase may stand in the document all the same."""
        failed = sorted(coverage.failed)
        self._findings.parts_failed = bool(failed) or any(result["unread_parts"] for result in results)
        if failed:
            reason = coverage.failed[failed[0]].reason
            self._findings.incomplete.append(f"pages {failed[:MAX_TOLD_PAGES]} could not be read ({reason})")
        inked = {result["page_number"]: len(result["undetected_ink"]) for result in results if result["undetected_ink"]}
        if inked:
            shown = dict(list(inked.items())[:MAX_TOLD_PAGES])
            self._findings.incomplete.append(
                f"{sum(inked.values())} areas look like text and nobody could read them, a phrase may stand there: "
                f"areas by page {shown}; inspect_pdf with detail 'detailed' tells their boxes"
            )

    async def _redact_and_check(self) -> Path:
        for number in range(1, ROUNDS + 1):
            self._task.tell("removing and verifying")
            out = self._task.workdir / f"redacted-{number}.pdf"
            done = await redact_pdf(
                self._task.services.redactors,
                self._file,
                self._regions,
                words=self._task.request.phrases,
                out_path=out,
                job=self._task.job,
            )
            self._findings.verified = list(done.verified)
            if not await self._read_again(out):
                self._findings.notes += _changes(done)
                return out
        raise unverified(f"phrases were still readable after {ROUNDS} rounds")

    async def _read_again(self, out: Path) -> bool:
        """Draw the changed pages of the output and read them; True when a phrase still shows and was planned."""
        numbers = sorted({region.page_number for region in self._regions})
        shown = False
        for position, number in enumerate(numbers):
            self._task.tell(f"reading the redacted pages: {position} of {len(numbers)} done")
            page = await self._read_output(PdfFile(out), number)
            shown = await self._plan_matches(page) or shown
        if not shown:
            self._findings.verified.append(
                f"OCR of the redacted pages finds none of the phrases, nor anything like them ({len(numbers)} pages)"
                if self._task.request.phrases
                else f"OCR reads nothing in the regions ({len(numbers)} pages)"
            )
        return shown

    async def _read_output(self, file: PdfFile, number: int) -> _PageLines:
        """What OCR reads of a page of the output where it changed.

        Raises:
            WorkerError: redaction_unverified when it cannot be read, or a region holds print.
        """
        decoders, limit_s = self._task.services.decoders, self._task.timeout_s
        max_pixels = self._task.services.settings.max_picture_pixels
        page = await file.read_page(decoders, number, timeout_s=limit_s, job=self._task.job)
        scale = suggested_px_per_pt(page, max_pixels)
        path = self._task.workdir / "page.rgb"
        pixels = await file.render_page(
            decoders,
            number,
            px_per_pt=scale,
            out_path=path,
            max_pixels=max_pixels,
            timeout_s=limit_s,
            job=self._task.job,
        )
        areas = [scaled(region.box_xyxy_pt, scale) for region in self._regions if region.page_number == number]
        tiles = [
            tile for tile in plan_tiles(pixels.width_px, pixels.height_px) if any(overlap(tile, area) for area in areas)
        ]
        reader = PictureReader(
            self._task.services.reader,
            self._task.services.cache,
            source_key=(),
            job=self._task.job,
            step_timeout_s=limit_s,
        )
        reading = await reader.read_all(pixels, tiles, Deadline.after(PAGE_LIMIT_S), keep=False)
        path.unlink(missing_ok=True)
        if reading.unread:
            raise unverified(f"page {number} of the output could not be read again ({reading.unread[0][1]})")
        inside = [line for line in reading.lines if _lies_within(line, areas)]
        if inside:
            raise unverified(f"OCR still reads print under a region of page {number}", inside[0].text)
        lines = tuple(ReadLine(line.text, scaled(line.box_xyxy_px, 1 / scale), exact=False) for line in reading.lines)
        return _PageLines(number, lines)


def _lies_within(line: TextLine, areas: Iterable[BoxPt]) -> bool:
    """Whether a line stands under an area; the reader's box of a neighbour may touch it."""
    return any(overlap(line.box_xyxy_px, rounded_out(area)) > 0.8 * overlap(*[line.box_xyxy_px] * 2) for area in areas)


def _about(region: PdfRegion, source: str) -> dict[str, Any]:
    box = [round(value, 1) for value in region.box_xyxy_pt]
    return {"page_number": region.page_number, "box_xyxy_pt": box, "shape": "box", "source": source}


def _with_margin(box: BoxPt) -> BoxPt:
    margin = (box[3] - box[1]) * LINE_MARGIN + LINE_MARGIN_PT
    return max(0.0, box[0] - margin), max(0.0, box[1] - margin), box[2] + margin, box[3] + margin


def _box(values: Sequence[float]) -> BoxPt:
    x0, y0, x1, y1 = values
    return x0, y0, x1, y1


def _took_anything(page: RedactedPage) -> bool:
    return bool(page.rasterised or page.characters or page.paths or page.pictures or page.annotations)


def _limits(phrases: Sequence[str]) -> list[str]:
    """What looking for phrases in a PDF leaves open."""
    unseen = "whether a phrase stands in a picture that no page shows: in a hidden layer, cut off, or covered by others"
    short = [phrase for phrase in phrases if len(plain(phrase)) < MIN_CHARS]
    titles = f"titles, names and addresses: phrases of one character ({', '.join(short)}) were looked for in pages only"
    return [unseen, *([titles] if short else [])]


def _changes(done: PdfRedaction) -> list[str]:
    """What went besides the regions, and what became otherwise."""
    counted = [
        (done.attachments, "attachments were removed"),
        (done.scripts, "scripts were removed"),
        (done.signatures, "signatures were removed: a changed file breaks them"),
        (done.renamed, "titles, names or addresses held a redacted word and lost it"),
        (sum(page.annotations for page in done.pages), "annotations under the regions were removed"),
        (sum(page.fields for page in done.pages), "form fields under the regions were removed"),
    ]
    notes = [f"{count} {what}" for count, what in counted if count]
    if done.metadata:
        notes.append("metadata was removed")
    empty = [page.page_number for page in done.pages if not _took_anything(page)]
    if empty:
        notes.append(f"nothing stood under the regions of pages {empty[:MAX_TOLD_PAGES]}: look whether they are right")
    if done.decrypted:
        notes.append("the source had a password, the result has none")
    notes += [
        f"page {page.page_number} became a picture (200 dpi): {page.rasterised}"
        for page in done.pages
        if page.rasterised
    ]
    return notes
