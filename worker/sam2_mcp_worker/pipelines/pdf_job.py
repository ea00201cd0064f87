"""All pages of a PDF read under one job, for every tool that reads PDFs: which pages, who reads them, what is kept.

Owns the way from a stored file to readings of its pages. What of them goes into which call's result is the tools' own
matter.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sam2_mcp_worker.checks.labels import Label
from sam2_mcp_worker.cursors import number_ranges, parse_ranges
from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines.ports import VisionModel
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.fanout import fan_out
from sam2_mcp_worker.jobs import JOB_LIMIT_S, Job, JobVisit
from sam2_mcp_worker.media.pdf import PdfFile
from sam2_mcp_worker.pipelines.inspect_page import PageRequest, inspect_page
from sam2_mcp_worker.pipelines.page_readers import PageChoice, choose_page_readers, provider_identity
from sam2_mcp_worker.pipelines.page_reading import PageReaders
from sam2_mcp_worker.pipelines.page_room import PageRoom
from sam2_mcp_worker.pipelines.pdf_tiles import count_tiles_of_call
from sam2_mcp_worker.pipelines.reading_choice import Mode
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.spending import spend_scope
from sam2_mcp_worker.uploads import StoredFile

# Raise it whenever a page's result has other fields or means something else: it is part of their cache keys.
RESULT_VERSION = 3
# Two pages more than readers: one renders while another is drawn, so that no reader ever waits for pixels.
EXTRA_PAGES_IN_FLIGHT = 2


@dataclass(frozen=True, slots=True)
class PdfPages:
    """The pages of a document that are asked for, counted from 1. `key_parts` are what identifies them in any key."""

    services: Services
    stored: StoredFile
    pdf: PdfFile
    document_key: tuple[str, str]
    page_count: int
    numbers: list[int]

    @property
    def key_parts(self) -> list[Any]:
        """Document, pages, and the engine that checks text layers."""
        return [*self.document_key, number_ranges(self.numbers), self.services.reader.identity]

    def cursor_key(self, tool: str, mode: Mode, labels: Sequence[Label], *more: object) -> str:
        """What a tool's cursors belong to; of no use any more after another provider was set."""
        named = [[label.name, label.definition] for label in labels]
        return cache_key(tool, *self.key_parts, mode, named, *more, provider_identity(self.services))

    async def choose(
        self, mode: Mode, model: VisionModel | Literal[""], labels: Sequence[Label], deadline: Deadline
    ) -> PageChoice:
        """Who reads them; `model` is the one that the request began with, where it goes on."""
        wanted, tile_count = model or mode, 0
        if self.services.vision is not None and wanted == "auto":
            tile_count = await count_tiles_of_call(
                self.services, self.pdf, self.document_key, self.numbers, labels, deadline
            )
        return choose_page_readers(self.services, wanted, tile_count, labels)

    def join(self, chosen: PageChoice, *, retry: bool) -> JobVisit:
        """Take part in the reading. With `retry` what failed, or may be read better now, is read again."""
        key = cache_key("inspect_pdf", *self.key_parts, chosen.readers.wanted)

        async def start(job: Job) -> None:
            job.again = chosen.readers.stand_in
            await self._read(job, chosen.readers)

        return self.services.jobs.join(key, tuple(self.numbers), start, retry=retry)

    async def _read(self, job: Job, readers: PageReaders) -> None:
        services = self.services
        room = PageRoom(drawn_at_once=services.settings.decoder_processes)

        async def work(number: int) -> dict[str, Any]:
            with spend_scope(job.spent, number):
                request = PageRequest(self.pdf, number, self.document_key, job.key, readers, room)
                result = await page_result(services, request)
            job.again |= not _complete(result)
            return result

        limit = pages_in_flight(services, readers)
        await fan_out(job.coverage, work, deadline=Deadline.after(JOB_LIMIT_S), limit=limit)


