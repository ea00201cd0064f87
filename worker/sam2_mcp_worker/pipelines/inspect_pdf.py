"""Inspects a whole PDF in one call: all pages in parallel, as many as the budget allows, the rest over the cursor.

Owns the order of work for a document; what of it goes into which call's result is delivery.py's.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from typing import Any

from sam2_mcp_worker.artifacts import Artifact
from sam2_mcp_worker.cursors import number_ranges, parse_ranges
from sam2_mcp_worker.deadline import Deadline, current_deadline
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.fanout import Coverage, fan_out
from sam2_mcp_worker.jobs import JOB_LIMIT_S, Job, Progress
from sam2_mcp_worker.media.pdf import PdfFile
from sam2_mcp_worker.pipelines.delivery import (
    DeliveredPage,
    budget_for_pages,
    delivered_after,
    fills_a_result,
    from_cursor,
    next_cursor,
    pack,
    reported,
)
from sam2_mcp_worker.pipelines.inspect_page import PageRequest, inspect_page
from sam2_mcp_worker.pipelines.labels import wanted_labels
from sam2_mcp_worker.pipelines.page_readers import PageChoice, choose_page_readers, provider_identity
from sam2_mcp_worker.pipelines.page_reading import PageReaders
from sam2_mcp_worker.pipelines.page_room import PageRoom
from sam2_mcp_worker.pipelines.pdf_report import update_report
from sam2_mcp_worker.pipelines.pdf_tiles import count_tiles_of_call
from sam2_mcp_worker.pipelines.reading_choice import Mode
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.spending import Usage, spend_scope
from sam2_mcp_worker.uploads import StoredFile

TOOL = "inspect_pdf"
# Raise it whenever a page's result has other fields or means something else: it is part of their cache keys.
RESULT_VERSION = 2
# Two pages more than readers: one renders while another is drawn, so that no reader ever waits for pixels.
EXTRA_PAGES_IN_FLIGHT = 2


@dataclass(frozen=True, slots=True)
class Request:
    """The arguments of one call, checked but for the labels."""

    source: str
    pages: str = ""
    password: str = ""
    labels: tuple[str, ...] = ()
    mode: Mode = "auto"
    cursor: str = ""
    detailed: bool = False


@dataclass(slots=True)
class Inspection:
    """What one call delivers. `spent` is by page, since the call before; `choice` says who read.

    `report` and `texts` (of all pages, plain) are as of the last writing.
    """

    file: StoredFile
    page_count: int
    coverage: Coverage[int, Any]
    pages: list[DeliveredPage]
    not_delivered: int
    cursor: str | None
    report: Artifact | None
    texts: Artifact | None
    labels: tuple[str, ...]
    choice: PageChoice
    spent: dict[int, Usage]


async def inspect_pdf(services: Services, request: Request, progress: Progress | None = None) -> Inspection:
    """Run or continue an inspection until the current deadline.

    Raises:
        WorkerError: the source, the password, the page range, a label or the cursor is wrong, or the file is no
            readable PDF.
    """
    deadline = current_deadline()
    labels = wanted_labels(services, request.labels)
    stored = await services.sources.resolve(request.source)
    document_key = key_of(stored, request.password)
    pdf = PdfFile(stored.path, request.password)
    page_count = await count_pages(services, pdf, document_key)
    numbers = _selected(request.pages, page_count)
    asked = [TOOL, *document_key, number_ranges(numbers), services.reader.identity]
    shown = [request.mode, [[label.name, label.definition] for label in labels], request.detailed]
    cursor_key = cache_key(*asked, *shown, provider_identity(services))
    before = from_cursor(request.cursor, TOOL, cursor_key, page_count)
    mode = before.model or request.mode
    tile_count = 0
    if services.vision is not None and mode == "auto":
        tile_count = await count_tiles_of_call(services, pdf, document_key, numbers, labels, deadline)
    chosen = choose_page_readers(services, mode, tile_count, labels)
    key = cache_key(*asked, chosen.readers.wanted)

    async def start(job: Job) -> None:
        job.again = chosen.readers.stand_in
        await _inspect_pages(services, job, pdf, document_key, chosen.readers)

    # A call with a cursor goes on with what the one before it reported; one without tries again what failed.
    async with services.jobs.join(key, tuple(numbers), start, retry=not request.cursor.strip()) as job:
        choice = _choice(job, chosen)
        max_chars = services.settings.result_max_chars
        await job.wait_telling(
            deadline, progress, lambda: fills_a_result(job.coverage, before, max_chars, request.detailed)
        )
        job.raise_error()
        coverage = reported(job.coverage, before)
        pages = pack(coverage, before, budget_for_pages(coverage, max_chars), request.detailed)
        cursor = next_cursor(TOOL, cursor_key, coverage, before, pages, model=choice.model)
        report = await update_report(services, job, stored, choice, deadline)
        delivered = delivered_after(coverage, before, pages)
        return Inspection(
            stored,
            page_count,
            coverage,
            pages,
            sum(number not in delivered for number in (*coverage.done, *coverage.failed)),
            cursor,
            report,
            job.notes.get("texts"),
            tuple(label.name for label in labels),
            choice,
            job.spent.take(),
        )


def _choice(job: Job, chosen: PageChoice) -> PageChoice:
    """Who reads was settled when the job began; what there is to say of it depends on what this call asked for."""
    begun: PageChoice = job.notes.setdefault("choice", chosen)
    return chosen if begun.readers.identity == chosen.readers.identity else begun


async def _inspect_pages(
    services: Services, job: Job, pdf: PdfFile, document_key: tuple[str, str], readers: PageReaders
) -> None:
    room = PageRoom(drawn_at_once=services.settings.decoder_processes)

    async def work(number: int) -> dict[str, Any]:
        with spend_scope(job.spent, number):
            result = await page_result(services, PageRequest(pdf, number, document_key, job.key, readers, room))
        job.again |= not _complete(result)
        return result

    limit = pages_in_flight(services, readers)
    await fan_out(job.coverage, work, deadline=Deadline.after(JOB_LIMIT_S), limit=limit)


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