async def open_pdf(services: Services, stored: StoredFile, pages: str, password: str) -> PdfPages:
    """The pages that are asked for ('1-3,7', empty for all).

    Raises:
        WorkerError: it is no readable PDF, the password or the page range is wrong, or it has too many pages.
    """
    document_key = key_of(stored, password)
    pdf = PdfFile(stored.path, password)
    page_count = await count_pages(services, pdf, document_key)
    return PdfPages(services, stored, pdf, document_key, page_count, _selected(pages, page_count))


def choice_of(job: Job, chosen: PageChoice) -> PageChoice:
    """Who reads was settled when the job began; what there is to say of it depends on what this call asked for."""
    begun: PageChoice = job.notes.setdefault("choice", chosen)
    return chosen if begun.readers.identity == chosen.readers.identity else begun


def pages_in_flight(services: Services, readers: PageReaders) -> int:
    """As many as keep every reader busy though each page have one tile; the disk is PageRoom's to bound."""
    settings = services.settings
    readers_at_once = settings.vision_in_flight if readers.text.costs_money else settings.ocr_process_count
    return readers_at_once + EXTRA_PAGES_IN_FLIGHT


def key_of(stored: StoredFile, password: str) -> tuple[str, str]:
    """What identifies a document in cache keys: its content, and what the password opened of it."""
    return stored.sha256, hashlib.sha256(password.encode("utf-8", "replace")).hexdigest()


async def count_pages(services: Services, pdf: PdfFile, document_key: tuple[str, str]) -> int:
    """How many pages the document has; `document_key` is its content hash and the hash of the password.

    Raises:
        WorkerError: it is no readable PDF, the password is wrong, or it has more pages than the setting allows.
    """

    async def compute() -> int:
        return await pdf.page_count(services.decoders, timeout_s=services.settings.step_timeout_s, job=document_key[0])

    count = int(await services.cache.get_or_compute(cache_key("pdf_open", *document_key), compute))
    if count > services.settings.max_pages:
        raise WorkerError(
            "too_many_pages",
            f"the PDF has {count} pages",
            rule=f"the limit is {services.settings.max_pages} (SAM2_MCP_MAX_PAGES)",
            next_step="split the file, or ask the operator to raise the limit",
        )
    return count


def _selected(pages: str, page_count: int) -> list[int]:
    if not pages.strip():
        return list(range(1, page_count + 1))
    try:
        return parse_ranges(pages, limit=page_count)
    except ValueError as error:
        raise WorkerError(
            "page_out_of_range",
            f"pages: {error}",
            rule=f"the PDF has {page_count} pages (1-{page_count})",
            next_step="give pages like '1-3,7' or leave pages out for all",
        ) from error


async def page_result(services: Services, request: PageRequest) -> dict[str, Any]:
    """What `inspect_page` finds on a page, from the cache when that is complete.

    A page that the provider read whole is served though the local engine stands in for it now.
    """

    def fresh(result: Any) -> bool:
        # A page of which a later try may read more is tried again; one whose picture was swept is made again.
        picture = result["overlay"]
        return _complete(result) and (picture is None or services.artifacts.holds(picture))

    readers = request.readers
    if readers.stand_in:
        paid: dict[str, Any] | None = await asyncio.to_thread(
            services.cache.get, _page_key(services, request, readers.wanted)
        )
        if paid is not None and fresh(paid):
            return paid
    key = _page_key(services, request, readers.identity)
    result: dict[str, Any] = await services.cache.get_or_compute(
        key, lambda: inspect_page(services, request), fresh=fresh
    )
    return result


def _complete(result: dict[str, Any]) -> bool:
    return result["unread_parts"] == 0 and not result["again"]


def _page_key(services: Services, request: PageRequest, identity: str) -> str:
    return cache_key(
        "page",
        RESULT_VERSION,
        *request.document_key,
        request.page_number,
        services.reader.identity,  # of the engine that checks the text layer
        identity,
        services.settings.max_picture_pixels,  # decides the scale of the largest pages
    )
